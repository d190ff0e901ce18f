package settings_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"thermite/cmd/thermite/internal/settings"
)

// env gives a getenv of these variables.
func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// Promise: a setting comes from its flag, else its variable, else the file,
// and says which.
func TestFlagThenVariableThenFile(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, ".config", "thermite", "client.toml")
	write(t, path, "url = \"https://file:8443/\"\ntoken = \"file-token\"\nauthority = \"a.pem\"\n", 0o600)

	for name, c := range map[string]struct {
		flags  settings.Flags
		env    []string
		url    string
		token  string
		source []string // url, token, authority
	}{
		"file":            {url: "https://file:8443", token: "file-token", source: []string{path, path, path}},
		"variable":        {env: []string{"THERMITE_TOKEN", "env-token"}, url: "https://file:8443", token: "env-token", source: []string{path, "THERMITE_TOKEN", path}},
		"flag":            {flags: settings.Flags{Token: "flag-token"}, env: []string{"THERMITE_TOKEN", "env-token"}, url: "https://file:8443", token: "flag-token", source: []string{path, "flag", path}},
		"the file's url":  {env: []string{"THERMITE_URL", "https://file:8443"}, url: "https://file:8443", token: "file-token", source: []string{"THERMITE_URL", path, path}},
		"another control": {env: []string{"THERMITE_URL", "https://other:8443", "THERMITE_TOKEN", "env-token"}, url: "https://other:8443", token: "env-token", source: []string{"THERMITE_URL", "THERMITE_TOKEN", "default"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := settings.Resolve(c.flags, env(append(c.env, "HOME", home)...))
			if err != nil {
				t.Fatal(err)
			}
			if s.URL != c.url || s.Token != c.token {
				t.Errorf("url %q and token %q, want %q and %q", s.URL, s.Token, c.url, c.token)
			}
			var source []string
			for _, set := range s.All[:3] {
				source = append(source, set.Source)
				if strings.Contains(set.Value, "-token") {
					t.Errorf("%s shows the token", set.Name)
				}
			}
			if diff := cmp.Diff(c.source, source); diff != "" {
				t.Errorf("sources (-want +got):\n%s", diff)
			}
		})
	}
}

// Promise: a file's token is never sent to another address than the file's.
func TestAFilesTokenIsForItsURLAlone(t *testing.T) {
	home := t.TempDir()
	write(t, filepath.Join(home, ".config", "thermite", "client.toml"), "url = \"https://one:8443\"\ntoken = \"secret\"\nauthority = \"a.pem\"\n", 0o600)
	s, err := settings.Resolve(settings.Flags{URL: "https://two:8443"}, env("HOME", home))
	if err != nil {
		t.Fatal(err)
	}
	if s.Token != "" || s.Authority != "" {
		t.Errorf("token %q and authority %q of https://one:8443 are used for https://two:8443", s.Token, s.Authority)
	}
	if len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "not sent to https://two:8443") {
		t.Errorf("warnings are %q: they should say that the token is not sent", s.Warnings)
	}
}

// Promise: what thermite up writes is found by a second terminal, and a
// person's own file comes before it.
func TestASecondTerminalFindsWhatUpWrote(t *testing.T) {
	home := t.TempDir()
	getenv := env("HOME", home, "XDG_STATE_HOME", filepath.Join(home, "state"))
	path := settings.UpPath(getenv)
	if err := settings.WriteFile(path, settings.File{URL: "https://127.0.0.1:8443", Token: "secret", Authority: "authority.pem"}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v, so others may read the token", info.Mode())
	}
	s, err := settings.Resolve(settings.Flags{}, getenv)
	if err != nil {
		t.Fatal(err)
	}
	want := settings.Settings{URL: "https://127.0.0.1:8443", Token: "secret", Authority: filepath.Join(filepath.Dir(path), "authority.pem")}
	s.All = nil
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}

	write(t, settings.ConfigPath(getenv), "url = \"https://mine:8443\"\n", 0o600)
	s, err = settings.Resolve(settings.Flags{}, getenv)
	if err != nil {
		t.Fatal(err)
	}
	if s.URL != "https://mine:8443" || s.Token != "" {
		t.Errorf("url %q and token %q, where the person's own file has https://mine:8443 and no token", s.URL, s.Token)
	}
}

// Promise: a bad file is an error that names the file and what in it.
func TestABadFileIsNamed(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"unknown setting": {"url = \"https://a\"\ntokn = \"x\"\n", `no setting "tokn"`},
		"not TOML":        {"url = https\n", "client.toml"},
		"a wrong type":    {"url = 5\n", "url"},
		"no url":          {"token = \"x\"\n", "no url"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "client.toml")
			write(t, path, c.text, 0o600)
			_, err := settings.Resolve(settings.Flags{Config: path}, env())
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("error is %v; want it to name %s and %s", err, path, c.want)
			}
		})
	}
	if _, err := settings.Resolve(settings.Flags{}, env("THERMITE_CONFIG", "/nowhere/client.toml")); err == nil || !strings.Contains(err.Error(), "THERMITE_CONFIG") {
		t.Errorf("error is %v; want it to name THERMITE_CONFIG", err)
	}
}

func TestAFileThatOthersMayReadIsSaid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "client.toml")
	write(t, path, "url = \"https://a:8443\"\ntoken = \"x\"\n", 0o600)
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := settings.Resolve(settings.Flags{Config: path}, env())
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "chmod 600") {
		t.Errorf("warnings are %q", s.Warnings)
	}
}

// Promise: a token goes over TLS, or stays on this machine.
func TestAddresses(t *testing.T) {
	for address, good := range map[string]bool{
		"https://control:8443":       true,
		"https://127.0.0.1:8443/":    true,
		"http://127.0.0.1:8080":      true,
		"http://[::1]:8080":          true,
		"http://localhost:8080":      true,
		"http://control:8080":        false,
		"http://10.0.0.1:8080":       false,
		"http://127.0.0.1.evil.com":  false,
		"control:8443":               false,
		"https://":                   false,
		"https://user:pw@control":    false,
		"https://control/v1":         false,
		"https://control:8443?a=b":   false,
		"ftp://control":              false,
		"https://control:8443#there": false,
	} {
		if err := settings.CheckURL(address); (err == nil) != good {
			t.Errorf("%s: error is %v", address, err)
		}
	}
}
