package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"thermite/cmd/thermite/internal/client"
	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// newestShown is how many of a run's attempts run show has.
const newestShown = 10

func runShowCommand(a *app) *cobra.Command {
	cmd := forRun(a, "show RUN", "show a run: how far it is, its best score, its trials and its newest attempts", nil,
		func(ctx context.Context, c *client.Client, r service.RunName, _ []string) error {
			run, err := c.Run(ctx, r)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(run)
			}
			if err := a.printTables(a.runFacts(run), a.lanesTable(run.Run), a.experimentsTable(run.Queue, run.Proposed),
				a.attemptsTable(run.Newest[:min(len(run.Newest), newestShown)])); err != nil {
				return err
			}
			return nil
		})
	cmd.Long = `Show a run: how far it is, its best score over its attempts, its trials, its queue
and its newest attempts. "thermite rig events RIG --run RUN --follow" shows what
happens as it does, and "thermite attempt show RUN ATTEMPT" how one was judged.`
	return cmd
}

// runFacts are the lines about the run itself.
func (a *app) runFacts(v service.RunView) *table {
	r, now := v.Run, a.now()
	t := a.factsTable()
	fact := func(name, value string) {
		if value != "" {
			t.add(name, value)
		}
	}
	fact("run", r.Run)
	fact("title", r.Title)
	fact("rig", v.Rig)
	fact("campaign", r.Campaign)
	fact("state", runState(r))
	fact("", r.Why)
	fact("kit", strings.TrimSpace(r.Kit+" "+versionOf(r.KitVersion)))
	fact("worker", workerOf(r))
	if r.Started != nil {
		fact("begun", a.moment(r.Started.Time.Time(), now))
	}
	if r.Ended != nil {
		fact("ended", a.moment(r.Ended.Time.Time(), now))
	}
	fact("budget", budgetWords(r, now))
	fact("attempts", attemptsWords(r))
	fact("score", scoreWords(r.Metric))
	if r.Base != nil && r.Base.Score != nil {
		fact("base", scoreOf(r.Base.Score))
	}
	if r.Champion == nil && r.State == service.RunRunning {
		fact("base", "being judged, before any trial works")
	}
	fact("best", bestWords(r))
	fact("", spark(bests(r)))
	return t
}

func versionOf(v string) string {
	if v == "" {
		return ""
	}
	return "version " + v
}

func runState(r service.Run) string {
	if r.Outcome != "" {
		return r.State + ", " + r.Outcome
	}
	return r.State
}

// workerOf says what works on the run, and on how many trials at once.
func workerOf(r service.Run) string {
	words := r.Worker
	if len(r.WorkerArgs) > 0 {
		words += " " + strings.Join(r.WorkerArgs, " ")
	}
	if r.LaneCount > 1 {
		words += fmt.Sprintf(", %d lanes", r.LaneCount)
	}
	return words
}

// budgetWords says what the run may use, and how much of it is used.
func budgetWords(r service.Run, now time.Time) string {
	if r.Budget == nil {
		return ""
	}
	var parts []string
	if most := r.Budget.Attempts; most > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d attempts", r.Attempts, most))
	}
	if most := time.Duration(r.Budget.WallMS) * time.Millisecond; most > 0 {
		words := short(most)
		if r.Started != nil && r.Ended == nil {
			words = fmt.Sprintf("%s of %s", short(now.Sub(r.Started.Time.Time()).Round(time.Second)), short(most))
		}
		parts = append(parts, words)
	}
	if most := r.Budget.MicroDollars; most > 0 {
		parts = append(parts, fmt.Sprintf("at most $%.2f", float64(most)/1e6))
	}
	return strings.Join(parts, ", ")
}

// attemptsWords counts the run's attempts by their verdict.
func attemptsWords(r service.Run) string {
	var parts []string
	var judged uint64
	for _, v := range r.Verdicts {
		if v.Count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", v.Count, strings.ReplaceAll(v.Name, "_", " ")))
			judged += v.Count
		}
	}
	if r.Attempts > judged {
		parts = append(parts, fmt.Sprintf("%d being judged", r.Attempts-judged))
	}
	if len(parts) == 0 {
		return count(r.Attempts)
	}
	return count(r.Attempts) + ": " + strings.Join(parts, ", ")
}

// scoreWords says what a score is.
func scoreWords(m *wire.Metric) string {
	if m == nil {
		return ""
	}
	return metricWords(service.KitMetric{Name: m.Name, Unit: m.Unit, Direction: m.Direction})
}

// bestWords says what the champion is, and how much better than the base.
func bestWords(r service.Run) string {
	c := r.Champion
	if c == nil || c.Score == nil {
		return ""
	}
	words := scoreOf(c.Score) + ", " + attemptName(c.Attempt)
	if r.Base != nil && r.Base.Score != nil && c.Attempt != 0 {
		words += ", " + gainWords(*r.Base.Score, *c.Score)
	}
	return words
}

func attemptName(n uint64) string {
	if n == 0 {
		return "the kit's base"
	}
	return fmt.Sprintf("attempt %d", n)
}

// gainWords says how far a score is from the base's.
func gainWords(base, score float64) string {
	words := fmt.Sprintf("%+.4g", score-base)
	if base != 0 {
		words += fmt.Sprintf(" (%+.2f %%)", (score-base)/max(base, -base)*100)
	}
	return words + " on the base"
}

// bests are the best score so far: of the base, and then after each attempt
// that has a score. Better is higher, whatever the metric's direction.
func bests(r service.Run) []float64 {
	counts := slices.DeleteFunc(slices.Clone(r.Champions), func(c service.Champion) bool { return c.Disqualified || c.Score == nil })
	if len(counts) == 0 {
		return nil
	}
	list, at := []float64{*counts[0].Score}, 0
	for _, s := range r.Scores {
		for at+1 < len(counts) && counts[at+1].Seq <= s.Seq {
			at++
		}
		list = append(list, *counts[at].Score)
	}
	list = append(list, *counts[len(counts)-1].Score)
	if r.Metric != nil && r.Metric.Direction == wire.DirectionMin {
		for i := range list {
			list[i] = -list[i]
		}
	}
	return list
}

// sparkWidth is how many columns a sparkline has at most.
const sparkWidth = 48

// spark draws the values as a line of blocks: the lowest the least, the
// highest the most. Values that are all alike are no line.
func spark(values []float64) string {
	if len(values) < 2 || slices.Min(values) == slices.Max(values) {
		return ""
	}
	blocks := []rune("▁▂▃▄▅▆▇█")
	low, high := slices.Min(values), slices.Max(values)
	n := min(len(values), sparkWidth)
	var b strings.Builder
	for i := range n {
		v := values[(i+1)*len(values)/n-1] // the last of its part
		b.WriteRune(blocks[int((v-low)/(high-low)*float64(len(blocks)-1)+0.5)])
	}
	return b.String()
}
