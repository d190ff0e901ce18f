package views

import (
	"slices"

	"thermite/pkg/wire"
)

// attempt keeps a new attempt. A number that was submitted before is counted
// and changes nothing.
func (r *run) attempt(b attemptBody, at Mark) {
	r.view.Attempts++
	lane, working := r.trials[b.Trial]
	if working {
		r.lanes[lane].Attempts++
	}
	if b.Attempt == 0 || r.find(b.Attempt) != nil || r.old.find(b.Attempt) >= 0 {
		return
	}
	if working {
		r.lanes[lane].Judging++
	}
	if len(r.attempts) == mostAttempts {
		r.old.add(r.attempts[0])
		r.attempts = slices.Delete(r.attempts, 0, 1)
	}
	r.attempts = append(r.attempts, &Attempt{Mark: at, Attempt: b.Attempt, Trial: b.Trial, Lane: b.Lane, Experiment: b.Experiment,
		Parent: b.Parent, Title: b.Title, Idea: b.Why, Tunables: b.Tunables, Patch: b.Patch, Files: b.Files, Added: b.Added, Removed: b.Removed})
}

// find gives the attempt if it is one of the newest.
func (r *run) find(attempt uint64) *Attempt {
	for _, a := range slices.Backward(r.attempts) {
		if a.Attempt == attempt {
			return a
		}
	}
	return nil
}

// change changes what is kept of the attempt, if anything is, by the event at
// the mark.
func (r *run) change(attempt uint64, at Mark, do func(*Attempt)) {
	if attempt == 0 {
		if r.base == nil {
			r.base = &Attempt{Mark: at, Title: "The kit's base"}
		}
		do(r.base)
		return
	}
	if a := r.find(attempt); a != nil {
		do(a)
		return
	}
	if i := r.old.find(attempt); i >= 0 {
		a := r.old.at(i).whole()
		do(&a)
		r.old.set(i, &a)
	}
}

// step notes a step of a judging.
func (r *run) step(kind string, b stepBody, at Mark) {
	r.change(b.Attempt, at, func(a *Attempt) {
		if !r.begin(a, b.Judging) {
			return
		}
		a.Step, a.Why, a.Effect = kind, b.Why, b.Effect
		a.JudgedMS = min(a.JudgedMS+min(b.WallMS, wire.MaxInteger), wire.MaxInteger)
		switch kind {
		case wire.KindBuild:
			a.Places.Build = at.Seq
		case wire.KindCheck:
			a.Places.Check = at.Seq
		case wire.KindMeasure:
			a.Places.Measure = at.Seq
		}
	})
}

// begin has the attempt tell of the judging, which replaces an earlier one,
// and says whether it does.
func (r *run) begin(a *Attempt, judging uint64) bool {
	judging = max(judging, 1)
	if judging <= a.Judging {
		return judging == a.Judging
	}
	if a.Judging > 0 {
		r.uncount(a.Outcome)
		a.Earlier = append(slices.Clip(a.Earlier), Judging{Judging: a.Judging, Outcome: a.Outcome, Score: a.Score, Places: a.Places})
		a.Step, a.Why, a.Outcome, a.Score, a.Low, a.High, a.Against, a.Effect, a.JudgedMS, a.Places = "", "", "", nil, nil, nil, 0, nil, 0, Places{}
	}
	a.Judging, a.Rejudge = judging, false
	return true
}

// uncount takes a verdict that counts no more out of the counts.
func (r *run) uncount(outcome string) {
	if n := r.verdicts[outcome]; n > 1 {
		r.verdicts[outcome] = n - 1
	} else {
		delete(r.verdicts, outcome)
	}
}

func (r *run) verdict(b wire.Verdict, at Mark) {
	r.view.Judgings++
	late := false
	r.change(b.Attempt, at, func(a *Attempt) {
		if late = !r.begin(a, b.Judging); late {
			return
		}
		r.judged(a)
		r.uncount(a.Outcome)
		a.Outcome, a.Score, a.Low, a.High, a.Why, a.Against = b.Outcome, b.Score, b.Low, b.High, b.Why, b.Against
		a.Places.Verdict = at.Seq
	})
	if late {
		return
	}
	r.verdicts[b.Outcome]++
	if b.Judging > 1 {
		m := r.marks[b.Attempt]
		m.replaced = len(r.view.Scores)
		r.marks[b.Attempt] = m
	}
	if b.Score != nil {
		r.view.Scores = append(r.view.Scores, Score{Mark: at, Attempt: b.Attempt, Outcome: known(b.Outcome), Score: *b.Score, Low: b.Low, High: b.High})
	}
}

// judged takes the attempt off those of its lane that wait for a verdict.
func (r *run) judged(a *Attempt) {
	if lane, working := r.trials[a.Trial]; working && a.Outcome == "" && len(a.Earlier) == 0 && !a.Disqualified {
		if l := r.lanes[lane]; l.Judging > 0 {
			l.Judging--
		}
	}
}

// champion notes the new champion, with what is known of its attempt: of one
// that is so again, what was known the time before.
func (r *run) champion(b wire.Champion, at Mark) {
	c := Champion{Mark: at, Attempt: b.Attempt, Score: b.Score, Patch: b.Patch, Why: b.Why}
	r.change(b.Attempt, at, func(a *Attempt) {
		if a.Attempt == 0 {
			a.Score = b.Score
		}
		c.Title, c.Trial, c.Parent, c.Low, c.High, c.Effect, c.Tunables = a.Title, a.Trial, a.Parent, a.Low, a.High, a.Effect, a.Tunables
		if i, before := r.champions[b.Attempt]; before && a.Brief {
			c.Effect, c.Tunables = r.view.Champions[i].Effect, r.view.Champions[i].Tunables
		}
	})
	r.champions[b.Attempt] = len(r.view.Champions)
	r.view.Champion = &c
	r.view.Champions = append(r.view.Champions, c)
}

// marks say how many of the scores and champions an event is of: those there
// were as it came.
type marks struct{ scores, champions, replaced int }

// disqualify marks all that came of the attempt: what has a list of its own
// at the next snapshot.
func (r *run) disqualify(attempt uint64, at Mark) {
	v := &r.view
	m := r.marks[attempt]
	m.scores, m.champions = len(v.Scores), len(v.Champions)
	r.marks[attempt] = m
	if v.Champion != nil && v.Champion.Attempt == attempt {
		c := *v.Champion
		c.Disqualified = true
		v.Champion = &c
	}
	if attempt != 0 {
		r.change(attempt, at, func(a *Attempt) {
			r.judged(a)
			a.Disqualified, a.Rejudge = true, false
		})
	}
}

// mark marks the scores and champions that marks says. Snapshots share the
// lists as they were, so the marked ones are copies.
func (r *run) mark() {
	if len(r.marks) == 0 {
		return
	}
	v := &r.view
	v.Scores, v.Champions = slices.Clone(v.Scores), slices.Clone(v.Champions)
	for i := range v.Scores {
		s := &v.Scores[i]
		m := r.marks[s.Attempt]
		s.Disqualified = s.Disqualified || i < m.scores
		s.Replaced = s.Replaced || i < m.replaced
	}
	for i := range v.Champions {
		c := &v.Champions[i]
		c.Disqualified = c.Disqualified || i < r.marks[c.Attempt].champions
	}
	clear(r.marks)
}
