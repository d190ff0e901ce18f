package kit

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"thermite/pkg/wire"
)

// Bounds of what a check prints.
const (
	maxAnswer = 1 << 20
	maxWhy    = 4000
)

// Answer is what a check prints, as one JSON object: ok, why, values.
type Answer struct {
	OK bool
	// Why says what is wrong, when something is.
	Why    string
	Values map[string]float64
}

// ReadAnswer reads what a check printed, strictly, and holds it to the kit's
// metrics: of an answer that is ok each value is there and a number.
func (k Kit) ReadAnswer(b []byte) (Answer, error) {
	var a Answer
	if len(b) > maxAnswer {
		return a, fmt.Errorf("reading the check's answer: it has %d bytes, at most %d", len(b), maxAnswer)
	}
	if len(strings.TrimSpace(string(b))) == 0 {
		return a, fmt.Errorf("reading the check's answer: it printed nothing")
	}
	var said struct {
		OK     bool                `json:"ok"`
		Why    string              `json:"why"`
		Values map[string]*float64 `json:"values"`
	}
	if err := wire.DecodeStrict(b, &said); err != nil {
		return a, fmt.Errorf("reading the check's answer, %q: %w", clip(string(b)), err)
	}
	a = Answer{said.OK, said.Why, map[string]float64{}}
	for name, v := range said.Values {
		if v == nil {
			return Answer{}, fmt.Errorf("reading the check's answer: its %s is no number", clip(name))
		}
		a.Values[name] = *v
	}
	switch {
	case !a.OK && a.Why == "":
		return Answer{}, fmt.Errorf("reading the check's answer: it is not ok and does not say why")
	case a.OK && a.Why != "":
		return Answer{}, fmt.Errorf("reading the check's answer: it is ok and says why not")
	case len(a.Why) > maxWhy:
		a.Why = a.Why[:maxWhy] + "…"
	}
	if !a.OK {
		return a, nil
	}
	for _, m := range k.Metrics {
		if m.Source != "check" {
			continue
		}
		if _, ok := a.Values[m.Name]; !ok {
			return Answer{}, fmt.Errorf("reading the check's answer: it gives no %s", m.Name)
		}
	}
	return a, nil
}

// Left says what a run left in {out} that it may not: what is no plain file,
// and what the kit does not have it write.
func (k Kit) Left(files Tree) error {
	faults := files.faults()
	for _, f := range files {
		if !matchAny(k.Run.Writes, f.Path) {
			faults = append(faults, Fault{clip(f.Path), "is not for a run to write"})
		}
	}
	return refuse("the run's output", faults)
}

// Over makes the figures of several cases, of which there is one at least,
// into one.
func (m Metric) Over(figures []float64) float64 {
	switch m.Across {
	case "min":
		return slices.Min(figures)
	case "max":
		return slices.Max(figures)
	}
	sum := 0.0
	for _, f := range figures {
		sum += f
	}
	if m.Across == "sum" {
		return sum
	}
	return sum / float64(len(figures))
}

// Beats says whether the score is better than another by the metric's least
// effect, and better at all.
func (m Metric) Beats(than, score float64) bool {
	gain := score - than
	if m.Direction == "min" {
		gain = -gain
	}
	least := m.MinEffect.Value
	if m.MinEffect.Relative {
		least *= math.Abs(than)
	}
	return gain > 0 && gain >= least
}

// Suspect says whether the score is past the metric's bound.
func (m Metric) Suspect(score float64) bool {
	return m.Bound != nil && (m.Direction == "max" && score > *m.Bound || m.Direction == "min" && score < *m.Bound)
}
