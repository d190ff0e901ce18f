package broker_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"thermite/pkg/broker"
)

// Promise: a broker without a file gives roles the users it is told, and does
// not start if one of its roles has none.
func TestUsersWithoutAFile(t *testing.T) {
	needRoot(t)
	roles := []string{"judge-run", "lane-1"}
	w := newWorld(t, func(c *broker.Config, _ string) {
		c.Roles, c.Users = roles, map[string]int{"judge-run": uidRun, "lane-1": uidLane1}
	})
	for role, uid := range map[string]int{"judge-run": uidRun, "lane-1": uidLane1} {
		s := w.shell("")
		s.Role, s.Argv = role, []string{"/usr/bin/id", "-u"}
		if r := w.run(s); strings.TrimSpace(r.out) != fmt.Sprint(uid) {
			t.Errorf("%s is user %s, want %d: %s", role, r.out, uid, r.err)
		}
	}
	_, err := broker.New(t.Context(), broker.Config{Roles: roles, Users: map[string]int{"lane-1": uidLane1}, StateDir: filepath.Join(w.dir, "other"),
		Socket: filepath.Join(w.dir, "other.sock"), Build: "test", Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "role judge-run has no user") {
		t.Errorf("without a user for judge-run: %v", err)
	}
}

// Promise: another program may start the processes, and does so though its
// file was written anew since.
func TestAnotherProgramStartsProcesses(t *testing.T) {
	exe, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	var program string
	w := newWorld(t, func(c *broker.Config, dir string) {
		program = filepath.Join(dir, "starts")
		if err := os.WriteFile(program, exe, 0o755); err != nil {
			t.Fatal(err)
		}
		c.Program = program
	})
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, []byte("#!/bin/false\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := w.shell("")
	s.Argv = []string{"/usr/bin/true"}
	if r := w.run(s); r.Code != 0 {
		t.Errorf("it ended with %+v %s", r.BrokerExited, r.err)
	}
	_, err = broker.New(t.Context(), broker.Config{Program: program + "-none", StateDir: w.state, Socket: filepath.Join(w.dir, "other.sock"),
		Build: "test", Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "the program that starts processes") {
		t.Errorf("without the program: %v", err)
	}
}
