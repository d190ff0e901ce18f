package mcp_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"thermite/pkg/control/service"
)

// Promise: a cursor leads through all of a list and of a long text, each part
// of it once.
func TestACursorLeadsThroughAll(t *testing.T) {
	w := newWorld(t)
	s := w.connect(w.reader)
	var numbers []uint64
	for after := ""; ; {
		l := got[service.AttemptList](w, s, "list_attempts", onRun(args{"limit": 7, "after": after}))
		for _, a := range l.Attempts {
			numbers = append(numbers, a.Attempt)
		}
		if after = l.Next; after == "" {
			break
		}
	}
	if len(numbers) != 30 || numbers[0] != 30 || numbers[29] != 1 {
		t.Errorf("the attempts are %v", numbers)
	}
	var ideas []string
	for after := 0; ; {
		l := got[struct {
			Waiting []service.Experiment `json:"waiting"`
			Next    string               `json:"next"`
		}](w, s, "list_queue", onRun(args{"limit": 10, "after": after}))
		for _, x := range l.Waiting {
			ideas = append(ideas, x.Title)
		}
		if l.Next == "" {
			break
		}
		after += 10
	}
	if len(ideas) != 39 || ideas[0] != "Idea 2" || ideas[38] != "Idea 40" {
		t.Errorf("the queue is %v", ideas)
	}
	if d := cmp.Diff(longDiff, w.parts(s, "attempt_patch", onRun(args{"attempt": 7}), "diff")); d != "" {
		t.Errorf("the patch is another: %.300s", d)
	}
	found := got[service.KBItemList](w, s, "kb_list", args{"run": "pack26", "slot": "trial-1"})
	if len(found.Items) != 1 {
		t.Fatalf("the trial wrote %+v", found.Items)
	}
	if d := cmp.Diff(longItem, w.parts(s, "kb_read", args{"id": found.Items[0].ID}, "text")); d != "" {
		t.Errorf("the item is another: %.300s", d)
	}
	if d := cmp.Diff(longPrompt, w.parts(s, "prompt", onRun(args{"seq": 5}), "text")); d != "" {
		t.Errorf("the prompt is another: %.300s", d)
	}
}

// parts reads a long text part by part.
func (w *world) parts(s *sdk.ClientSession, tool string, a args, field string) string {
	w.t.Helper()
	var b strings.Builder
	for n := 0; n < 100; n++ {
		m := got[map[string]any](w, s, tool, a)
		b.WriteString(m[field].(string))
		next, more := m["next"]
		if !more {
			return b.String()
		}
		a["after"] = next
	}
	w.t.Fatalf("%s never ends", tool)
	return ""
}

// Promise: a run's prompts are its own, in the order that they were told, and
// never those of another rig's run of the same name.
func TestPromptsAreTheRunsOwn(t *testing.T) {
	w := newWorld(t)
	s := w.connect(w.reader)
	l := got[service.PromptList](w, s, "list_prompts", onRun(nil))
	var texts []string
	for _, p := range l.Prompts {
		texts = append(texts, p.Text[:min(17, len(p.Text))])
	}
	if d := cmp.Diff([]string{"Pack the circles,", "Plan what to try.", "Go on."}, texts); d != "" {
		t.Error(d)
	}
	if p := l.Prompts[0]; !p.Clipped || p.Bytes != uint64(len(longPrompt)) || p.Trial != 1 || p.Actor != "controller" || p.Seq != 5 {
		t.Errorf("the first is %+v", p)
	}
	if l := got[service.PromptList](w, s, "list_prompts", onRun(args{"trial": 1, "limit": 1})); len(l.Prompts) != 1 || l.Next == "" {
		t.Errorf("the first of the trial is %+v", l)
	} else if l := got[service.PromptList](w, s, "list_prompts", onRun(args{"trial": 1, "after": l.Next})); len(l.Prompts) != 1 || l.Prompts[0].Text != "Go on." || l.Next != "" {
		t.Errorf("the rest of the trial is %+v", l)
	}
	if l := got[service.PromptList](w, s, "list_prompts", args{"rig": "attic", "run": "pack26"}); len(l.Prompts) != 1 || l.Prompts[0].Text != "the other rig's" {
		t.Errorf("the other rig's are %+v", l)
	}
	// The same place, asked for by the other rig's run.
	if _, text, failed := w.call(s, "prompt", args{"rig": "attic", "run": "pack26", "seq": 5}); !failed || !strings.Contains(text, "no_prompt") {
		t.Errorf("another rig's prompt: %s", text)
	}
}

// orders are calls of every tool that gives a rig a command, with its kind.
var orders = []struct {
	tool, kind string
	args       args
}{
	{"start_run", "run.assign", args{"rig": "workshop", "run": "new", "kit": args{"embedded": "circle-packing-26"}}},
	{"change_run", "run.settings", onRun(args{"lanes": 2})},
	{"pause_run", "run.pause", onRun(args{"why": "for a while"})},
	{"resume_run", "run.resume", onRun(nil)},
	{"stop_run", "run.stop", onRun(nil)},
	{"queue_add", "queue.add", onRun(args{"title": "Hexagons", "text": "Start from hexagons.", "position": 1})},
	{"queue_move", "queue.move", onRun(args{"experiment": 2, "position": 1})},
	{"queue_edit", "queue.edit", onRun(args{"experiment": 2, "title": "Another"})},
	{"queue_drop", "queue.drop", onRun(args{"experiment": 2})},
	{"message_trial", "trial.message", onRun(args{"trial": 1, "text": "Try smaller steps"})},
	{"stop_trial", "trial.stop", onRun(args{"trial": 1})},
	{"disqualify_attempt", "attempt.disqualify", onRun(args{"attempt": 7, "why": "it reads the clock"})},
	{"remove_space", "space.remove", args{"rig": "workshop", "kinds": []string{"build"}}},
	{"rejudge_attempt", "attempt.rejudge", onRun(args{"attempt": 7})},
}

// done is what a tool that changes something answers.
type done struct {
	Did     string          `json:"did"`
	Command service.Command `json:"command"`
}

// Promise: a tool that changes something gives the rig the one command that
// it names, says so in words, and with a key does it once.
func TestAChangeSaysWhatItDid(t *testing.T) {
	w := newWorld(t)
	s := w.connect(w.owner)
	tools := toolsOf(t, s)
	for i, o := range orders {
		o.args["idempotency_key"] = "once"
		raw, text, failed := w.call(s, o.tool, o.args)
		if failed {
			t.Errorf("%s: %s", o.tool, text)
			continue
		}
		if err := fits(tools[o.tool].OutputSchema, raw); err != nil {
			t.Errorf("%s does not answer as its schema says: %v\n%s", o.tool, err, raw)
		}
		first, again := got[done](w, s, o.tool, o.args), got[done](w, s, o.tool, o.args)
		if c := first.Command; c.Kind != o.kind || c.Rig != "workshop" || c.ID != again.Command.ID || c.By != "owner" {
			t.Errorf("%s became %+v, then %s", o.tool, c, again.Command.ID)
		}
		if !strings.Contains(text, "Rig workshop was told: "+o.kind) || !strings.Contains(text, first.Command.ID) {
			t.Errorf("%s says %q", o.tool, text)
		}
		if list := got[service.CommandList](w, s, "list_commands", nil); len(list.Commands) != i+1 {
			t.Errorf("after %s there are %d commands", o.tool, len(list.Commands))
		}
		if c := got[service.Command](w, s, "command", args{"id": first.Command.ID}); c.Kind != o.kind {
			t.Errorf("%s is %+v", o.tool, c)
		}
	}
	if d := got[done](w, s, "kb_open_close", args{"collection": "packing", "state": "closed"}); d.Did != "The collection packing is closed." {
		t.Errorf("closed: %+v", d)
	}
	list := got[service.CommandList](w, s, "list_commands", nil)
	if d := got[done](w, s, "cancel_command", args{"id": list.Commands[0].ID}); d.Command.State != service.CommandCancelled || !strings.Contains(d.Did, "taken back") {
		t.Errorf("cancelled: %+v", d)
	}
	if log := w.said.String(); !strings.Contains(log, "tool=pause_run") {
		t.Errorf("the log does not say who changed something")
	}
}

// Promise: resources are what the tools of the same name show, and one that
// is not there is not found.
func TestResources(t *testing.T) {
	w := newWorld(t)
	s := w.connect(w.reader)
	for uri, has := range map[string]string{
		"thermite://kits/circle-packing-26":      `"statement":`,
		"thermite://runs/workshop/pack26":        `"run":"pack26"`,
		"thermite://attempts/workshop/pack26/30": `"title":"Attempt 30"`,
		"thermite://patches/workshop/pack26/7":   "+é and more of it",
		"thermite://items/1":                     `"collection":"packing"`,
	} {
		r, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		if err != nil || len(r.Contents) != 1 || !strings.Contains(r.Contents[0].Text, has) {
			t.Errorf("%s: %v %+v", uri, err, r)
		}
	}
	for _, uri := range []string{"thermite://runs/workshop/none", "thermite://runs/nowhere/pack26", "thermite://attempts/workshop/pack26/x",
		"thermite://attempts/workshop/pack26/99", "thermite://kits/none", "thermite://other/x", "file:///etc/passwd", "thermite://runs/workshop%2Fpack26/x"} {
		if r, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%s is %+v", uri, r)
		}
	}
	complete := func(part, start string, known map[string]string) []string {
		t.Helper()
		r, err := s.Complete(t.Context(), &sdk.CompleteParams{Ref: &sdk.CompleteReference{Type: "ref/resource", URI: "thermite://runs/{rig}/{run}"},
			Argument: sdk.CompleteParamsArgument{Name: part, Value: start}, Context: &sdk.CompleteContext{Arguments: known}})
		if err != nil {
			t.Fatal(err)
		}
		return r.Completion.Values
	}
	if d := cmp.Diff([][]string{{"attic", "workshop"}, {"workshop"}, {"pack26"}, {}}, [][]string{complete("rig", "", nil), complete("rig", "w", nil),
		complete("run", "", map[string]string{"rig": "attic"}), complete("nonsense", "", nil)}); d != "" {
		t.Error(d)
	}
}
