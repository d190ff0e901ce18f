package isolation_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"thermite/pkg/harness/lanes"
	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// secrets is a kit whose cases have an answer that no candidate may see. A
// worker's first trial submits a candidate that takes its time, and its
// second stays in its lane.
func secrets() map[string]string {
	return map[string]string{
		"kit.toml": `
[kit]
name = "secrets"
version = "1"
title = "What nobody may read"
[project]
path = "project"
editable = ["run.awk"]
[build]
command = ["/bin/true"]
[cases]
command = ["/bin/sh", "{kit}/cases.sh", "{seed}", "{case}"]
public = [1, 2]
secret = 2
hidden = ["answer"]
[run]
command = ["/usr/bin/awk", "-f", "{project}/run.awk", "{case}", "{out}"]
timeout = "5m"
writes = ["out"]
[check]
command = ["/bin/sh", "{kit}/check.sh", "{case}", "{out}"]
[[metric]]
name = "right"
direction = "max"
`,
		"cases.sh":        "echo question-$1 > $2/question\necho hidden-answer-$1 > $2/answer\n",
		"check.sh":        "read a < $1/answer\necho '{\"ok\": true, \"why\": \"\", \"values\": {\"right\": 1}}'\n",
		"project/run.awk": "BEGIN { getline question < (ARGV[1] \"/question\"); print question > (ARGV[2] \"/out\") }\n",
		"project/work.sh": "if grep -q '\"trial\":1,' \"$THERMITE_TRIAL\"; then echo 'BEGIN { system(\"sleep 271\") }' > run.awk; echo '{\"outcome\":\"done\"}'; else sleep 272; fi\n",
	}
}

// atWork has a rig in the middle of a judging and of a trial, and gives the
// processes of both.
func atWork(t *testing.T, w *world) (candidate, worker string) {
	t.Helper()
	w.assign(secrets(), wire.RunAssign{Run: "secrets", Campaign: "secrets", Worker: "exec", WorkerArgs: []string{"/bin/sh", "work.sh"}, Lanes: 1})
	until(t, "the judge runs a candidate", func() bool { candidate = processOf("judge-run", "sleep", "271"); return candidate != "" })
	until(t, "a worker works", func() bool { worker = working(); return worker != "" })
	return candidate, worker
}

// working is the process of the trial that stays, in the first or the second
// lane, as they are free.
func working() string {
	return cmp.Or(processOf("lane-1", "sleep", "272"), processOf("lane-2", "sleep", "272"))
}

// stranger is a lane that the harness gives no trial: what its worker tries,
// any worker may.
func (w *world) stranger() *lanes.Lanes {
	w.t.Helper()
	git, err := exec.LookPath("git")
	must(w.t, err)
	all, err := lanes.New(lanes.Config{Dir: filepath.Join(w.dir, "state", "work", "lanes"), Roles: w.roles, Step: []string{w.program, "step"},
		Git: git, Path: programs, Rand: rand.Reader, Log: w.log})
	must(w.t, err)
	repo := kit.Repository{Dir: filepath.Join(w.t.TempDir(), "run.git")}
	must(w.t, repo.Append(w.t.Context(), kit.Commit{Tree: kit.Tree{{Path: "a", Mode: 0o644}}, Message: "a\n", Time: time.Unix(1, 0)}))
	b, err := repo.Bundle(w.t.Context())
	must(w.t, err)
	bundle := filepath.Join(repo.Dir, "bundle")
	must(w.t, os.WriteFile(bundle, b, 0o600))
	_, err = all.Prepare(w.t.Context(), 3, bundle)
	must(w.t, err)
	return all
}

// tries has the stranger's worker try the probes, and gives what came of each.
func (w *world) tries(all *lanes.Lanes, probes []probe, ports ...int) []found {
	w.t.Helper()
	b, err := json.Marshal(probes)
	must(w.t, err)
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	must(w.t, all.WriteFile(ctx, 3, "probes.json", b))
	id := "stranger-" + strings.ToLower(rand.Text()[:8])
	started, err := all.Start(ctx, 3, lanes.Worker{ID: id, Argv: []string{w.program, "try", "probes.json"}, ReadOnly: []string{w.program}, Ports: ports, Deadline: time.Minute})
	must(w.t, err)
	exited, err := w.roles.Wait(ctx, id)
	must(w.t, err)
	out, err := os.ReadFile(filepath.Join(started.Folder, "stdout"))
	must(w.t, err)
	if exited.Code != 0 {
		said, _ := os.ReadFile(filepath.Join(started.Folder, "stderr"))
		w.t.Fatalf("the worker ends with %+v: %s", exited, said)
	}
	var tried []found
	must(w.t, wire.DecodeStrict(out, &tried))
	if len(tried) != len(probes) {
		w.t.Fatalf("it tried %d of %d", len(tried), len(probes))
	}
	return tried
}

// Promise: a lane's user reaches nothing of the rig but its own lane: no
// hidden case, no other lane, no folder of the judge's, not the ledger, a
// key, a patch or a socket; it signals no other's process and reaches no
// network.
func TestALanesUserReachesNothingElse(t *testing.T) {
	w := newWorld(t)
	candidate, worker := atWork(t, w)
	all := w.stranger()
	own, err := all.Folder(3)
	must(t, err)
	probes, held := files(t, w, filepath.Dir(own))
	probes = append(probes, processes(candidate, worker)...)
	probes = append(probes, network(t, w)...)
	for _, f := range w.tries(all, probes) {
		if f.Refused == "" {
			t.Errorf("it could %v", f.probe)
		}
	}
	for _, f := range w.triesWithoutWalls(held) {
		if f.Refused == "" {
			t.Errorf("by the files' own modes it could %v", f.probe)
		}
	}
	if processOf("judge-run", "sleep", "271") != candidate || working() != worker {
		t.Error("the rig is no longer at what it was at: what was tried may have met nobody")
	}
}

// triesWithoutWalls has the lane's user try to read and write what it finds
// no way to besides the walls of its process: the files' own modes keep it.
// Kits are no secret from users who get around those.
func (w *world) triesWithoutWalls(held map[string]string) []found {
	w.t.Helper()
	var probes []probe
	for name, path := range held {
		switch {
		case name == "kit":
			probes = append(probes, probe{"write", []string{path}})
		case strings.HasSuffix(name, "socket"):
			probes = append(probes, probe{"connect", []string{"unix", path}})
		default:
			probes = append(probes, probe{"read", []string{path}}, probe{"write", []string{path}})
		}
	}
	b, err := json.Marshal(probes)
	must(w.t, err)
	file := filepath.Join(w.dir, "probes.json")
	must(w.t, os.WriteFile(file, b, 0o644))
	cmd := exec.CommandContext(w.t.Context(), w.program, "try", file)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(users["lane-3"]), Gid: uint32(users["lane-3"])}}
	cmd.Stderr, cmd.Dir = os.Stderr, "/"
	out, err := cmd.Output()
	must(w.t, err)
	var tried []found
	must(w.t, wire.DecodeStrict(out, &tried))
	if len(tried) != len(probes) {
		w.t.Fatalf("it tried %d of %d", len(tried), len(probes))
	}
	return tried
}

// files are probes of all that the rig has in its folder, but for what is the
// lane's own, and one of each thing that must be among it. The test is root
// and reads it all: a refusal is the walls'.
func files(t *testing.T, w *world, own string) (probes []probe, held map[string]string) {
	t.Helper()
	held = map[string]string{}
	must(t, filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the rig works on
		}
		if path == own || path == w.program {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		name := strings.TrimPrefix(path, w.dir+"/")
		switch {
		case d.IsDir():
			probes = append(probes, probe{"list", []string{path}}, probe{"make", []string{path}}, probe{"move", []string{path}})
		case d.Type() == fs.ModeSocket:
			probes = append(probes, probe{"connect", []string{"unix", path}})
		case d.Type().IsRegular():
			probes = append(probes, probe{"read", []string{path}}, probe{"write", []string{path}}, probe{"move", []string{path}})
		}
		for _, what := range whatIsHeld {
			if held[what.name] == "" && what.is(name, path) {
				held[what.name] = path
			}
		}
		return err
	}))
	for _, what := range whatIsHeld {
		if held[what.name] == "" {
			t.Errorf("the rig has no %s: the test shows nothing of it; it has\n%s", what.name, strings.Join(paths(probes), "\n"))
		}
	}
	return probes, held
}

func paths(probes []probe) []string {
	all := map[string]bool{}
	for _, p := range probes {
		all[p.Args[len(p.Args)-1]] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// whatIsHeld is what the walk must have come by.
var whatIsHeld = []struct {
	name string
	is   func(name, path string) bool
}{
	{"ledger", func(name, _ string) bool { return name == "state/ledger.db" }},
	{"report key", func(name, _ string) bool { return name == "state/report.key" }},
	{"judge's key", func(name, _ string) bool {
		return strings.HasPrefix(name, "state/judge") && strings.HasSuffix(name, ".key")
	}},
	{"patch", func(name, _ string) bool { return strings.HasPrefix(name, "state/patches/") && len(name) > 70 }},
	{"repository", func(name, _ string) bool { return strings.HasSuffix(name, "-secrets.bundle") }},
	{"kit", func(name, _ string) bool { return strings.HasSuffix(name, "/kit/check.sh") }},
	{"other lane", func(name, _ string) bool {
		return strings.HasPrefix(name, "state/work/lanes/") && strings.HasSuffix(name, "/project/work.sh")
	}},
	{"other trial's file", func(name, _ string) bool { return filepath.Base(name) == "trial.json" }},
	{"hidden answer", func(name, path string) bool {
		b, _ := os.ReadFile(path)
		return filepath.Base(name) == "answer" && strings.HasPrefix(string(b), "hidden-answer-")
	}},
	{"harness's socket", func(name, _ string) bool { return name == "api.sock" }},
	{"broker's socket", func(name, _ string) bool { return name == "broker.sock" }},
	{"output of another process", func(name, _ string) bool {
		return strings.HasPrefix(name, "broker/") && filepath.Base(name) == "stdout"
	}},
}

// processes are probes of others' processes: the harness and the broker,
// which are this one, the candidate's, the worker's of another lane, and the
// machine's first.
func processes(pids ...string) []probe {
	var probes []probe
	for _, pid := range append(pids, strconv.Itoa(os.Getpid()), "1") {
		probes = append(probes, probe{"signal", []string{pid}}, probe{"trace", []string{pid}}, probe{"read", []string{"/proc/" + pid + "/environ"}},
			probe{"read", []string{"/proc/" + pid + "/mem"}})
		if pid != "1" { // the first of its own is there
			probes = append(probes, probe{"list", []string{"/proc/" + pid}})
		}
	}
	return probes
}

// network are probes of what a process may reach through sockets.
func network(t *testing.T, w *world) []probe {
	t.Helper()
	abstract := "@thermite-isolation-" + filepath.Base(w.dir)
	return []probe{
		{"connect", []string{"tcp", listen(t, "tcp", "127.0.0.1:0")}},
		{"connect", []string{"tcp", w.trialAPI()}},
		{"connect", []string{"unix", listen(t, "unix", abstract)}},
		{"connect", []string{"tcp", "192.0.2.1:80"}},
		{"connect", []string{"udp", "192.0.2.1:53"}},
		{"connect", []string{"tcp", "[2001:db8::1]:80"}},
	}
}

// trialAPI is the address of the harness's trial API.
func (w *world) trialAPI() string {
	w.t.Helper()
	all, err := filepath.Glob(filepath.Join(w.dir, "state", "work", "lanes", "[12]", "*", "home", "trial.json"))
	must(w.t, err)
	if len(all) != 1 {
		w.t.Fatalf("the lanes have the trials %v", all)
	}
	b, err := os.ReadFile(all[0])
	must(w.t, err)
	var trial wire.Trial
	must(w.t, wire.DecodeStrict(b, &trial))
	return strings.TrimPrefix(trial.URL, "http://")
}

// listen answers every connection with a byte.
func listen(t *testing.T, network, at string) string {
	t.Helper()
	l, err := net.Listen(network, at)
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("x"))
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

// Promise: what is refused to a lane is refused by the walls: its worker does
// with its own lane and the port that it is given what it may, and leaves no
// process behind.
func TestALanesUserHasItsOwn(t *testing.T) {
	w := newWorld(t)
	all := w.stranger()
	own, err := all.Folder(3)
	must(t, err)
	port := listen(t, "tcp", "127.0.0.1:0")
	_, number, err := net.SplitHostPort(port)
	must(t, err)
	n, err := strconv.Atoi(number)
	must(t, err)
	probes := []probe{{"read", []string{own + "/probes.json"}}, {"write", []string{own + "/a"}}, {"list", []string{own}}, {"make", []string{own}}, {"move", []string{own + "/a"}},
		{"make", []string{filepath.Dir(own) + "/home"}}, {"make", []string{"/tmp"}}, {"connect", []string{"tcp", port}}, {"detach", []string{"273"}}}
	for _, f := range w.tries(all, probes, n) {
		if f.Refused != "" {
			t.Errorf("it could not %v: %s", f.probe, f.Refused)
		}
	}
	if pid := processOf("lane-3", "/bin/sleep", "273"); pid != "" {
		t.Errorf("its process %s outlives it", pid)
	}
}

func uidOf(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }
