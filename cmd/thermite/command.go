package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"thermite/cmd/thermite/internal/client"
	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

func commandCommand(a *app) *cobra.Command {
	return group("command", "show what control told the rigs to do, and what came of it",
		commandListCommand(a), commandShowCommand(a), commandCancelCommand(a))
}

func commandListCommand(a *app) *cobra.Command {
	var (
		rig, run string
		limit    int
	)
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "list the commands, the newest first", Args: noArgs,
		RunE: a.calling(func(ctx context.Context, c *client.Client, _ []string) error {
			if limit < 0 {
				return wrongUse("--limit is %d: 0 is no limit", limit)
			}
			list, err := c.Commands(ctx, rig, run, limit)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(list)
			}
			if len(list.Commands) == 0 {
				a.warn("No rig was told anything. The first is mostly: thermite run start")
			}
			now := a.now()
			t := &table{header: []string{"COMMAND", "GIVEN", "RIG", "KIND", "RUN", "STATE", "WHY"}, wide: []int{6, 4, 2}}
			for _, is := range list.Commands {
				t.add(is.ID, a.moment(is.IssuedAt.Time(), now), is.Rig, is.Kind, orDash(is.Run), stateOf(is), why(is))
			}
			return a.printTable(t)
		}),
	}
	cmd.Flags().StringVar(&rig, "rig", "", "only this rig's")
	cmd.Flags().StringVar(&run, "run", "", "only those about a run of this name")
	cmd.Flags().IntVar(&limit, "limit", 20, "the most commands; 0: all")
	_ = cmd.RegisterFlagCompletionFunc("rig", completeFlag(a, rigNames))
	return cmd
}

func stateOf(is service.Command) string { return strings.ReplaceAll(is.State, "_", " ") }

// why says why a command is as it is.
func why(is service.Command) string {
	if is.Held != "" {
		return "waits for the message bus: " + is.Held
	}
	return is.Why
}

func commandShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show COMMAND", Short: "show a command, and what came of it", Args: exactly("command"), ValidArgsFunction: completeFirst(a, commandNames),
		RunE: a.calling(func(ctx context.Context, c *client.Client, args []string) error {
			if err := checkCommandID(args[0]); err != nil {
				return err
			}
			is, err := c.Command(ctx, args[0], 0)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(is)
			}
			return a.showCommand(is)
		}),
	}
}

func (a *app) showCommand(is service.Command) error {
	now := a.now()
	t := a.factsTable()
	t.add("command", is.ID)
	t.add("kind", is.Kind)
	t.add("rig", is.Rig)
	if is.Run != "" {
		t.add("run", is.Run)
	}
	t.add("given", a.moment(is.IssuedAt.Time(), now)+" by "+is.By)
	if is.Over() {
		t.add("state", stateOf(is)+", "+a.moment(is.EndedAt.Time(), now))
	} else {
		t.add("state", stateOf(is))
		t.add("expires", a.moment(is.ExpiresAt.Time(), now))
	}
	if words := why(is); words != "" {
		t.add("", words)
	}
	if is.Number > 0 {
		t.add("made", "number "+count(is.Number))
	}
	t.add("arguments", string(is.Args))
	return a.printTable(t)
}

func commandCancelCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "cancel COMMAND", Short: "take a command back, if its rig has not taken it yet", Args: exactly("command"), ValidArgsFunction: completeFirst(a, commandNames),
		RunE: a.calling(func(ctx context.Context, c *client.Client, args []string) error {
			if err := checkCommandID(args[0]); err != nil {
				return err
			}
			is, err := c.CancelCommand(ctx, args[0])
			if err != nil {
				return err
			}
			return a.done(is, "Command %s is cancelled. If rig %s had taken it already, thermite command show %s says so.", is.ID, is.Rig, is.ID)
		}),
	}
}

func checkCommandID(id string) error {
	if !wire.IsCommandID(id) {
		return wrongUse("command %q: an id is 26 of a-z and 2-7\nthermite command list shows them", id)
	}
	return nil
}

// commandNames gives a shell the newest commands.
func commandNames(ctx context.Context, c *client.Client) ([]cobra.Completion, error) {
	list, err := c.Commands(ctx, "", "", 20)
	var names []cobra.Completion
	for _, is := range list.Commands {
		names = append(names, cobra.CompletionWithDesc(is.ID, is.Kind+" "+is.Run+" "+stateOf(is)))
	}
	return names, err
}
