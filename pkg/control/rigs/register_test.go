package rigs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/control/needs"
	"thermite/pkg/control/rigs"
	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// Promise: a registration is a step in the rig's history, in the seed's
// words, and its answer has control's key and place.
func TestARegistrationIsAStepInTheHistory(t *testing.T) {
	w := newWorld(t, taken)
	w.make("a")
	w.place = wire.Place{Ledger: "aaaaaaaaaaaaaaaaaaaaaaaaaa", Cursor: 12}
	reg := registration(t)
	got := w.register("a", reg)
	if diff := cmp.Diff(wire.Registered{Rig: "a", ControlKey: w.ControlKey, Place: w.place}, got); diff != "" {
		t.Error(diff)
	}
	w.register("a", reg)
	if diff := cmp.Diff([]string{"made", "registered", "registered"}, w.steps("a")); diff != "" {
		t.Error(diff)
	}
	step := w.lastStep("a", "registered")
	if step.Text != "It registered its keys on the message bus with control" {
		t.Errorf("the step says %q", step.Text)
	}
	rig, err := w.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(reg.Figures, rig.Figures, cmp.Comparer(func(a, b wire.Time) bool { return a.String() == b.String() })); diff != "" {
		t.Errorf("its figures: %s", diff)
	}
	if len(w.needCodes()) > 0 {
		t.Errorf("%v need the owner", w.needCodes())
	}
}

// Promise: a new key replaces the old one at once; the change is in the rig's
// history and in the audit log with both fingerprints, and needs the owner
// until Seen.
func TestANewKeyReplacesTheOldOne(t *testing.T) {
	w := newWorld(t, taken)
	w.make("a")
	first, second := registration(t), registration(t)
	w.register("a", first)
	w.register("a", second)
	busPrint := func(r wire.Registration) string { return wire.Fingerprint([]byte(r.BusKey)) }
	for _, c := range []struct{ step, action, old, new string }{
		{"bus_key_changed", "rig_bus_key_changed", busPrint(first), busPrint(second)},
		{"seal_key_changed", "rig_seal_key_changed", first.SealKey.Fingerprint(), second.SealKey.Fingerprint()},
	} {
		want := map[string]any{"old": c.old, "new": c.new}
		if diff := cmp.Diff(want, w.lastStep("a", c.step).Detail); diff != "" {
			t.Errorf("%s: %s", c.step, diff)
		}
		entry := w.audited(c.action, "a")
		if diff := cmp.Diff(want, entry.Detail); diff != "" || entry.Actor != "rig:a" || entry.Source != "10.0.0.7" {
			t.Errorf("%s by %s from %s: %s", c.action, entry.Actor, entry.Source, diff)
		}
	}
	if diff := cmp.Diff([]string{"rig_bus_key_changed:a", "rig_seal_key_changed:a"}, w.needCodes()); diff != "" {
		t.Fatal(diff)
	}
	all, err := w.needs.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range all {
		if !n.CanBeSeen || n.Title == "" || n.Do == "" {
			t.Errorf("%+v lacks words, or can't be seen", n)
		}
		if err := w.needs.Seen(t.Context(), n.ID, "owner", "test"); err != nil {
			t.Error(err)
		}
		if err := w.needs.Seen(t.Context(), n.ID, "owner", "test"); !errors.Is(err, needs.ErrNoNeed) {
			t.Errorf("seen again: %v", err)
		}
	}
	if len(w.needCodes()) > 0 {
		t.Errorf("%v still need the owner", w.needCodes())
	}
	// The rig may go back to the key it had: a pod's comes back from a snapshot.
	w.register("a", first)
	if diff := cmp.Diff(second.SealKey.Fingerprint(), w.lastStep("a", "seal_key_changed").Detail["old"]); diff != "" {
		t.Error(diff)
	}
}

// Promise: a key that another rig (a retired one too) or control holds, or
// held, is refused whole: nothing changes but the rig's history, once while
// the same key comes again, and the words name no other rig.
func TestAKeyOfAnotherIsRefusedWhole(t *testing.T) {
	w := newWorld(t, taken)
	for _, rig := range []string{"holder", "gone", "changed", "asker"} {
		w.make(rig)
	}
	held, old, now := registration(t), registration(t), registration(t)
	w.register("holder", held)
	gone := registration(t)
	w.register("gone", gone)
	if err := w.Retire(t.Context(), owner, "gone"); err != nil {
		t.Fatal(err)
	}
	w.register("changed", old)
	w.register("changed", now)
	own := newBusKey(t).Public()
	if err := w.HoldOwnKeys(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	mine := registration(t)
	w.register("asker", mine)

	with := func(busKey string, sealKey wire.SealKey) wire.Registration {
		return wire.Registration{BusKey: busKey, SealKey: sealKey, Figures: figures()}
	}
	for name, c := range map[string]struct {
		reg    wire.Registration
		code   string
		holder string
	}{
		"another rig's key":       {with(held.BusKey, mine.SealKey), "bus_key_refused", "rig holder"},
		"another rig's seal key":  {with(mine.BusKey, held.SealKey), "seal_key_refused", "rig holder"},
		"a new one beside it":     {with(newBusKey(t).Public(), held.SealKey), "seal_key_refused", "rig holder"},
		"a retired rig's key":     {with(gone.BusKey, mine.SealKey), "bus_key_refused", "rig gone"},
		"a retired rig's seal":    {with(mine.BusKey, gone.SealKey), "seal_key_refused", "rig gone"},
		"one that a rig held":     {with(old.BusKey, mine.SealKey), "bus_key_refused", "rig changed"},
		"control's":               {with(own, mine.SealKey), "bus_key_refused", "control"},
		"both of a copied folder": {held, "bus_key_refused", "rig holder"},
	} {
		t.Run(name, func(t *testing.T) {
			w.register("asker", mine) // the next refusal is a new one
			before, steps := w.dump("rig_history"), len(w.steps("asker"))
			want := 1
			if c.reg.BusKey == held.BusKey && c.reg.SealKey == held.SealKey {
				want = 2 // a step for each key
			}
			for range 3 {
				_, err := w.Register(t.Context(), "asker", c.reg, "10.0.0.7")
				var refused *rigs.RefusedError
				if !errors.As(err, &refused) || refused.Code != c.code {
					t.Fatalf("refused with %v", err)
				}
				for _, other := range []string{"holder", "gone", "changed", "control"} {
					if strings.Contains(refused.Words, other) {
						t.Errorf("the words name %s: %s", other, refused.Words)
					}
				}
			}
			if diff := cmp.Diff(before, w.dump("rig_history")); diff != "" {
				t.Errorf("the refusal changed the store:\n%s", diff)
			}
			if got := len(w.steps("asker")) - steps; got != want {
				t.Errorf("three refusals made %d steps, want %d", got, want)
			}
			if step := w.lastStep("asker", c.code); step.Detail["holder"] != c.holder || !strings.Contains(step.Text, c.holder) {
				t.Errorf("the history has %+v", step)
			}
		})
	}
}

// Promise: another key refused in between is a step of its own.
func TestRefusalsOfTwoKeysInTurnAreSteps(t *testing.T) {
	w := newWorld(t, taken)
	w.make("a")
	w.make("b")
	one, two := registration(t), registration(t)
	w.register("a", one)
	w.register("a", two)
	for _, reg := range []wire.Registration{one, one, two, two, one} {
		if _, err := w.Register(t.Context(), "b", reg, ""); err == nil {
			t.Fatal("a key of another was taken")
		}
	}
	want := []string{"made"}
	for range 3 {
		want = append(want, "bus_key_refused", "seal_key_refused")
	}
	if diff := cmp.Diff(want, w.steps("b")); diff != "" {
		t.Error(diff)
	}
}

// Promise: a call with no keys is refused, and the rig shows broken until it
// registers keys.
func TestACallWithNoKeysIsRefusedAndShows(t *testing.T) {
	w := newWorld(t, taken)
	w.make("a")
	for range 2 {
		_, err := w.Register(t.Context(), "a", wire.Registration{Figures: figures()}, "10.0.0.7")
		var refused *rigs.RefusedError
		if !errors.As(err, &refused) || refused.Code != "keys_missing" {
			t.Fatalf("refused with %v", err)
		}
	}
	if diff := cmp.Diff([]string{"made", "keys_missing"}, w.steps("a")); diff != "" {
		t.Error(diff)
	}
	state := func() rigs.Connection {
		t.Helper()
		rig, err := w.Get(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		return rig.Connection
	}
	if c := state(); c.State != rigs.StateBroken || c.Why == "" || !c.Since.Equal(w.clock.now()) {
		t.Errorf("it shows %+v", c)
	}
	w.register("a", registration(t))
	if c := state(); c.State != rigs.StateConnected {
		t.Errorf("after it registered, it shows %+v", c)
	}
}

// Promise: a key or figures that are no good are refused by the field's name,
// and change nothing.
func TestABadRegistrationChangesNothing(t *testing.T) {
	w := newWorld(t, taken)
	w.make("a")
	good := registration(t)
	w.register("a", good)
	before := w.dump()
	lowOrder := wire.SealKey{0: 1}
	for name, c := range map[string]struct {
		bad  func(*wire.Registration)
		want error
		says string
	}{
		"no user key":       {func(r *wire.Registration) { r.BusKey = "UAAA" }, rigs.ErrBadKey, "bus_key"},
		"an account's key":  {func(r *wire.Registration) { r.BusKey = "A" + r.BusKey[1:] }, rigs.ErrBadKey, "bus_key"},
		"a changed letter":  {func(r *wire.Registration) { r.BusKey = r.BusKey[:30] + flip(r.BusKey[30:31]) + r.BusKey[31:] }, rigs.ErrBadKey, "bus_key"},
		"no bus key":        {func(r *wire.Registration) { r.BusKey = "" }, rigs.ErrBadKey, "bus_key"},
		"no seal key":       {func(r *wire.Registration) { r.SealKey = wire.SealKey{} }, rigs.ErrBadKey, "seal_key"},
		"a key for no seal": {func(r *wire.Registration) { r.SealKey = lowOrder }, rigs.ErrBadKey, "seal_key"},
		"no build":          {func(r *wire.Registration) { r.Figures.Build = "" }, rigs.ErrBadFigures, "figures.build"},
	} {
		reg := registration(t)
		c.bad(&reg)
		_, err := w.Register(t.Context(), "a", reg, "")
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := w.Register(t.Context(), "nobody", registration(t), ""); !errors.Is(err, rigs.ErrNoRig) {
		t.Errorf("a rig nobody made: %v", err)
	}
	if diff := cmp.Diff(before, w.dump()); diff != "" {
		t.Errorf("the store changed:\n%s", diff)
	}
}

func flip(letter string) string {
	if letter == "A" {
		return "B"
	}
	return "A"
}

// Promise: of rigs that register one key at once, exactly one gets it.
func TestOneKeyRegisteredByTwoRigsAtOnceIsOneRigs(t *testing.T) {
	w := newWorld(t, taken)
	const racers = 4
	for i := range racers {
		w.make(fmt.Sprint("rig-", i))
	}
	for range 20 {
		reg := registration(t)
		results := make([]error, racers)
		var all sync.WaitGroup
		for i := range racers {
			all.Go(func() {
				mine := reg
				mine.SealKey = newSealKey(t)
				_, results[i] = w.Register(context.Background(), fmt.Sprint("rig-", i), mine, "")
			})
		}
		all.Wait()
		won := 0
		for _, err := range results {
			var refused *rigs.RefusedError
			switch {
			case err == nil:
				won++
			case !errors.As(err, &refused):
				t.Fatal(err)
			}
		}
		if won != 1 {
			t.Fatalf("%d rigs got the key", won)
		}
		users, err := w.store.BusUsers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]string{}
		for _, u := range users {
			if other, ok := seen[u.Key]; ok {
				t.Fatalf("%s and %s have one key", other, u.Rig)
			}
			seen[u.Key] = u.Rig
		}
	}
}

// Promise: a registration cut short at any step may be made again, and then
// stands as if it had been made once.
func TestARegistrationCutShortIsMadeAgain(t *testing.T) {
	stop := errors.New("the bus is away")
	cut := func(context.Context) error { return stop }
	w := newWorld(t, cut)
	w.make("a")
	reg := registration(t)
	for range 2 {
		_, err := w.Register(t.Context(), "a", reg, "")
		if !errors.Is(err, rigs.ErrBusAway) || !errors.Is(err, stop) {
			t.Fatalf("with the bus away: %v", err)
		}
	}
	if diff := cmp.Diff([]store.BusUser{{Rig: "a", Key: reg.BusKey}}, busUsers(t, w)); diff != "" {
		t.Errorf("the next look has other users: %s", diff)
	}
	if diff := cmp.Diff([]string{"made"}, w.steps("a")); diff != "" {
		t.Errorf("a registration that was not answered: %s", diff)
	}
	w.Rigs = w.again(taken) // control started again
	w.register("a", reg)
	if diff := cmp.Diff([]string{"made", "registered"}, w.steps("a")); diff != "" {
		t.Error(diff)
	}
	if len(w.needCodes()) > 0 {
		t.Errorf("%v need the owner", w.needCodes())
	}

	// A change of keys is told once, too.
	w.Rigs = w.again(cut)
	other := registration(t)
	for range 2 {
		if _, err := w.Register(t.Context(), "a", other, ""); !errors.Is(err, rigs.ErrBusAway) {
			t.Fatal(err)
		}
	}
	w.Rigs = w.again(taken)
	w.register("a", other)
	if diff := cmp.Diff([]string{"made", "registered", "bus_key_changed", "seal_key_changed", "registered"}, w.steps("a")); diff != "" {
		t.Error(diff)
	}
}

func busUsers(t *testing.T, w *world) []store.BusUser {
	t.Helper()
	users, err := w.store.BusUsers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return users
}

// Promise: a registration does not say that the bus knows its keys when
// another registration, or the rig's retirement, came in between.
func TestARegistrationThatWasOvertakenSaysSo(t *testing.T) {
	w := newWorld(t, taken)
	w.make("a")
	between := map[string]func(){
		"another registration": func() { w.register("a", registration(t)) },
		"its retirement": func() {
			if err := w.Retire(t.Context(), owner, "a"); err != nil {
				t.Error(err)
			}
		},
	}
	for _, name := range []string{"another registration", "its retirement"} {
		w.Users = usersFunc(func(context.Context) error {
			w.Users = usersFunc(taken)
			between[name]()
			return nil
		})
		if _, err := w.Register(t.Context(), "a", registration(t), ""); !errors.Is(err, rigs.ErrOvertaken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Promise: a store that fails at any step of a registration leaves nothing of
// that step, and the registration made again stands as if made once.
func TestAStoreThatFailsLeavesNothingHalfWritten(t *testing.T) {
	for _, step := range []string{"UPDATE ON rigs", "INSERT ON keys", "INSERT ON rig_history", "INSERT ON audit", "INSERT ON needs"} {
		t.Run(step, func(t *testing.T) {
			w := newWorld(t, taken)
			w.make("a")
			w.register("a", registration(t))
			next := registration(t) // it changes both keys, so it writes to every table
			before := w.dump()
			w.exec("CREATE TRIGGER breaks BEFORE " + step + " BEGIN SELECT RAISE(ABORT, 'the disk is full'); END")
			if _, err := w.Register(t.Context(), "a", next, ""); err == nil || !strings.Contains(err.Error(), "the disk is full") {
				t.Fatalf("it was answered with %v", err)
			}
			if diff := cmp.Diff(before, w.dump()); diff != "" {
				t.Errorf("something was written:\n%s", diff)
			}
			w.exec("DROP TRIGGER breaks")
			w.register("a", next)
			if diff := cmp.Diff([]string{"made", "registered", "bus_key_changed", "seal_key_changed", "registered"}, w.steps("a")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Promise: a stop after the bus took the keys and before the answer leaves a
// registration that is made again; the rig's keys changed once.
func TestAStopBeforeTheAnswerIsMadeAgain(t *testing.T) {
	w := newWorld(t, taken)
	w.make("a")
	w.register("a", registration(t))
	next := registration(t)
	w.Users = usersFunc(func(context.Context) error {
		w.exec("CREATE TRIGGER breaks BEFORE INSERT ON rig_history BEGIN SELECT RAISE(ABORT, 'killed'); END")
		return nil
	})
	if _, err := w.Register(t.Context(), "a", next, ""); err == nil {
		t.Fatal("it was answered")
	}
	w.exec("DROP TRIGGER breaks")
	w.Rigs = w.again(taken)
	w.register("a", next)
	if diff := cmp.Diff([]string{"made", "registered", "bus_key_changed", "seal_key_changed", "registered"}, w.steps("a")); diff != "" {
		t.Error(diff)
	}
}
