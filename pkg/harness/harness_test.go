package harness_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"thermite/pkg/harness"
)

func config(t *testing.T) harness.Config {
	t.Helper()
	dir, err := os.MkdirTemp("", "harness") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return harness.Config{Rig: "alpha", StateDir: filepath.Join(dir, "state"), Socket: filepath.Join(dir, "api.sock"), Build: "v1",
		Now: time.Now, Rand: rand.Reader, Log: slog.New(slog.DiscardHandler)}
}

// run starts a harness, and gives how to stop it.
func run(t *testing.T, c harness.Config) (*harness.Harness, func()) {
	t.Helper()
	h, err := harness.New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	done := false
	end := func() {
		t.Helper()
		if done {
			return
		}
		done = true
		stop()
		select {
		case err := <-ended:
			if err := errors.Join(err, h.Close()); err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Error("the harness does not stop")
		}
	}
	t.Cleanup(end)
	return h, end
}

// wait waits until the ledger holds so many events.
func wait(t *testing.T, h *harness.Harness, last uint64) {
	t.Helper()
	for {
		woken := h.Ledger().Changed()
		s, err := h.Ledger().State()
		if err != nil {
			t.Fatal(err)
		}
		if s.Last >= last {
			return
		}
		select {
		case <-woken:
		case <-time.After(time.Minute):
			t.Fatalf("the ledger stays at event %d of %d", s.Last, last)
		}
	}
}

// Promise: started again, a harness has the same ledger and key, and made
// exactly the events it was told to make.
func TestHarnessStartsAgainWhereItWas(t *testing.T) {
	c := config(t)
	c.Sample = 300
	h, stop := run(t, c)
	key := h.Key()
	wait(t, h, 100)
	stop()
	h, stop = run(t, c)
	wait(t, h, 301)
	at := h.Health()
	stop()
	if h, _ = run(t, c); h.Key() != key || h.Health().Ledger != at.Ledger || h.Health().Last != 301 || !h.Health().OK {
		t.Errorf("the third time its key is the same: %v, its health %+v, which was %+v", h.Key() == key, h.Health(), at)
	}
}

// Promise: the report key's seed is its owner's alone, and never said.
func TestReportKeyIsItsOwnersAlone(t *testing.T) {
	c := config(t)
	var said bytes.Buffer
	c.Log = slog.New(slog.NewTextHandler(&said, nil))
	_, stop := run(t, c)
	stop()
	path := filepath.Join(c.StateDir, "report.key")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the key's mode is %v: %v", info.Mode(), err)
	}
	if dir, err := os.Stat(c.StateDir); err != nil || dir.Mode().Perm() != 0o700 {
		t.Errorf("the folder's mode is %v: %v", dir.Mode(), err)
	}
	seed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	secret := strings.TrimSpace(string(seed))
	if strings.Contains(said.String(), secret) {
		t.Error("the log holds the seed")
	}
	refused := func(what string) {
		t.Helper()
		h, err := harness.New(t.Context(), c)
		if err == nil {
			h.Close()
			t.Fatalf("%s: it starts", what)
		}
		if !strings.Contains(err.Error(), "report key") || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), secret[:20]) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	refused("a key that others may read")
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{"half a key": secret[:20], "no base64": "*" + secret[1:], "nothing": "", "two": secret + secret} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		refused(what)
	}
}

// Promise: a harness whose ledger is damaged starts, says so, and neither
// writes nor reports.
func TestDamagedLedgerIsSaidAtStart(t *testing.T) {
	c := config(t)
	_, stop := run(t, c)
	stop()
	path := filepath.Join(c.StateDir, "ledger.db")
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	c.Sample = 100
	h, _ := run(t, c)
	if health := h.Health(); health.OK || !strings.Contains(health.Why, "damaged at event 1") {
		t.Errorf("the health is %+v", health)
	}
}

// Promise: a wrong setting is named, all of them at once.
func TestSettingsAreChecked(t *testing.T) {
	good := config(t)
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for field, change := range map[string]func(*harness.Config){
		"Rig":      func(c *harness.Config) { c.Rig = "Alpha" },
		"StateDir": func(c *harness.Config) { c.StateDir = "state" },
		"Socket":   func(c *harness.Config) { c.Socket = "" },
		"Sample":   func(c *harness.Config) { c.SampleRate = -1 },
		"Broker":   func(c *harness.Config) { c.Broker = "/run/broker.sock" },
		"Work":     func(c *harness.Config) { c.Work = "work" },
		"Build":    func(c *harness.Config) { c.Build = "" },
		"Now":      func(c *harness.Config) { c.Now = nil },
	} {
		c := good
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "setting "+field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	bad := harness.Config{}
	if err := bad.Validate(); err == nil || strings.Count(err.Error(), "the harness's setting") < 5 {
		t.Errorf("with nothing set: %v", err)
	}
}

// Promise: every setting of the harness has its name in the environment.
func TestSettingsHaveTheirNames(t *testing.T) {
	handed := map[string]bool{"WorkerArgs": true, "Roles": true, "Build": true, "Listener": true, "Now": true, "Rand": true, "Log": true}
	names := map[string]bool{}
	for f := range reflect.TypeFor[harness.Config]().Fields() {
		name := f.Tag.Get("env")
		if handed[f.Name] != (name == "") || name != "" && (!strings.HasPrefix(name, "THERMITE_") || names[name]) {
			t.Errorf("%s has the name %q", f.Name, name)
		}
		names[name] = true
	}
}
