package views

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"thermite/pkg/wire"
)

var began = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// script makes a ledger's messages, one after another.
type script struct {
	rig, ledger string
	seq, id     uint64
	all         []Message
}

// add makes the ledger's next message.
func (s *script) add(kind, actor, run string, body jsontext.Value) Message {
	s.seq++
	s.id++
	m := Message{Seq: s.seq, Rig: s.rig, Ledger: s.ledger, Event: wire.Event{ID: s.id, Kind: kind, Actor: actor, Run: run,
		Time: wire.At(began.Add(time.Duration(s.id) * 7 * time.Second)), Body: body}}
	s.all = append(s.all, m)
	return m
}

// say adds an event of the body's kind.
func (s *script) say(t testing.TB, actor, run string, b wire.Body) Message {
	t.Helper()
	body, err := wire.EncodeBody(b)
	if err != nil {
		t.Fatal(err)
	}
	return s.add(b.Kind(), actor, run, body)
}

// discard is a log that nobody reads.
func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// drawEvents makes a ledger's events: likely ones, ones out of order, kinds
// nobody knows, bodies with further fields and bodies that can't be read.
func drawEvents(t *rapid.T, rig, ledger string, most int) []Message {
	s := &script{rig: rig, ledger: ledger}
	for range rapid.IntRange(0, most).Draw(t, "events") {
		kind := rapid.SampledFrom(drawnKinds).Draw(t, "kind")
		run := rapid.SampledFrom([]string{"", "one", "two"}).Draw(t, "run")
		s.add(kind, rapid.SampledFrom([]string{"judge", "lane:1", "planner"}).Draw(t, "actor"), run, drawBody(t, kind))
	}
	return s.all
}

var drawnKinds = []string{wire.KindLedgerOpened, wire.KindRunCreated, wire.KindRunSettings, wire.KindRunPaused,
	wire.KindRunResumed, wire.KindRunEnded, wire.KindQueue, wire.KindQueue, wire.KindTrialStarted, wire.KindTrialEnded,
	wire.KindAgentPrompt, wire.KindModelCall, wire.KindAttempt, wire.KindAttempt, wire.KindBuild, wire.KindCheck,
	wire.KindMeasure, wire.KindVerdict, wire.KindVerdict, wire.KindChampion, wire.KindDisqualified, wire.KindAdvice,
	wire.KindSource, wire.KindDocument, wire.KindRigCheck, wire.KindCommand, wire.KindCommandRejected, wire.KindRejudged, wire.KindSpaceRemoved, "export"}

func drawBody(t *rapid.T, kind string) jsontext.Value {
	if rapid.IntRange(0, 15).Draw(t, "odd") == 0 {
		return jsontext.Value(rapid.SampledFrom([]string{`{}`, `{"attempt":"seven"}`, `{"op":5}`, `{"title":{}}`}).Draw(t, "body"))
	}
	n := func(what string) uint64 { return rapid.Uint64Range(1, 5).Draw(t, what) }
	score := float64(n("score"))
	var b wire.Body
	switch kind {
	case wire.KindRunCreated:
		b = wire.RunCreated{Campaign: "c", Kit: "k", Title: "title"}
	case wire.KindRunEnded:
		b = wire.RunEnded{Outcome: "finished", Why: "done"}
	case wire.KindQueue:
		b = wire.Queue{Op: rapid.SampledFrom(wire.QueueOps).Draw(t, "op"), Experiment: n("experiment"), Title: "idea",
			Position: n("position") - 1, Lane: n("lane"), Trial: n("trial"), Proposed: n("proposed") == 1}
	case wire.KindTrialStarted:
		b = wire.TrialStarted{Trial: n("trial"), Lane: n("lane"), Experiment: n("experiment"), Worker: "tune"}
	case wire.KindTrialEnded:
		b = wire.TrialEnded{Trial: n("trial"), Lane: n("lane"), Outcome: "done"}
	case wire.KindAttempt:
		b = wire.Attempt{Attempt: n("attempt") * rapid.Uint64Range(1, 50).Draw(t, "times"), Trial: n("trial"), Lane: n("lane")}
	case wire.KindBuild:
		b = wire.Build{Step: wire.Step{Attempt: n("attempt"), OK: true, WallMS: 5}}
	case wire.KindCheck:
		b = wire.Check{Step: wire.Step{Attempt: n("attempt"), Why: "no"}}
	case wire.KindMeasure:
		b = wire.Measure{Step: wire.Step{Attempt: n("attempt"), Judging: n("judging") / 2, OK: true, Values: map[string]float64{"sum": score}}}
	case wire.KindVerdict:
		b = wire.Verdict{Attempt: n("attempt"), Judging: n("judging") / 2, Outcome: rapid.SampledFrom(wire.VerdictOutcomes).Draw(t, "outcome"), Score: &score, Why: "so"}
	case wire.KindChampion:
		b = wire.Champion{Attempt: n("attempt"), Score: &score}
	case wire.KindDisqualified:
		b = wire.Disqualified{Attempt: n("attempt"), Why: "cheat"}
	case wire.KindRejudged:
		b = wire.Rejudged{Attempt: n("attempt"), Why: "again"}
	case wire.KindSpaceRemoved:
		b = wire.SpaceRemoved{Command: strings.Repeat("a", 26), Bytes: n("bytes")}
	case wire.KindCommand:
		b = wire.CommandTaken{ID: strings.Repeat("a", 26), Command: wire.CommandQueueAdd, Outcome: wire.CommandApplied, Number: n("number")}
	case wire.KindCommandRejected:
		b = wire.CommandRejected{Why: "it is no command"}
	case wire.KindRigCheck:
		b = wire.RigCheck{OK: true, Items: []wire.RigCheckItem{{Name: "go", OK: true}}}
	default:
		text := bytes.Repeat([]byte("x"), rapid.SampledFrom([]int{3, laterBody, mostBody}).Draw(t, "text"))
		return fmt.Appendf(nil, `{"later":[1],"text":%q,"title":"t","why":"because"}`, text)
	}
	body, err := wire.EncodeBody(b)
	if err != nil {
		t.Fatal(err)
	}
	return body
}
