//go:build browser

package dash_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"thermite/pkg/control/dash"
	"thermite/pkg/wire"
)

// tab is a tab of a headless browser.
type tab struct {
	*world
	ctx context.Context

	mu sync.Mutex
	// wrong is what its console said, and asked the addresses it asked.
	wrong, asked []string
}

// browse opens a browser that is signed in as the owner by a sign-in link,
// pressing its button.
func browse(t *testing.T, w *world) *tab {
	t.Helper()
	b := open(t, w)
	code, err := w.service.MakeSignInCode(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Navigate(w.server.URL + "/signin?code=" + url.QueryEscape(code)))
	b.submit(".door button")
	if got := b.text("h1"); got != "Home" {
		t.Fatalf("the sign-in link leads to %q", got)
	}
	return b
}

// open opens a browser.
func open(t *testing.T, w *world) *tab {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		path, err = exec.LookPath("google-chrome")
	}
	if err != nil {
		t.Fatal("this test needs chromium: see TEST_NEEDS in the Makefile")
	}
	dir, err := os.MkdirTemp("", "thermite-browser-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeAll(t, dir) })
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, chromedp.ExecPath(path), chromedp.UserDataDir(dir), chromedp.Headless, chromedp.NoSandbox,
		chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.IgnoreCertErrors, chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.Flag("disable-quic", true))
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &tab{world: w, ctx: ctx}
	b.do()
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatal(err)
	}
	return b
}

// removeAll removes the browser's folder, in which it may write a while yet.
func removeAll(t *testing.T, dir string) {
	for deadline := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) {
		err := os.RemoveAll(dir)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("removing the browser's folder: %v", err)
			return
		}
	}
}

// hear takes what the browser tells.
func (b *tab) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.wrong = append(b.wrong, fmt.Sprintf("exception: %+v", e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		b.wrong = append(b.wrong, fmt.Sprintf("console: %s", e.Type))
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			b.wrong = append(b.wrong, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
		}
	case *network.EventRequestWillBeSent:
		b.asked = append(b.asked, e.Request.URL)
	}
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// text gives an element's text.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return eval[string](b, fmt.Sprintf("document.querySelector(%q).textContent.trim()", selector))
}

// press presses an element by the keyboard.
func (b *tab) press(selector string) {
	b.t.Helper()
	eval[bool](b, fmt.Sprintf("document.querySelector(%q).focus() === undefined", selector))
	b.do(chromedp.KeyEvent(kb.Enter))
}

// submit presses a form's button, and returns once the next page is there.
func (b *tab) submit(selector string) {
	b.t.Helper()
	eval[bool](b, fmt.Sprintf("document.querySelector(%q).focus() === undefined", selector))
	if _, err := chromedp.RunResponse(b.ctx, chromedp.KeyEvent(kb.Enter)); err != nil {
		b.t.Fatal(err)
	}
}

// eval gives what a script gives.
func eval[T any](b *tab, script string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](script))
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

// look sets the tab's width and colours.
func (b *tab) look(width int64, scheme string) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, 850))
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	if err != nil {
		b.t.Fatal(err)
	}
}

// until waits for what a script says.
func (b *tab) until(what, script string) {
	b.t.Helper()
	for deadline := time.Now().Add(limit); !eval[bool](b, script); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// fine holds that nothing went wrong and no other host was asked.
func (b *tab) fine() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.wrong {
		b.t.Errorf("the browser says %s", w)
	}
	for _, a := range b.asked {
		if !strings.HasPrefix(a, b.server.URL+"/") {
			b.t.Errorf("the browser asked %s", a)
		}
	}
	if len(b.asked) == 0 {
		b.t.Error("the browser asked nothing")
	}
}

// shown are the pages to look at, by the name of their picture.
var shown = []struct{ name, path string }{
	{"home", "/"}, {"needs", "/needs"}, {"rigs", "/rigs"}, {"rig", "/rigs/beta"}, {"rig-evil", "/rigs/alpha"}, {"rig-silent", "/rigs/silent"},
	{"rig-retired", "/rigs/gone"}, {"rig-run", "/rigs/beta/runs/fast-1"}, {"rig-runs", "/rigs/beta/runs"},
	{"runs", "/runs"}, {"start", "/runs/new"}, {"run", "/rigs/delta/runs/pack-1"}, {"run-evil", "/rigs/alpha/runs/evil-1"}, {"run-queue", "/rigs/delta/runs/pack-1/queue"},
	{"run-attempts", "/rigs/delta/runs/pack-1/attempts"}, {"run-attempt", "/rigs/delta/runs/pack-1/attempts/13"}, {"run-attempt-evil", "/rigs/alpha/runs/evil-1/attempts/1"},
	{"run-champions", "/rigs/delta/runs/pack-1/champions"}, {"run-prompts", "/rigs/delta/runs/pack-1/prompts"}, {"run-prompts-evil", "/rigs/alpha/runs/evil-1/prompts"}, {"run-history", "/rigs/delta/runs/pack-1/history"}, {"campaigns", "/campaigns"},
	{"campaign", "/campaigns/packing"}, {"kits", "/kits"}, {"kit", "/kits/circle-packing-26"}, {"rig-commands", "/rigs/delta/commands"},
	{"kb", "/kb"}, {"kb-search", "/kb?q=lattice"}, {"kb-item", "/kb/items/1"}, {"run-knowledge", "/rigs/delta/runs/pack-1/knowledge"},
	{"events", "/rigs/beta/events"}, {"event", "/rigs/beta/events/30"},
	{"history", "/rigs/beta/history"}, {"audit", "/audit"}, {"bus", "/metrics/bus"}, {"settings-bus", "/settings/bus"},
	{"settings-models", "/settings/models"}, {"settings-mcp", "/settings/mcp-servers"}, {"settings-git", "/settings/git-accesses"},
	{"settings-tokens", "/settings/tokens"}, {"settings-about", "/settings/about"},
}

// Promise: every page fits a screen of 360 px and one of 2,560 without
// scrolling sideways, in light and dark with text that stands out enough, and
// the browser finds nothing wrong with it. THERMITE_SHOTS has a picture of
// each put into that folder.
func TestPagesInABrowser(t *testing.T) {
	w := newWorld(t, dash.Options{})
	w.busy()
	b := browse(t, w)
	for _, page := range shown {
		b.do(chromedp.Navigate(w.server.URL + page.path))
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{360, 390, 1280, 2560} {
				b.look(width, scheme)
				if got := eval[int64](b, "document.documentElement.scrollWidth"); got > width {
					t.Errorf("%s is %d px wide at %d: %s", page.path, got, width, eval[string](b, widest))
				}
				b.picture(fmt.Sprintf("%s-%d-%s", page.name, width, scheme))
			}
			if faint := eval[[]string](b, contrasts); len(faint) > 0 {
				t.Errorf("%s, %s: %v", page.path, scheme, faint)
			}
		}
	}
	b.fine()
}

// picture keeps a picture of the page, if it is wanted.
func (b *tab) picture(name string) {
	b.t.Helper()
	dir := os.Getenv("THERMITE_SHOTS")
	if dir == "" || strings.Contains(name, "-360-") || strings.Contains(name, "-2560-dark") {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// widest names the element that reaches furthest to the right.
const widest = `(() => { let w = 0, n = ""; document.querySelectorAll("main *, header *").forEach(e => { const r = e.getBoundingClientRect().right;
	if (r > w) { w = r; n = e.tagName + "." + e.className + " to " + r + ": " + e.textContent.slice(0, 40); } }); return n; })()`

// contrasts gives the texts that stand out less than WCAG's AA asks.
const contrasts = `(() => {
	const ctx = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
	const rgb = c => { ctx.clearRect(0, 0, 1, 1); ctx.fillStyle = c; ctx.fillRect(0, 0, 1, 1); return Array.from(ctx.getImageData(0, 0, 1, 1).data); };
	const lum = c => { const [r, g, b] = c.map(v => { v /= 255; return v <= 0.03928 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4); });
		return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const ground = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] > 250) return c; } return [255, 255, 255]; };
	const faint = new Set();
	document.querySelectorAll("body *").forEach(e => {
		const own = Array.from(e.childNodes).some(n => n.nodeType === 3 && n.textContent.trim());
		if (!own || e.closest("svg,[hidden],.unseen,datalist,option,meter") || !e.getClientRects().length) return;
		const a = lum(rgb(getComputedStyle(e).color).slice(0, 3)), b = lum(ground(e).slice(0, 3));
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < 4.5) faint.add(e.tagName + "." + e.className + " " + ratio.toFixed(2));
	});
	return Array.from(faint);
})()`

// Promise: a rig's page moves by itself when an event comes, keeps where the
// person is and what they opened, and says when control does not answer.
func TestAPageMoves(t *testing.T) {
	w := newWorld(t, dash.Options{})
	w.busy()
	b := browse(t, w)
	b.do(chromedp.Navigate(w.server.URL + "/rigs/beta"))
	before := b.text("#live-figures")
	link := eval[string](b, `(() => { const a = document.querySelector('#live-runs h3 a'); a.focus(); return a.getAttribute("href"); })()`)
	b.press("#ask-retire summary")
	eval[bool](b, `document.querySelector('#live-runs h3 a').focus() === undefined`)
	w.publish("beta", draft{actor: "judge", run: "fast-2", body: wire.Advice{Title: "It came by itself", Text: "x"}})
	w.pass(3 * time.Second)
	b.until("the new event is on the page", `document.querySelector("#live-events").textContent.includes("It came by itself")`)
	if after := b.text("#live-figures"); after == before {
		t.Errorf("the figures stayed %q", after)
	}
	if !eval[bool](b, `document.getElementById("ask-retire").open`) {
		t.Error("what was opened has closed")
	}
	if got := eval[string](b, `document.activeElement.getAttribute("href") || ""`); got != link {
		t.Errorf("the focus went from %q to %q", link, got)
	}
	b.fine()
	w.server.Config.Handler = nil
	w.server.CloseClientConnections()
	w.server.Listener.Close()
	b.until("the page says that control does not answer", `!document.getElementById("stale").hidden && document.getElementById("stale").textContent.includes("does not answer")`)
}

// Promise: a page that follows a change shows by itself what came of it, with
// what the rig tells meanwhile, though a form on it is open: that form stays
// as it is, with what was typed.
func TestARunsPageFollowsAChange(t *testing.T) {
	w := newWorld(t, dash.Options{})
	w.rig("delta", figures)
	p := w.packed("delta", "pack-1", 9, 1)
	b := browse(t, w)
	b.do(chromedp.Navigate(w.server.URL + "/rigs/delta/runs/pack-1"))
	b.press("#ask-pause summary")
	eval[bool](b, `document.querySelector("#ask-pause input[name=why]").focus() === undefined`)
	b.do(chromedp.KeyEvent("for the night"))
	b.submit("#ask-pause button")
	if got := b.text("#live-command"); !strings.Contains(got, "On its way to the rig") {
		t.Fatalf("the page says %q", got)
	}
	b.press("#ask-stop summary")
	eval[bool](b, `document.querySelector("#ask-stop input[name=why]").focus() === undefined`)
	b.do(chromedp.KeyEvent("typed so far"))
	attempts := b.text("#live-figures")
	w.answers("delta", wire.CommandApplied, "")
	w.publish("delta", draft{actor: "owner", run: "pack-1", body: wire.RunPaused{Why: "for the night"}})
	p.next("delta", true)
	p.publish("delta")
	b.until("what came of it is on the page", `document.querySelector("#live-command").textContent.includes("The rig has done it")`)
	b.until("the run's state is on the page", `document.querySelector("#live-top").textContent.includes("paused")`)
	b.until("the new attempt is on the page", `document.querySelector("#live-newest").textContent.includes("`+fmt.Sprint(p.attempt)+`")`)
	if got := b.text("#live-figures"); got == attempts {
		t.Errorf("the figures stayed %q", got)
	}
	if got := eval[string](b, `document.querySelector("#ask-stop input[name=why]").value`); got != "typed so far" {
		t.Errorf("what was typed is %q", got)
	}
	b.fine()
}

// Promise: the page of a run that was just given to a rig becomes the run's
// own as soon as the rig tells of it.
func TestAStartingRunsPageBecomesTheRuns(t *testing.T) {
	w := newWorld(t, dash.Options{})
	w.rig("delta", figures)
	b := browse(t, w)
	b.do(chromedp.Navigate(w.server.URL + "/runs/new?kit=circle-packing-26"))
	b.submit("form.start > button")
	if got := b.text("main"); !strings.Contains(got, "once rig delta tells of it") {
		t.Fatalf("the page says %q", got)
	}
	run := w.pending("delta").Run
	w.publish("delta", draft{actor: "control", run: run, body: wire.RunCreated{Campaign: run, Kit: "circle-packing-26", Title: "26 circles"}})
	w.answers("delta", wire.CommandApplied, "")
	b.until("the page is the run's", `document.querySelector("#live-figures") !== null && document.querySelector("#live-command").textContent.includes("The rig has done it")`)
	b.fine()
}

// Promise: the script says times in the words that the pages come with.
func TestTheScriptSaysTimesAsThePagesDo(t *testing.T) {
	w := newWorld(t, dash.Options{})
	b := browse(t, w)
	// Each is half a unit away from where the words change.
	for _, d := range []time.Duration{90 * time.Second, 59*time.Minute + 30*time.Second, 90 * time.Minute, 47*time.Hour + 30*time.Minute,
		60 * time.Hour, 59*24*time.Hour + time.Hour, 70 * 24 * time.Hour, -90 * time.Second, -5*time.Hour - 30*time.Minute} {
		now := time.Now()
		iso := now.Add(-d).UTC().Format("2006-01-02T15:04:05.000Z")
		eval[bool](b, fmt.Sprintf(`document.getElementById("main").insertAdjacentHTML("beforeend", '<time id="tried" datetime="%s">?</time>') === undefined`, iso))
		b.until("the script says the time", `document.getElementById("tried").textContent !== "?"`)
		if got, want := eval[string](b, `(() => { const e = document.getElementById("tried"); e.remove(); return e.textContent; })()`), dash.Ago(now, now.Add(-d)); got != want {
			t.Errorf("%v: the script says %q, a page %q", d, got, want)
		}
	}
}

// Promise: everything that can be pressed can be reached and pressed by the
// keyboard alone, and shows that it has the focus.
func TestTheKeyboardReachesEverything(t *testing.T) {
	w := newWorld(t, dash.Options{})
	w.busy()
	b := browse(t, w)
	for _, page := range shown {
		b.do(chromedp.Navigate(w.server.URL + page.path))
		// Without fetch no live page swaps in parts that are not numbered.
		eval[int](b, `document.querySelectorAll("details").forEach(d => { d.open = true; }), document.querySelectorAll("a[href],button,input,select,textarea,summary").forEach((e, i) => { e.dataset.n = i; }), window.fetch = () => new Promise(() => {}), 0`)
		want := eval[[]string](b, `Array.from(document.querySelectorAll("a[href],button,input:not([type=hidden]),select,textarea,summary"))
			.filter(e => e.getClientRects().length && !e.closest("[hidden]") && !(e.type === "radio" && !e.checked)).map(e => e.dataset.n)`)
		reached := map[string]bool{}
		for range len(want) + 60 {
			b.do(chromedp.KeyEvent(kb.Tab))
			got := eval[[]string](b, `(() => { const e = document.activeElement, s = getComputedStyle(e);
				return [e.dataset.n || "", s.outlineStyle + " " + s.outlineWidth, e.tagName]; })()`)
			if got[0] != "" && strings.HasPrefix(got[1], "none") {
				t.Errorf("%s: %v has the focus and does not show it", page.path, got)
			}
			if got[2] == "BODY" && len(reached) > 0 {
				break
			}
			reached[got[0]] = true
		}
		for _, n := range want {
			if !reached[n] {
				t.Errorf("%s: Tab does not reach %s", page.path, eval[string](b, `document.querySelector("[data-n='`+n+`']").outerHTML`))
			}
		}
	}
	b.do(chromedp.Navigate(w.server.URL + "/rigs"))
	eval[bool](b, `document.querySelector("#name").focus() === undefined`)
	b.do(chromedp.KeyEvent("keyed"))
	b.submit("#name")
	if got := b.text("h1"); got != "Rig keyed is there" {
		t.Errorf("Enter on the form gave %q", got)
	}
	for _, width := range []int64{360, 390, 1280} {
		b.look(width, "light")
		if got := eval[int64](b, "document.documentElement.scrollWidth"); got > width {
			t.Errorf("the token's page is %d px wide at %d: %s", got, width, eval[string](b, widest))
		}
		b.picture(fmt.Sprintf("token-%d-light", width))
	}
	b.fine()
}

// Promise: without the script the pages show all there was, and changes work.
func TestWithoutTheScript(t *testing.T) {
	w := newWorld(t, dash.Options{})
	w.busy()
	b := browse(t, w)
	if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Navigate(w.server.URL + "/rigs/beta"))
	if b.text("#live-events") == "" {
		t.Error("the page has no events")
	}
	b.press("#ask-retire summary")
	b.submit("#ask-retire button")
	if got := b.text("#live-top"); !strings.Contains(got, "retired") {
		t.Errorf("the rig is %q", got)
	}
	b.fine()
}
