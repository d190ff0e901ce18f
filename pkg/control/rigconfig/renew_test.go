package rigconfig

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"thermite/pkg/control/secrets"
	"thermite/pkg/control/store"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

func newConfigs(t *testing.T, renewer Renewer, log io.Writer, now func() time.Time) *Configs {
	t.Helper()
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "control.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	key, err := secrets.New(bytes.Repeat([]byte{1}, 32), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	l := slog.New(slog.NewTextHandler(log, nil))
	return New(Config{Store: s, Secrets: key, Views: views.New(l), Renewer: renewer, Clock: now, Log: l})
}

// Promise: a sign-in is renewed before it ends, with the refresh token that the
// last renewal gave; one that fails is tried again a minute later; no word of a
// secret is said.
func TestASignInIsRenewedBeforeItEnds(t *testing.T) {
	var asked []string
	fails := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		asked = append(asked, r.PostForm.Get("refresh_token"))
		if fails {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":"invalid_grant","error_description":"planted-%s"}`, r.PostForm.Get("refresh_token"))
			return
		}
		fmt.Fprintf(w, `{"access_token":"planted-access-%d","refresh_token":"planted-refresh-%d","expires_in":3600}`, len(asked), len(asked))
	}))
	defer server.Close()
	var log bytes.Buffer
	at := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	c := newConfigs(t, NewOAuth(), &log, func() time.Time { return at })
	ctx := t.Context()
	err := c.SetModelRoute(ctx, By{"owner", "test"}, RouteChange{Name: "chat", API: wire.APIOpenAIResponses, BaseURL: "https://api.example.org", Model: "m",
		Secret: &Payload{Renew: &Renewal{TokenURL: server.URL, ClientID: "id", RefreshToken: "planted-refresh-0"}}})
	if err != nil {
		t.Fatal(err)
	}
	key := func() string {
		r, err := c.Store.ModelRoutes(ctx)
		if err != nil {
			t.Fatal(err)
		}
		m := newMaker(c.Secrets, &inputs{Routes: r})
		return m.routes["chat"].is.Key.Reveal()
	}
	c.renew(ctx)
	if key() != "planted-access-1" {
		t.Fatalf("its key is %s", key())
	}
	at = at.Add(49 * time.Minute)
	c.renew(ctx) // it ends in 11 minutes
	at = at.Add(2 * time.Minute)
	c.renew(ctx)
	if key() != "planted-access-2" || fmt.Sprint(asked) != "[planted-refresh-0 planted-refresh-1]" {
		t.Fatalf("its key is %s after %v", key(), asked)
	}
	fails = true
	at = at.Add(55 * time.Minute)
	c.renew(ctx)
	c.renew(ctx)
	at = at.Add(time.Minute)
	c.renew(ctx)
	if len(asked) != 4 || key() != "planted-access-2" {
		t.Errorf("after failures its key is %s, asked %v", key(), asked)
	}
	if words := log.String(); strings.Contains(words, "planted") || !strings.Contains(words, "invalid_grant") {
		t.Errorf("the log says %s", words)
	}
}

// Promise: a redirect, an answer that is none, and an address that is not
// there give an error, and take the secret nowhere.
func TestABadTokenServer(t *testing.T) {
	elsewhere := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	for name, answer := range map[string]http.HandlerFunc{
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		},
		"no JSON":   func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "planted") },
		"a failure": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "planted", http.StatusInternalServerError) },
	} {
		server := httptest.NewServer(answer)
		_, err := NewOAuth().Renew(context.Background(), Renewal{TokenURL: server.URL, ClientID: "id", RefreshToken: "planted"})
		server.Close()
		if err == nil || strings.Contains(err.Error(), "planted") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if elsewhere > 0 {
		t.Error("the secret went elsewhere")
	}
}

// Promise: an assignment lasts until its run is over, also before the rig tells
// of the run, and not into another ledger.
func TestHowLongAnAssignmentLasts(t *testing.T) {
	run := func(state string) views.Rig {
		return views.Rig{Ledger: "l1", Runs: []views.Run{{Run: "a", State: state}}}
	}
	n := store.Naming{Run: "a", Ledger: "l1"}
	for name, c := range map[string]struct {
		n    store.Naming
		v    views.Rig
		want bool
	}{
		"no event yet":     {n, views.Rig{}, true},
		"another run":      {store.Naming{Run: "b", Ledger: "l1"}, run(views.RunEnded), true},
		"it runs":          {n, run(views.RunRunning), true},
		"it is paused":     {n, run(views.RunPaused), true},
		"it is over":       {n, run(views.RunEnded), false},
		"another ledger":   {store.Naming{Run: "a", Ledger: "l0"}, run(views.RunRunning), false},
		"for any ledger":   {store.Naming{Run: "a"}, run(views.RunRunning), true},
		"and over there":   {store.Naming{Run: "a"}, run(views.RunEnded), false},
		"none known there": {n, views.Rig{Ledger: "l1"}, true},
	} {
		if got := lasts(c.n, c.v); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Promise: what is changed without its secret keeps it, and with another host a
// Git access must be given it again.
func TestASecretStaysUnlessItIsGiven(t *testing.T) {
	c := newConfigs(t, nil, io.Discard, time.Now)
	ctx, by := t.Context(), By{"owner", "test"}
	route := RouteChange{Name: "main", API: wire.APIOpenAIChat, BaseURL: "https://api.example.org", Model: "m", Secret: &Payload{Key: "planted"}}
	for range 2 {
		if err := c.SetModelRoute(ctx, by, route); err != nil {
			t.Fatal(err)
		}
		route.Secret, route.Model = nil, "m2"
	}
	routes, err := c.Store.ModelRoutes(ctx)
	if err != nil || !routes[0].HasKey || routes[0].Model != "m2" || newMaker(c.Secrets, &inputs{Routes: routes}).routes["main"].is.Key != "planted" {
		t.Errorf("the key is gone: %+v, %v", routes, err)
	}
	route.Secret = &Payload{}
	if err := c.SetModelRoute(ctx, by, route); err != nil {
		t.Fatal(err)
	}
	if routes, err = c.Store.ModelRoutes(ctx); err != nil || routes[0].HasKey || routes[0].Sealed != nil {
		t.Errorf("the key stays: %v", err)
	}
	for name, err := range map[string]error{
		"no secret": c.SetGitAccess(ctx, by, AccessChange{Name: "kits", Host: "h", Username: "u"}),
		"no rig":    c.SetModelRoute(ctx, by, RouteChange{Name: "x", API: wire.APIOpenAIChat, BaseURL: "https://h", Model: "m", Uses: []store.RouteUse{{Role: "king"}}}),
	} {
		if !errors.Is(err, ErrBad) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := c.RemoveModelRoute(ctx, by, "none"); !errors.Is(err, ErrNone) {
		t.Errorf("removing none: %v", err)
	}
}
