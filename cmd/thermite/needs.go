package main

import (
	"fmt"
	"time"

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
		now := time.Now()
		t := &table{header: []string{"NEED", "SINCE", "ABOUT", "WHAT", "DO"}, wide: []int{3, 4}}
		for _, n := range needs.Needs {
			do := n.Do
			if n.CanBeSeen {
				do = join(do, fmt.Sprintf("then thermite needs seen %s", n.ID))
			}
			t.add(n.ID, a.moment(n.Since.Time(), now), orDash(n.Subject), join(n.Title, n.Detail), do)
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
