package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// Promise: thermite mcp says how a client reaches the control that the
// settings name, in words that a shell takes as they are, and never the token.
func TestHowToConnectAnMCPClient(t *testing.T) {
	run := func(args ...string) (said, failed string, code int) {
		t.Helper()
		var out, errs bytes.Buffer
		home := t.TempDir() // without settings
		a := newApp(strings.NewReader(""), &out, &errs, func(name string) string { return map[string]string{"HOME": home, "XDG_STATE_HOME": home}[name] })
		code = a.run(t.Context(), args)
		return out.String(), errs.String(), code
	}
	of := []string{"--url", "https://control.example:8443/", "--token", "secret-token", "--authority", "/my certs/authority.pem"}
	out, errs, code := run(append([]string{"mcp"}, of...)...)
	for _, want := range []string{"https://control.example:8443/mcp\n", "claude mcp add --transport http thermite https://control.example:8443/mcp ",
		"NODE_EXTRA_CA_CERTS='/my certs/authority.pem'", "\"Bearer ${THERMITE_TOKEN}\"", "thermite token add agents"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	if code != 0 || strings.Contains(out+errs, "secret-token") {
		t.Errorf("exit %d, or the token is shown:\n%s%s", code, out, errs)
	}
	var c struct {
		URL    string `json:"url"`
		Config struct {
			Servers map[string]struct {
				URL string `json:"url"`
			} `json:"mcpServers"`
		} `json:"config"`
	}
	if out, _, _ = run(append([]string{"mcp", "--json"}, of...)...); json.Unmarshal([]byte(out), &c) != nil || c.URL != "https://control.example:8443/mcp" || c.Config.Servers["thermite"].URL != c.URL {
		t.Errorf("as JSON: %s", out)
	}
	if _, errs, code = run("mcp"); code != exitUse || !strings.Contains(errs, "no control is named") {
		t.Errorf("without a control: %d %s", code, errs)
	}
}
