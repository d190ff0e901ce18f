package main

import (
	"github.com/spf13/cobra"
)

func needsCommand(a *app) *cobra.Command {
	list := func(cmd *cobra.Command, _ []string) error {
		c, err := a.connect()
		if err != nil {
			return err
		}
		defer c.Close()
		needs, err := c.Needs(cmd.Context())
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(needs)
		}
		if len(needs.Needs) == 0 {
			a.warn("Nothing needs you.")
			return nil
		}
		now := a.now()
		t := &table{header: []string{"NEED", "SINCE", "ABOUT", "WHAT, AND WHAT TO DO"}, wide: []int{3}, wraps: true}
		for _, n := range needs.Needs {
			words := join(join(n.Title, n.Detail), n.Do)
			if n.CanBeSeen {
				words = join(words, "then thermite needs seen "+n.ID)
			}
			t.add(n.ID, a.moment(n.Since.Time(), now), orDash(n.Subject), words)
		}
		return a.printTable(t)
	}
	needs := group("needs", "show what needs you", &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "show what needs you", Args: noArgs, RunE: list,
	}, &cobra.Command{
		Use: "seen NEED", Short: "say that you have seen a need", Args: exactly("need"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			defer c.Close()
			if err := c.Seen(cmd.Context(), args[0]); err != nil {
				return err
			}
			return a.done(doneTo{ID: args[0], Done: "seen"}, "Need %s is seen.", args[0])
		},
	})
	needs.RunE = list
	return needs
}
