package wire_test

import (
	"bytes"
	"crypto/ecdh"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/wire"
)

const (
	planted  = "sk-planted-7f3a9c"
	revision = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN-_0"
)

func sealKey(t testing.TB, b byte) (*ecdh.PrivateKey, wire.SealKey) {
	t.Helper()
	private, err := ecdh.X25519().NewPrivateKey(bytes.Repeat([]byte{b}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return private, wire.SealKey(private.PublicKey().Bytes())
}

func route() wire.ModelRoute {
	return wire.ModelRoute{Name: "main", API: wire.APIOpenAIChat, BaseURL: "https://api.example.org/v1", Model: "small-1", Key: planted,
		Headers: map[string]wire.Secret{"X-Account": planted}}
}

// configValues are one value of each key.
func configValues() []wire.ConfigValue {
	r := route()
	return []wire.ConfigValue{
		wire.ModelRouteConfig{Agents: &r},
		wire.AdvisorRoutesConfig{Routes: map[string]wire.ModelRoute{wire.RoleTeacher: r}},
		wire.MCPServersConfig{
			Servers: []wire.MCPServer{{Name: "papers", URL: "https://mcp.example.org/mcp", Headers: map[string]wire.Secret{"Authorization": "Bearer " + planted}, Runs: []string{"run-1"}}},
			Missing: []wire.MissingMCPServer{{Name: "other", Why: "control has none", Runs: []string{"run-1"}}},
		},
		wire.GitAccessConfig{Accesses: []wire.GitAccess{{Name: "kits", Host: "git.example.org:8443", Username: "thermite", Secret: planted}}},
	}
}

// Promise: each value comes back as it was sealed, and what goes on the bus
// holds nothing of it in the clear.
func TestAConfigValueOpensAsItWasSealed(t *testing.T) {
	private, public := sealKey(t, 1)
	for _, v := range configValues() {
		b, err := wire.SealConfig(signer(t, 2), public, "alpha", v.ConfigKey(), revision, v)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte(planted)) || bytes.Contains(b, []byte("example.org")) {
			t.Errorf("%s goes on the bus as %s", v.ConfigKey(), b)
		}
		m, got, err := wire.OpenConfig(signer(t, 2).Public(), private, "alpha", v.ConfigKey(), b)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(v, got, timesEqual); diff != "" || m.Revision != revision {
			t.Errorf("%s came back otherwise, with revision %s (-want +got):\n%s", v.ConfigKey(), m.Revision, diff)
		}
	}
}

// Promise: a value can't pass for another key's or another rig's, opens with
// that rig's seal key only, and is taken from control only.
func TestAConfigValueForAnotherIsRefused(t *testing.T) {
	private, public := sealKey(t, 1)
	other, otherPublic := sealKey(t, 3)
	control, stranger := signer(t, 2), signer(t, 4)
	git := configValues()[3]
	seal := func(s *wire.Signer, to wire.SealKey, rig string) []byte {
		return must(wire.SealConfig(s, to, rig, wire.ConfigGitAccess, revision, git))
	}
	for name, c := range map[string]struct {
		b       []byte
		private *ecdh.PrivateKey
		rig     string
		key     string
		want    error
	}{
		"another rig's":                {seal(control, public, "beta"), private, "alpha", wire.ConfigGitAccess, wire.ErrOtherConfig},
		"another key's":                {seal(control, public, "alpha"), private, "alpha", wire.ConfigModelRoute, wire.ErrOtherConfig},
		"sealed to another":            {seal(control, otherPublic, "alpha"), private, "alpha", wire.ConfigGitAccess, wire.ErrSealedToOther},
		"opened by another":            {seal(control, public, "alpha"), other, "alpha", wire.ConfigGitAccess, wire.ErrSealedToOther},
		"signed by a stranger":         {seal(stranger, public, "alpha"), private, "alpha", wire.ConfigGitAccess, wire.ErrBadSignature},
		"a key of a newer control":     {seal(control, public, "alpha"), private, "alpha", "new-key", wire.ErrNoConfig},
		"no JSON":                      {[]byte("x"), private, "alpha", wire.ConfigGitAccess, wire.ErrNoConfig},
		"too large":                    {bytes.Repeat([]byte("x"), wire.MaxConfigBytes+1), private, "alpha", wire.ConfigGitAccess, wire.ErrNoConfig},
		"with another revision inside": {resealed(t, control, seal(control, public, "alpha")), private, "alpha", wire.ConfigGitAccess, wire.ErrSealedToOther},
	} {
		_, v, err := wire.OpenConfig(control.Public(), c.private, c.rig, c.key, c.b)
		if !errors.Is(err, c.want) || v != nil {
			t.Errorf("%s: %v, %v", name, v, err)
		}
	}
}

// resealed is the message with another revision, well signed.
func resealed(t *testing.T, s *wire.Signer, b []byte) []byte {
	t.Helper()
	return wire.ResignConfig(s, b, func(m *wire.SealedConfig) { m.Revision = strings.Repeat("a", 43) })
}

// Promise: words and errors show no secret.
func TestASecretIsNotShown(t *testing.T) {
	for _, v := range configValues() {
		for _, words := range []string{fmt.Sprint(v), fmt.Sprintf("%+v", v), fmt.Sprintf("%#v", v), fmt.Sprintf("%s", v)} {
			if strings.Contains(words, planted) {
				t.Errorf("%s", words)
			}
		}
	}
	bad := route()
	for _, change := range []func(*wire.ModelRoute){
		func(r *wire.ModelRoute) { r.Key = planted + "\n" },
		func(r *wire.ModelRoute) { r.Key = wire.Secret(strings.Repeat(planted, 2000)) },
		func(r *wire.ModelRoute) { r.Headers = map[string]wire.Secret{"X-Key": planted + "\r\nHost: x"} },
		func(r *wire.ModelRoute) { r.BaseURL = "https://user:" + planted + "@api.example.org" },
		func(r *wire.ModelRoute) { r.Headers = map[string]wire.Secret{"Host": planted} },
	} {
		r := bad
		change(&r)
		if err := r.Check(); err == nil || strings.Contains(err.Error(), planted) {
			t.Errorf("it says %v", err)
		}
	}
	for _, b := range []string{`{"agents":{"key":"` + planted + `"}}`, `{"agents":"` + planted + `"}`, `{"` + planted + `":1}`} {
		if _, err := wire.DecodeConfigValue(wire.ConfigModelRoute, []byte(b)); err == nil || strings.Contains(err.Error(), planted) {
			t.Errorf("%s: %v", b, err)
		}
		if _, _, err := wire.DecodeConfigHand(wire.ConfigModelRoute, []byte(`{"value":`+b+`}`)); err == nil || strings.Contains(err.Error(), planted) {
			t.Errorf("%s: %v", b, err)
		}
	}
}

// Promise: a bad value is refused, by its field.
func TestABadConfigValueIsRefused(t *testing.T) {
	for says, v := range map[string]wire.ConfigValue{
		"agents: route name":     wire.ModelRouteConfig{Agents: &wire.ModelRoute{}},
		"agents: api":            wire.ModelRouteConfig{Agents: &wire.ModelRoute{Name: "a", API: "x"}},
		"base_url":               wire.ModelRouteConfig{Planner: &wire.ModelRoute{Name: "a", API: wire.APIOpenAIChat, BaseURL: "ftp://x", Model: "m"}},
		"routes.king":            wire.AdvisorRoutesConfig{Routes: map[string]wire.ModelRoute{"king": route()}},
		"servers[0]: url":        wire.MCPServersConfig{Servers: []wire.MCPServer{{Name: "a", URL: "x"}}},
		"missing[0]: why":        wire.MCPServersConfig{Missing: []wire.MissingMCPServer{{Name: "a"}}},
		"accesses[0]: secret":    wire.GitAccessConfig{Accesses: []wire.GitAccess{{Name: "a", Host: "h", Username: "u"}}},
		"accesses[0]: host":      wire.GitAccessConfig{Accesses: []wire.GitAccess{{Name: "a", Host: "https://h", Username: "u", Secret: "s"}}},
		"accesses[0]: username":  wire.GitAccessConfig{Accesses: []wire.GitAccess{{Name: "a", Host: "h", Username: "u\n", Secret: "s"}}},
		"accesses[0]: host \"h:": wire.GitAccessConfig{Accesses: []wire.GitAccess{{Name: "a", Host: "h:x1", Username: "u", Secret: "s"}}},
	} {
		if err := v.Check(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, where %q is to be said", v, err, says)
		}
	}
}

func FuzzOpenConfig(f *testing.F) {
	private, public := sealKey(f, 1)
	s := signer(f, 2)
	for _, v := range configValues() {
		f.Add(v.ConfigKey(), must(wire.SealConfig(s, public, "alpha", v.ConfigKey(), revision, v)))
	}
	f.Fuzz(func(t *testing.T, key string, b []byte) {
		_, v, err := wire.OpenConfig(s.Public(), private, "alpha", key, b)
		if (v == nil) != (err != nil) {
			t.Fatalf("%q: %v, %v", b, v, err)
		}
	})
}

func FuzzDecodeConfigHand(f *testing.F) {
	for _, v := range configValues() {
		f.Add(v.ConfigKey(), must(wire.EncodeConfigHand(revision, v)))
	}
	f.Fuzz(func(t *testing.T, key string, b []byte) {
		revision, v, err := wire.DecodeConfigHand(key, b)
		if err != nil {
			return
		}
		again, value, err := wire.DecodeConfigHand(key, must(wire.EncodeConfigHand(revision, v)))
		if err != nil || again != revision || !cmp.Equal(v, value, timesEqual) {
			t.Fatalf("%q comes back otherwise: %v", b, err)
		}
	})
}

func FuzzDecodeConfigValue(f *testing.F) {
	for _, v := range configValues() {
		f.Add(v.ConfigKey(), must(wire.Canonical(v)))
	}
	f.Fuzz(func(t *testing.T, key string, b []byte) {
		if v, err := wire.DecodeConfigValue(key, b); err == nil && v.Check() != nil {
			t.Fatalf("%q is a bad value", b)
		}
	})
}

func FuzzDecodeConfigHeld(f *testing.F) {
	f.Add([]byte(`{"held":true,"key":"model-route","revision":"` + revision + `"}`))
	f.Fuzz(func(t *testing.T, b []byte) { again(t, b, wire.DecodeConfigHeld, wire.EncodeConfigHeld) })
}
