package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"thermite/pkg/harness/ledger"
	"thermite/pkg/harness/state"
	"thermite/pkg/wire"
)

// loop is the controller's one goroutine.
type loop struct {
	*Controller
	// follower is nil until the ledger is folded, and recorded says that what
	// was lost with the harness of before is in it.
	follower *ledger.Follower[*state.State]
	recorded bool
	// opening gives what the broker has once it answered and what is not to
	// go on is gone; found is that until it is recorded.
	opening chan opened
	found   *opened
	// lanes are nil until then.
	lanes []uint64

	// begun are the trials under way, and judging the judging.
	begun   map[ref]*effect
	judging *effect
}

// A ref names what is under way.
type ref struct {
	ledger string
	run    string
	// number is a trial's, or an attempt's.
	number uint64
	lane   uint64
}

// An effect runs beside the loop until it is done; cancel ends it.
type effect struct {
	judging state.Judging
	ref     ref
	cancel  context.CancelCauseFunc
	done    chan struct{}
}

func (e *effect) over() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// round is one round of the loop: what follows by itself, and then one thing
// that comes. It begins before its first.
func (l *loop) round(ctx context.Context) error {
	if l.follower == nil {
		follower, err := ledger.Follow(ctx, l.cfg.Ledger, state.FoldName, state.FoldVersion, state.New)
		if err != nil {
			return fmt.Errorf("folding the ledger: %w", err)
		}
		l.follower = follower
	}
	if l.cfg.Work != nil && l.opening == nil && !l.recorded {
		l.opening = make(chan opened, 1)
		go l.open(ctx, l.opening)
	}
	if l.found != nil && !l.recorded {
		if err := l.begin(ctx, *l.found); err != nil {
			return err
		}
	}
	if err := l.turn(ctx); err != nil {
		return err
	}
	l.trouble(theLedger, nil)
	return l.wait(ctx)
}

// rest waits before the next round, after one that failed. Who asks meanwhile
// is answered: it is told, too, if the ledger takes no event.
func (l *loop) rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	asks := l.asks
	if l.follower == nil {
		asks = nil // there is nothing to decide from
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return nil
		case a := <-asks:
			if err := l.answer(ctx, a); err != nil {
				return err
			}
		}
	}
}

// begin records what was lost with the harness of before, and goes on with
// the trials whose workers it left.
func (l *loop) begin(ctx context.Context, found opened) error {
	_, err := l.append(ctx, func(s *state.State, now time.Time) ([]ledger.Draft, error) {
		return s.Lost(now, "the harness started again", func(run string, trial uint64) bool {
			was, ok := found.workers[processOf(ref{run: run, number: trial})]
			return ok && was.session.Ledger == l.follower.Place().Ledger
		})
	})
	if err != nil {
		return fmt.Errorf("recording what was lost: %w", err)
	}
	l.recorded, l.lanes, l.found = true, found.lanes, nil
	var admitting sync.WaitGroup
	for _, was := range found.workers {
		admitting.Add(1)
		was.admitted = sync.OnceFunc(admitting.Done)
		ref := was.session.ref()
		l.begun[ref] = l.start(ctx, ref, func(ctx context.Context) {
			defer was.admitted()
			l.cfg.Work.trial(ctx, ref, &was)
		})
	}
	go func() {
		admitting.Wait()
		l.cfg.Work.API.Open()
	}()
	l.cfg.Live.Say("", wire.LiveController, "the harness began its work")
	return nil
}

// open gets the broker ready, again and again until it is.
func (l *loop) open(ctx context.Context, ready chan<- opened) {
	for wait := time.Second; ; wait = min(2*wait, mostWait) {
		found, err := l.cfg.Work.open(ctx)
		l.trouble("the broker", err)
		if err == nil {
			ready <- found
			return
		}
		if ctx.Err() == nil {
			l.cfg.Log.Warn("the work can't begin", "err", err)
		}
		if !pause(ctx, wait) {
			return
		}
	}
}

// turn appends what follows by itself, and has under way what should be.
func (l *loop) turn(ctx context.Context) error {
	for {
		l.reap()
		events, err := l.append(ctx, func(s *state.State, now time.Time) ([]ledger.Draft, error) {
			if l.lanes == nil {
				return nil, nil
			}
			return s.Next(now, state.Rig{Lanes: l.lanes, Busy: l.closed()})
		})
		if err != nil {
			return err
		}
		if len(events) == 0 {
			break
		}
	}
	if l.lanes != nil {
		l.reconcile(ctx)
		l.forget()
	}
	return nil
}

// append decides and appends, again if the ledger moved on meanwhile, and
// folds what is new.
func (l *loop) append(ctx context.Context, decide func(s *state.State, now time.Time) ([]ledger.Draft, error)) ([]wire.Event, error) {
	for {
		before := l.follower.Place()
		if err := l.follower.CatchUp(ctx); err != nil {
			return nil, err
		}
		drafts, err := decide(l.follower.State(), l.cfg.Now())
		if err != nil || len(drafts) == 0 {
			if l.follower.Place() != before {
				l.wake()
			}
			return nil, err
		}
		events, err := l.cfg.Ledger.AppendAfter(ctx, l.follower.Place(), drafts...)
		if errors.Is(err, ledger.ErrMoved) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := l.follower.CatchUp(ctx); err != nil {
			return events, err
		}
		l.wake()
		l.tell(events)
		return events, nil
	}
}

// wait waits until there is something to do, and does what was asked.
func (l *loop) wait(ctx context.Context) error {
	now := l.cfg.Now()
	var alarm <-chan time.Time
	if at := l.wakeAt(now); !at.IsZero() && l.lanes != nil {
		timer := time.NewTimer(at.Sub(now))
		defer timer.Stop()
		alarm = timer.C
	}
	changed := l.cfg.Ledger.Changed()
	if state, err := l.cfg.Ledger.State(); err != nil {
		return err
	} else if state.Place() != l.follower.Place() {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-changed:
	case <-alarm:
	case <-l.ended:
	case found := <-l.opening:
		l.found = &found
	case a := <-l.asks:
		return l.answer(ctx, a)
	}
	return nil
}

// answer makes a decision. Who asked may have gone; what was decided stays.
func (l *loop) answer(ctx context.Context, a ask) error {
	if a.ctx.Err() != nil {
		a.done <- answer{err: a.ctx.Err()}
		return nil
	}
	events, err := l.append(ctx, a.decide)
	a.done <- answer{events, err}
	var damage *ledger.DamageError
	if errors.As(err, &damage) {
		return err
	}
	return nil
}

// reap forgets what has ended.
func (l *loop) reap() {
	for ref, e := range l.begun {
		if e.over() {
			delete(l.begun, ref)
		}
	}
	if l.judging != nil && l.judging.over() {
		l.judging = nil
	}
}

// busy are the lanes in which something is under way.
func (l *loop) busy() map[uint64]bool {
	busy := map[uint64]bool{}
	for ref := range l.begun {
		busy[ref.lane] = true
	}
	return busy
}

// closed are the lanes that no trial may start in now.
func (l *loop) closed() map[uint64]bool {
	closed, now := l.busy(), l.cfg.Now()
	for lane, until := range l.resting() {
		closed[lane] = closed[lane] || now.Before(until)
	}
	return closed
}

// reconcile ends what should no more be under way and starts what should.
func (l *loop) reconcile(ctx context.Context) {
	s, at := l.follower.State(), l.follower.Place().Ledger
	wanted := map[ref]bool{}
	for _, w := range s.Working() {
		ref := ref{ledger: at, run: w.Run.Name, number: w.Trial.Number, lane: w.Trial.Lane}
		wanted[ref] = true
		if l.begun[ref] == nil {
			l.begun[ref] = l.start(ctx, ref, func(ctx context.Context) { l.cfg.Work.trial(ctx, ref, nil) })
		}
		if why, used := w.Run.Used(l.cfg.Now()); used {
			l.stopTrial(ref, why)
		}
	}
	for ref, e := range l.begun {
		if !wanted[ref] {
			e.cancel(errTrialEnded)
		}
	}
	l.reconcileJudging(ctx, s.Judging(), at)
}

func (l *loop) reconcileJudging(ctx context.Context, want *state.Judging, at string) {
	if l.judging != nil {
		if want == nil || *want != l.judging.judging || l.judging.ref.ledger != at {
			l.judging.cancel(errJudgingMoot)
		}
		return // it ends first
	}
	if want == nil {
		return
	}
	j, ref := *want, ref{ledger: at, run: want.Run, number: want.Attempt}
	l.judging = l.start(ctx, ref, func(ctx context.Context) { l.cfg.Work.judge(ctx, at, j) })
	l.judging.judging = j
}

// Why an effect is ended though it is not done.
var (
	errTrialEnded  = errors.New("the trial has ended")
	errJudgingMoot = errors.New("the judging is no more asked for")
)

// start starts an effect, and tells the loop of its end.
func (l *loop) start(ctx context.Context, ref ref, do func(ctx context.Context)) *effect {
	ctx, cancel := context.WithCancelCause(ctx)
	e := &effect{ref: ref, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer cancel(nil)
		do(ctx)
		close(e.done)
		select {
		case l.ended <- struct{}{}:
		default: // the loop looks already
		}
	}()
	return e
}

// stop ends everything and waits for it.
func (l *loop) stop() {
	for _, e := range l.begun {
		e.cancel(ErrStopped)
	}
	if l.judging != nil {
		l.judging.cancel(ErrStopped)
		<-l.judging.done
	}
	for _, e := range l.begun {
		<-e.done
	}
	if l.cfg.Work != nil {
		l.cfg.Work.close()
	}
}

// tell says live what happened, and hands owner's messages to the workers they
// are for.
func (l *loop) tell(events []wire.Event) {
	for _, e := range events {
		l.say(e)
		if e.Kind != wire.KindOwnerMessage {
			continue
		}
		if b, err := wire.DecodeBody[wire.OwnerMessage](e); err == nil {
			l.tellTrial(l.follower.Place().Ledger, e.Run, b)
		}
	}
}
