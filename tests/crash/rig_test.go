package crash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// rig is a broker and a harness, each a process of its own.
type rig struct {
	t               *testing.T
	dir             string
	broker, harness *process
	http            *http.Client
	ledger          string
	events          []wire.Event
}

// roles are the tests' roles: numbers that no account has, for root.
var roles = []string{"judge-build", "judge-check", "judge-run", "lane-1"}

const firstUser = 61401

// newRig makes a rig's folder and settings; nothing runs yet.
func newRig(t *testing.T) *rig {
	t.Helper()
	bin, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "crash") // a socket's path must be short, and roles pass through it
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, dir: dir}
	t.Cleanup(func() {
		r.kill()
		if t.Failed() {
			t.Logf("%s\n%s", r.broker.tail(), r.harness.tail())
		}
		os.RemoveAll(dir)
	})
	text := fmt.Sprintf("client = \"%d\"\nlauncher = %q\n", os.Geteuid(), map[bool]string{true: "plain", false: "same-user"}[os.Geteuid() == 0])
	for i, role := range roles {
		user := os.Geteuid()
		if user == 0 {
			user = firstUser + i
		}
		text += fmt.Sprintf("[[role]]\nname = %q\nuser = \"%d\"\nshells = true\n", role, user)
	}
	if err := errors.Join(os.Chmod(dir, 0o711), os.WriteFile(r.in("broker.toml"), []byte(text), 0o600),
		os.WriteFile(r.in("control.pub"), []byte(control(t).Public().String()), 0o600), os.MkdirAll(r.in("inbox"), 0o755)); err != nil {
		t.Fatal(err)
	}
	r.broker = &process{log: r.in("broker.log"), args: []string{filepath.Join(bin, "thermite-broker"), "--file=" + r.in("broker.toml"),
		"--state=" + r.in("broker"), "--socket=" + r.in("broker.sock")}}
	r.harness = &process{log: r.in("harness.log"), args: []string{filepath.Join(bin, "thermite-harness"), "--rig=alpha", "--state=" + r.in("state"),
		"--socket=" + r.in("api.sock"), "--broker=" + r.in("broker.sock"), "--inbox=" + r.in("inbox"), "--control-key=" + r.in("control.pub"),
		"--trial-listen=127.0.0.1:0", "--worker=" + filepath.Join(bin, "thermite-worker")}}
	r.http = &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", r.in("api.sock"))
	}}}
	return r
}

func (r *rig) in(name string) string { return filepath.Join(r.dir, name) }

func control(t *testing.T) *wire.Signer {
	t.Helper()
	s, err := wire.NewSigner(bytes.Repeat([]byte{5}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (r *rig) start() {
	r.broker.start(r.t)
	r.harness.start(r.t)
}

func (r *rig) kill() {
	r.harness.kill()
	r.broker.kill()
}

// assign begins the run, as the supervisor does; the harness may be starting.
func (r *rig) assign() {
	r.t.Helper()
	if _, err := kit.Stage(r.t.Context(), kit.Source{Dir: slowKit(r.t)}, r.in("inbox/it")); err != nil {
		r.t.Fatal(err)
	}
	args, err := wire.Canonical(wire.RunAssign{Run: "numbers", Campaign: "counting", Worker: "tune", Seed: 3,
		Kit: wire.KitSource{Git: "https://example.org/kit.git", Commit: strings.Repeat("ab", 20)}})
	if err != nil {
		r.t.Fatal(err)
	}
	now := time.Now()
	command, err := wire.EncodeCommand(control(r.t), wire.Command{ID: strings.Repeat("a2", 13), Rig: "alpha", Kind: wire.CommandRunAssign, Args: args,
		IssuedAt: wire.At(now), ExpiresAt: wire.At(now.Add(time.Hour))})
	if err != nil {
		r.t.Fatal(err)
	}
	body, err := wire.EncodeCommandDelivery(wire.CommandDelivery{Command: command, Staged: "it"})
	if err != nil {
		r.t.Fatal(err)
	}
	r.wait("the harness to take the command", func() bool {
		a, err := r.http.Post("http://harness"+wire.HarnessCommandsPath, "application/json", bytes.NewReader(body))
		if err != nil {
			return false
		}
		b, err := read(a.Body)
		if got, decodeErr := wire.DecodeCommandAnswer(b); err != nil || decodeErr != nil || got.State != wire.CommandApplied {
			r.t.Fatalf("the command: %s: %v", b, err)
		}
		return true
	})
}

// look reads what events are new; nothing while no harness answers.
func (r *rig) look() {
	r.t.Helper()
	if r.ledger == "" {
		b, ok := r.get(wire.HarnessLedgerPath)
		if !ok {
			return
		}
		state, err := wire.DecodeLedgerState(b)
		if err != nil {
			r.t.Fatal(err)
		}
		r.ledger = state.Ledger
	}
	b, ok := r.get(fmt.Sprintf("%s?ledger=%s&after=%d", wire.HarnessPagePath, r.ledger, len(r.events)))
	if !ok {
		return
	}
	page, err := wire.DecodePage(b)
	if err != nil {
		r.t.Fatal(err)
	}
	r.events = append(r.events, page.Events...)
}

func (r *rig) get(path string) ([]byte, bool) {
	a, err := r.http.Get("http://harness" + path)
	if err != nil {
		return nil, false
	}
	b, err := read(a.Body)
	return b, err == nil && a.StatusCode == http.StatusOK
}

// wait waits until is says so.
func (r *rig) wait(what string, is func() bool) {
	r.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(2 * time.Minute); !is(); {
		select {
		case <-tick.C:
		case <-deadline:
			r.t.Fatalf("waited for %s", what)
		}
	}
}

// has waits for an event of the kind, about the subject unless that is empty.
func (r *rig) has(kind, subject string) wire.Event {
	r.t.Helper()
	var found wire.Event
	r.wait(kind+" of "+subject, func() bool {
		r.look()
		for _, e := range r.events {
			if e.Kind == kind && (subject == "" || e.Subject == subject) {
				found = e
				return true
			}
			if e.Kind == wire.KindRunEnded || e.Kind == wire.KindRunPaused {
				r.t.Fatalf("the run does not go on: %s %s", e.Kind, e.Body)
			}
		}
		return false
	})
	return found
}

// slowKit is a kit each of whose steps takes long enough to be seen: the step's
// sleep is its own.
func slowKit(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"kit.toml": `
[kit]
name = "numbers"
version = "1"
title = "The largest number"
[project]
path = "project"
editable = ["value.txt"]
ignore = ["built.txt"]
[build]
command = ["/bin/sh", "-c", "sleep 0.301; cp value.txt built.txt"]
outputs = ["built.txt"]
[cases]
command = ["/bin/sh", "-c", "sleep 0.302; echo {seed} > {case}/seed"]
public = [1]
secret = 1
[run]
command = ["/bin/sh", "-c", "sleep 0.303; cp {project}/built.txt {out}/value.txt"]
writes = ["value.txt"]
[check]
command = ["/bin/sh", "{kit}/check.sh", "{out}/value.txt"]
[[metric]]
name = "value"
direction = "max"
[[worker.tunable]]
name = "size"
file = "value.txt"
marker = "size = "
kind = "int"
range = [1, 90]
`,
		"check.sh": `sleep 0.304
read name is value < "$1"
echo "{\"ok\": true, \"why\": \"\", \"values\": {\"value\": $value}}"
`,
		"project/value.txt": "size = 1\n",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
