package dash_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"thermite/pkg/control/dash"
	"thermite/pkg/control/service"
)

// Promise: a token signs a browser in for 30 days, by a cookie that no script
// reads, no other site's request carries, and only TLS and this host see.
func TestSignInByToken(t *testing.T) {
	w := newWorld(t, dash.Options{})
	v := w.stranger()
	if p := v.get("/rigs?after=x"); p.status != http.StatusSeeOther || p.header.Get("Location") != "/signin?next=%2Frigs%3Fafter%3Dx" {
		t.Fatalf("a stranger got %d to %q", p.status, p.header.Get("Location"))
	}
	if p := v.get("/signin?next=%2Frigs"); p.status != http.StatusOK || !strings.Contains(p.body, `name="next" value="/rigs"`) {
		t.Fatalf("the page to sign in: %d %s", p.status, p.body)
	}
	p := v.post("/signin", url.Values{"token": {" " + w.owner + "\n"}, "next": {"/rigs"}})
	if p.status != http.StatusSeeOther || p.header.Get("Location") != "/rigs" {
		t.Fatalf("signing in gave %d to %q", p.status, p.header.Get("Location"))
	}
	cookie := p.header.Get("Set-Cookie")
	for _, want := range []string{"__Host-thermite=", "Path=/", "Max-Age=2592000", "HttpOnly", "Secure", "SameSite=Strict"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("the cookie has no %s: %s", want, cookie)
		}
	}
	if strings.Contains(cookie, "Domain") || strings.Contains(cookie, w.owner) {
		t.Errorf("the cookie says too much: %s", cookie)
	}
	if p := v.get("/rigs"); p.status != http.StatusOK {
		t.Errorf("the rigs' page gave %d", p.status)
	}
	if p := v.get("/signin?next=/audit"); p.status != http.StatusSeeOther || p.header.Get("Location") != "/audit" {
		t.Errorf("who is signed in got %d to %q", p.status, p.header.Get("Location"))
	}
	w.pass(service.SessionLife + time.Second)
	if p := v.get("/rigs"); p.status != http.StatusSeeOther {
		t.Errorf("after 30 days the rigs' page gave %d", p.status)
	}
}

// Promise: without TLS, on this machine's loopback, the cookie is one that a
// browser takes there.
func TestSignInWithoutTLS(t *testing.T) {
	w := newWorld(t, dash.Options{Plain: true})
	p := w.stranger().post("/signin", url.Values{"token": {w.owner}})
	cookie := p.header.Get("Set-Cookie")
	if !strings.HasPrefix(cookie, "thermite=") || strings.Contains(cookie, "Secure") || !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Strict") {
		t.Errorf("the cookie is %s", cookie)
	}
}

// Promise: a wrong token, a rig's token and none at all sign nobody in, say
// why on the page, and never show what was typed.
func TestWrongTokens(t *testing.T) {
	w := newWorld(t, dash.Options{})
	w.rig("alpha", figures)
	made, err := w.service.NewRigToken(t.Context(), mustCaller(t, w, w.owner), "alpha")
	if err != nil {
		t.Fatal(err)
	}
	for what, token := range map[string]string{"none": "", "wrong": "nonsense-typed", "a rig's": made.Token} {
		p := w.stranger().post("/signin", url.Values{"token": {token}, "next": {"/audit"}})
		if p.status != http.StatusUnauthorized && p.status != http.StatusForbidden {
			t.Errorf("%s: %d", what, p.status)
		}
		if !strings.Contains(p.body, `role="alert"`) || !strings.Contains(p.body, `name="next" value="/audit"`) {
			t.Errorf("%s: the page does not say what is wrong: %s", what, p.body)
		}
		if p.header.Get("Set-Cookie") != "" || (token != "" && strings.Contains(p.body, token)) {
			t.Errorf("%s: %v %s", what, p.header, p.body)
		}
	}
}

// Promise: looking at a sign-in link, as a mail program or a browser's
// prefetch does, does not use it up; pressing its button does, once.
func TestSignInLink(t *testing.T) {
	w := newWorld(t, dash.Options{})
	code, err := w.service.MakeSignInCode(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v := w.stranger()
	for range 3 {
		p := v.get("/signin?code=" + url.QueryEscape(code))
		if p.status != http.StatusOK || p.header.Get("Set-Cookie") != "" || !strings.Contains(p.body, `name="code" value="`+code+`"`) {
			t.Fatalf("the link shows %d %v %s", p.status, p.header, p.body)
		}
	}
	if p := v.post("/signin", url.Values{"code": {code}, "next": {"/"}}); p.status != http.StatusSeeOther || p.header.Get("Set-Cookie") == "" {
		t.Fatalf("its button gave %d", p.status)
	}
	if p := v.get("/settings/tokens"); p.status != http.StatusOK {
		t.Errorf("who signed in by the link is not the owner: %d", p.status)
	}
	if p := w.stranger().post("/signin", url.Values{"code": {code}}); p.status != http.StatusUnauthorized || !strings.Contains(p.body, "not good any more") {
		t.Errorf("the same link again gave %d %s", p.status, p.body)
	}
}

// Promise: signing out ends the session in the store too, and a revoked
// token's sessions end with it.
func TestSignOut(t *testing.T) {
	w := newWorld(t, dash.Options{})
	v, reader := w.signedIn(w.owner), w.signedIn(w.reader)
	u, err := url.Parse(w.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	kept := v.client.Jar.Cookies(u)
	if p := v.post("/signout", nil); p.status != http.StatusSeeOther || !strings.Contains(p.header.Get("Set-Cookie"), "Max-Age=0") {
		t.Fatalf("signing out gave %d %s", p.status, p.header.Get("Set-Cookie"))
	}
	v.client.Jar.SetCookies(u, kept)
	if p := v.get("/"); p.status != http.StatusSeeOther {
		t.Errorf("a copy of the cookie still shows %d", p.status)
	}
	owner := w.signedIn(w.owner)
	if p := owner.post("/settings/tokens/2/revoke", nil); p.status != http.StatusSeeOther {
		t.Fatalf("revoking gave %d %s", p.status, p.body)
	}
	if p := reader.get("/"); p.status != http.StatusSeeOther {
		t.Errorf("the revoked token's browser still gets %d", p.status)
	}
}

// Promise: after the sign-in comes a page of ours, whatever the link said.
func TestTheNextPageIsOurs(t *testing.T) {
	w := newWorld(t, dash.Options{})
	for _, next := range []string{"https://evil.example/", "//evil.example", `/\evil.example`, "javascript:alert(1)", "/signin?next=/signin", "\n//evil",
		"/\t/evil.example", "evil", "", "http:/evil", "/%0d%0aX: y"} {
		p := w.stranger().post("/signin", url.Values{"token": {w.owner}, "next": {next}})
		to, err := url.Parse(p.header.Get("Location"))
		if p.status != http.StatusSeeOther || err != nil || to.Host != "" || to.Scheme != "" || !strings.HasPrefix(to.Path, "/") || strings.HasPrefix(to.Path, "//") {
			t.Errorf("next %q led to %d %q", next, p.status, p.header.Get("Location"))
		}
	}
}

// Promise: a link on another site to one of our pages works for who is signed
// in, although the browser leaves out the cookie at first.
func TestALinkFromAnotherSite(t *testing.T) {
	w := newWorld(t, dash.Options{})
	cross := []string{"Sec-Fetch-Site", "cross-site"}
	p := w.stranger().get("/signin?next=/rigs", cross...) // the cookie is left out
	again, ok := strings.CutPrefix(p.header.Get("Refresh"), "0; url=")
	if p.status != http.StatusOK || !ok {
		t.Fatalf("it gave %d and Refresh %q", p.status, p.header.Get("Refresh"))
	}
	if p := w.signedIn(w.owner).get(again); p.header.Get("Location") != "/rigs" {
		t.Errorf("the second look led to %q", p.header.Get("Location"))
	}
	if p := w.stranger().get(again, cross...); p.header.Get("Refresh") != "" {
		t.Errorf("who is not signed in is sent around: %q", p.header.Get("Refresh"))
	}
}

// mustCaller gives who holds the token.
func mustCaller(t *testing.T, w *world, token string) service.Caller {
	t.Helper()
	c, err := w.service.Authenticate(t.Context(), token, "test")
	if err != nil {
		t.Fatal(err)
	}
	return c
}
