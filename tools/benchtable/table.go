package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// table gives the results as text: first those that have a figure, in the
// figures' order, one that did not run said so; then every other.
func table(figures []figure, results []result) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nwhat\there\tseed\taim\tover the bare\taim\tmore")
	shown := map[string]bool{}
	for _, f := range figures {
		i := slices.IndexFunc(results, func(r result) bool { return r.name == f.bench })
		if i < 0 {
			fmt.Fprintf(w, "%s\tdid not run\t%s\t%s\t\t%s\t\n", f.title, quantity(f.seed, f.unit), aim(f), most(f.ratio))
			continue
		}
		var rest []string
		if !shown[f.bench] {
			rest = more(results[i], unitsOf(figures, f.bench))
		}
		shown[f.bench] = true
		fmt.Fprintln(w, row(f, results[i], rest))
	}
	for _, r := range results {
		if !shown[r.name] {
			f := figure{bench: r.name, title: r.name, unit: mainUnit(r)}
			fmt.Fprintln(w, row(f, r, more(r, []string{f.unit})))
		}
	}
	w.Flush()
	return b.String()
}

// mainUnit is the metric to show of a benchmark that has no figure: its time,
// or what it reports instead.
func mainUnit(r result) string {
	for _, unit := range r.units {
		if r.metrics[unit] != 0 && !slices.Contains(unshown, unit) && !strings.HasPrefix(unit, "bare-") {
			return unit
		}
	}
	return "ns/op"
}

// unitsOf are the metrics of a benchmark that have a row of their own.
func unitsOf(figures []figure, bench string) (units []string) {
	for _, f := range figures {
		if f.bench == bench {
			units = append(units, f.unit)
		}
	}
	return units
}

// more are the benchmark's other metrics.
func more(r result, shown []string) (list []string) {
	for _, unit := range r.units {
		if !slices.Contains(shown, unit) && !slices.Contains(unshown, unit) && r.metrics[unit] != 0 {
			list = append(list, quantity(r.metrics[unit], unit))
		}
	}
	return list
}

func row(f figure, r result, more []string) string {
	value := r.metrics[f.unit]
	cells := []string{f.title, mark(quantity(value, f.unit), f.aim != 0 && missed(f, value)), quantity(f.seed, f.unit), aim(f)}
	ratio := max(r.metrics["ratio"], r.metrics["x-bare"])
	cells = append(cells, mark(times(ratio), f.ratio != 0 && ratio > f.ratio), most(f.ratio))
	return strings.Join(append(cells, strings.Join(more, ", ")), "\t")
}

// unshown are the metrics that have a column of their own, or none.
var unshown = []string{"ratio", "x-bare", "B/op", "allocs/op", "MB/s"}

func missed(f figure, value float64) bool {
	if f.more {
		return value < f.aim
	}
	return value > f.aim
}

// mark puts a ! after a value that misses its aim.
func mark(value string, missed bool) string {
	if missed {
		return value + " !"
	}
	return value
}

func aim(f figure) string {
	switch {
	case f.aim == 0:
		return ""
	case f.more:
		return "≥ " + quantity(f.aim, f.unit)
	default:
		return "≤ " + quantity(f.aim, f.unit)
	}
}

func times(ratio float64) string {
	if ratio == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f×", ratio)
}

// most is the aim for a ratio.
func most(ratio float64) string {
	if ratio == 0 {
		return ""
	}
	return "≤ " + times(ratio)
}

// quantity writes a value in its unit for a person; 0 is no figure.
func quantity(v float64, unit string) string {
	switch {
	case v == 0:
		return ""
	case unit == "ns/op":
		return duration(v)
	case strings.HasPrefix(unit, "ns/"):
		return duration(v) + " a " + strings.TrimPrefix(unit, "ns/")
	case strings.HasSuffix(unit, "-ns"):
		return strings.TrimSuffix(unit, "-ns") + " " + duration(v)
	case v >= 100:
		return fmt.Sprintf("%.0f %s", v, unit)
	default:
		return fmt.Sprintf("%.3g %s", v, unit)
	}
}

// duration gives nanoseconds with three digits that count.
func duration(ns float64) string {
	d := time.Duration(ns)
	for _, step := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d >= step {
			unit := map[time.Duration]string{time.Second: "s", time.Millisecond: "ms", time.Microsecond: "µs"}[step]
			return fmt.Sprintf("%.3g %s", float64(d)/float64(step), unit)
		}
	}
	return fmt.Sprintf("%.3g ns", ns)
}
