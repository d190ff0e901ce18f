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

func rigDailyCommand(a *app) *cobra.Command {
	var (
		day   string
		list  bool
		limit int
	)
	cmd := forRig(a, "daily", "read the report that a rig made of its last day", func(ctx context.Context, c *client.Client, rig string) error {
		switch {
		case limit < 0:
			return wrongUse("--limit is %d: 0 is no limit", limit)
		case list:
			return a.listDaily(ctx, c, rig, limit)
		case day != service.NewestDay && !wire.IsDay(day):
			return wrongUse("--day is %q: a day is written as 2026-11-30", day)
		}
		report, err := c.Daily(ctx, rig, day)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(report)
		}
		_, err = fmt.Fprintln(a.out, strings.TrimRight(report.Text, "\n"))
		return err
	})
	cmd.Long = `Read the report that a rig made of its last day, in Markdown. Its supervisor makes one
when a day is over, from the rig's own ledger: at 00:00 UTC, or at THERMITE_DAILY_AT.`
	cmd.Flags().StringVar(&day, "day", service.NewestDay, "the day, such as 2026-11-30")
	cmd.Flags().BoolVar(&list, "list", false, "list the days that there are")
	cmd.Flags().IntVar(&limit, "limit", 31, "with --list, the most days; 0: all")
	return cmd
}

func (a *app) listDaily(ctx context.Context, c *client.Client, rig string, limit int) error {
	all, err := c.Dailies(ctx, rig, limit)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(all)
	}
	if len(all.Reports) == 0 {
		a.warn("Rig %s has sent no daily report yet: the first comes once its first day is over.", rig)
	}
	now := a.now()
	t := &table{header: []string{"DAY", "MADE", "CHARACTERS", "LEDGER"}, wide: []int{3}}
	for _, r := range all.Reports {
		t.add(r.Day, a.moment(r.MadeAt.Time(), now), count(uint64(r.Characters)), r.Ledger)
	}
	return a.printTable(t)
}
