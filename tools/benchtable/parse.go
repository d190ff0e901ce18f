package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// A result is one line of a benchmark.
type result struct {
	// name is as a figure's: control/events.RigEvents/reports-of-20
	name    string
	metrics map[string]float64 // by unit
	units   []string           // in the order printed
}

// parse reads go test -bench output: the results, and the lines that say
// that something failed. procs is the number of processors, which go test
// puts after each name when it is not 1.
func parse(in io.Reader, procs int) (results []result, failures []string, err error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	pkg, pending := "", ""
	for lines.Scan() {
		line := lines.Text()
		fields := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "pkg: "):
			pkg = strings.TrimPrefix(line, "pkg: ")
		case strings.HasPrefix(line, "FAIL"), strings.HasPrefix(line, "--- FAIL"), strings.HasPrefix(line, "panic:"):
			failures = append(failures, line)
		case strings.HasPrefix(line, "Benchmark") && len(fields) == 1:
			pending = fields[0] // the benchmark printed something before its figures
		case strings.HasPrefix(line, "Benchmark"):
			r, ok, err := resultOf(pkg, procs, fields)
			if err != nil {
				return nil, nil, err
			}
			pending = fields[0]
			if ok {
				pending = ""
				results = append(results, r)
			}
		case pending != "" && len(fields) >= 3:
			r, ok, err := resultOf(pkg, procs, append([]string{pending}, fields...))
			if err == nil && ok {
				pending = ""
				results = append(results, r)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, nil, fmt.Errorf("reading go test's output: %w", err)
	}
	return results, failures, nil
}

// resultOf reads "BenchmarkX-2 100 123 ns/op 4.5 ratio"; ok is false if the
// line is not of that form.
func resultOf(pkg string, procs int, fields []string) (r result, ok bool, err error) {
	if len(fields) < 4 || len(fields)%2 != 0 {
		return result{}, false, nil
	}
	if _, err := strconv.ParseUint(fields[1], 10, 64); err != nil {
		return result{}, false, nil
	}
	name := strings.TrimPrefix(fields[0], "Benchmark")
	if procs > 1 {
		name = strings.TrimSuffix(name, "-"+strconv.Itoa(procs))
	}
	r = result{name: strings.TrimPrefix(strings.TrimPrefix(pkg, "thermite/"), "pkg/") + "." + name, metrics: map[string]float64{}}
	for i := 2; i < len(fields); i += 2 {
		v, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return result{}, false, fmt.Errorf("reading benchmark %s: %q is no number", r.name, fields[i])
		}
		r.metrics[fields[i+1]] = v
		r.units = append(r.units, fields[i+1])
	}
	return r, true, nil
}
