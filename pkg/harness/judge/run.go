package judge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"thermite/pkg/harness/judge/decide"
	"thermite/pkg/harness/steps"
	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// A planned run is of the candidate or the champion on a case.
type planned struct {
	seed     uint64
	at       caseDir
	secret   bool
	champion bool
}

// A ran is a run and what came of it.
type ran struct {
	planned
	n      int    // its number in the judging
	name   string // of its folders, which say nothing of whose it is
	exited wire.BrokerExited
	// step is where it failed, and why, and outcome what that makes of a
	// candidate.
	step, why, outcome string
	// output is the end of what it and its check printed.
	output string
	values decide.Figures
	checks time.Duration
}

func (r *ran) ok() bool { return r.step == "" }

func (r *ran) fails(step, outcome, why string) {
	r.step, r.outcome, r.why = step, outcome, clip(why, maxWhy)
}

// maxWhy bounds an explanation.
const maxWhy = 2000

// run runs one case. What it used is measured outside it.
func (g *judging) run(ctx context.Context, p planned) (r ran, err error) {
	r = ran{planned: p, n: g.runs}
	g.runs++
	if r.name, err = g.j.draw(); err != nil {
		return r, err
	}
	start, err := g.start(ctx, r)
	if err != nil {
		return r, err
	}
	_, err = steps.Start(ctx, g.j.cfg.Roles, start)
	if problem := (*wire.BrokerProblem)(nil); errors.As(err, &problem) {
		switch {
		case problem.Code == wire.BrokerRefused:
			return r, fmt.Errorf("%w: its run can't be started: %s", ErrKit, problem.Detail)
		case problem.Code == wire.BrokerFailed && strings.Contains(problem.Detail, "starting "+start.Argv[0]):
			r.fails(kit.StepRun, decide.Failed, "it can't be started: "+problem.Detail)
			return r, nil
		}
	}
	if err != nil {
		steps.End(g.j.cfg.Roles, g.j.cfg.Log, start.ID) // it may run: the answer, not the start, may have failed
		return r, fmt.Errorf("starting run %d: %w", r.n, err)
	}
	defer steps.End(g.j.cfg.Roles, g.j.cfg.Log, start.ID)
	if r.exited, err = g.j.cfg.Roles.Wait(ctx, start.ID); err != nil {
		return r, fmt.Errorf("waiting for run %d: %w", r.n, err)
	}
	g.res.Commands += r.exited.Wall
	if r.exited.Lost || r.exited.Killed {
		return r, fmt.Errorf("run %d was ended by nothing of its own", r.n)
	}
	if why := ended(r.exited, time.Duration(g.kit.Run.Timeout)); why != "" {
		r.fails(kit.StepRun, decide.Failed, why)
	}
	out, err := fileTail(filepath.Join(r.exited.Folder, "stdout"))
	said, saidErr := fileTail(filepath.Join(r.exited.Folder, "stderr"))
	r.output = join(tail(out, wire.MaxOutputBytes/4), said)
	return r, errors.Join(err, saidErr, closed(g.in("r", r.name, "tmp")), each([]string{g.in("r", r.name, "out")}, 0o755))
}

// start is what the broker is asked.
func (g *judging) start(ctx context.Context, r ran) (s wire.BrokerStart, err error) {
	project, err := g.project(ctx, r.champion)
	if err != nil {
		return s, err
	}
	dir := g.in("r", r.name)
	words := kit.Words{"tools": g.made.tools(), "project": project, "case": r.at.seen, "out": filepath.Join(dir, "out"), "tmp": filepath.Join(dir, "tmp")}
	if err := errors.Join(folder(g.in("r"), 0o711), folder(dir, 0o711), hand(words["out"], words["tmp"])); err != nil {
		return s, err
	}
	argv, err := words.Command(kit.StepRun, g.kit.Run.Command)
	if err != nil {
		return s, fmt.Errorf("%w: %w", ErrKit, err)
	}
	if argv[0], err = lookPath(argv[0], g.j.cfg.Path); err != nil {
		return s, fmt.Errorf("%w: %w", ErrKit, err)
	}
	id, err := g.j.draw()
	if err != nil {
		return s, err
	}
	l := g.kit.Limits.Run
	s = wire.BrokerStart{ID: runPrefix + id, Role: RoleRun, Argv: argv, Env: g.j.env(words, kit.StepRun, g.kit), Cwd: words.Dir(kit.StepRun),
		Limits:   wire.BrokerLimits{Memory: int64(l.Memory), CPUs: l.CPUs, Tasks: int64(l.PIDs), Disk: int64(l.Disk), Output: maxOutput},
		Deadline: time.Duration(g.kit.Run.Timeout),
		ReadOnly: []string{g.made.tools(), project, r.at.seen}, ReadWrite: []string{words["out"], words["tmp"]}}
	if g.kit.Run.Model {
		maps.Copy(s.Env, g.j.cfg.ModelEnv)
		s.Ports = g.j.cfg.ModelPorts
	}
	return s, nil
}

// runPrefix begins a run's id at the broker.
const runPrefix = "judge-"

// ended says how a run failed, if it did.
func ended(e wire.BrokerExited, timeout time.Duration) string {
	switch {
	case e.Over != "":
		return "it used more " + e.Over + " than it may"
	case e.TimedOut:
		return fmt.Sprintf("it took more than %v", timeout)
	case e.Signal != "":
		return "it was ended by " + e.Signal
	case e.Code != 0:
		return fmt.Sprintf("it ended with %d", e.Code)
	}
	return ""
}

// lookPath finds a program, which the broker takes by its path only.
func lookPath(name, path string) (string, error) {
	if strings.Contains(name, "/") {
		return filepath.Clean(name), nil
	}
	for _, dir := range filepath.SplitList(path) {
		p := filepath.Join(dir, name)
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return p, nil
		}
	}
	return "", fmt.Errorf("its run's program %s is not in %s", name, path)
}

// fileTail reads the end of a file, as much as an event holds.
func fileTail(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-wire.MaxOutputBytes), wire.MaxOutputBytes))
	return tail(string(b), wire.MaxOutputBytes), err
}
