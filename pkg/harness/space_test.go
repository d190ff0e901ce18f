package harness_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"thermite/pkg/wire"
)

// ask gets something of the harness's API.
func (w *world) ask(path string) []byte {
	w.t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", w.cfg.Socket)
	}}}
	answer, err := c.Get("http://harness" + path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// space asks the harness what it keeps.
func (w *world) space() wire.SpaceReport {
	w.t.Helper()
	b := w.ask(wire.HarnessSpacePath)
	r, err := wire.DecodeSpaceReport(b)
	if err != nil {
		w.t.Fatalf("%s: %v", b, err)
	}
	return r
}

// screen asks for the screen of a trial of the run numbers.
func (w *world) screen(trial string) wire.Screen {
	w.t.Helper()
	b := w.ask(wire.HarnessScreenPath + "?run=numbers&trial=" + trial)
	s, err := wire.DecodeScreen(b)
	if err != nil {
		w.t.Fatalf("%s: %v", b, err)
	}
	return s
}

// kept gives the items of a kind, and how many of them may go.
func kept(r wire.SpaceReport, kind string) (items []wire.SpaceItem, removable int) {
	for _, i := range r.Items {
		if i.Kind == kind {
			items = append(items, i)
			if i.Removable() {
				removable++
			}
		}
	}
	return items, removable
}

// Promise: a space.remove takes nothing of a run that is open, and of one that
// has ended all but what its champions need; what is gone is an event, and a
// command that comes again changes nothing.
func TestSpaceIsFreed(t *testing.T) {
	w := newWorld(t, nil)
	w.start()
	w.assign(numbers(), nil)
	w.until("an attempt's verdict", kind(wire.KindVerdict))
	all := wire.SpaceRemove{Kinds: wire.SpaceKinds, Why: "the disk is full"}
	if a := w.command(all); a.State != wire.CommandApplied || !strings.Contains(a.Why, "nothing to remove") {
		t.Errorf("with the run open: %+v", a)
	}
	w.until("the run's end", kind(wire.KindRunEnded))
	before := w.space()
	for _, k := range wire.SpaceKinds {
		items, _ := kept(before, k)
		if len(items) == 0 {
			t.Fatalf("it keeps no %s: %+v", k, before.Items)
		}
		for _, i := range items {
			if i.Run != "numbers" || i.Open || i.Files == 0 || i.Bytes == 0 {
				t.Errorf("it keeps %+v", i)
			}
		}
	}
	if before.DiskBytes == 0 || before.DiskFree == 0 {
		t.Errorf("the disk has %d, %d free", before.DiskBytes, before.DiskFree)
	}
	if _, n := kept(before, wire.SpaceKit); n != 0 {
		t.Error("a kit of a repository may go, which its champions need")
	}
	if a := w.command(wire.SpaceRemove{Kinds: wire.SpaceKinds, Run: "another"}); !strings.Contains(a.Why, "nothing to remove") {
		t.Errorf("of another run: %+v", a)
	}
	signed := w.sign(all, nil)
	for range 2 {
		a, err := w.deliver(wire.CommandDelivery{Command: signed})
		if err != nil || a.State != wire.CommandApplied || !strings.Contains(a.Why, "removed") {
			t.Fatalf("%+v: %v", a, err)
		}
	}
	after := w.space()
	for _, i := range after.Items {
		if i.Removable() {
			t.Errorf("it still keeps %+v", i)
		}
	}
	if items, _ := kept(after, wire.SpaceBuild); len(items) != 1 || !items[0].Champion {
		t.Errorf("of the builds stay %+v", items)
	}
	if items, _ := kept(after, wire.SpacePatches); len(items) != 1 || !items[0].Champion {
		t.Errorf("of the patches stay %+v", items)
	}
	if n := w.ofKind(wire.KindSpaceRemoved); n != 1 {
		t.Fatalf("there are %d events", n)
	}
	e := w.until("what was removed", kind(wire.KindSpaceRemoved))
	b, err := wire.DecodeBody[wire.SpaceRemoved](e)
	if err != nil || b.Why != all.Why || b.Bytes == 0 || len(b.Items) != len(before.Items)-len(after.Items) {
		t.Errorf("the event is %+v: %v", b, err)
	}
	// What was removed is made again: the champion is judged once more.
	attempt := championOf(w)
	if a := w.command(wire.AttemptRejudge{Run: "numbers", Attempt: attempt, Why: "once more"}); a.State != wire.CommandApplied {
		t.Fatalf("judging the champion again: %+v", a)
	}
	events := len(w.events())
	verdict := w.until("its verdict", func(e wire.Event) bool { return int(e.ID) > events-1 && e.Kind == wire.KindVerdict })
	if v, err := wire.DecodeBody[wire.Verdict](verdict); err != nil || v.Attempt != attempt || v.Outcome == "failed" {
		t.Errorf("the verdict is %+v: %v", v, err)
	}
}

// championOf gives the run's champion's attempt.
func championOf(w *world) (attempt uint64) {
	for _, e := range w.events() {
		if e.Kind == wire.KindChampion {
			if b, err := wire.DecodeBody[wire.Champion](e); err == nil {
				attempt = b.Attempt
			}
		}
	}
	return attempt
}

// Promise: a harness that ends after it removed something, and before it said
// so, says so as it starts again, once.
func TestARemovalThatWasCutOff(t *testing.T) {
	w := newWorld(t, nil)
	w.start()
	w.assign(numbers(), nil)
	w.until("the run's end", kind(wire.KindRunEnded))
	items, _ := kept(w.space(), wire.SpaceRepository)
	w.stop()
	gone := wire.NewSpaceRemoved(strings.Repeat("a", 26), "room", append(slices.Clone(items), wire.SpaceItem{Kind: wire.SpaceSetup, Name: "kit-gone", At: items[0].At, Bytes: 5}))
	b, err := wire.Canonical(map[string]any{"removed": gone})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.cfg.StateDir, "removing.json"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	w.start()
	e := w.until("what was removed", kind(wire.KindSpaceRemoved))
	body, err := wire.DecodeBody[wire.SpaceRemoved](e)
	if err != nil || body.Bytes != 5 || len(body.Items) != 1 {
		t.Errorf("the event is %+v: %v", body, err)
	}
	w.stop()
	w.start()
	w.space()
	if n := w.ofKind(wire.KindSpaceRemoved); n != 1 {
		t.Errorf("it is recorded %d times", n)
	}
}

// Promise: a trial at work has a screen, what its worker printed last as plain
// text; one that is over says so.
func TestScreenOfATrial(t *testing.T) {
	w := newWorld(t, nil)
	w.start()
	w.assign(numbers(), script(`printf 'one\n\033[31mtwo\033[0m\n'; echo oops >&2; `+waits))
	w.working("trial-numbers-1")
	var s wire.Screen
	for deadline := time.Now().Add(time.Minute); !strings.Contains(s.Text, "oops"); {
		if time.Now().After(deadline) {
			t.Fatalf("the screen is %+v", s)
		}
		s = w.screen("1")
	}
	if s.Text != "one\ntwo\noops\n" || s.Printed != uint64(len("one\n\x1b[31mtwo\x1b[0m\noops\n")) || s.Gone != "" {
		t.Errorf("the screen is %+v", s)
	}
	if s := w.screen("77"); !strings.Contains(s.Gone, "not at work") {
		t.Errorf("a trial that never was: %+v", s)
	}
}
