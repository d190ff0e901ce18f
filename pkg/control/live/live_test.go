package live_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/control/live"
	"thermite/pkg/wire"
)

// Promise: lines are shown once, in their order, in their run, their rig and
// among all; what came twice is passed over, and what did not come is counted.
func TestLinesAreShownOnceInOrder(t *testing.T) {
	w := newWorld(t)
	s := key(t, 1)
	w.put(s, batch("run-1", "trial:1", "a", 1, "one", "two"))
	w.put(s, batch("run-1", "trial:1", "a", 1, "one", "two", "three"))
	w.put(s, batch("run-1", "trial:1", "a", 2, "two"))
	w.put(s, batch("", "judge", "b", 1, "between"))
	w.put(s, batch("run-1", "trial:1", "a", 9, "nine"))
	w.put(nil, batch("run-1", "advisor:teacher-1", "c", 1, "advice"))
	w.until("all came", func() bool { return w.State().Messages == 6 })
	want := []string{"trial:1 one", "trial:1 two", "trial:1 three", "trial:1 nine", "advisor:teacher-1 advice"}
	if diff := cmp.Diff(want, w.texts(run1)); diff != "" {
		t.Error(diff)
	}
	all := slices.Insert(slices.Clone(want), 3, "judge between")
	for _, s := range []live.Scope{{}, {Rig: "alpha"}} {
		if diff := cmp.Diff(all, w.texts(s)); diff != "" {
			t.Errorf("%v: %s", s, diff)
		}
	}
	if s := w.State(); s.Lines != 6 || s.Again != 3 || s.Missed != 5 {
		t.Errorf("the state is %+v", s)
	}
	page, _ := w.Read(run1, live.Cursor{}, 1000, live.All)
	if page.Lines[3].Missed != 5 || page.Sources[1].Missed+page.Sources[0].Missed != 5 {
		t.Errorf("the line after the gap is %+v, the sources %+v", page.Lines[3], page.Sources)
	}
}

// Promise: a message that fails a check is refused with why, counted, and not
// shown later, also not once the check would pass and control starts again.
func TestBadMessagesAreRefused(t *testing.T) {
	w := newWorld(t)
	good, other := key(t, 1), key(t, 2)
	beta, old, nobody := batch("", "judge", "d", 1, "x"), batch("", "judge", "e", 1, "x"), batch("", "judge", "f", 1, "x")
	beta.Rig, old.Rig, nobody.Rig = "beta", "old", "nobody"
	encode := func(s *wire.Signer, b wire.LiveBatch) []byte {
		raw, err := wire.EncodeLiveBatch(s, b)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	b := batch("run-1", "judge", "a", 1, "bad")
	w.raw("thermite.run.run-1.live.judge", "alpha", []byte("{}"))
	w.raw("thermite.run.run-1.live.planner", "alpha", encode(good, b))
	w.raw("thermite.run.run-2.live.judge", "alpha", encode(good, b))
	w.raw("thermite.rig.beta.live.judge", "alpha", encode(good, b))
	w.raw("thermite.run.run-1.live.judge", "beta", encode(good, b))
	w.put(other, b)
	w.put(good, beta)
	w.put(good, old)
	w.put(good, nobody)
	w.put(nil, b)
	w.put(good, batch("run-1", "supervisor", "c", 1, "bad"))
	w.put(good, batch("run-2", "judge", "b", 1, "bad"))
	want := map[live.Why]uint64{live.WhyUnreadable: 1, live.WhySubject: 4, live.WhyKey: 2, live.WhyRig: 2, live.WhyUnsigned: 1, live.WhySource: 1, live.WhyRun: 1}
	w.until("all are refused", func() bool { return cmp.Equal(want, w.State().Refused) })
	w.put(good, batch("run-1", "judge", "b", 1, "good"))
	w.until("the good one came", func() bool { return w.State().Messages == 1 })
	w.stop()
	w.set(func() {
		k := w.keys["alpha"]
		k.Accepted = other.Public()
		w.keys["alpha"], w.runs["alpha/run-2"] = k, true
	})
	w.start()
	w.put(other, batch("run-1", "judge", "g", 1, "new"))
	w.until("the new control has what came", func() bool { return w.State().Messages == 1 })
	if diff := cmp.Diff([]string{"judge new"}, w.texts(live.Scope{})); diff != "" {
		t.Error(diff)
	}
}

// Promise: a control that starts again, or is cut off from the bus, shows what
// the bus kept meanwhile, each line once; and a reader goes on from where it
// was.
func TestTheViewIsBuiltAgain(t *testing.T) {
	w := newWorld(t)
	s := key(t, 1)
	w.put(s, batch("run-1", "trial:1", "a", 1, some(3)...))
	w.until("they came", func() bool { return w.State().Lines == 3 })
	page, _ := w.Read(run1, live.Cursor{}, 2, live.All)
	w.stop()
	w.put(s, batch("run-1", "trial:1", "a", 4, "four"))
	w.start()
	w.until("all are there again", func() bool { return w.State().Lines == 4 })
	after, err := live.ParseCursor(page.Next.String())
	if err != nil {
		t.Fatal(err)
	}
	next, _ := w.Read(run1, after, 500, live.All)
	if len(next.Lines) != 1 || next.Lines[0].Text != "four" || next.Missed != 0 {
		t.Errorf("the reader goes on with %+v", next)
	}
	w.bus.Stop()
	w.bus.Again()
	w.js = w.bus.JS()
	w.put(s, batch("run-1", "trial:1", "a", 5, "five"))
	w.until("the next one comes", func() bool { return len(w.texts(run1)) == 5 })
	if s := w.State(); s.Lines != 5 || s.Again != 0 {
		t.Errorf("the state is %+v", s)
	}
}

// Promise: a reader more than 500 lines behind gets the newest 500, and how
// many it missed, exactly: also of those that the view holds no more.
func TestAReaderThatFallsBehind(t *testing.T) {
	w := newWorld(t)
	s := key(t, 1)
	w.put(s, batch("run-1", "trial:1", "a", 1, "first"))
	w.until("it came", func() bool { return w.State().Lines == 1 })
	page, changed := w.Read(run1, live.Cursor{}, wire.MaxLiveWaiting, live.RawOnly)
	for i := range 50 {
		w.put(s, batch("run-1", "trial:1", "a", 2+i*100, some(100)...))
	}
	w.until("they came", func() bool { return w.State().Lines == 5001 })
	<-changed
	next, _ := w.Read(run1, page.Next, wire.MaxLiveWaiting, live.All)
	if len(next.Lines) != 500 || next.Missed != 4500 || next.Lines[499].Number != 5001 {
		t.Errorf("it gets %d lines to %d, and missed %d", len(next.Lines), next.Lines[len(next.Lines)-1].Number, next.Missed)
	}
	if first, _ := w.Read(run1, live.Cursor{}, 500, live.All); len(first.Lines) != 500 || first.Missed != 0 {
		t.Errorf("a new reader gets %d lines and missed %d", len(first.Lines), first.Missed)
	}
	if none, _ := w.Read(run1, next.Next, 500, live.All); len(none.Lines) != 0 || none.Missed != 0 || none.Next != next.Next {
		t.Errorf("then it gets %+v", none)
	}
	if nobody, _ := w.Read(live.Scope{Rig: "beta"}, live.Cursor{}, 500, live.All); len(nobody.Lines) != 0 || !nobody.Next.IsZero() {
		t.Errorf("of another rig it gets %+v", nobody)
	}
}

// Promise: a cursor comes back as it was written, and nothing else is one.
func TestCursors(t *testing.T) {
	for _, s := range []string{"", "1.0.1764590000000.77", "20311.4.5.6"} {
		if c, err := live.ParseCursor(s); err != nil || c.String() != s {
			t.Errorf("%q is %q, %v", s, c, err)
		}
	}
	for _, s := range []string{"x", "1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "-1.2.3.4", "1.2.3.99999999999999999999", "1.2. 3.4"} {
		if c, err := live.ParseCursor(s); err == nil {
			t.Errorf("%q is %v", s, fmt.Sprint(c))
		}
	}
}

func FuzzParseCursor(f *testing.F) {
	f.Add("20311.4.5.6")
	f.Fuzz(func(t *testing.T, s string) {
		if c, err := live.ParseCursor(s); err == nil && !c.IsZero() && c.String() != s {
			t.Fatalf("%q is %q", s, c)
		}
	})
}
