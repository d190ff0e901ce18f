package supervisor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"thermite/pkg/bus"
	"thermite/pkg/supervisor"
	"thermite/pkg/wire"
)

// Promise: once the rig's keys are registered, every event of the ledger is
// with control, once and in order, and control has the supervisor's figures.
func TestEventsReachControl(t *testing.T) {
	w := startWorld(t)
	w.write(2500)
	w.start()
	w.awaitAll()
	w.write(3)
	w.awaitAll()
	at := w.place()
	w.await("the figures say so", func() bool {
		f := read(w.control, func(s *script) wire.Figures {
			if len(s.figures) == 0 {
				return wire.Figures{}
			}
			return s.figures[len(s.figures)-1]
		})
		return f.Relay == wire.RelayFigures{Ledger: at.Ledger, Cursor: at.Cursor, LedgerLast: at.Cursor, Pages: f.Relay.Pages} &&
			f.Build == "v1" && !f.StartedAt.IsZero() && f.Loops["bus"].State == "working" && f.Loops["registration"].State == "waiting" &&
			f.Loops["figures"].State == "waiting" && f.Loops["reports"].State == "working"
	})
	if gaps := read(w.control, func(s *script) int { return s.gaps }); gaps != 0 {
		t.Errorf("control met %d gaps", gaps)
	}
	if err := w.now.Alive(t.Context()); err != nil {
		t.Error(err)
	}
}

// Promise: an empty page goes every round, so the figures' pages grow on
// their own.
func TestPageEveryRound(t *testing.T) {
	w := startWorld(t)
	w.start()
	w.awaitAll()
	before := w.now.Figures().Relay.Pages
	w.await("three more pages", func() bool { return w.now.Figures().Relay.Pages >= before+3 })
}

// Promise: pages that control refused, as while a key waits for the owner,
// are sent again from control's place once it takes them.
func TestRefusedPagesGoAgain(t *testing.T) {
	w := startWorld(t)
	w.control.set(func(s *script) { s.refuses = true })
	w.write(10)
	w.start()
	const behind = "control is behind this rig's reports on the bus; sending again from its cursor"
	w.await("the log says that control is behind", func() bool { return w.log.has(behind) })
	w.control.set(func(s *script) { s.refuses = false })
	// Another page than the refused one: that one the bus knows for two
	// minutes.
	w.write(1)
	w.awaitAll()
	w.write(1500)
	w.awaitAll()
}

// Promise: a full reset's ledger reaches control from its start.
func TestResetLedgerReachesControl(t *testing.T) {
	w := startWorld(t)
	w.write(20)
	w.start()
	w.awaitAll()
	if _, err := w.harness.Ledger().Reset(t.Context(), w.place().Ledger, "test"); err != nil {
		t.Fatal(err)
	}
	w.write(5)
	w.awaitAll()
}

// Promise: the bus away holds nothing up but the pages, and they go once it
// is back.
func TestBusComesBack(t *testing.T) {
	w := startWorld(t)
	w.start()
	w.awaitAll()
	// A page whose ack is lost is handed again only after a minute.
	w.await("no page waits", func() bool {
		s, err := w.bus.JS().Stream(t.Context(), wire.StreamReports)
		return err == nil && s.CachedInfo().State.Msgs == 0
	})
	w.bus.Stop()
	w.write(1200)
	w.await("the bus is away", func() bool { return w.now.Figures().Loops["bus"].State == "failing" })
	w.await("the relay says so", func() bool { return w.now.Figures().Loops["reports"].State == "failing" })
	w.bus.Again()
	w.awaitAll()
	w.await("the relay is well", func() bool { return w.now.Figures().Relay.LastError == "" })
	if n := read(w.control, func(s *script) int { return len(s.registrations) }); n != 1 {
		t.Errorf("it registered %d times", n)
	}
}

// Promise: a bus that is away as the supervisor starts costs no pause between
// rounds: the first round waits for it.
func TestFirstRoundWaitsForTheBus(t *testing.T) {
	w := startWorld(t)
	way := w.bus.Proxy()
	way.Down()
	w.config.BusURL, w.config.Poll = way.URL(), supervisor.Seconds(time.Hour)
	w.write(5)
	w.start()
	w.await("it tried to reach the bus", func() bool { return strings.Contains(w.now.Figures().Loops["bus"].Detail, "EOF") })
	way.Resume()
	w.awaitAll()
}

// Promise: a rig whose key the bus refuses for a while registers again, and
// goes on with the same keys.
func TestRefusedKeyIsRegisteredAgain(t *testing.T) {
	w := startWorld(t)
	w.start()
	w.awaitAll()
	u := w.bus.Users()
	u.Rigs = []bus.RigUser{{Rig: "alpha", Key: w.bus.Key("another").Public()}}
	w.bus.SetUsers(u)
	w.write(10)
	w.await("it registers again", func() bool { return read(w.control, func(s *script) int { return len(s.registrations) }) >= 2 })
	w.awaitAll()
	all := read(w.control, func(s *script) []wire.Registration { return s.registrations })
	if all[0].BusKey != all[1].BusKey || all[0].SealKey != all[1].SealKey {
		t.Errorf("the keys changed: %v", all)
	}
}

// Promise: answers signed by another key than control named count for
// nothing, until control names that key when the rig registers again.
func TestControlsNewKeyIsLearnt(t *testing.T) {
	w := startWorld(t)
	w.start()
	w.awaitAll()
	w.control.set(func(s *script) { s.signer = signer(t, 2) })
	w.await("it registers again", func() bool { return read(w.control, func(s *script) int { return len(s.registrations) }) >= 2 })
	w.await("the answers count again", func() bool { return w.now.Figures().Loops["figures"].State == "waiting" })
	w.write(3)
	w.awaitAll()
}

// Promise: after a permission that the bus denied, the supervisor connects
// again, since the server holds its subscription no more.
func TestDeniedSupervisorConnectsAgain(t *testing.T) {
	w := startWorld(t)
	w.start()
	w.awaitAll()
	w.now.Deny(supervisor.ErrDenied)
	w.await("it connects again", func() bool { return w.log.has("connected to the bus again") })
	w.await("it is well", func() bool { return w.now.Figures().Loops["bus"].State == "working" })
	w.write(10)
	w.awaitAll()
}

// Promise: a supervisor that starts again has the same keys, and goes on
// where control is.
func TestStartsAgainWhereControlIs(t *testing.T) {
	w := startWorld(t)
	w.write(1500)
	w.start()
	w.awaitAll()
	w.end()
	w.write(10)
	w.start()
	w.awaitAll()
	w.end()
	all := read(w.control, func(s *script) []wire.Registration { return s.registrations })
	if len(all) != 2 || all[0].BusKey != all[1].BusKey || all[0].SealKey != all[1].SealKey {
		t.Errorf("the registrations are %+v", all)
	}
	for _, name := range []string{"bus-key.seed", "bus-seal.pem"} {
		info, err := os.Stat(filepath.Join(w.config.StateDir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if pages := w.now.Figures().Relay.Pages; pages == 0 {
		t.Error("the second sent no page")
	}
}

// Promise: a supervisor ends at once when it is told to, also while nobody
// answers.
func TestEndsAtOnce(t *testing.T) {
	w := startWorld(t)
	w.config.ControlURL = "https://127.0.0.1:1"
	w.start()
	w.await("it can't register", func() bool { return w.now.Figures().Loops["registration"].State == "failing" })
	w.end()
	w = startWorld(t)
	w.control.set(func(s *script) { s.silent = true })
	w.config.Times.Ask = time.Hour
	w.start()
	w.await("it asks", func() bool { return read(w.control, func(s *script) int { return len(s.figures) }) > 0 })
	w.end()
}

// Promise: pages go on while control gives no answer.
func TestSilentControlHoldsNothingUp(t *testing.T) {
	w := startWorld(t)
	w.config.Times.Ask = 20 * time.Millisecond
	w.control.set(func(s *script) { s.silent = true })
	w.write(1200)
	w.start()
	w.awaitAll()
	w.await("the figures say so", func() bool { return w.now.Figures().Loops["figures"].State == "failing" })
}

// Promise: the words of the figures stay within what control takes.
func TestFiguresAreWhatControlTakes(t *testing.T) {
	w := startWorld(t)
	s, err := supervisor.New(t.Context(), w.config)
	if err != nil {
		t.Fatal(err)
	}
	if err := wire.CheckFigures(s.Figures()); err != nil {
		t.Error(err)
	}
	if err := s.Alive(t.Context()); err != nil {
		t.Error(err)
	}
}
