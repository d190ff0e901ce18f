// Package judge decides what a candidate is worth: it has it built, run and
// checked as roles that neither the candidate nor each other reaches, and
// compares it with the champion. docs/judge.md says how and why.
//
// The judge keeps nothing that a ledger's reader needs: a judging that was
// cut off is made again from its first step, on the same secret cases, as its
// seeds come from the judge's key and the judging's name. What it keeps are
// folders, which it makes again when they are gone.
package judge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"thermite/pkg/harness/judge/decide"
	"thermite/pkg/harness/steps"
	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// The judge's roles at the broker.
const (
	RoleBuild = "judge-build"
	RoleCheck = "judge-check"
	RoleRun   = "judge-run"
)

// Broker is what the judge needs of the broker's client.
type Broker interface {
	steps.Broker
	List(ctx context.Context) ([]wire.BrokerProcess, error)
	Ping(ctx context.Context) (wire.BrokerPong, error)
}

// Config is what a judge works with.
type Config struct {
	// Dir is the harness's work folder: roles' users may enter it and those
	// above it, mode 0711. The judge has judge, judge-kept and judge-jobs in
	// it.
	Dir   string
	Roles Broker
	// Step is the command `thermite-worker step`, by an absolute path.
	Step []string
	// Key makes secret seeds what nobody else can foretell: 32 bytes.
	Key []byte
	// Path is the PATH of the kits' commands.
	Path string
	// ModelEnv and ModelPorts are for runs that call a model: none without a
	// model route.
	ModelEnv   map[string]string
	ModelPorts []int
	Now        func() time.Time
	// Rand gives random bits for names, to many goroutines.
	Rand io.Reader
	Log  *slog.Logger
}

// ErrKit is wrapped by errors that are the kit's own fault: judging again
// comes to the same.
var ErrKit = errors.New("the kit is at fault")

// Judge judges. Its methods may be called from any goroutine.
type Judge struct {
	cfg     Config
	steps   *steps.Runner
	keeping *keeping

	// always takes each candidate to the secret cases: for the bench of how
	// often one that is the same is promoted.
	always bool

	// names matches the folders' paths.
	names *regexp.Regexp

	making keyed
	sweeps sync.WaitGroup
}

// New makes a judge. It starts nothing.
func New(cfg Config) (*Judge, error) {
	if len(cfg.Key) != 32 {
		return nil, fmt.Errorf("making the judge: its key has %d bytes, not 32", len(cfg.Key))
	}
	j := &Judge{cfg: cfg, making: keyed{locks: map[string]chan struct{}{}}}
	j.names = regexp.MustCompile(regexp.QuoteMeta(j.folders()) + "/[0-9a-f]{32}")
	err := errors.Join(folder(j.folders(), 0o711), folder(filepath.Join(cfg.Dir, "judge-kept"), 0o700))
	if err == nil {
		j.steps, err = steps.New(steps.Config{Roles: cfg.Roles, Argv: cfg.Step, Dir: filepath.Join(cfg.Dir, "judge-jobs"), Rand: cfg.Rand, Log: cfg.Log})
	}
	if err != nil {
		return nil, fmt.Errorf("making the judge: %w", err)
	}
	j.keeping = &keeping{dir: filepath.Join(cfg.Dir, "judge-kept"), used: map[string]int{}}
	return j, nil
}

// folders is where each judging's, kit's and build's folder is.
func (j *Judge) folders() string { return filepath.Join(j.cfg.Dir, "judge") }

// Job is one judging.
type Job struct {
	// Ledger, Run, Attempt and Judging name it: the same name has the same
	// secret cases. Judging counts from 1.
	Ledger, Run      string
	Attempt, Judging uint64
	Staged           *kit.Staged
	// Tree is the candidate's whole project, after kit.Overlay.
	Tree kit.Tree
	// Champion is the tree to compare it with, and ChampionAttempt its
	// attempt: the base's, if nil.
	Champion        kit.Tree
	ChampionAttempt uint64
	// ChampionPublic are the champion's figures from its own judging, if they
	// are known: then it need not be run again where runs can be compared.
	ChampionPublic *PublicFigures
	// AllowSuspect lets a score pass the kit's bound: its owner has looked.
	AllowSuspect bool
	// Progress, if given, is told what the judging is at.
	Progress func(string)
}

// Result is what a judging came to. Steps that it did not come to are nil.
type Result struct {
	Build, Check, Measure *wire.Step
	Verdict               wire.Verdict
	Public                PublicFigures
	// Commands is what the kit's commands took, and Own what the judging did
	// besides.
	Commands, Own time.Duration
}

// PublicFigures are what a candidate reached on the public cases.
type PublicFigures struct {
	// Values are the kit's metrics over all cases.
	Values map[string]float64
	// Cases are those of each case.
	Cases []decide.CaseFigures
}

// FiguresOf reads an attempt's public figures from its measure step.
func FiguresOf(k kit.Kit, s wire.Step) PublicFigures {
	var runs []decide.CaseFigures
	for _, c := range s.Cases {
		if !c.Secret && !c.Champion && c.OK {
			runs = append(runs, decide.CaseFigures{Seed: c.Seed, Values: c.Values})
		}
	}
	return figures(k, runs)
}

// figures has no values of who failed a case: a sum, or a mean, over other
// cases is not to be compared with one over all.
func figures(k kit.Kit, runs []decide.CaseFigures) PublicFigures {
	p := PublicFigures{Values: map[string]float64{}, Cases: decide.PerCase(runs)}
	if len(p.Cases) < len(k.Cases.Public) {
		return p
	}
	for _, m := range k.Metrics {
		if v, ok := decide.Score(m, p.Cases); ok {
			p.Values[m.Name] = v
		}
	}
	return p
}

// Base builds the kit's base and measures it on the public cases: what the
// first candidates are compared with. Its verdict is promoted, or says how
// the base fails.
func (j *Judge) Base(ctx context.Context, job Job) (Result, error) {
	job.Tree, job.Champion = job.Staged.Base, nil
	return j.judge(ctx, job, (*judging).base)
}

// Judge judges a candidate. An error says what is not the candidate's doing:
// the same job may be judged again.
func (j *Judge) Judge(ctx context.Context, job Job) (Result, error) {
	if job.Champion == nil {
		job.Champion = job.Staged.Base
	}
	return j.judge(ctx, job, (*judging).candidate)
}

func (j *Judge) judge(ctx context.Context, job Job, do func(*judging, context.Context) error) (res Result, err error) {
	failed := func(err error) error {
		return fmt.Errorf("judging attempt %d of %s: %w", job.Attempt, job.Run, err)
	}
	m, err := j.prepared(ctx, job.Staged)
	if err != nil {
		return res, failed(err)
	}
	began := j.cfg.Now()
	defer j.keeping.release(m.name)
	g := &judging{j: j, job: job, kit: job.Staged.Kit, made: m}
	if g.name, g.dir, err = j.newFolder(); err != nil {
		return res, failed(err)
	}
	defer g.leave()
	g.res.Verdict = wire.Verdict{Attempt: job.Attempt, Judging: job.Judging, Against: job.ChampionAttempt}
	if err := do(g, ctx); err != nil {
		return res, failed(err)
	}
	g.hide()
	g.res.Own = j.cfg.Now().Sub(began) - g.res.Commands
	j.cfg.Log.Info("judged an attempt", "run", job.Run, "attempt", job.Attempt, "outcome", g.res.Verdict.Outcome, "step", g.res.Verdict.Step,
		"commands", g.res.Commands, "own", g.res.Own)
	return g.res, nil
}

// Close waits until what judgings left is removed.
func (j *Judge) Close() { j.sweeps.Wait() }

// newFolder makes a folder under a name that nobody guesses.
func (j *Judge) newFolder() (name, dir string, err error) {
	if name, err = j.draw(); err != nil {
		return "", "", err
	}
	dir = filepath.Join(j.folders(), name)
	return name, dir, folder(dir, 0o711)
}

// draw draws 128 bits for a name.
func (j *Judge) draw() (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(j.cfg.Rand, b[:]); err != nil {
		return "", fmt.Errorf("drawing a name: %w", err)
	}
	return fmt.Sprintf("%x", b), nil
}

// folder makes a folder with that mode, whatever the umask says.
func folder(path string, mode os.FileMode) error {
	return errors.Join(os.MkdirAll(path, mode), os.Chmod(path, mode))
}

// hand makes folders that any role's user may write, which only one knows the
// names of; closed ends that.
func hand(paths ...string) error { return each(paths, 0o777) }

func closed(paths ...string) error {
	// What is in them stays open to who knows the way.
	return each(paths, 0o711)
}

func each(paths []string, mode os.FileMode) error {
	var errs []error
	for _, p := range paths {
		errs = append(errs, folder(p, mode))
	}
	return errors.Join(errs...)
}

// keyed is a lock for each key.
type keyed struct {
	mu    sync.Mutex
	locks map[string]chan struct{}
}

// lock waits for the key's turn.
func (k *keyed) lock(ctx context.Context, key string) (unlock func(), err error) {
	k.mu.Lock()
	l := k.locks[key]
	if l == nil {
		l = make(chan struct{}, 1)
		k.locks[key] = l
	}
	k.mu.Unlock()
	select {
	case l <- struct{}{}:
		return func() { <-l }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
