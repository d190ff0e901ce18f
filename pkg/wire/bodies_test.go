package wire_test

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"thermite/pkg/wire"
)

// bodyKind is what a test can do with bodies of one kind.
type bodyKind struct {
	draw           func(*rapid.T) wire.Body
	decode, loosen func(wire.Event) (wire.Body, error)
}

// ofKind gives it for B. Only the kinds of fields that bodies have can be
// drawn.
func ofKind[B wire.Body]() bodyKind {
	return bodyKind{
		draw: func(t *rapid.T) wire.Body {
			var b B
			drawInto(t, reflect.ValueOf(&b).Elem(), "")
			return b
		},
		decode: func(e wire.Event) (wire.Body, error) { return wire.DecodeBody[B](e) },
		loosen: func(e wire.Event) (wire.Body, error) { return wire.ReadBody[B](e) },
	}
}

var bodyKinds = []bodyKind{ofKind[wire.LedgerOpened](), ofKind[wire.RunCreated](), ofKind[wire.RunSettings](),
	ofKind[wire.RunPaused](), ofKind[wire.RunResumed](), ofKind[wire.RunEnded](), ofKind[wire.Queue](),
	ofKind[wire.TrialStarted](), ofKind[wire.TrialEnded](), ofKind[wire.AgentPrompt](), ofKind[wire.ModelCall](),
	ofKind[wire.Attempt](), ofKind[wire.Build](), ofKind[wire.Check](), ofKind[wire.Measure](), ofKind[wire.Verdict](),
	ofKind[wire.Champion](), ofKind[wire.Disqualified](), ofKind[wire.Advice](), ofKind[wire.Source](),
	ofKind[wire.Document](), ofKind[wire.RigCheck](), ofKind[wire.Rejudged](), ofKind[wire.CommandTaken](),
	ofKind[wire.CommandRejected](), ofKind[wire.OwnerMessage](), ofKind[wire.SpaceRemoved]()}

// drawInto fills v; good values of texts with a fixed form are likely.
func drawInto(t *rapid.T, v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.Struct:
		if at, ok := v.Addr().Interface().(*wire.Time); ok {
			*at = wire.At(time.Unix(rapid.Int64Range(1, 1<<31).Draw(t, "time"), 0))
			return
		}
		for i := range v.NumField() {
			drawInto(t, v.Field(i), v.Type().Field(i).Name)
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "there") {
			v.Set(reflect.New(v.Type().Elem()))
			drawInto(t, v.Elem(), name)
		}
	case reflect.String:
		v.SetString(drawText(t, name))
	case reflect.Uint64:
		v.SetUint(rapid.OneOf(rapid.Uint64Range(0, 20), rapid.Uint64Range(0, wire.MaxInteger+5)).Draw(t, name))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, name))
	case reflect.Float64:
		v.SetFloat(rapid.Float64().Draw(t, name))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for _, key := range rapid.SliceOfN(rapid.StringN(0, 5, 20), 0, 3).Draw(t, name) {
			value := reflect.New(v.Type().Elem()).Elem()
			drawInto(t, value, name)
			v.SetMapIndex(reflect.ValueOf(key), value)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), rapid.IntRange(0, 3).Draw(t, name), 3))
		for i := range v.Len() {
			drawInto(t, v.Index(i), name)
		}
	}
}

func drawText(t *rapid.T, name string) string {
	likely := map[string][]string{"Outcome": slices.Concat(wire.RunOutcomes, wire.TrialOutcomes, wire.VerdictOutcomes, []string{wire.CommandApplied, wire.CommandNotApplied}),
		"Op": wire.QueueOps, "Direction": {"min", "max"}, "Campaign": {"circles"}, "Kit": {"bytecount"},
		"Before": {"", "abcdefgh"}, "Patch": {"", strings.Repeat("0a", 32)}, "Digest": {"", strings.Repeat("0a", 32)},
		"Embedded": {"", "bytecount"}, "Git": {"", "https://example.org/kit.git"}, "Commit": {"", strings.Repeat("0a", 20)},
		"Command": {strings.Repeat("a2", 13)}, "Kind": wire.SpaceKinds, "Run": {"", "pack26"}, "Name": {"one"},
		"ID": {strings.Repeat("a2", 13)}}[name]
	if len(likely) > 0 && rapid.IntRange(0, 9).Draw(t, "likely") > 0 {
		return rapid.SampledFrom(likely).Draw(t, name)
	}
	return rapid.StringN(0, 12, 40).Draw(t, name)
}

// Promise: a body that can be written reads back as it was, strictly and
// loosely, and its event goes on the bus.
func TestBodiesReadBackAsWritten(t *testing.T) {
	for _, k := range bodyKinds {
		t.Run(k.name(), func(t *testing.T) {
			written := 0
			rapid.Check(t, func(t *rapid.T) {
				b := k.draw(t)
				raw, err := wire.EncodeBody(b)
				if err != nil {
					if b.Check() == nil && !strings.Contains(err.Error(), "UTF-8") {
						t.Fatalf("a body that is right, %+v, was not written: %v", b, err)
					}
					return
				}
				written++
				e := wire.Event{ID: 1, Time: wire.At(time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)), Kind: b.Kind(), Actor: "judge", Run: "one", Body: raw}
				line, err := wire.EncodeEvent(e)
				if err != nil {
					t.Fatal(err)
				}
				if e, err = wire.DecodeEvent(line); err != nil {
					t.Fatal(err)
				}
				for how, read := range map[string]func(wire.Event) (wire.Body, error){"strictly": k.decode, "loosely": k.loosen} {
					got, err := read(e)
					if err != nil {
						t.Fatal(err)
					}
					if again, err := wire.EncodeBody(got); err != nil || !bytes.Equal(raw, again) {
						t.Fatalf("read %s it is %s, %v; written was %s", how, again, err, raw)
					}
				}
			})
			if written == 0 {
				t.Error("no body was drawn that could be written")
			}
		})
	}
}

func (k bodyKind) name() string {
	// A body's kind is its type's, not its value's.
	return rapid.Custom(k.draw).Example(1).Kind()
}

// Promise: what is wrong with a body is refused by its field's name, as it is
// written and as it is read strictly.
func TestBodiesThatAreWrong(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		body wire.Body
		want string
	}{
		{wire.LedgerOpened{Before: "no/ledger"}, "before: ledger"},
		{wire.RunCreated{Campaign: "Circles", Kit: "k"}, "campaign name"},
		{wire.RunCreated{Campaign: "c", Kit: "k", Metric: &wire.Metric{Name: "sum", Direction: "up"}}, "metric.direction"},
		{wire.RunCreated{Campaign: "c", Kit: "k", Budget: &wire.Budget{WallMS: 1 << 60}}, "budget.wall_ms"},
		{wire.RunEnded{Outcome: "dead"}, "outcome"},
		{wire.Queue{Op: "lost", Experiment: 1}, "op"},
		{wire.Queue{Op: wire.QueueAdded, Experiment: 1}, "title"},
		{wire.Queue{Op: wire.QueueMoved}, "experiment"},
		{wire.Queue{Op: wire.QueueAssigned, Experiment: 1, Lane: 1}, "trial"},
		{wire.TrialStarted{Trial: 1, Lane: 1}, "worker"},
		{wire.TrialEnded{Trial: 1, Outcome: "dead"}, "outcome"},
		{wire.ModelCall{}, "model"},
		{wire.Attempt{Attempt: 1, Trial: 1, Patch: "abc"}, "patch"},
		{wire.Attempt{Attempt: 1, Trial: 1, Tunables: map[string]string{"": "x"}}, "tunables' name"},
		{wire.Attempt{Attempt: 1, Trial: 1, Diff: strings.Repeat("x", wire.MaxDiffBytes+1)}, "diff"},
		{wire.Build{Step: wire.Step{Attempt: 1 << 60}}, "attempt"},
		{wire.Build{Step: wire.Step{Output: strings.Repeat("x", wire.MaxOutputBytes+1)}}, "output"},
		{wire.Check{Step: wire.Step{Cases: []wire.StepCase{{}, {CPUMS: nan}}}}, "cases[1]: cpu_ms"},
		{wire.Measure{Step: wire.Step{Effect: &wire.Effect{Least: nan}}}, "effect.least"},
		{wire.Check{Step: wire.Step{Attempt: 1, Values: map[string]float64{"sum": nan}}}, "values.sum"},
		{wire.Measure{Step: wire.Step{Attempt: 1, Values: map[string]float64{"": 1}}}, "values' name"},
		{wire.Verdict{Attempt: 1, Outcome: wire.VerdictPromoted}, "score"},
		{wire.Verdict{Attempt: 1, Outcome: "failed", Low: &nan}, "low"},
		{wire.Champion{Score: &nan}, "score"},
		{wire.Disqualified{}, "attempt"},
		{wire.Rejudged{}, "attempt"},
		{wire.SpaceRemoved{Command: "x"}, "command"},
		{wire.CommandTaken{ID: "x", Command: wire.CommandRunPause, Outcome: wire.CommandApplied}, "id"},
		{wire.CommandTaken{ID: strings.Repeat("a2", 13), Command: wire.CommandRunPause, Outcome: "done"}, "outcome"},
		{wire.CommandRejected{}, "why"},
		{wire.OwnerMessage{Trial: 1}, "text"},
		{wire.RunCreated{Campaign: "c", Kit: "k", Source: &wire.KitSource{}}, "kit: exactly one"},
		{wire.Advice{Text: "x"}, "title"},
		{wire.Source{Title: strings.Repeat("x", 1000)}, "title"},
		{wire.Document{}, "title"},
		{wire.RigCheck{Items: []wire.RigCheckItem{{OK: true}}}, "items.0.name"},
	} {
		if _, err := wire.EncodeBody(c.body); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %+v: the error is %v, want it to name %s", c.body.Kind(), c.body, err, c.want)
		}
	}
}

// Promise: a field that only a newer rig knows hides nothing from a view, and
// is refused where the harness reads its own ledger.
func TestBodiesOfANewerRig(t *testing.T) {
	e := wire.Event{ID: 9, Kind: wire.KindVerdict, Body: []byte(`{"attempt":7,"novelty":0.5,"outcome":"astonishing","why":"so"}`)}
	b, err := wire.ReadBody[wire.Verdict](e)
	if diff := cmp.Diff(wire.Verdict{Attempt: 7, Outcome: "astonishing", Why: "so"}, b); err != nil || diff != "" {
		t.Errorf("read loosely: %v\n%s", err, diff)
	}
	if _, err := wire.DecodeBody[wire.Verdict](e); err == nil || !strings.Contains(err.Error(), "event 9 (verdict)") || !strings.Contains(err.Error(), "novelty") {
		t.Errorf("read strictly: %v", err)
	}
	if _, err := wire.ReadBody[wire.Champion](e); err == nil {
		t.Error("a verdict was read as a champion")
	}
}

// FuzzBodies: what is read strictly is written again as the same JSON value,
// and no bytes make a reading do anything but give an error.
func FuzzBodies(f *testing.F) {
	f.Add(5, []byte(`{"attempt":7,"outcome":"promoted","score":2.5,"why":""}`))
	f.Add(6, []byte(`{"experiment":3,"op":"added","title":"x"}`))
	f.Add(21, []byte(`{"items":[{"name":"go","ok":true}],"ok":true}`))
	f.Fuzz(func(t *testing.T, n int, body []byte) {
		k := bodyKinds[uint(n)%uint(len(bodyKinds))]
		e := wire.Event{ID: 1, Kind: k.name(), Body: body}
		b, err := k.decode(e)
		if _, looseErr := k.loosen(e); err == nil && looseErr != nil {
			t.Fatalf("read strictly it is right, read loosely: %v", looseErr)
		}
		if err != nil {
			return
		}
		raw, err := wire.EncodeBody(b)
		if err != nil {
			t.Fatalf("%s was read and can't be written: %v", body, err)
		}
		e.Body = raw
		if _, err := k.decode(e); err != nil {
			t.Fatalf("%s was written as %s and can't be read: %v", body, raw, err)
		}
	})
}
