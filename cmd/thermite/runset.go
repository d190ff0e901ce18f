package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"thermite/cmd/thermite/internal/client"
	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

func runSetCommand(a *app) *cobra.Command {
	var (
		title, worker string
		lanes         uint64
		budget        budgetFlags
	)
	var cmd *cobra.Command
	cmd = forRun(a, "set RUN", "change a run's title, worker, lanes or budget", nil,
		func(ctx context.Context, c *client.Client, r service.RunName, _ []string) error {
			var to wire.RunSettings
			if cmd.Flags().Changed("title") {
				to.Title = &title
			}
			if cmd.Flags().Changed("worker") {
				to.Worker = &worker
			}
			if cmd.Flags().Changed("lanes") {
				to.Lanes = &lanes
			}
			var err error
			if to.Budget, err = newBudget(ctx, c, cmd, r, budget); err != nil {
				return err
			}
			if to == (wire.RunSettings{}) {
				return wrongUse("nothing to change\n%s --help shows what can be", cmd.CommandPath())
			}
			is, err := c.ChangeRun(ctx, r, to)
			if err != nil {
				return err
			}
			return a.told(ctx, c, is, func(service.Command) string {
				return fmt.Sprintf("Run %s on rig %s has its new settings.", r.Run, r.Rig)
			})
		})
	f := cmd.Flags()
	f.StringVar(&title, "title", "", "its title")
	f.StringVar(&worker, "worker", "", "what works on its trials")
	f.Uint64Var(&lanes, "lanes", 1, "how many trials may work at once")
	budget.add(cmd)
	return a.addNoWait(cmd)
}

// newBudget is the run's budget with what the flags change, or nil when they
// change nothing: a setting replaces all of it.
func newBudget(ctx context.Context, c *client.Client, cmd *cobra.Command, r service.RunName, f budgetFlags) (*wire.Budget, error) {
	if b, err := f.on(cmd, nil); b == nil || err != nil {
		return nil, err
	}
	run, err := c.Run(ctx, r)
	if err != nil {
		return nil, err
	}
	return f.on(cmd, run.Budget)
}
