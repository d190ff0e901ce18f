package judge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"thermite/pkg/harness/judge/decide"
	"thermite/pkg/harness/steps"
	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// A judging is one under way. Its folder has, each for its role and handed to
// it for the time of a step:
//
//	c/<n>             a secret case, by judge-check
//	r/<run>/out, tmp  what a run writes, by judge-run
//	l/<run>           what of it may be there, copied by judge-run
//	k/<run>           what a check writes, by judge-check
//
// Each build has a folder of its own, so that a run's paths are alike whosever
// it is:
//
//	tree              the archive of what is built
//	b/project         built by judge-build; b/cache and b/tmp are its own
type judging struct {
	j    *Judge
	job  Job
	kit  kit.Kit
	made made
	name string
	dir  string

	runs int // numbers the runs
	// mine is the folder of the candidate's build, and kept says that it stays.
	mine string
	kept bool
	// side is the champion's folder, in use, once it is built, and fresh one
	// that was built for the secret cases.
	side, fresh string
	// gone are the builds' folders that go when the judging is over.
	gone []string

	res Result
}

func (g *judging) in(parts ...string) string {
	return filepath.Join(append([]string{g.dir}, parts...)...)
}

func (g *judging) progress(what string) {
	if g.job.Progress != nil {
		g.job.Progress(what)
	}
}

// leave removes what the judging leaves, but for a build that is kept.
func (g *judging) leave() {
	if g.side != "" {
		g.j.keeping.release(g.side)
	}
	if g.kept {
		g.j.keeping.release(g.mine)
		g.j.sweepRest(g.mine)
	}
	for _, name := range g.gone {
		if !g.kept || name != g.mine {
			g.j.sweep(name)
		}
	}
	g.j.sweep(g.name)
}

// base builds the base and measures it on the public cases.
func (g *judging) base(ctx context.Context) error {
	if ok, err := g.built(ctx); !ok {
		return err
	}
	runs, err := g.phase(ctx, g.public(false))
	if err != nil || !g.passed(runs) {
		return err
	}
	g.score(runs)
	g.res.Measure = g.measured(runs)
	g.decided(decide.Promoted, "the kit's base")
	return g.keep()
}

// candidate judges a candidate against the champion.
func (g *judging) candidate(ctx context.Context) error {
	if ok, err := g.built(ctx); !ok {
		return err
	}
	side := decide.Timed(g.kit.PrimaryMetric()) || g.job.ChampionPublic == nil
	runs, err := g.phase(ctx, g.public(side))
	if err != nil || !g.passed(runs) {
		return err
	}
	g.score(runs)
	g.res.Measure = g.measured(runs)
	champion := g.job.ChampionPublic
	if side {
		f := figures(g.kit, figuresOf(runs, true))
		champion = &f
	}
	if g.suspect(runs) || g.first(*champion) {
		return nil
	}
	return g.secret(ctx, runs)
}

// first says whether the public cases decide.
func (g *judging) first(champion PublicFigures) bool {
	m := g.kit.PrimaryMetric()
	was, ok := champion.Values[m.Name]
	if !ok || g.j.always { // the champion failed them
		return false
	}
	outcome, why := decide.First(m, was, g.res.Public.Values[m.Name])
	if outcome != "" {
		g.decided(outcome, why)
	}
	return outcome != ""
}

// secret compares the candidate and the champion on fresh cases.
func (g *judging) secret(ctx context.Context, public []ran) error {
	if ok, err := g.builtAgain(ctx); !ok {
		return err
	}
	g.progress("making the secret cases")
	seeds := secretSeeds(g.j.cfg.Key, g.job, g.kit.Cases, decide.Pairs(g.kit.PrimaryMetric(), g.kit.Cases.Secret))
	took, err := g.j.makeCases(ctx, g.job.Staged, g.made, g.in("c"), seeds)
	if err != nil {
		return err
	}
	g.res.Commands += took
	runs, err := g.phase(ctx, g.pairs(seeds))
	if err != nil {
		return err
	}
	all := append(public, runs...)
	if !g.passed(runs) {
		g.res.Check.Cases = events(all)
		return nil
	}
	m := g.kit.PrimaryMetric()
	pairs, wins := pairsOf(m, runs)
	effect := decide.Compare(m, pairs, g.kit.Cases.Secret, wins)
	g.res.Check = g.checked(all)
	g.res.Measure = g.measured(all)
	if decide.Finite(effect) {
		g.res.Measure.Effect = &effect
	}
	if g.suspect(runs) {
		return nil
	}
	outcome, why := decide.Second(effect)
	g.decided(outcome, why)
	if outcome == decide.Promoted {
		return g.keep()
	}
	return nil
}

// built builds the candidate, and says whether it is there to run.
func (g *judging) built(ctx context.Context) (ok bool, err error) {
	g.progress("build")
	name, ran, f, err := g.buildNew(ctx, g.job.Tree)
	if err != nil {
		return false, err
	}
	g.mine = name
	s := &wire.Step{Attempt: g.job.Attempt, Judging: g.job.Judging, OK: f == nil}
	g.res.Build = s
	if f == nil {
		s.WallMS, s.Output = millis(ran.Wall), printed(ran)
		return true, nil
	}
	s.WallMS, s.Output, s.Why = millis(f.wall), f.output, clip(f.why, maxWhy)
	outcome := decide.Failed
	if f.own {
		outcome = decide.Refused
	}
	g.ended(outcome, kit.StepBuild, "it is not built: "+s.Why)
	return false, nil
}

// builtAgain builds the champion and the candidate anew, one right after the
// other: a run that finds out how old its build is knows no more than before
// which of the two it is. The base tells nobody anything.
func (g *judging) builtAgain(ctx context.Context) (ok bool, err error) {
	if g.job.ChampionAttempt == 0 {
		return true, nil
	}
	champion := func() error {
		g.progress("building the champion again")
		name, _, f, err := g.buildNew(ctx, g.job.Champion)
		if err == nil && f != nil {
			err = fmt.Errorf("building the champion again: %w", f.kitFault("build"))
		}
		g.fresh = name
		return err
	}
	first := g.order("build", 1)[0]
	if first {
		if err := champion(); err != nil {
			return false, err
		}
	}
	if ok, err := g.built(ctx); !ok || first {
		return ok, err
	}
	return true, champion()
}

// buildNew builds a tree in a new folder, which goes with the judging unless
// it is kept.
func (g *judging) buildNew(ctx context.Context, tree kit.Tree) (name string, ran wire.StepRan, f *failure, err error) {
	name, dir, err := g.j.newFolder()
	if err != nil {
		return "", ran, nil, err
	}
	g.gone = append(g.gone, name)
	ran, f, err = g.build(ctx, tree, dir)
	return name, ran, f, err
}

// build builds a tree in a folder.
func (g *judging) build(ctx context.Context, tree kit.Tree, dir string) (ran wire.StepRan, f *failure, err error) {
	b, archive := filepath.Join(dir, "b"), filepath.Join(dir, "tree")
	if err := errors.Join(writeArchive(archive, tree), hand(b)); err != nil {
		return ran, nil, err
	}
	k := g.kit
	cache, err := g.cache(ctx, b)
	if err != nil {
		return ran, nil, err
	}
	words := kit.Words{"tools": g.made.tools(), "cache": cache, "project": filepath.Join(b, "project"), "tmp": filepath.Join(b, "tmp")}
	run, err := g.j.command(kit.StepBuild, k, words, k.Build.Command, time.Duration(k.Build.Timeout), maxKeep)
	if err != nil {
		return ran, nil, err
	}
	for _, o := range k.Build.Outputs {
		run.Run.Need = append(run.Run.Need, filepath.Join(words["project"], filepath.FromSlash(o)))
	}
	r, err := g.j.steps.Run(ctx, steps.Step{Role: RoleBuild,
		Ops: []wire.StepOp{
			{Unpack: &wire.StepUnpack{Archive: archive, Folder: words["project"], Mode: 0o755}},
			{Copy: &wire.StepCopy{From: g.made.cache(), To: words["cache"], Mode: 0o755, Link: k.Build.Cache == kit.CacheLinks}},
			{Make: &wire.StepMake{Folder: words["tmp"], Mode: 0o755}},
			run},
		ReadOnly: []string{archive, g.made.tools(), g.made.cache()}, ReadWrite: []string{b},
		Limits: limits(k.Limits.Build, 1), Deadline: time.Duration(k.Build.Timeout) + slack, Network: k.Build.Network})
	if f := failing(err); f != nil {
		g.res.Commands += f.wall
		return ran, f, nil
	}
	if err != nil {
		return ran, nil, fmt.Errorf("building: %w", err)
	}
	ran = *r.Ops[len(r.Ops)-1].Run
	g.res.Commands += ran.Wall
	if err := closed(b); err != nil {
		return ran, nil, err
	}
	// A link in its place would have the run see what the link leads to.
	if info, err := os.Lstat(words["project"]); err != nil || !info.IsDir() || info.Mode()&0o001 == 0 {
		return ran, &failure{why: "it left no project that a run can enter", output: printed(ran), own: true, wall: ran.Wall}, nil
	}
	return ran, nil, nil
}

// ownTmp is a folder in memory that a process has to itself, where the
// launcher gives it mounts of its own.
const ownTmp = "/tmp"

// cache says where a build has its cache: links are made fastest in memory,
// and are gone with the process.
func (g *judging) cache(ctx context.Context, b string) (string, error) {
	if g.kit.Build.Cache != kit.CacheLinks {
		return filepath.Join(b, "cache"), nil
	}
	pong, err := g.j.cfg.Roles.Ping(ctx)
	if err != nil || !pong.Capabilities.Mounts {
		return filepath.Join(b, "cache"), err
	}
	return filepath.Join(ownTmp, "cache"), nil
}

// writeArchive writes a tree for a step to unpack.
func writeArchive(path string, tree kit.Tree) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(tree.Archive(f), f.Chmod(0o644), f.Close())
}

// buildKey names what a tree of the kit is built to.
func (g *judging) buildKey(tree kit.Tree) string {
	sum := sha256.Sum256([]byte(g.job.Staged.Digest + tree.Digest()))
	return hex.EncodeToString(sum[:])
}

// keep keeps the candidate's build: later ones are compared with it.
func (g *judging) keep() error {
	key := g.buildKey(g.job.Tree)
	gone, err := g.j.keeping.keep(keptBuild, key, g.mine)
	g.kept = err == nil
	g.j.sweep(gone...)
	if err != nil {
		return err
	}
	return g.j.keeping.noteOf(keptBuild+key, Of{g.job.Ledger, g.job.Run, g.job.Attempt})
}

// project gives the built tree of who runs: the champion's is built again if
// it is not kept.
func (g *judging) project(ctx context.Context, champion bool) (string, error) {
	name := g.mine
	switch {
	case champion && g.fresh != "":
		name = g.fresh
	case champion:
		if g.side == "" {
			if err := g.buildSide(ctx); err != nil {
				return "", err
			}
		}
		name = g.side
	}
	return filepath.Join(g.j.folders(), name, "b", "project"), nil
}

func (g *judging) buildSide(ctx context.Context) error {
	key := g.buildKey(g.job.Champion)
	unlock, err := g.j.making.lock(ctx, keptBuild+key)
	if err != nil {
		return err
	}
	defer unlock()
	if name, ok := g.j.keeping.find(keptBuild + key); ok {
		if _, err := os.Stat(filepath.Join(g.j.folders(), name, "b", "project")); err == nil {
			g.side = name
			return g.j.keeping.noteOf(keptBuild+key, g.ofChampion())
		}
		g.j.keeping.release(name)
	}
	g.progress("building the champion again")
	name, dir, err := g.j.newFolder()
	if err != nil {
		return err
	}
	_, f, err := g.build(ctx, g.job.Champion, dir)
	if err == nil && f != nil {
		err = fmt.Errorf("building the champion again: %w", f.kitFault("build"))
	}
	if err != nil {
		g.j.sweep(name)
		return err
	}
	gone, err := g.j.keeping.keep(keptBuild, key, name)
	g.j.sweep(gone...)
	if err != nil {
		return err
	}
	g.side = name
	g.j.sweepRest(name)
	return g.j.keeping.noteOf(keptBuild+key, g.ofChampion())
}

// ofChampion names the attempt that it is compared with.
func (g *judging) ofChampion() Of { return Of{g.job.Ledger, g.job.Run, g.job.ChampionAttempt} }

func millis(d time.Duration) uint64 { return uint64(max(d, 0) / time.Millisecond) }
