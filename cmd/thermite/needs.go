package main

import (
	"strings"

	"github.com/spf13/cobra"

	"thermite/pkg/control/service"
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
			t.add(n.ID, a.moment(n.Since.Time(), now), orDash(n.Subject), sentences(n.Title, n.Detail, n.Do, answer(n)))
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

// answer says with which command a need is answered, if one answers it.
func answer(n service.Need) string {
	switch {
	case n.CanBeSeen:
		return "Seen: thermite needs seen " + n.ID
	case n.Code == "rig_report_key_waiting":
		return "The key: thermite rig show " + n.Subject
	default:
		return ""
	}
}

// sentences puts texts behind each other, each with an end of its own.
func sentences(texts ...string) string {
	var b strings.Builder
	for _, text := range texts {
		if text == "" {
			continue
		}
		if b.Len() > 0 {
			if !strings.HasSuffix(b.String(), ".") {
				b.WriteByte('.')
			}
			b.WriteByte(' ')
		}
		b.WriteString(text)
	}
	return b.String()
}
