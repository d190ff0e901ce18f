//go:build clients

package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// clientLimit is how long a client may take, on a machine that does more.
const clientLimit = 5 * time.Minute

// client is a program from the npm registry, as tools/clients installs it.
type client struct {
	t            *testing.T
	node, script string
	dir          string
}

// clientOf gives the program that is the script of the package.
func clientOf(t *testing.T, script string) client {
	t.Helper()
	install := exec.CommandContext(t.Context(), "../../../tools/clients/install")
	install.Stderr = os.Stderr
	out, err := install.Output()
	if err != nil {
		t.Fatalf("installing the clients: %v: its own words are above", err)
	}
	folder := filepath.Join(strings.TrimSpace(string(out)), "node_modules")
	nodes, err := filepath.Glob(filepath.Join(folder, "node-linux-*", "bin", "node"))
	if err != nil || len(nodes) == 0 {
		nodes = []string{"node"} // another system's, which must be new enough
	}
	return client{t: t, node: nodes[0], script: filepath.Join(folder, script), dir: t.TempDir()}
}

// run runs the client and gives what it printed and its exit code.
func (c client) run(args ...string) (out, errs string, code int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), clientLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.node, append([]string{c.script}, args...)...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "HOME="+c.dir, "NO_COLOR=1", "MCP_STORAGE_DIR="+c.dir)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		c.t.Fatal(err)
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// Promise: the protocol's inspector reads, lists and calls what we serve, and
// finds nothing wrong with a schema.
func TestTheInspectorDrivesIt(t *testing.T) {
	w := newWorld(t)
	inspector := clientOf(t, "@modelcontextprotocol/inspector/clients/launcher/build/index.js")
	ask := func(token string, args ...string) map[string]any {
		t.Helper()
		all := append([]string{"--cli", "--server-url", w.server.URL, "--transport", "http", "--header", "Authorization: Bearer " + token}, args...)
		out, errs, code := inspector.run(all...)
		var answer map[string]any
		if err := json.Unmarshal([]byte(out), &answer); code != 0 || err != nil {
			t.Fatalf("%v: exit %d, %v\n%s\n%s", args, code, err, out, errs)
		}
		return answer
	}
	named := func(answer map[string]any, list string) (names []string) {
		for _, x := range answer[list].([]any) {
			names = append(names, x.(map[string]any)["name"].(string))
		}
		return names
	}
	tools := named(ask(w.owner, "--method", "tools/list", "--strict"), "tools")
	for _, name := range []string{"bus_state", "list_rigs", "list_runs", "run", "list_attempts", "attempt", "kb_search", "kb_read", "list_prompts", "start_run", "pause_run"} {
		if !slices.Contains(tools, name) {
			t.Errorf("the inspector sees no tool %s in %v", name, tools)
		}
	}
	if tools := named(ask(w.reader, "--method", "tools/list"), "tools"); slices.Contains(tools, "pause_run") || !slices.Contains(tools, "run") {
		t.Errorf("with a reader's token the inspector sees %v", tools)
	}
	run := ask(w.reader, "--method", "tools/call", "--tool-name", "run", "--tool-arg", "rig=workshop", "run=pack26")
	if s := run["structuredContent"].(map[string]any); s["run"] != "pack26" || s["attempts"] != 30.0 {
		t.Errorf("the run is %v", s)
	}
	paused := ask(w.owner, "--method", "tools/call", "--tool-name", "pause_run", "--tool-arg", "rig=workshop", "run=pack26", "why=by the inspector")
	if s := paused["structuredContent"].(map[string]any); !strings.Contains(s["did"].(string), "run.pause") {
		t.Errorf("pausing says %v", s)
	}
	kits := named(ask(w.reader, "--method", "resources/list"), "resources")
	if !slices.Contains(kits, "circle-packing-26") {
		t.Errorf("the resources are %v", kits)
	}
	if patterns := named(ask(w.reader, "--method", "resources/templates/list"), "resourceTemplates"); !slices.Contains(patterns, "attempt") {
		t.Errorf("the kinds of resources are %v", patterns)
	}
	read := ask(w.reader, "--method", "resources/read", "--uri", "thermite://attempts/workshop/pack26/30")
	if b, _ := json.Marshal(read); !strings.Contains(string(b), "Attempt 30") {
		t.Errorf("the attempt reads %s", b)
	}
	if out, errs, code := inspector.run("--cli", "--server-url", w.server.URL, "--transport", "http", "--method", "tools/list"); code == 0 {
		t.Errorf("without a token the inspector gets in: %s %s", out, errs)
	}
}

// signed gives the address of a server that passes each request on with the
// owner's token: the suite has none to give.
func (w *world) signed() string {
	w.t.Helper()
	to, err := url.Parse(w.server.URL)
	if err != nil {
		w.t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host // what the suite says is what our door judges
		r.Out.Header.Set("Authorization", "Bearer "+w.owner)
	}, ErrorHandler: func(a http.ResponseWriter, _ *http.Request, err error) {
		http.Error(a, err.Error(), http.StatusBadGateway)
	}})
	w.t.Cleanup(proxy.Close)
	return proxy.URL
}

// Promise: what we serve passes the protocol's conformance suite, but for what
// we don't offer: see testdata/conformance.yml, in which a scenario that does
// pass is a failure too.
func TestTheConformanceSuite(t *testing.T) {
	w := newWorld(t)
	w.mcp.Enter(enterFixtures)
	suite := clientOf(t, "@modelcontextprotocol/conformance/dist/index.js")
	known, err := filepath.Abs("testdata/conformance.yml")
	if err != nil {
		t.Fatal(err)
	}
	out, errs, code := suite.run("server", "--url", w.signed(), "--spec-version", "2025-11-25", "--expected-failures", known)
	if code != 0 {
		t.Errorf("exit %d\n%s\n%s", code, out, errs)
	}
	passed := regexp.MustCompile(`(?m)^✓ `).FindAllString(out, -1)
	if len(passed) < 20 {
		t.Errorf("only %d scenarios passed:\n%s", len(passed), out)
	}
}

// Promise: the scenarios that need nothing of the suite's own pass on what we
// serve as it is.
func TestConformanceAsServed(t *testing.T) {
	w := newWorld(t)
	suite := clientOf(t, "@modelcontextprotocol/conformance/dist/index.js")
	at := w.signed()
	for _, scenario := range []string{"server-initialize", "ping", "tools-list", "resources-list", "dns-rebinding-protection", "completion-complete"} {
		if out, errs, code := suite.run("server", "--url", at, "--scenario", scenario); code != 0 {
			t.Errorf("%s: exit %d\n%s\n%s", scenario, code, out, errs)
		}
	}
}
