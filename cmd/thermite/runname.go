package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"thermite/cmd/thermite/internal/client"
	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// forRun makes a command about one run: its first argument is the run, or
// RIG/RUN where several rigs have one of that name. more are the others.
func forRun(a *app, use, short string, more []string, do func(ctx context.Context, c *client.Client, r service.RunName, args []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: exactly(append([]string{"run"}, more...)...),
		ValidArgsFunction: completeRun(a, more),
		RunE: a.calling(func(ctx context.Context, c *client.Client, args []string) error {
			for i, name := range more {
				if err := checkNumber(name, args[i+1]); err != nil {
					return err
				}
			}
			r, err := findRun(ctx, c, args[0])
			if err != nil {
				return err
			}
			return do(ctx, c, r, args[1:])
		}),
	}
}

// numbered are the arguments that are a thing's number, by their names.
var numbered = map[string]uint64{"experiment": 1, "trial": 1, "attempt": 0}

// checkNumber says what is wrong with an argument that is to be a number.
func checkNumber(name, text string) error {
	least, is := numbered[name]
	if !is {
		return nil
	}
	if n, err := strconv.ParseUint(text, 10, 64); err != nil || n < least || n > wire.MaxInteger {
		return wrongUse("%s %q: it must be a whole number, %d or more", name, text, least)
	}
	return nil
}

// numberOf is an argument's number, once it is checked.
func numberOf(text string) uint64 {
	n, _ := strconv.ParseUint(text, 10, 64)
	return n
}

// findRun gives the run that a person named, as RUN or RIG/RUN.
func findRun(ctx context.Context, c *client.Client, ref string) (service.RunName, error) {
	rig, run, whole := strings.Cut(ref, "/")
	if !whole {
		rig, run = "", ref
	}
	if err := wire.CheckName("run", run); err != nil {
		return service.RunName{}, useError{err}
	}
	if whole {
		if err := wire.CheckName("rig", rig); err != nil {
			return service.RunName{}, useError{err}
		}
		return service.RunName{Rig: rig, Run: run}, nil
	}
	list, err := c.Runs(ctx, service.RunsQuery{Run: run}, 0)
	if err != nil {
		return service.RunName{}, err
	}
	switch len(list.Runs) {
	case 0:
		return service.RunName{}, &client.Error{Exit: client.ExitRefused, Words: "control holds no event of a run " + run,
			Next: "thermite run list shows the runs there are; of a retired rig, name it as RIG/RUN."}
	case 1:
		return service.RunName{Rig: list.Runs[0].Rig, Run: run}, nil
	}
	var names []string
	for _, r := range list.Runs {
		names = append(names, r.Rig+"/"+r.Run)
	}
	return service.RunName{}, wrongUse("several rigs have a run %s: say which, as %s", run, strings.Join(names, " or "))
}

// completeRun gives a shell the runs, and the numbers of what a run has.
func completeRun(a *app, more []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return complete(a, cmd, runNames)
		}
		if len(args) > len(more) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(a, cmd, func(ctx context.Context, c *client.Client) ([]cobra.Completion, error) {
			r, err := findRun(ctx, c, args[0])
			if err != nil {
				return nil, err
			}
			return numbersOf(ctx, c, r, more[len(args)-1])
		})
	}
}

// runNames gives a shell the runs: with their rig where the name is not
// enough.
func runNames(ctx context.Context, c *client.Client) ([]cobra.Completion, error) {
	list, err := c.Runs(ctx, service.RunsQuery{}, service.MaxPage)
	seen := map[string]int{}
	for _, r := range list.Runs {
		seen[r.Run]++
	}
	var names []cobra.Completion
	for _, r := range list.Runs {
		name := r.Run
		if seen[name] > 1 {
			name = r.Rig + "/" + r.Run
		}
		names = append(names, cobra.CompletionWithDesc(name, strings.TrimSpace(r.State+" "+r.Kit)))
	}
	return names, err
}

// numbersOf gives a shell the numbers of a run's things of that name.
func numbersOf(ctx context.Context, c *client.Client, r service.RunName, name string) ([]cobra.Completion, error) {
	var list []cobra.Completion
	add := func(n uint64, words string) { list = append(list, cobra.CompletionWithDesc(count(n), words)) }
	switch name {
	case "attempt":
		attempts, err := c.Attempts(ctx, r, "", 20)
		for _, n := range attempts.Attempts {
			add(n.Attempt, strings.TrimSpace(n.Outcome+" "+n.Title))
		}
		return list, err
	case "experiment":
		queue, err := c.Queue(ctx, r)
		for _, x := range append(queue.Waiting, queue.Proposed...) {
			add(x.Experiment, x.Title)
		}
		return list, err
	case "trial":
		run, err := c.Run(ctx, r)
		for _, l := range run.Lanes {
			add(l.Trial, fmt.Sprintf("in lane %d: %s", l.Lane, l.Title))
		}
		return list, err
	}
	return nil, nil
}

// completeFlag gives a shell what a flag may be.
func completeFlag(a *app, names func(context.Context, *client.Client) ([]cobra.Completion, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return complete(a, cmd, names)
	}
}
