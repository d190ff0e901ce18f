package rest_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"thermite/pkg/control/service"
	"thermite/pkg/control/store"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

// tell has the views take the rig's next event, and gives its place.
func (w *world) tell(rig, run, actor string, body wire.Body) uint64 {
	w.t.Helper()
	raw, err := wire.EncodeBody(body)
	if err != nil {
		w.t.Fatal(err)
	}
	seq := w.views.Last() + 1
	w.views.Take(views.Message{Seq: seq, Rig: rig, Ledger: ledger, Report: "report", Event: wire.Event{ID: seq, Kind: body.Kind(),
		Actor: actor, Run: run, Body: raw, Time: wire.At(w.clock.now())}})
	return seq
}

// makeRun has the rig tell that it began a run.
func (w *world) makeRun(rig, run string) {
	w.t.Helper()
	w.tell(rig, run, "controller", wire.RunCreated{Campaign: "packing", Kit: "circle-packing-26", Title: "26 circles", Worker: "tune",
		Metric: &wire.Metric{Name: "sum", Direction: wire.DirectionMax}})
}

// order gives an order and reads the command that it became.
func (w *world) order(method, path, body string) service.Command {
	w.t.Helper()
	r := w.do(ask{method: method, path: path, token: w.owner, body: body})
	if r.status != http.StatusCreated {
		w.t.Fatalf("%s %s %s: %d %s", method, path, body, r.status, r.body)
	}
	var c service.Command
	decode(w.t, r.body, &c)
	if want := "/v1/commands/" + c.ID; r.header.Get("Location") != want {
		w.t.Errorf("%s %s is at %q, not %s", method, path, r.header.Get("Location"), want)
	}
	return c
}

// Promise: each order becomes the command that it says, for its rig and that
// rig's ledger, as its owner gave it, and the audit log has it.
func TestOrdersBecomeCommands(t *testing.T) {
	const run = "/v1/rigs/a/runs/p"
	for _, c := range []struct{ method, path, body, kind, args string }{
		{"PATCH", run, `{"lanes":2,"title":"t","worker":"exec","budget":{"attempts":9}}`, wire.CommandRunSettings, `{"budget":{"attempts":9},"lanes":2,"run":"p","title":"t","worker":"exec"}`},
		{"POST", run + "/pause", `{"why":"noise"}`, wire.CommandRunPause, `{"run":"p","why":"noise"}`},
		{"POST", run + "/resume", `{}`, wire.CommandRunResume, `{"run":"p","why":""}`},
		{"POST", run + "/stop", `{"why":"enough"}`, wire.CommandRunStop, `{"run":"p","why":"enough"}`},
		{"POST", run + "/queue", `{"title":"x","text":"y","position":1}`, wire.CommandQueueAdd, `{"position":1,"run":"p","text":"y","title":"x"}`},
		{"POST", run + "/queue/3/move", `{"position":1}`, wire.CommandQueueMove, `{"experiment":3,"position":1,"run":"p"}`},
		{"PATCH", run + "/queue/3", `{"text":""}`, wire.CommandQueueEdit, `{"experiment":3,"run":"p","text":""}`},
		{"POST", run + "/queue/3/drop", `{"why":"no"}`, wire.CommandQueueDrop, `{"experiment":3,"run":"p","why":"no"}`},
		{"POST", run + "/trials/2/message", `{"text":"hello"}`, wire.CommandTrialMessage, `{"run":"p","text":"hello","trial":2}`},
		{"POST", run + "/trials/2/stop", `{}`, wire.CommandTrialStop, `{"run":"p","trial":2,"why":""}`},
		{"POST", run + "/attempts/7/disqualify", `{"why":"cheat"}`, wire.CommandAttemptDisqualify, `{"attempt":7,"run":"p","why":"cheat"}`},
		{"POST", run + "/attempts/7/rejudge", `{"allow_suspect":true}`, wire.CommandAttemptRejudge, `{"allow_suspect":true,"attempt":7,"run":"p","why":""}`},
	} {
		t.Run(c.kind, func(t *testing.T) {
			w := newWorld(t)
			w.rig("a")
			w.makeRun("a", "p")
			got := w.order(c.method, c.path, c.body)
			if got.Kind != c.kind || string(got.Args) != c.args || got.Rig != "a" || got.Run != "p" || got.Ledger != ledger || got.By != "owner" || got.State != service.CommandPending {
				t.Errorf("it became %+v, with %s", got, got.Args)
			}
			var again service.Command
			w.get("/v1/commands/"+got.ID, &again)
			if again.ID != got.ID || again.Kind != c.kind {
				t.Errorf("the command is %+v", again)
			}
			var audit service.AuditPage
			w.get("/v1/audit?action=command_issued", &audit)
			if len(audit.Entries) != 1 || audit.Entries[0].Detail["kind"] != c.kind || audit.Entries[0].Source != "127.0.0.1" {
				t.Errorf("the audit log has %v", audit.Entries)
			}
		})
	}
}

// Promise: a run is started with what was asked for, and what nobody said is
// named, drawn or left out so that the command says all that the rig needs.
func TestStartingARun(t *testing.T) {
	w := newWorld(t)
	w.rig("a")
	read := func(body string) wire.RunAssign {
		t.Helper()
		c := w.order("POST", "/v1/runs", body)
		args, err := wire.Command{Kind: c.Kind, Args: c.Args}.Arguments()
		if err != nil {
			t.Fatal(err)
		}
		return args.(wire.RunAssign)
	}
	got := read(`{"rig":"a","kit":{"embedded":"bytecount"}}`)
	if got.Run != "bytecount" || got.Campaign != "bytecount" || got.Worker != "tune" || got.Lanes != 1 || got.Seed == 0 || got.Budget != nil {
		t.Errorf("the least that can be said became %+v", got)
	}
	if got := read(`{"rig":"a","kit":{"embedded":"bytecount"}}`); got.Run != "bytecount-2" {
		t.Errorf("the second is named %s", got.Run)
	}
	commit := strings.Repeat("a", 40)
	got = read(`{"rig":"a","run":"mine","campaign":"c","title":"T","kit":{"git":"https://git.example/My.Kit.git","commit":"` + commit + `"},` +
		`"worker":"exec","worker_args":["./go"],"lanes":3,"seed":7,"budget":{"attempts":10,"wall_ms":1000}}`)
	want := wire.RunAssign{Run: "mine", Campaign: "c", Title: "T", Kit: wire.KitSource{Git: "https://git.example/My.Kit.git", Commit: commit},
		Worker: "exec", WorkerArgs: []string{"./go"}, Lanes: 3, Seed: 7, Budget: &wire.Budget{Attempts: 10, WallMS: 1000}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := read(`{"rig":"a","kit":{"git":"https://git.example/My.Kit.git","commit":"` + commit + `"}}`); got.Run != "run" {
		t.Errorf("a kit whose address is no name names the run %s", got.Run)
	}
	if got := read(`{"rig":"a","kit":{"git":"ssh://git.example/pack.git","commit":"` + commit + `"}}`); got.Run != "pack" {
		t.Errorf("a kit's repository names the run %s", got.Run)
	}
}

// Promise: a lost answer to an order gives no second command, and an order's
// key names one order of one kind.
func TestAnOrderGivenAgainIsOneCommand(t *testing.T) {
	w := newWorld(t)
	w.rig("a")
	w.makeRun("a", "p")
	with := func(path, body, key string) ask {
		return ask{method: "POST", path: path, token: w.owner, body: body, header: map[string]string{"Idempotency-Key": key}}
	}
	for _, c := range []struct{ path, body, other string }{
		{"/v1/runs", `{"rig":"a","kit":{"embedded":"bytecount"}}`, `{"rig":"a","kit":{"embedded":"gsm-prompt"}}`},
		{"/v1/rigs/a/runs/p/queue", `{"title":"x"}`, `{"title":"y"}`},
		{"/v1/rigs/a/runs/p/pause", `{}`, `{"why":"y"}`},
	} {
		first, second := w.do(with(c.path, c.body, "k")), w.do(with(c.path, c.body, "k"))
		var a, b service.Command
		decode(t, first.body, &a)
		decode(t, second.body, &b)
		if a.ID == "" || a.ID != b.ID {
			t.Errorf("POST %s twice with one key became %s and %s", c.path, a.ID, b.ID)
		}
		if p := w.do(with(c.path, c.other, "k")).problem(t); p.Code != service.CodeKeyReused {
			t.Errorf("POST %s with the key of another order is answered %s", c.path, p.Code)
		}
	}
	var list service.CommandList
	if w.get("/v1/commands", &list); len(list.Commands) != 3 {
		t.Errorf("there are %d commands", len(list.Commands))
	}
}

// Promise: a command is taken back once, and only while it has no outcome.
func TestCancelling(t *testing.T) {
	w := newWorld(t)
	w.rig("a")
	w.makeRun("a", "p")
	c := w.order("POST", "/v1/rigs/a/runs/p/pause", `{}`)
	r := w.do(ask{method: "POST", path: "/v1/commands/" + c.ID + "/cancel", token: w.owner})
	var is service.Command
	decode(t, r.body, &is)
	if r.status != http.StatusOK || is.State != service.CommandCancelled || is.EndedAt.IsZero() {
		t.Errorf("it is answered %d %s", r.status, r.body)
	}
	if p := w.do(ask{method: "POST", path: "/v1/commands/" + c.ID + "/cancel", token: w.owner}).problem(t); p.Code != service.CodeCommandOver {
		t.Errorf("taken back again, it is answered %s", p.Code)
	}
}

// Promise: a call that waits for a command's outcome is answered as soon as
// there is one, and else once its wait is over.
func TestWaitingForAnOutcome(t *testing.T) {
	w := newWorld(t)
	w.rig("a")
	w.makeRun("a", "p")
	c := w.order("POST", "/v1/rigs/a/runs/p/pause", `{}`)
	var is service.Command
	if w.get("/v1/commands/"+c.ID+"?wait=10ms", &is); is.State != service.CommandPending {
		t.Errorf("after a wait with no outcome it is %s", is.State)
	}
	answer := make(chan reply, 1)
	go func() {
		r, err := w.try(ask{method: "GET", path: "/v1/commands/" + c.ID + "?wait=30s", token: w.owner})
		if err != nil {
			t.Error(err)
		}
		answer <- r
	}()
	if _, err := w.commands.Cancel(t.Context(), c.ID, "owner", "test"); err != nil {
		t.Fatal(err)
	}
	select {
	case r := <-answer:
		if !strings.Contains(string(r.body), `"state":"cancelled"`) {
			t.Errorf("it is answered %s", r.body)
		}
	case <-time.After(limit):
		t.Fatal("the call still waits")
	}
}

// Promise: the list of runs has each rig's, the newest first, in the campaign
// that control entered them in, and its filters give what fits and no other.
func TestListingRuns(t *testing.T) {
	w := newWorld(t)
	for _, rig := range []string{"a", "b", "z"} {
		w.rig(rig)
		w.makeRun(rig, "p")
	}
	w.makeRun("a", "q")
	w.tell("a", "q", "controller", wire.RunPaused{Why: "noise"})
	if err := w.runs.Assign(t.Context(), "q", "a", "other", w.clock.now()); err != nil {
		t.Fatal(err)
	}
	w.do(ask{method: "POST", path: "/v1/rigs/z/retire", token: w.owner})
	for query, want := range map[string][]string{
		"":                        {"a/q", "b/p", "a/p"},
		"?rig=a":                  {"a/q", "a/p"},
		"?run=p":                  {"b/p", "a/p"},
		"?campaign=other":         {"a/q"},
		"?campaign=packing":       {"b/p", "a/p"},
		"?state=paused":           {"a/q"},
		"?state=running&rig=b":    {"b/p"},
		"?state=ended":            nil,
		"?limit=2":                {"a/q", "b/p"},
		"?limit=2&after={second}": {"a/p"},
	} {
		var page service.RunList
		w.get("/v1/runs?limit=2", &page)
		var list service.RunList
		w.get("/v1/runs"+strings.ReplaceAll(query, "{second}", url.QueryEscape(page.Next)), &list)
		var got []string
		for _, r := range list.Runs {
			got = append(got, r.Rig+"/"+r.Run)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q gives %v, not %v", query, got, want)
		}
	}
}

// Promise: campaigns come by name, page by page, each with its leaderboard.
func TestCampaigns(t *testing.T) {
	w := newWorld(t)
	for _, rig := range []string{"a", "b"} {
		w.rig(rig)
		w.makeRun(rig, "p")
	}
	w.makeRun("a", "q")
	if err := w.runs.Assign(t.Context(), "q", "a", "alone", w.clock.now()); err != nil {
		t.Fatal(err)
	}
	score := 2.5
	w.tell("b", "p", "judge", wire.Champion{Attempt: 0, Score: &score})
	var first, second service.CampaignList
	w.get("/v1/campaigns?limit=1", &first)
	w.get("/v1/campaigns?limit=1&after="+first.Next, &second)
	if len(first.Campaigns) != 1 || first.Campaigns[0].Campaign != "alone" || first.Campaigns[0].Best != nil || second.Next != "" {
		t.Errorf("the first page is %+v, the second %+v", first, second)
	}
	if c := second.Campaigns[0]; c.Campaign != "packing" || c.Runs != 2 || !slices.Equal(c.Rigs, []string{"a", "b"}) || c.Best == nil || c.Best.Rig != "b" {
		t.Errorf("packing is %+v", c)
	}
	var c service.Campaign
	w.get("/v1/campaigns/packing", &c)
	if len(c.Boards) != 1 || len(c.Boards[0].Entries) != 2 || c.Boards[0].Entries[0].Rig != "b" || c.Boards[0].Entries[0].Rank != 1 {
		t.Errorf("its leaderboard is %+v", c.Boards)
	}
}

// Promise: each kit that ships is told of whole, and no other.
func TestKits(t *testing.T) {
	w := newWorld(t)
	reader := w.token(store.RoleReader, "r")
	var list service.KitList
	decode(t, w.do(ask{method: "GET", path: "/v1/kits", token: reader}).body, &list)
	for _, k := range list.Kits {
		var v service.KitView
		w.get("/v1/kits/"+k.Name, &v)
		if v.Name != k.Name || v.Statement == "" || len(v.Editable) == 0 || len(v.Fixtures) != k.FixtureCount || len(v.Tunables) != k.TunableCount || len(v.Steps) != 5 {
			b, _ := json.Marshal(v)
			t.Errorf("kit %s is told of as %s", k.Name, b)
		}
		for _, turn := range v.Tunables {
			if turn.Base == "" || len(turn.Range) < 2 {
				t.Errorf("kit %s: the tunable %+v", k.Name, turn)
			}
		}
	}
	if len(list.Kits) < 3 {
		t.Errorf("%d kits ship", len(list.Kits))
	}
}
