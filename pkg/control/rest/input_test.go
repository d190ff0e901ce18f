package rest_test

import (
	"net/http"
	"strings"
	"testing"

	"thermite/pkg/control/rest"
	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// bad is a request that is not of its form, and the answer it must get.
type bad struct {
	name   string
	ask    ask
	status int
	code   service.Code
	// where is the location of the first of errors, if it names one.
	where string
	// says is in the words.
	says string
}

// bads are the bad inputs, with the owner's token, and with the rig a's for
// the registration.
func bads(owner, rig, reg string) []bad {
	post := func(path, body string) ask { return ask{method: "POST", path: path, token: owner, body: body} }
	get := func(path string) ask { return ask{method: "GET", path: path, token: owner} }
	with := func(a ask, k, v string) ask { a.header = map[string]string{k: v}; return a }
	register := func(body string) ask {
		return ask{method: "POST", path: "/v1/rigs/a/supervisor", token: rig, body: body}
	}
	return []bad{
		{"no body", post("/v1/rigs", ""), 415, service.CodeContentType, "header.Content-Type", "missing"},
		{"an empty body that is said to be JSON", with(post("/v1/rigs", ""), "Content-Type", "application/json"), 400, service.CodeNotJSON, "", "missing"},
		{"no JSON", post("/v1/rigs", "name=b"), 400, service.CodeNotJSON, "body", "not JSON"},
		{"JSON that ends early", post("/v1/rigs", `{"name":"b"`), 400, service.CodeNotJSON, "body", ""},
		{"something after the value", post("/v1/rigs", `{"name":"b"} {}`), 400, service.CodeNotJSON, "body", ""},
		{"a byte after the value", post("/v1/rigs", `{"name":"b"}x`), 400, service.CodeNotJSON, "body", ""},
		{"a field twice", post("/v1/rigs", `{"name":"b","name":"c"}`), 400, service.CodeNotJSON, "body", "duplicate"},
		{"text that is no UTF-8", post("/v1/rigs", "{\"name\":\"\xff\"}"), 400, service.CodeNotJSON, "body", "UTF-8"},
		{"another type of body", with(post("/v1/rigs", `{"name":"b"}`), "Content-Type", "text/plain"), 415, service.CodeContentType, "header.Content-Type", "application/json"},
		{"a form", with(post("/v1/rigs", `name=b`), "Content-Type", "application/x-www-form-urlencoded"), 415, service.CodeContentType, "header.Content-Type", ""},
		{"another charset", with(post("/v1/rigs", `{"name":"b"}`), "Content-Type", "application/json; charset=latin1"), 415, service.CodeContentType, "header.Content-Type", "UTF-8"},
		{"a body over the limit", post("/v1/rigs", `{"name":"`+strings.Repeat("b", wire.MaxBodyBytes)+`"}`), 413, service.CodeBodyTooLarge, "", "1048576"},
		{"an array", post("/v1/rigs", `[]`), 422, service.CodeInvalid, "body", "object"},
		{"null", post("/v1/rigs", `null`), 422, service.CodeInvalid, "body", ""},
		{"an unknown field", post("/v1/rigs", `{"name":"b","colour":"red"}`), 422, service.CodeInvalid, "body.colour", "unexpected"},
		{"another case of a field", post("/v1/rigs", `{"Name":"b"}`), 422, service.CodeInvalid, "body", ""},
		{"a field missing", post("/v1/rigs", `{}`), 422, service.CodeInvalid, "body", "name"},
		{"a field of another type", post("/v1/rigs", `{"name":7}`), 422, service.CodeInvalid, "body.name", "string"},
		{"a name that can't be one", post("/v1/rigs", `{"name":"B_b"}`), 422, service.CodeInvalid, "body.name", "a-z"},
		{"a name that is too long", post("/v1/rigs", `{"name":"`+strings.Repeat("b", 41)+`"}`), 422, service.CodeInvalid, "body.name", ""},
		{"a name with a line's end", post("/v1/rigs", `{"name":"b\n"}`), 422, service.CodeInvalid, "body.name", ""},
		{"a name that is taken", post("/v1/rigs", `{"name":"a"}`), 409, service.CodeRigExists, "body.name", "a"},
		{"an idempotency key that is too long", with(post("/v1/rigs", `{"name":"b"}`), "Idempotency-Key", strings.Repeat("k", 201)), 422, service.CodeInvalid, "header.Idempotency-Key", ""},
		{"an idempotency key that is not ASCII", with(post("/v1/rigs", `{"name":"b"}`), "Idempotency-Key", "kéy"), 422, service.CodeInvalid, "header.Idempotency-Key", "ASCII"},
		{"a role that is none", post("/v1/tokens", `{"role":"rig","name":"x"}`), 422, service.CodeInvalid, "body.role", "owner"},
		{"a token's name of spaces", post("/v1/tokens", `{"role":"reader","name":" "}`), 422, service.CodeInvalid, "body.name", ""},
		{"a token's name with a control character", post("/v1/tokens", `{"role":"reader","name":"\u0007"}`), 422, service.CodeInvalid, "body.name", "printable"},
		{"a fingerprint that is too short", post("/v1/rigs/a/report-key", `{"fingerprint":"A"}`), 422, service.CodeInvalid, "body.fingerprint", ""},
		{"a key that does not wait", post("/v1/rigs/a/report-key", `{"fingerprint":"AAAAAAAAAAAAAAAAAAAAAA"}`), 409, service.CodeNotWaiting, "", ""},
		{"a rig that is not there", get("/v1/rigs/none"), 404, service.CodeNoRig, "", "none"},
		{"a rig that can't be", get("/v1/rigs/No_Rig"), 404, service.CodeNoRig, "", ""},
		{"a rig's events that is not there", get("/v1/rigs/none/events"), 404, service.CodeNoRig, "", ""},
		{"a rig's history that is not there", get("/v1/rigs/none/history"), 404, service.CodeNoRig, "", ""},
		{"a rig to retire that is not there", post("/v1/rigs/none/retire", ""), 404, service.CodeNoRig, "", ""},
		{"a rig to bring back that is not retired", post("/v1/rigs/a/restore", ""), 409, service.CodeRigNotRetired, "", ""},
		{"a ledger that is not there", get("/v1/rigs/a?ledger=aaaaaaaaaaaaaaaaaaaaaaaaaa"), 404, service.CodeNoLedger, "", ""},
		{"a ledger that can't be", get("/v1/rigs/a?ledger=A"), 422, service.CodeInvalid, "query.ledger", ""},
		{"an unknown query", get("/v1/rigs?colour=red"), 422, service.CodeInvalid, "query.colour", "unknown"},
		{"a query that can't be read", get("/v1/rigs?limit=%zz"), 400, service.CodeMalformed, "query", ""},
		{"a limit that is no number", get("/v1/rigs?limit=many"), 422, service.CodeInvalid, "query.limit", ""},
		{"a limit of none", get("/v1/rigs?limit=0"), 422, service.CodeInvalid, "query.limit", ""},
		{"a limit below none", get("/v1/audit?limit=-1"), 422, service.CodeInvalid, "query.limit", ""},
		{"a limit over the most", get("/v1/audit?limit=1001"), 422, service.CodeInvalid, "query.limit", ""},
		{"a next that is none", get("/v1/audit?after=first"), 422, service.CodeInvalid, "query.after", ""},
		{"a next with a zero before it", get("/v1/audit?after=01"), 422, service.CodeInvalid, "query.after", ""},
		{"a next of rigs that is none", get("/v1/rigs?after=A"), 422, service.CodeInvalid, "query.after", ""},
		{"more events than a page has", get("/v1/rigs/a/events?limit=5001"), 422, service.CodeInvalid, "query.limit", ""},
		{"events after no place", get("/v1/rigs/a/events?after=-1"), 422, service.CodeInvalid, "query.after", ""},
		{"events after a place that is too large", get("/v1/rigs/a/events?after=9223372036854775807"), 422, service.CodeInvalid, "query.after", ""},
		{"a wait that is no time", get("/v1/rigs/a/events?wait=30"), 422, service.CodeInvalid, "query.wait", "30s"},
		{"a wait that is too long", get("/v1/rigs/a/events?wait=31s"), 422, service.CodeInvalid, "query.wait", "30s"},
		{"a wait below none", get("/v1/rigs/a/events?wait=-1s"), 422, service.CodeInvalid, "query.wait", ""},
		{"a kind that can't be", get("/v1/rigs/a/events?kind=verdict,No"), 422, service.CodeInvalid, "query.kind", ""},
		{"a run that can't be", get("/v1/rigs/a/events?run=A"), 422, service.CodeInvalid, "query.run", ""},
		{"a run that is not there", get("/v1/rigs/a/runs/none"), 404, service.CodeNoRun, "", "none"},
		{"a run that can't be", get("/v1/rigs/a/runs/No_Run"), 404, service.CodeNoRun, "", ""},
		{"a run's rig that is not there", get("/v1/rigs/none/runs/p"), 404, service.CodeNoRig, "", "none"},
		{"a run's queue that is not there", get("/v1/rigs/a/runs/none/queue"), 404, service.CodeNoRun, "", ""},
		{"a run's attempts that is not there", get("/v1/rigs/a/runs/none/attempts"), 404, service.CodeNoRun, "", ""},
		{"an attempt that is no number", get("/v1/rigs/a/runs/p/attempts/best"), 422, service.CodeInvalid, "path.attempt", ""},
		{"an attempt that is too large", get("/v1/rigs/a/runs/p/attempts/9007199254740992"), 422, service.CodeInvalid, "path.attempt", ""},
		{"a verdict that is none", get("/v1/rigs/a/runs/none/attempts?outcome=good"), 422, service.CodeInvalid, "query.outcome", ""},
		{"a state that is none", get("/v1/runs?state=gone"), 422, service.CodeInvalid, "query.state", ""},
		{"runs of a rig that is not there", get("/v1/runs?rig=none"), 404, service.CodeNoRig, "", "none"},
		{"a next of runs that is none", get("/v1/runs?after=p"), 422, service.CodeInvalid, "query.after", ""},
		{"a campaign that is not there", get("/v1/campaigns/none"), 404, service.CodeNoCampaign, "", ""},
		{"a next of campaigns that is none", get("/v1/campaigns?after=A"), 422, service.CodeInvalid, "query.after", ""},
		{"a kit that is not there", get("/v1/kits/none"), 404, service.CodeNoKit, "", "bytecount"},
		{"a command that is not there", get("/v1/commands/aaaaaaaaaaaaaaaaaaaaaaaaaa"), 404, service.CodeNoCommand, "", ""},
		{"a command that can't be", get("/v1/commands/7"), 404, service.CodeNoCommand, "", ""},
		{"a command's wait that is too long", get("/v1/commands/aaaaaaaaaaaaaaaaaaaaaaaaaa?wait=31s"), 422, service.CodeInvalid, "query.wait", "30s"},
		{"a next of commands that is none", get("/v1/commands?after=x"), 422, service.CodeInvalid, "query.after", ""},
		{"commands of a rig that is not there", get("/v1/commands?rig=none"), 404, service.CodeNoRig, "", ""},
		{"a run with no rig", post("/v1/runs", `{"kit":{"embedded":"bytecount"}}`), 422, service.CodeInvalid, "body", "rig"},
		{"a run with no kit", post("/v1/runs", `{"rig":"a"}`), 422, service.CodeInvalid, "body", "kit"},
		{"a run on a rig that is not there", post("/v1/runs", `{"rig":"none","kit":{"embedded":"bytecount"}}`), 404, service.CodeNoRig, "", "none"},
		{"a run of a kit that does not ship", post("/v1/runs", `{"rig":"a","kit":{"embedded":"none"}}`), 422, service.CodeInvalid, "body.kit.embedded", "bytecount"},
		{"a run of two kits", post("/v1/runs", `{"rig":"a","kit":{"embedded":"bytecount","git":"https://x/y","commit":"a"}}`), 422, service.CodeInvalid, "body.kit", "exactly one"},
		{"a run of a kit at no commit", post("/v1/runs", `{"rig":"a","kit":{"git":"https://x/y"}}`), 422, service.CodeInvalid, "body.kit.commit", ""},
		{"a run of a kit at another scheme", post("/v1/runs", `{"rig":"a","kit":{"git":"ftp://x/y","commit":"a"}}`), 422, service.CodeInvalid, "body.kit.git", ""},
		{"a run with a name that can't be", post("/v1/runs", `{"rig":"a","run":"No_Run","kit":{"embedded":"bytecount"}}`), 422, service.CodeInvalid, "body.run", "a-z"},
		{"a run in a campaign that can't be", post("/v1/runs", `{"rig":"a","campaign":"No_C","kit":{"embedded":"bytecount"}}`), 422, service.CodeInvalid, "body.campaign", "a-z"},
		{"a run with too many lanes", post("/v1/runs", `{"rig":"a","lanes":65,"kit":{"embedded":"bytecount"}}`), 422, service.CodeInvalid, "body.lanes", ""},
		{"a run of exec with no command", post("/v1/runs", `{"rig":"a","worker":"exec","kit":{"embedded":"bytecount"}}`), 422, service.CodeInvalid, "body.worker_args", "exec"},
		{"a budget that is too large", post("/v1/runs", `{"rig":"a","budget":{"attempts":9007199254740993},"kit":{"embedded":"bytecount"}}`), 422, service.CodeInvalid, "body.budget.attempts", ""},
		{"an order about a run that is not there", post("/v1/rigs/a/runs/none/pause", `{}`), 404, service.CodeNoRun, "", "none"},
		{"an order with no body", post("/v1/rigs/a/runs/none/pause", ""), 415, service.CodeContentType, "header.Content-Type", ""},
		{"an order with an unknown field", post("/v1/rigs/a/runs/none/stop", `{"because":"x"}`), 422, service.CodeInvalid, "body.because", ""},
		{"settings that change nothing", ask{method: "PATCH", path: "/v1/rigs/a/runs/none", token: owner, body: `{}`}, 422, service.CodeInvalid, "", "nothing to change"},
		{"settings with no lane", ask{method: "PATCH", path: "/v1/rigs/a/runs/none", token: owner, body: `{"lanes":0}`}, 422, service.CodeInvalid, "body.lanes", ""},
		{"an experiment with no title", post("/v1/rigs/a/runs/none/queue", `{"title":""}`), 422, service.CodeInvalid, "body.title", ""},
		{"an experiment that is none", post("/v1/rigs/a/runs/none/queue/0/drop", `{}`), 422, service.CodeInvalid, "path.experiment", ""},
		{"an edit of nothing", ask{method: "PATCH", path: "/v1/rigs/a/runs/none/queue/1", token: owner, body: `{}`}, 422, service.CodeInvalid, "", "nothing to edit"},
		{"a disqualification with no reason", post("/v1/rigs/a/runs/none/attempts/1/disqualify", `{"why":""}`), 422, service.CodeInvalid, "body.why", ""},
		{"a disqualification of the kit's base", post("/v1/rigs/a/runs/none/attempts/0/disqualify", `{"why":"x"}`), 422, service.CodeInvalid, "", "attempt is missing"},
		{"a message with no text", post("/v1/rigs/a/runs/none/trials/1/message", `{"text":""}`), 422, service.CodeInvalid, "body.text", ""},
		{"a need that is not there", post("/v1/needs/7/seen", ""), 404, service.CodeNoNeed, "", ""},
		{"a need that can't be", post("/v1/needs/x/seen", ""), 404, service.CodeNoNeed, "", ""},
		{"a token that is not there", ask{method: "DELETE", path: "/v1/tokens/77", token: owner}, 404, service.CodeNoToken, "", ""},
		{"the owner's last token", ask{method: "DELETE", path: "/v1/tokens/1", token: owner}, 409, service.CodeLastOwner, "", ""},
		{"a path that is none", get("/v1/rig"), 404, service.CodeNoRoute, "", "/v1/docs"},
		{"a path below none", get("/v1/rigs/a/b/c"), 404, service.CodeNoRoute, "", ""},
		{"a method that is none", ask{method: "PUT", path: "/v1/rigs", token: owner}, 405, service.CodeMethod, "", "GET, HEAD, POST"},
		{"a method that another path takes", ask{method: "DELETE", path: "/v1/rigs/a", token: owner}, 405, service.CodeMethod, "", "GET"},
		{"no token", ask{method: "GET", path: "/v1/rigs"}, 401, service.CodeNotSignedIn, "", "token"},
		{"a bad token", ask{method: "GET", path: "/v1/rigs", token: "nobodys"}, 401, service.CodeBadToken, "", ""},
		{"a token that is too long", ask{method: "GET", path: "/v1/rigs", token: strings.Repeat("x", 2000)}, 401, service.CodeBadToken, "", ""},
		{"another scheme", ask{method: "GET", path: "/v1/rigs", header: map[string]string{"Authorization": "Basic b3duZXI6"}}, 401, service.CodeNotSignedIn, "", "Bearer"},
		{"a scheme with no token", ask{method: "GET", path: "/v1/rigs", header: map[string]string{"Authorization": "Bearer"}}, 401, service.CodeBadToken, "", ""},
		{"a bad token where none is needed", ask{method: "GET", path: "/v1/health", token: "nobodys"}, 401, service.CodeBadToken, "", ""},
		{"a registration that is no JSON", register(`{`), 400, service.CodeNotJSON, "body", ""},
		{"a registration with something after it", register(reg + "x"), 400, service.CodeNotJSON, "body", ""},
		{"a registration with an unknown field", register(`{"colour":"red"}`), 422, service.CodeInvalid, "body.colour", "colour"},
		{"a registration with an unknown figure", register(`{"figures":{"colour":1}}`), 422, service.CodeInvalid, "body.figures.colour", ""},
		{"a registration with a seal key that is too short", register(`{"seal_key":"AAAA"}`), 422, service.CodeInvalid, "body.seal_key", ""},
		{"a registration with a bus key that is none", register(strings.Replace(reg, `"bus_key":"U`, `"bus_key":"X`, 1)), 422, service.CodeInvalid, "body.bus_key", ""},
		{"a registration with no keys", register(`{"figures":{"build":"x","started_at":"2026-12-01T11:00:00.000000Z","relay":{"ledger":"","cursor":0,"ledger_last":0,"pages":0,"refused":0,"last_error":""}}}`), 409, service.CodeKeysMissing, "", "keys"},
		{"a registration over the limit", register(strings.Repeat(" ", wire.MaxBodyBytes) + reg), 413, service.CodeBodyTooLarge, "", ""},
	}
}

// Promise: a bad input gets an error that names what and where, and changes
// nothing.
func TestBadInput(t *testing.T) {
	w := newWorld(t)
	rig := w.rig("a")
	var before, after service.RigList
	w.get("/v1/rigs", &before)
	for _, b := range bads(w.owner, rig, registration(t)) {
		t.Run(b.name, func(t *testing.T) {
			r := w.do(b.ask)
			p := r.problem(t)
			if r.status != b.status || p.Code != b.code {
				t.Fatalf("it is answered %d %s, not %d %s: %s", r.status, p.Code, b.status, b.code, r.body)
			}
			checkWords(t, p, b)
			if b.status == http.StatusMethodNotAllowed && r.header.Get("Allow") == "" {
				t.Errorf("405 with no Allow")
			}
		})
	}
	w.get("/v1/rigs", &after)
	if len(after.Rigs) != len(before.Rigs) {
		t.Errorf("there are %d rigs after the bad inputs, and were %d", len(after.Rigs), len(before.Rigs))
	}
}

func checkWords(t *testing.T, p rest.Problem, b bad) {
	t.Helper()
	if b.where != "" && (len(p.Errors) == 0 || p.Errors[0].Location != b.where) {
		t.Errorf("the problem is at %v, not %s", p.Errors, b.where)
	}
	if b.says != "" && !strings.Contains(p.Detail, b.says) {
		t.Errorf("the problem does not say %q: %s", b.says, p.Detail)
	}
}

// Promise: a body of just the limit is taken.
func TestBodyOfTheLimit(t *testing.T) {
	w := newWorld(t)
	body := `{"name":"b"}`
	body += strings.Repeat(" ", wire.MaxBodyBytes-len(body))
	if r := w.do(ask{method: "POST", path: "/v1/rigs", token: w.owner, body: body}); r.status != http.StatusCreated {
		t.Errorf("a body of %d bytes is answered %d %s", len(body), r.status, r.body)
	}
}

// Promise: no answer gives back what was sent in a field, which may be a
// secret put in the wrong place, nor a token.
func TestProblemsGiveNoValueBack(t *testing.T) {
	w := newWorld(t)
	secret := "SECRETSECRETSECRETSECRETSECRETSECRETSECRETSECRET"
	for _, a := range []ask{
		{method: "POST", path: "/v1/rigs", token: w.owner, body: `{"name":"` + secret + `"}`},
		{method: "POST", path: "/v1/tokens", token: w.owner, body: `{"role":"` + secret + `","name":"x"}`},
		{method: "GET", path: "/v1/rigs", token: secret},
		{method: "GET", path: "/v1/rigs?limit=" + secret, token: w.owner},
	} {
		if r := w.do(a); r.status < 400 || strings.Contains(string(r.body), secret) {
			t.Errorf("%s %s is answered %d %s", a.method, a.path, r.status, r.body)
		}
	}
	if strings.Contains(w.log.String(), secret) || strings.Contains(w.log.String(), w.owner) {
		t.Errorf("the log holds a secret")
	}
}

// Promise: every answer has the headers that keep a browser from doing
// anything with it, and the call's name in the log.
func TestHeaders(t *testing.T) {
	w := newWorld(t)
	for _, a := range []ask{
		{method: "GET", path: "/v1/health"}, {method: "GET", path: "/v1/rigs"}, {method: "GET", path: "/nothing"},
		{method: "GET", path: "/v1/docs"}, {method: "GET", path: "/v1/openapi.json"}, {method: "HEAD", path: "/v1/health"},
	} {
		r := w.do(a)
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"} {
			if got := r.header.Get(name); got != want {
				t.Errorf("%s %s: %s is %q", a.method, a.path, name, got)
			}
		}
		if r.header.Get("Content-Security-Policy") == "" || r.header.Get("Cache-Control") == "" {
			t.Errorf("%s %s has no policy or says nothing of caches", a.method, a.path)
		}
		if id := r.header.Get("X-Request-Id"); id == "" || !strings.Contains(w.log.String(), id) {
			t.Errorf("%s %s: the log does not know the call %q", a.method, a.path, id)
		}
		if a.method == "HEAD" && len(r.body) > 0 {
			t.Errorf("HEAD is answered with a body")
		}
	}
}
