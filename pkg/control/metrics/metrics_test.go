package metrics_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"thermite/pkg/control/events"
	"thermite/pkg/control/identity"
	"thermite/pkg/control/metrics"
	"thermite/pkg/control/needs"
	"thermite/pkg/control/rigs"
	"thermite/pkg/control/service"
	"thermite/pkg/control/store"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

// now is the test's clock, which stands.
func now() time.Time { return time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC) }

// busState is a bus in a state that a test sets.
type busState struct{ service.BusState }

func (b *busState) Link() service.Link { return b.BusState.Link }
func (b *busState) Server(context.Context) (service.Server, error) {
	if b.BusState.Server == nil {
		return service.Server{}, errors.New("no answer")
	}
	return *b.BusState.Server, nil
}
func (b *busState) Writer() service.Writer      { return b.BusState.Writer }
func (b *busState) Apply() service.Apply        { return b.BusState.Apply }
func (b *busState) Reports() service.Reports    { return b.BusState.Reports }
func (b *busState) Config() service.ConfigState { return b.BusState.Config }
func (b *busState) Users() service.Users        { return b.BusState.Users }
func (b *busState) Live() service.LiveState     { return b.BusState.Live }

// links and users stand for the bus where rigs ask for it.
type links struct{}

func (links) Rig(string) (bool, time.Time, bool) { return false, time.Time{}, false }

type users struct{}

func (users) Now(context.Context) error { return nil }

// control is a service with the bus in the state, its metrics, and the tokens
// of the owner, of a reader and of a rig.
func control(t *testing.T, state service.BusState) (h *metrics.Handler, owner, reader, rig string) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "control.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	signer, err := wire.NewSigner(bytes.Repeat([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	n, v := needs.New(s, now), views.New(log)
	all := rigs.New(rigs.Config{Store: s, Needs: n, ControlKey: signer.Public(), Users: users{}, Views: v, Connections: links{},
		Place: func(context.Context, string) (wire.Place, error) { return wire.Place{}, nil }, Clock: now, Rand: rand.Reader, Log: log})
	svc := service.New(service.Config{Store: s, Rigs: all, Needs: n, Views: v, Events: events.NewReader(nil, v),
		Bus: &busState{state}, Build: "test", Now: now, Rand: rand.Reader, Log: log})
	if rig, err = all.Make(t.Context(), rigs.By{Actor: "owner", Source: "test"}, "alpha"); err != nil {
		t.Fatal(err)
	}
	return metrics.New(svc, "test", log), token(t, s, store.RoleOwner), token(t, s, store.RoleReader), rig
}

func token(t *testing.T, s *store.Store, role string) string {
	t.Helper()
	secret, err := identity.MakeToken(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Write(t.Context(), func(tx *sqlx.Tx) error {
		_, err := s.AddToken(t.Context(), tx, store.Token{Hash: identity.HashToken(secret), Role: role, Name: role, CreatedAt: now()})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func scrape(h http.Handler, method, authorization string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, metrics.Path, nil)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// full is a bus with every figure, each another.
func full() service.BusState {
	return service.BusState{
		Link: service.Link{State: service.LinkConnected},
		Server: &service.Server{MemoryBytes: 101, Clients: 102, Leafs: 103, SlowConsumers: 104, InMessages: 105, OutMessages: 106,
			InBytes: 107, OutBytes: 108, StoreBytes: 109, StoreMaxBytes: 110, Streams: []service.Stream{
				{Name: "EVENTS", Messages: 111, Bytes: 112, FirstSeq: 113, LastSeq: 114,
					Consumers: []service.Consumer{{Name: "dX8vQ2", Pending: 5}}},
				{Name: "REPORTS", Consumers: []service.Consumer{{Name: "control-reports", Pending: 115, Unacked: 116}}}}},
		Writer:  service.Writer{Published: 117, Batches: 118, Waiting: 119, Refused: 120},
		Apply:   service.Apply{State: service.PartWaiting, Place: 121, Behind: 122, Unread: 123},
		Reports: service.Reports{State: service.PartWorking, Taken: 124, Held: 125, Refused: 126, ForNow: 127},
		Users:   service.Users{Rigs: 128, TakenAt: wire.At(now())},
	}
}

// Promise: a scrape gives every figure of the bus that GET /v1/bus gives, in
// a form that Prometheus's own linter finds nothing wrong with.
func TestScrapeGivesTheBussFigures(t *testing.T) {
	h, owner, _, _ := control(t, full())
	w := scrape(h, http.MethodGet, "Bearer "+owner)
	body := w.Body.String()
	if w.Code != http.StatusOK {
		t.Fatalf("%d: %s", w.Code, body)
	}
	for _, want := range []string{
		`thermite_bus_connected 1`, `thermite_bus_server_up 1`, `thermite_bus_server_memory_bytes 101`, `thermite_bus_server_clients 102`,
		`thermite_bus_server_leafs 103`, `thermite_bus_server_slow_consumers_total 104`, `thermite_bus_server_in_messages_total 105`,
		`thermite_bus_server_out_messages_total 106`, `thermite_bus_server_in_bytes_total 107`, `thermite_bus_server_out_bytes_total 108`,
		`thermite_bus_store_bytes 109`, `thermite_bus_store_max_bytes 110`, `thermite_bus_stream_messages{stream="EVENTS"} 111`,
		`thermite_bus_stream_bytes{stream="EVENTS"} 112`, `thermite_bus_stream_first_seq{stream="EVENTS"} 113`,
		`thermite_bus_stream_last_seq{stream="EVENTS"} 114`, `thermite_bus_consumer_pending{consumer="control-reports",stream="REPORTS"} 115`,
		`thermite_bus_consumer_unacked{consumer="control-reports",stream="REPORTS"} 116`, `thermite_writer_published_total 117`,
		`thermite_writer_batches_total 118`, `thermite_writer_reports_waiting 119`, `thermite_writer_refused_total 120`,
		`thermite_apply_place 121`, `thermite_apply_behind 122`, `thermite_apply_unread_total 123`,
		`thermite_apply_state{state="waiting"} 1`, `thermite_apply_state{state="working"} 0`, `thermite_reports_state{state="working"} 1`,
		`thermite_reports_pages_total{outcome="taken"} 124`, `thermite_reports_pages_total{outcome="held"} 125`,
		`thermite_reports_pages_total{outcome="refused"} 126`, `thermite_reports_pages_total{outcome="refused_for_now"} 127`,
		`thermite_bus_users_rigs 128`, `thermite_bus_users_taken 1`, `thermite_bus_users_taken_timestamp_seconds 1.7961264e+09`,
		`thermite_build_info{version="test"} 1`, `go_goroutines `, `process_resident_memory_bytes `,
	} {
		if !strings.Contains(body, "\n"+want) {
			t.Errorf("%s is missing", want)
		}
	}
	if strings.Contains(body, "dX8vQ2") {
		t.Error("a consumer that is gone in a moment has a series")
	}
	wrong, err := promlint.New(strings.NewReader(body)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range wrong {
		if strings.HasPrefix(p.Metric, "thermite_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// Promise: with the server away, control's own figures are there, and say so.
func TestScrapeWithTheBusAway(t *testing.T) {
	state := full()
	state.Link.State, state.Server = service.LinkAway, nil
	h, owner, _, _ := control(t, state)
	w := scrape(h, http.MethodGet, "Bearer "+owner)
	body := w.Body.String()
	for _, want := range []string{"thermite_bus_connected 0", "thermite_bus_server_up 0", "thermite_apply_place 121"} {
		if !strings.Contains(body, "\n"+want) {
			t.Errorf("%s is missing", want)
		}
	}
	if w.Code != http.StatusOK || strings.Contains(body, "thermite_bus_stream_messages") {
		t.Errorf("%d: %s", w.Code, body)
	}
}

// Promise: the owner and readers read the metrics; nobody else does.
func TestWhoMayScrape(t *testing.T) {
	h, owner, reader, rig := control(t, full())
	for _, c := range []struct {
		who, method, authorization string
		want                       int
	}{
		{"the owner", http.MethodGet, "Bearer " + owner, http.StatusOK},
		{"a reader", http.MethodGet, "bearer " + reader, http.StatusOK},
		{"a rig", http.MethodGet, "Bearer " + rig, http.StatusForbidden},
		{"a stranger", http.MethodGet, "", http.StatusUnauthorized},
		{"a wrong token", http.MethodGet, "Bearer " + owner + "x", http.StatusUnauthorized},
		{"another scheme", http.MethodGet, "Basic " + owner, http.StatusUnauthorized},
		{"a change", http.MethodPost, "Bearer " + owner, http.StatusMethodNotAllowed},
	} {
		w := scrape(h, c.method, c.authorization)
		if w.Code != c.want {
			t.Errorf("%s: %d %s, want %d", c.who, w.Code, w.Body, c.want)
		}
		if strings.Contains(w.Body.String(), "thermite_") != (c.want == http.StatusOK) {
			t.Errorf("%s was answered with %s", c.who, w.Body)
		}
		if c.want == http.StatusUnauthorized && w.Header().Get("WWW-Authenticate") == "" {
			t.Errorf("%s is not told how to sign in", c.who)
		}
		if strings.Contains(w.Body.String(), owner) {
			t.Errorf("%s was given a token", c.who)
		}
	}
}
