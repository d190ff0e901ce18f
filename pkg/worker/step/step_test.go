package step_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/kit"
	"thermite/pkg/wire"
	"thermite/pkg/worker/step"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "step" {
		os.Exit(step.Main())
	}
	os.Exit(m.Run())
}

// do has a step's process do the operations.
func do(t *testing.T, ops ...wire.StepOp) (wire.StepResult, []byte) {
	t.Helper()
	return doAs(t, nil, ops...)
}

func doAs(t *testing.T, user *syscall.Credential, ops ...wire.StepOp) (wire.StepResult, []byte) {
	t.Helper()
	job, err := wire.EncodeStepJob(wire.StepJob{Ops: ops})
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "step")
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = bytes.NewReader(job), &out, &said, []*os.File{w}
	cmd.Env, cmd.SysProcAttr = []string{"GORACE=atexit_sleep_ms=0"}, &syscall.SysProcAttr{Credential: user}
	cmd.Dir = "/"
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close() // the process has it
	raw, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || said.Len() > 0 {
		t.Fatalf("the step ends with %v and says %s", err, &said)
	}
	result, err := wire.DecodeStepResult(raw)
	if err != nil {
		t.Fatalf("%v: %q", err, raw)
	}
	return result, out.Bytes()
}

// last gives the result of the last operation that was begun.
func last(t *testing.T, r wire.StepResult, n int) wire.StepDone {
	t.Helper()
	if len(r.Ops) != n {
		t.Fatalf("%d operations were begun, not %d: %+v", len(r.Ops), n, r)
	}
	return r.Ops[n-1]
}

func sh(script string, change ...func(*wire.StepRun)) wire.StepOp {
	run := wire.StepRun{Argv: []string{"sh", "-c", script}, Env: map[string]string{"PATH": "/usr/bin:/bin"}, Timeout: 20 * time.Second, Keep: 1000}
	for _, c := range change {
		c(&run)
	}
	return wire.StepOp{Run: &run}
}

// Promise: a job's operations are done in their order, and what is written,
// copied and packed is what was there.
func TestAJobIsDoneInItsOrder(t *testing.T) {
	dir := t.TempDir()
	tree := kit.Tree{{Path: "a/run.sh", Mode: 0o755, Data: []byte("#!/bin/sh\necho ran\n")}, {Path: "b", Mode: 0o644, Data: []byte("plain")}, {Path: "hidden/x", Mode: 0o644, Data: []byte("42")}}
	archive, project, seen := filepath.Join(dir, "archive"), filepath.Join(dir, "new/project"), filepath.Join(dir, "seen")
	f, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Archive(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	r, out := do(t,
		wire.StepOp{Unpack: &wire.StepUnpack{Archive: archive, Folder: project, Mode: 0o700}},
		wire.StepOp{Write: &wire.StepWrite{Path: filepath.Join(project, "deep/er/c"), Data: []byte("written"), Mode: 0o600}},
		wire.StepOp{Run: &wire.StepRun{Argv: []string{"./a/run.sh"}, Dir: project, Timeout: time.Minute, Keep: 100, Need: []string{filepath.Join(project, "b")}}},
		wire.StepOp{Copy: &wire.StepCopy{From: project, To: seen, Mode: 0o755, Without: []string{"hidden/**", "deep/**"}}},
		wire.StepOp{List: project},
		wire.StepOp{Pack: &wire.StepPack{Folder: project, Without: []string{"deep/**"}}},
		wire.StepOp{Remove: project},
		wire.StepOp{Make: &wire.StepMake{Folder: project, Mode: 0o711}})
	if d := last(t, r, 8); d.Error != "" {
		t.Fatal(d.Error)
	}
	if ran := r.Ops[2].Run; ran == nil || !ran.OK() || ran.Stdout != "ran\n" || ran.Wall <= 0 {
		t.Errorf("the command gave %+v", ran)
	}
	want := []wire.StepEntry{{Path: "a/run.sh", Mode: 0o755, Size: 19}, {Path: "b", Mode: 0o644, Size: 5}, {Path: "deep/er/c", Mode: 0o600, Size: 7}, {Path: "hidden/x", Mode: 0o644, Size: 2}}
	if diff := cmp.Diff(want, r.Ops[4].List); diff != "" {
		t.Errorf("the list differs:\n%s", diff)
	}
	if packed, err := kit.ReadArchive(bytes.NewReader(out)); err != nil {
		t.Error(err)
	} else if diff := cmp.Diff(tree, packed); diff != "" {
		t.Errorf("what is packed differs:\n%s", diff)
	}
	if got, err := kit.ReadDir(seen); err != nil {
		t.Error(err)
	} else if diff := cmp.Diff(tree.Without([]string{"hidden/**"}), got); diff != "" {
		t.Errorf("what is copied differs:\n%s", diff)
	}
	if entries, err := os.ReadDir(project); err != nil || len(entries) > 0 {
		t.Errorf("what was removed is there: %v %v", entries, err)
	}
	if info, err := os.Stat(project); err != nil || info.Mode().Perm() != 0o711 {
		t.Errorf("the folder has %v %v", info, err)
	}
}

// Promise: the first operation that fails ends the job, with why, and one
// that may fail does not.
func TestTheFirstFailureEndsTheJob(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		op   wire.StepOp
		want string
	}{
		"exit":       {sh("echo out; echo said >&2; exit 7"), "sh ended with 7"},
		"signal":     {sh("kill -TERM $$"), "sh was ended by SIGTERM"},
		"timeout":    {sh("sleep 600", func(r *wire.StepRun) { r.Timeout = 100 * time.Millisecond }), "sh took more than 100ms"},
		"too long":   {sh("echo more than ten bytes", func(r *wire.StepRun) { r.Keep = 10 }), "sh printed more than 10 bytes"},
		"need":       {sh("true", func(r *wire.StepRun) { r.Need = []string{filepath.Join(dir, "bin/x")} }), "left no " + filepath.Join(dir, "bin/x")},
		"no program": {wire.StepOp{Run: &wire.StepRun{Argv: []string{"no-such"}, Timeout: time.Second}}, "starting no-such: executable file not found"},
		"no folder":  {wire.StepOp{List: filepath.Join(dir, "none")}, "no such file"},
		"no archive": {wire.StepOp{Unpack: &wire.StepUnpack{Archive: "/dev/null", Folder: filepath.Join(dir, "u"), Mode: 0o700}}, "reading an archive"},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := do(t, c.op, wire.StepOp{Make: &wire.StepMake{Folder: filepath.Join(dir, name), Mode: 0o700}})
			if d := last(t, r, 1); !strings.Contains(d.Error, c.want) {
				t.Errorf("it says %q, not %q", d.Error, c.want)
			}
			if c.op.Run == nil || r.Ops[0].Run == nil {
				return
			}
			c.op.GoOn = true
			r, _ = do(t, c.op, wire.StepOp{Make: &wire.StepMake{Folder: filepath.Join(dir, name), Mode: 0o700}})
			if d := last(t, r, 2); d.Error != "" || r.Ops[0].Error == "" {
				t.Errorf("it does not go on: %+v", r)
			}
		})
	}
}

// Promise: what a command prints is kept as far as was asked, its output's
// beginning and its error's end, and may be any bytes.
func TestOutputsAreBounded(t *testing.T) {
	r, _ := do(t, sh(`i=0; while [ $i -lt 2000 ]; do echo "line $i" >&2; i=$((i+1)); done; printf '\377ok'`, func(r *wire.StepRun) { r.Keep = 30 }))
	ran := last(t, r, 1).Run
	if ran.Stderr != "line 1998\nline 1999\n" || ran.Stdout != "\ufffdok" || ran.TooLong {
		t.Errorf("it kept %q and %q", ran.Stdout, ran.Stderr)
	}
	r, _ = do(t, sh("head -c 100000000 /dev/zero; echo end >&2"))
	if ran := last(t, r, 1).Run; !ran.TooLong || len(ran.Stdout) != 1000 || ran.Stderr != "end\n" {
		t.Errorf("it kept %d bytes: %v %q", len(ran.Stdout), ran.TooLong, ran.Stderr)
	}
}

// Promise: a command's end is the end of all it started, though it left the
// group and the session, and held the outputs open.
func TestACommandsEndIsTheEndOfAllItStarted(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "alive")
	script := `(setsid sh -c 'setsid sleep 600 & echo $! > ` + marker + `; wait' & ) ; while [ ! -s ` + marker + ` ]; do sleep 0.01; done`
	for name, more := range map[string]string{"ends": "", "fails": "; exit 3", "hangs": "; sleep 600"} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			op := sh(script+more, func(r *wire.StepRun) { r.Timeout = 2 * time.Second })
			op.GoOn = true
			r, _ := do(t, op, sh("true"))
			last(t, r, 2)
			if d := time.Since(began); d > 30*time.Second {
				t.Errorf("it took %v", d)
			}
			b, err := os.ReadFile(marker)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat("/proc/" + strings.TrimSpace(string(b)) + "/stat"); err == nil {
				t.Errorf("%s runs on", b)
			}
			if err := os.Remove(marker); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Promise: a job's commands, which have the step's own user, can't write its
// result: they neither hold its descriptor nor look into the step.
func TestACommandCantWriteTheResult(t *testing.T) {
	var user *syscall.Credential
	if os.Geteuid() == 0 { // root may look into anything
		user = &syscall.Credential{Uid: 61021, Gid: 61021}
	}
	r, _ := doAs(t, user, sh(`for fd in /proc/self/fd/* /proc/$$/fd/*; do readlink $fd; done; echo '{"ops":[]}' >&3 && echo wrote 3; ls -l /proc/$PPID/fd >/dev/null && echo looked; echo x > /proc/$PPID/fd/3 && echo wrote; true`))
	d := last(t, r, 1)
	if d.Error != "" {
		t.Fatal(d.Error)
	}
	for _, word := range []string{"wrote 3", "looked", "wrote"} {
		if strings.Contains(d.Run.Stdout, word) {
			t.Errorf("it says %s", d.Run.Stdout)
		}
	}
}

// Promise: only plain files are copied, and no link leads out; what is shut
// is removed all the same.
func TestCopyAndRemoveOfWhatIsHostile(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	if err := os.MkdirAll(filepath.Join(from, "shut/deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(dir, "secret")
	for _, p := range []string{secret, filepath.Join(from, "plain"), filepath.Join(from, "shut/deep/x")} {
		if err := os.WriteFile(p, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{os.Symlink(secret, filepath.Join(from, "link")), os.Symlink(dir, filepath.Join(from, "folder")), syscall.Mkfifo(filepath.Join(from, "pipe"), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r, _ := do(t, wire.StepOp{Copy: &wire.StepCopy{From: from, To: to, Mode: 0o755}}, wire.StepOp{List: from}, wire.StepOp{List: to})
	if d := last(t, r, 3); d.Error != "" || len(d.List) != 2 || d.List[0].Path != "plain" || d.List[1].Path != "shut/deep/x" || d.List[0].Mode != 0o644 {
		t.Errorf("it copied %+v", d)
	}
	if l := r.Ops[1].List; len(l) != 5 || os.FileMode(l[1].Mode)&os.ModeSymlink == 0 || os.FileMode(l[2].Mode)&os.ModeNamedPipe == 0 {
		t.Errorf("it lists %+v", l)
	}
	links := filepath.Join(dir, "links")
	r, _ = do(t, wire.StepOp{Copy: &wire.StepCopy{From: from, To: links, Mode: 0o755, Link: true}}, wire.StepOp{List: links})
	if d := last(t, r, 2); len(d.List) != 2 || os.FileMode(d.List[1].Mode)&os.ModeSymlink == 0 {
		t.Errorf("it linked %+v", d)
	}
	if b, err := os.ReadFile(filepath.Join(links, "shut/deep/x")); err != nil || string(b) != "x" {
		t.Errorf("a link leads to %q, %v", b, err)
	}
	if err := os.Chmod(filepath.Join(from, "shut/deep"), 0o500); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(from, "shut"), 0o000); err != nil {
		t.Fatal(err)
	}
	r, _ = do(t, wire.StepOp{Remove: from}, wire.StepOp{Remove: from})
	if d := last(t, r, 2); d.Error != "" {
		t.Error(d.Error)
	}
	if _, err := os.Stat(secret); err != nil {
		t.Errorf("what a link named is gone: %v", err)
	}
}

// Promise: what a folder may not hold is refused by what it is, and told from
// what the machine could not do.
func TestPackRefuses(t *testing.T) {
	dir := t.TempDir()
	a := filepath.Join(dir, "a")
	if err := os.WriteFile(a, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(a, filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	r, _ := do(t, wire.StepOp{Pack: &wire.StepPack{Folder: dir}})
	if d := last(t, r, 1); !d.Refused || !strings.Contains(d.Error, "is a hard link") {
		t.Errorf("it says %+v", d)
	}
	r, _ = do(t, wire.StepOp{Pack: &wire.StepPack{Folder: filepath.Join(dir, "none")}})
	if d := last(t, r, 1); d.Refused || d.Error == "" {
		t.Errorf("it says %+v", d)
	}
}

// Promise: without a result's descriptor, or with a job that is none, a step
// does nothing and says so.
func TestWhatIsNoJob(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "step")
	cmd.Stdin = strings.NewReader(`{"ops":[{"make":{"folder":"/x","mode":448}}]}`)
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "no descriptor 3") {
		t.Errorf("it ends with %v and says %s", err, out)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd = exec.CommandContext(t.Context(), "/proc/self/exe", "step")
	cmd.Stdin, cmd.ExtraFiles = strings.NewReader(`{"ops":[{"make":{"folder":"x","mode":448}}]}`), []*os.File{w}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), `ops[0]: make.folder "x": an absolute path`) {
		t.Errorf("it ends with %v and says %s", err, out)
	}
	_ = w.Close()
	if b, err := io.ReadAll(r); err != nil || len(b) > 0 {
		t.Errorf("there is a result: %s %v", b, err)
	}
}

// Promise: a strict copy takes a folder that holds nothing else, and refuses
// one that does by what that is.
func TestStrictCopy(t *testing.T) {
	dir := t.TempDir()
	from := filepath.Join(dir, "from")
	if err := os.MkdirAll(filepath.Join(from, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	answer := filepath.Join(from, "answer.json")
	if err := os.WriteFile(answer, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := 0
	strict := func() wire.StepDone {
		n++
		op := wire.StepCopy{From: from, To: filepath.Join(dir, "to", strconv.Itoa(n)), Mode: 0o755, Only: []string{"*.json"}, Strict: true}
		r, _ := do(t, wire.StepOp{Copy: &op, GoOn: true}, wire.StepOp{Empty: filepath.Join(dir, "none")})
		last(t, r, 2)
		return r.Ops[0]
	}
	if d := strict(); d.Error != "" {
		t.Error(d.Error)
	}
	for name, plant := range map[string]func(string) error{
		".git/x":    func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"b.txt":     func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"link.json": func(p string) error { return os.Symlink(answer, p) },
		"pipe.json": func(p string) error { return syscall.Mkfifo(p, 0o600) },
	} {
		p := filepath.Join(from, name)
		if err := plant(p); err != nil {
			t.Fatal(err)
		}
		if d := strict(); !d.Refused || !strings.Contains(d.Error, "what it left is refused: "+name) {
			t.Errorf("%s: %+v", name, d)
		}
		if err := os.Remove(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(answer, 1<<40); err != nil { // which takes no room
		t.Fatal(err)
	}
	op := wire.StepCopy{From: from, To: filepath.Join(dir, "large"), Mode: 0o755, Most: 1 << 30}
	r, _ := do(t, wire.StepOp{Copy: &op})
	if d := last(t, r, 1); !d.Refused || !strings.Contains(d.Error, "more than 1073741824 bytes") {
		t.Errorf("a file without end: %+v", d)
	}
	r, _ = do(t, wire.StepOp{Empty: from})
	if d := last(t, r, 1); d.Error != "" {
		t.Error(d.Error)
	}
	if entries, err := os.ReadDir(from); err != nil || len(entries) > 0 {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
}
