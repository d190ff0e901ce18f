package rigconfig_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/control/commands"
	control "thermite/pkg/control/rigconfig"
	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// Promise: no secret is on the bus's disk, in control's store, in a log, an
// error or a figure: they are all looked through for planted ones, which the
// rig has meanwhile.
func TestNoSecretIsAnywhereInTheClear(t *testing.T) {
	w := startWorld(t)
	ctx := t.Context()
	secret := func(what string) wire.Secret { return wire.Secret(planted + "-" + what) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(w.configs.SetModelRoute(ctx, owner, control.RouteChange{Name: "main", API: wire.APIOpenAIChat, BaseURL: "https://api.example.org/v1", Model: "m",
		Secret: &control.Payload{Key: secret("key"), Headers: map[string]wire.Secret{"X-Account": secret("account")}},
		Uses:   []store.RouteUse{{Role: wire.RoleAgents}, {Role: wire.RoleTeacher, Rig: "alpha"}}}))
	must(w.configs.SetMCPServer(ctx, owner, control.ServerChange{Name: "papers", URL: "https://mcp.example.org/mcp", Secret: &control.Payload{Key: secret("mcp")}}))
	must(w.configs.SetGitAccess(ctx, owner, control.AccessChange{Name: "kits", Host: "git.example.org", Username: "u", Secret: secret("git")}))
	_, err := w.Commands.Issue(ctx, commands.Order{Rig: "alpha", By: "owner", Source: "test", Args: wire.RunAssign{Run: "run-1", Campaign: "c", Worker: "tune",
		Kit:       wire.KitSource{Git: "https://git.example.org/kit", Commit: strings.Repeat("0", 40)},
		GitAccess: "kits", MCPServers: []string{"papers", "none"}}})
	must(err)
	w.configs.Changed()
	w.Until("the rig has all of it", func() bool {
		routes, _ := w.loop.AdvisorRoutes()
		return w.harness.agents() == planted+"-key" && len(w.harness.servers().Servers) == 1 && routes.Routes[wire.RoleTeacher].Key == secret("key")
	})
	access, err := w.loop.GitAccess(ctx, "kits")
	if err != nil || access.Secret != secret("git") || access.Host != "git.example.org" {
		t.Fatalf("staging gets %v: %v", access, err)
	}
	servers := w.harness.servers()
	if s := servers.Servers[0]; s.Headers["Authorization"] != "Bearer "+secret("mcp") || fmt.Sprint(s.Runs) != "[run-1]" {
		t.Errorf("the harness has %v of run %v", s, s.Runs)
	}
	if len(servers.Missing) != 1 || servers.Missing[0].Name != "none" {
		t.Errorf("the harness lacks %v", servers.Missing)
	}

	// What can't be, with a secret in it.
	for _, err := range []error{
		w.configs.SetModelRoute(ctx, owner, control.RouteChange{Name: "bad", API: "x", BaseURL: "https://u:" + planted + "@h", Model: "m"}),
		w.configs.SetModelRoute(ctx, owner, control.RouteChange{Name: "bad", API: wire.APIOpenAIChat, BaseURL: "https://h", Model: "m", Secret: &control.Payload{Key: secret("\n")}}),
		w.configs.SetMCPServer(ctx, owner, control.ServerChange{Name: "bad", URL: "https://h/?token=" + planted}),
		w.configs.SetGitAccess(ctx, owner, control.AccessChange{Name: "bad", Host: "h", Username: "u", Secret: secret("\x00")}),
		w.configs.SetGitAccess(ctx, owner, control.AccessChange{Name: "kits", Host: "evil.example.org", Username: "u"}),
	} {
		if err == nil || strings.Contains(err.Error(), planted+"-") || strings.Contains(err.Error(), planted+"@") {
			t.Errorf("it says %v", err)
		}
	}
	w.stopRig()
	w.stopControl()
	must(w.Store.Write(ctx, func(tx *sqlx.Tx) error { _, err := tx.ExecContext(ctx, "UPDATE place SET read = read"); return err }))
	if words := w.log.String(); strings.Contains(words, planted+"-") {
		t.Errorf("a log holds a secret:\n%s", words)
	}
	if f := fmt.Sprintf("%+v", w.loop.Figures()); strings.Contains(f, planted) {
		t.Errorf("the figures hold a secret: %s", f)
	}
	looked := 0
	for _, dir := range []string{w.Bus.Dir, w.Bus.StateDir, filepath.Dir(w.StorePath())} {
		must(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			b, err := os.ReadFile(path)
			if bytes.Contains(b, []byte(planted)) {
				t.Errorf("%s holds a secret", path)
			}
			looked++
			return err
		}))
	}
	if looked < 5 {
		t.Fatalf("only %d files were looked through", looked)
	}
	if entries, err := w.Store.AuditLog(ctx, store.AuditQuery{}); err != nil || strings.Contains(fmt.Sprint(entries), planted) {
		t.Errorf("the audit log holds a secret: %v", err)
	}
}

// Promise: a rig has a Git access only while an assignment that names it lasts,
// and each time it is written the audit log says so.
func TestAGitAccessLastsAsItsAssignment(t *testing.T) {
	w := startWorld(t)
	ctx := t.Context()
	if err := w.configs.SetGitAccess(ctx, owner, control.AccessChange{Name: "kits", Host: "git.example.org", Username: "u", Secret: planted}); err != nil {
		t.Fatal(err)
	}
	c, err := w.Commands.Issue(ctx, commands.Order{Rig: "alpha", By: "owner", Source: "test", Args: wire.RunAssign{Run: "run-1", Campaign: "c", Worker: "tune",
		Kit: wire.KitSource{Git: "https://git.example.org/kit", Commit: strings.Repeat("0", 40)}, GitAccess: "kits"}})
	if err != nil {
		t.Fatal(err)
	}
	w.Until("the rig has it", func() bool { _, err := w.loop.GitAccess(ctx, "kits"); return err == nil })
	if _, err := w.Commands.Cancel(ctx, c.ID, "owner", "test"); err != nil {
		t.Fatal(err)
	}
	w.Until("the rig has it no more", func() bool { return w.written(wire.ConfigGitAccess) == 2 })
	w.Until("the audit log has both", func() bool {
		entries, err := w.Store.AuditLog(ctx, store.AuditQuery{Action: "git_access_handed", Subject: "alpha"})
		return err == nil && len(entries) == 2 && fmt.Sprint(entries[1].Detail["names"]) == "[kits]" && fmt.Sprint(entries[0].Detail["names"]) == "[]"
	})
}
