package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// row is a row of the seed's table, with what was measured of it.
type row struct {
	Change string `json:"change"`
	Way    string `json:"way"`
	// Seed is the seed's words, and Most what they come to.
	Seed string        `json:"seed"`
	Most time.Duration `json:"most_ns"`
	// Took are the changes that were measured; none, and Missing says why.
	Took    []time.Duration `json:"took_ns"`
	Missing string          `json:"missing,omitempty"`
}

// The rows, in the seed's order.
const (
	rowCommand = iota
	rowOutcome
	rowLive
	rowVerdict
	rowRoute
	rowItem
	rowsInAll
)

// slack is what is beside the seed's timers: the work on the way.
const slack = 2 * time.Second

// seedRows are the rows of the seed's table, in its words. A fraction of a
// second is less than one.
func seedRows() []row {
	rows := make([]row, rowsInAll)
	rows[rowCommand] = row{Change: "a command, such as Pause", Way: "control → supervisor → harness", Seed: "a fraction of a second", Most: time.Second}
	rows[rowOutcome] = row{Change: "a command's outcome, on its page", Way: "harness → ledger → supervisor → control", Seed: "60 seconds", Most: time.Minute + slack}
	rows[rowLive] = row{Change: "a step of an agent, in Live", Way: "agent → harness → supervisor → control → Live", Seed: "about 3 seconds", Most: 3*time.Second + slack,
		Missing: "not measured yet"}
	rows[rowVerdict] = row{Change: "a verdict, on the run's page", Way: "judge → ledger → supervisor → control", Seed: "60 seconds, then a reload", Most: time.Minute + slack}
	rows[rowRoute] = row{Change: "a new model route", Way: "control → supervisor → harness", Seed: "5 seconds", Most: 5*time.Second + slack, Missing: "not measured yet"}
	rows[rowItem] = row{Change: "a new item, for every run's search", Way: "harness → ledger → supervisor → control", Seed: "60 seconds", Most: time.Minute + slack}
	return rows
}

// took adds a measurement.
func (r *row) took(d time.Duration) { r.Took, r.Missing = append(r.Took, d), "" }

// late says whether a change took longer than the seed has it.
func (r row) late() bool { return len(r.Took) > 0 && slices.Max(r.Took) > r.Most }

// quantile gives the measurement that so much of them are at most; q is 0 to
// 1.
func (r row) quantile(q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(r.Took))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// table writes the rows for a person.
func table(rows []row) string {
	lines := [][]string{{"CHANGE", "ITS WAY", "SEED, AT MOST", "MEASURED: HALF", "LONGEST", "OF", ""}}
	for _, r := range rows {
		if len(r.Took) == 0 {
			lines = append(lines, []string{r.Change, r.Way, r.Seed, "–", "–", "0", r.Missing})
			continue
		}
		verdict := "within"
		if r.late() {
			verdict = "LATE"
		}
		lines = append(lines, []string{r.Change, r.Way, r.Seed, short(r.quantile(0.5)), short(slices.Max(r.Took)), fmt.Sprint(len(r.Took)), verdict})
	}
	return aligned(lines)
}

// short writes a time with as many digits as tell something.
func short(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%.3g ms", float64(d.Microseconds())/1000)
	}
	return fmt.Sprintf("%.3g s", d.Seconds())
}

// aligned puts the cells below each other.
func aligned(lines [][]string) string {
	width := make([]int, len(lines[0]))
	for _, cells := range lines {
		for i, c := range cells {
			width[i] = max(width[i], len([]rune(c)))
		}
	}
	var b strings.Builder
	for _, cells := range lines {
		var line strings.Builder
		for i, c := range cells {
			line.WriteString(c + strings.Repeat(" ", width[i]-len([]rune(c))+2))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}
