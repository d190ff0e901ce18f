package judge

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"thermite/pkg/harness/judge/decide"
	"thermite/pkg/harness/steps"
	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// publicRounds is how often the public cases are run where the metric is of
// the run itself: a case's figure is then the median.
const publicRounds = 3

// public plans the runs on the public cases, with the champion at its side or
// without.
func (g *judging) public(side bool) []planned {
	seeds, rounds := g.kit.Cases.Public, 1
	if decide.Timed(g.kit.PrimaryMetric()) {
		rounds = publicRounds
	}
	var plan []planned
	for i, first := range g.order("public", rounds*len(seeds)) {
		at := i % len(seeds)
		p := planned{seed: seeds[at], at: caseIn(filepath.Join(g.made.dir, "c"), at)}
		if side {
			plan = append(plan, both(p, first)...)
		} else {
			plan = append(plan, p)
		}
	}
	return plan
}

// pairs plans the runs on the secret cases.
func (g *judging) pairs(seeds []uint64) []planned {
	var plan []planned
	for i, first := range g.order("secret", len(seeds)) {
		p := planned{seed: seeds[i], at: caseIn(g.in("c"), i), secret: true}
		plan = append(plan, both(p, first)...)
	}
	return plan
}

// both plans a pair: the candidate's run and the champion's, the champion's
// first or second. Neither has the better moment over all pairs, and a run
// can't tell from its place which it is.
func both(p planned, first bool) []planned {
	champion := p
	champion.champion = true
	if first {
		return []planned{champion, p}
	}
	return []planned{p, champion}
}

// phase does runs in turn and checks them. It ends with the candidate's first
// run that fails.
func (g *judging) phase(ctx context.Context, plan []planned) ([]ran, error) {
	var runs []ran
	for i, p := range plan {
		// Which run it is, and not of what: a case's seed is nobody's to see.
		g.progress(fmt.Sprintf("%s: run %d of %d", phaseName(p), i+1, len(plan)))
		r, err := g.run(ctx, p)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
		if !r.ok() && !r.champion {
			return runs, nil
		}
	}
	for part := range slices.Chunk(runs, maxBatch) {
		if err := g.collect(ctx, part); err != nil {
			return nil, err
		}
	}
	if slices.ContainsFunc(runs, func(r ran) bool { return !r.ok() && !r.champion }) {
		return runs, nil
	}
	if len(plan) > 0 {
		g.progress(phaseName(plan[0]) + ": the kit's check")
	}
	for part := range slices.Chunk(runs, maxBatch) {
		if err := g.check(ctx, part); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// phaseName names the runs' cases.
func phaseName(p planned) string {
	if p.secret {
		return "secret cases"
	}
	return "public cases"
}

// collect copies what runs left, as the role that wrote it, to where the
// check reads it. A run that left something else than the kit has it write is
// refused.
func (g *judging) collect(ctx context.Context, runs []ran) error {
	if err := hand(g.in("l")); err != nil {
		return err
	}
	l := g.kit.Limits.Run
	var ops []wire.StepOp
	var of []int
	for i, r := range runs {
		if !r.ok() {
			continue
		}
		of = append(of, i)
		ops = append(ops, wire.StepOp{GoOn: true, Copy: &wire.StepCopy{From: g.in("r", r.name, "out"), To: g.in("l", r.name), Mode: 0o755, Only: g.kit.Run.Writes, Strict: true, Most: int64(l.Disk)}})
	}
	if len(ops) == 0 {
		return nil
	}
	result, err := g.j.steps.Run(ctx, steps.Step{Role: RoleRun, Ops: ops, ReadOnly: []string{g.in("r")}, ReadWrite: []string{g.in("l")},
		Limits:   wire.BrokerLimits{Memory: 2 * ownMemory, Tasks: ownTasks, Disk: int64(len(ops))*int64(l.Disk) + ownMemory, Output: maxOutput},
		Deadline: 2 * slack})
	if len(result.Ops) != len(ops) {
		f := failing(err)
		if f == nil {
			return fmt.Errorf("collecting what the runs left: %w", err)
		}
		for _, i := range of {
			runs[i].fails(kit.StepRun, decide.Failed, "what it left can't be copied: "+f.why)
		}
		return nil
	}
	for i, done := range result.Ops {
		switch r := &runs[of[i]]; {
		case done.Refused:
			r.fails(kit.StepRun, decide.Refused, done.Error)
		case done.Error != "":
			r.fails(kit.StepRun, decide.Failed, "what it left can't be read: "+done.Error)
		}
	}
	return closed(g.in("l"))
}

// check has the kit's check look at what runs left.
func (g *judging) check(ctx context.Context, runs []ran) error {
	if err := hand(g.in("k")); err != nil {
		return err
	}
	k := g.kit
	var ops []wire.StepOp
	var of []int
	readOnly := []string{g.job.Staged.KitDir, g.made.tools(), g.in("l"), filepath.Join(g.made.dir, "c")}
	for i, r := range runs {
		if !r.ok() {
			continue
		}
		if r.secret && !slices.Contains(readOnly, g.in("c")) {
			readOnly = append(readOnly, g.in("c"))
		}
		more, err := g.checkOps(r)
		if err != nil {
			return err
		}
		of, ops = append(of, i), append(ops, more...)
	}
	if len(of) == 0 {
		return nil
	}
	result, err := g.j.steps.Run(ctx, steps.Step{Role: RoleCheck, Ops: ops, ReadOnly: readOnly, ReadWrite: []string{g.in("k")},
		Limits: limits(k.Limits.Check, len(of)), Deadline: time.Duration(len(of))*time.Duration(k.Check.Timeout) + slack})
	if f := failing(err); f != nil && len(result.Ops) == 0 {
		return g.checkAlone(ctx, runs, of, *f)
	}
	if err != nil {
		return fmt.Errorf("checking: %w", err)
	}
	for i, at := range of {
		if err := g.answered(&runs[at], result.Ops[i*checkOps+checkRun]); err != nil {
			return err
		}
	}
	return closed(g.in("k"))
}

// checkOps is how many operations a check is, and checkRun which of them is
// the kit's command.
const (
	checkOps = 4
	checkRun = 2
)

func (g *judging) checkOps(r ran) ([]wire.StepOp, error) {
	dir := g.in("k", r.name)
	words := kit.Words{"kit": g.job.Staged.KitDir, "tools": g.made.tools(), "case": r.at.whole, "out": g.in("l", r.name),
		"measured": filepath.Join(dir, "measured.json"), "tmp": filepath.Join(dir, "tmp")}
	run, err := g.j.command(kit.StepCheck, g.kit, words, g.kit.Check.Command, time.Duration(g.kit.Check.Timeout), maxShortKeep)
	if err != nil {
		return nil, err
	}
	run.GoOn = true
	measured, err := json.Marshal(map[string]float64{"wall": r.exited.Wall.Seconds(), "cpu": r.exited.CPU.Seconds(), "rss": float64(r.exited.RSS)}, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	return []wire.StepOp{
		{Write: &wire.StepWrite{Path: words["measured"], Data: measured, Mode: 0o600}},
		{Make: &wire.StepMake{Folder: words["tmp"], Mode: 0o700}},
		run,
		{Remove: dir}}, nil
}

// checkAlone checks runs one by one, when their process together ended
// without an answer: one of them is to blame.
func (g *judging) checkAlone(ctx context.Context, runs []ran, of []int, f failure) error {
	if len(of) == 1 {
		return g.broken(&runs[of[0]], f.why)
	}
	for _, at := range of {
		if err := g.check(ctx, runs[at:at+1]); err != nil {
			return err
		}
	}
	return nil
}

// answered reads what a check answered.
func (g *judging) answered(r *ran, done wire.StepDone) error {
	if done.Run == nil {
		return fmt.Errorf("%w: its check: %s", ErrKit, done.Error)
	}
	r.checks = done.Run.Wall
	g.res.Commands += r.checks
	r.output = join(r.output, done.Run.Stderr)
	if done.Error != "" {
		return g.broken(r, done.Error)
	}
	a, err := g.kit.ReadAnswer([]byte(done.Run.Stdout))
	if err != nil {
		return g.broken(r, err.Error())
	}
	if !a.OK {
		r.fails(kit.StepCheck, decide.Refused, a.Why)
		return nil
	}
	r.values = g.metrics(r.exited, a.Values)
	return nil
}

// broken says that the check itself failed on a run. If that was the
// champion's, which it passed before, it is the kit's fault.
func (g *judging) broken(r *ran, why string) error {
	if r.champion {
		return fmt.Errorf("%w: its check fails on the champion: %s", ErrKit, why)
	}
	r.fails(kit.StepCheck, decide.Failed, "the kit's check can't judge it: "+why)
	return nil
}

// metrics are the kit's, of the check's values and of what the run used.
func (g *judging) metrics(e wire.BrokerExited, checked map[string]float64) decide.Figures {
	values := decide.Figures{}
	for _, m := range g.kit.Metrics {
		switch m.Source {
		case "wall":
			values[m.Name] = e.Wall.Seconds()
		case "cpu":
			values[m.Name] = e.CPU.Seconds()
		case "rss":
			values[m.Name] = float64(e.RSS)
		default:
			values[m.Name] = checked[m.Name]
		}
	}
	return values
}
