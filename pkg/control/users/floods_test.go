package users_test

import (
	"strings"
	"testing"
	"time"

	"thermite/pkg/bus"
	"thermite/pkg/control/store"
)

// Promise: a rig that sends without end on the bus loses its user for a while,
// and no other rig does; its history says so.
func TestAFloodTakesTheUserAwayForAWhile(t *testing.T) {
	w := newWorld(t)
	evil, good := w.rig("evil"), w.rig("good")
	sent := func(msgs, bytes int64) {
		w.server.connected(map[string]bus.RigConnection{"evil": {Msgs: msgs, Bytes: bytes}, "good": {Msgs: 1000, Bytes: 1 << 20}})
		w.clock.pass(5 * time.Second)
		w.look()
		w.look()
	}
	signsIn := func(key string) bool { return strings.Contains(w.file(), key) }
	sent(1_000_000, 5<<30) // before control started
	sent(5000, 1<<20)
	sent(10_000, 1<<20)
	if !signsIn(evil) || !signsIn(good) {
		t.Fatal("a rig that sends 1,000 messages a second lost its user")
	}
	sent(15_001, 1<<20)
	if signsIn(evil) || !signsIn(good) {
		t.Fatal("a rig that sends more has its user, or another lost it")
	}
	w.server.connected(map[string]bus.RigConnection{"good": {Msgs: 1000}})
	w.clock.pass(5*time.Minute - time.Second)
	if w.look(); signsIn(evil) {
		t.Fatal("it has its user again early")
	}
	w.clock.pass(time.Second)
	if w.look(); !signsIn(evil) {
		t.Fatal("it has not its user again")
	}
	sent(10, 5<<30)
	if signsIn(evil) {
		t.Fatal("a rig that sends more bytes has its user")
	}
	audit, err := w.store.AuditLog(t.Context(), store.AuditQuery{Action: "rig_bus_flood", Limit: 10})
	if err != nil || len(audit) != 2 || audit[0].Subject != "evil" {
		t.Errorf("the audit log has %+v, %v", audit, err)
	}
	if steps, err := w.store.History(t.Context(), "evil", 0, 10); err != nil || len(steps) != 2 {
		t.Errorf("the history is %+v, %v", steps, err)
	}
}

// Promise: a rig keeps its user when one of its connections ends, however much
// the others sent in their time.
func TestAConnectionThatEndsIsNoFlood(t *testing.T) {
	w := newWorld(t)
	key := w.rig("alpha")
	for _, msgs := range []int64{90_000, 90_010, 80_000, 80_010} {
		w.server.connected(map[string]bus.RigConnection{"alpha": {Msgs: msgs}})
		w.clock.pass(5 * time.Second)
		w.look()
		w.look()
	}
	if !strings.Contains(w.file(), key) {
		t.Error("the rig lost its user")
	}
}

// Promise: new runs have the server reload no more than a part of its time;
// a new rig waits for nothing.
func TestNewRunsDoNotKeepTheServerReloading(t *testing.T) {
	w := newWorld(t)
	w.rig("a")
	w.server.during = func() { w.clock.pass(time.Second) }
	w.look()
	for _, run := range []string{"r1", "r2", "r3"} {
		w.runs["a"] = append(w.runs["a"], run)
		w.clock.pass(5 * time.Second)
		w.look()
	}
	if n := w.server.count(); n != 1 {
		t.Errorf("%d reloads for 3 runs within 20 s of one that took 1 s", n)
	}
	w.clock.pass(5 * time.Second)
	if w.look(); w.server.count() != 2 || !strings.Contains(w.file(), "thermite.run.r3.live") {
		t.Errorf("after that there are %d reloads", w.server.count())
	}
	b := w.rig("b")
	if w.look(); w.server.count() != 3 || !strings.Contains(w.file(), b) {
		t.Errorf("with a new rig there are %d reloads", w.server.count())
	}
}
