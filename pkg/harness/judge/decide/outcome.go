package decide

import (
	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// The values of a verdict's outcome.
const (
	Promoted  = wire.VerdictPromoted
	Better    = "better"
	NotBetter = "not_better"
	Refused   = "refused"
	Failed    = "failed"
	Suspected = "suspect"
)

// First is what a candidate's score on the public cases makes of it: its
// outcome and why, or none when it looks better and is to be run on secret
// ones.
func First(m kit.Metric, champion, score float64) (outcome, why string) {
	g := gain(m, Pair{champion, score})
	switch {
	case !(g > 0):
		return NotBetter, "its score on the public cases is not better than the champion's"
	case !Noisy(m) && g < m.MinEffect.Value:
		return Better, "its score on the public cases is better, and not by the least effect that makes a champion"
	}
	return "", ""
}

// Second is what the effect on secret cases makes of it. Why says nothing of
// the figures: agents read it.
func Second(e wire.Effect) (outcome, why string) {
	if Promotes(e) {
		return Promoted, "it is better than the champion on secret cases too"
	}
	return Better, "it is better on the public cases, which the secret ones do not confirm"
}
