// Package lanes keeps the lanes' folders: where the worker of a trial changes
// the project. A lane's folder is a git clone of its run's repository, made
// afresh for each trial, and its lane's user's alone. A clone, and no work
// tree: work trees share a repository that every lane's user would write to.
//
// The harness is neither root nor a lane's user. What is done in a lane's
// folder, a step does that runs as that user:
//
//	<Dir>/<lane>/             the harness's, 0711
//	  <128 random bits>/      the harness's: 0777 while the lane's user makes
//	                          what is in it, else 0711
//	    project/              the lane's user's, 0700: the clone
//	    home/                 the lane's user's, 0700: its home, and trial.json
package lanes

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"thermite/pkg/harness/steps"
	"thermite/pkg/wire"
)

// Broker starts processes, as pkg/broker/client does.
type Broker interface {
	steps.Broker
}

// Config is what lanes are kept with.
type Config struct {
	// Dir is the lanes' folder, which roles' users can enter: they pass
	// through each folder above it.
	Dir   string
	Roles Broker
	// Step is the command `thermite-worker step`, its program by an absolute
	// path.
	Step []string
	// Git is the git program, by an absolute path, and Path is PATH for it
	// and for what it starts.
	Git, Path string
	// Rand gives random bits for names, to many goroutines.
	Rand io.Reader
	Log  *slog.Logger
}

// Lanes are the rig's lanes. Its methods may be called from any goroutine;
// of one lane, the folder changes only in Prepare and Clear.
type Lanes struct {
	cfg   Config
	steps *steps.Runner

	mu sync.Mutex
	// at is each lane's folder of now.
	at map[uint64]string
}

// ErrNoLane says that a lane has no folder: none was prepared.
var ErrNoLane = errors.New("the lane has no folder")

// RoleOf is the role at the broker that works in a lane.
func RoleOf(lane uint64) string { return "lane-" + strconv.FormatUint(lane, 10) }

// New makes the lanes' folder, if it is not there. What lanes an earlier
// harness left goes when each is prepared or cleared.
func New(cfg Config) (*Lanes, error) {
	if err := open(cfg.Dir); err != nil {
		return nil, fmt.Errorf("making the lanes' folder: %w", err)
	}
	runner, err := steps.New(steps.Config{Roles: cfg.Roles, Argv: cfg.Step, Dir: filepath.Join(cfg.Dir, "jobs"), Rand: cfg.Rand, Log: cfg.Log})
	if err != nil {
		return nil, err
	}
	return &Lanes{cfg: cfg, steps: runner, at: map[uint64]string{}}, nil
}

// open makes a folder that others pass through and can't list.
func open(dir string) error {
	return errors.Join(os.MkdirAll(dir, 0o711), os.Chmod(dir, 0o711))
}

// Names in a lane's folder.
const (
	projectName = "project"
	homeName    = "home"
	bundleName  = "champion.bundle"
	trialName   = "trial.json"
)

// stepTime is how long a step in a lane may take, and stepLimits what it may
// use.
const stepTime = 2 * time.Minute

var stepLimits = wire.BrokerLimits{Memory: 1 << 30, Tasks: 64, Output: 128 << 20, Disk: 1 << 30}

// Prepare gives a lane a fresh folder: a clone of the bundle's main, which
// the harness can read. What the lane had before goes.
func (l *Lanes) Prepare(ctx context.Context, lane uint64, bundle string) (folder string, err error) {
	folder, err = l.prepare(ctx, lane, bundle)
	if err != nil {
		return "", fmt.Errorf("preparing lane %d: %w", lane, err)
	}
	return folder, nil
}

func (l *Lanes) prepare(ctx context.Context, lane uint64, bundle string) (string, error) {
	if err := l.clear(ctx, lane); err != nil {
		return "", err
	}
	dir, err := l.newFolder(lane)
	if err != nil {
		return "", err
	}
	from := filepath.Join(dir, bundleName)
	if err := copyFile(bundle, from); err != nil {
		return "", err
	}
	project, home := filepath.Join(dir, projectName), filepath.Join(dir, homeName)
	ops := []wire.StepOp{
		{Make: &wire.StepMake{Folder: home, Mode: 0o700}},
		{Make: &wire.StepMake{Folder: project, Mode: 0o700}},
	}
	for _, argv := range l.clone(from, project) {
		ops = append(ops, wire.StepOp{Run: &wire.StepRun{Argv: argv, Env: l.gitEnv(home), Dir: project, Timeout: stepTime, Keep: wire.MaxOutputBytes}})
	}
	if err := l.handed(dir, func() error { return l.step(ctx, lane, ops, []string{dir}, nil) }); err != nil {
		return "", err
	}
	if err := os.Remove(from); err != nil {
		return "", err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at[lane] = dir
	return project, nil
}

// newFolder makes the folder of a lane's next trial.
func (l *Lanes) newFolder(lane uint64) (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(l.cfg.Rand, b[:]); err != nil {
		return "", fmt.Errorf("drawing a name: %w", err)
	}
	dir := filepath.Join(l.dir(lane), hex.EncodeToString(b[:]))
	return dir, errors.Join(open(l.dir(lane)), open(dir))
}

func (l *Lanes) dir(lane uint64) string {
	return filepath.Join(l.cfg.Dir, strconv.FormatUint(lane, 10))
}

// clone are the commands that make the clone. It has no remote: the bundle
// goes.
func (l *Lanes) clone(bundle, project string) [][]string {
	return [][]string{
		{l.cfg.Git, "-c", "core.fsync=none", "-c", "core.symlinks=false", "-c", "core.autocrlf=false", "clone", "--quiet", "--template=", "--branch=main",
			"--config=user.name=lane", "--config=user.email=lane@thermite.invalid", "--config=gc.auto=0", bundle, project},
		{l.cfg.Git, "remote", "remove", "origin"},
	}
}

func (l *Lanes) gitEnv(home string) map[string]string {
	return map[string]string{"PATH": l.cfg.Path, "HOME": home, "LC_ALL": "C", "TZ": "UTC", "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
}

// handed lets the lane's user make what is in the folder, whose name nobody
// else knows, while do works.
func (l *Lanes) handed(dir string, do func() error) error {
	if err := os.Chmod(dir, 0o777); err != nil {
		return err
	}
	return errors.Join(do(), os.Chmod(dir, 0o711))
}

// step does ops as the lane's user.
func (l *Lanes) step(ctx context.Context, lane uint64, ops []wire.StepOp, write []string, out func(io.Reader) error) error {
	_, err := l.stepResult(ctx, lane, ops, write, out)
	return err
}

func (l *Lanes) stepResult(ctx context.Context, lane uint64, ops []wire.StepOp, write []string, out func(io.Reader) error) (wire.StepResult, error) {
	return l.steps.Run(ctx, steps.Step{Role: RoleOf(lane), Ops: ops, ReadWrite: write, Limits: stepLimits, Deadline: stepTime, Output: out})
}

// Clear removes what the lane has. Its worker must have ended.
func (l *Lanes) Clear(ctx context.Context, lane uint64) error {
	if err := l.clear(ctx, lane); err != nil {
		return fmt.Errorf("clearing lane %d: %w", lane, err)
	}
	return nil
}

func (l *Lanes) clear(ctx context.Context, lane uint64) error {
	l.mu.Lock()
	delete(l.at, lane)
	l.mu.Unlock()
	entries, err := os.ReadDir(l.dir(lane))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if err := l.clearFolder(ctx, lane, filepath.Join(l.dir(lane), e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// clearFolder removes a folder of the lane: what its user made as its user,
// the rest as the harness.
func (l *Lanes) clearFolder(ctx context.Context, lane uint64, dir string) error {
	if os.Remove(dir) == nil {
		return nil // it was empty
	}
	ops := []wire.StepOp{{Empty: filepath.Join(dir, projectName)}, {Empty: filepath.Join(dir, homeName)}}
	if err := l.step(ctx, lane, ops, []string{dir}, nil); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	// The mode is set by itself, so that no umask changes it.
	return errors.Join(os.WriteFile(to, b, 0o600), os.Chmod(to, 0o644))
}
