package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"thermite/pkg/control/service"
)

// verdicts is what of a run was told, to tell the rest.
type verdicts struct {
	last service.Run
	// judged are the attempts whose verdict was told.
	judged map[uint64]bool
	base   bool
	ended  bool
}

// news gives a line for each thing that is new in the run: its base, each
// verdict in the attempts' order, and its end.
func (t *verdicts) news(r service.Run) []string {
	var lines []string
	if r.Base != nil && r.Base.Score != nil && !t.base {
		t.base = true
		lines = append(lines, fmt.Sprintf("the kit's base: %s %s", figure(*r.Base.Score), metricOf(r)))
	}
	if t.judged == nil {
		t.judged = map[uint64]bool{}
	}
	newest := slices.Clone(r.Newest)
	slices.SortFunc(newest, func(a, b service.Attempt) int { return cmp.Compare(a.Attempt, b.Attempt) })
	for _, a := range newest {
		if a.Attempt > 0 && a.Outcome != "" && !t.judged[a.Attempt] {
			t.judged[a.Attempt] = true
			lines = append(lines, verdictLine(a))
		}
	}
	if r.State == service.RunEnded && !t.ended {
		t.ended = true
		lines = append(lines, fmt.Sprintf("the run %s: %s", r.Outcome, plain(r.Why)))
	}
	t.last = r
	return lines
}

// verdictLine says what became of an attempt.
func verdictLine(a service.Attempt) string {
	line := fmt.Sprintf("attempt %d: %s", a.Attempt, strings.ReplaceAll(a.Outcome, "_", " "))
	if a.Score != nil {
		line += ", " + figure(*a.Score)
	}
	if a.Title != "" {
		line += "  (" + plain(a.Title) + ")"
	}
	return line
}

func metricOf(r service.Run) string {
	if r.Metric == nil {
		return ""
	}
	return strings.TrimSpace(r.Metric.Name + " " + r.Metric.Unit)
}

// words says how far the run is, in a line.
func (t *verdicts) words() string {
	r := t.last
	var judged uint64
	for _, c := range r.Verdicts {
		judged += c.Count
	}
	switch {
	case r.Base == nil || r.Base.Score == nil:
		return "the kit is set up, and its base measured"
	case r.Champion == nil || r.Champion.Attempt == 0 || r.Champion.Score == nil:
		return fmt.Sprintf("%d attempts, %d judged; none is better than the base's %s yet", r.Attempts, judged, figure(*r.Base.Score))
	}
	return fmt.Sprintf("%d attempts, %d judged; the best is attempt %d with %s, where the base has %s",
		r.Attempts, judged, r.Champion.Attempt, figure(*r.Champion.Score), figure(*r.Base.Score))
}
