package dash_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/control/dash"
	"thermite/pkg/wire"
)

// Promise: each form of a run's pages gives its rig the one command that it
// says, and leads to the page that shows what comes of it: on its way at
// first, then what the rig made of it.
func TestTheFormsOfARun(t *testing.T) {
	w := newWorld(t, dash.Options{})
	w.rig("alpha", figures)
	w.packed("alpha", "pack-1", 5, 1)
	v := w.signedIn(w.owner)
	for _, c := range []struct {
		form  string
		typed url.Values
		page  string
		kind  string
		args  string
	}{
		{"/pause", url.Values{"why": {" for the night "}}, "", wire.CommandRunPause, `{"run":"pack-1","why":"for the night"}`},
		{"/resume", nil, "", wire.CommandRunResume, `{"run":"pack-1","why":""}`},
		{"/settings", url.Values{"title": {"Packing"}, "lanes": {"2"}, "attempts": {"900"}, "time": {"1h 30m"}}, "", wire.CommandRunSettings,
			`{"budget":{"attempts":900,"wall_ms":5400000},"run":"pack-1","title":"Packing"}`},
		{"/queue", url.Values{"title": {"Rows"}, "text": {"5 and 6\r\nin turn"}, "position": {"1"}}, "/queue", wire.CommandQueueAdd,
			`{"position":1,"run":"pack-1","text":"5 and 6\nin turn","title":"Rows"}`},
		{"/queue/5/move", url.Values{"position": {"1"}}, "/queue", wire.CommandQueueMove, `{"experiment":5,"position":1,"run":"pack-1"}`},
		{"/queue/6/move", url.Values{"position": {"0"}}, "/queue", wire.CommandQueueMove, `{"experiment":6,"run":"pack-1"}`},
		{"/queue/3/edit", url.Values{"title": {"Hexagons"}, "text": {""}}, "/queue", wire.CommandQueueEdit, `{"experiment":3,"run":"pack-1","text":"","title":"Hexagons"}`},
		{"/queue/3/drop", url.Values{"why": {"tried"}}, "/queue", wire.CommandQueueDrop, `{"experiment":3,"run":"pack-1","why":"tried"}`},
		{"/trials/2/message", url.Values{"text": {"smaller steps"}}, "", wire.CommandTrialMessage, `{"run":"pack-1","text":"smaller steps","trial":2}`},
		{"/trials/2/stop", nil, "", wire.CommandTrialStop, `{"run":"pack-1","trial":2,"why":""}`},
		{"/attempts/2/rejudge", url.Values{"why": {"a calm machine"}, "allow_suspect": {"1"}}, "/attempts/2", wire.CommandAttemptRejudge,
			`{"allow_suspect":true,"attempt":2,"run":"pack-1","why":"a calm machine"}`},
		{"/attempts/2/disqualify", url.Values{"why": {"a table"}}, "/attempts/2", wire.CommandAttemptDisqualify, `{"attempt":2,"run":"pack-1","why":"a table"}`},
		{"/stop", url.Values{"why": {"enough"}}, "", wire.CommandRunStop, `{"run":"pack-1","why":"enough"}`},
	} {
		p := v.post(aRunsPage+c.form, c.typed)
		to := p.header.Get("Location")
		given := w.pending("alpha")
		if p.status != http.StatusSeeOther || to != aRunsPage+c.page+"?command="+given.ID {
			t.Fatalf("%s: %d, to %s: %s", c.form, p.status, to, p.body)
		}
		if diff := cmp.Diff([]string{c.kind, c.args}, []string{given.Kind, string(given.Args)}); diff != "" {
			t.Errorf("%s gave (-want +got):\n%s", c.form, diff)
		}
		if page := v.get(to); page.status != http.StatusOK || !strings.Contains(page.body, "On its way to the rig") {
			t.Errorf("%s: the page before the outcome is %d", to, page.status)
		}
		w.answers("alpha", wire.CommandNotApplied, "it is <too> late")
		if page := v.get(to); !strings.Contains(page.body, "it is &lt;too&gt; late") || strings.Contains(page.body, "On its way") {
			t.Errorf("%s: the page does not say what came of it", to)
		}
	}
	if p := v.get("/rigs/alpha/commands"); strings.Count(p.body, "<td class=\"says\" data-th=\"What came of it\">it is &lt;too&gt; late") != 13 {
		t.Errorf("the rig's commands are %s", p.body)
	}
}

// Promise: what is wrong with a form of a run stays on its page, with what
// was typed, and no command is given.
func TestARunsFormsSayWhatIsWrong(t *testing.T) {
	w := newWorld(t, dash.Options{})
	w.rig("alpha", figures)
	w.packed("alpha", "pack-1", 3, 1)
	v := w.signedIn(w.owner)
	for _, c := range []struct {
		form, says string
		typed      url.Values
		kept       []string
	}{
		{"/queue", "title", url.Values{"title": {""}, "text": {"so <long>"}, "position": {"2"}}, []string{"so &lt;long&gt;</textarea>", `value="2"`}},
		{"/queue", "The position must be a whole number", url.Values{"title": {"kept"}, "position": {"first"}}, []string{`value="kept"`, `value="first"`}},
		{"/queue/3/edit", "title", url.Values{"title": {""}, "text": {"kept too"}}, []string{"kept too</textarea>", `id="ask-edit-3" open="open"`}},
		{"/settings", "the time must be one such as", url.Values{"title": {"T"}, "lanes": {"2"}, "time": {"soon"}}, []string{`value="soon"`, `id="ask-settings" open="open"`}},
		{"/settings", "nothing to change", url.Values{"title": {"26 circles in a square, with the largest sum of radii"}, "lanes": {"2"}, "attempts": {"500"}, "time": {"1h0m0s"}}, nil},
		{"/settings", "lanes", url.Values{"title": {"T"}, "lanes": {"9999"}}, []string{`value="9999"`}},
		{"/attempts/1/disqualify", "why", url.Values{"why": {""}}, []string{`id="ask-disqualify" open="open"`}},
		{"/trials/1/message", "text", url.Values{"text": {""}}, nil},
	} {
		p := v.post(aRunsPage+c.form, c.typed)
		if p.status != http.StatusUnprocessableEntity || !strings.Contains(p.body, `role="alert"`) || !strings.Contains(p.body, c.says) {
			t.Errorf("%s: %d, want the words %q: %s", c.form, p.status, c.says, p.body)
		}
		for _, kept := range c.kept {
			if !strings.Contains(p.body, kept) {
				t.Errorf("%s: the page has no %s", c.form, kept)
			}
		}
		checkPage(t, c.form, p.body)
	}
	for _, path := range []string{"/rigs/alpha/runs/none/pause", "/rigs/none/runs/pack-1/pause", aRunsPage + "/queue/x/drop", aRunsPage + "/trials/-1/stop"} {
		if p := v.post(path, nil); p.status != http.StatusNotFound {
			t.Errorf("%s: %d", path, p.status)
		}
	}
	if list := v.get("/rigs/alpha/commands").body; !strings.Contains(list, "No command was given yet") {
		t.Error("a command was given")
	}
}

// Promise: a run is started from the page; until the rig tells of it, its page
// says how far it is; the same form sent again starts no second one.
func TestStartingARun(t *testing.T) {
	w := newWorld(t, dash.Options{})
	v := w.signedIn(w.owner)
	if p := v.get("/runs/new"); !strings.Contains(p.body, "Add the first rig") {
		t.Error("without a rig, the page does not say what is missing")
	}
	w.rig("alpha", figures)
	if p := v.get("/runs/new?kit=bytecount"); !strings.Contains(p.body, `value="bytecount" checked="checked"`) {
		t.Error("the asked kit is not chosen")
	}
	for says, typed := range map[string]url.Values{
		"the time must be one such as": {"rig": {"alpha"}, "kit": {"bytecount"}, "time": {"soon"}, "title": {"<kept>"}},
		"no full commit":               {"rig": {"alpha"}, "kit": {"git"}, "git": {"https://example.org/k.git"}, "commit": {"main"}, "title": {"<kept>"}},
		"worker_args is missing":       {"rig": {"alpha"}, "kit": {"bytecount"}, "worker": {"exec"}, "args": {"\r\n"}, "title": {"<kept>"}},
		"Lanes must be":                {"rig": {"alpha"}, "kit": {"bytecount"}, "lanes": {"many"}, "title": {"<kept>"}},
	} {
		if p := v.post("/runs", typed); p.status != http.StatusUnprocessableEntity || !strings.Contains(p.body, says) || !strings.Contains(p.body, "&lt;kept&gt;") {
			t.Errorf("%s: %d %s", says, p.status, p.body)
		}
	}
	typed := url.Values{"rig": {"alpha"}, "kit": {"circle-packing-26"}, "worker": {"exec"}, "args": {"./search.sh\r\n--long run\r\n"}, "lanes": {"2"}, "run": {"mine"},
		"campaign": {"packing"}, "time": {"10m"}, "attempts": {"50"}, "seed": {"7"}, "key": {"abcdefgh"}}
	p := v.post("/runs", typed)
	given, to := w.pending("alpha"), p.header.Get("Location")
	if p.status != http.StatusSeeOther || to != "/rigs/alpha/runs/mine?command="+given.ID {
		t.Fatalf("starting a run gave %d, to %s: %s", p.status, to, p.body)
	}
	want := `{"budget":{"attempts":50,"wall_ms":600000},"campaign":"packing","kit":{"embedded":"circle-packing-26"},"lanes":2,"run":"mine","seed":7,"worker":"exec","worker_args":["./search.sh","--long run"]}`
	if diff := cmp.Diff(want, string(given.Args)); diff != "" {
		t.Errorf("the run's assignment (-want +got):\n%s", diff)
	}
	if again := v.post("/runs", typed); again.header.Get("Location") != to {
		t.Errorf("the form sent again leads to %s", again.header.Get("Location"))
	}
	if page := v.get(to); page.status != http.StatusOK || !strings.Contains(page.body, "shows here once rig alpha tells of it") {
		t.Errorf("the run's page before its first event: %d", page.status)
	}
	if page := v.get("/rigs/alpha/runs/other?command=" + given.ID); page.status != http.StatusNotFound {
		t.Errorf("another run's page: %d", page.status)
	}
	w.publish("alpha", draft{actor: "control", run: "mine", body: wire.RunCreated{Campaign: "packing", Kit: "circle-packing-26", Title: "Mine"}})
	w.answers("alpha", wire.CommandApplied, "")
	if page := v.get(to); page.status != http.StatusOK || !strings.Contains(page.body, "The rig has done it") || !strings.Contains(page.body, "Overview") {
		t.Errorf("the run's page: %d", page.status)
	}
}

// Promise: a command that the rig has not taken can be taken back from the
// page, once.
func TestTakingACommandBack(t *testing.T) {
	w := newWorld(t, dash.Options{})
	w.rig("alpha", figures)
	w.packed("alpha", "pack-1", 2, 1)
	v := w.signedIn(w.owner)
	v.post(aRunsPage+"/pause", nil)
	id := w.pending("alpha").ID
	cancel := "/rigs/alpha/commands/" + id + "/cancel"
	if p := v.get("/rigs/alpha/commands"); !strings.Contains(p.body, `action="`+cancel+`"`) {
		t.Error("the command can't be taken back")
	}
	if p := v.post(cancel, nil); p.status != http.StatusSeeOther {
		t.Errorf("taking it back gave %d: %s", p.status, p.body)
	}
	if p := v.get("/rigs/alpha/commands"); !strings.Contains(p.body, "cancelled") || strings.Contains(p.body, cancel) {
		t.Error("the page does not say that it was")
	}
	if p := v.post(cancel, nil); p.status != http.StatusConflict || !strings.Contains(p.body, `role="alert"`) {
		t.Errorf("taking it back again gave %d", p.status)
	}
	if p := v.get(aRunsPage + "?command=" + id); !strings.Contains(p.body, "cancelled") {
		t.Error("the run's page does not say it")
	}
}

var (
	attemptRow    = regexp.MustCompile(`<th class="n" scope="row"><a href="[^"]*/attempts/(\d+)">`)
	olderAttempts = regexp.MustCompile(`<a rel="next" href="([^"]+)">Older attempts`)
)

// Promise: an attempt's page has its patch, its steps with what they printed,
// its cases and its effect; every attempt is listed, in pages and by verdict;
// the patch is there as a file, the champions as CSV.
func TestAnAttemptWhole(t *testing.T) {
	w := newWorld(t, dash.Options{})
	w.rig("alpha", figures)
	p := w.packed("alpha", "pack-1", 120, 1)
	w.pass(time.Second)
	v := w.signedIn(w.owner)
	champion := v.get(aRunsPage + "/attempts/" + strconv.FormatUint(p.champion, 10)).body
	for _, want := range []string{"the champion", `<code>optimise/optimise.go</code>`, "<mark>", "on 6 pairs of runs on secret cases", "needed: &#43;0.0001", "What it goes back to",
		`aria-label="Tunables"`, ">secret</span>", ">public</span>", "The patch as a file"} {
		if !strings.Contains(champion, want) {
			t.Errorf("the champion's page has no %q", want)
		}
	}
	refused := v.get(aRunsPage + "/attempts/17").body
	if !strings.Contains(refused, "is not among those that a candidate may use") || !strings.Contains(refused, "at build") {
		t.Error("the refused attempt's page does not say what the build printed, or where it ended")
	}
	if base := v.get(aRunsPage + "/attempts/0").body; !strings.Contains(base, "<h1>The kit's base</h1>") || !strings.Contains(base, "setup: go build") || strings.Contains(base, "ask-disqualify") {
		t.Error("the base's page lacks its judging, or has buttons that it can't have")
	}
	if file := v.get(aRunsPage + "/attempts/1/patch"); file.header.Get("Content-Type") != "text/plain; charset=utf-8" || !strings.HasPrefix(file.body, "diff --git ") {
		t.Errorf("the patch is %v %.40s", file.header, file.body)
	}
	seen := map[string]bool{}
	for path := aRunsPage + "/attempts"; path != ""; {
		page := v.get(path)
		for _, m := range attemptRow.FindAllStringSubmatch(page.body, -1) {
			if seen[m[1]] {
				t.Errorf("attempt %s is on two pages", m[1])
			}
			seen[m[1]] = true
		}
		path = ""
		if m := olderAttempts.FindStringSubmatch(page.body); m != nil {
			path = strings.ReplaceAll(m[1], "&amp;", "&")
		}
	}
	if len(seen) != int(p.attempt) {
		t.Errorf("%d of %d attempts are listed", len(seen), p.attempt)
	}
	if page := v.get(aRunsPage + "/attempts?outcome=refused"); len(attemptRow.FindAllString(page.body, -1)) != 7 {
		t.Errorf("%d attempts are refused", len(attemptRow.FindAllString(page.body, -1)))
	}
	if csv := v.get("/campaigns/packing/champions.csv"); !strings.HasPrefix(csv.body, "kit,rank,rig,run,time,seconds,attempt,score,low,high\ncircle-packing-26,1,alpha,pack-1,") {
		t.Errorf("the champions are %.200s", csv.body)
	}
}
