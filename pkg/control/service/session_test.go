package service

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Promise: a sign-in link signs in as the owner, once, within its life.
func TestSignInLink(t *testing.T) {
	w := newWorld(t)
	code, err := w.MakeSignInCode(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	session, err := w.SignInByCode(t.Context(), code, "10.0.0.1")
	if err != nil || session.Caller.Role != RoleOwner {
		t.Fatalf("%+v %v", session, err)
	}
	c, err := w.SessionCaller(t.Context(), session.Value, "10.0.0.1")
	if err != nil || c.Role != RoleOwner {
		t.Errorf("%+v %v", c, err)
	}
	if _, err := w.SignInByCode(t.Context(), code, "10.0.0.1"); codeOf(err) != CodeSignInLink {
		t.Errorf("a second use gives %v", err)
	}
	if code, err = w.MakeSignInCode(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.clock.pass(CodeLife)
	if _, err := w.SignInByCode(t.Context(), code, "10.0.0.1"); codeOf(err) != CodeSignInLink {
		t.Errorf("a use after its life gives %v", err)
	}
	if n := len(w.audited("signed_in")); n != 1 {
		t.Errorf("the audit log has %d sign-ins", n)
	}
}

// Promise: a link used many times at once signs in once.
func TestSignInLinkAtOnce(t *testing.T) {
	w := newWorld(t)
	w.fails.sleep = noSleep
	code, err := w.MakeSignInCode(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var in atomic.Int32
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, err := w.SignInByCode(t.Context(), code, "10.0.0.1"); err == nil {
				in.Add(1)
			}
		})
	}
	all.Wait()
	if in.Load() != 1 {
		t.Errorf("it signed in %d times", in.Load())
	}
}

// Promise: the newest links are good, and no more than maxCodes.
func TestLinksAreBounded(t *testing.T) {
	w := newWorld(t)
	var made []string
	for range maxCodes + 3 {
		code, err := w.MakeSignInCode(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, code)
	}
	if len(w.codes.good) != maxCodes {
		t.Errorf("%d links are good", len(w.codes.good))
	}
	if _, err := w.SignInByCode(t.Context(), made[0], "x"); codeOf(err) != CodeSignInLink {
		t.Errorf("the oldest gives %v", err)
	}
	if _, err := w.SignInByCode(t.Context(), made[len(made)-1], "x"); err != nil {
		t.Error(err)
	}
}

// Promise: a session ends when its browser signs out, after 30 days, and with
// its token; a rig's token makes none.
func TestSessionsEnd(t *testing.T) {
	w := newWorld(t)
	signIn := func() Session {
		t.Helper()
		s, err := w.SignIn(t.Context(), w.reader, "10.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		if c, err := w.SessionCaller(t.Context(), s.Value, "x"); err != nil || c.Role != RoleReader || c.Name != "wall" {
			t.Fatalf("%+v %v", c, err)
		}
		return s
	}
	ended := func(s Session, why string) {
		t.Helper()
		if c, err := w.SessionCaller(t.Context(), s.Value, "x"); codeOf(err) != CodeNotSignedIn || c.Role != RoleStranger {
			t.Errorf("%s: %+v %v", why, c, err)
		}
	}
	out := signIn()
	if err := w.SignOut(t.Context(), out.Caller, out.Value); err != nil {
		t.Fatal(err)
	}
	ended(out, "signed out")
	old := signIn()
	w.clock.pass(30 * 24 * time.Hour)
	ended(old, "after 30 days")
	revoked := signIn()
	if err := w.RevokeToken(t.Context(), w.caller(w.owner), "2"); err != nil {
		t.Fatal(err)
	}
	ended(revoked, "token revoked")
	ended(Session{Value: "made-up"}, "made up")
	ended(Session{}, "none")
	made, err := w.MakeRig(t.Context(), w.caller(w.owner), NewRig{Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.SignIn(t.Context(), made.Token, "x"); codeOf(err) != CodeNotAllowed {
		t.Errorf("a rig's token gives %v", err)
	}
}

// Promise: the token that control keeps of a session is not the cookie.
func TestSessionIsKeptAsItsHash(t *testing.T) {
	w := newWorld(t)
	s, err := w.SignIn(t.Context(), w.owner, "x")
	if err != nil {
		t.Fatal(err)
	}
	var has int
	if err := w.store.Read().Get(&has, `SELECT count(*) FROM sessions WHERE hash = ?`, []byte(s.Value)); err != nil || has != 0 {
		t.Errorf("%d rows hold the cookie's value: %v", has, err)
	}
}

// Promise: a form's token is its session's and no other's.
func TestFormToken(t *testing.T) {
	if !CheckFormToken("s1", FormToken("s1")) {
		t.Error("a session's own form is refused")
	}
	for _, bad := range [][2]string{{"s1", FormToken("s2")}, {"s1", ""}, {"", FormToken("")}, {"s1", "s1"}} {
		if CheckFormToken(bad[0], bad[1]) {
			t.Errorf("%q is taken for session %q", bad[1], bad[0])
		}
	}
}
