package dash_test

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"thermite/pkg/control/dash"
	"thermite/pkg/control/service"
	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// changes are every change that the dashboard offers.
var changes = []string{"/rigs", "/rigs/alpha/token", "/rigs/alpha/retire", "/rigs/alpha/restore", "/rigs/alpha/report-key", "/needs/1/seen",
	"/settings/models", "/settings/models/x/remove", "/settings/mcp-servers", "/settings/mcp-servers/x/remove",
	"/settings/git-accesses", "/settings/git-accesses/x/remove",
	"/settings/tokens", "/settings/tokens/2/revoke", "/runs", "/rigs/alpha/commands/aaaaaaaaaaaaaaaaaaaaaaaaaa/cancel",
	aRunsPage + "/pause", aRunsPage + "/resume", aRunsPage + "/stop", aRunsPage + "/settings", aRunsPage + "/queue", aRunsPage + "/queue/3/move",
	aRunsPage + "/queue/3/edit", aRunsPage + "/queue/3/drop", aRunsPage + "/trials/1/message", aRunsPage + "/trials/1/stop",
	aRunsPage + "/attempts/1/disqualify", aRunsPage + "/attempts/1/rejudge"}

const aRunsPage = "/rigs/alpha/runs/pack-1"

// audited gives what the audit log says was changed.
func (w *world) audited() []string {
	w.t.Helper()
	rows, err := w.store.AuditLog(w.t.Context(), store.AuditQuery{Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	var list []string
	for _, r := range rows {
		if r.Action != "signed_in" {
			list = append(list, r.Action+" by "+r.Actor)
		}
	}
	return list
}

// Promise: a change is made only by a form of one of our own pages, of the
// same sign-in, by the owner; otherwise nothing changes.
func TestChangesAreTheOwnersOwn(t *testing.T) {
	w := newWorld(t, dash.Options{})
	w.rig("alpha", figures)
	w.packed("alpha", "pack-1", 3, 1)
	owner, other, reader := w.signedIn(w.owner), w.signedIn(w.owner), w.signedIn(w.reader)
	before := len(w.audited())
	form := func(token string) url.Values {
		return url.Values{"form": {token}, "name": {"beta"}, "role": {"owner"}, "fingerprint": {w.key(3).Fingerprint()}}
	}
	for _, path := range changes {
		for what, try := range map[string]func() reply{
			"a reader":               func() reply { return reader.post(path, form(reader.form)) },
			"no token in the form":   func() reply { return owner.post(path, form("")) },
			"another sign-in's form": func() reply { return owner.post(path, form(other.form)) },
			"another site":           func() reply { return owner.post(path, form(owner.form), "Sec-Fetch-Site", "cross-site") },
			"another site's origin":  func() reply { return owner.post(path, form(owner.form), "Origin", "https://evil.example") },
			"a sister site":          func() reply { return owner.post(path, form(owner.form), "Sec-Fetch-Site", "same-site") },
		} {
			if p := try(); p.status != http.StatusForbidden || !strings.Contains(p.body, `role="alert"`) {
				t.Errorf("%s on %s got %d: %s", what, path, p.status, p.body)
			}
		}
		if p := w.stranger().post(path, form("x")); p.status != http.StatusUnauthorized {
			t.Errorf("a stranger on %s got %d", path, p.status)
		}
		if p := owner.get(path); p.status == http.StatusOK && !slices.Contains([]string{"/rigs", "/settings/tokens", "/settings/models", "/settings/mcp-servers", "/settings/git-accesses", "/runs", aRunsPage + "/queue"}, path) {
			t.Errorf("GET %s gave a page", path)
		}
	}
	if p := w.stranger().post("/signin", url.Values{"token": {w.owner}}, "Sec-Fetch-Site", "cross-site"); p.status != http.StatusForbidden {
		t.Errorf("another site could sign the browser in: %d", p.status)
	}
	if after := w.audited(); len(after) != before {
		t.Errorf("something was changed: %v", after[:len(after)-before])
	}
	if p := reader.get("/settings/tokens"); p.status != http.StatusForbidden {
		t.Errorf("a reader sees the tokens: %d", p.status)
	}
	for _, path := range []string{"/", "/rigs", "/rigs/alpha", "/needs", "/runs", "/runs/new", "/kits", "/campaigns", "/rigs/alpha/commands", aRunsPage, aRunsPage + "/queue",
		aRunsPage + "/attempts", aRunsPage + "/attempts/1", aRunsPage + "/champions", aRunsPage + "/history"} {
		if p := reader.get(path); strings.Contains(strings.ReplaceAll(p.body, `method="post" action="/signout"`, ""), `method="post"`) {
			t.Errorf("a reader is offered a change on %s", path)
		}
	}
}

var shownToken = regexp.MustCompile(`<pre id="token" tabindex="0">([^<]+)</pre>`)

// Promise: a rig is made from the page, its token is shown once with what its
// machine must do, and the same form sent again makes no second rig.
func TestMakingARig(t *testing.T) {
	w := newWorld(t, dash.Options{})
	v := w.signedIn(w.owner)
	if p := v.get("/rigs"); !strings.Contains(p.body, "There is no rig yet") {
		t.Errorf("the empty page says %s", p.body)
	}
	form := url.Values{"name": {"workshop"}, "key": {"k1"}}
	p := v.post("/rigs", form)
	m := shownToken.FindStringSubmatch(p.body)
	if p.status != http.StatusCreated || m == nil {
		t.Fatalf("it gave %d %s", p.status, p.body)
	}
	join, err := w.service.Join(t.Context(), service.Caller{Role: service.RoleOwner})
	if err != nil || join.SigningKey == "" {
		t.Fatalf("what a rig must know: %+v, %v", join, err)
	}
	for _, want := range []string{"thermite-harness \\\n  --rig workshop", "thermite-supervisor \\\n  --rig workshop", "--control-url https://control.example:8443",
		"--nats-url tls://control.example:4222", "~/thermite-workshop/rig.token", "~/thermite-workshop/authority.pem", "BEGIN CERTIFICATE", "shown this once",
		"thermite-broker", "--broker ~/thermite-workshop/broker.sock", "--control-key ~/thermite-workshop/control.pub", "--inbox ~/thermite-workshop/inbox",
		"docs/broker.md", join.SigningKey} {
		if !strings.Contains(p.body, want) {
			t.Errorf("the page does not say %s", want)
		}
	}
	if c, err := w.service.Authenticate(t.Context(), m[1], "x"); err != nil || c.Name != "workshop" {
		t.Errorf("the token shown is %v's: %v", c, err)
	}
	if again := shownToken.FindStringSubmatch(v.post("/rigs", form).body); again == nil || again[1] != m[1] {
		t.Errorf("sent again, the form shows %v", again)
	}
	if p := v.get("/rigs/workshop"); p.status != http.StatusOK || strings.Contains(p.body, m[1]) || !strings.Contains(p.body, "This rig never called") {
		t.Errorf("the new rig's page: %d %s", p.status, p.body)
	}
	if p := v.post("/rigs/workshop/token", nil); p.status != http.StatusCreated || shownToken.FindStringSubmatch(p.body)[1] == m[1] {
		t.Errorf("a new token: %d", p.status)
	}
}

// Promise: what is wrong with a form is said on its page, with what was typed
// still there.
func TestErrorsStayWithWhatWasTyped(t *testing.T) {
	w := newWorld(t, dash.Options{})
	w.rig("alpha", figures)
	v := w.signedIn(w.owner)
	for _, c := range []struct {
		path   string
		form   url.Values
		status int
		words  []string
	}{
		{"/rigs", url.Values{"name": {"No Good <b>"}}, 422, []string{`value="No Good &lt;b&gt;"`, "alpha"}},
		{"/rigs", url.Values{"name": {"alpha"}}, 409, []string{`value="alpha"`, "a name is given once"}},
		{"/settings/tokens", url.Values{"name": {"  "}, "role": {"owner"}}, 422, []string{`value="owner" checked="checked"`}},
		{"/settings/tokens", url.Values{"name": {"wall 2"}, "role": {"king"}}, 422, []string{`value="wall 2"`}},
		{"/settings/tokens/1/revoke", nil, 409, []string{"last token"}},
		{"/settings/tokens/x/revoke", nil, 404, []string{"no token with that id"}},
		{"/rigs/alpha/report-key", url.Values{"fingerprint": {"x"}}, 409, []string{"no report key with that fingerprint waits", "alpha</h1>"}},
		{"/rigs/alpha/restore", nil, 409, []string{"not retired", "alpha</h1>"}},
		{"/rigs/nope/retire", nil, 404, []string{"there is no rig nope"}},
		{"/needs/7/seen", nil, 404, []string{"nothing with that id needs you"}},
	} {
		p := v.post(c.path, c.form)
		if p.status != c.status || !strings.Contains(p.body, `role="alert"`) {
			t.Errorf("POST %s %v gave %d", c.path, c.form, p.status)
		}
		for _, words := range c.words {
			if !strings.Contains(p.body, words) {
				t.Errorf("POST %s %v does not say %q: %s", c.path, c.form, words, p.body)
			}
		}
	}
	if p := v.get("/rigs/alpha/events?kind=No+Good&after=12x"); p.status != 422 || !strings.Contains(p.body, `value="12x"`) {
		t.Errorf("a wrong filter gave %d %s", p.status, p.body)
	}
	if p := v.get("/audit?after=x&action=rig_made"); p.status != 422 || !strings.Contains(p.body, `value="rig_made"`) {
		t.Errorf("a wrong page of the audit log gave %d %s", p.status, p.body)
	}
}

// Promise: a need is answered by its own buttons, and a rig's life by its
// page's.
func TestAnsweringAndChangingRigs(t *testing.T) {
	w := newWorld(t, dash.Options{})
	w.rig("alpha", figures)
	v := w.signedIn(w.owner)
	if p := v.get("/needs"); !strings.Contains(p.body, "Nothing needs you") {
		t.Errorf("the empty page says %s", p.body)
	}
	if err := w.rigs.AcceptFirstKey(t.Context(), "alpha", w.key(2)); err != nil {
		t.Fatal(err)
	}
	if err := w.rigs.HoldKey(t.Context(), "alpha", w.key(3)); err != nil {
		t.Fatal(err)
	}
	reader := w.signedIn(w.reader)
	for _, path := range []string{"/needs", "/rigs/alpha"} {
		if p := reader.get(path); !strings.Contains(p.body, w.key(3).Fingerprint()) || strings.Contains(p.body, "Accept the new key") {
			t.Errorf("on %s a reader sees %s", path, p.body)
		}
		if p := v.get(path); !strings.Contains(p.body, "Accept the new key") {
			t.Errorf("%s offers no answer", path)
		}
	}
	if p := v.post("/rigs/alpha/report-key", url.Values{"fingerprint": {w.key(3).Fingerprint()}}); p.status != http.StatusSeeOther {
		t.Fatalf("accepting gave %d %s", p.status, p.body)
	}
	w.reregister("alpha")
	p := v.get("/needs")
	seen := regexp.MustCompile(`action="(/needs/\d+/seen)"`).FindAllStringSubmatch(p.body, -1)
	if len(seen) != 2 {
		t.Fatalf("the new keys are %d needs: %s", len(seen), p.body)
	}
	for _, m := range seen {
		if p := v.post(m[1], nil); p.status != http.StatusSeeOther {
			t.Errorf("Seen gave %d %s", p.status, p.body)
		}
	}
	for _, step := range []string{"retire", "restore"} {
		if p := v.post("/rigs/alpha/"+step, nil); p.status != http.StatusSeeOther {
			t.Errorf("%s gave %d %s", step, p.status, p.body)
		}
	}
	got := strings.Join(w.audited(), "\n")
	for _, want := range []string{"rig_restored by owner", "rig_retired by owner", "need_seen by owner"} {
		if !strings.Contains(got, want) {
			t.Errorf("the audit log has no %q:\n%s", want, got)
		}
	}
}

// figures are what a rig's supervisor says at its registration.
var figures = wire.Figures{Relay: wire.RelayFigures{Pages: 7, LedgerLast: 9, Ledger: ledger}, Loops: map[string]wire.LoopFigures{
	"reports": {State: "working", Detail: "the bus has event 9"}, "figures": {State: "waiting"}}}
