package views

import (
	"math"
	"slices"
	"unicode/utf8"

	"thermite/pkg/wire"
)

// How many attempts a page of them has, and how long the title of one is
// kept.
const (
	attemptsAPage = 64
	mostTitle     = 160
)

// attempts are a run's attempts that are not among the newest, in the order
// they came. A snapshot shares them: what it holds is never written in place.
type attempts struct {
	pages []*attemptPage
	n     int
}

type attemptPage struct {
	// round is that of the attempts as the page was made.
	round uint64
	list  [attemptsAPage]brief
}

// brief is what is kept of an attempt that is not among the newest.
type brief struct {
	mark                                              Mark
	attempt, trial, lane, experiment, parent, against uint64
	judging, judgedMS, files, added, removed          uint64
	title, outcome, step                              string
	score, low, high                                  float64 // NaN is absent
	rejudge, disqualified                             bool
	places                                            Places
	earlier                                           []Judging
}

func (a *attempts) at(i int) brief { return a.pages[i/attemptsAPage].list[i%attemptsAPage] }

// Attempt gives the run's attempt, or the kit's base, which is attempt 0.
func (r Run) Attempt(n uint64) (Attempt, bool) {
	if n == 0 {
		if r.Base == nil {
			return Attempt{}, false
		}
		return *r.Base, true
	}
	for _, a := range r.Newest {
		if a.Attempt == n {
			return a, true
		}
	}
	if r.old.n == 0 {
		return Attempt{}, false
	}
	// Attempts are numbered one after another, unless the rig is odd.
	if i := n - r.old.at(0).attempt; i < uint64(r.old.n) && r.old.at(int(i)).attempt == n {
		return r.old.at(int(i)).whole(), true
	}
	for i := range r.old.n {
		if b := r.old.at(i); b.attempt == n {
			return b.whole(), true
		}
	}
	return Attempt{}, false
}

// AttemptsBefore gives the newest attempts before the one of that number, 0
// for all, that want takes, at most limit of them, the newest first.
func (r Run) AttemptsBefore(before uint64, limit int, want func(Attempt) bool) []Attempt {
	list := make([]Attempt, 0, min(limit, mostAttempts))
	if before == 0 {
		before = math.MaxUint64
	}
	take := func(a Attempt) (full bool) {
		if want(a) {
			list = append(list, a)
		}
		return len(list) >= limit
	}
	for _, a := range r.Newest {
		if a.Attempt < before && take(a) {
			return list
		}
	}
	for i := r.old.n - 1; i >= 0; i-- {
		page := r.old.pages[i/attemptsAPage]
		if b := &page.list[i%attemptsAPage]; b.attempt < before && take(b.whole()) {
			return list
		}
	}
	return list
}

// older keeps a run's attempts that are not among the newest, in its fold.
type older struct {
	attempts
	// round counts the snapshots: a page of an earlier round is shared.
	round, listRound uint64
	// odd are the positions of the attempts whose number doesn't say it.
	odd map[uint64]int
}

// add keeps an attempt that is among the newest no more.
func (o *older) add(a *Attempt) {
	if o.n%attemptsAPage == 0 {
		o.pages = append(o.pages, &attemptPage{round: o.round})
	}
	o.pages[o.n/attemptsAPage].list[o.n%attemptsAPage] = briefOf(a)
	if a.Attempt-o.at(0).attempt != uint64(o.n) {
		if o.odd == nil {
			o.odd = map[uint64]int{}
		}
		o.odd[a.Attempt] = o.n
	}
	o.n++
}

// find gives the attempt's position, or -1.
func (o *older) find(attempt uint64) int {
	if o.n == 0 {
		return -1
	}
	if i := attempt - o.at(0).attempt; i < uint64(o.n) && o.at(int(i)).attempt == attempt {
		return int(i)
	}
	if i, ok := o.odd[attempt]; ok {
		return i
	}
	return -1
}

// set changes the attempt at the position, on a page that no snapshot has.
func (o *older) set(i int, a *Attempt) {
	page := o.pages[i/attemptsAPage]
	if page.round != o.round {
		if o.listRound != o.round {
			o.pages, o.listRound = slices.Clone(o.pages), o.round
		}
		own := *page
		own.round = o.round
		page = &own
		o.pages[i/attemptsAPage] = page
	}
	page.list[i%attemptsAPage] = briefOf(a)
}

// snapshot gives the attempts as they are.
func (o *older) snapshot() attempts {
	o.round++
	return attempts{pages: slices.Clip(o.pages), n: o.n}
}

func briefOf(a *Attempt) brief {
	return brief{mark: a.Mark, attempt: a.Attempt, trial: a.Trial, lane: a.Lane, experiment: a.Experiment, parent: a.Parent, against: a.Against,
		judging: a.Judging, judgedMS: a.JudgedMS, files: a.Files, added: a.Added, removed: a.Removed,
		title: clipped(a.Title), outcome: known(a.Outcome), step: known(a.Step), score: orNaN(a.Score), low: orNaN(a.Low), high: orNaN(a.High),
		rejudge: a.Rejudge, disqualified: a.Disqualified, places: a.Places, earlier: a.Earlier}
}

func (b brief) whole() Attempt {
	return Attempt{Mark: b.mark, Brief: true, Attempt: b.attempt, Trial: b.trial, Lane: b.lane, Experiment: b.experiment, Parent: b.parent,
		Against: b.against, Judging: b.judging, JudgedMS: b.judgedMS, Files: b.files, Added: b.added, Removed: b.removed,
		Title: b.title, Outcome: b.outcome, Step: b.step, Score: orNil(b.score), Low: orNil(b.low), High: orNil(b.high),
		Rejudge: b.rejudge, Disqualified: b.disqualified, Places: b.places, Earlier: b.earlier}
}

func orNaN(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

func orNil(v float64) *float64 {
	if math.IsNaN(v) {
		return nil
	}
	return &v
}

// words are those that most attempts share: kept once, not once each.
var words = append([]string{wire.KindBuild, wire.KindCheck, wire.KindMeasure}, wire.VerdictOutcomes...)

func known(word string) string {
	if i := slices.Index(words, word); i >= 0 {
		return words[i]
	}
	return clipped(word)
}

// clipped keeps what a rig wrote to some length.
func clipped(s string) string {
	if len(s) <= mostTitle {
		return s
	}
	n := mostTitle
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
