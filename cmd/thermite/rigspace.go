package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"thermite/cmd/thermite/internal/client"
	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

func rigSpaceCommand(a *app) *cobra.Command {
	var (
		remove   []string
		run, why string
		before   time.Duration
	)
	cmd := forRig(a, "space", "show what a rig keeps on its disk, or have it free some", func(ctx context.Context, c *client.Client, rig string) error {
		if len(remove) == 0 {
			if run != "" || why != "" || before != 0 {
				return wrongUse("--run, --unused-for and --why go with --remove")
			}
			return a.showSpace(ctx, c, rig)
		}
		what := service.SpaceRemoval{Kinds: remove, Run: run, Why: why}
		if len(remove) == 1 && remove[0] == "all" {
			what.Kinds = wire.SpaceKinds
		}
		if before < 0 {
			return wrongUse("--unused-for is %v: a time such as 72h", before)
		}
		if before > 0 {
			what.Before = wire.At(a.now().Add(-before))
		}
		if err := (wire.SpaceRemove{Kinds: what.Kinds, Run: run, Why: why}).Check(); err != nil {
			return useError{err}
		}
		if err := a.confirm(fmt.Sprintf("Rig %s removes what it keeps of %s, of no run that is open and no champion.", rig, strings.Join(what.Kinds, ", "))); err != nil {
			return err
		}
		is, err := c.RemoveSpace(ctx, rig, what)
		if err != nil {
			return err
		}
		return a.told(ctx, c, is, func(service.Command) string { return fmt.Sprintf("Rig %s has freed what it could.", rig) })
	})
	cmd.Long = `Show what a rig keeps on its disk of what can be freed, or have it free some: --remove
names the kinds (` + strings.Join(wire.SpaceKinds, ", ") + `, or all). Nothing of a run that is open goes,
and nothing that a champion needs.`
	cmd.Flags().StringSliceVar(&remove, "remove", nil, "the kinds to remove, with commas between them; all: every kind")
	cmd.Flags().StringVar(&run, "run", "", "with --remove, only this run's")
	cmd.Flags().DurationVar(&before, "unused-for", 0, "with --remove, only what was not used for so long, such as 72h")
	cmd.Flags().StringVar(&why, "why", "", "with --remove, why; the rig's record keeps it")
	return a.addNoWait(a.addYes(cmd))
}

func (a *app) showSpace(ctx context.Context, c *client.Client, rig string) error {
	v, err := c.Space(ctx, rig)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(v)
	}
	if !v.Known {
		a.warn("Rig %s has not said yet what it keeps. It does when its harness first works, and every 10 minutes.", rig)
		return nil
	}
	now := a.now()
	facts := a.factsTable()
	facts.add("it keeps", bytesOf(int64(v.Bytes))+", as of "+a.moment(v.At.Time(), now))
	facts.add("can be freed", bytesOf(int64(v.RemovableBytes)))
	if v.DiskBytes > 0 {
		facts.add("free on disk", fmt.Sprintf("%s of %s", bytesOf(int64(v.DiskFree)), bytesOf(int64(v.DiskBytes))))
	}
	t := &table{header: []string{"KIND", "RUN", "SIZE", "FILES", "USED LAST", "STAYS BECAUSE", "NAME"}, wide: []int{6}}
	for _, i := range v.Items {
		t.add(i.Kind, orDash(i.Run), bytesOf(int64(i.Bytes)), count(i.Files), a.moment(i.At.Time(), now), staysBecause(i), i.Name)
	}
	return a.printTables(facts, t)
}

func staysBecause(i service.SpaceItem) string {
	switch {
	case i.Open:
		return "its run is open"
	case i.Champion:
		return "a champion needs it"
	case i.Busy:
		return "it is in use"
	}
	return "-"
}
