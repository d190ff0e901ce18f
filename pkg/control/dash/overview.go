package dash

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

type overviewPage struct {
	runFrame
	Scores plot
	// Newest says that the chart has the newest attempts alone, and Zooms that
	// there are more than those.
	Newest, Zooms bool
	Gain          string
	Verdicts      []share
	Lanes         []laneNow
	// Judging counts the attempts that wait for their verdict.
	Judging  int
	Budget   []spent
	Tunables []plot
	// Elapsed is how long the run has run.
	Elapsed time.Duration
}

// BudgetAttempts and BudgetTime are the budget's bounds as a form has them;
// empty is none.
func (p overviewPage) BudgetAttempts() string {
	if p.Run.Budget == nil || p.Run.Budget.Attempts == 0 {
		return ""
	}
	return strconv.FormatUint(p.Run.Budget.Attempts, 10)
}

func (p overviewPage) BudgetTime() string {
	if p.Run.Budget == nil || p.Run.Budget.WallMS == 0 {
		return ""
	}
	return (time.Duration(p.Run.Budget.WallMS) * time.Millisecond).String()
}

// share is a part of a bar: how often a verdict came.
type share struct {
	service.Count
	X, W, Class string
}

// laneNow is a lane at work with the newest of its attempts.
type laneNow struct {
	service.Lane
	Newest *service.Attempt
}

// spent is how much of a part of its budget a run used.
type spent struct {
	Name, Of string
	Percent  int
}

func (v *visit) showOverview(p *problem, status int) error {
	f, err := v.runFrame(tabOverview, p)
	if err != nil {
		return err
	}
	r := f.Run
	page := overviewPage{runFrame: f, Newest: v.r.URL.Query().Get("show") == "newest", Zooms: len(r.Scores) > newestDrawn,
		Verdicts: shares(r.Verdicts), Gain: gain(r), Elapsed: r.Ran(f.Now)}
	page.Scores = scorePlot(f.Rig, f.Ledger, r, page.Newest && page.Zooms)
	page.Budget = budget(r, page.Elapsed)
	for _, a := range r.Newest {
		if a.Outcome == "" && !a.Disqualified {
			page.Judging++
		}
	}
	for _, l := range r.Lanes {
		now := laneNow{Lane: l}
		if i := slices.IndexFunc(r.Newest, func(a service.Attempt) bool { return a.Trial == l.Trial }); i >= 0 {
			now.Newest = &r.Newest[i]
		}
		page.Lanes = append(page.Lanes, now)
	}
	page.Tunables = tunablePlots(r)
	return v.render("run", status, page)
}

// gain says how much better the champion's score is than the base's.
func gain(r service.Run) string {
	base, best := baseScore(r), bestScore(r)
	if base == nil || best == nil || *base == *best {
		return ""
	}
	return against(*best, *base)
}

// against says how a score differs from another one: as a number, and as a
// part of the other.
func against(v, than float64) string {
	words := signedDigits(v-than, 4)
	if than != 0 {
		words += fmt.Sprintf(" (%s %%)", signedDigits(100*(v-than)/abs(than), 3))
	}
	return words
}

func abs(v float64) float64 { return max(v, -v) }

// budget says how much of its budget the run used.
func budget(r service.Run, elapsed time.Duration) []spent {
	if r.Budget == nil {
		return nil
	}
	var list []spent
	part := func(name string, used, of float64, words string) {
		list = append(list, spent{name, words, int(min(100, 100*used/of))})
	}
	if n := r.Budget.Attempts; n > 0 {
		part("Attempts", float64(r.Attempts), float64(n), count(n))
	}
	if ms := r.Budget.WallMS; ms > 0 {
		part("Time", float64(elapsed.Milliseconds()), float64(ms), millis(ms))
	}
	return list
}

// Spent gives what was used of a part of the budget; nil when that has no
// bound.
func (p overviewPage) Spent(name string) *spent {
	i := slices.IndexFunc(p.Budget, func(s spent) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &p.Budget[i]
}

// verdictOrder is how a bar of verdicts goes, the best first.
var verdictOrder = []string{"promoted", "better", "not_better", "suspect", "refused", "failed"}

// shares gives the bar of the verdicts; one that is not known comes last.
func shares(counts []service.Count) []share {
	var sum uint64
	for _, c := range counts {
		sum += c.Count
	}
	sorted := slices.Clone(counts)
	place := func(name string) int {
		if i := slices.Index(verdictOrder, name); i >= 0 {
			return i
		}
		return len(verdictOrder)
	}
	slices.SortStableFunc(sorted, func(a, b service.Count) int { return place(a.Name) - place(b.Name) })
	var list []share
	var at uint64
	for _, c := range sorted {
		class := "v-other"
		if slices.Contains(wire.VerdictOutcomes, c.Name) {
			class = "v-" + c.Name
		}
		list = append(list, share{c, percent(float64(at) / float64(sum)), percent(float64(c.Count) / float64(sum)), class})
		at += c.Count
	}
	return list
}
