package mcp_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

var update = flag.Bool("update", false, "write the golden files anew")

// onRun are the arguments that name the world's run.
func onRun(more args) args {
	all := args{"rig": "workshop", "run": "pack26"}
	maps.Copy(all, more)
	return all
}

// reads are calls of every tool that reads.
var reads = []struct {
	tool string
	args args
}{
	{"health", nil}, {"bus_state", nil}, {"needs", nil}, {"audit_log", args{"limit": 5}},
	{"list_rigs", nil}, {"rig", args{"rig": "workshop"}}, {"rig_history", args{"rig": "workshop"}}, {"rig_events", onRun(args{"kinds": []string{"verdict"}, "limit": 3})},
	{"list_runs", args{"campaign": "packing"}}, {"run", onRun(nil)}, {"list_queue", onRun(nil)}, {"champion", onRun(nil)},
	{"list_campaigns", nil}, {"campaign", args{"campaign": "packing"}},
	{"list_attempts", onRun(args{"outcome": "not_better"})}, {"attempt", onRun(args{"attempt": 7})}, {"attempt_patch", onRun(args{"attempt": 7})},
	{"list_prompts", onRun(nil)}, {"prompt", onRun(args{"seq": 5})},
	{"list_kits", nil}, {"kit", args{"kit": "circle-packing-26"}},
	{"list_commands", nil},
	{"kb_search", args{"words": "hexagonal start"}}, {"kb_read", args{"id": "1"}}, {"kb_list", args{"run": "pack26"}}, {"kb_collections", nil},
	{"rig_daily", args{"rig": "workshop"}},
	{"live_lines", onRun(nil)}, {"rig_space", args{"rig": "workshop"}},
	{"list_model_routes", nil}, {"list_mcp_servers", nil}, {"list_git_accesses", nil},
}

// maxAnswer is how long an answer that is not of a page of 100 may be.
const maxAnswer = 40 << 10

// Promise: every tool that reads answers as its schema says, a reader too, and
// briefly.
func TestEveryReadAnswersAsItsSchemaSays(t *testing.T) {
	w := newWorld(t)
	s := w.connect(w.reader)
	tools := toolsOf(t, s)
	called := map[string]bool{"command": true} // there is no command yet
	for _, r := range reads {
		called[r.tool] = true
		raw, text, failed := w.call(s, r.tool, r.args)
		if failed {
			t.Errorf("%s: %s", r.tool, text)
			continue
		}
		if len(raw) > maxAnswer {
			t.Errorf("%s answers with %d bytes", r.tool, len(raw))
		}
		if err := fits(tools[r.tool].OutputSchema, raw); err != nil {
			t.Errorf("%s does not answer as its schema says: %v\n%s", r.tool, err, raw)
		}
	}
	for name := range tools {
		if !called[name] {
			t.Errorf("no test calls %s", name)
		}
	}
}

// fits says whether the JSON is as the schema says.
func fits(schema any, raw []byte) error {
	b, err := json.Marshal(schema)
	if err != nil {
		return err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return err
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	return resolved.Validate(v)
}

func toolsOf(t *testing.T, s *sdk.ClientSession) map[string]*sdk.Tool {
	t.Helper()
	all := map[string]*sdk.Tool{}
	for tool, err := range s.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		all[tool.Name] = tool
	}
	return all
}

// Promise: the tools, what each is marked as and what it takes change only on
// purpose; a tool that reads is marked so, and one that ends something too.
func TestTheTools(t *testing.T) {
	w := newWorld(t)
	all := toolsOf(t, w.connect(w.owner))
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		tool := all[name]
		mark := "reads"
		if !tool.Annotations.ReadOnlyHint {
			if mark = "changes"; *tool.Annotations.DestructiveHint {
				mark = "ends"
			}
		}
		in := tool.InputSchema.(map[string]any)
		required, _ := in["required"].([]any)
		var takes []string
		for name := range in["properties"].(map[string]any) {
			if !slices.Contains(required, any(name)) {
				name = "[" + name + "]"
			}
			takes = append(takes, name)
		}
		slices.Sort(takes)
		fmt.Fprintf(&b, "%s: %s: %s\n", name, mark, strings.Join(takes, " "))
		if tool.Description == "" || tool.Title == "" || in["additionalProperties"] != false {
			t.Errorf("%s has no title or words, or takes anything: %v", name, in)
		}
	}
	const file = "testdata/tools.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("the tools are others (go test ./pkg/control/mcp -run TestTheTools -update writes them anew): %s", d)
	}
}

// Promise: a reader is shown no tool that changes something, and can't call
// one; nothing comes of trying.
func TestAReaderChangesNothing(t *testing.T) {
	w := newWorld(t)
	s := w.connect(w.reader)
	for name, tool := range toolsOf(t, s) {
		if !tool.Annotations.ReadOnlyHint {
			t.Errorf("a reader is shown %s", name)
		}
	}
	for name, tool := range toolsOf(t, w.connect(w.owner)) {
		if tool.Annotations.ReadOnlyHint {
			continue
		}
		if r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: onRun(nil)}); err == nil {
			t.Errorf("a reader called %s: %+v", name, r)
		}
	}
	if list := got[service.CommandList](w, s, "list_commands", nil); len(list.Commands) > 0 {
		t.Errorf("a reader gave %+v", list.Commands)
	}
}

// Promise: only the owner and readers come in, and no page of another site.
func TestTheDoor(t *testing.T) {
	w := newWorld(t)
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for name, c := range map[string]struct {
		method, body string
		header       map[string]string
		want         int
		code         string
	}{
		"the owner":          {"POST", list, nil, 200, ""},
		"no token":           {"POST", list, map[string]string{"Authorization": ""}, 401, "not_signed_in"},
		"no bearer":          {"POST", list, map[string]string{"Authorization": "Basic x"}, 401, "not_signed_in"},
		"a bad token":        {"POST", list, map[string]string{"Authorization": "Bearer nonsense"}, 401, "bad_token"},
		"a rig":              {"POST", list, map[string]string{"Authorization": "Bearer " + w.rigToken("workshop")}, 403, "not_allowed"},
		"another site":       {"POST", list, map[string]string{"Origin": "https://evil.example"}, 403, "not_allowed"},
		"another's browser":  {"POST", list, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403, "not_allowed"},
		"our own site":       {"POST", list, map[string]string{"Origin": "https://control.example:8443"}, 200, ""},
		"a name bound to us": {"POST", list, map[string]string{"Host": "evil.example", "Origin": "http://evil.example"}, 403, "not_allowed"},
		"a proxy before us":  {"POST", list, map[string]string{"Host": "control.example:8443"}, 200, ""},
		"a stream":           {"GET", "", nil, 405, ""},
		"no JSON":            {"POST", list, map[string]string{"Content-Type": "text/plain"}, 415, ""},
		"too much":           {"POST", `{"x":"` + strings.Repeat("x", wire.MaxBodyBytes) + `"}`, nil, 413, ""},
		"nothing":            {"POST", "", nil, 400, ""},
		"half":               {"POST", list[:20], nil, 400, ""},
	} {
		res := w.post(c.method, c.body, c.header)
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != c.want || !strings.Contains(string(b), c.code) {
			t.Errorf("%s: %d %.200s", name, res.StatusCode, b)
		}
		if res.Header.Get("Mcp-Session-Id") != "" || res.Header.Get("X-Request-Id") == "" || !strings.HasPrefix(res.Header.Get("Cache-Control"), "no-") {
			t.Errorf("%s: %v", name, res.Header)
		}
		if c.want == http.StatusUnauthorized && res.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: no WWW-Authenticate", name)
		}
	}
	if strings.Contains(w.said.String(), w.owner) {
		t.Error("the log has a token")
	}
}

// Promise: an input that is not of its form changes nothing, and is answered
// with what is wrong and where.
func TestABadInputChangesNothing(t *testing.T) {
	w := newWorld(t)
	s := w.connect(w.owner)
	for _, c := range []struct {
		tool string
		args any
		want string
	}{
		{"list_rigs", args{"limit": 0}, "arguments.limit"},
		{"list_rigs", args{"limit": 101}, "arguments.limit"},
		{"list_rigs", args{"limit": "ten"}, "arguments.limit"},
		{"list_rigs", args{"limt": 10}, "arguments.limt"},
		{"list_runs", args{"state": "walking"}, "arguments.state"},
		{"list_runs", args{"after": "x"}, "after: after must be the next"},
		{"run", args{"rig": "workshop"}, "run"},
		{"run", args{"rig": "nowhere", "run": "pack26"}, "no_rig"},
		{"run", args{"rig": "workshop", "run": "other"}, "no_run"},
		{"attempt", onRun(args{"attempt": 99}), "no_attempt"},
		{"attempt", onRun(args{"attempt": 1.5}), "arguments.attempt"},
		{"attempt", onRun(args{"attempt": -1}), "arguments.attempt"},
		{"prompt", onRun(args{"seq": 1}), "no_prompt"},
		{"prompt", onRun(args{"seq": 4000}), "no_prompt"},
		{"kit", args{"kit": "no-such"}, "no_kit"},
		{"command", args{"id": "x"}, "no_command"},
		{"command", args{"id": "x", "wait_seconds": 31}, "arguments.wait_seconds"},
		{"start_run", args{"rig": "workshop", "kit": args{"embedded": "no-such"}}, "kit.embedded"},
		{"start_run", args{"rig": "workshop", "kit": args{"embedded": "circle-packing-26"}, "lanes": 65}, "arguments.lanes"},
		{"start_run", args{"rig": "workshop", "run": "pack26", "kit": args{"embedded": "circle-packing-26"}}, "run_exists"},
		{"pause_run", onRun(args{"why": strings.Repeat("x", 8001)}), "arguments.why"},
		{"queue_add", onRun(args{"title": ""}), "arguments.title"},
		{"queue_add", onRun(nil), "title"},
		{"queue_move", onRun(args{"experiment": 0}), "arguments.experiment"},
		{"change_run", onRun(nil), "nothing to change"},
		{"stop_trial", args{"run": "pack26", "trial": 1}, "rig"},
	} {
		_, text, failed := w.call(s, c.tool, c.args)
		if !failed || !strings.Contains(text, c.want) {
			t.Errorf("%s %v: %s", c.tool, c.args, text)
		}
	}
	// The same field twice is no JSON that a client of ours writes.
	res := w.post("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":{"rig":"workshop","rig":"attic","run":"pack26"}}}`, nil)
	if b, _ := io.ReadAll(res.Body); !strings.Contains(string(b), "duplicate") {
		t.Errorf("a field twice: %s", b)
	}
	if list := got[service.CommandList](w, s, "list_commands", nil); len(list.Commands) > 0 {
		t.Errorf("a bad input became %+v", list.Commands)
	}
}
