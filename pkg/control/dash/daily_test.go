package dash_test

import (
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
