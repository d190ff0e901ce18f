package rest_test

import (
	"net/http"
	"strings"
	"testing"

	"thermite/pkg/control/service"
)

// Promise: failed sign-ins are in the audit log, counted, with where they
// came from, and not what was tried.
func TestFailedSignInsAreAudited(t *testing.T) {
	w := newWorld(t)
	for range 3 {
		if p := w.do(ask{method: "GET", path: "/v1/rigs", token: "a-guess-of-a-token"}).problem(t); p.Code != service.CodeBadToken {
			t.Errorf("a guess is answered %s", p.Code)
		}
	}
	var page service.AuditPage
	w.get("/v1/audit?action=sign_in_failed", &page)
	if len(page.Entries) != 1 || page.Entries[0].Source != "127.0.0.1" || page.Entries[0].Detail["count"] != 3.0 || page.Entries[0].Actor != "stranger" {
		t.Errorf("the audit log has %v", page.Entries)
	}
	if strings.Contains(w.log.String(), "a-guess-of-a-token") {
		t.Errorf("the log has what was tried")
	}
}

// Promise: whatever strangers do, a good token from the same place is
// answered.
func TestGoodTokenIsNotSlowed(t *testing.T) {
	w := newWorld(t)
	for range 3 {
		w.do(ask{method: "GET", path: "/v1/rigs", token: "a-guess"})
	}
	if r := w.do(ask{method: "GET", path: "/v1/rigs", token: w.owner}); r.status != http.StatusOK {
		t.Errorf("the owner is answered %d %s", r.status, r.body)
	}
}

// Promise: a revoked token is good no more, at once, and the audit log says
// who revoked it from where.
func TestRevokedTokenIsGoodNoMore(t *testing.T) {
	w := newWorld(t)
	r := w.do(ask{method: "POST", path: "/v1/tokens", token: w.owner, body: `{"role":"reader","name":"wall"}`})
	var made service.MadeToken
	decode(t, r.body, &made)
	if r.header.Get("Location") != "/v1/tokens/"+made.ID || made.Secret == "" {
		t.Fatalf("the token is answered %v %s", r.header, r.body)
	}
	if r := w.do(ask{method: "GET", path: "/v1/rigs", token: made.Secret}); r.status != http.StatusOK {
		t.Fatalf("the new reader is answered %d", r.status)
	}
	for range 2 { // a second time changes nothing
		if r := w.do(ask{method: "DELETE", path: "/v1/tokens/" + made.ID, token: w.owner}); r.status != http.StatusNoContent || len(r.body) > 0 {
			t.Fatalf("revoking is answered %d %s", r.status, r.body)
		}
	}
	if p := w.do(ask{method: "GET", path: "/v1/rigs", token: made.Secret}).problem(t); p.Code != service.CodeBadToken {
		t.Errorf("the revoked reader is answered %s", p.Code)
	}
	var page service.AuditPage
	w.get("/v1/audit?action=token_revoked", &page)
	if len(page.Entries) != 1 || page.Entries[0].Actor != "owner" || page.Entries[0].Source != "127.0.0.1" {
		t.Errorf("the audit log has %v", page.Entries)
	}
	var tokens service.TokenList
	w.get("/v1/tokens", &tokens)
	if len(tokens.Tokens) != 2 || !tokens.Tokens[0].Yours || tokens.Tokens[1].RevokedAt.IsZero() {
		t.Errorf("the tokens are %v", tokens.Tokens)
	}
}

// Promise: a rig's new token takes the place of the old one at once.
func TestNewRigToken(t *testing.T) {
	w := newWorld(t)
	old := w.rig("a")
	r := w.do(ask{method: "POST", path: "/v1/rigs/a/token", token: w.owner})
	var made service.RigToken
	decode(t, r.body, &made)
	register := ask{method: "POST", path: "/v1/rigs/a/supervisor", body: registration(t)}
	register.token = old
	if p := w.do(register).problem(t); p.Code != service.CodeBadToken {
		t.Errorf("the old token is answered %s", p.Code)
	}
	register.token = made.Token
	if r := w.do(register); r.status != http.StatusOK {
		t.Errorf("the new token is answered %d %s", r.status, r.body)
	}
}

// Promise: a rig's token registers that rig and no other, and a retired rig's
// none.
func TestRigTokenIsOneRigs(t *testing.T) {
	w := newWorld(t)
	a := w.rig("a")
	w.rig("b")
	if p := w.do(ask{method: "POST", path: "/v1/rigs/b/supervisor", token: a, body: registration(t)}).problem(t); p.Code != service.CodeNotAllowed {
		t.Errorf("another rig's token is answered %s", p.Code)
	}
	w.do(ask{method: "POST", path: "/v1/rigs/a/retire", token: w.owner})
	if p := w.do(ask{method: "POST", path: "/v1/rigs/a/supervisor", token: a, body: registration(t)}).problem(t); p.Code != service.CodeRigRetired {
		t.Errorf("a retired rig's token is answered %s", p.Code)
	}
}

// Promise: what is not there is not in an answer: an empty detail is none.
func TestEmptyDetailIsAbsent(t *testing.T) {
	w := newWorld(t)
	w.rig("a")
	r := w.do(ask{method: "GET", path: "/v1/audit", token: w.owner})
	if strings.Contains(string(r.body), `"detail"`) {
		t.Errorf("the audit log is answered %s", r.body)
	}
}
