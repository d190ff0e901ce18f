// Package kitcheck holds a kit to what it says of itself: a judge builds, runs
// and judges its base and every candidate that ships with it, each against the
// base, as it would on a rig.
package kitcheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"thermite/cmd/thermite/internal/rig"
	"thermite/pkg/broker/client"
	"thermite/pkg/harness/judge"
	"thermite/pkg/kit"
)

// Config is what to check and how.
type Config struct {
	Source kit.Source
	// Only are the fixtures to judge; none is all of them.
	Only []string
	// Dir is for what is made meanwhile. It must be there, and empty.
	Dir string
	// Worker is as in rig.Config.
	Worker []string
	// Model is for a kit whose runs call one.
	Model Model

	Build string
	Now   func() time.Time
	Rand  io.Reader
	Log   *slog.Logger
	// Doing is told what the check is at. It may be nil.
	Doing func(words string)
}

// ErrNoFixture says that the kit has no fixture of an asked name.
var ErrNoFixture = errors.New("the kit has no such fixture")

// Run checks the kit. An error says that it could not be checked; what is
// wrong with the kit is in the report.
func Run(ctx context.Context, cfg Config) (Report, error) {
	c := &check{cfg: cfg}
	defer c.close()
	err := c.open(ctx)
	if err == nil {
		err = c.all(ctx)
	}
	return c.report, err
}

// check is a check under way.
type check struct {
	cfg    Config
	rig    *rig.Rig
	staged *kit.Staged
	judge  *judge.Judge
	base   judge.Result
	report Report
	// closers give back what was taken, the last first.
	closers []func()
}

func (c *check) close() {
	for i := len(c.closers) - 1; i >= 0; i-- {
		c.closers[i]()
	}
}

func (c *check) doing(format string, args ...any) {
	if c.cfg.Doing != nil {
		c.cfg.Doing(fmt.Sprintf(format, args...))
	}
}

// open stages the kit, and has a judge with a broker ready.
func (c *check) open(ctx context.Context) (err error) {
	c.doing("reading the kit")
	if c.rig, err = rig.Open(ctx, rig.Config{Dir: c.cfg.Dir, Worker: c.cfg.Worker, Build: c.cfg.Build, Now: c.cfg.Now, Rand: c.cfg.Rand, Log: c.cfg.Log}); err != nil {
		return err
	}
	c.runRig()
	kits := filepath.Join(c.rig.Work, "kits")
	// The umask may have taken what roles' users need.
	if err := errors.Join(os.Mkdir(kits, 0o755), os.Chmod(kits, 0o755)); err != nil {
		return err
	}
	if c.staged, err = kit.Stage(ctx, c.cfg.Source, filepath.Join(kits, "kit")); err != nil {
		return err
	}
	if err := c.names(); err != nil {
		return err
	}
	isolated, _ := c.rig.Isolated()
	k := c.staged.Kit
	c.report = Report{Kit: k.About.Name, Version: k.About.Version, Digest: c.staged.Digest, Isolated: isolated, Fixtures: []Row{}, Missing: missing(k.Fixtures)}
	return c.openJudge()
}

// runRig runs the rig's broker until close.
func (c *check) runRig() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.rig.Run(ctx) }()
	c.closers = append(c.closers, func() {
		cancel()
		if err := errors.Join(<-ended, c.rig.Close()); err != nil {
			c.cfg.Log.Warn("the broker ended badly", "err", err)
		}
	})
}

// names says which of the asked fixtures the kit has not.
func (c *check) names() error {
	for _, name := range c.cfg.Only {
		if _, ok := c.fixture(name); !ok {
			return fmt.Errorf("%w: %s", ErrNoFixture, name)
		}
	}
	return nil
}

func (c *check) fixture(name string) (kit.Fixture, bool) {
	for _, f := range c.staged.Kit.Fixtures {
		if f.Name == name {
			return f, true
		}
	}
	return kit.Fixture{}, false
}

func (c *check) openJudge() error {
	env, ports, err := c.cfg.Model.forRuns(c.staged.Kit.Run)
	if err != nil {
		return err
	}
	key := make([]byte, 32)
	if _, err := io.ReadFull(c.cfg.Rand, key); err != nil {
		return fmt.Errorf("drawing the judge's key: %w", err)
	}
	roles := client.New(client.Config{Socket: c.rig.Socket, Log: c.cfg.Log})
	c.closers = append(c.closers, func() { _ = roles.Close() }) // its broker goes with it
	c.judge, err = judge.New(judge.Config{Dir: c.rig.Work, Roles: roles, Step: append(c.rig.Worker[:len(c.rig.Worker):len(c.rig.Worker)], "step"),
		Key: key, Path: c.rig.Path, ModelEnv: env, ModelPorts: ports, Now: c.cfg.Now, Rand: c.cfg.Rand, Log: c.cfg.Log})
	if err == nil {
		c.closers = append(c.closers, c.judge.Close)
	}
	return err
}

// all sets the kit up, and judges its base and its fixtures.
func (c *check) all(ctx context.Context) error {
	c.doing("setting the kit up")
	if err := c.judge.Prepare(ctx, c.staged); err != nil {
		return err
	}
	c.doing("judging the base")
	began := c.cfg.Now()
	base, err := c.judge.Base(ctx, c.job(0, c.staged.Base))
	if err != nil {
		return err
	}
	c.base = base
	c.report.Base = baseRow(base.Verdict, c.cfg.Now().Sub(began))
	if c.report.Base.Result != OK {
		return nil // there is nothing to compare with
	}
	fixtures := c.staged.Kit.Fixtures
	if len(c.cfg.Only) > 0 {
		fixtures = nil
		for _, name := range c.cfg.Only {
			f, _ := c.fixture(name)
			fixtures = append(fixtures, f)
		}
	}
	for i, f := range fixtures {
		c.doing("judging %s, %d of %d", f.Name, i+1, len(fixtures))
		row, err := c.one(ctx, uint64(i+1), f)
		if err != nil {
			return err
		}
		c.report.Fixtures = append(c.report.Fixtures, row)
	}
	return nil
}

func (c *check) job(attempt uint64, tree kit.Tree) judge.Job {
	return judge.Job{Ledger: "kit-check", Run: c.staged.Kit.About.Name, Attempt: attempt, Judging: 1, Staged: c.staged, Tree: tree}
}

// one judges a fixture.
func (c *check) one(ctx context.Context, number uint64, f kit.Fixture) (Row, error) {
	began := c.cfg.Now()
	v, err := c.verdict(ctx, number, f)
	if err != nil && !errors.Is(err, judge.ErrKit) {
		return Row{}, fmt.Errorf("judging the fixture %s: %w", f.Name, err)
	}
	return rowOf(f, v, err, c.report.Isolated, c.cfg.Now().Sub(began)), nil
}

// verdict is what becomes of a fixture.
func (c *check) verdict(ctx context.Context, number uint64, f kit.Fixture) (verdict, error) {
	var patch []byte
	if f.Patch != "" {
		file, _ := c.staged.Files.File(f.Patch) // kit.Stage holds that it is there
		patch = file.Data
	}
	tree, _, err := kit.ApplyPatch(ctx, c.staged.Kit.Project, c.staged.Base, patch)
	if kit.IsRefused(err) {
		return verdict{outcome: "refused", step: kit.ByOverlay, why: err.Error()}, nil
	}
	if err != nil {
		return verdict{}, fmt.Errorf("applying its patch: %w", err)
	}
	job := c.job(number, tree)
	job.ChampionPublic = &c.base.Public
	res, err := c.judge.Judge(ctx, job)
	if err != nil {
		return verdict{}, err
	}
	return verdictOf(res), nil
}
