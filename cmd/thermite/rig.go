package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"thermite/cmd/thermite/internal/client"
	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

func rigCommand(a *app) *cobra.Command {
	return group("rig", "make rigs, list them, and see what they do",
		rigListCommand(a), rigShowCommand(a), rigEventsCommand(a), rigHistoryCommand(a), rigDailyCommand(a), rigSpaceCommand(a),
		rigAddCommand(a), rigJoinCommand(a), rigAcceptKeyCommand(a), rigTokenCommand(a), rigRetireCommand(a), rigRestoreCommand(a))
}

// forRig makes a command about one rig, which it checks and completes the
// name of.
func forRig(a *app, use, short string, do func(ctx context.Context, c *client.Client, rig string) error) *cobra.Command {
	return &cobra.Command{
		Use: use + " RIG", Short: short, Args: exactly("rig"),
		ValidArgsFunction: completeRigs(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := wire.CheckName("rig", args[0]); err != nil {
				return useError{err}
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			defer c.Close()
			return do(cmd.Context(), c, args[0])
		},
	}
}

// completeTime is how long a shell waits for the rigs' names.
const completeTime = 2 * time.Second

// completeRigs gives a shell the rigs' names, for the first argument.
func completeRigs(a *app) cobra.CompletionFunc {
	return completeFirst(a, rigNames)
}

// rigNames gives a shell the rigs.
func rigNames(ctx context.Context, c *client.Client) ([]cobra.Completion, error) {
	list, err := c.Rigs(ctx)
	var names []cobra.Completion
	for _, r := range list.Rigs {
		names = append(names, cobra.CompletionWithDesc(r.Name, r.Connection.State))
	}
	return names, err
}

func rigListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "list the rigs, and how far control holds each one's events", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			defer c.Close()
			list, err := c.Rigs(cmd.Context())
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(list)
			}
			if len(list.Rigs) == 0 {
				a.warn("There is no rig yet. Make the first: thermite rig add NAME")
			}
			now := a.now()
			t := &table{header: []string{"RIG", "BUS", "EVENTS", "BEHIND", "RUNS", "LAST EVENT", "NOTE"}, wide: []int{6}, wraps: true}
			for _, r := range list.Rigs {
				t.add(r.Name, r.Connection.State, count(r.LastCursor), count(r.Behind), strconv.Itoa(r.Runs), a.moment(r.LastEvent.Time(), now), note(r))
			}
			return a.printTable(t)
		},
	}
}

// note says what a person should know of a rig.
func note(r service.RigSummary) string {
	if r.KeyWaiting {
		return "a report key waits for you: thermite rig show " + r.Name
	}
	return r.Connection.Why
}

func rigAddCommand(a *app) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "add NAME", Short: "make a rig, and show its token this once",
		Long: `Make a rig, and show its token this once. The rig's machine needs the token, the
addresses of control and of the bus, the authority's certificate, and the key that
control signs its commands with; --dir writes the token, the certificate and the key
as files, to be taken there. It prints the commands that run the rig.`,
		Args: exactly("name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := wire.CheckName("rig", args[0]); err != nil {
				return useError{err}
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			defer c.Close()
			made, err := c.AddRig(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.showRigToken(made, dir)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", rigFilesHelp)
	return cmd
}

func rigTokenCommand(a *app) *cobra.Command {
	var dir string
	cmd := forRig(a, "token", "give a rig a new token; its old one is no good from then on", func(ctx context.Context, c *client.Client, rig string) error {
		if err := a.confirm(fmt.Sprintf("Rig %s's supervisor can't register with its old token any more.", rig)); err != nil {
			return err
		}
		made, err := c.NewRigToken(ctx, rig)
		if err != nil {
			return err
		}
		return a.showRigToken(made, dir)
	})
	cmd.Flags().StringVar(&dir, "dir", "", rigFilesHelp)
	return a.addYes(cmd)
}

func rigAcceptKeyCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "accept-key RIG FINGERPRINT", Short: "accept the report key of a rig that waits for you",
		Long: `Accept the report key of a rig that waits for you. "thermite rig show" names its
fingerprint; compare it with the one that the rig's own machine shows.`,
		Args: exactly("rig", "fingerprint"), ValidArgsFunction: completeRigs(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := wire.CheckName("rig", args[0]); err != nil {
				return useError{err}
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			defer c.Close()
			summary, err := c.AcceptKey(cmd.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			return a.done(summary, "Control takes rig %s's reports by key %s from now on.", args[0], args[1])
		},
	}
}

func rigRetireCommand(a *app) *cobra.Command {
	return a.addYes(forRig(a, "retire", "take a rig off the bus; what it reported stays", func(ctx context.Context, c *client.Client, rig string) error {
		if err := a.confirm(fmt.Sprintf("Rig %s will be thrown off the bus and control takes no report of it.", rig)); err != nil {
			return err
		}
		summary, err := c.Retire(ctx, rig)
		if err != nil {
			return err
		}
		return a.done(summary, "Rig %s is retired. thermite rig restore %s brings it back.", rig, rig)
	}))
}

func rigRestoreCommand(a *app) *cobra.Command {
	return forRig(a, "restore", "bring a retired rig back", func(ctx context.Context, c *client.Client, rig string) error {
		summary, err := c.Restore(ctx, rig)
		if err != nil {
			return err
		}
		return a.done(summary, "Rig %s may sign in to the bus again.", rig)
	})
}

// done says that something was done: in words to a person, as the document
// v to a program.
func (a *app) done(v any, format string, args ...any) error {
	if a.json {
		return a.printJSON(v)
	}
	_, err := fmt.Fprintf(a.out, format+"\n", args...)
	return err
}

// doneTo is the document of what has none of its own.
type doneTo struct {
	ID   string `json:"id"`
	Done string `json:"done"`
}

func rigHistoryCommand(a *app) *cobra.Command {
	limit := 0
	cmd := forRig(a, "history", "show the steps of a rig's life, newest first", func(ctx context.Context, c *client.Client, rig string) error {
		if limit < 0 {
			return wrongUse("--limit is %d: 0 is no limit", limit)
		}
		history, err := c.History(ctx, rig, limit)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(history)
		}
		now := a.now()
		t := &table{header: []string{"WHEN", "STEP", "WHAT"}, wide: []int{2}}
		for _, s := range history.Steps {
			t.add(a.moment(s.At.Time(), now), s.Step, s.Text)
		}
		return a.printTable(t)
	})
	cmd.Flags().IntVar(&limit, "limit", 100, "the most steps; 0: all")
	return cmd
}

// count writes a number of things.
func count(n uint64) string { return strconv.FormatUint(n, 10) }
