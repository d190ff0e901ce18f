package judge_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"thermite/pkg/broker"
	"thermite/pkg/broker/client"
	"thermite/pkg/harness/judge"
	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

func TestMain(m *testing.M) {
	broker.Main()
	if len(os.Args) > 3 && os.Args[1] == "judge" {
		if err := judgeMain(os.Args[2], os.Args[3]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if programsDir != "" {
		os.RemoveAll(programsDir)
	}
	os.Exit(code)
}

var (
	programsDir string
	programs    = sync.OnceValues(buildPrograms)
)

// buildPrograms builds the worker, and the broker, which starts processes in
// the larger test's place, where every user may run them.
func buildPrograms() (dir string, err error) {
	if programsDir, err = os.MkdirTemp("", "programs"); err != nil {
		return "", err
	}
	out, err := exec.Command("go", "build", "-o", programsDir+"/", "thermite/cmd/thermite-worker", "thermite/cmd/thermite-broker").CombinedOutput()
	if err != nil {
		return "", errors.New(string(out))
	}
	return programsDir, os.Chmod(programsDir, 0o755)
}

// roles is the broker's file: numbers that no user of the machine has.
const roles = `
client = "%d"
launcher = %q
deadline = "10m"
[[role]]
name = "judge-build"
user = "61041"
[[role]]
name = "judge-check"
user = "61042"
[[role]]
name = "judge-run"
user = "61043"
[[role]]
name = "lane-1"
user = "61044"
`

// A world is a judge with its broker.
type world struct {
	t        testing.TB
	dir      string
	launcher string
	client   *client.Client
	judge    *judge.Judge
	config   judge.Config
	said     *said
}

// said is what was logged, from any goroutine.
type said struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// openDir makes a folder whose path is short enough for a socket, and which
// every user may enter.
func openDir(t testing.TB) string {
	t.Helper()
	d, err := os.MkdirTemp("", "judge")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(d); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(d, 0o711); err != nil {
		t.Fatal(err)
	}
	return d
}

// launchers are the worlds that a promise of each is tested in.
func launchers(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("same-user", func(t *testing.T) { test(t, newWorld(t, "same-user")) })
	t.Run("plain", func(t *testing.T) { test(t, plainWorld(t)) })
}

// plainWorld is one whose roles are users.
func plainWorld(t testing.TB) *world {
	t.Helper()
	if os.Geteuid() != 0 {
		const why = "only root gives a process another user"
		if os.Getenv("CI") != "" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	return newWorld(t, "plain")
}

func newWorld(t testing.TB, launcher string) *world {
	t.Helper()
	w := &world{t: t, dir: openDir(t), launcher: launcher, said: new(said)}
	file := filepath.Join(w.dir, "broker.toml")
	if err := os.WriteFile(file, fmt.Appendf(nil, roles, os.Geteuid(), launcher), 0o600); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(w.said, nil))
	ctx, cancel := context.WithCancel(context.Background())
	bin, err := programs()
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	b, err := broker.New(ctx, broker.Config{File: file, Program: filepath.Join(bin, "thermite-broker"), StateDir: filepath.Join(w.dir, "broker"), Socket: filepath.Join(w.dir, "broker.sock"),
		Build: "test", Now: time.Now, Log: log})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the broker ended with %v", err)
		}
	})
	w.client = client.New(client.Config{Socket: filepath.Join(w.dir, "broker.sock"), Log: log})
	t.Cleanup(func() { _ = w.client.Close() })
	w.config = judge.Config{Dir: filepath.Join(w.dir, "work"), Roles: w.client, Step: []string{filepath.Join(bin, "thermite-worker"), "step"},
		Key: bytes.Repeat([]byte{7}, 32), Path: "/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin", Now: time.Now, Rand: rand.Reader, Log: log}
	w.judge = w.newJudge()
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(w.said)
		}
	})
	return w
}

func (w *world) newJudge() *judge.Judge {
	w.t.Helper()
	if err := os.MkdirAll(w.config.Dir, 0o711); err != nil {
		w.t.Fatal(err)
	}
	j, err := judge.New(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(j.Close)
	return j
}

func (w *world) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	w.t.Cleanup(cancel)
	return ctx
}

// stage stages a kit that ships, or writes one.
func (w *world) stage(s kit.Source) *kit.Staged {
	w.t.Helper()
	into, err := os.MkdirTemp(w.config.Dir, "kit")
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.Chmod(into, 0o755); err != nil {
		w.t.Fatal(err)
	}
	staged, err := kit.Stage(w.context(), s, filepath.Join(into, "staged"))
	if err != nil {
		w.t.Fatal(err)
	}
	return staged
}

// base judges the base.
func (w *world) base(staged *kit.Staged) judge.Result {
	w.t.Helper()
	r, err := w.judge.Base(w.context(), w.job(staged, 0, nil))
	if err != nil {
		w.t.Fatal(err)
	}
	if r.Verdict.Outcome != "promoted" || r.Verdict.Score == nil {
		w.t.Fatalf("the base is %+v", r.Verdict)
	}
	w.check(r)
	return r
}

func (w *world) job(staged *kit.Staged, attempt uint64, tree kit.Tree) judge.Job {
	return judge.Job{Ledger: "l", Run: "r", Attempt: attempt, Judging: 1, Staged: staged, Tree: tree}
}

// fixture gives a fixture's candidate.
func (w *world) fixture(staged *kit.Staged, f kit.Fixture) (kit.Tree, error) {
	w.t.Helper()
	patch, _ := staged.Files.File(f.Patch)
	tree, _, err := kit.ApplyPatch(w.context(), staged.Kit.Project, staged.Base, patch.Data)
	return tree, err
}

// check holds that a result can be written to a ledger, and that a judging
// says how it went.
func (w *world) check(r judge.Result) {
	w.t.Helper()
	v := r.Verdict
	v.Attempt = max(v.Attempt, 1)
	bodies := []wire.Body{v}
	for _, s := range []*wire.Step{r.Build, r.Check, r.Measure} {
		if s != nil {
			bodies = append(bodies, wire.Measure{Step: *s})
		}
	}
	for _, b := range bodies {
		if _, err := wire.EncodeBody(b); err != nil {
			w.t.Errorf("%v: %+v", err, b)
		}
	}
	if v.Why == "" || r.Build == nil {
		w.t.Errorf("the verdict says nothing: %+v", r)
	}
}

// empty holds that nothing is left but what is kept.
func (w *world) empty() {
	w.t.Helper()
	w.judge.Close()
	list, err := w.client.List(w.context())
	if err != nil || len(list) > 0 {
		w.t.Errorf("the broker still has %+v, %v", list, err)
	}
	kept, err := os.ReadDir(filepath.Join(w.config.Dir, "judge-kept"))
	if err != nil {
		w.t.Fatal(err)
	}
	names := ""
	for _, k := range kept {
		b, err := os.ReadFile(filepath.Join(w.config.Dir, "judge-kept", k.Name()))
		if err != nil {
			w.t.Fatal(err)
		}
		names += string(b) + " "
	}
	folders, err := os.ReadDir(filepath.Join(w.config.Dir, "judge"))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range folders {
		if !strings.Contains(names, f.Name()) {
			w.t.Errorf("the folder %s is left, and is not kept: %s", f.Name(), names)
		}
	}
}
