package control_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/control"
	"thermite/pkg/control/apply"
	"thermite/pkg/control/recordtest"
	"thermite/pkg/files"
	"thermite/pkg/wire"
)

// connect signs in as the rig's supervisor.
func (w *world) connect(r *rig) *nats.Conn {
	w.t.Helper()
	pool, err := bus.ReadPool(filepath.Join(w.config.StateDir, bus.AuthorityFile))
	if err != nil {
		w.t.Fatal(err)
	}
	came := make(chan struct{}, 1)
	nc, err := bus.Connect(w.t.Context(), bus.Dial{URL: w.server.URL(), Key: r.key, Authority: pool, Name: r.name, Inbox: wire.RigInbox(r.name),
		Log: slog.New(slog.DiscardHandler), ReconnectWait: 20 * time.Millisecond, OnState: func(connected bool, _ error) {
			if connected {
				select {
				case came <- struct{}{}:
				default:
				}
			}
		}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(nc.Close)
	select {
	case <-came:
	case <-time.After(wait):
		w.t.Fatalf("rig %s does not sign in", r.name)
	}
	return nc
}

// publish publishes a page as the supervisor does.
func (w *world) publish(r *rig, page []byte, id string) {
	w.t.Helper()
	js, err := jetstream.New(w.connect(r))
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), wait)
	defer cancel()
	if _, err := js.Publish(ctx, wire.ReportSubject(r.name), page, jetstream.WithMsgID(id)); err != nil {
		w.t.Fatal(err)
	}
}

// eventually tries until ok, with a deadline.
func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(wait)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			w.t.Fatalf("%s: not within %v", what, wait)
		}
	}
}

// cursor is the rig's held cursor, as REST has it.
func (w *world) cursor(rig string) uint64 {
	w.t.Helper()
	var view struct {
		LastCursor uint64 `json:"last_cursor"`
	}
	w.must("GET", "/v1/rigs/"+rig, w.ownerToken(), nil, &view)
	return view.LastCursor
}

// events gives the ids of the rig's events, as REST has them.
func (w *world) events(rig string) []uint64 {
	w.t.Helper()
	var page struct {
		Events []struct {
			Event struct {
				ID uint64 `json:"id"`
			} `json:"event"`
		} `json:"events"`
	}
	w.must("GET", "/v1/rigs/"+rig+"/events?limit=1000", w.ownerToken(), nil, &page)
	var ids []uint64
	for _, e := range page.Events {
		ids = append(ids, e.Event.ID)
	}
	return ids
}

// Promise: a rig's page goes from the bus through control to what REST reads,
// once, and is there after a start of everything; the registration's answer
// then names control's place.
func TestARigsEventsReachTheSurfaces(t *testing.T) {
	w := newWorld(t)
	w.start()
	a := w.makeRig("a")
	w.register(a)
	ledger := recordtest.NewRig(t, "a").Append(20, recordtest.In("pack26"))
	w.publish(a, ledger.Page(0, 12), wire.PageID(ledger.Ledger, 0, 12))
	w.publish(a, ledger.Page(12, 20), wire.PageID(ledger.Ledger, 12, 20))
	w.eventually("control holds the ledger", func() bool { return w.cursor("a") == 20 })
	whole := func() {
		t.Helper()
		ids := w.events("a")
		if len(ids) != 20 {
			t.Fatalf("REST has %d events", len(ids))
		}
		for i, id := range ids {
			if id != uint64(i)+1 {
				t.Fatalf("event %d is in place %d", id, i+1)
			}
		}
	}
	whole()
	w.again()
	whole()
	if got := w.register(a); got.Place != (wire.Place{Ledger: ledger.Ledger, Cursor: 20}) {
		t.Errorf("control's place is %+v", got.Place)
	}
	w.publish(a, ledger.Append(5, nil).Page(20, 25), wire.PageID(ledger.Ledger, 20, 25))
	w.eventually("control holds what came after the start", func() bool { return w.cursor("a") == 25 })
}

// Promise: control waits for the bus's server, and says so; it comes up once
// the server does.
func TestControlWaitsForTheServer(t *testing.T) {
	w := newWorld(t)
	w.start()
	a := w.makeRig("a")
	w.register(a)
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	url := w.server.URL()
	w.server.Shutdown()

	served, states := make(chan struct{}), make(chan string, 100)
	config := w.config
	config.BusURL = url
	config.OnReady = func() { close(served) }
	config.OnState = func(words string) { states <- words }
	var err error
	if w.control, err = control.New(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	ended := w.run()
	w.eventually("control says that it waits", func() bool { return strings.Contains(w.log.String(), "control waits for the bus's server") })
	select {
	case <-served:
		t.Fatal("control serves without a bus")
	default:
	}
	for said := <-states; !strings.HasPrefix(said, "waiting for the bus's server"); said = <-states {
	}
	w.bus.Port = port(t, url)
	w.startServer()
	select {
	case <-served:
	case err := <-ended:
		t.Fatalf("control ended with %v", err)
	case <-time.After(wait):
		t.Fatal("control does not serve")
	}
	if err := w.signsIn(a); err != nil {
		t.Error(err)
	}
}

// Promise: a bus that goes and comes back is away and connected in the
// health, and a rig that registers meanwhile is told to try again.
func TestTheBusGoesAndComesBack(t *testing.T) {
	w := newWorld(t)
	w.start()
	a, b := w.makeRig("a"), w.makeRig("b")
	w.register(a)
	state := func() string {
		t.Helper()
		var health struct {
			Bus struct {
				State string `json:"state"`
			} `json:"bus"`
		}
		w.must("GET", "/v1/health", "", nil, &health)
		return health.Bus.State
	}
	w.bus.Port = port(t, w.server.URL())
	w.server.Shutdown()
	w.eventually("the health says away", func() bool { return state() == "away" })
	if status := w.tryRegister(b, nil); status != 503 {
		t.Errorf("a registration without a bus answered %d", status)
	}
	w.startServer()
	w.eventually("the health says connected", func() bool { return state() == "connected" })
	w.eventually("the registration made again is taken", func() bool { return w.tryRegister(b, nil) < 300 })
	for _, r := range []*rig{a, b} {
		if err := w.signsIn(r); err != nil {
			t.Errorf("rig %s: %v", r.name, err)
		}
	}
}

// Promise: a store that applied more than the stream has, or finds no stream
// at all, does not start: control ends with what to do, serves nothing, and
// changes nothing; with the stream back it starts.
func TestAStorePastTheStreamsEndDoesNotStart(t *testing.T) {
	for name, replace := range map[string]func(t *testing.T, old, jetstream string){
		"the volume removed": func(*testing.T, string, string) {},
		"an older backup": func(t *testing.T, old, jetstream string) {
			if err := os.CopyFS(jetstream, os.DirFS(old)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.start()
			a := w.makeRig("a")
			w.register(a)
			ledger := recordtest.NewRig(t, "a").Append(20, nil)
			jetstream, old, kept := filepath.Join(w.config.BusDir, "jetstream"), filepath.Join(t.TempDir(), "old"), filepath.Join(t.TempDir(), "kept")
			w.publish(a, ledger.Page(0, 5), wire.PageID(ledger.Ledger, 0, 5))
			w.eventually("control holds five events", func() bool { return w.cursor("a") == 5 })
			w.stopAll()
			if err := os.CopyFS(old, os.DirFS(jetstream)); err != nil {
				t.Fatal(err)
			}
			w.start()
			w.publish(a, ledger.Page(5, 20), wire.PageID(ledger.Ledger, 5, 20))
			w.eventually("control holds all", func() bool { return w.cursor("a") == 20 })
			w.stopAll()
			if err := os.Rename(jetstream, kept); err != nil {
				t.Fatal(err)
			}
			replace(t, old, jetstream)

			config := w.config
			config.OnReady = func() { t.Error("control serves on a stream that is not its store's") }
			var err error
			if w.control, err = control.New(t.Context(), config); err != nil {
				t.Fatal(err)
			}
			w.startServer()
			w.control.UseBus(w.server.URL())
			err = w.await(w.run())
			var fatal *apply.StreamError
			if !errors.As(err, &fatal) || !strings.HasPrefix(fatal.Error(), "control's store has applied the EVENTS stream to place 20, past its last, ") {
				t.Fatalf("control ended with %v", err)
			}
			if !strings.Contains(w.log.String(), fatal.Error()) {
				t.Error("the log does not say why")
			}
			w.stopAll()
			if err := errors.Join(os.RemoveAll(jetstream), os.Rename(kept, jetstream)); err != nil {
				t.Fatal(err)
			}
			w.start()
			if got := w.cursor("a"); got != 20 || len(w.events("a")) != 20 {
				t.Errorf("with its stream back control holds %d events", got)
			}
		})
	}
}

// Promise: only one control works in a state folder, and the second says so.
func TestASecondControlSaysSo(t *testing.T) {
	w := newWorld(t)
	w.start()
	if _, err := control.New(t.Context(), w.config); !errors.Is(err, control.ErrRuns) {
		t.Errorf("a second control: %v", err)
	}
	if err := w.control.Alive(t.Context()); err != nil {
		t.Error(err)
	}
}

// Promise: a control that starts beside another, also at the very first
// start, makes no key over the other's.
func TestASecondControlMakesNoKeys(t *testing.T) {
	w := newWorld(t)
	config := w.config
	config.StateDir = filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(config.StateDir, 0o700); err != nil {
		t.Fatal(err)
	}
	held, err := files.Lock(filepath.Join(config.StateDir, "control.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if _, err := control.New(t.Context(), config); !errors.Is(err, control.ErrRuns) {
		t.Errorf("a second control: %v", err)
	}
	if entries, err := os.ReadDir(config.StateDir); err != nil || len(entries) != 1 {
		t.Errorf("the state folder holds %v, %v", entries, err)
	}
}
