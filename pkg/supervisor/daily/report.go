package daily

import (
	"slices"

	"thermite/pkg/wire"
)

// Bounds of what a report names. What is over them is counted.
const (
	mostRuns   = 200
	mostLines  = 20
	mostNotice = 20
)

// Report is what a rig's day came to, as a fold of the day's events.
type Report struct {
	Rig, Ledger string
	Day         Day
	MadeAt      wire.Time
	// Began is when the ledger began, if it was in the day, and Before the
	// ledger that was reset for it.
	Began  wire.Time
	Before string
	// Events counts the day's events, of which Unread could not be read.
	Events, Unread uint64
	// Runs are those with an event in the day, in that order. MoreRuns counts
	// those over mostRuns.
	Runs     []*Run
	MoreRuns uint64
	// Applied, NotApplied and Rejected count the commands.
	Applied, NotApplied, Rejected uint64
	// Refusals say why commands were not done.
	Refusals lines
	// MicroDollars, Calls and FailedCalls are the models'.
	MicroDollars, Calls, FailedCalls uint64
	// Notices are what the harness said of itself as the report was made.
	Notices []string

	byName map[string]*Run
	other  map[string]bool
}

// Run is a run's day.
type Run struct {
	Name string
	// Created, Ended, Paused and Resumed are of the day.
	Created *wire.RunCreated
	Ended   *wire.RunEnded
	// Paused is why it rests, if it began to in the day and still does.
	Paused *string
	// Trials and Attempts count those of the day; TrialsEnded and Verdicts by
	// what they came to.
	Trials, Attempts      uint64
	TrialsEnded, Verdicts map[string]uint64
	MicroDollars          uint64
	// Champions are those of the day: Title is the attempt's, if it was
	// submitted in the day.
	Champions []Champion
	More      uint64
	// Notes are what its owner may have to look at: suspect scores,
	// disqualified attempts, trials that failed.
	Notes  lines
	titles map[uint64]string
}

// Champion is one.
type Champion struct {
	wire.Champion
	At    wire.Time
	Title string
}

// lines keeps the first mostLines, and counts the others.
type lines struct {
	First []line
	More  uint64
}

// line is a text of ours, and what was said by whoever it is about.
type line struct{ ours, said string }

func (l *lines) add(ours, said string) {
	if len(l.First) < mostLines {
		l.First = append(l.First, line{ours, said})
		return
	}
	l.More++
}

// NewReport begins a report.
func NewReport(rig, ledger string, d Day) *Report {
	return &Report{Rig: rig, Ledger: ledger, Day: d, byName: map[string]*Run{}, other: map[string]bool{}}
}

// run gives the event's run; nil for one over the bound.
func (r *Report) run(name string) *Run {
	if run := r.byName[name]; run != nil || name == "" {
		return run
	}
	if len(r.Runs) == mostRuns {
		if !r.other[name] {
			r.other[name] = true
			r.MoreRuns++
		}
		return nil
	}
	run := &Run{Name: name, TrialsEnded: map[string]uint64{}, Verdicts: map[string]uint64{}, titles: map[uint64]string{}}
	r.byName[name], r.Runs = run, append(r.Runs, run)
	return run
}

// Add folds one event, in the ledger's order. One of another day is left out.
func (r *Report) Add(e wire.Event) {
	if at := e.Time.Time(); at.Before(r.Day.From) || !at.Before(r.Day.To) {
		return
	}
	r.Events++
	run := r.run(e.Run)
	known := true
	switch e.Kind {
	case wire.KindLedgerOpened:
		known = with(e, func(b wire.LedgerOpened) { r.Began, r.Before = e.Time, b.Before })
	case wire.KindCommand:
		known = with(e, func(b wire.CommandTaken) {
			if b.Outcome == wire.CommandApplied {
				r.Applied++
				return
			}
			r.NotApplied++
			r.Refusals.add(b.Command+" was not applied: ", b.Why)
		})
	case wire.KindCommandRejected:
		known = with(e, func(b wire.CommandRejected) {
			r.Rejected++
			r.Refusals.add("a command was rejected: ", b.Why)
		})
	case wire.KindModelCall:
		known = with(e, func(b wire.ModelCall) {
			r.Calls++
			r.MicroDollars += b.MicroDollars
			if b.Failed != "" {
				r.FailedCalls++
			}
			if run != nil {
				run.MicroDollars += b.MicroDollars
			}
		})
	default:
		if run != nil {
			known = run.add(e)
		}
	}
	if !known {
		r.Unread++
	}
}

// with reads the body, and says whether it could.
func with[B wire.Body](e wire.Event, do func(B)) bool {
	b, err := wire.ReadBody[B](e)
	if err != nil {
		return false
	}
	do(b)
	return true
}

func (r *Run) add(e wire.Event) bool {
	switch e.Kind {
	case wire.KindRunCreated:
		return with(e, func(b wire.RunCreated) { r.Created = &b })
	case wire.KindRunEnded:
		return with(e, func(b wire.RunEnded) { r.Ended, r.Paused = &b, nil })
	case wire.KindRunPaused:
		return with(e, func(b wire.RunPaused) { r.Paused = &b.Why })
	case wire.KindRunResumed:
		r.Paused = nil
	case wire.KindTrialStarted:
		r.Trials++
	case wire.KindTrialEnded:
		return with(e, func(b wire.TrialEnded) {
			r.TrialsEnded[b.Outcome]++
			if b.Outcome != "done" && b.Outcome != "stopped" {
				r.Notes.add(noteOf("trial", b.Trial, b.Outcome), b.Why)
			}
		})
	case wire.KindAttempt:
		return with(e, func(b wire.Attempt) {
			r.Attempts++
			r.titles[b.Attempt] = b.Title
		})
	case wire.KindVerdict:
		return with(e, func(b wire.Verdict) {
			r.Verdicts[b.Outcome]++
			if b.Outcome == "suspect" {
				r.Notes.add(noteOf("attempt", b.Attempt, b.Outcome), b.Why)
			}
		})
	case wire.KindChampion:
		return with(e, func(b wire.Champion) { r.crown(Champion{b, e.Time, r.titles[b.Attempt]}) })
	case wire.KindDisqualified:
		return with(e, func(b wire.Disqualified) { r.Notes.add(noteOf("attempt", b.Attempt, "disqualified"), b.Why) })
	}
	return true
}

// crown keeps the newest champions: those say where the day led.
func (r *Run) crown(c Champion) {
	r.Champions = append(r.Champions, c)
	if over := len(r.Champions) - mostLines; over > 0 {
		r.Champions = slices.Delete(r.Champions, 0, over)
		r.More += uint64(over)
	}
}
