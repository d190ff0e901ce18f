package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"thermite/pkg/kit"
	"thermite/pkg/wire"
	"thermite/pkg/worker/trialtest"
)

// asMain makes this test's program the command itself.
const asMain = "THERMITE_WORKER_TEST_IS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// program is the command, with nothing in its environment but what a broker
// gives.
func program(args ...string) (cmd *exec.Cmd, out, said *bytes.Buffer) {
	cmd = exec.Command(os.Args[0], args...)
	cmd.Env = []string{asMain + "=1", "PATH=/usr/bin:/bin", "GORACE=atexit_sleep_ms=0"}
	out, said = new(bytes.Buffer), new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = out, said
	return cmd, out, said
}

const tunable = `
[[worker.tunable]]
name = "steps"
file = "src/a.go"
marker = "steps = "
kind = "int"
range = [1, 1000]
`

// Promise: as a harness starts them, the workers do their trial and print its
// result last.
func TestWorkers(t *testing.T) {
	for _, name := range []string{"tune", "exec"} {
		t.Run(name, func(t *testing.T) {
			w := trialtest.New(t, trialtest.Options{Kit: trialtest.Kit(tunable), Files: map[string]string{"src/a.go": "steps = 5\n"},
				Trial: wire.Trial{Title: "fewer", Worker: name, Most: 3, Seed: 1, Metric: wire.Metric{Name: "score", Direction: wire.DirectionMax},
					Args: []string{"sh", "-c", `echo 'steps = 7' >src/a.go; echo '{"outcome":"done"}'`}},
				Judge: func(n uint64, _ kit.Tree, _ map[string]string) *wire.Verdict {
					return &wire.Verdict{Attempt: n, Outcome: "failed", Why: "it is one", Step: "run"}
				}})
			cmd, out, said := program(name, "--trial", w.File)
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v: %s", err, said)
			}
			r, err := wire.DecodeTrialResult(wire.LastLine(out.Bytes()))
			if err != nil || r.Outcome != wire.ResultDone || r.Attempts == 0 || r.Attempts != uint64(len(w.Attempts())) {
				t.Errorf("it ends with %+v, %v and prints %q", r, err, out)
			}
		})
	}
}

// Promise: told to end, a worker ends with what it did by then.
func TestEndsAtASignal(t *testing.T) {
	w := trialtest.New(t, trialtest.Options{Kit: trialtest.Kit(tunable), Files: map[string]string{"src/a.go": "steps = 5\n"}})
	cmd, out, said := program("tune", "--trial", w.File)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); len(w.Said()) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it submits nothing, and says %s", said)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	r, bad := wire.DecodeTrialResult(wire.LastLine(out.Bytes()))
	if err != nil || bad != nil || r != (wire.TrialResult{Outcome: wire.ResultDone, Why: "the worker was told to end", Attempts: 1}) {
		t.Errorf("it ends with %v, prints %q and says %s", err, out, said)
	}
}

// Promise: as "step" it does the job on its standard input and writes its
// result to descriptor 3.
func TestStep(t *testing.T) {
	at := filepath.Join(t.TempDir(), "file")
	job, err := wire.EncodeStepJob(wire.StepJob{Ops: []wire.StepOp{{Write: &wire.StepWrite{Path: at, Data: []byte("hello"), Mode: 0o600}}}})
	if err != nil {
		t.Fatal(err)
	}
	result, err := os.Create(filepath.Join(t.TempDir(), "result"))
	if err != nil {
		t.Fatal(err)
	}
	defer result.Close()
	cmd, _, said := program("step")
	cmd.Stdin, cmd.ExtraFiles = bytes.NewReader(job), []*os.File{result}
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if b, err := os.ReadFile(at); err != nil || string(b) != "hello" {
		t.Errorf("the file is %q, %v", b, err)
	}
	if b, err := os.ReadFile(result.Name()); err != nil || !strings.Contains(string(b), `"ops"`) {
		t.Errorf("the result is %q, %v", b, err)
	}
}

// Promise: wrong use ends with 2, a trial that fails with 1, and each says
// what is wrong.
func TestWrongUse(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		says string
		code int
	}{
		"no trial":       {[]string{"tune"}, "--trial", 2},
		"unknown flag":   {[]string{"tune", "--trail=x"}, "--trail", 2},
		"an argument":    {[]string{"exec", "--trial=x", "now"}, "now", 2},
		"unknown worker": {[]string{"think"}, "think", 2},
		"step with more": {[]string{"step", "now"}, "now", 2},
		"no file":        {[]string{"tune", "--trial=/dev/null/trial"}, "reading the trial", 1},
		"help":           {[]string{"--help"}, "", 0},
		"nothing":        {nil, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, _, said := program(c.args...)
			_ = cmd.Run() // its code says how it ended
			if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(said.String(), c.says) {
				t.Errorf("it ends with %d, not %d, and says %q, not %q", code, c.code, said, c.says)
			}
		})
	}
}
