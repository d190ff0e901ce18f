// Package recordtest starts control's half of the record for tests: the run
// registry, the apply, the writer and the reports' consumer, on a real store
// and a real bus, with rigs' ledgers in memory.
package recordtest

import (
	"context"
	"crypto/rand"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/control/apply"
	"thermite/pkg/control/commands"
	"thermite/pkg/control/events"
	"thermite/pkg/control/kb"
	"thermite/pkg/control/needs"
	"thermite/pkg/control/reports"
	"thermite/pkg/control/rigs"
	"thermite/pkg/control/runs"
	"thermite/pkg/control/store"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

// Retry is how long the parts here wait after a failure.
const Retry = 50 * time.Millisecond

// Options are what a test's record is started with.
type Options struct {
	// Rigs are made, and have a user on the bus.
	Rigs []string
	// MaxStore bounds the bus's store; 0: the server's default.
	MaxStore int64
	// Proxied has control reach the bus through Record.Proxy.
	Proxied bool
	// These stand before the real parts, to fail on demand.
	Views  func(apply.Views) apply.Views
	Runs   func(*runs.Registry) Runs
	Writer func(reports.Writer) reports.Writer
	Source func(apply.Source) apply.Source
	Room   func(events.Room) events.Room
	// Build is the check of a harness's build.
	Build func(string) error
	// Retry is how long a part waits after a failure; 0 is Retry.
	Retry time.Duration
	// NoReports leaves the reports in the bus.
	NoReports bool
	// Commands has commands published.
	Commands bool
	// CommandsBus stands before COMMANDS, to fail on demand.
	CommandsBus func(commands.Bus) commands.Bus
}

// Runs is the run registry as the writer and the apply have it.
type Runs interface {
	events.Runs
	apply.Runs
}

// Record is control's half of the record.
type Record struct {
	Bus   *bustest.Bus
	Proxy *bustest.Proxy
	Log   *Log
	// Parts are those that run now.
	Parts

	t    testing.TB
	o    Options
	dir  string
	mu   sync.Mutex
	now  time.Time
	nats map[string]*nats.Conn
}

// Parts are control's parts.
type Parts struct {
	JS       jetstream.JetStream
	Store    *store.Store
	Rigs     *rigs.Rigs
	Registry *runs.Registry
	Views    *views.Views
	Apply    *apply.Apply
	Writer   *events.Writer
	Reports  *reports.Consumer
	Needs    *needs.Needs
	Commands *commands.Commands
	KB       *kb.KB
	stop     func()
}

// Start starts the bus and the parts, and makes the rigs.
func Start(t testing.TB, o Options) *Record {
	t.Helper()
	if o.Retry == 0 {
		o.Retry = Retry
	}
	r := &Record{o: o, t: t, dir: t.TempDir(), Log: &Log{}, now: Began.Add(time.Hour), nats: map[string]*nats.Conn{}, Parts: Parts{stop: func() {}},
		Bus: bustest.Start(t, bustest.Options{Rigs: o.Rigs, MaxStore: o.MaxStore})}
	if o.Proxied {
		r.Proxy = r.Bus.Proxy()
	}
	t.Cleanup(r.Stop)
	r.Open()
	for _, name := range o.Rigs {
		r.Make(name)
	}
	r.Run()
	return r
}

// Make makes a rig.
func (r *Record) Make(name string) {
	r.t.Helper()
	if _, err := r.Rigs.Make(r.t.Context(), rigs.By{Actor: "owner", Source: "test"}, name); err != nil {
		r.t.Fatal(err)
	}
}

// Retire retires a rig; its user on the bus stays, as until the next look.
func (r *Record) Retire(name string) error {
	r.t.Helper()
	return r.Store.Write(r.t.Context(), func(tx *sqlx.Tx) error { return r.Store.SetRetired(r.t.Context(), tx, name, r.Now()) })
}

// Now is the clock of the parts.
func (r *Record) Now() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// Pass moves the clock.
func (r *Record) Pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

// StorePath is where the store's file is.
func (r *Record) StorePath() string { return filepath.Join(r.dir, "control.db") }

// Open makes the parts, on the store and the bus as they are.
func (r *Record) Open() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bustest.Wait)
	defer cancel()
	d := r.Bus.ControlDial()
	if r.Proxy != nil {
		d.URL = r.Proxy.URL()
	}
	nc := r.Bus.Connect(d)
	js, err := jetstream.New(nc)
	if err != nil {
		r.t.Fatal(err)
	}
	s, err := store.Open(ctx, r.StorePath())
	if err != nil {
		r.t.Fatal(err)
	}
	registry, err := runs.Open(ctx, s)
	if err != nil {
		r.t.Fatal(err)
	}
	r.Parts = Parts{JS: js, Store: s, Registry: registry, stop: func() {}}
	r.wire()
}

// wire puts the parts together.
func (r *Record) wire() {
	p, log := &r.Parts, r.Log.Logger()
	var registry Runs = p.Registry
	if r.o.Runs != nil {
		registry = r.o.Runs(p.Registry)
	}
	p.Needs = needs.New(p.Store, r.Now)
	p.Commands = commands.New(commands.Config{Store: p.Store, Needs: p.Needs, Runs: p.Registry, Signer: Key(r.t, "control"), Retry: r.o.Retry,
		Clock: r.Now, Rand: rand.Reader, Log: log})
	p.KB = kb.New(kb.Config{Store: p.Store, Runs: p.Registry, Clock: r.Now, Log: log})
	p.Rigs = rigs.New(rigs.Config{Store: p.Store, Needs: p.Needs, Connections: unknown{}, Clock: r.Now, Rand: rand.Reader, Log: log})
	p.Views = views.New(log)
	p.Views.Use(events.NewReader(p.JS, p.Views))
	var see apply.Views = p.Views
	if r.o.Views != nil {
		see = r.o.Views(p.Views)
	}
	var source apply.Source = events.NewStream(p.JS)
	if r.o.Source != nil {
		source = r.o.Source(source)
	}
	p.Apply = apply.New(apply.Config{Store: p.Store, Source: source, Runs: registry, Commands: p.Commands, KB: p.KB, Views: see, Retry: r.o.Retry, Clock: r.Now, Log: log})
	var room events.Room = bus.NewAdmin(r.Bus.System())
	if r.o.Room != nil {
		room = r.o.Room(room)
	}
	p.Writer = events.NewWriter(events.WriterConfig{JS: p.JS, Room: room, Apply: p.Apply, Runs: registry, Clock: r.Now, Log: log})
	var writer reports.Writer = p.Writer
	if r.o.Writer != nil {
		writer = r.o.Writer(p.Writer)
	}
	p.Reports = reports.New(reports.Config{JS: p.JS, Store: p.Store, Rigs: p.Rigs, Writer: writer, Ledgers: p.Apply, Names: p.Views,
		Build: r.o.Build, Retry: r.o.Retry, Clock: r.Now, Log: log})
}

// unknown says that control can't look which rigs are connected.
type unknown struct{}

func (unknown) Rig(string) (connected bool, since time.Time, known bool) { return }

// Run starts the parts.
func (r *Record) Run() {
	r.t.Helper()
	if err := r.Start(); err != nil {
		r.t.Fatal(err)
	}
}

// Start starts the parts, and gives why the apply does not start.
func (r *Record) Start() error {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	start, done := context.WithTimeout(ctx, bustest.Wait)
	defer done()
	var group sync.WaitGroup
	store, nc := r.Store, r.JS.Conn()
	r.Parts.stop = sync.OnceFunc(func() {
		cancel()
		nc.Close()
		group.Wait()
		_ = store.Close()
	})
	if err := r.Apply.Start(start); err != nil {
		return err
	}
	group.Go(func() { _ = r.Apply.Run(ctx) })
	if r.o.Commands {
		all, bus := r.Commands, commands.Bus(commands.NewStream(r.JS))
		if r.o.CommandsBus != nil {
			bus = r.o.CommandsBus(bus)
		}
		group.Go(func() { _ = all.Run(ctx, bus) })
	}
	if !r.o.NoReports {
		consumer := r.Reports
		group.Go(func() { _ = consumer.Run(ctx) })
	}
	return nil
}

// Stop drops the parts as they are, as a control that dies.
func (r *Record) Stop() { r.Parts.stop() }

// Again drops the parts and starts new ones on the same store and bus.
func (r *Record) Again() {
	r.t.Helper()
	r.Stop()
	r.Open()
	r.Run()
}

// Send publishes a page as the rig's supervisor does.
func (r *Record) Send(rig string, page []byte) {
	r.t.Helper()
	if err := r.TrySend(rig, page); err != nil {
		r.t.Fatal(err)
	}
}

// TrySend publishes a page as the rig's supervisor does.
func (r *Record) TrySend(rig string, page []byte) error {
	r.t.Helper()
	r.mu.Lock()
	nc := r.nats[rig]
	r.mu.Unlock()
	if nc == nil {
		nc = r.Bus.Rig(rig)
		r.mu.Lock()
		r.nats[rig] = nc
		r.mu.Unlock()
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), bustest.Wait)
	defer cancel()
	_, err = js.Publish(ctx, wire.ReportSubject(rig), page)
	return err
}

// Until waits for what, which ok says is so.
func (r *Record) Until(what string, ok func() bool) {
	r.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	end := time.After(bustest.Wait)
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			r.t.Fatalf("waited %s and it is not so: %s; the reports: %+v; the apply: %+v; the writer: %+v",
				bustest.Wait, what, r.Reports.State(), r.Apply.State(), r.Writer.State())
		}
	}
}

// Idle waits until no page waits.
func (r *Record) Idle() {
	r.t.Helper()
	r.Until("no page waits", func() bool { return r.Waiting() == 0 })
}

// Waiting counts the pages in the bus.
func (r *Record) Waiting() uint64 {
	r.t.Helper()
	return r.stream(wire.StreamReports).State.Msgs
}

func (r *Record) stream(name string) *jetstream.StreamInfo {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bustest.Wait)
	defer cancel()
	s, err := r.js().Stream(ctx, name)
	if err != nil {
		r.t.Fatal(err)
	}
	return s.CachedInfo()
}

// js is a way to the bus that no proxy and no stop breaks.
func (r *Record) js() jetstream.JetStream {
	r.t.Helper()
	const name = "" // no rig's
	r.mu.Lock()
	defer r.mu.Unlock()
	nc := r.nats[name]
	if nc == nil {
		nc = r.Bus.Control()
		r.nats[name] = nc
	}
	js, err := jetstream.New(nc)
	if err != nil {
		r.t.Fatal(err)
	}
	return js
}

// Events reads the whole EVENTS stream.
func (r *Record) Events() []events.Record {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bustest.Wait)
	defer cancel()
	var all []events.Record
	last := r.stream(wire.StreamEvents).State.LastSeq
	err := events.NewStream(r.js()).Read(ctx, 0, last, func(records []events.Record) error {
		all = append(all, records...)
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// Subject gives the subject of the message at the place in EVENTS.
func (r *Record) Subject(place uint64) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bustest.Wait)
	defer cancel()
	s, err := r.js().Stream(ctx, wire.StreamEvents)
	if err != nil {
		r.t.Fatal(err)
	}
	msg, err := s.GetMsg(ctx, place)
	if err != nil {
		r.t.Fatal(err)
	}
	return msg.Subject
}

// Refusals gives the audit log's report_refused entries, the oldest first.
func (r *Record) Refusals() []store.AuditEntry {
	r.t.Helper()
	list, err := r.Store.AuditLog(r.t.Context(), store.AuditQuery{Action: "report_refused", Limit: 1000})
	if err != nil {
		r.t.Fatal(err)
	}
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	return list
}

// Whole checks that EVENTS holds the rig's ledger event for event, once and
// in order, and that control's store and views hold it too.
func (r *Record) Whole(rigs ...*Rig) {
	r.t.Helper()
	all := r.Events()
	for _, g := range rigs {
		var next uint64
		for _, e := range all {
			if e.Err != nil || e.Rig != g.Name || e.Ledger != g.Ledger {
				continue
			}
			if next >= g.Last() || string(e.Raw) != string(g.Raw[next]) {
				r.t.Fatalf("place %d holds event %d of rig %s, where its event %d of %d is next", e.Seq, e.Event.ID, g.Name, next+1, g.Last())
			}
			next++
		}
		if next != g.Last() {
			r.t.Fatalf("the stream holds %d events of rig %s's ledger, which has %d", next, g.Name, g.Last())
		}
		r.Until("the apply has all of "+g.Name, func() bool { return r.Apply.Held(g.Name, g.Ledger).Cursor == g.Last() })
		h := r.Apply.Held(g.Name, g.Ledger)
		if g.Last() > 0 && h.HasChain && h.Chain != g.Chain[g.Last()] {
			r.t.Fatalf("control holds another chain of rig %s's ledger at event %d", g.Name, h.Cursor)
		}
	}
}
