package dash_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"thermite/pkg/control/dash"
	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// evil is what a rig may put in any text of its own.
const evil = `<script>alert(1)</script>"'><img src=x onerror=alert(1)>`

func ptr[T any](v T) *T { return &v }

// busy gives the world two rigs, of which one says evil things wherever it
// can, a need of each kind, a retired rig and one that never called.
func (w *world) busy() {
	w.t.Helper()
	w.rig("alpha", wire.Figures{Build: evil, Relay: wire.RelayFigures{Pages: 7, Refused: 1, LedgerLast: 90, Ledger: ledger, LastError: evil},
		Loops: map[string]wire.LoopFigures{"reports": {State: evil, Detail: evil}, "figures": {State: "waiting"}}})
	w.rig("beta", figures)
	w.rig("gone", figures)
	c, ctx := mustCaller(w.t.(*testing.T), w, w.owner), w.t.Context()
	if _, err := w.service.RetireRig(ctx, c, "gone"); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.service.MakeRig(ctx, c, service.NewRig{Name: "silent"}); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.service.MakeToken(ctx, c, service.NewToken{Role: "reader", Name: evil}); err != nil {
		w.t.Fatal(err)
	}
	if err := w.rigs.AcceptFirstKey(ctx, "alpha", w.key(2)); err != nil {
		w.t.Fatal(err)
	}
	if err := w.rigs.HoldKey(ctx, "alpha", w.key(3)); err != nil {
		w.t.Fatal(err)
	}
	w.reregister("beta")
	w.dailies("alpha")
	w.keeps("alpha")
	w.publish("alpha", evilEvents()...)
	w.ledger = earlier
	w.publish("beta", aRun("old-1", 5)...)
	w.ledger = ledger
	w.publish("beta", aRun("fast-1", 40)...)
	w.publish("beta", draft{actor: "controller", run: "fast-1", body: wire.RunEnded{Outcome: "finished", Why: "its budget is used"}})
	w.publish("beta", aRun("fast-2", 7)...)
	w.rig("delta", figures)
	w.packed("delta", "pack-1", 26, 1)
	w.packed("delta", "pack-2", 4, 2)
	w.learned()
}

// evilEvents are one of each kind, evil in every text.
func evilEvents() []draft {
	const run = "evil-1"
	in := func(actor string, b wire.Body) draft { return draft{actor: actor, run: run, subject: evil, body: b} }
	return []draft{
		{actor: "controller", subject: evil, body: wire.LedgerOpened{Why: evil}},
		{actor: "controller", subject: evil, body: wire.RigCheck{Items: []wire.RigCheckItem{{Name: evil, Why: evil}}}},
		in("owner", wire.RunCreated{Campaign: evil, Kit: evil, KitVersion: evil, Title: evil, Worker: evil, Lanes: 2,
			Metric: &wire.Metric{Name: evil, Unit: evil, Direction: "max", Bound: ptr(9.0)}, Budget: &wire.Budget{Attempts: 9}}),
		in("owner", wire.RunSettings{Title: ptr(evil), Worker: ptr(evil)}),
		in("planner", wire.Queue{Op: "added", Experiment: 1, Title: evil, Text: evil, Why: evil}),
		in("planner", wire.Queue{Op: "added", Experiment: 2, Title: evil, Proposed: true, Why: evil}),
		in("planner", wire.Queue{Op: "added", Experiment: 3, Title: evil, Why: evil}),
		in("controller", wire.Queue{Op: "assigned", Experiment: 1, Lane: 1, Trial: 1, Why: evil}),
		in("lane:1", wire.TrialStarted{Trial: 1, Lane: 1, Experiment: 1, Worker: evil}),
		in("lane:1", wire.AgentPrompt{Trial: 1, Text: evil}),
		in("trial:1", wire.ModelCall{Trial: 1, Model: evil, Failed: evil}),
		in("trial:1", wire.Attempt{Attempt: 1, Trial: 1, Lane: 1, Title: evil, Files: 1, Added: 2}),
		in("judge", wire.Build{Step: wire.Step{Attempt: 1, Why: evil}}),
		in("judge", wire.Verdict{Attempt: 1, Outcome: "promoted", Score: ptr(1.5), Why: evil}),
		in("judge", wire.Champion{Attempt: 1, Score: ptr(1.5), Why: evil}),
		in("owner", wire.Disqualified{Attempt: 1, Why: evil}),
		in("advisor:critic", wire.Advice{Title: evil, Text: evil}),
		in("trial:1", wire.Source{Title: evil, URL: "javascript:alert(1)", Text: evil}),
		in("trial:1", wire.Document{Title: evil, Text: evil}),
		in("owner", wire.RunPaused{Why: evil}),
	}
}

// aRun is a run that went on for n attempts.
func aRun(run string, n uint64) []draft {
	in := func(actor string, b wire.Body) draft { return draft{actor: actor, run: run, body: b} }
	list := []draft{in("owner", wire.RunCreated{Campaign: "speed", Kit: "bytecount", Title: "Count bytes faster", Worker: "codex", Lanes: 1,
		Metric: &wire.Metric{Name: "wall", Unit: "ms", Direction: "min"}})}
	best := 900.0
	for i := uint64(1); i <= n; i++ {
		v := 900 - float64(i*37%100) - float64(i)*9
		list = append(list, in("trial:1", wire.Attempt{Attempt: i, Trial: 1, Lane: 1, Title: "read with mmap"}))
		outcome := "not_better"
		if v < best {
			best, outcome = v, "promoted"
		}
		list = append(list, in("judge", wire.Verdict{Attempt: i, Outcome: outcome, Score: &v, Why: "so"}))
		if outcome == "promoted" {
			list = append(list, in("judge", wire.Champion{Attempt: i, Score: &v}))
		}
	}
	return list
}

// pages are where a crawl starts: each page that no link need lead to.
var pages = []string{"/", "/needs", "/rigs", "/rigs/alpha", "/rigs/beta", "/rigs/gone", "/rigs/silent", "/rigs/alpha/runs/evil-1",
	"/rigs/beta/runs/fast-1", "/runs", "/runs?rig=beta&state=ended", "/runs/new", "/campaigns", "/campaigns/packing", "/campaigns/none", "/kits", "/kits/none", "/kb", "/kb?q=lattice", "/kb?q=no+such+words+lattice", "/kb?q=nothing", "/kb?collection=packing&run=pack-1", "/kb/items/none", "/kb/items/9999",
	"/rigs/delta/runs/pack-1/knowledge", "/rigs/delta/runs/pack-1/knowledge?q=lattice",
	"/rigs/delta/runs/pack-1", "/rigs/delta/runs/pack-1/attempts/0", "/rigs/delta/runs/pack-1/attempts/none", "/rigs/delta/runs/pack-1/attempts/9999", "/rigs/delta/commands",
	"/rigs/alpha/events", "/rigs/beta/events?kind=verdict&run=fast-1&after=0", "/rigs/alpha/events/5", "/rigs/alpha/history", "/rigs/alpha/daily/2026-11-30", "/rigs/silent/daily", "/rigs/alpha/space", "/rigs/silent/space", "/rigs/beta/runs", "/rigs/silent/runs",
	"/audit", "/metrics/bus", "/settings/bus", "/settings/models", "/settings/mcp-servers", "/settings/git-accesses", "/settings/tokens", "/settings/about", "/no/such/page", "/rigs/none", "/rigs/alpha/events/77777",
	"/rigs/alpha/runs/none", "/rigs/alpha?ledger=none", "/rigs/alpha?ledger=aaaaaaaaaaaaaaaaaaaaaaaaab"}

var digits = regexp.MustCompile(`[0-9]+`)

// mostAlike is how many pages are looked at of those alike.
const mostAlike = 40

var linksOf = regexp.MustCompile(`(?:href|src|action)="([^"]*)"`)

// Promise: every page, and every page that a link on one leads to, is there,
// is well-formed, asks nothing of another host, and lets no script of another
// in.
func TestEveryPage(t *testing.T) {
	w := newWorld(t, dash.Options{})
	w.busy()
	v := w.signedIn(w.owner)
	elsewhere := []string{"/v1/docs"} // what REST answers
	seen, alike, queue, checked := map[string]bool{}, map[string]int{}, slices.Clone(pages), 0
	for len(queue) > 0 && checked < 2000 {
		path := queue[0]
		queue = queue[1:]
		if seen[path] || slices.Contains(elsewhere, path) {
			continue
		}
		seen[path] = true
		checked++
		p := v.get(path)
		want := http.StatusOK
		switch {
		case path == "/settings":
			want = http.StatusSeeOther
		case strings.Contains(path, "none") || strings.Contains(path, "/no/") || strings.Contains(path, "77777") || strings.Contains(path, "/9999") || strings.Contains(path, "aaaab"):
			want = http.StatusNotFound
		}
		if path == "/rigs/alpha?ledger=none" {
			want = http.StatusUnprocessableEntity
		}
		if p.status != want {
			t.Errorf("%s: %d, want %d", path, p.status, want)
		}
		checkHeaders(t, path, p)
		if !strings.HasPrefix(p.header.Get("Content-Type"), "text/html") {
			continue
		}
		checkPage(t, path, p.body)
		for _, m := range linksOf.FindAllStringSubmatch(p.body, -1) {
			to := html.UnescapeString(m[1])
			if u, err := url.Parse(to); err != nil || u.Host != "" || u.Scheme != "" {
				t.Errorf("%s leads to %q", path, to)
			}
			if strings.HasPrefix(to, "#") || strings.Contains(m[0], "action=") {
				continue
			}
			to, _, _ = strings.Cut(to, "#")
			// Pages that only a number tells apart need not all be looked at.
			if kind := digits.ReplaceAllString(to, "0"); !seen[to] && alike[kind] < mostAlike {
				alike[kind]++
				queue = append(queue, to)
			}
		}
	}
	for _, path := range []string{"/rigs/beta?ledger=" + earlier, "/rigs/beta/runs/old-1?ledger=" + earlier, "/rigs/beta/minutes.csv?ledger=" + earlier} {
		if !seen[path] {
			t.Errorf("no link leads to %s", path)
		}
	}
	if checked < 60 {
		t.Errorf("only %d pages were found", checked)
	}
}

// checkHeaders holds what every answer has.
func checkHeaders(t *testing.T, path string, p reply) {
	t.Helper()
	policy := p.header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "style-src 'self'", "script-src 'self'", "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("%s: the policy %q has no %s", path, policy, want)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") || strings.Contains(policy, "*") {
		t.Errorf("%s: the policy is %q", path, policy)
	}
	if p.header.Get("X-Content-Type-Options") != "nosniff" || p.header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("%s: headers %v", path, p.header)
	}
	if cache := p.header.Get("Cache-Control"); cache != "no-store" && !strings.HasPrefix(path, "/static/") {
		t.Errorf("%s: Cache-Control %q", path, cache)
	}
}

// inline finds a script or style in a page.
var inline = regexp.MustCompile(`(?i)<[^>]*\s(style|on[a-z]+)\s*=|<style|<script(?:\s[^>]*)?>[^<]`)

// checkPage holds what every page is: well-formed, with one main heading, a
// language, a title and landmarks, each id once, a label for each field, and
// no script or style in it.
func checkPage(t *testing.T, path, body string) {
	t.Helper()
	ids, labels, fields, h1 := map[string]bool{}, map[string]bool{}, []string{}, 0
	d := xml.NewDecoder(strings.NewReader(strings.TrimPrefix(body, "<!DOCTYPE html>")))
	d.Entity = xml.HTMLEntity
	var inside []string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Errorf("%s is not well-formed: %v", path, err)
			return
		}
		switch e := token.(type) {
		case xml.EndElement:
			inside = inside[:len(inside)-1]
		case xml.StartElement:
			a := map[string]string{}
			for _, attr := range e.Attr {
				a[attr.Name.Local] = attr.Value
				if attr.Name.Local == "style" || strings.HasPrefix(attr.Name.Local, "on") {
					t.Errorf("%s: <%s %s=%q>", path, e.Name.Local, attr.Name.Local, attr.Value)
				}
			}
			if id := a["id"]; id != "" && ids[id] {
				t.Errorf("%s has the id %s twice", path, id)
			}
			ids[a["id"]] = true
			switch e.Name.Local {
			case "h1":
				h1++
			case "label":
				labels[a["for"]] = true
			case "script", "style", "img", "iframe", "object":
				if src := a["src"]; !strings.HasPrefix(src, "/static/") {
					t.Errorf("%s has <%s src=%q>", path, e.Name.Local, src)
				}
			case "input", "select", "textarea":
				if a["type"] != "hidden" && !slices.Contains(inside, "label") {
					fields = append(fields, a["id"])
				}
			case "form":
				if a["method"] == "post" && a["action"] == "" {
					t.Errorf("%s has a form to nowhere", path)
				}
			}
			inside = append(inside, e.Name.Local)
		}
	}
	if h1 != 1 || !ids["main"] || !strings.Contains(body, `<html lang="en">`) || !strings.Contains(body, "· Thermite</title>") {
		t.Errorf("%s has %d headings, main: %v", path, h1, ids["main"])
	}
	for _, f := range fields {
		if f == "" || !labels[f] {
			t.Errorf("%s: the field %q has no label", path, f)
		}
	}
	if found := inline.FindString(strings.ReplaceAll(body, html.EscapeString(evil), "")); found != "" {
		t.Errorf("%s holds %q", path, found)
	}
	if strings.Contains(body, "<script>alert") || strings.Contains(body, "<img") {
		t.Errorf("%s lets a rig's script in", path)
	}
	if strings.Contains(body, "ZgotmplZ") || strings.Contains(body, "%!") || strings.Contains(body, "<no value>") {
		t.Errorf("%s has a template's mistake", path)
	}
}

// Promise: a rig's own words show as they are, as text.
func TestARigsWordsAreText(t *testing.T) {
	w := newWorld(t, dash.Options{})
	w.busy()
	v := w.signedIn(w.owner)
	for _, path := range []string{"/", "/rigs", "/rigs/alpha", "/rigs/alpha/runs/evil-1", "/rigs/alpha/events", "/rigs/alpha/events/3", "/settings/tokens", "/audit"} {
		body := v.get(path).body
		if !strings.Contains(html.UnescapeString(body), "<script>alert(1)</script>") || strings.Contains(body, "<script>alert(1)") {
			t.Errorf("%s: %s", path, body)
		}
	}
	p := v.get("/rigs/alpha/events/3?form=json")
	if p.header.Get("Content-Type") != "application/json" || !strings.Contains(p.body, `"kind":"run_created"`) {
		t.Errorf("the event's JSON: %v %s", p.header, p.body)
	}
}

// Promise: an empty page says what the thing is and how to make the first.
func TestEmptyPages(t *testing.T) {
	w := newWorld(t, dash.Options{})
	v := w.signedIn(w.owner)
	for path, words := range map[string]string{
		"/":      "A rig is a machine that does the work",
		"/rigs":  "Give the first one a name below",
		"/needs": "What waits for a decision of the owner shows here",
		"/audit": "", "/metrics/bus": "is where one is added",
	} {
		p := v.get(path)
		checkPage(t, path, p.body)
		if !strings.Contains(p.body, words) {
			t.Errorf("%s says nothing of how to begin: %s", path, p.body)
		}
	}
	w.rig("alpha", figures)
	for path, words := range map[string]string{
		"/rigs/alpha": "A run is a search for a better program", "/rigs/alpha/events": "Events come once", "/": "No run is under way",
		"/rigs/alpha/history?after=1": "There is nothing more",
	} {
		if p := v.get(path); !strings.Contains(p.body, words) {
			t.Errorf("%s says nothing of how to begin: %s", path, p.body)
		}
	}
}

// Promise: a bus that is away shows as that, and the pages stay.
func TestTheBusIsAway(t *testing.T) {
	w := newWorld(t, dash.Options{})
	w.busy()
	v := w.signedIn(w.owner)
	w.bus.set(func(b *busState) { b.link, b.server = service.Link{State: service.LinkAway, Error: "no route"}, nil })
	w.pass(2 * time.Second) // the last answer is kept for one
	for path, words := range map[string]string{"/": "Control is degraded", "/metrics/bus": "The server does not answer", "/rigs/alpha": "alpha</h1>", "/settings/bus": "away"} {
		p := v.get(path)
		checkPage(t, path, p.body)
		if p.status != http.StatusOK || !strings.Contains(p.body, words) {
			t.Errorf("%s: %d %s", path, p.status, p.body)
		}
	}
}

// Promise: the charts' data is there as CSV, and so are their words.
func TestChartsHaveTheirData(t *testing.T) {
	w := newWorld(t, dash.Options{})
	w.busy()
	v := w.signedIn(w.owner)
	for path, want := range map[string]string{
		"/rigs/beta/minutes.csv":            "minute,events\n",
		"/rigs/beta/hours.csv":              "hour,events\n",
		"/rigs/beta/runs/fast-1/scores.csv": "seq,time,attempt,outcome,score,low,high,disqualified,replaced,best\n",
	} {
		p := v.get(path)
		if p.status != http.StatusOK || !strings.HasPrefix(p.body, want) || !strings.HasPrefix(p.header.Get("Content-Type"), "text/csv") {
			t.Errorf("%s: %d %v %s", path, p.status, p.header, p.body)
		}
	}
	rows := strings.Split(strings.TrimSpace(v.get("/rigs/beta/runs/fast-1/scores.csv").body), "\n")
	if len(rows) != 41 || !strings.HasSuffix(rows[1], ",854,,,false,false,854") {
		t.Errorf("%d rows, the first %s", len(rows), rows[1])
	}
	body := v.get("/rigs/beta/runs/fast-1").body
	for _, want := range []string{`role="img"`, "<title>Score over the attempts of fast-1: 40 attempts with a score, the best", "wall, ms (lower is better)", "attempts judged with a score"} {
		if !strings.Contains(body, want) {
			t.Errorf("the chart has no %q", want)
		}
	}
}

// Promise: a page that reads events goes from the first to the last, each
// once.
func TestPagesOfEvents(t *testing.T) {
	w := newWorld(t, dash.Options{})
	w.rig("beta", figures)
	w.publish("beta", aRun("fast-1", 150)...)
	v := w.signedIn(w.owner)
	row := regexp.MustCompile(`href="/rigs/beta/events/(\d+)"`)
	next := regexp.MustCompile(`rel="next" href="([^"]+)">Next events`)
	path, n := "/rigs/beta/events", 0
	for range 20 {
		body := v.get(path).body
		for _, m := range row.FindAllStringSubmatch(body, -1) {
			if n++; m[1] != fmt.Sprint(n) {
				t.Fatalf("%s has event %s, where %d follows", path, m[1], n)
			}
		}
		m := next.FindStringSubmatch(body)
		if m == nil {
			break
		}
		path = html.UnescapeString(m[1])
	}
	if uint64(n) != w.last {
		t.Errorf("the pages had %d events, of %d", n, w.last)
	}
	body := v.get("/rigs/beta/events?kind=champion").body
	if strings.Contains(body, ">verdict<") || !strings.Contains(body, ">champion<") {
		t.Errorf("the filter shows %s", body)
	}
}

// Promise: files beside the pages have their content in their name and may be
// kept; others are not there.
func TestStaticFiles(t *testing.T) {
	w := newWorld(t, dash.Options{})
	v := w.stranger()
	for _, m := range regexp.MustCompile(`"(/static/[^"]+)"`).FindAllStringSubmatch(v.get("/signin").body, -1) {
		p := v.get(m[1])
		if p.status != http.StatusOK || !strings.Contains(p.header.Get("Cache-Control"), "immutable") || p.header.Get("Content-Type") == "" {
			t.Errorf("%s: %d %v", m[1], p.status, p.header)
		}
		if strings.Contains(p.body, "//cdn") || regexp.MustCompile(`url\(|@import|https?://(?:[^w]|w[^w])`).MatchString(p.body) {
			t.Errorf("%s asks something of elsewhere", m[1])
		}
	}
	for _, path := range []string{"/static/style.css", "/static/", "/static/..%2fembed.go"} {
		if p := v.get(path); p.status == http.StatusOK {
			t.Errorf("%s: %d", path, p.status)
		}
	}
}
