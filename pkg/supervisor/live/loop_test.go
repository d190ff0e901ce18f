package live_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"thermite/pkg/supervisor/live"
	"thermite/pkg/wire"
)

// world is the loop between scripted lines and a scripted bus; pkg/control/live
// has the real bus, and tests/faults the whole.
type world struct {
	t    *testing.T
	loop *live.Loop
	stop func()

	mu sync.Mutex
	// lines are what the harness has, in its order, and asked the places it
	// was asked after.
	lines []jsontext.Value
	asked []uint64
	// answers say what the bus does with a subject; nil takes it.
	answers map[string]error
	// sent is each message that the bus was given, as subject and id, and took
	// those that it took.
	sent, took []string
	now        time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, answers: map[string]error{}, now: time.Unix(1e9, 0)}
	w.loop = live.New(live.Config{Rig: "alpha", Harness: w, Own: none{}, Bus: bus{w}, Now: w.clock, Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.loop.Run(ctx, time.Millisecond) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(w.stop)
	return w
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// Lines gives one batch at a time.
func (w *world) Lines(_ context.Context, _ string, after uint64) (wire.LiveLines, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, after)
	if after >= uint64(len(w.lines)) {
		return wire.LiveLines{Start: "s", Next: after}, nil
	}
	return wire.LiveLines{Start: "s", Next: after + 1, More: after+1 < uint64(len(w.lines)), Batches: w.lines[after : after+1]}, nil
}

// none has no lines.
type none struct{}

func (none) Lines(context.Context, string, uint64) (wire.LiveLines, error) {
	return wire.LiveLines{Start: "s"}, nil
}

type bus struct{ w *world }

func (b bus) Publish(_ context.Context, subject, id string, _ []byte) error {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.w.sent = append(b.w.sent, subject+" "+id)
	if err := b.w.answers[subject]; err != nil {
		return err
	}
	b.w.took = append(b.w.took, subject+" "+id)
	return nil
}

// says has the harness say a line of a source of a run.
func (w *world) says(run, source string, number uint64) string {
	w.t.Helper()
	signer, err := wire.NewSigner(bytes.Repeat([]byte{3}, 32))
	if err != nil {
		w.t.Fatal(err)
	}
	b := wire.LiveBatch{Rig: "alpha", Run: run, Source: source, Log: strings.Repeat("a", 26), First: number, Last: number,
		Lines: []wire.LiveLine{{Number: number, At: wire.At(time.Unix(1e9, 0)), Text: "at work"}}}
	raw, err := wire.EncodeLiveBatch(signer, b)
	if err != nil {
		w.t.Fatal(err)
	}
	w.set(func() { w.lines = append(w.lines, raw) })
	return b.ID()
}

func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (w *world) held() { w.loop.Held(wire.Place{Ledger: strings.Repeat("b", 26), Cursor: 1}) }

func (w *world) until(what string, so func() bool) {
	w.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.After(time.Minute); ; {
		w.mu.Lock()
		is := so()
		w.mu.Unlock()
		if is {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			w.t.Fatalf("it is not so: %s; sent %q", what, w.sent)
		}
	}
}

const (
	runs = "thermite.run.p.live.judge"
	rigs = "thermite.rig.alpha.live.judge"
)

// Promise: before control holds the rig's first report nothing is read or
// published; then everything that the harness has is, once and in order.
func TestNothingBeforeTheFirstReport(t *testing.T) {
	w := newWorld(t)
	first, second := w.says("p", "judge", 1), w.says("", "judge", 2)
	w.loop.Held(wire.Place{}) // control holds nothing
	w.until("it waits, and says so", func() bool { return strings.Contains(w.loop.State().Detail, "first report") })
	w.set(func() {
		if len(w.asked) > 0 || len(w.sent) > 0 {
			t.Errorf("it asked after %v and sent %q", w.asked, w.sent)
		}
	})
	w.held()
	w.until("both are on the bus", func() bool { return len(w.took) == 2 })
	if diff := cmp.Diff([]string{runs + " " + first, rigs + " " + second}, w.took); diff != "" {
		t.Error(diff)
	}
}

// Promise: lines of a run that the bus does not open to the rig yet go on the
// rig's own subject, and its own is tried again later.
func TestARunNotOpenYet(t *testing.T) {
	w := newWorld(t)
	w.set(func() { w.answers[runs] = fmt.Errorf("denied: %w", live.ErrNotOpen) })
	first := w.says("p", "judge", 1)
	w.held()
	w.until("it is on the rig's subject", func() bool { return slices.Equal(w.took, []string{rigs + " " + first}) })
	w.set(func() { delete(w.answers, runs) })
	second := w.says("p", "judge", 2)
	w.until("the next one is there too", func() bool { return slices.Contains(w.took, rigs+" "+second) })
	w.set(func() { w.now = w.now.Add(wire.UsersLook + time.Second) })
	third := w.says("p", "judge", 3)
	w.until("a later one is on the run's", func() bool { return slices.Contains(w.took, runs+" "+third) })
	if f := w.loop.Figures(); f.Published != 3 || f.Dropped != 0 || f.Subjects[rigs].Published != 2 || f.Subjects[runs].Published != 1 {
		t.Errorf("the figures are %+v", f)
	}
}

// Promise: while the bus gives no answer the loop keeps its place and sends the
// same message again, and nothing after it, until it is taken.
func TestABusThatGivesNoAnswer(t *testing.T) {
	w := newWorld(t)
	w.set(func() { w.answers[runs] = errors.New("it gave no answer in 20s") })
	first, second := w.says("p", "judge", 1), w.says("p", "judge", 2)
	w.held()
	w.until("it was sent thrice", func() bool { return len(w.sent) >= 3 })
	w.until("it says so", func() bool { return w.loop.State().State == "failing" })
	w.set(func() {
		for _, sent := range w.sent {
			if sent != runs+" "+first {
				t.Errorf("it sent %s", sent)
			}
		}
		delete(w.answers, runs)
	})
	w.until("both are on the bus", func() bool { return len(w.took) == 2 })
	if diff := cmp.Diff([]string{runs + " " + first, runs + " " + second}, w.took); diff != "" {
		t.Error(diff)
	}
	if f := w.loop.Figures(); f.Published != 2 || f.Dropped != 0 {
		t.Errorf("the figures are %+v", f)
	}
}

// Promise: a message is dropped, and counted, only when the bus refuses it on
// the rig's own subject too, or when it is too large; those after it go on.
func TestWhatIsDropped(t *testing.T) {
	refused := &live.RefusedError{Words: "insufficient storage (10047)"}
	for name, c := range map[string]struct {
		answers map[string]error
		want    string
		dropped string
	}{
		"refused on the run's alone": {map[string]error{runs: refused}, rigs, ""},
		"refused on both":            {map[string]error{runs: refused, rigs: refused}, "", rigs},
		"denied on both":             {map[string]error{runs: live.ErrNotOpen, rigs: live.ErrNotOpen}, "", rigs},
		"too large":                  {map[string]error{runs: fmt.Errorf("x: %w", live.ErrTooLarge)}, "", runs},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.set(func() { w.answers = c.answers })
			first := w.says("p", "judge", 1)
			after := w.says("p", "controller", 2)
			w.set(func() { w.lines = append(w.lines, jsontext.Value(`{"batch":{},"more":1}`)) })
			last := w.says("", "planner", 3)
			w.held()
			w.until("the one after it is on the bus", func() bool {
				return slices.ContainsFunc(w.took, func(s string) bool { return strings.HasSuffix(s, after) }) &&
					slices.ContainsFunc(w.took, func(s string) bool { return strings.HasSuffix(s, last) })
			})
			w.set(func() {
				has := slices.ContainsFunc(w.took, func(s string) bool { return strings.HasSuffix(s, first) })
				if has != (c.want != "") || c.want != "" && !slices.Contains(w.took, c.want+" "+first) {
					t.Errorf("the bus took %q", w.took)
				}
			})
			f := w.loop.Figures()
			if c.dropped == "" && f.Dropped != 0 || c.dropped != "" && (f.Dropped != 1 || f.Subjects[c.dropped].Dropped != 1) {
				t.Errorf("the figures are %+v", f)
			}
		})
	}
}
