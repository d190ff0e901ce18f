package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"thermite/cmd/thermite/internal/client"
	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

func runQueueCommand(a *app) *cobra.Command {
	return group("queue", "list a run's experiments, add to them and change them", queueListCommand(a), queueAddCommand(a),
		queueMoveCommand(a), queueEditCommand(a), queueDropCommand(a))
}

func queueListCommand(a *app) *cobra.Command {
	cmd := forRun(a, "list RUN", "list a run's experiments: at work, waiting, proposed, and over", nil,
		func(ctx context.Context, c *client.Client, r service.RunName, _ []string) error {
			q, err := c.Queue(ctx, r)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(q)
			}
			t := a.experimentsTable(q.Working, q.Waiting, q.Proposed, q.Over)
			if len(t.rows) == 0 {
				a.warn("Its queue is empty. Add to it: thermite run queue add %s TITLE", r.Run)
			}
			return a.printTable(t)
		})
	cmd.Aliases = []string{"ls"}
	return cmd
}

func (a *app) experimentsTable(lists ...[]service.Experiment) *table {
	now := a.now()
	t := &table{header: []string{"EXPERIMENT", "STATE", "BY", "CHANGED", "TITLE", "WHY"}, wide: []int{4, 5}}
	for _, list := range lists {
		for _, x := range list {
			t.add(count(x.Experiment), experimentState(x), x.By, a.moment(x.Changed.Time.Time(), now), x.Title, x.Why)
		}
	}
	return t
}

// experimentState says where an experiment is.
func experimentState(x service.Experiment) string {
	switch x.State {
	case service.ExperimentWaiting:
		return fmt.Sprintf("waiting, %d", x.Position)
	case service.ExperimentWorking:
		return fmt.Sprintf("trial %d in lane %d", x.Trial, x.Lane)
	}
	return x.State
}

func queueAddCommand(a *app) *cobra.Command {
	var n service.NewExperiment
	cmd := forRun(a, "add RUN TITLE", "add an experiment, an idea for a trial to work on", []string{"title"},
		func(ctx context.Context, c *client.Client, r service.RunName, args []string) error {
			n.Title = args[0]
			if err := a.readText(&n.Text); err != nil {
				return err
			}
			is, err := c.AddExperiment(ctx, r, n)
			if err != nil {
				return err
			}
			return a.told(ctx, c, is, func(is service.Command) string {
				return fmt.Sprintf("Experiment %d is in the queue of run %s.", is.Number, r.Run)
			})
		})
	cmd.Flags().StringVar(&n.Text, "text", "", "the idea at length, for the worker; - reads it from standard input")
	cmd.Flags().Uint64Var(&n.Position, "position", 0, "where in the queue, from 1; 0: its end")
	return a.addNoWait(cmd)
}

// maxTextRead bounds a text from standard input; control refuses a long one
// in words.
const maxTextRead = wire.MaxBodyBytes / 2

// readText reads a flag's text from standard input where it is -.
func (a *app) readText(text *string) error {
	if *text != "-" {
		return nil
	}
	b, err := io.ReadAll(io.LimitReader(a.in, maxTextRead))
	if err != nil {
		return fmt.Errorf("reading the text from standard input: %w", err)
	}
	*text = string(b)
	return nil
}

func queueMoveCommand(a *app) *cobra.Command {
	cmd := forRun(a, "move RUN EXPERIMENT POSITION", "move an experiment in the queue, from 1, or to its end; one that is proposed is accepted", []string{"experiment", "position"},
		func(ctx context.Context, c *client.Client, r service.RunName, args []string) error {
			position, err := positionOf(args[1])
			if err != nil {
				return err
			}
			is, err := c.MoveExperiment(ctx, r, numberOf(args[0]), service.Position{Position: position})
			if err != nil {
				return err
			}
			return a.told(ctx, c, is, func(service.Command) string {
				return fmt.Sprintf("Experiment %s of run %s is moved.", args[0], r.Run)
			})
		})
	return a.addNoWait(cmd)
}

// positionOf reads where in a queue: from 1, or end, which is 0.
func positionOf(text string) (uint64, error) {
	if text == "end" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 || n > wire.MaxInteger {
		return 0, wrongUse("position %q: it must be a whole number, 1 or more, or end", text)
	}
	return n, nil
}

func queueEditCommand(a *app) *cobra.Command {
	title, text := "", ""
	var cmd *cobra.Command
	cmd = forRun(a, "edit RUN EXPERIMENT", "change the title or the text of an experiment that nobody works on", []string{"experiment"},
		func(ctx context.Context, c *client.Client, r service.RunName, args []string) error {
			var to service.ExperimentChange
			if cmd.Flags().Changed("title") {
				to.Title = &title
			}
			if cmd.Flags().Changed("text") {
				if err := a.readText(&text); err != nil {
					return err
				}
				to.Text = &text
			}
			if to == (service.ExperimentChange{}) {
				return wrongUse("nothing to change: give --title or --text")
			}
			is, err := c.EditExperiment(ctx, r, numberOf(args[0]), to)
			if err != nil {
				return err
			}
			return a.told(ctx, c, is, func(service.Command) string {
				return fmt.Sprintf("Experiment %s of run %s is changed.", args[0], r.Run)
			})
		})
	cmd.Flags().StringVar(&title, "title", "", "its title")
	cmd.Flags().StringVar(&text, "text", "", "the idea at length; - reads it from standard input")
	return a.addNoWait(cmd)
}

func queueDropCommand(a *app) *cobra.Command {
	why := ""
	cmd := forRun(a, "drop RUN EXPERIMENT", "take an experiment out of the queue for good", []string{"experiment"},
		func(ctx context.Context, c *client.Client, r service.RunName, args []string) error {
			is, err := c.DropExperiment(ctx, r, numberOf(args[0]), service.Reason{Why: why})
			if err != nil {
				return err
			}
			return a.told(ctx, c, is, func(service.Command) string {
				return fmt.Sprintf("Experiment %s of run %s is dropped.", args[0], r.Run)
			})
		})
	return a.addNoWait(addWhy(cmd, &why))
}
