package kb_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"
	"github.com/nats-io/nats.go"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/control/asks"
	ckb "thermite/pkg/control/kb"
	"thermite/pkg/control/kb/inbox"
	"thermite/pkg/control/rigs"
	"thermite/pkg/control/runs"
	"thermite/pkg/control/store"
	"thermite/pkg/harness/api"
	"thermite/pkg/harness/controller"
	hkb "thermite/pkg/harness/kb"
	"thermite/pkg/harness/ledger"
	sasks "thermite/pkg/supervisor/asks"
	"thermite/pkg/supervisor/harness"
	"thermite/pkg/supervisor/kb"
	"thermite/pkg/wire"
)

const ledgerID = "abcdefghijklmnopqrstuvwxyz"

// world is the knowledge base from a harness to control, on a real bus: no
// part stands for another but the rig's record, which control takes at once.
type world struct {
	t      testing.TB
	bus    *bustest.Bus
	store  *store.Store
	kb     *ckb.KB
	inbox  *inbox.Inbox
	outbox *hkb.Outbox
	trials *controller.KB
	files  *kb.Files
	nc     *nats.Conn
	admin  *bus.Admin
	free   atomic.Uint64
	events uint64
}

// known are control's rigs: alpha works, and beta is retired.
type known struct{ retired atomic.Bool }

func (k *known) ReportKeys(_ context.Context, rig string) (rigs.KeyState, error) {
	return rigs.KeyState{Known: true, Retired: k.retired.Load()}, nil
}

func (k *known) KeepFigures(context.Context, string, wire.Figures, time.Time) error { return nil }

func newWorld(t testing.TB) (*world, *known) {
	t.Helper()
	w := &world{t: t, bus: bustest.Start(t, bustest.Options{Rigs: []string{"alpha", "beta"}})}
	w.admin = bus.NewAdmin(w.bus.System())
	w.free.Store(1 << 40)
	log := w.bus.Log
	signer, err := wire.NewSigner(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	if w.store, err = store.Open(t.Context(), filepath.Join(t.TempDir(), "control.db")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.store.Close() })
	registry, err := runs.Open(t.Context(), w.store)
	if err != nil {
		t.Fatal(err)
	}
	if err := registry.Assign(t.Context(), "pack26", "alpha", "packing", time.Now()); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	w.kb = ckb.New(ckb.Config{Store: w.store, Runs: registry, Dir: dir, Clock: time.Now, Log: log})
	js := w.bus.JS()
	w.inbox, err = inbox.Open(inbox.Config{JS: js, Store: w.store, Dir: dir, Floor: 1 << 30, Free: func(string) (uint64, error) { return w.free.Load(), nil },
		Retry: 100 * time.Millisecond, Again: 100 * time.Millisecond, Clock: time.Now, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	rigsKnown := &known{}
	answering := asks.New(asks.Config{NC: js.Conn(), Rigs: rigsKnown, KB: w.kb, Signer: signer, Clock: time.Now, Log: log,
		Place: func(context.Context, string) (wire.Place, error) { return wire.Place{}, nil }})
	w.startHarness(log)
	socket := w.serveHarness(log)
	client := harness.New(socket, bustest.Wait)
	w.nc = w.bus.Rig("alpha")
	var n atomic.Uint64
	asker := sasks.New(sasks.Config{Rig: "alpha", Conn: w.nc, Timeout: 5 * time.Second, Nonce: func() (string, error) { return fmt.Sprint("n", n.Add(1)), nil }}, signer.Public())
	putter, err := kb.NewPutter(w.nc, "alpha", 10*time.Second, func() {})
	if err != nil {
		t.Fatal(err)
	}
	w.files = kb.NewFiles(kb.FilesConfig{Harness: client, Bus: putter, Control: asker, Log: log})
	relay := kb.NewRelay(kb.RelayConfig{Harness: client, Control: asker, Log: log})
	w.run(answering.Run)
	w.run(w.inbox.Run)
	w.run(relay.Run)
	t.Cleanup(client.Close)
	return w, rigsKnown
}

// run runs a part until the test ends.
func (w *world) run(part func(context.Context) error) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- part(ctx) }()
	w.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	})
}

func (w *world) startHarness(log *slog.Logger) {
	w.t.Helper()
	var err error
	if w.outbox, err = hkb.OpenOutbox(filepath.Join(w.t.TempDir(), hkb.Folder), time.Now, log); err != nil {
		w.t.Fatal(err)
	}
	w.trials = &controller.KB{Outbox: w.outbox, Queue: hkb.NewQueue(5 * time.Second)}
}

type noController struct{}

func (noController) Deliver(context.Context, wire.CommandDelivery) (wire.CommandAnswer, error) {
	return wire.CommandAnswer{}, fs.ErrInvalid
}
func (noController) Space(context.Context) (wire.SpaceReport, error) {
	return wire.SpaceReport{}, nil
}
func (noController) Screen(context.Context, wire.TrialRef) (wire.Screen, error) {
	return wire.Screen{}, nil
}
func (noController) Troubles() []string { return nil }

func (w *world) serveHarness(log *slog.Logger) (socket string) {
	w.t.Helper()
	l, err := ledger.Open(w.t.Context(), ledger.Config{Path: filepath.Join(w.t.TempDir(), "ledger.db"), Now: time.Now, Rand: rand.Reader, Log: log})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { l.Close() })
	signer, err := wire.NewSigner(bytes.Repeat([]byte{8}, 32))
	if err != nil {
		w.t.Fatal(err)
	}
	socket = socketPath(w.t)
	listener, err := api.Listen(socket)
	if err != nil {
		w.t.Fatal(err)
	}
	server := api.New(api.Config{Ledger: l, Controller: noController{}, KBQueue: w.trials.Queue, KBOutbox: w.outbox, Signer: signer, Rig: "alpha", Build: "test",
		StartedAt: wire.At(time.Now()), Log: log})
	w.run(func(ctx context.Context) error { return server.Serve(ctx, listener) })
	return socket
}

// file puts a file in the outbox, as an item names it.
func (w *world) file(size int, seed byte) wire.KBOutFile {
	w.t.Helper()
	b := bytes.Repeat([]byte{seed, 1, 2, 3, 5, 7, 11}, size/7+1)[:size]
	sum := sha256.Sum256(b)
	f := wire.KBOutFile{SHA256: hex.EncodeToString(sum[:]), Size: uint64(size)}
	if err := w.outbox.Put(w.t.Context(), f.SHA256, bytes.NewReader(b)); err != nil {
		w.t.Fatal(err)
	}
	if err := w.outbox.Name(f.SHA256); err != nil {
		w.t.Fatal(err)
	}
	return f
}

// item has control take an item of the run.
func (w *world) item(key, text string, f *wire.KBOutFile) {
	w.t.Helper()
	body := wire.KBItem{Slot: "trial-1", Key: key, Title: key, Text: text}
	if f != nil {
		body.File = &wire.KBFile{Name: key + ".bin", Size: f.Size, SHA256: f.SHA256}
	}
	raw, err := wire.EncodeBody(body)
	if err != nil {
		w.t.Fatal(err)
	}
	w.events++
	e := ckb.Event{Ledger: ledgerID, Event: wire.Event{ID: w.events, Time: wire.At(time.Now()), Kind: wire.KindKBItem, Actor: "trial:1", Run: "pack26", Body: raw}}
	if err := w.store.Write(w.t.Context(), func(tx *sqlx.Tx) error { return w.kb.TakeIn(w.t.Context(), tx, "alpha", []ckb.Event{e}) }); err != nil {
		w.t.Fatal(err)
	}
}

// left gives the SHA-256 of what the outbox holds.
func (w *world) left() []string {
	w.t.Helper()
	list, err := w.outbox.List()
	if err != nil {
		w.t.Fatal(err)
	}
	sums := []string{}
	for _, f := range list.Files {
		sums = append(sums, f.SHA256)
	}
	return sums
}

// until makes rounds until the condition holds.
func (w *world) until(what string, holds func() bool) {
	w.t.Helper()
	w.wait(what, func() bool {
		if holds() {
			return true
		}
		w.files.Round(w.t.Context())
		return false
	})
}

func (w *world) kept(f wire.KBOutFile) bool {
	w.t.Helper()
	kept, err := w.store.KBFileKept(w.t.Context(), f.SHA256)
	if err != nil {
		w.t.Fatal(err)
	}
	return kept
}

// Promise: a file goes whole from the outbox to control, whichever of it and
// its item comes first, and leaves the outbox once both are there, never
// before.
func TestAFileAndItsItemMeet(t *testing.T) {
	w, _ := newWorld(t)
	before, after := w.file(3<<20+17, 1), w.file(1<<20, 2)
	w.item("before", "its item came first", &before)
	w.until("the first file", func() bool { return cmp.Equal(w.left(), []string{after.SHA256}) && w.kept(after) })
	for range 5 {
		w.files.Round(t.Context())
	}
	if left := w.left(); !cmp.Equal(left, []string{after.SHA256}) {
		t.Fatalf("a file whose item has not come left the outbox, which holds %v", left)
	}
	chunks := w.inbox.State().Chunks
	if chunks != 5 {
		t.Errorf("%d chunks were written for files of 4 and 1", chunks)
	}
	w.item("after", "its item came last", &after)
	w.until("the second file", func() bool { return len(w.left()) == 0 })
	f, err := w.kb.File(wire.KBFile{SHA256: before.SHA256})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || uint64(info.Size()) != before.Size {
		t.Errorf("the kept file: %v, %v", info, err)
	}
}

// Promise: while control's disk is at its floor no chunk is written and none
// is lost: each waits, and is taken when there is room.
func TestAFullDiskHasFilesWait(t *testing.T) {
	w, _ := newWorld(t)
	w.free.Store(1 << 20)
	f := w.file(2<<20, 3)
	w.item("a", "", &f)
	w.until("the inbox to wait", func() bool {
		why := w.inbox.State().Why
		return why != nil && strings.Contains(why.Error(), "at its floor")
	})
	if w.kept(f) || len(w.left()) != 1 {
		t.Error("a file was taken at the disk's floor")
	}
	w.free.Store(1 << 40)
	w.until("the file", func() bool { return len(w.left()) == 0 })
}

// Promise: a chunk that does not fit its hash, size or turn makes no file, and
// the next whole put of the file does.
func TestBadChunksMakeNoFile(t *testing.T) {
	w, _ := newWorld(t)
	f := w.file(2<<20, 4)
	send := func(headers map[string]string, data []byte) {
		t.Helper()
		msg := nats.NewMsg(wire.KBFileSubject("alpha"))
		msg.Data = data
		for name, value := range headers {
			msg.Header.Set(name, value)
		}
		if _, err := w.nc.RequestMsg(msg, bustest.Wait); err != nil {
			t.Fatal(err)
		}
	}
	zeros := make([]byte, 1<<20)
	chunk := func(n uint64) map[string]string {
		return wire.KBChunk{SHA256: f.SHA256, Size: f.Size, Number: n}.Headers()
	}
	send(nil, zeros)                                                              // no headers
	send(map[string]string{wire.HeaderKBFile: "abc"}, zeros)                      // no hash
	send(chunk(0), zeros[:5])                                                     // no whole chunk
	send(wire.KBChunk{SHA256: f.SHA256, Size: 5, Number: 1}.Headers(), zeros[:5]) // past its end
	send(chunk(1), zeros)                                                         // out of turn
	send(chunk(0), zeros)
	send(chunk(1), zeros) // whole, and not the file that it says
	w.wait("all to be refused", func() bool { s := w.inbox.State(); return s.Refused == 5 && s.Passed == 1 })
	if w.kept(f) {
		t.Fatal("zeros are kept as the file")
	}
	w.item("a", "", &f)
	w.until("the file itself", func() bool { return len(w.left()) == 0 })
}

func (w *world) wait(what string, holds func() bool) {
	w.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(bustest.Wait); !holds(); {
		select {
		case <-tick.C:
		case <-deadline:
			w.t.Fatalf("waiting for %s: the files' loop says %+v, the inbox %+v", what, w.files.State(), w.inbox.State())
		}
	}
}

// Promise: a trial's search and read come back with what control has, and a
// refusal in its words; the harness called nobody.
func TestATrialSearchesAndReads(t *testing.T) {
	w, known := newWorld(t)
	w.item("lattice", "begin with a hexagonal lattice", nil)
	trial := ref("pack26")
	hits, err := w.trials.SearchKB(t.Context(), trial, wire.KBQuery{Words: "hexagon*"})
	if err != nil || len(hits.Hits) != 1 || hits.Hits[0].Snippet != "begin with a hexagonal lattice" {
		t.Fatalf("it finds %+v, %v", hits, err)
	}
	text, err := w.trials.ReadKB(t.Context(), trial, wire.KBRead{ID: hits.Hits[0].ID})
	if err != nil || text.Text != "begin with a hexagonal lattice" || text.Key != "lattice" {
		t.Errorf("it reads %+v, %v", text, err)
	}
	problem(t, func() error { _, err := w.trials.ReadKB(t.Context(), trial, wire.KBRead{ID: "99"}); return err }, http.StatusNotFound, "no item 99")
	problem(t, func() error {
		_, err := w.trials.SearchKB(t.Context(), ref("other"), wire.KBQuery{Words: "x"})
		return err
	},
		http.StatusUnprocessableEntity, "run other is not rig alpha's")
	known.retired.Store(true)
	problem(t, func() error { _, err := w.trials.SearchKB(t.Context(), trial, wire.KBQuery{Words: "x"}); return err },
		http.StatusUnprocessableEntity, "rig alpha is retired")
	w.bus.Stop()
	problem(t, func() error { _, err := w.trials.SearchKB(t.Context(), trial, wire.KBQuery{Words: "x"}); return err },
		http.StatusServiceUnavailable, "")
}
