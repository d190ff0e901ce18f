package rigs_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/control/rigs"
	"thermite/pkg/wire"
)

func reportKey(b byte) wire.PublicKey {
	var seed [32]byte
	seed[0] = b
	s, err := wire.NewSigner(seed[:])
	if err != nil {
		panic(err) // the seed has its length
	}
	return s.Public()
}

// Promise: a rig's first report key is accepted; a later one waits for the
// owner, is said once, and counts when the owner names its fingerprint.
func TestALaterReportKeyWaitsForTheOwner(t *testing.T) {
	w := newWorld(t, taken)
	w.make("a")
	is := func(want rigs.KeyState) {
		t.Helper()
		got, err := w.ReportKeys(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	first, second, third := reportKey(1), reportKey(2), reportKey(3)
	is(rigs.KeyState{Known: true})
	for range 2 {
		if err := w.AcceptFirstKey(t.Context(), "a", first); err != nil {
			t.Fatal(err)
		}
	}
	is(rigs.KeyState{Known: true, Accepted: first})
	if err := w.AcceptFirstKey(t.Context(), "a", second); !errors.Is(err, rigs.ErrHasKey) {
		t.Errorf("a second first key: %v", err)
	}
	for _, key := range []wire.PublicKey{first, second, second, third, third} {
		if err := w.HoldKey(t.Context(), "a", key); err != nil {
			t.Fatal(err)
		}
	}
	is(rigs.KeyState{Known: true, Accepted: first, Waiting: third})
	if diff := cmp.Diff([]string{"made", "report_key_accepted", "report_key_waiting", "report_key_waiting"}, w.steps("a")); diff != "" {
		t.Error(diff)
	}
	want := map[string]any{"old": first.Fingerprint(), "new": third.Fingerprint()}
	if diff := cmp.Diff(want, w.audited("rig_report_key_waiting", "a").Detail); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"rig_report_key_waiting:a"}, w.needCodes()); diff != "" {
		t.Error(diff)
	}
	for _, wrong := range []string{"", second.Fingerprint(), first.Fingerprint()} {
		if err := w.AcceptWaitingKey(t.Context(), owner, "a", wrong); !errors.Is(err, rigs.ErrNotWaiting) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if err := w.AcceptWaitingKey(t.Context(), owner, "a", third.Fingerprint()); err != nil {
		t.Fatal(err)
	}
	is(rigs.KeyState{Known: true, Accepted: third})
	if entry := w.audited("rig_report_key_accepted", "a"); entry.Actor != "owner" || entry.Detail["old"] != first.Fingerprint() {
		t.Errorf("the audit log has %+v", entry)
	}
	if len(w.needCodes()) > 0 {
		t.Errorf("%v need the owner", w.needCodes())
	}
}

// Promise: a retired rig's key waits no more, and waits again when the rig is
// brought back; an unknown rig has no keys.
func TestReportKeysOfRetiredAndUnknownRigs(t *testing.T) {
	w := newWorld(t, taken)
	w.make("a")
	if err := errors.Join(w.AcceptFirstKey(t.Context(), "a", reportKey(1)), w.HoldKey(t.Context(), "a", reportKey(2)),
		w.Retire(t.Context(), owner, "a")); err != nil {
		t.Fatal(err)
	}
	if len(w.needCodes()) > 0 {
		t.Errorf("%v need the owner", w.needCodes())
	}
	for _, err := range []error{
		w.AcceptFirstKey(t.Context(), "a", reportKey(1)), w.HoldKey(t.Context(), "a", reportKey(3)),
		w.AcceptWaitingKey(t.Context(), owner, "a", reportKey(2).Fingerprint()),
	} {
		if !errors.Is(err, rigs.ErrRetired) {
			t.Errorf("of a retired rig: %v", err)
		}
	}
	if err := w.Restore(t.Context(), owner, "a"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"rig_report_key_waiting:a"}, w.needCodes()); diff != "" {
		t.Error(diff)
	}
	if got, err := w.ReportKeys(t.Context(), "nobody"); err != nil || got != (rigs.KeyState{}) {
		t.Errorf("an unknown rig: %+v, %v", got, err)
	}
	if err := w.AcceptFirstKey(t.Context(), "nobody", reportKey(1)); !errors.Is(err, rigs.ErrNoRig) {
		t.Error(err)
	}
}
