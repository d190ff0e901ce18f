package tune

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"
	"gonum.org/v1/gonum/stat/distuv"
)

// A model is a Gaussian process over what was judged: which figure to expect
// of places that were not tried, and how surely.
type model struct {
	of      []int // which tunable each feature is of
	seen    [][]float64
	figures *mat.VecDense // about 0, and about 1 large
	// scales has the length, of each tunable's side, over which scores go
	// together, or one for all; noise is the part of the variance that places
	// do not explain.
	scales []float64
	noise  float64

	chol   mat.Cholesky
	weight mat.VecDense // of each attempt, in what is expected
	spread float64      // the process's variance

	// Room that is used again.
	alikes     *mat.SymDense
	near, back *mat.VecDense
}

// What a model believes before it sees anything: scales and noise are near
// these, within a factor of e or so.
const (
	usualScale = 0.7
	usualNoise = 0.1
	noiseWidth = 1.5
	// mostScales is how many tunables have a scale of their own.
	mostScales = 12
	// fitTries is how many scales and noises are tried.
	fitTries = 120
)

// fit makes the model of places and their figures.
func fit(features [][]float64, of []int, tunables int, figures []float64) *model {
	m := &model{of: of, seen: features, figures: mat.NewVecDense(len(figures), figures)}
	m.room()
	sides := tunables
	if sides > mostScales {
		sides = 1
	}
	m.scales = make([]float64, sides)
	first := make([]float64, sides+1)
	for i := range sides {
		first[i] = math.Log(usualScale)
	}
	first[sides] = math.Log(usualNoise)
	best := first
	result, err := optimize.Minimize(optimize.Problem{Func: m.misfit}, first,
		&optimize.Settings{FuncEvaluations: fitTries}, &optimize.NelderMead{})
	if err == nil && result != nil {
		best = result.X
	}
	m.misfit(best)
	return m
}

// room makes room for what is seen.
func (m *model) room() {
	n := len(m.seen)
	m.alikes, m.near, m.back = mat.NewSymDense(n, nil), mat.NewVecDense(n, nil), mat.NewVecDense(n, nil)
}

// misfit takes on the scales and the noise, as logarithms, and says how badly
// they explain what was seen.
func (m *model) misfit(logs []float64) float64 {
	strange := 0.0
	for i := range m.scales {
		m.scales[i] = math.Exp(logs[i])
		strange += square(logs[i]-math.Log(usualScale)) / 2
	}
	last := len(m.scales)
	m.noise = math.Exp(logs[last])
	strange += square((logs[last]-math.Log(usualNoise))/noiseWidth) / 2
	n := len(m.seen)
	k := m.alikes
	for i := range n {
		for j := range i {
			k.SetSym(i, j, m.alike(m.seen[i], m.seen[j]))
		}
		k.SetSym(i, i, 1+m.noise+1e-8)
	}
	if !m.chol.Factorize(k) || m.chol.SolveVecTo(&m.weight, m.figures) != nil {
		return math.MaxFloat64
	}
	m.spread = max(mat.Dot(m.figures, &m.weight)/float64(n), 1e-12)
	return float64(n)*math.Log(m.spread)/2 + m.chol.LogDet()/2 + strange
}

// alike is how much two places have to do with each other: Matérn's, with
// 5/2.
func (m *model) alike(a, b []float64) float64 {
	s := 0.0
	for i := range a {
		side := m.of[i]
		if len(m.scales) == 1 {
			side = 0
		}
		s += square((a[i] - b[i]) / m.scales[side])
	}
	r := math.Sqrt(5 * s)
	return (1 + r + 5*s/3) * math.Exp(-r)
}

// expect says which figure to expect at a place, and how surely.
func (m *model) expect(features []float64) (mean, deviation float64) {
	for i, s := range m.seen {
		m.near.SetVec(i, m.alike(features, s))
	}
	if err := m.chol.SolveVecTo(m.back, m.near); err != nil {
		return 0, math.Sqrt(m.spread)
	}
	return mat.Dot(m.near, &m.weight), math.Sqrt(m.spread * max(1-mat.Dot(m.near, m.back), 1e-9))
}

// improvement is how much more than best to expect, counting less as nothing.
func improvement(mean, deviation, best float64) float64 {
	z := (mean - best) / deviation
	return deviation * (z*distuv.UnitNormal.CDF(z) + distuv.UnitNormal.Prob(z))
}

// chance is how likely more than best is.
func chance(mean, deviation, best float64) float64 {
	return distuv.UnitNormal.CDF((mean - best) / deviation)
}

// normalRanks makes scores figures, which no kit's unit, outlier or failure
// upsets: each is the normal distribution's value of its score's rank. Equal
// scores have one rank.
func normalRanks(scores []float64) []float64 {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[a], scores[b]) })
	ranks := make([]float64, len(scores))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && scores[order[j]] == scores[order[i]] {
			j++
		}
		middle := float64(i+j) / 2 / float64(len(order))
		for ; i < j; i++ {
			ranks[order[i]] = distuv.UnitNormal.Quantile(middle)
		}
	}
	return ranks
}

func square(x float64) float64 { return x * x }

// believe adds a place with the figure that the model expects of it.
func (m *model) believe(features []float64) {
	mean, _ := m.expect(features)
	m.seen = append(slices.Clip(m.seen), features)
	figures := mat.NewVecDense(len(m.seen), nil)
	for i := range m.figures.Len() {
		figures.SetVec(i, m.figures.AtVec(i))
	}
	figures.SetVec(len(m.seen)-1, mean)
	m.figures = figures
	m.weight.Reset() // it has one more from here on
	m.room()
	logs := make([]float64, 0, len(m.scales)+1)
	for _, s := range m.scales {
		logs = append(logs, math.Log(s))
	}
	m.misfit(append(logs, math.Log(m.noise)))
}
