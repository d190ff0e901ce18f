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

func runPromptsCommand(a *app) *cobra.Command {
	return group("prompts", "list what a run's agents were told, and show it", promptsListCommand(a), promptsShowCommand(a))
}

func promptsListCommand(a *app) *cobra.Command {
	var (
		trial uint64
		limit int
	)
	cmd := forRun(a, "list RUN", "list what a run's agents were told, the oldest first", nil,
		func(ctx context.Context, c *client.Client, r service.RunName, _ []string) error {
			if limit < 0 {
				return wrongUse("--limit is %d: 0 is no limit", limit)
			}
			list, err := c.Prompts(ctx, r, trial, limit)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(list)
			}
			if len(list.Prompts) == 0 {
				a.warn("No agent of run %s was told anything. The workers tune and exec need no prompt.", r.Run)
			}
			now := a.now()
			t := &table{header: []string{"PROMPT", "WHEN", "BY", "TRIAL", "SIZE", "TEXT"}, wide: []int{5}}
			for _, p := range list.Prompts {
				trial := "-"
				if p.Trial != 0 {
					trial = count(p.Trial)
				}
				t.add(count(p.Seq), a.moment(p.Time.Time(), now), p.Actor, trial, bytesOf(int64(p.Bytes)), firstLine(p.Text))
			}
			return a.printTable(t)
		})
	cmd.Aliases = []string{"ls"}
	cmd.Flags().Uint64Var(&trial, "trial", 0, "only what this trial's agent was told")
	cmd.Flags().IntVar(&limit, "limit", 50, "the most prompts; 0: all")
	return cmd
}

// firstLine gives the first line of a text that has one.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

func promptsShowCommand(a *app) *cobra.Command {
	return forRun(a, "show RUN PROMPT", "show all of a prompt, by its number in the list", []string{"prompt"},
		func(ctx context.Context, c *client.Client, r service.RunName, args []string) error {
			seq, err := strconv.ParseUint(args[0], 10, 64)
			if err != nil || seq == 0 || seq > wire.MaxInteger {
				return wrongUse("prompt %q: it must be a whole number, 1 or more\nthermite run prompts list %s shows them", args[0], r.Run)
			}
			p, err := c.Prompt(ctx, r, seq)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(p)
			}
			_, err = fmt.Fprintln(a.out, plainLines(strings.TrimSuffix(p.Text, "\n")))
			return err
		})
}
