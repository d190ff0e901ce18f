package dash_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"thermite/pkg/control/dash"
	"thermite/pkg/wire"
)

// dailies gives the rig two daily reports: one evil wherever it can, and one
// as supervisors make them.
func (w *world) dailies(rig string) {
	w.t.Helper()
	for day, text := range map[string]string{
		"2026-11-29": "no heading <b onclick=x>bold</b>\n\n# a\n\n# b\n\n" + evil + "\n\n[a](javascript:alert(1)) ![b](http://x/y.png) <style>x</style>\n\n```\n</pre><script>\n```\n",
		"2026-11-30": "# " + rig + ", 2026-11-30\n\nFrom 2026-11-30 00:00 UTC to 2026-12-01 00:00 UTC, from ledger `ledger0000000000000000000a`.\n\n" +
			"| What | How many |\n|---|---:|\n| Events | 1204 |\n| Runs with events | 1 |\n| Attempts | 88 |\n| New champions | 3 |\n\n" +
			"## Run pack26\n\nIt began: Twenty-six circles, with the kit circle-packing-26.\n\n4 trials began, of which ended: 2 done, 1 failed.\n\n" +
			"| Champion | Score | At | What |\n|---|---:|---|---|\n| the kit's base | 2.5 | 12:00:00 |  |\n| attempt 7 | 2.61 | 13:10:21 | restarts from a hexagonal grid, with the radii of the best one so far |\n\n" +
			"- trial 3, failed: its worker ended with 2\n\n## Commands\n\n3 applied, 1 not applied, 0 rejected.\n\n- run.pause was not applied: run x has ended\n",
	} {
		from, err := time.Parse(time.DateOnly, day)
		if err != nil {
			w.t.Fatal(err)
		}
		to := from.Add(24 * time.Hour)
		if _, err := w.daily.Take(w.t.Context(), rig, wire.DailyAsk{Nonce: "n", Day: day, Ledger: ledger, From: wire.At(from), To: wire.At(to), MadeAt: wire.At(to), Text: text}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// Promise: a daily report shows as its Markdown says, and nothing that a rig
// puts in it is more than text.
func TestDailyReports(t *testing.T) {
	w := newWorld(t, dash.Options{})
	w.busy()
	v := w.signedIn(w.reader)
	newest := v.get("/rigs/alpha/daily").body
	for _, want := range []string{"<h1>alpha, 2026-11-30</h1>", `<td align="right">1204</td>`, "<h2>Run pack26</h2>", "<li>trial 3, failed: its worker ended with 2</li>",
		`href="/rigs/alpha/daily/2026-11-29"`} {
		if !strings.Contains(newest, want) {
			t.Errorf("the newest has no %s", want)
		}
	}
	bad := v.get("/rigs/alpha/daily/2026-11-29").body
	article := bad[strings.Index(bad, "<article"):strings.Index(bad, "</article>")]
	for _, no := range []string{"<script", "<img", "<b", "onclick=", "<a ", "<style", "javascript", "<h1"} {
		if strings.Contains(article, no) {
			t.Errorf("an evil report has %s:\n%s", no, article)
		}
	}
	if p := v.get("/rigs/silent/daily"); !strings.Contains(p.body, "has sent no daily report yet") {
		t.Errorf("a rig without one: %s", p.body)
	}
	if p := v.get("/rigs/alpha/daily/2026-13-01"); p.status != 422 {
		t.Errorf("a day that is none: %d", p.status)
	}
	if p := v.get("/rigs/alpha/daily/2026-01-01"); p.status != 404 {
		t.Errorf("a day without a report: %d", p.status)
	}
}

// keeps has the rig say what it keeps.
func (w *world) keeps(rig string) {
	w.t.Helper()
	at := wire.At(w.now().Add(-time.Hour))
	r := wire.NewSpaceReport(ledger, at, []wire.SpaceItem{
		{Kind: wire.SpaceBuild, Run: "evil-1", Name: evil, At: at, Bytes: 41 << 20, Files: 300, Champion: true},
		{Kind: wire.SpaceSetup, Run: "evil-1", Name: "kit-9f8e7d6c5b4a39281706f5e4", At: at, Bytes: 120 << 20, Files: 4100, Open: true},
		{Kind: wire.SpaceRepository, Name: "ledger-old-1", At: at, Bytes: 3 << 20, Files: 40},
		{Kind: wire.SpacePatches, Name: "of attempts that did not win", At: at, Bytes: 9 << 20, Files: 900},
	})
	r.DiskBytes, r.DiskFree = 100<<30, 12<<30
	if err := w.space.Take(w.t.Context(), rig, r); err != nil {
		w.t.Fatal(err)
	}
}

// Promise: a rig's space page says what it keeps, and its button has the rig
// remove the kinds that were chosen; a reader has no button.
func TestSpaceOfARig(t *testing.T) {
	w := newWorld(t, dash.Options{})
	w.busy()
	owner, reader := w.signedIn(w.owner), w.signedIn(w.reader)
	page := reader.get("/rigs/alpha/space").body
	for _, want := range []string{"a champion needs it", "its run is open", "it can go", "173 MiB", "12.0 MiB"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if strings.Contains(page, "space/remove") {
		t.Error("a reader has the button")
	}
	if p := owner.post("/rigs/alpha/space/remove", url.Values{}); p.status != 422 || !strings.Contains(p.body, "choose at least one kind") {
		t.Errorf("no kind: %d", p.status)
	}
	p := owner.post("/rigs/alpha/space/remove", url.Values{"kind": {wire.SpacePatches, wire.SpaceRepository, "nonsense"}, "why": {"room"}, "key": {"k1"}})
	if p.status != 303 || !strings.HasPrefix(p.header.Get("Location"), "/rigs/alpha/space?command=") {
		t.Fatalf("freeing space: %d %s", p.status, p.header.Get("Location"))
	}
	c := w.pending("alpha")
	if c.Kind != wire.CommandSpaceRemove || string(c.Args) != `{"kinds":["repository","patches"],"why":"room"}` {
		t.Errorf("the command is %s %s", c.Kind, c.Args)
	}
	if p := owner.get(p.header.Get("Location")); !strings.Contains(p.body, "On its way to the rig") {
		t.Errorf("the page after it: %s", p.body)
	}
}
