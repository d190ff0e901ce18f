// Package repos keeps a bare git repository for each run, with a commit for
// the kit's base and one for each champion, in the order in which they became
// it. Lanes are cloned from a bundle of it, so that a worker sees what was
// tried and won. All of it can be made again from the kit and the patches,
// and is, when it is not there or can't be read.
package repos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"thermite/pkg/files"
	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// Config is what the repositories are kept with.
type Config struct {
	// Dir is their folder, which is the harness's alone.
	Dir string
	Log *slog.Logger
}

// Repos are the runs' repositories. Its methods may be called from any
// goroutine.
type Repos struct {
	cfg Config

	mu sync.Mutex
	// bundled is how many champions each run's bundle has.
	bundled map[Run]int
}

// A Champion is one of a run: the first is the kit's base, and each later one
// what a champion event of the ledger names, which never changes.
type Champion struct {
	// Attempt is 0 for the kit's base.
	Attempt    uint64
	Title, Why string
	Time       time.Time
	// Tree gives the champion's whole project; it is called when its commit
	// is to be made.
	Tree func(context.Context) (kit.Tree, error)
}

// New makes the repositories' folder, if it is not there.
func New(cfg Config) (*Repos, error) {
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("opening the runs' repositories: %w", err)
	}
	return &Repos{cfg: cfg, bundled: map[Run]int{}}, nil
}

// A Run names a run: its ledger's runs are its own.
type Run struct{ Ledger, Run string }

func (r Run) check() error {
	return errors.Join(wire.CheckLedger(r.Ledger), wire.CheckName("run", r.Run))
}

// errTree is wrapped by the error of a champion's tree that can't be had:
// another repository would not have it either.
var errTree = errors.New("a champion's tree")

// Bundle brings the run's repository to these champions, oldest first, and
// gives the file of a bundle whose main is the last of them.
func (r *Repos) Bundle(ctx context.Context, run Run, champions []Champion) (path string, err error) {
	if err := run.check(); err != nil {
		return "", err
	}
	if len(champions) == 0 {
		return "", fmt.Errorf("bundling the run %s: it has no base yet", run.Run)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	path = r.path(run, ".bundle")
	if r.bundled[run] == len(champions) {
		return path, nil
	}
	b, err := r.bring(ctx, run, champions)
	if err != nil && ctx.Err() == nil && !errors.Is(err, errTree) {
		r.cfg.Log.Warn("a run's repository can't be used and is made again", "run", run.Run, "err", err)
		b, err = r.again(ctx, run, champions)
	}
	if err == nil {
		err = files.Write(path, b, 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("bundling the run %s: %w", run.Run, err)
	}
	r.bundled[run] = len(champions)
	return path, nil
}

// bring adds the champions that the repository lacks.
func (r *Repos) bring(ctx context.Context, run Run, champions []Champion) ([]byte, error) {
	repo := r.repository(run)
	has, err := repo.Count(ctx)
	if err != nil {
		return nil, err
	}
	if has > len(champions) {
		return nil, fmt.Errorf("it has %d commits for %d champions", has, len(champions))
	}
	var commits []kit.Commit
	for _, c := range champions[has:] {
		tree, err := c.Tree(ctx)
		if err != nil {
			return nil, fmt.Errorf("%w: of attempt %d: %w", errTree, c.Attempt, err)
		}
		commits = append(commits, kit.Commit{Tree: tree, Message: c.message(), Time: c.Time})
	}
	if len(commits) > 0 {
		if err := repo.Append(ctx, commits...); err != nil {
			return nil, err
		}
	}
	return repo.Bundle(ctx)
}

// again makes the repository from nothing.
func (r *Repos) again(ctx context.Context, run Run, champions []Champion) ([]byte, error) {
	if err := os.RemoveAll(r.repository(run).Dir); err != nil {
		return nil, err
	}
	return r.bring(ctx, run, champions)
}

func (c Champion) message() string {
	subject := fmt.Sprintf("Attempt %d", c.Attempt)
	if c.Attempt == 0 {
		subject = "The kit's base"
	}
	if c.Title != "" {
		subject += ": " + c.Title
	}
	if c.Why == "" {
		return subject + "\n"
	}
	return subject + "\n\n" + c.Why + "\n"
}

// Remove removes the run's repository.
func (r *Repos) Remove(run Run) error {
	if err := run.check(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.bundled, run)
	if err := errors.Join(os.RemoveAll(r.repository(run).Dir), os.RemoveAll(r.path(run, ".bundle"))); err != nil {
		return fmt.Errorf("removing the repository of the run %s: %w", run.Run, err)
	}
	return nil
}

func (r *Repos) repository(run Run) kit.Repository {
	return kit.Repository{Dir: r.path(run, ".git")}
}

func (r *Repos) path(run Run, end string) string {
	return filepath.Join(r.cfg.Dir, run.Ledger+"-"+run.Run+end)
}

// List gives the runs that have a repository, each with the paths of it.
func (r *Repos) List() (map[Run][]string, error) {
	entries, err := os.ReadDir(r.cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("listing the runs' repositories: %w", err)
	}
	all := map[Run][]string{}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".git")
		if !ok {
			name, ok = strings.CutSuffix(e.Name(), ".bundle")
		}
		ledger, run, cut := strings.Cut(name, "-")
		if one := (Run{ledger, run}); ok && cut && one.check() == nil {
			all[one] = append(all[one], filepath.Join(r.cfg.Dir, e.Name()))
		}
	}
	return all, nil
}
