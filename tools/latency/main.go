// Command latency measures how long each change takes to show, on the real
// programs at the seed's defaults, and prints it beside the seed's figures:
//
//	latency [-thermite bin/thermite] [-reports 3] [-commands 20] [-json]
//
// It starts thermite up in a folder of its own, with the rig reporting every
// 60 seconds, gives the rig a run of a kit that ships, and looks at control
// over HTTP as its pages do. It needs no network and takes some five minutes,
// most of it waiting for reports.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	program := flag.String("thermite", "bin/thermite", "the program to measure")
	reports := flag.Int("reports", 3, "how many of the rig's reports to wait for")
	commands := flag.Int("commands", 20, "how many commands to give")
	asJSON := flag.Bool("json", false, "print the rows as JSON")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	rows, err := run(ctx, *program, *reports, *commands)
	if err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "latency:", err)
		os.Exit(1)
	}
	if *asJSON {
		_ = json.NewEncoder(os.Stdout).Encode(rows)
	} else {
		fmt.Print(table(rows))
	}
	for _, r := range rows {
		if r.late() {
			os.Exit(1)
		}
	}
}

// run measures every row.
func run(ctx context.Context, program string, reports, commands int) ([]row, error) {
	w, err := start(ctx, program)
	if err != nil {
		return nil, err
	}
	defer w.stop()
	rows := seedRows()
	say("the rig stages the kit %s and judges its base", kitName)
	if err := w.begin(ctx); err != nil {
		return nil, fmt.Errorf("beginning a run: %w\n%s", err, w.tail())
	}
	say("giving it %d commands, one after another", commands)
	if err := w.measureCommands(ctx, rows, commands); err != nil {
		return nil, fmt.Errorf("measuring commands: %w\n%s", err, w.tail())
	}
	say("changing the agents' model route %d times", routesSet)
	if err := w.measureRoutes(ctx, rows); err != nil {
		return nil, fmt.Errorf("measuring model routes: %w\n%s", err, w.tail())
	}
	say("watching the run's live lines")
	if err := w.measureLive(ctx, rows); err != nil {
		return nil, fmt.Errorf("measuring live lines: %w\n%s", err, w.tail())
	}
	say("waiting for the verdicts of %d reports, one a minute", reports)
	if err := w.measureVerdicts(ctx, rows, reports); err != nil {
		return nil, fmt.Errorf("measuring verdicts: %w\n%s", err, w.tail())
	}
	return rows, nil
}

// say tells a person how far it is.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}
