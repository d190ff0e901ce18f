package control_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"thermite/pkg/bus"
	"thermite/pkg/control"
	"thermite/pkg/control/rigs"
)

// Promise: whoever runs control gets a link that shows a page to sign in
// with, over TLS that control's authority signed, whose button signs a
// browser in once; before control serves there is none.
func TestSignInLinkLeadsToTheDashboard(t *testing.T) {
	w := newWorld(t)
	early, err := control.New(t.Context(), w.config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := early.SignInLink(t.Context()); !errors.Is(err, control.ErrNotServing) {
		t.Errorf("before control serves: %v", err)
	}
	if err := early.Close(); err != nil {
		t.Fatal(err)
	}
	w.start()
	link, err := w.control.SignInLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(link)
	if err != nil || !strings.HasPrefix(link, w.control.URL()+"/signin?code=") {
		t.Fatalf("the link is %q: %v", link, err)
	}
	pool, err := bus.ReadPool(filepath.Join(w.config.StateDir, bus.AuthorityFile))
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: wait, Jar: jar}
	read := func(r *http.Response, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != http.StatusOK {
			t.Fatalf("%d %s: %v", r.StatusCode, b, err)
		}
		return string(b)
	}
	if page := read(client.Get(link)); !strings.Contains(page, "Sign in this browser") {
		t.Errorf("the link shows %s", page)
	}
	page := read(client.PostForm(w.control.URL()+"/signin", url.Values{"code": {u.Query().Get("code")}}))
	if !strings.Contains(page, "<h1>Home</h1>") {
		t.Errorf("its button leads to %s", page)
	}
	w.noSecretInTheLog(u.Query().Get("code"))
}

// Promise: the rig beside control is made once, and a start that lost its
// token gets it a new one; a retired one stays retired.
func TestKeepRig(t *testing.T) {
	w := newWorld(t)
	w.start()
	first, err := w.control.KeepRig(t.Context(), "local")
	if err != nil {
		t.Fatal(err)
	}
	second, err := w.control.KeepRig(t.Context(), "local")
	if err != nil || second == first {
		t.Fatalf("again it gave the same token, %v, or failed: %v", second == first, err)
	}
	if status := w.call("GET", "/v1/rigs", first, nil, nil); status != http.StatusUnauthorized {
		t.Errorf("the first token is answered %d", status)
	}
	if status := w.call("GET", "/v1/rigs", second, nil, nil); status != http.StatusForbidden {
		t.Errorf("the second token is answered %d", status)
	}
	w.must("POST", "/v1/rigs/local/retire", w.ownerToken(), nil, nil)
	if _, err := w.control.KeepRig(t.Context(), "local"); !errors.Is(err, rigs.ErrRetired) {
		t.Errorf("of a retired rig it gave %v", err)
	}
	var log struct {
		Entries []struct{ Actor, Source, Action string }
	}
	w.must("GET", "/v1/audit?action=rig_made", w.ownerToken(), nil, &log)
	if len(log.Entries) != 1 || log.Entries[0].Actor != "control" || log.Entries[0].Source != "up" {
		t.Errorf("the audit log says %+v", log.Entries)
	}
}
