package dash

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"thermite/pkg/control/service"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

// stepShown is a step of a judging as a page shows it.
type stepShown struct {
	views.JudgedStep
	// X and W are its part of the judging's time.
	X, W  string
	Cases caseTable
}

func stepsOf(steps []views.JudgedStep, m *wire.Metric) []stepShown {
	var sum, at uint64
	for _, s := range steps {
		sum += s.WallMS
	}
	var list []stepShown
	for _, s := range steps {
		shown := stepShown{JudgedStep: s, Cases: casesOf(s.Cases, m), X: "0%", W: "0%"}
		if sum > 0 {
			shown.X, shown.W = percent(float64(at)/float64(sum)), percent(float64(s.WallMS)/float64(sum))
		}
		at += s.WallMS
		list = append(list, shown)
	}
	return list
}

// caseTable are the runs of a step, those of champion and candidate on one
// case side by side.
type caseTable struct {
	Metric string
	// Paired says that the champion's runs are there too.
	Paired bool
	Rows   []caseRow
	// More counts the rows that are not shown.
	More int
}

// mostCases is how many rows a table of cases has.
const mostCases = 200

// caseRow is a case with the runs on it.
type caseRow struct {
	Number       int
	Seed         uint64
	Secret       bool
	Mine, Theirs *caseRun
	// Better is how much better the candidate did, as text, with its sign.
	Better string
	Sign   int
}

// caseRun is a run on a case with its score.
type caseRun struct {
	wire.StepCase
	Score *float64
}

// casesOf puts the runs in pairs, in the order the cases came.
func casesOf(cases []wire.StepCase, m *wire.Metric) caseTable {
	t := caseTable{Metric: "score"}
	if m != nil {
		t.Metric = m.Name
	}
	open := map[uint64][]int{} // rows that lack a run, by seed
	for _, c := range cases {
		run := &caseRun{c, scoreOfCase(c, m)}
		t.Paired = t.Paired || c.Champion
		i := slices.IndexFunc(open[c.Seed], func(i int) bool {
			if c.Champion {
				return t.Rows[i].Theirs == nil
			}
			return t.Rows[i].Mine == nil
		})
		if i < 0 {
			t.Rows = append(t.Rows, caseRow{Number: len(t.Rows) + 1, Seed: c.Seed, Secret: c.Secret})
			open[c.Seed] = append(open[c.Seed], len(t.Rows)-1)
			i = len(open[c.Seed]) - 1
		}
		row := &t.Rows[open[c.Seed][i]]
		if c.Champion {
			row.Theirs = run
		} else {
			row.Mine = run
		}
		if row.Mine != nil && row.Theirs != nil {
			open[c.Seed] = slices.Delete(open[c.Seed], i, i+1)
			row.compare(m)
		}
	}
	if len(t.Rows) > mostCases {
		t.More, t.Rows = len(t.Rows)-mostCases, t.Rows[:mostCases]
	}
	return t
}

// compare says how much better the candidate did.
func (r *caseRow) compare(m *wire.Metric) {
	if r.Mine.Score == nil || r.Theirs.Score == nil {
		return
	}
	d := *r.Mine.Score - *r.Theirs.Score
	r.Better = signed(d)
	if leastIsBest(m) {
		d = -d
	}
	switch {
	case d > 0:
		r.Sign = 1
	case d < 0:
		r.Sign = -1
	}
}

// scoreOfCase is a run's figure of the metric: what the check says, or what
// the judge measured.
func scoreOfCase(c wire.StepCase, m *wire.Metric) *float64 {
	if m == nil {
		return nil
	}
	if v, ok := c.Values[m.Name]; ok {
		return &v
	}
	var v float64
	switch m.Name {
	case "wall":
		v = c.WallMS / 1000
	case "cpu":
		v = c.CPUMS / 1000
	case "rss":
		v = float64(c.RSS)
	default:
		return nil
	}
	return &v
}

// turned is a tunable's value in an attempt and in what it set out from.
type turned struct {
	Name, Base, From, Value string
	Changed                 bool
}

// turned gives the attempt's tunables. Those of the kit's base are known of a
// kit that ships.
func (v *visit) turned(r service.Run, a service.Attempt, tunables map[string]string) []turned {
	if len(tunables) == 0 {
		return nil
	}
	base := map[string]string{}
	if k, err := v.d.service.Kit(v.r.Context(), v.caller, r.Kit); err == nil {
		for _, t := range k.Tunables {
			base[t.Name] = t.Base
		}
	}
	from := base
	if a.Parent != 0 {
		from = map[string]string{}
		for _, c := range r.Champions {
			if c.Attempt == a.Parent && c.Tunables != nil {
				from = c.Tunables
			}
		}
	}
	var list []turned
	for _, name := range sortedKeys(tunables) {
		t := turned{Name: name, Base: base[name], From: from[name], Value: tunables[name]}
		t.Changed = t.From != "" && t.From != t.Value
		list = append(list, t)
	}
	return list
}

// ancestor is a champion that an attempt goes back to.
type ancestor struct {
	Attempt uint64
	Title   string
	Score   *float64
	Here    bool
	// More, if it is not 0, counts those that are left out here.
	More int
}

// mostAncestors bounds a lineage: a rig may say anything. Of a long one the
// newest and the kit's base are shown.
const (
	mostAncestors  = 10_000
	ancestorsShown = 7
)

// lineage gives what the attempt goes back to, the kit's base first.
func lineage(r service.Run, a service.Attempt) []ancestor {
	list := []ancestor{{Attempt: a.Attempt, Title: a.Title, Score: a.Score, Here: true}}
	for n := a; n.Attempt != 0 && len(list) < mostAncestors; {
		parent, ok := r.Attempt(n.Parent)
		if n.Parent >= n.Attempt || !ok {
			if n.Parent == 0 {
				list = append(list, ancestor{Title: "The kit's base", Score: baseScore(r)})
			}
			break
		}
		list = append(list, ancestor{Attempt: parent.Attempt, Title: parent.Title, Score: parent.Score})
		n = parent
	}
	slices.Reverse(list)
	if more := len(list) - 1 - ancestorsShown; more > 1 {
		list = slices.Concat(list[:1], []ancestor{{More: more}}, list[1+more:])
	}
	return list
}

// effectPlot draws how much better a candidate was than the champion, with
// its confidence interval, beside what a promotion needs. Places are in
// percent of the drawing's width.
type effectPlot struct {
	// Bar is the interval, of which Center is the middle.
	BarX, BarW, Center string
	Zero, Least        string
	// ZeroAnchor and LeastAnchor keep the words inside.
	ZeroAnchor, LeastAnchor string
	Text, Unit, Interval    string
	LeastText               string
	Confidence              string
	Pairs                   uint64
	// Class says by its look whether the interval clears what is needed.
	Class string
	Words string
}

// effectOf draws the effect; nil when there is none, or none that can be
// drawn.
func effectOf(e *wire.Effect, m *wire.Metric) *effectPlot {
	if e == nil || !finite(e.Low, e.Center, e.High, e.Least) || e.Low > e.High {
		return nil
	}
	low, high := min(e.Low, 0, e.Least, e.Center), max(e.High, 0, e.Least, e.Center)
	if !(high > low) {
		low, high = low-1, high+1
	}
	pad := (high - low) * 0.1
	low, high = low-pad, high+pad
	at := func(v float64) string { return percent((v - low) / (high - low)) }
	say := func(v float64) string { return effectText(v, e.Relative) }
	p := &effectPlot{BarX: at(e.Low), BarW: percent((e.High - e.Low) / (high - low)), Center: at(e.Center), Zero: at(0), Least: at(e.Least),
		Text: say(e.Center), Interval: say(e.Low) + " to " + say(e.High), LeastText: say(e.Least), Confidence: score(100*e.Confidence) + " %", Pairs: e.Pairs,
		ZeroAnchor: anchor((0 - low) / (high - low)), LeastAnchor: anchor((e.Least - low) / (high - low))}
	if m != nil && m.Unit != "" && !e.Relative {
		p.Unit = m.Unit
	}
	switch {
	case e.Low >= e.Least && e.Low > 0:
		p.Class, p.Words = "clears", "the whole interval is past what a promotion needs"
	case e.High < 0:
		p.Class, p.Words = "worse", "the whole interval is worse than the champion"
	case e.High < e.Least:
		p.Class, p.Words = "short", "the whole interval is short of what a promotion needs"
	default:
		p.Class, p.Words = "unclear", "the interval does not clear what a promotion needs"
	}
	return p
}

// anchor keeps a word at a place inside the drawing.
func anchor(at float64) string {
	switch {
	case at < 0.25:
		return "start"
	case at > 0.75:
		return "end"
	}
	return "middle"
}

// effectText writes an effect; a relative one in percent.
func effectText(v float64, relative bool) string {
	if relative {
		return signedDigits(100*v, 3) + " %"
	}
	return signedDigits(v, 4)
}

func finite(values ...float64) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) || math.Abs(v) > 1e300 })
}

// signed writes a difference with its sign.
func signed(v float64) string { return signedDigits(v, 6) }

func signedDigits(v float64, digits int) string {
	if v == 0 {
		return "0"
	}
	text := fmt.Sprintf("%+.*g", digits, v)
	return strings.Replace(text, "-", "−", 1)
}
