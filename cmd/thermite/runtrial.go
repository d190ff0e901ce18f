package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"thermite/cmd/thermite/internal/client"
	"thermite/pkg/control/service"
)

func runTrialCommand(a *app) *cobra.Command {
	return group("trial", "list a run's trials, tell a worker something, or stop it",
		trialListCommand(a), trialMessageCommand(a), trialStopCommand(a))
}

func trialListCommand(a *app) *cobra.Command {
	cmd := forRun(a, "list RUN", "list the trials at work, and those that ended last", nil,
		func(ctx context.Context, c *client.Client, r service.RunName, _ []string) error {
			run, err := c.Run(ctx, r)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(trialList{run.Rig, run.Run.Run, run.Lanes, run.Past})
			}
			if run.Trials == 0 {
				a.warn("No trial of it has begun yet.")
			}
			return a.printTables(a.lanesTable(run.Run), a.pastTable(run.Run))
		})
	cmd.Aliases = []string{"ls"}
	return cmd
}

// trialList is the document of a run's trials.
type trialList struct {
	Rig   string          `json:"rig"`
	Run   string          `json:"run"`
	Lanes []service.Lane  `json:"lanes"`
	Past  []service.Trial `json:"past_trials"`
}

func (a *app) lanesTable(r service.Run) *table {
	now := a.now()
	t := &table{header: []string{"AT WORK", "LANE", "SINCE", "ATTEMPTS", "JUDGING", "EXPERIMENT"}, wide: []int{5}}
	for _, l := range r.Lanes {
		t.add(fmt.Sprintf("trial %d", l.Trial), count(l.Lane), a.moment(l.Started.Time.Time(), now), count(l.Attempts), count(l.Judging), l.Title)
	}
	return t
}

func (a *app) pastTable(r service.Run) *table {
	now := a.now()
	t := &table{header: []string{"ENDED", "LANE", "WHEN", "TOOK", "ATTEMPTS", "OUTCOME", "WHY"}, wide: []int{6}}
	for _, p := range r.Past {
		took := short((time.Duration(p.WallMS) * time.Millisecond).Round(100 * time.Millisecond))
		t.add(fmt.Sprintf("trial %d", p.Trial), count(p.Lane), a.moment(p.Time.Time(), now), took, count(p.Attempts), strings.ReplaceAll(p.Outcome, "_", " "), p.Why)
	}
	return t
}

func trialMessageCommand(a *app) *cobra.Command {
	cmd := forRun(a, "message RUN TRIAL TEXT", "tell the worker of a trial something; - reads it from standard input", []string{"trial", "text"},
		func(ctx context.Context, c *client.Client, r service.RunName, args []string) error {
			if err := a.readText(&args[1]); err != nil {
				return err
			}
			is, err := c.MessageTrial(ctx, r, numberOf(args[0]), service.Message{Text: args[1]})
			if err != nil {
				return err
			}
			return a.told(ctx, c, is, func(service.Command) string { return fmt.Sprintf("Trial %s of run %s is told.", args[0], r.Run) })
		})
	return a.addNoWait(cmd)
}

func trialStopCommand(a *app) *cobra.Command {
	why := ""
	cmd := forRun(a, "stop RUN TRIAL", "end a trial's worker; its experiment is done", []string{"trial"},
		func(ctx context.Context, c *client.Client, r service.RunName, args []string) error {
			is, err := c.StopTrial(ctx, r, numberOf(args[0]), service.Reason{Why: why})
			if err != nil {
				return err
			}
			return a.told(ctx, c, is, func(service.Command) string { return fmt.Sprintf("Trial %s of run %s is stopped.", args[0], r.Run) })
		})
	return a.addNoWait(addWhy(cmd, &why))
}
