package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"thermite/cmd/thermite/internal/client"
	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

func attemptCommand(a *app) *cobra.Command {
	return group("attempt", "list a run's attempts, see what each changes and how it was judged",
		attemptListCommand(a), attemptShowCommand(a), attemptPatchCommand(a), attemptDisqualifyCommand(a), attemptRejudgeCommand(a))
}

func attemptListCommand(a *app) *cobra.Command {
	outcome, limit := "", 0
	cmd := forRun(a, "list RUN", "list a run's attempts, the newest first", nil,
		func(ctx context.Context, c *client.Client, r service.RunName, _ []string) error {
			if limit < 0 {
				return wrongUse("--limit is %d: 0 is no limit", limit)
			}
			list, err := c.Attempts(ctx, r, strings.ReplaceAll(outcome, " ", "_"), limit)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(list)
			}
			if len(list.Attempts) == 0 {
				a.warn("There is no such attempt yet. thermite run show %s says how the run is.", r.Run)
			}
			return a.printTable(a.attemptsTable(list.Attempts))
		})
	cmd.Aliases = []string{"ls"}
	cmd.Flags().StringVar(&outcome, "outcome", "", "only those with this verdict: "+strings.Join(wire.VerdictOutcomes, ", "))
	cmd.Flags().IntVar(&limit, "limit", 50, "the most attempts; 0: all")
	_ = cmd.RegisterFlagCompletionFunc("outcome", cobra.FixedCompletions(wire.VerdictOutcomes, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) attemptsTable(list []service.Attempt) *table {
	now := a.now()
	t := &table{header: []string{"ATTEMPT", "WHEN", "TRIAL", "LINES", "SCORE", "VERDICT", "TITLE", "WHY"}, wide: []int{7, 6}}
	for _, n := range list {
		t.add(count(n.Attempt), a.moment(n.Time.Time(), now), count(n.Trial), fmt.Sprintf("+%d -%d", n.Added, n.Removed), scoreOf(n.Score),
			verdictWords(n), n.Title, n.Why)
	}
	return t
}

// verdictWords says how far an attempt is, or what became of it.
func verdictWords(n service.Attempt) string {
	switch {
	case n.Disqualified:
		return "disqualified"
	case n.Rejudge:
		return "judged again"
	case n.Outcome != "":
		return strings.ReplaceAll(n.Outcome, "_", " ")
	case n.Step != "":
		return "after " + n.Step
	}
	return "waits"
}

func attemptPatchCommand(a *app) *cobra.Command {
	return forRun(a, "patch RUN ATTEMPT", "print what an attempt changes, as a patch on the kit's base", []string{"attempt"},
		func(ctx context.Context, c *client.Client, r service.RunName, args []string) error {
			return a.printPatch(ctx, c, r, numberOf(args[0]))
		})
}

// printPatch prints an attempt's patch, and nothing else on standard output.
func (a *app) printPatch(ctx context.Context, c *client.Client, r service.RunName, attempt uint64) error {
	p, err := c.Patch(ctx, r, attempt)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(p)
	}
	if p.Clipped {
		a.warn("note: this is the patch's first part; the whole is in the harness's state folder, patches/%s", p.SHA256)
	}
	diff := p.Diff
	if a.terminal.width > 0 {
		diff = plainLines(diff)
	}
	_, err = fmt.Fprint(a.out, diff)
	return err
}

func attemptDisqualifyCommand(a *app) *cobra.Command {
	why := ""
	cmd := forRun(a, "disqualify RUN ATTEMPT", "have an attempt count no more; its verdict stays in the record", []string{"attempt"},
		func(ctx context.Context, c *client.Client, r service.RunName, args []string) error {
			if why == "" {
				return wrongUse("say why, with --why: the run's record keeps it")
			}
			is, err := c.Disqualify(ctx, r, numberOf(args[0]), service.Disqualification{Why: why})
			if err != nil {
				return err
			}
			return a.told(ctx, c, is, func(service.Command) string {
				return fmt.Sprintf("Attempt %s of run %s counts no more.", args[0], r.Run)
			})
		})
	return a.addNoWait(addWhy(cmd, &why))
}

func attemptRejudgeCommand(a *app) *cobra.Command {
	var how service.Rejudging
	cmd := forRun(a, "rejudge RUN ATTEMPT", "have an attempt judged again, on fresh secret cases", []string{"attempt"},
		func(ctx context.Context, c *client.Client, r service.RunName, args []string) error {
			is, err := c.Rejudge(ctx, r, numberOf(args[0]), how)
			if err != nil {
				return err
			}
			return a.told(ctx, c, is, func(service.Command) string {
				return fmt.Sprintf("Attempt %s of run %s is judged again: thermite attempt show %s %s", args[0], r.Run, r.Run, args[0])
			})
		})
	cmd.Flags().BoolVar(&how.AllowSuspect, "allow-suspect", false, "a score past the kit's bound may be promoted: you looked at it")
	return a.addNoWait(addWhy(cmd, &how.Why))
}
