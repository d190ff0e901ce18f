package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"thermite/cmd/thermite/internal/client"
	"thermite/pkg/control/service"
)

func runCommand(a *app) *cobra.Command {
	return group("run", "start runs, list them, and see and change what they do",
		runStartCommand(a), runListCommand(a), runShowCommand(a), runSetCommand(a),
		runPauseCommand(a), runResumeCommand(a), runStopCommand(a), runQueueCommand(a), runTrialCommand(a), runScreenCommand(a), runPromptsCommand(a))
}

func runListCommand(a *app) *cobra.Command {
	var q service.RunsQuery
	limit := 0
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "list the runs, the newest first", Args: noArgs,
		RunE: a.calling(func(ctx context.Context, c *client.Client, _ []string) error {
			if limit < 0 {
				return wrongUse("--limit is %d: 0 is no limit", limit)
			}
			list, err := c.Runs(ctx, q, limit)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(list)
			}
			if len(list.Runs) == 0 {
				a.warn("There is no such run. Start one: thermite run start KIT")
			}
			return a.printTable(a.runsListed(list.Runs))
		}),
	}
	f := cmd.Flags()
	f.StringVar(&q.Rig, "rig", "", "only this rig's, which may be a retired one")
	f.StringVar(&q.Campaign, "campaign", "", "only those in this campaign")
	f.StringVar(&q.State, "state", "", "only those that are running, paused or ended")
	f.IntVar(&limit, "limit", 50, "the most runs; 0: all")
	_ = cmd.RegisterFlagCompletionFunc("rig", completeFlag(a, rigNames))
	_ = cmd.RegisterFlagCompletionFunc("campaign", completeFlag(a, campaignNames))
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(service.RunStates, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) runsListed(runs []service.RunSummary) *table {
	now := a.now()
	t := &table{header: []string{"RUN", "RIG", "STATE", "KIT", "ATTEMPTS", "BASE", "BEST", "LAST EVENT", "TITLE"}, wide: []int{8, 3, 0, 1}}
	for _, r := range runs {
		state := r.State
		if r.Outcome != "" {
			state = r.Outcome
		}
		t.add(r.Run, r.Rig, state, orDash(r.Kit), count(r.Attempts), scoreOf(r.Base), bestOf(r.Champion), a.moment(r.Last.Time.Time(), now), r.Title)
	}
	return t
}

// scoreOf writes a score that may not be there.
func scoreOf(score *float64) string {
	if score == nil {
		return "-"
	}
	return fmt.Sprintf("%.6g", *score)
}

func bestOf(c *service.Champion) string {
	if c == nil {
		return "-"
	}
	return scoreOf(c.Score)
}

// addWhy gives a command the flag that says why.
func addWhy(cmd *cobra.Command, why *string) *cobra.Command {
	cmd.Flags().StringVar(why, "why", "", "why, in words, which the rig's record keeps")
	return cmd
}

// runOrder makes a command that has something done to a run as a whole.
func runOrder(a *app, verb, short, question, done string) *cobra.Command {
	why := ""
	cmd := forRun(a, verb+" RUN", short, nil, func(ctx context.Context, c *client.Client, r service.RunName, _ []string) error {
		if question != "" {
			if err := a.confirm(fmt.Sprintf(question, r.Run, r.Rig)); err != nil {
				return err
			}
		}
		is, err := c.OrderRun(ctx, r, verb, service.Reason{Why: why})
		if err != nil {
			return err
		}
		return a.told(ctx, c, is, func(service.Command) string { return fmt.Sprintf(done, r.Run, r.Rig) })
	})
	return a.addNoWait(addWhy(cmd, &why))
}

func runPauseCommand(a *app) *cobra.Command {
	return runOrder(a, "pause", "start no new trial of a run; those that work go on", "", "Run %s on rig %s is paused.")
}

func runResumeCommand(a *app) *cobra.Command {
	return runOrder(a, "resume", "end a run's pause", "", "Run %s on rig %s goes on.")
}

func runStopCommand(a *app) *cobra.Command {
	return a.addYes(runOrder(a, "stop", "end a run for good, and the trials that work on it",
		"Run %s on rig %s ends for good, with the trials that work on it.", "Run %s on rig %s is stopped."))
}
