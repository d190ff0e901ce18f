package rest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"thermite/pkg/bus"
	"thermite/pkg/control/service"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

// says publishes the rig's next events of the run, and has the views take
// them.
func (s *stream) says(rig, run string, bodies ...wire.Body) {
	s.t.Helper()
	var msgs []*nats.Msg
	var taken []views.Message
	for _, body := range bodies {
		b, err := wire.EncodeBody(body)
		if err != nil {
			s.t.Fatal(err)
		}
		s.ids[rig]++
		e := wire.Event{ID: s.ids[rig], Kind: body.Kind(), Actor: "judge", Run: run, Body: b, Time: wire.At(time.Date(2026, 12, 1, 11, 0, int(s.ids[rig]), 0, time.UTC))}
		raw, err := wire.EncodeEvent(e)
		if err != nil {
			s.t.Fatal(err)
		}
		subject, err := wire.EventSubject(rig, true, e)
		if err != nil {
			s.t.Fatal(err)
		}
		m := nats.NewMsg(subject)
		m.Data = raw
		m.Header.Set(wire.HeaderRig, rig)
		m.Header.Set(wire.HeaderLedger, ledger)
		msgs = append(msgs, m)
		s.last++
		taken = append(taken, views.Message{Seq: s.last, Rig: rig, Ledger: ledger, Event: e, Raw: raw})
	}
	if _, err := bus.PublishBatch(s.t.Context(), s.js, msgs, s.last-uint64(len(msgs))); err != nil {
		s.t.Fatal(err)
	}
	for _, m := range taken {
		s.views.Take(m)
	}
}

// judged are the events of a judging of the attempt.
func judged(attempt, judging uint64, outcome string, score float64) []wire.Body {
	step := wire.Step{Attempt: attempt, Judging: judging, OK: true, WallMS: 5, Values: map[string]float64{"sum": score}}
	built := step
	built.Output = "built it"
	measured := step
	measured.Cases = []wire.StepCase{{Seed: 1, OK: true, WallMS: 2}, {Seed: 9, Secret: true, OK: true, WallMS: 3}}
	measured.Effect = &wire.Effect{Center: 0.1, Low: 0.05, High: 0.2, Confidence: 0.95, Least: 0.01, Pairs: 6}
	return []wire.Body{wire.Build{Step: built}, wire.Check{Step: step}, wire.Measure{Step: measured},
		wire.Verdict{Attempt: attempt, Judging: judging, Outcome: outcome, Score: &score, Why: outcome + " " + strings.Repeat("!", int(judging))}}
}

const patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-é\n+\u2028<b>\n"

// Promise: an attempt is told of whole, with what each step of each of its
// judgings said, and its patch is what its event carries, byte for byte.
func TestAttemptsAreToldWhole(t *testing.T) {
	s := newStream(t)
	s.rig("a")
	s.makeRunAt("a", "p")
	s.says("a", "p", wire.Attempt{Attempt: 1, Trial: 1, Lane: 1, Title: "one", Patch: strings.Repeat("ab", 32), Files: 1, Added: 1, Removed: 1, Diff: patch,
		Tunables: map[string]string{"n": "7"}, Why: "a guess"})
	s.says("a", "p", judged(1, 1, "better", 2.5)...)
	s.says("a", "p", wire.Rejudged{Attempt: 1, Why: "noise"})
	s.says("a", "p", judged(1, 2, "promoted", 2.6)...)

	const path = "/v1/rigs/a/runs/p/attempts/1"
	var v service.AttemptView
	s.get(path, &v)
	if v.Outcome != "promoted" || *v.Score != 2.6 || v.Why != "promoted !!" || v.Judging != 2 || len(v.Steps) != 3 || v.Steps[0].Output != "built it" ||
		len(v.Steps[2].Cases) != 2 || v.Effect == nil || v.Diff != patch || v.Tunables["n"] != "7" || v.Idea != "a guess" || v.Ledger != ledger {
		t.Errorf("the attempt is %+v", v)
	}
	var before service.AttemptView
	s.get(path+"?judging=1", &before)
	if before.Outcome != "better" || *before.Score != 2.5 || before.Why != "better !" || len(before.Steps) != 3 {
		t.Errorf("its first judging is %+v", before)
	}
	if p := s.do(ask{method: "GET", path: path + "?judging=3", token: s.owner}).problem(t); p.Code != service.CodeNoAttempt {
		t.Errorf("a judging there is not is answered %s", p.Code)
	}
	var p service.Patch
	s.get(path+"/patch", &p)
	if d := cmp.Diff(service.Patch{Rig: "a", Run: "p", Attempt: 1, SHA256: strings.Repeat("ab", 32), Diff: patch}, p); d != "" {
		t.Error(d)
	}
}

// Promise: an attempt that carries no patch is refused in words, and the
// kit's base is attempt 0.
func TestAttemptsWithoutAPatch(t *testing.T) {
	s := newStream(t)
	s.rig("a")
	s.makeRunAt("a", "p")
	score := 2.4
	base := judged(0, 1, "better", score)
	s.says("a", "p", append(base[:3:3], wire.Champion{Score: &score}, wire.Attempt{Attempt: 1, Trial: 1})...)
	var v service.AttemptView
	s.get("/v1/rigs/a/runs/p/attempts/0", &v)
	if len(v.Steps) != 3 || v.Diff != "" {
		t.Errorf("the base is %+v", v)
	}
	for _, n := range []string{"0", "1"} {
		if p := s.do(ask{method: "GET", path: "/v1/rigs/a/runs/p/attempts/" + n + "/patch", token: s.owner}).problem(t); p.Code != service.CodeNoPatch {
			t.Errorf("the patch of attempt %s is answered %s", n, p.Code)
		}
	}
}

// Promise: the list of a run's attempts has each that fits once, the newest
// first, however many there are and whatever the pages.
func TestListingAttempts(t *testing.T) {
	s := newStream(t)
	s.rig("a")
	s.makeRunAt("a", "p")
	const attempts = 230 // more than a view keeps whole
	for n := uint64(1); n <= attempts; n++ {
		outcome := "not_better"
		if n%10 == 0 {
			outcome = "refused"
		}
		s.says("a", "p", wire.Attempt{Attempt: n, Trial: 1}, wire.Verdict{Attempt: n, Outcome: outcome, Why: "x"})
	}
	read := func(query string, limit string) (numbers []uint64) {
		for after := ""; ; {
			var page service.AttemptList
			s.get("/v1/rigs/a/runs/p/attempts?limit="+limit+"&after="+after+query, &page)
			for _, a := range page.Attempts {
				numbers = append(numbers, a.Attempt)
			}
			if page.Next == "" {
				return numbers
			}
			after = page.Next
		}
	}
	var all, refused []uint64
	for n := uint64(attempts); n > 0; n-- {
		all = append(all, n)
		if n%10 == 0 {
			refused = append(refused, n)
		}
	}
	for _, limit := range []string{"7", "100", "230", "1000"} {
		if got := read("", limit); !slices.Equal(got, all) {
			t.Errorf("by %s they are %v", limit, got)
		}
		if got := read("&outcome=refused", limit); !slices.Equal(got, refused) {
			t.Errorf("by %s the refused are %v", limit, got)
		}
	}
}

// makeRunAt is makeRun, on the bus.
func (s *stream) makeRunAt(rig, run string) {
	s.says(rig, run, wire.RunCreated{Campaign: "packing", Kit: "circle-packing-26", Title: "26 circles", Metric: &wire.Metric{Name: "sum", Direction: wire.DirectionMax}})
}
