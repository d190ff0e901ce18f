package supervisor_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caarlos0/env/v11"

	"thermite/pkg/supervisor"
)

// settings gives settings that are good in themselves.
func settings(t *testing.T) supervisor.Config {
	t.Helper()
	c := supervisor.Config{Rig: "alpha", ControlURL: "https://control:8443", BusURL: "nats://control:4222", Build: "v1",
		Now: time.Now, Rand: rand.Reader, Log: slog.New(slog.DiscardHandler)}
	if err := env.ParseWithOptions(&c, env.Options{Environment: map[string]string{}}); err != nil {
		t.Fatal(err)
	}
	return c
}

// Promise: the defaults are the seed's, and a setting that is wrong is named
// with what is wrong.
func TestSettings(t *testing.T) {
	c := settings(t)
	if err := c.Validate(); err != nil || c.Poll != supervisor.Seconds(time.Minute) {
		t.Errorf("the defaults: %v, %v", c.Poll, err)
	}
	for name, w := range map[string]struct {
		change func(*supervisor.Config)
		says   string
	}{
		"no rig":         {func(c *supervisor.Config) { c.Rig = "" }, "Rig: rig name"},
		"bad rig":        {func(c *supervisor.Config) { c.Rig = "al.pha" }, "Rig: rig name"},
		"no bus":         {func(c *supervisor.Config) { c.BusURL = "" }, "BusURL: it is not set: a rig reports to control on the message bus alone"},
		"bus's scheme":   {func(c *supervisor.Config) { c.BusURL = "http://control" }, "BusURL"},
		"bus's user":     {func(c *supervisor.Config) { c.BusURL = "nats://me:secret@control" }, "may hold no user"},
		"no control":     {func(c *supervisor.Config) { c.ControlURL = "" }, "ControlURL"},
		"in the clear":   {func(c *supervisor.Config) { c.ControlURL = "http://control:8080" }, "in the clear"},
		"no URL":         {func(c *supervisor.Config) { c.ControlURL = "https://me:secret@\x7f" }, "ControlURL"},
		"a query":        {func(c *supervisor.Config) { c.ControlURL = "https://control/?a=b" }, "query"},
		"token file":     {func(c *supervisor.Config) { c.TokenFile = "token" }, "TokenFile"},
		"authority":      {func(c *supervisor.Config) { c.Authority = "" }, "Authority"},
		"socket":         {func(c *supervisor.Config) { c.Socket = "s" }, "Socket"},
		"state":          {func(c *supervisor.Config) { c.StateDir = "" }, "StateDir"},
		"no poll":        {func(c *supervisor.Config) { c.Poll = 0 }, "Poll"},
		"poll too long":  {func(c *supervisor.Config) { c.Poll = supervisor.Seconds(2 * time.Hour) }, "Poll"},
		"no build":       {func(c *supervisor.Config) { c.Build = "" }, "Build"},
		"long build":     {func(c *supervisor.Config) { c.Build = strings.Repeat("b", 101) }, "Build"},
		"nothing to log": {func(c *supervisor.Config) { c.Log = nil }, "Now, Rand, Log"},
	} {
		c := settings(t)
		w.change(&c)
		_, err := supervisor.New(context.Background(), c)
		if err == nil || !strings.Contains(err.Error(), w.says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
	c.ControlURL = "http://127.0.0.1:8080"
	if err := c.Validate(); err != nil {
		t.Errorf("http on loopback: %v", err)
	}
}

// Promise: seconds are read as a number, and nothing else is.
func TestSeconds(t *testing.T) {
	for text, want := range map[string]time.Duration{"60": time.Minute, "0.25": 250 * time.Millisecond, "3600": time.Hour, "1e1": 10 * time.Second} {
		var s supervisor.Seconds
		if err := s.Set(text); err != nil || time.Duration(s) != want {
			t.Errorf("%s is %v, %v", text, time.Duration(s), err)
		}
		var again supervisor.Seconds
		if err := again.Set(s.String()); err != nil || again != s {
			t.Errorf("%s is written %s, which is %v, %v", text, s, again, err)
		}
	}
	for _, text := range []string{"", "x", "-1", "60s", "NaN", "Inf", "1e300", "3600.1"} {
		s := supervisor.Seconds(time.Second)
		if err := s.Set(text); err == nil || s != supervisor.Seconds(time.Second) {
			t.Errorf("%q is read as %v, %v", text, s, err)
		}
	}
}

// Promise: what the supervisor can't start without, stops it at its start and
// is named by its file.
func TestFilesItNeeds(t *testing.T) {
	w := startWorld(t)
	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(bad, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{bad, bad + ".none"} {
		c := w.config
		c.Authority = path
		if _, err := supervisor.New(t.Context(), c); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("the authority in %s: %v", path, err)
		}
	}
	for _, name := range []string{"bus-key.seed", "bus-seal.pem"} {
		c := w.config
		c.StateDir = t.TempDir()
		path := filepath.Join(c.StateDir, name)
		if err := os.WriteFile(path, []byte("secret garbage"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := supervisor.New(t.Context(), c); err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "garbage") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
