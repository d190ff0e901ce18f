package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func auditCommand(a *app) *cobra.Command {
	var (
		limit           int
		action, subject string
	)
	cmd := &cobra.Command{
		Use: "audit", Short: "show what was done or refused, by whom, when and from where, newest first", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return wrongUse("--limit is %d: 0 is no limit", limit)
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			defer c.Close()
			page, err := c.Audit(cmd.Context(), limit, action, subject)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(page)
			}
			now := a.now()
			t := &table{header: []string{"WHEN", "WHO", "FROM", "ACTION", "SUBJECT", "DETAIL"}, wide: []int{1, 2, 5}, wraps: true}
			for _, e := range page.Entries {
				t.add(a.moment(e.At.Time(), now), e.Actor, e.Source, e.Action, orDash(e.Subject), details(e.Detail))
			}
			return a.printTable(t)
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 100, "the most entries; 0: all")
	cmd.Flags().StringVar(&action, "action", "", "only this action, such as report_refused")
	cmd.Flags().StringVar(&subject, "subject", "", "only what was done to this, such as a rig")
	return cmd
}

// details writes an entry's detail on one line, its names in order.
func details(detail map[string]any) string {
	var words []string
	for name, value := range detail {
		words = append(words, fmt.Sprintf("%s=%v", name, value))
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}
