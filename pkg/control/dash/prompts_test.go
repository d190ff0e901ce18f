package dash_test

import (
	"net/http"
	"strings"
	"testing"

	"thermite/pkg/control/dash"
	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// Promise: a run's prompts are on their tab in the order that they were told,
// a long one by its start with a link to all of it, plain whatever they say;
// and a run without any says what would be there.
func TestPromptsOfARun(t *testing.T) {
	w := newWorld(t, dash.Options{})
	w.rig("alpha", wire.Figures{})
	long := strings.Repeat("pack <b>the</b> circles\n", service.PromptStart/10)
	in := func(b wire.Body) draft { return draft{actor: "controller", run: "told-1", body: b} }
	w.publish("alpha", in(wire.RunCreated{Campaign: "c", Kit: "k", Title: "t"}), in(wire.AgentPrompt{Trial: 1, Text: long}),
		in(wire.AgentPrompt{Trial: 2, Text: "<script>alert(1)</script>"}), draft{actor: "owner", run: "untold-1", body: wire.RunCreated{Campaign: "c", Kit: "k", Title: "t"}})
	v := w.signedIn(w.owner)
	const tab = "/rigs/alpha/runs/told-1/prompts"
	p := v.get(tab)
	first, second := strings.Index(p.body, "pack &lt;b&gt;the"), strings.Index(p.body, "&lt;script&gt;alert(1)")
	if p.status != http.StatusOK || first < 0 || second < first || strings.Contains(p.body, "<script>alert") {
		t.Errorf("%d, the first at %d, the second at %d", p.status, first, second)
	}
	if len(p.body) > 3*service.PromptStart+20_000 || !strings.Contains(p.body, "all of it</a>") {
		t.Errorf("the long one is not by its start: %d bytes", len(p.body))
	}
	if p := v.get(tab + "?trial=2"); strings.Contains(p.body, "pack &lt;") || !strings.Contains(p.body, "alert(1)") {
		t.Error("a trial's prompts are not its own")
	}
	if p := v.get(tab + "?trial=x"); p.status != http.StatusNotFound {
		t.Errorf("trial x: %d", p.status)
	}
	if p := v.get(tab + "/2"); p.status != http.StatusOK || strings.Count(p.body, "pack &lt;b&gt;the") != service.PromptStart/10 {
		t.Errorf("the whole is %d with %d lines", p.status, strings.Count(p.body, "pack &lt;b&gt;the"))
	}
	if p := v.get(tab + "/1"); p.status != http.StatusNotFound {
		t.Errorf("an event that is no prompt: %d", p.status)
	}
	if p := v.get("/rigs/alpha/runs/untold-1/prompts"); p.status != http.StatusOK || !strings.Contains(p.body, "No agent of this run was told anything") {
		t.Errorf("a run without prompts: %d", p.status)
	}
}
