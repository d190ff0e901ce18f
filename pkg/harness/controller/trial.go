package controller

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"crypto/sha256"

	"thermite/pkg/harness/lanes"
	"thermite/pkg/harness/ledger"
	"thermite/pkg/harness/patches"
	"thermite/pkg/harness/repos"
	"thermite/pkg/harness/state"
	"thermite/pkg/harness/trialapi"
	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// running is a trial whose worker may call.
type running struct{ *trialapi.Admitted }

// tellTrial gives the worker of a trial a message of its owner's.
func (c *Controller) tellTrial(at, run string, m wire.OwnerMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ref, r := range c.running {
		if ref.ledger == at && ref.run == run && ref.number == m.Trial {
			r.Tell(m.Text)
		}
	}
}

// stopTrial tells the worker of a trial that it must end.
func (c *Controller) stopTrial(ref ref, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.running[ref]; r != nil {
		r.Stop(why)
	}
}

// admit lets the trial's worker call, until the returned function is called.
// The loop does it, so that the worker has each message of its owner's once.
func (c *Controller) admit(ctx context.Context, ref ref, session trialapi.Session) (dismiss func(), err error) {
	var admitted *trialapi.Admitted
	err = c.look(ctx, func(s *state.State, _ time.Time) error {
		r := s.Run(ref.run)
		if r == nil || r.Trial(ref.number) == nil {
			return errTrialEnded
		}
		t := r.Trial(ref.number)
		admitted = c.cfg.Work.API.Admit(session)
		admitted.Told(t.Before, t.Messages)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.running[ref] = &running{admitted}
		return nil
	})
	return func() {
		admitted.Dismiss()
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.running, ref)
	}, err
}

// trial does one trial from its lane to its end, or goes on with the one that
// an earlier harness left, and records how it ended. If ctx ends, so does the
// worker, unless the harness stops: then it works on for the next one.
func (w *Work) trial(ctx context.Context, ref ref, was *left) {
	log := w.controller.cfg.Log.With("run", ref.run, "trial", ref.number, "lane", ref.lane)
	end := w.tried(ctx, ref, was)
	if leaving(ctx) {
		return
	}
	if err := w.Sessions.drop(processOf(ref)); err != nil {
		log.Warn("a trial's file stays until the next start", "err", err)
	}
	// The worker has ended, or never was: its folder goes with it.
	clearing, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearTime)
	defer cancel()
	if err := w.Lanes.Clear(clearing, ref.lane); err != nil {
		log.Warn("a lane's folder stays until its next trial", "err", err)
	}
	if ctx.Err() != nil {
		return
	}
	log.Info("a trial ended", "outcome", end.Outcome, "why", end.Why)
	for wait := firstWait; ; wait = min(2*wait, mostWait) {
		_, err := w.controller.decide(ctx, func(s *state.State, now time.Time) ([]ledger.Draft, error) { return s.Ended(now, end) })
		if err == nil || !pause(ctx, wait) {
			return
		}
		log.Error("recording a trial's end", "err", err)
	}
}

// leaving says that the harness stops: nobody waits for an end that is slow.
func leaving(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), errTrialEnded)
}

// Times of a trial's end.
const (
	// clearTime is how long its folder's end may take.
	clearTime = time.Minute
	// graceTime is how long a worker may take to end that is told to.
	graceTime = 2 * time.Second
	// endTime is how long its process's end may take, and leaveTime what a
	// harness that stops waits for.
	endTime   = 30 * time.Second
	leaveTime = 3 * time.Second
)

// tried does the trial and says how it ended.
func (w *Work) tried(ctx context.Context, ref ref, was *left) state.TrialEnd {
	end := state.TrialEnd{Run: ref.run, Trial: ref.number, Outcome: state.Failed}
	exited, last, err := w.worked(ctx, ref, was)
	switch {
	case err != nil && hopeless(err):
		end.Why = err.Error()
	case err != nil:
		// It is no fault of its worker's: the experiment is the next one again.
		end.Outcome, end.Why = state.Lost, err.Error()
		if ctx.Err() == nil && !errors.Is(err, errTrialEnded) {
			w.controller.cfg.Log.Warn("a trial could not be done here", "run", ref.run, "trial", ref.number, "lane", ref.lane, "err", err)
			w.controller.faulty(ref.lane, err)
		}
	case exited.Lost:
		end.Outcome, end.Why = state.Lost, "the broker that ran its worker ended"
	case exited.TimedOut:
		end.Outcome, end.Why = state.TimedOut, "its time was used"
	case exited.Over != "":
		end.Why = "its worker used more " + exited.Over + " than it may"
	default:
		end.Outcome, end.Why = outcomeOfWorker(exited, last)
	}
	return end
}

// worked has the trial's worker work to its end: one that it starts, or the
// one that was left.
func (w *Work) worked(ctx context.Context, ref ref, was *left) (wire.BrokerExited, []byte, error) {
	if was != nil {
		return w.adopted(ctx, ref, *was)
	}
	return w.runWorker(ctx, ref)
}

// outcomeOfWorker reads the last line that a worker printed.
func outcomeOfWorker(exited wire.BrokerExited, last []byte) (outcome, why string) {
	result, err := wire.DecodeTrialResult(last)
	switch {
	case err != nil && exited.Signal != "":
		return state.Failed, fmt.Sprintf("its worker was ended by %s; %v", exited.Signal, err)
	case err != nil:
		return state.Failed, fmt.Sprintf("its worker ended with %d; %v", exited.Code, err)
	case result.Outcome == wire.ResultDone:
		return state.Done, result.Why
	}
	return state.Failed, result.Why
}

// runWorker prepares the lane, runs the worker to its end, and gives the last
// line that it printed.
func (w *Work) runWorker(ctx context.Context, ref ref) (exited wire.BrokerExited, last []byte, err error) {
	plan, err := w.plan(ctx, ref)
	if err != nil {
		return exited, nil, err
	}
	bundle, err := w.Repos.Bundle(ctx, repos.Run{Ledger: ref.ledger, Run: ref.run}, w.champions(plan.staged, plan.run))
	if err != nil {
		return exited, nil, err
	}
	if plan.trial.Folder, err = w.Lanes.Prepare(ctx, ref.lane, bundle); err != nil {
		return exited, nil, err
	}
	token, sum, err := trialapi.NewToken(w.controller.cfg.Rand)
	if err != nil {
		return exited, nil, err
	}
	told := plan.trial
	told.URL, told.Token = w.URL, token
	file, err := w.Lanes.WriteTrial(ctx, ref.lane, told)
	if err != nil {
		return exited, nil, err
	}
	dismiss, err := w.controller.admit(ctx, ref, trialapi.Session{Trial: plan.trial, Sum: sum, Editable: plan.staged.Kit.Project.Editable, Ignore: plan.staged.Kit.Project.Ignore})
	if err != nil {
		return exited, nil, err
	}
	defer dismiss()
	id := processOf(ref)
	if err := w.Sessions.put(id, session{Ledger: ref.ledger, Run: ref.run, Trial: ref.number, Lane: ref.lane, Sum: sum[:], URL: w.URL,
		Project: plan.trial.Folder}); err != nil {
		return exited, nil, err
	}
	worker := lanes.Worker{ID: id, Argv: append(append([]string{}, w.Worker...), plan.trial.Worker, "--trial", file),
		Deadline: plan.deadline, Ports: []int{w.Port}, ReadOnly: w.Read, Env: map[string]string{"LANG": "C.UTF-8"}}
	started, err := w.Lanes.Start(ctx, ref.lane, worker)
	defer w.endWorker(ctx, id)
	if err != nil {
		return exited, nil, err
	}
	w.controller.sound(ref.lane)
	if exited, err = w.Roles.Wait(ctx, id); err != nil {
		return exited, nil, err
	}
	last, err = lastLine(filepath.Join(started.Folder, "stdout"))
	return exited, last, err
}

// endWorker sees to it that a worker's process is gone: told to end, and then
// made to. When the harness stops, the worker works on for the next one: the
// broker ends it at its deadline.
func (w *Work) endWorker(ctx context.Context, id string) {
	if leaving(ctx) {
		return
	}
	told := errors.Is(context.Cause(ctx), errTrialEnded)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	if told && w.Roles.Signal(ctx, id, "SIGTERM") == nil {
		grace, cancel := context.WithTimeout(ctx, graceTime)
		_, _ = w.Roles.Wait(grace, id) // it is ended below, whatever this says
		cancel()
	}
	if err := w.end(ctx, id); err != nil {
		w.controller.cfg.Log.Warn("a worker's process may still run", "process", id, "err", err)
	}
}

// A plan is what a trial needs to know of its run.
type plan struct {
	trial    wire.Trial
	deadline time.Duration
	staged   *kit.Staged
	run      champions
}

// champions are what a run's repository is made of.
type champions struct {
	list    []state.Champion
	patches []string
}

// plan gives the trial as its worker is told of it.
func (w *Work) plan(ctx context.Context, ref ref) (p plan, err error) {
	var source wire.KitSource
	err = w.controller.look(ctx, func(s *state.State, now time.Time) error {
		r := s.Run(ref.run)
		if r == nil || r.Trial(ref.number) == nil {
			return errTrialEnded
		}
		source = *r.Created.Source
		p.trial = told(w.controller.cfg.Rig, r, r.Trial(ref.number), now)
		p.deadline = p.trial.Deadline.Time().Sub(now)
		p.run = championsOf(r)
		return nil
	})
	if err != nil {
		return p, err
	}
	if p.staged, err = w.Kits.Open(ctx, source); err != nil {
		return p, err
	}
	text, _ := p.staged.Files.File(kit.FileName)
	p.trial.Kit = string(text.Data)
	if name := p.staged.Kit.Worker.Prompt; name != "" {
		prompt, _ := p.staged.Files.File(name)
		p.trial.Prompt = string(prompt.Data)
	}
	return p, nil
}

// told is what the state knows of what a worker is told.
func told(rig string, r *state.Run, t *state.Trial, now time.Time) wire.Trial {
	began := now
	if !t.Started.IsZero() {
		began = t.Started.Time()
	}
	trial := wire.Trial{Rig: rig, Run: r.Name, Trial: t.Number, Lane: t.Lane, Experiment: t.Experiment.Number, Title: t.Experiment.Title,
		Text: t.Experiment.Text, Worker: t.Worker, Args: r.Created.WorkerArgs, Seed: seedOf(r.Created.Seed, t.Number), Base: r.ScoreOf(0),
		Champion: r.ScoreOf(r.Champion()), ChampionAttempt: r.Champion(), Most: r.MostAttempts(), Deadline: wire.At(r.Deadline(began))}
	if r.Created.Metric != nil {
		trial.Metric = *r.Created.Metric
	}
	return trial
}

// seedOf draws a trial's seed from its run's.
func seedOf(run, trial uint64) uint64 {
	b := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64([]byte("thermite/trial/v1\n"), run), trial)
	sum := sha256.Sum256(b)
	return binary.BigEndian.Uint64(sum[:]) % (wire.MaxInteger + 1)
}

func championsOf(r *state.Run) champions {
	var c champions
	for _, one := range r.Champions {
		patch := ""
		if a := r.Attempt(one.Attempt); a != nil {
			patch = a.Patch
		}
		c.list, c.patches = append(c.list, one), append(c.patches, patch)
	}
	return c
}

// champions gives the run's champions for its repository.
func (w *Work) champions(staged *kit.Staged, c champions) []repos.Champion {
	all := make([]repos.Champion, len(c.list))
	for i, one := range c.list {
		all[i] = repos.Champion{Attempt: one.Attempt, Title: one.Title, Why: one.Why, Time: one.At.Time(),
			Tree: func(ctx context.Context) (kit.Tree, error) { return w.tree(ctx, staged, c.patches[i]) }}
	}
	return all
}

// tree gives the whole project of the patch of this name; an empty one is the
// base.
func (w *Work) tree(ctx context.Context, staged *kit.Staged, patch string) (kit.Tree, error) {
	if patch == "" {
		return staged.Base, nil
	}
	b, err := w.Patches.Get(patch)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, patches.ErrAltered) {
		return nil, fmt.Errorf("%w: %w", errNoPatch, err)
	}
	if err != nil {
		return nil, err
	}
	tree, _, err := kit.ApplyPatch(ctx, staged.Kit.Project, staged.Base, b)
	return tree, err
}

// maxTail is how much of a worker's output is read for its last line.
const maxTail = 128 << 10

// lastLine gives the last line of a file.
func lastLine(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-maxTail), maxTail))
	if err != nil {
		return nil, err
	}
	return wire.LastLine(b), nil
}
