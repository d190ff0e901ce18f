package tune

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/spatial/r1"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distmv"
	"gonum.org/v1/gonum/stat/samplemv"
)

// The schedule, as measured on the kits that ship: see docs/workers.md.
const (
	// starts is how many of a run's attempts are places of a random start.
	starts = 4
	// mostSeen is how many attempts the model is made of: the best and the
	// newest.
	mostSeen = 128
	// places is how many places the model is asked about for a step, and
	// parents from how many of the best half of them set out.
	places  = 2000
	parents = 5
	// giveUp is after how many attempts in turn without a score the model is
	// not followed.
	giveUp = 3
	// besides is how many seconds a judging takes besides the runs, about.
	besides = 1
)

// reaches are how far, of a tunable's side, a place may be from its parent;
// moves is how likely each tunable moves.
var reaches = []float64{0.02, 0.1, 0.3}

const moves = 0.6

// errAllTried: there is nothing new to try.
var errAllTried = errors.New("every value of every tunable was tried, in each combination that was found")

// A tried is a place that was tried, or waits for its verdict.
type tried struct {
	attempt uint64 // 0 for what the trial set out from
	point   point
	// score is of what was judged, more is better; without one it failed, or
	// waits.
	score *float64
	waits bool
	// took is how many seconds its runs on public cases took together, if
	// that is known.
	took float64
}

// A proposal is what to try next.
type proposal struct {
	values     map[string]string
	title, why string
}

// A search proposes places of a space. The same seed and the same past give
// the same proposal.
type search struct {
	space space
	seed  uint64
	// metric is how a score is spoken of.
	metric string
	shown  func(score float64) string
}

// next proposes what to try after all that was tried.
func (s search) next(past []tried) (proposal, error) {
	count := 0
	for _, t := range past {
		if t.attempt > 0 {
			count++
		}
	}
	random := rand.New(rand.NewPCG(s.seed, uint64(count)))
	seen := map[string]bool{}
	for _, t := range past {
		if v, err := s.space.values(t.point); err == nil {
			seen[key(v)] = true
		}
	}
	if float64(len(seen)) >= s.space.size() {
		return proposal{}, errAllTried
	}
	if count < starts {
		return s.start(count, seen, random)
	}
	// Without a score there is nothing to make a model of.
	if failing(past) >= giveUp || !slices.ContainsFunc(past, func(t tried) bool { return t.score != nil }) {
		return s.anywhere(seen, random)
	}
	return s.step(past, seen, random)
}

// start proposes a place of the random start: a Latin hypercube, in which
// each tunable's values are spread evenly.
func (s search) start(n int, seen map[string]bool, random *rand.Rand) (proposal, error) {
	sides := make([]r1.Interval, len(s.space))
	for i := range sides {
		sides[i] = r1.Interval{Min: 0, Max: 1}
	}
	all := mat.NewDense(starts, len(s.space), nil)
	source := rand.NewPCG(s.seed, 0)
	samplemv.LatinHypercube{Q: distmv.NewUniform(sides, source), Src: source}.Sample(all)
	values, err := s.space.values(all.RawRowView(n))
	if err != nil {
		return proposal{}, err
	}
	if seen[key(values)] {
		return s.anywhere(seen, random)
	}
	return proposal{values: values, title: fmt.Sprintf("random start %d of %d", n+1, starts),
		why: "Nothing is known of these values yet: the first attempts spread each tunable over its whole range."}, nil
}

// anywhere proposes a random place.
func (s search) anywhere(seen map[string]bool, random *rand.Rand) (proposal, error) {
	for range places {
		p := make(point, len(s.space))
		for i := range p {
			p[i] = random.Float64()
		}
		if values, err := s.space.values(p); err != nil || !seen[key(values)] {
			return proposal{values: values, title: "random values", why: "The attempts before have no score: the model leads nowhere good, so this is anywhere."}, err
		}
	}
	return proposal{}, errAllTried
}

// step proposes the place from which the model of the past expects the most
// for the time that it takes to judge.
func (s search) step(past []tried, seen map[string]bool, random *rand.Rand) (proposal, error) {
	m, known := s.model(past)
	cost := s.cost(known)
	least := math.Inf(-1)
	for _, t := range known {
		f, _ := s.space.features(t.point)
		mean, _ := m.expect(f)
		least = max(least, mean)
	}
	slices.SortStableFunc(known, func(a, b tried) int { return cmp.Compare(scoreOf(b), scoreOf(a)) })
	var (
		found  map[string]string
		at     point
		most   = math.Inf(-1)
		likely float64
	)
	for n := range places {
		p := s.place(n, known, random)
		values, err := s.space.values(p)
		if err != nil {
			return proposal{}, err
		}
		if seen[key(values)] {
			continue
		}
		p, _ = s.space.point(values) // as the values are
		f, _ := s.space.features(p)
		mean, deviation := m.expect(f)
		if gain := improvement(mean, deviation, least) / cost(f); gain > most {
			found, at, most, likely = values, p, gain, chance(mean, deviation, least)
		}
	}
	if found == nil {
		return proposal{}, errAllTried
	}
	return s.told(found, at, known, likely), nil
}

// place gives one place for the model to be asked about: anywhere, or near
// one of the best.
func (s search) place(n int, known []tried, random *rand.Rand) point {
	p := make(point, len(s.space))
	if n%2 == 0 {
		for i := range p {
			p[i] = random.Float64()
		}
		return p
	}
	copy(p, known[random.IntN(min(parents, len(known)))].point)
	reach := reaches[random.IntN(len(reaches))]
	for i, t := range s.space {
		switch {
		case random.Float64() >= moves:
		case t.Kind == "choice":
			if random.IntN(3) == 0 {
				p[i] = random.Float64()
			}
		default:
			p[i] = min(max(p[i]+random.NormFloat64()*reach, 0), 1)
		}
	}
	return p
}

// model makes the model of what was judged. What waits counts as what the
// model expects of it, so that two lanes don't try the same.
func (s search) model(past []tried) (*model, []tried) {
	var known, waiting []tried
	for _, t := range past {
		if t.waits {
			waiting = append(waiting, t)
		} else {
			known = append(known, t)
		}
	}
	known = s.most(known)
	features, of := s.rows(known)
	scores := make([]float64, len(known))
	for i, t := range known {
		scores[i] = scoreOf(t)
	}
	m := fit(features, of, len(s.space), normalRanks(scores))
	for _, t := range waiting {
		f, _ := s.space.features(t.point)
		m.believe(f)
	}
	return m, known
}

func (s search) rows(known []tried) (features [][]float64, of []int) {
	for _, t := range known {
		f, o := s.space.features(t.point)
		features, of = append(features, f), o
	}
	return features, of
}

// cost makes the model of how long a judging takes: what it gives for a
// place's features has no unit.
func (s search) cost(known []tried) func(features []float64) float64 {
	var timed []tried
	var figures []float64
	for _, t := range known {
		if t.took > 0 {
			timed, figures = append(timed, t), append(figures, math.Log(besides+t.took))
		}
	}
	mean, deviation := 0.0, 0.0
	if len(timed) > 1 {
		mean, deviation = stat.MeanStdDev(figures, nil)
	}
	if deviation < 1e-3 { // nothing differs, or nothing is known
		return func([]float64) float64 { return 1 }
	}
	for i := range figures {
		figures[i] = (figures[i] - mean) / deviation
	}
	features, of := s.rows(timed)
	m := fit(features, of, len(s.space), figures)
	return func(features []float64) float64 {
		figure, _ := m.expect(features)
		return math.Exp(figure * deviation)
	}
}

// most gives the best and the newest of what is known, at most mostSeen.
func (s search) most(known []tried) []tried {
	if len(known) <= mostSeen {
		return known
	}
	kept := slices.Clone(known[len(known)-mostSeen/2:])
	rest := slices.Clone(known[:len(known)-mostSeen/2])
	slices.SortStableFunc(rest, func(a, b tried) int { return cmp.Compare(scoreOf(b), scoreOf(a)) })
	return append(kept, rest[:mostSeen-len(kept)]...)
}

// told says a proposal in words.
func (s search) told(values map[string]string, at point, known []tried, likely float64) proposal {
	parent := known[0]
	for _, t := range known {
		if t.score != nil && distance(at, t.point) < distance(at, parent.point) {
			parent = t
		}
	}
	from := "the champion"
	if parent.attempt > 0 {
		from = "attempt " + strconv.FormatUint(parent.attempt, 10)
	}
	scored := 0
	for _, t := range known {
		if t.score != nil {
			scored++
		}
	}
	why := fmt.Sprintf("The nearest that was judged is %s", from)
	if parent.score != nil {
		why += fmt.Sprintf(", with %s %s", s.metric, s.shown(*parent.score))
	}
	why += fmt.Sprintf("; the best has %s. A model of %s expects the largest gain for its time here, and a new best with a chance of %.0f%%.",
		s.shown(*known[0].score), plural(scored, "score"), 100*likely)
	return proposal{values: values, title: "step from " + from + ": " + s.changes(parent.point, at), why: why}
}

// changes says what differs between two places, the largest step first.
func (s search) changes(from, to point) string {
	was, err := s.space.values(from)
	is, err2 := s.space.values(to)
	if err != nil || err2 != nil {
		return "other values"
	}
	type change struct {
		text string
		step float64
	}
	var all []change
	for i, t := range s.space {
		if was[t.Name] != is[t.Name] {
			all = append(all, change{t.Name + " " + was[t.Name] + " → " + is[t.Name], math.Abs(to[i] - from[i])})
		}
	}
	slices.SortStableFunc(all, func(a, b change) int { return cmp.Compare(b.step, a.step) })
	const said = 3
	var texts []string
	for _, c := range all[:min(said, len(all))] {
		texts = append(texts, c.text)
	}
	if more := len(all) - said; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, ", ")
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// failing is how many of the newest attempts have no score.
func failing(past []tried) (n int) {
	for _, t := range slices.Backward(past) {
		switch {
		case t.waits:
		case t.score != nil:
			return n
		default:
			n++
		}
	}
	return n
}

// scoreOf is the score to learn from: what failed is worse than all.
func scoreOf(t tried) float64 {
	if t.score == nil {
		return math.Inf(-1)
	}
	return *t.score
}

func distance(a, b point) (d float64) {
	for i := range a {
		d += square(a[i] - b[i])
	}
	return d
}

// key names values.
func key(values map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(values)) {
		b.WriteString(name + "=" + values[name] + "\n")
	}
	return b.String()
}
