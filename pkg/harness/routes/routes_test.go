package routes_test

import (
	"testing"

	"thermite/pkg/harness/routes"
	"thermite/pkg/wire"
)

// Promise: it knows none until it is handed them, tells whoever waits of a
// change, and takes no key that is not the harness's.
func TestRoutesAreWhatWasHandedLast(t *testing.T) {
	r := routes.New()
	if _, known := r.ModelRoute(); known || r.Held(wire.ConfigModelRoute).Held {
		t.Error("it knows routes before it was handed any")
	}
	changed := r.Changed()
	if err := r.Set(wire.ConfigModelRoute, "a", wire.ModelRouteConfig{Agents: &wire.ModelRoute{Name: "main"}}); err != nil {
		t.Fatal(err)
	}
	<-changed
	if v, known := r.ModelRoute(); !known || v.Agents.Name != "main" || r.Held(wire.ConfigModelRoute).Revision != "a" {
		t.Errorf("it has %v, %v", v, known)
	}
	if err := r.Set(wire.ConfigGitAccess, "a", wire.GitAccessConfig{}); err == nil {
		t.Error("it takes a Git access")
	}
	if err := r.Set(wire.ConfigModelRoute, "b", wire.MCPServersConfig{}); err == nil {
		t.Error("it takes servers for routes")
	}
}
