package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"thermite/cmd/thermite/internal/client"
	"thermite/pkg/control/service"
)

func liveCommand(a *app) *cobra.Command {
	var (
		follow bool
		q      service.LiveQuery
	)
	cmd := &cobra.Command{
		Use: "live [RUN]", Short: "show what the rigs' agents, judges and controllers are doing", Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: completeFirst(a, runNames),
		Long: `Show the newest live lines of every run, or of one: what its trials, its judge and
its controller are doing. It is a view of now: the record is the events, which
"thermite rig events" shows. With --follow it goes on with lines as they come.`,
		RunE: a.calling(func(ctx context.Context, c *client.Client, args []string) error {
			if len(args) == 1 {
				r, err := findRun(ctx, c, args[0])
				if err != nil {
					return err
				}
				q.Rig, q.Run = r.Rig, r.Run
			}
			if q.Limit < 1 || q.Limit > 500 {
				return wrongUse("--limit is %d: it must be 1 to 500", q.Limit)
			}
			err := a.showLive(ctx, c, q, follow)
			if follow && errors.Is(err, context.Canceled) {
				return nil // a person's Ctrl-C is how following ends
			}
			return err
		}),
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with lines as they come; with --json, one a line")
	cmd.Flags().StringVar(&q.Rig, "rig", "", "only this rig's")
	cmd.Flags().IntVar(&q.Limit, "limit", 100, "how many lines to begin with, at most 500")
	return cmd
}

// showLive shows the newest lines, and with follow those that come.
func (a *app) showLive(ctx context.Context, c *client.Client, q service.LiveQuery, follow bool) error {
	for first := true; ; first = false {
		page, err := c.Live(ctx, q)
		var called *client.Error
		switch {
		case err != nil && follow && !first && errors.As(err, &called) && called.Exit == client.ExitUnreachable:
			a.warn("%v; trying on", err)
			if err := pause(ctx, followRetry); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		case a.json && !follow:
			return a.printJSON(page)
		}
		if page.Missed > 0 {
			a.warn("%d lines were missed: more came than are kept for one reader", page.Missed)
		}
		if first && len(page.Lines) == 0 {
			a.warn("No line has come. Lines come while trials work and the judge judges; --follow waits for them.")
		}
		for _, l := range page.Lines {
			if err := a.printLive(l, q.Run == ""); err != nil {
				return err
			}
		}
		if !follow {
			return nil
		}
		q.After, q.Limit, q.Wait = page.Next, 0, service.MaxWait
	}
}

// printLive prints one line; what an agent printed can't move the cursor.
func (a *app) printLive(l service.LiveLine, whose bool) error {
	if a.json {
		return a.printLine(l)
	}
	from := l.Source
	if whose && l.Run != "" {
		from = l.Rig + "/" + l.Run + " " + from
	} else if whose {
		from = l.Rig + " " + from
	}
	if l.Missed > 0 {
		from += fmt.Sprintf(" (%d before it did not come)", l.Missed)
	}
	_, err := fmt.Fprintf(a.out, "%s %s  %s\n", l.At.Time().Local().Format("15:04:05"), from, plain(l.Text))
	return err
}
