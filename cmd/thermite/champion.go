package main

import (
	"context"

	"github.com/spf13/cobra"

	"thermite/cmd/thermite/internal/client"
	"thermite/pkg/control/service"
)

func championCommand(a *app) *cobra.Command {
	patch := false
	cmd := forRun(a, "champion RUN", "show a run's best judged change, and those before it", nil,
		func(ctx context.Context, c *client.Client, r service.RunName, _ []string) error {
			v, err := c.Champion(ctx, r)
			switch {
			case err != nil:
				return err
			case !patch && a.json:
				return a.printJSON(v)
			case v.Champion == nil:
				return &client.Error{Exit: client.ExitFailed, Words: "run " + r.Run + " has no champion yet: its kit's base is judged first",
					Next: "thermite run show " + r.Run + " says how it goes."}
			case !patch:
				return a.showChampion(v)
			case v.Champion.Attempt == 0:
				return &client.Error{Exit: client.ExitFailed, Words: "the champion of run " + r.Run + " is the kit's base: there is no patch"}
			}
			return a.printPatch(ctx, c, r, v.Champion.Attempt)
		})
	cmd.Flags().BoolVar(&patch, "patch", false, "print what it changes on the kit's base, as a patch")
	return cmd
}

func (a *app) showChampion(v service.ChampionView) error {
	now, best := a.now(), v.Champion
	t := a.factsTable()
	fact := func(name, value string) {
		if value != "" {
			t.add(name, value)
		}
	}
	fact("champion", attemptName(best.Attempt)+" of run "+v.Run+" on rig "+v.Rig)
	fact("title", best.Title)
	fact("since", a.moment(best.Time.Time(), now))
	fact("score", scoreOf(best.Score)+unitOf(v))
	if v.Base != nil && best.Score != nil && best.Attempt != 0 {
		fact("", gainWords(*v.Base, *best.Score))
	}
	fact("effect", effectWords(best.Effect))
	fact("tunables", pairs(best.Tunables))
	fact("why", best.Why)
	before := &table{header: []string{"CHAMPIONS", "SINCE", "SCORE", "TITLE", "NOTE"}, wide: []int{3}}
	for _, c := range v.Champions {
		note := ""
		if c.Disqualified {
			note = "disqualified"
		}
		before.add(attemptName(c.Attempt), a.moment(c.Time.Time(), now), scoreOf(c.Score), c.Title, note)
	}
	return a.printTables(t, before)
}

func unitOf(v service.ChampionView) string {
	if m := scoreWords(v.Metric); m != "" {
		return ", " + m
	}
	return ""
}
