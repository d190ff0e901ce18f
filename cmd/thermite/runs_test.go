package main

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

const commandID = "aaaaaaaaaaaaaaaaaaaaaaaaaa"

// ordered is a command as it was given, and over is the same with its
// outcome.
func ordered() service.Command {
	return service.Command{ID: commandID, Rig: "lathe", Kind: "run.pause", Run: "p", Args: []byte(`{}`), By: "owner", IssuedAt: at(0), ExpiresAt: at(60), State: service.CommandPending}
}

func over(state, why string) service.Command {
	c := ordered()
	c.State, c.Why, c.EndedAt, c.Number = state, why, at(1), 4
	return c
}

// Promise: what a person says on the command line is what control is asked
// for, whole and nothing else.
func TestWhatIsSaidIsWhatIsAsked(t *testing.T) {
	commit := strings.Repeat("a", 40)
	lathe, mill := service.RigSummary{Name: "lathe", CreatedAt: at(0)}, service.RigSummary{Name: "mill", CreatedAt: at(0), RetiredAt: at(1)}
	s := serve(t, func(w http.ResponseWriter, r *http.Request, _ string) {
		switch {
		case r.Method == http.MethodGet && r.URL.Path == "/v1/rigs":
			respond(t, w, http.StatusOK, service.RigList{Rigs: []service.RigSummary{lathe, mill}})
		case r.Method == http.MethodGet && r.URL.Path == "/v1/runs":
			respond(t, w, http.StatusOK, service.RunList{Runs: []service.RunSummary{{Rig: "lathe", Run: r.URL.Query().Get("run"), First: mark(1, 0), Last: mark(1, 0)}}})
		case r.Method == http.MethodGet && r.URL.Path == "/v1/rigs/lathe/runs/p":
			view := service.RunView{Rig: "lathe", Run: packing}
			view.Budget = &wire.Budget{Attempts: 5, WallMS: 1000}
			respond(t, w, http.StatusOK, view)
		default:
			respond(t, w, http.StatusCreated, over(service.CommandApplied, ""))
		}
	})
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"run", "start", "bytecount"}, `POST /v1/runs {"rig":"lathe","kit":{"embedded":"bytecount"},"lanes":1}`},
		{[]string{"run", "start", "bytecount", "--rig", "mill", "--name", "p", "--campaign", "c", "--title", "T t", "--worker", "tune", "--lanes", "2", "--seed", "7",
			"--attempts", "9", "--time", "10m", "--dollars", "1.5"},
			`POST /v1/runs {"rig":"mill","run":"p","campaign":"c","title":"T t","kit":{"embedded":"bytecount"},"worker":"tune","lanes":2,"seed":7,"budget":{"micro_dollars":1500000,"attempts":9,"wall_ms":600000}}`},
		{[]string{"run", "start", "https://git.example/k.git", "--commit", commit, "--", "./agent", "--fast"},
			`POST /v1/runs {"rig":"lathe","kit":{"git":"https://git.example/k.git","commit":"` + commit + `"},"worker":"exec","worker_args":["./agent","--fast"],"lanes":1}`},
		{[]string{"run", "set", "p", "--title", "", "--lanes", "3"}, `PATCH /v1/rigs/lathe/runs/p {"title":"","lanes":3}`},
		{[]string{"run", "set", "lathe/p", "--attempts", "9"}, `PATCH /v1/rigs/lathe/runs/p {"budget":{"attempts":9,"wall_ms":1000}}`},
		{[]string{"run", "set", "lathe/p", "--time", "0"}, `PATCH /v1/rigs/lathe/runs/p {"budget":{"attempts":5}}`},
		{[]string{"run", "pause", "p", "--why", "noise"}, `POST /v1/rigs/lathe/runs/p/pause {"why":"noise"}`},
		{[]string{"run", "resume", "p"}, `POST /v1/rigs/lathe/runs/p/resume {}`},
		{[]string{"run", "stop", "p", "--yes"}, `POST /v1/rigs/lathe/runs/p/stop {}`},
		{[]string{"run", "queue", "add", "p", "An idea", "--text", "more", "--position", "2"}, `POST /v1/rigs/lathe/runs/p/queue {"title":"An idea","text":"more","position":2}`},
		{[]string{"run", "queue", "add", "p", "An idea", "--text", "-"}, `POST /v1/rigs/lathe/runs/p/queue {"title":"An idea","text":"from a pipe"}`},
		{[]string{"run", "queue", "move", "p", "3", "1"}, `POST /v1/rigs/lathe/runs/p/queue/3/move {"position":1}`},
		{[]string{"run", "queue", "move", "p", "3", "end"}, `POST /v1/rigs/lathe/runs/p/queue/3/move {}`},
		{[]string{"run", "queue", "edit", "p", "3", "--text", ""}, `PATCH /v1/rigs/lathe/runs/p/queue/3 {"text":""}`},
		{[]string{"run", "queue", "drop", "p", "3", "--why", "no"}, `POST /v1/rigs/lathe/runs/p/queue/3/drop {"why":"no"}`},
		{[]string{"run", "trial", "message", "p", "2", "-"}, `POST /v1/rigs/lathe/runs/p/trials/2/message {"text":"from a pipe"}`},
		{[]string{"run", "trial", "stop", "p", "2"}, `POST /v1/rigs/lathe/runs/p/trials/2/stop {}`},
		{[]string{"attempt", "disqualify", "p", "7", "--why", "cheat"}, `POST /v1/rigs/lathe/runs/p/attempts/7/disqualify {"why":"cheat"}`},
		{[]string{"attempt", "rejudge", "p", "7", "--allow-suspect"}, `POST /v1/rigs/lathe/runs/p/attempts/7/rejudge {"allow_suspect":true}`},
		{[]string{"command", "cancel", commandID}, `POST /v1/commands/` + commandID + `/cancel`},
	} {
		got := s.thermiteOn(t.Context(), t, &strings.Builder{}, terminal{}, "from a pipe", c.args...)
		calls := s.called()
		if diff := cmp.Diff(c.want, calls[len(calls)-1]); diff != "" || got.code != 0 {
			t.Errorf("thermite %v ended with %d %s\nand asked (-want +got):\n%s", c.args, got.code, got.errors, diff)
		}
	}
}

// Promise: a command that tells a rig something ends once the rig did it, or
// with the reason and the code that say why not.
func TestACommandEndsWithItsOutcome(t *testing.T) {
	for state, want := range map[string]struct {
		code  int
		words string
	}{
		service.CommandApplied:    {0, "is paused.\nbecause"},
		service.CommandNotApplied: {3, "rig lathe did not do it: because"},
		service.CommandRejected:   {3, "rig lathe refused the command: because"},
		service.CommandExpired:    {1, "the command's time passed: because"},
		service.CommandCancelled:  {1, "the command was cancelled"},
	} {
		var asked atomic.Int32
		s := serve(t, func(w http.ResponseWriter, r *http.Request, _ string) {
			switch {
			case r.Method == http.MethodPost:
				respond(t, w, http.StatusCreated, ordered())
			case asked.Add(1) == 1:
				held := ordered()
				held.Held = "the message bus is away"
				respond(t, w, http.StatusOK, held)
			case asked.Load() == 2:
				respond(t, w, http.StatusOK, ordered())
			default:
				respond(t, w, http.StatusOK, over(state, "because"))
			}
		})
		for _, more := range []string{"", "--json"} {
			asked.Store(0)
			got := s.thermite(t.Context(), t, strings.Fields("run pause lathe/p "+more)...)
			if got.code != want.code || more == "" && !strings.Contains(got.out+got.errors, want.words) {
				t.Errorf("%s: it ended with %d: %s%s", state, got.code, got.out, got.errors)
			}
			for _, words := range []string{"waiting for the message bus: the message bus is away", "waiting for rig lathe"} {
				if strings.Count(got.errors, words) != 1 {
					t.Errorf("%s: standard error should say %q once: %s", state, words, got.errors)
				}
			}
			if more != "" && !strings.Contains(got.out, `"state":"`+state+`"`) {
				t.Errorf("%s: the document is %q", state, got.out)
			}
		}
	}
}

// Promise: --no-wait asks for no outcome, and Ctrl-C ends the waiting alone:
// both say where the outcome is.
func TestNotWaiting(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request, _ string) {
		if r.Method == http.MethodPost {
			respond(t, w, http.StatusCreated, ordered())
			return
		}
		cancel()
		<-r.Context().Done()
	})
	got := s.thermite(t.Context(), t, "run", "pause", "lathe/p", "--no-wait")
	if got.code != 0 || !strings.Contains(got.out, "thermite command show "+commandID) || len(s.called()) != 1 {
		t.Errorf("--no-wait ended with %d after %v: %s%s", got.code, s.called(), got.out, got.errors)
	}
	got = s.thermite(ctx, t, "run", "pause", "lathe/p")
	if got.code != exitInterrupted || !strings.Contains(got.errors, "thermite command show "+commandID) {
		t.Errorf("Ctrl-C ended it with %d: %s%s", got.code, got.out, got.errors)
	}
}

// Promise: a run is found by its name alone, and where several rigs have one,
// the command asks which.
func TestRunsAreFoundByTheirName(t *testing.T) {
	runs := []service.RunSummary{{Rig: "drill", Run: "p", State: "ended", First: mark(2, 0), Last: mark(2, 0)}, {Rig: "lathe", Run: "p", State: "running", First: mark(1, 0), Last: mark(1, 0)}}
	s := serve(t, func(w http.ResponseWriter, r *http.Request, _ string) {
		if r.URL.Path != "/v1/runs" {
			respond(t, w, http.StatusOK, service.RunQueue{Rig: "lathe", Run: "p"})
			return
		}
		list := service.RunList{Runs: slices.DeleteFunc(slices.Clone(runs), func(r2 service.RunSummary) bool {
			return r.URL.Query().Get("run") != "" && r2.Run != r.URL.Query().Get("run")
		})}
		respond(t, w, http.StatusOK, list)
	})
	if got := s.thermite(t.Context(), t, "run", "queue", "list", "p"); got.code != 2 || !strings.Contains(got.errors, "drill/p or lathe/p") {
		t.Errorf("a name that two rigs have ended with %d: %s", got.code, got.errors)
	}
	if got := s.thermite(t.Context(), t, "run", "queue", "list", "q"); got.code != 3 || !strings.Contains(got.errors, "thermite run list") {
		t.Errorf("a name that none has ended with %d: %s", got.code, got.errors)
	}
	if got := s.thermite(t.Context(), t, "run", "queue", "list", "lathe/p"); got.code != 0 || !slices.Contains(s.called(), "GET /v1/rigs/lathe/runs/p/queue") {
		t.Errorf("RIG/RUN ended with %d: %s", got.code, got.errors)
	}
	if got := s.thermite(t.Context(), t, "__complete", "run", "show", ""); !strings.Contains(got.out, "drill/p\t") || !strings.Contains(got.out, "lathe/p\t") {
		t.Errorf("completions are %q", got.out)
	}
}

// Promise: a patch goes to standard output byte for byte, so that git can
// apply it, and on a terminal nothing of it moves the cursor.
func TestAPatchIsPrintedAsItIs(t *testing.T) {
	diff := "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-\ta\n+\tb\x1b[2J\n"
	s := serve(t, func(w http.ResponseWriter, r *http.Request, _ string) {
		respond(t, w, http.StatusOK, service.Patch{Rig: "lathe", Run: "p", Attempt: 7, SHA256: strings.Repeat("ab", 32), Diff: diff, Clipped: true})
	})
	got := s.thermite(t.Context(), t, "attempt", "patch", "lathe/p", "7")
	if got.code != 0 || got.out != diff || !strings.Contains(got.errors, strings.Repeat("ab", 32)) {
		t.Errorf("it ended with %d: %q, and said %s", got.code, got.out, got.errors)
	}
	if got := s.thermiteOn(t.Context(), t, &strings.Builder{}, terminal{width: 80}, "", "attempt", "patch", "lathe/p", "7"); strings.Contains(got.out, "\x1b") || strings.Count(got.out, "\n") != 5 {
		t.Errorf("on a terminal it is %q", got.out)
	}
}

// Promise: a line of blocks rises with the best score, whatever its length
// and direction.
func TestSpark(t *testing.T) {
	for want, values := range map[string][]float64{"": {1, 1}, "▁█": {1, 2}, "▁▅█": {0, 5, 10}} {
		if got := spark(values); got != want {
			t.Errorf("%v is %q, not %q", values, got, want)
		}
	}
	long := make([]float64, 1000)
	for i := range long {
		long[i] = float64(i)
	}
	if got := []rune(spark(long)); len(got) != sparkWidth || got[0] != '▁' || got[sparkWidth-1] != '█' || !slices.IsSorted(got) {
		t.Errorf("1000 values are %q", string(got))
	}
	falls := service.Run{Metric: &wire.Metric{Direction: wire.DirectionMin}, Champions: []service.Champion{{Mark: mark(1, 0), Score: number(3)}, {Mark: mark(3, 0), Score: number(1), Disqualified: true}, {Mark: mark(4, 0), Score: number(2)}},
		Scores: []service.Score{{Mark: mark(2, 0)}, {Mark: mark(3, 0)}, {Mark: mark(4, 0)}}}
	if got := bests(falls); !slices.Equal(got, []float64{-3, -3, -3, -2, -2}) {
		t.Errorf("the best scores are %v", got)
	}
}
