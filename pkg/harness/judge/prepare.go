package judge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"thermite/pkg/harness/steps"
	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// made is what a kit's setup made, once for all its judgings:
//
//	t/tools, t/cache      by its setup commands
//	c/<n>/whole, c/<n>/seen  the public cases, and what a run sees of each
type made struct{ name, dir string }

func (m made) tools() string { return filepath.Join(m.dir, "t", "tools") }
func (m made) cache() string { return filepath.Join(m.dir, "t", "cache") }

// Prepare has a kit ready to judge with: the programs it needs are there, its
// setup is run and its public cases are made. It does so once for a kit, and
// again when it was cut off or is gone.
func (j *Judge) Prepare(ctx context.Context, staged *kit.Staged) error {
	m, err := j.prepared(ctx, staged)
	if err != nil {
		return fmt.Errorf("preparing the kit %s: %w", staged.Kit.About.Name, err)
	}
	j.keeping.release(m.name)
	return nil
}

// prepared gives what setup made, for use until it is released.
func (j *Judge) prepared(ctx context.Context, staged *kit.Staged) (made, error) {
	key := keptKit + staged.Digest
	unlock, err := j.making.lock(ctx, key)
	if err != nil {
		return made{}, err
	}
	defer unlock()
	if name, ok := j.keeping.find(key); ok {
		m := made{name, filepath.Join(j.folders(), name)}
		if _, err := os.Stat(m.tools()); err == nil {
			return m, nil
		}
		j.keeping.release(name)
		if err := j.keeping.drop(key); err != nil {
			return made{}, err
		}
	}
	m := made{}
	if m.name, m.dir, err = j.newFolder(); err != nil {
		return made{}, err
	}
	if err := j.setUp(ctx, staged, m); err != nil {
		j.sweep(m.name)
		return made{}, err
	}
	gone, err := j.keeping.keep(keptKit, staged.Digest, m.name)
	j.sweep(gone...)
	return m, err
}

// setUp does all of a kit that is done once.
func (j *Judge) setUp(ctx context.Context, staged *kit.Staged, m made) error {
	if staged.Kit.Run.Model && len(j.cfg.ModelEnv) == 0 {
		return fmt.Errorf("%w: its runs call a model, and this rig has no model route", ErrKit)
	}
	t := filepath.Join(m.dir, "t")
	if err := hand(t); err != nil {
		return err
	}
	lacks, err := j.lacks(ctx, staged.Kit, t)
	if err != nil {
		return err
	}
	if len(lacks) > 0 {
		return fmt.Errorf("%w: this rig lacks what it requires: %s", ErrKit, strings.Join(lacks, "; "))
	}
	if err := j.runSetup(ctx, staged, m, t); err != nil {
		return err
	}
	if err := closed(t); err != nil {
		return err
	}
	_, err = j.makeCases(ctx, staged, m, filepath.Join(m.dir, "c"), staged.Kit.Cases.Public)
	return err
}

// lacks says which programs that the kit requires are not there.
func (j *Judge) lacks(ctx context.Context, k kit.Kit, tmp string) (lacks []string, err error) {
	words := kit.Words{"tmp": tmp}
	lacks = k.Lacks(ctx, func(ctx context.Context, argv []string) (string, error) {
		op := wire.StepOp{Run: &wire.StepRun{Argv: argv, Env: j.env(words, kit.StepSetup, k), Dir: tmp, Timeout: time.Minute, Keep: maxKeep}}
		r, stepErr := j.steps.Run(ctx, steps.Step{Role: RoleBuild, Ops: []wire.StepOp{op}, ReadWrite: []string{tmp},
			Limits: limits(k.Limits.Setup, 1), Deadline: time.Minute + slack})
		if f := failing(stepErr); f != nil {
			return "", errors.New(f.why)
		}
		if stepErr != nil {
			err = errors.Join(err, stepErr)
			return "", stepErr
		}
		return r.Ops[0].Run.Stdout + r.Ops[0].Run.Stderr, nil
	})
	return lacks, err
}

// runSetup runs the setup commands on the base.
func (j *Judge) runSetup(ctx context.Context, staged *kit.Staged, m made, t string) error {
	k := staged.Kit
	words := kit.Words{"kit": staged.KitDir, "tools": m.tools(), "cache": m.cache(), "project": filepath.Join(t, "project"), "tmp": filepath.Join(t, "tmp")}
	ops := []wire.StepOp{
		{Make: &wire.StepMake{Folder: m.tools(), Mode: 0o755}},
		{Make: &wire.StepMake{Folder: m.cache(), Mode: 0o755}},
		{Make: &wire.StepMake{Folder: words["tmp"], Mode: 0o755}},
		{Copy: &wire.StepCopy{From: staged.ProjectDir, To: words["project"], Mode: 0o755}},
	}
	for _, argv := range k.Project.Setup {
		op, err := j.command(kit.StepSetup, k, words, argv, time.Duration(k.Project.SetupTimeout), maxKeep)
		if err != nil {
			return err
		}
		ops = append(ops, op)
	}
	ops = append(ops, wire.StepOp{Remove: words["project"]}, wire.StepOp{Remove: words["tmp"]})
	_, err := j.steps.Run(ctx, steps.Step{Role: RoleBuild, Ops: ops, ReadOnly: []string{staged.KitDir, staged.ProjectDir}, ReadWrite: []string{t},
		Limits: limits(k.Limits.Setup, 1), Deadline: time.Duration(len(ops))*time.Duration(k.Project.SetupTimeout) + slack})
	if f := failing(err); f != nil {
		return f.kitFault("setup")
	}
	return err
}

// makeCases makes cases of seeds below a folder, one after the other, and
// gives what the kit's command took.
func (j *Judge) makeCases(ctx context.Context, staged *kit.Staged, m made, dir string, seeds []uint64) (took time.Duration, err error) {
	k := staged.Kit
	if err := hand(dir); err != nil {
		return took, err
	}
	n := 0
	for part := range slices.Chunk(seeds, maxBatch) {
		var ops []wire.StepOp
		for _, seed := range part {
			c := caseIn(dir, n)
			n++
			words := kit.Words{"kit": staged.KitDir, "tools": m.tools(), "seed": strconv.FormatUint(seed, 10), "case": c.whole, "tmp": filepath.Join(c.dir, "tmp")}
			run, err := j.command(kit.StepCases, k, words, k.Cases.Command, time.Duration(k.Cases.Timeout), maxShortKeep)
			if err != nil {
				return took, err
			}
			ops = append(ops,
				wire.StepOp{Make: &wire.StepMake{Folder: c.dir, Mode: 0o711}},
				wire.StepOp{Make: &wire.StepMake{Folder: c.whole, Mode: 0o700}},
				wire.StepOp{Make: &wire.StepMake{Folder: words["tmp"], Mode: 0o700}},
				run,
				wire.StepOp{Copy: &wire.StepCopy{From: c.whole, To: c.seen, Mode: 0o755, Only: k.Run.Reads, Without: k.Cases.Hidden}},
				wire.StepOp{Remove: words["tmp"]})
		}
		r, err := j.steps.Run(ctx, steps.Step{Role: RoleCheck, Ops: ops, ReadOnly: []string{staged.KitDir, m.tools()}, ReadWrite: []string{dir},
			Limits: limits(k.Limits.Cases, len(part)), Deadline: time.Duration(len(part))*time.Duration(k.Cases.Timeout) + slack})
		if f := failing(err); f != nil {
			return took, f.kitFault("cases")
		}
		if err != nil {
			return took, err
		}
		for _, done := range r.Ops {
			if done.Run != nil {
				took += done.Run.Wall
			}
		}
	}
	return took, closed(dir)
}

// A caseDir is where a case is: whole for who checks, and what a run sees of
// it. Its path says nothing of its seed.
type caseDir struct{ dir, whole, seen string }

func caseIn(dir string, n int) caseDir {
	dir = filepath.Join(dir, strconv.Itoa(n))
	return caseDir{dir, filepath.Join(dir, "whole"), filepath.Join(dir, "seen")}
}
