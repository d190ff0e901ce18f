package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"thermite/cmd/thermite/internal/client"
)

// calling makes what a command does with the control that the settings name.
func (a *app) calling(do func(ctx context.Context, c *client.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := a.connect()
		if err != nil {
			return err
		}
		defer c.Close()
		return do(cmd.Context(), c, args)
	}
}

// completeFirst gives a shell the names that a command's first argument may
// be.
func completeFirst(a *app, names func(context.Context, *client.Client) ([]cobra.Completion, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(a, cmd, names)
	}
}

// complete gives a shell the names, and nothing of a control that is away.
func complete(a *app, cmd *cobra.Command, names func(context.Context, *client.Client) ([]cobra.Completion, error)) ([]cobra.Completion, cobra.ShellCompDirective) {
	c, err := a.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTime)
	defer cancel()
	list, err := names(ctx, c)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}

// factsTable is a table of names and values.
func (a *app) factsTable() *table {
	return &table{header: []string{"", ""}, bare: true, wide: []int{1}, wraps: true}
}

// printTables writes the tables that have rows, an empty line between them.
func (a *app) printTables(tables ...*table) error {
	first := true
	for _, t := range tables {
		if len(t.rows) == 0 {
			continue
		}
		if !first {
			fmt.Fprintln(a.out)
		}
		first = false
		if err := a.printTable(t); err != nil {
			return err
		}
	}
	return nil
}
