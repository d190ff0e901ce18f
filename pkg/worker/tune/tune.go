// Package tune is the worker without a model: it turns the values that the
// kit says may be turned, submits the lane with them, and learns from the
// verdicts of the whole run. It begins with places spread at random; from
// then on a Gaussian process over all that was judged says where to expect
// the most for the time it takes. The trial's seed, the run's verdicts and how
// long the judge's runs took decide all it does.
package tune

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"thermite/pkg/kit"
	"thermite/pkg/wire"
	"thermite/pkg/worker"
)

const (
	// refusals is how many submits in turn may be refused before a trial
	// gives up: what refuses all is no matter of values.
	refusals = 5
	// pause is how long it waits where the API asks it to be slower, or
	// fails.
	pause = time.Second
	// failures is how many failures of the API in turn it bears.
	failures = 5
)

// Work tunes until the trial's attempts are used.
func Work(ctx context.Context, job worker.Job) (uint64, error) {
	t, err := begin(job)
	if err != nil {
		return 0, err
	}
	for refused := 0; job.Most == 0 || t.submitted < job.Most; {
		if err := t.learn(ctx); err != nil {
			return t.submitted, err
		}
		p, err := t.search.next(t.past())
		if errors.Is(err, errAllTried) {
			job.Log.Info("nothing is left to try")
			return t.submitted, nil
		}
		if err != nil {
			return t.submitted, err
		}
		switch err := t.try(ctx, p); {
		case worker.Code(err) == wire.TrialRefused:
			if refused++; refused == refusals {
				return t.submitted, fmt.Errorf("%d submits in turn: %w", refusals, err)
			}
			job.Log.Warn("a submit was refused", "title", p.title, "error", err)
		case err != nil:
			return t.submitted, worker.Stopped(err)
		default:
			refused = 0
		}
	}
	return t.submitted, nil
}

// A tuner is one trial under way.
type tuner struct {
	job    worker.Job
	kit    kit.Kit
	search search
	lane   lane
	sign   float64 // 1 where more is better, -1 where less is
	// origin is what the lane held at first.
	origin map[string]string
	// attempts are the run's, by number; the first after of them all have
	// their verdicts.
	attempts map[uint64]wire.TrialAttempt
	order    []uint64
	after    uint64
	// took has the seconds that the runs of judged attempts took.
	took map[uint64]float64
	// refused are values that the run took no attempt for.
	refused   []map[string]string
	submitted uint64
}

func begin(job worker.Job) (*tuner, error) {
	k, err := kit.Decode([]byte(job.Kit))
	if err != nil {
		return nil, fmt.Errorf("reading the trial's kit: %w", err)
	}
	if len(k.Worker.Tunables) == 0 {
		return nil, fmt.Errorf("the kit %s has no tunables: its runs need another worker than tune", k.About.Name)
	}
	t := &tuner{job: job, kit: k, lane: lane{job.Folder}, sign: 1, attempts: map[uint64]wire.TrialAttempt{}, took: map[uint64]float64{}}
	if job.Metric.Direction == wire.DirectionMin {
		t.sign = -1
	}
	if t.origin, err = t.lane.read(k); err != nil {
		return nil, err
	}
	t.search = search{space: k.Worker.Tunables, seed: job.Seed, metric: job.Metric.Name,
		shown: func(score float64) string { return strconv.FormatFloat(t.sign*score, 'g', 7, 64) }}
	return t, nil
}

// learn reads what has become of the run's attempts since the last time.
func (t *tuner) learn(ctx context.Context) error {
	list, err := t.job.API.Attempts(ctx, t.after)
	if err != nil {
		return err
	}
	judged := true
	var fresh []uint64
	for _, a := range list {
		was, known := t.attempts[a.Attempt]
		if !known {
			t.order = append(t.order, a.Attempt)
		}
		if a.Judged && !was.Judged {
			fresh = append(fresh, a.Attempt)
		}
		t.attempts[a.Attempt] = a
		if judged = judged && a.Judged; judged {
			t.after = a.Attempt
		}
	}
	for _, n := range fresh[max(0, len(fresh)-mostSeen):] {
		if err := t.look(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// look reads all that there is of an attempt, of which the list has less.
func (t *tuner) look(ctx context.Context, attempt uint64) error {
	a, err := t.job.API.Attempt(ctx, attempt, 0)
	if err != nil {
		return err
	}
	t.attempts[attempt] = a
	for _, c := range a.Cases {
		if !c.Champion {
			t.took[attempt] += c.WallMS / 1000
		}
	}
	return nil
}

// past is all that was tried.
func (t *tuner) past() []tried {
	var past []tried
	add := func(attempt uint64, values map[string]string, score *float64, waits bool) {
		p, ok := t.search.space.point(values)
		if !ok {
			return // another worker's, with other values than the kit allows
		}
		if score != nil {
			s := t.sign * *score
			score = &s
		}
		past = append(past, tried{attempt: attempt, point: p, score: score, waits: waits, took: t.took[attempt]})
	}
	if t.job.ChampionAttempt == 0 { // else it is among the attempts
		add(0, t.origin, t.job.Champion, false)
	}
	for _, n := range t.order {
		a := t.attempts[n]
		// What counts no more, or waits for its owner, is not to be sought.
		if a.Disqualify || a.Outcome == "suspect" {
			a.Score = nil
		}
		add(n, a.Tunables, a.Score, !a.Judged)
	}
	for _, values := range t.refused {
		add(0, values, nil, false)
	}
	return past
}

// try submits the lane with the proposal's values and waits for the verdict.
func (t *tuner) try(ctx context.Context, p proposal) error {
	if err := t.lane.write(t.kit, p.values); err != nil {
		return err
	}
	number, err := t.submit(ctx, p)
	switch {
	case worker.Code(err) == wire.TrialRefused:
		t.refused = append(t.refused, p.values)
		return err
	case err != nil:
		return err
	case number == 0: // as the lane was at first
		t.refused = append(t.refused, p.values)
		return nil
	}
	if err := t.job.API.Progress(ctx, p.title+": attempt "+strconv.FormatUint(number, 10)+" waits for its verdict"); err != nil {
		return err
	}
	a, err := t.job.API.Verdict(ctx, number)
	if err != nil {
		return err
	}
	t.job.Log.Info("a verdict", "attempt", number, "title", p.title, "outcome", a.Outcome, "why", a.Why)
	return nil
}

// submit gives the number of the attempt that the lane became, or that held
// the same before.
func (t *tuner) submit(ctx context.Context, p proposal) (uint64, error) {
	for failed := 0; ; {
		done, err := t.job.API.Submit(ctx, wire.Submit{Title: p.title, Why: p.why})
		switch problem := (*wire.TrialProblem)(nil); {
		case err == nil:
			t.submitted++
			return done.Attempt, nil
		case !errors.As(err, &problem):
			return 0, err
		case problem.Code == wire.TrialNothing:
			return problem.Attempt, nil
		case problem.Code == wire.TrialTooMany:
		case problem.Code == wire.TrialFailed && failed < failures:
			failed++
		default:
			return 0, err
		}
		if !worker.Sleep(ctx, pause) {
			return 0, context.Cause(ctx)
		}
	}
}
