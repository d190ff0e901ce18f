package dash_test

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/control/commands"
	"thermite/pkg/control/daily"
	"thermite/pkg/control/dash"
	"thermite/pkg/control/events"
	"thermite/pkg/control/identity"
	"thermite/pkg/control/kb"
	"thermite/pkg/control/live"
	"thermite/pkg/control/needs"
	"thermite/pkg/control/rigconfig"
	"thermite/pkg/control/rigs"
	"thermite/pkg/control/runs"
	"thermite/pkg/control/screens"
	"thermite/pkg/control/secrets"
	"thermite/pkg/control/service"
	"thermite/pkg/control/space"
	"thermite/pkg/control/store"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

// limit is how long anything in a test may take.
const limit = 30 * time.Second

const (
	ledger  = "aaaaaaaaaaaaaaaaaaaaaaaaaa"
	earlier = "bbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// pem stands for a certificate.
const pem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"

// busState is a bus whose state a test sets.
type busState struct {
	mu     sync.Mutex
	link   service.Link
	server *service.Server
}

func (b *busState) set(change func(*busState)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(b)
}

func (b *busState) Link() service.Link { b.mu.Lock(); defer b.mu.Unlock(); return b.link }
func (b *busState) Server(context.Context) (service.Server, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.server == nil {
		return service.Server{}, errors.New("no answer within 2s")
	}
	return *b.server, nil
}
func (b *busState) Writer() service.Writer      { return service.Writer{Published: 1234567, Batches: 9} }
func (b *busState) Apply() service.Apply        { return service.Apply{State: service.PartWorking, Place: 77} }
func (b *busState) Reports() service.Reports    { return service.Reports{State: service.PartWorking} }
func (b *busState) Users() service.Users        { return service.Users{Rigs: 2} }
func (b *busState) Config() service.ConfigState { return service.ConfigState{} }
func (b *busState) Live() service.LiveState {
	return service.LiveState{State: service.PartWorking, Lines: 120, Messages: 31}
}

// links says of every rig that it is on the bus.
type links struct{ since time.Time }

func (l links) Rig(string) (bool, time.Time, bool) { return true, l.since, true }

type taken struct{}

func (taken) Now(context.Context) error { return nil }

// world is control behind its dashboard, over TLS, with EVENTS on a real bus.
type world struct {
	t        testing.TB
	store    *store.Store
	views    *views.Views
	rigs     *rigs.Rigs
	needs    *needs.Needs
	bus      *busState
	commands *commands.Commands
	live     *live.View
	runs     *runs.Registry
	daily    *daily.Reports
	screens  *screens.Screens
	kb       *kb.KB
	space    *space.Space
	service  *service.Service
	server   *httptest.Server
	log      *bytes.Buffer
	js       jetstream.JetStream
	owner    string
	reader   string

	mu   sync.Mutex
	at   time.Time
	last uint64
	ids  map[string]uint64
	// ledger is the one that rigs report from now on.
	ledger string
}

func (w *world) now() time.Time { w.mu.Lock(); defer w.mu.Unlock(); return w.at }

func (w *world) pass(d time.Duration) { w.mu.Lock(); defer w.mu.Unlock(); w.at = w.at.Add(d) }

// newWorld gives a world without rigs.
func newWorld(t testing.TB, o dash.Options) *world {
	t.Helper()
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "control.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	w := &world{t: t, store: s, at: time.Now().UTC().Truncate(time.Second), ids: map[string]uint64{}, ledger: ledger, log: &bytes.Buffer{}}
	log := slog.New(slog.NewTextHandler(&locked{w: w.log}, nil))
	w.bus = &busState{link: service.Link{State: service.LinkConnected, Since: wire.At(w.at)}, server: &service.Server{Name: "thermite",
		Version: "2.15.2", StoreBytes: 3 << 30, StoreMaxBytes: 64 << 30, Streams: []service.Stream{
			{Name: "EVENTS", Messages: 77, Bytes: 1 << 20, LastSeq: 77, Consumers: []service.Consumer{}},
			{Name: "REPORTS", Consumers: []service.Consumer{{Name: "control-reports", Pending: 2}}}}}}
	w.needs, w.views = needs.New(s, w.now), views.New(log)
	signer, err := wire.NewSigner(bytes.Repeat([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	w.rigs = rigs.New(rigs.Config{Store: s, Needs: w.needs, ControlKey: signer.Public(), Users: taken{}, Views: w.views, Connections: links{w.at},
		Place: func(context.Context, string) (wire.Place, error) { return wire.Place{}, nil }, Clock: w.now, Rand: rand.Reader, Log: log})
	if w.runs, err = runs.Open(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	w.commands = commands.New(commands.Config{Store: s, Needs: w.needs, Runs: w.runs, Signer: signer, Clock: w.now, Rand: rand.Reader, Log: log})
	w.js = bustest.Start(t, bustest.Options{}).JS()
	reader := events.NewReader(w.js, w.views)
	w.views.Use(reader)
	w.owner, w.reader = w.token(store.RoleOwner, identity.FirstToken), w.token(store.RoleReader, "wall")
	if w.runs, err = runs.Open(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	w.live = live.New(live.Config{Runs: w.runs, Clock: w.now, Log: log})
	w.commands = commands.New(commands.Config{Store: s, Needs: w.needs, Runs: w.runs, Signer: signer, Clock: w.now, Rand: rand.Reader, Log: log})
	w.screens = screens.New(w.now)
	w.daily, w.space = daily.New(s, w.now), space.New(s, w.now)
	secretsKey, err := secrets.New(bytes.Repeat([]byte{2}, 32), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	configs := rigconfig.New(rigconfig.Config{Store: s, Secrets: secretsKey, Signer: signer, Views: w.views, Clock: w.now, Log: log})
	w.kb = kb.New(kb.Config{Store: s, Runs: w.runs, Dir: t.TempDir(), Clock: w.now, Log: log})
	w.service = service.New(service.Config{Store: s, KB: w.kb, Rigs: w.rigs, Needs: w.needs, Views: w.views, Events: reader, Commands: w.commands, Runs: w.runs, Daily: w.daily, Screens: w.screens, Space: w.space, Configs: configs, Live: w.live, Bus: w.bus,
		Join:  service.Join{ControlURL: "https://control.example:8443", BusURL: "tls://control.example:4222", Authority: pem, Fingerprint: "zxOCrk-QXpxDrwzUhb1zZ4", SigningKey: signer.Public().String()},
		Build: "v0.1-test", Now: w.now, Rand: rand.Reader, Log: log})
	w.server = httptest.NewTLSServer(dash.New(w.service, log, o))
	t.Cleanup(w.server.Close)
	return w
}

// locked is a writer for many.
type locked struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *locked) Write(b []byte) (int, error) { l.mu.Lock(); defer l.mu.Unlock(); return l.w.Write(b) }

// token makes a token behind the service's back.
func (w *world) token(role, name string) string {
	w.t.Helper()
	secret, err := identity.MakeToken(rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	err = w.store.Write(w.t.Context(), func(tx *sqlx.Tx) error {
		_, err := w.store.AddToken(w.t.Context(), tx, store.Token{Hash: identity.HashToken(secret), Role: role, Name: name, CreatedAt: w.now()})
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return secret
}

// rig makes a rig that is on the bus and sent figures.
func (w *world) rig(name string, figures wire.Figures) {
	w.t.Helper()
	if _, err := w.rigs.Make(w.t.Context(), rigs.By{Actor: "owner", Source: "test"}, name); err != nil {
		w.t.Fatal(err)
	}
	w.register(name, figures)
}

// reregister has the rig call with other keys.
func (w *world) reregister(name string) { w.t.Helper(); w.register(name, wire.Figures{}) }

func (w *world) register(name string, figures wire.Figures) {
	w.t.Helper()
	key, _, err := bus.OpenUserKey(filepath.Join(w.t.TempDir(), "bus-key.seed"))
	if err != nil {
		w.t.Fatal(err)
	}
	seal, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	if figures.Build == "" {
		figures.Build = "v0.1-test"
	}
	figures.StartedAt = wire.At(w.now())
	reg := wire.Registration{BusKey: key.Public(), SealKey: wire.SealKey(seal.PublicKey().Bytes()), Figures: figures}
	if _, err := w.rigs.Register(w.t.Context(), name, reg, "10.0.0.9"); err != nil {
		w.t.Fatal(err)
	}
}

// key gives a report key.
func (w *world) key(n byte) wire.PublicKey {
	w.t.Helper()
	s, err := wire.NewSigner(bytes.Repeat([]byte{n}, 32))
	if err != nil {
		w.t.Fatal(err)
	}
	return s.Public()
}

// draft is an event to publish.
type draft struct {
	actor, run, subject string
	body                wire.Body
	// at is its time; the world's, if it has none.
	at time.Time
}

// publish publishes the rig's next events, and has the views take them.
func (w *world) publish(rig string, drafts ...draft) {
	w.t.Helper()
	var msgs []*nats.Msg
	var got []views.Message
	for _, d := range drafts {
		body, err := wire.Canonical(d.body) // unchecked, as a rig may send it
		if err != nil {
			w.t.Fatal(err)
		}
		at := d.at
		if at.IsZero() {
			at = w.now()
		}
		w.ids[rig+w.ledger]++
		e := wire.Event{ID: w.ids[rig+w.ledger], Time: wire.At(at), Kind: d.body.Kind(), Actor: d.actor, Run: d.run, Subject: d.subject, Body: body}
		raw, err := wire.EncodeEvent(e)
		if err != nil {
			w.t.Fatal(err)
		}
		subject, err := wire.EventSubject(rig, d.run != "", e)
		if err != nil {
			w.t.Fatal(err)
		}
		m := nats.NewMsg(subject)
		m.Data = raw
		m.Header.Set(wire.HeaderRig, rig)
		m.Header.Set(wire.HeaderLedger, w.ledger)
		m.Header.Set(wire.HeaderReport, "report")
		w.last++
		msgs, got = append(msgs, m), append(got, views.Message{Seq: w.last, Rig: rig, Ledger: w.ledger, Report: "report", Event: e, Raw: raw})
	}
	if _, err := bus.PublishBatch(w.t.Context(), w.js, msgs, w.last-uint64(len(msgs))); err != nil {
		w.t.Fatal(err)
	}
	var events []wire.Event
	for _, m := range got {
		w.views.Take(m)
		events = append(events, m.Event)
	}
	w.apply(rig, events)
}

// apply does with the events what control's apply does in its store.
func (w *world) apply(rig string, events []wire.Event) {
	w.t.Helper()
	var keep func()
	err := w.store.Write(w.t.Context(), func(tx *sqlx.Tx) (err error) {
		keep, err = w.commands.TakeIn(w.t.Context(), tx, rig, events)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	keep()
	if err := w.runs.Take(w.t.Context(), rig, events); err != nil {
		w.t.Fatal(err)
	}
}

// pending gives the rig's newest command, which must wait for its outcome.
func (w *world) pending(rig string) commands.Command {
	w.t.Helper()
	list, err := w.commands.List(w.t.Context(), commands.Query{Rig: rig, Limit: 1})
	if err != nil || len(list) == 0 || list[0].Over() {
		w.t.Fatalf("the rig's newest command is %+v, %v", list, err)
	}
	return list[0]
}

// answers has the rig say what came of its newest command.
func (w *world) answers(rig, outcome, why string) {
	w.t.Helper()
	c := w.pending(rig)
	w.publish(rig, draft{actor: "controller", run: c.Run, subject: "command:" + c.ID, body: wire.CommandTaken{ID: c.ID, Command: c.Kind, Outcome: outcome, Why: why}})
}

// visitor is a browser, as far as HTTP goes.
type visitor struct {
	*world
	client *http.Client
	// form is the token of the forms of the last page it read.
	form string
}

// stranger gives a browser that did not sign in. It follows no redirect.
func (w *world) stranger() *visitor {
	w.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	c := &http.Client{Transport: w.server.Client().Transport, Jar: jar, Timeout: limit,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &visitor{world: w, client: c}
}

// signedIn gives a browser that signed in with the token.
func (w *world) signedIn(token string) *visitor {
	w.t.Helper()
	v := w.stranger()
	if p := v.post("/signin", url.Values{"token": {token}}); p.status != http.StatusSeeOther {
		w.t.Fatalf("signing in gave %d: %s", p.status, p.body)
	}
	v.get("/")
	return v
}

// reply is an answer, read.
type reply struct {
	status int
	header http.Header
	body   string
}

func (v *visitor) get(path string, header ...string) reply {
	v.t.Helper()
	return v.do("GET", path, nil, header...)
}

// post sends a form with the last page's token, unless it has one.
func (v *visitor) post(path string, form url.Values, header ...string) reply {
	v.t.Helper()
	if form == nil {
		form = url.Values{}
	}
	if !form.Has("form") && v.form != "" {
		form.Set("form", v.form)
	}
	return v.do("POST", path, form, append([]string{"Content-Type", "application/x-www-form-urlencoded"}, header...)...)
}

var formToken = regexp.MustCompile(`name="form" value="([^"]+)"`)

func (v *visitor) do(method, path string, form url.Values, header ...string) reply {
	v.t.Helper()
	req, err := http.NewRequestWithContext(v.t.Context(), method, v.server.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := v.client.Do(req)
	if err != nil {
		v.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	if m := formToken.FindSubmatch(b); m != nil {
		v.form = string(m[1])
	}
	return reply{res.StatusCode, res.Header, string(b)}
}
