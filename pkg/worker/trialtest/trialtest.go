// Package trialtest is a world for the tests of workers: the harness's trial
// API as it is, a lane in a plain folder, and a judge that the test is.
package trialtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"thermite/pkg/harness/trialapi"
	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// Judge gives the verdict of a lane that was submitted. It returns nil for an
// attempt that is to wait for its verdict forever.
type Judge func(attempt uint64, lane kit.Tree, tunables map[string]string) *wire.Verdict

// A World is one run with one trial.
type World struct {
	// File is the trial's file, which holds Trial.
	File  string
	Trial wire.Trial
	// Admitted is the trial in the API.
	Admitted *trialapi.Admitted
	// Addr is where the API listens.
	Addr string
	// Kit is the trial's.
	Kit kit.Kit
	// Refuse, if it is set, gives the answer to a submit instead.
	Refuse func(lane kit.Tree) error

	judge Judge
	wall  func(tunables map[string]string) float64

	mu       sync.Mutex
	attempts []trialapi.Facts
	digests  []string // of the lane at first, and of each attempt
	progress []string
	live     []string
}

// Options are what differs between worlds.
type Options struct {
	// Kit is the text of kit.toml, and Files the lane's, by path.
	Kit   string
	Files map[string]string
	// Trial is what the trial's file says besides.
	Trial wire.Trial
	// Before are attempts of earlier trials.
	Before []trialapi.Facts
	// Judge judges; without one all attempts wait.
	Judge Judge
	// Wall is how many milliseconds the one public case of an attempt takes.
	Wall func(tunables map[string]string) float64
}

// New makes a world, which ends with the test.
func New(t testing.TB, o Options) *World {
	t.Helper()
	w := &World{Trial: o.Trial, judge: o.Judge, wall: o.Wall, attempts: o.Before}
	var err error
	if o.Kit != "" {
		if w.Kit, err = kit.Decode([]byte(o.Kit)); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	w.Trial.Folder = filepath.Join(dir, "lane")
	for path, data := range o.Files {
		write(t, filepath.Join(w.Trial.Folder, path), []byte(data))
	}
	if err := os.MkdirAll(w.Trial.Folder, 0o700); err != nil {
		t.Fatal(err)
	}
	w.digests = append(w.digests, w.Lane(t).Digest())
	w.serve(t, o)
	b, err := json.Marshal(w.Trial)
	if err != nil {
		t.Fatal(err)
	}
	w.File = filepath.Join(dir, "trial.json")
	write(t, w.File, b)
	return w
}

func (w *World) serve(t testing.TB, o Options) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	token, sum, err := trialapi.NewToken(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	w.Addr = l.Addr().String()
	w.Trial.Rig, w.Trial.Run = "alpha", "run"
	if w.Trial.Kit == "" {
		w.Trial.Kit = o.Kit
	}
	w.Trial.URL, w.Trial.Token = "http://"+w.Addr, token
	if w.Trial.Trial == 0 {
		w.Trial.Trial, w.Trial.Lane = 7, 1
	}
	if w.Trial.Deadline.IsZero() {
		w.Trial.Deadline = wire.At(time.Now().Add(time.Hour))
	}
	server := trialapi.New(trialapi.Config{Trials: controller{w}, Files: files{w.Trial.Folder}, SubmitsEach: 1000, Log: slog.New(slog.DiscardHandler)})
	w.Admitted = server.Admit(trialapi.Session{Trial: w.Trial, Sum: sum, Editable: []string{"**"}})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Lane gives the lane's files as they are.
func (w *World) Lane(t testing.TB) kit.Tree {
	t.Helper()
	tree, err := kit.ReadDir(w.Trial.Folder)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// Attempts are all of the run's, those of earlier trials first.
func (w *World) Attempts() []trialapi.Facts {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.attempts)
}

// Said are the lines of progress.
func (w *World) Said() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.progress)
}

// Live are the live lines.
func (w *World) Live() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.live)
}

// controller is the world as the API asks it.
type controller struct{ *World }

// Submit implements trialapi.Trials.
func (w controller) Submit(_ context.Context, trial trialapi.Ref, s wire.Submit) (wire.Submitted, error) {
	lane, err := kit.ReadDir(w.Trial.Folder)
	if err != nil {
		return wire.Submitted{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Refuse != nil {
		if err := w.Refuse(lane); err != nil {
			return wire.Submitted{}, err
		}
	}
	if at := slices.Index(w.digests, lane.Digest()); at >= 0 {
		p := &wire.TrialProblem{Status: 409, Title: "Nothing new", Code: wire.TrialNothing, Detail: "the lane holds what was there before"}
		if at > 0 {
			p.Attempt = w.attempts[len(w.attempts)-len(w.digests)+at].Attempt.Attempt
		}
		return wire.Submitted{}, p
	}
	tunables, err := w.Kit.ReadTunables(lane)
	if err != nil {
		return wire.Submitted{}, err
	}
	f := trialapi.Facts{Attempt: wire.Attempt{Attempt: uint64(len(w.attempts) + 1), Trial: trial.Trial, Title: s.Title, Why: s.Why, Tunables: tunables}}
	if w.judge != nil {
		f.Verdict = w.judge(f.Attempt.Attempt, lane, tunables)
		f.Check = &wire.Step{Attempt: f.Attempt.Attempt, OK: true, Cases: []wire.StepCase{{Seed: 1, OK: true}}}
		if w.wall != nil {
			f.Check.Cases[0].WallMS = w.wall(tunables)
		}
	}
	w.attempts, w.digests = append(w.attempts, f), append(w.digests, lane.Digest())
	return wire.Submitted{Attempt: f.Attempt.Attempt}, nil
}

// Attempts implements trialapi.Trials.
func (w controller) Attempts(_ context.Context, _ trialapi.Ref, after uint64, most int) ([]trialapi.Facts, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.attempts[min(after, uint64(len(w.attempts))):]
	return slices.Clone(list[:min(most, len(list))]), nil
}

// Attempt implements trialapi.Trials.
func (w controller) Attempt(_ context.Context, _ trialapi.Ref, n uint64) (trialapi.Facts, <-chan struct{}, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n > uint64(len(w.attempts)) {
		return trialapi.Facts{}, nil, &wire.TrialProblem{Status: 404, Title: "Not found", Code: wire.TrialNotFound, Detail: fmt.Sprintf("there is no attempt %d", n)}
	}
	return w.attempts[n-1], make(chan struct{}), nil
}

// Progress implements trialapi.Trials.
func (w controller) Progress(_ context.Context, _ trialapi.Ref, p wire.TrialProgress) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.progress = append(w.progress, p.Text)
	return nil
}

// Live implements trialapi.Trials.
func (w controller) Live(_ context.Context, _ trialapi.Ref, said wire.TrialLines) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live = append(w.live, said.Lines...)
	return nil
}

// files are the lane's, in a plain folder.
type files struct{ folder string }

// List implements trialapi.Files.
func (f files) List(context.Context, uint64) ([]wire.StepEntry, error) {
	tree, err := kit.ReadDir(f.folder)
	var list []wire.StepEntry
	for _, file := range tree {
		list = append(list, wire.StepEntry{Path: file.Path, Mode: uint32(file.Mode), Size: int64(len(file.Data))})
	}
	return list, err
}

// ReadFile implements trialapi.Files.
func (f files) ReadFile(_ context.Context, _ uint64, path string) ([]byte, error) {
	return os.ReadFile(filepath.Join(f.folder, path))
}

// WriteFile implements trialapi.Files.
func (f files) WriteFile(_ context.Context, _ uint64, path string, data []byte) error {
	at := filepath.Join(f.folder, path)
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return err
	}
	return os.WriteFile(at, data, 0o600)
}

// RemoveFile implements trialapi.Files.
func (f files) RemoveFile(_ context.Context, _ uint64, path string) error {
	return os.Remove(filepath.Join(f.folder, path))
}

// Kit is the text of a kit.toml with these tunables, and a metric called
// score of which more is better.
func Kit(tunables string) string {
	return `[kit]
name = "least"
version = "1"
title = "Least"

[project]
path = "project"
editable = ["src/**"]

[build]
command = ["true"]

[cases]
command = ["cases", "{seed}", "{case}"]
public = [1]

[run]
command = ["{project}/run", "{case}", "{out}"]

[check]
command = ["check", "{case}", "{out}"]

[[metric]]
name = "score"
direction = "max"
` + tunables
}
