package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"thermite/cmd/thermite/internal/client"
	"thermite/pkg/control/service"
)

// addNoWait gives a command that has a rig do something the flag that does
// not wait for it.
func (a *app) addNoWait(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&a.noWait, "no-wait", false, "don't wait for what the rig makes of it")
	return cmd
}

// told shows what came of a command that a rig was given: what done says, if
// the rig did it. It waits for that, unless it is told not to.
func (a *app) told(ctx context.Context, c *client.Client, is service.Command, done func(service.Command) string) error {
	if a.noWait {
		return a.done(is, "Rig %s is told; thermite command show %s says what comes of it.", is.Rig, is.ID)
	}
	is, err := a.await(ctx, c, is)
	if err != nil {
		a.warn("The command goes on by itself: thermite command show %s says what comes of it.", is.ID)
		return err
	}
	if err := outcomeError(is); err != nil {
		if a.json {
			err = errors.Join(err, a.printJSON(is))
		}
		return err
	}
	words := done(is)
	if is.Why != "" {
		words += "\n" + is.Why
	}
	return a.done(is, "%s", words)
}

// sayAfter is how long a person waits before being told for what.
const sayAfter = time.Second

// await gives the command once it is over, and says on standard error what
// it waits for.
func (a *app) await(ctx context.Context, c *client.Client, is service.Command) (service.Command, error) {
	wait, said := sayAfter, ""
	for !is.Over() {
		now, err := c.Command(ctx, is.ID, wait)
		if err != nil {
			return is, err
		}
		is, wait = now, service.MaxWait
		if words := waitsFor(is); !is.Over() && words != said {
			a.warn("%s", words)
			said = words
		}
	}
	return is, nil
}

// waitsFor says what a command waits for.
func waitsFor(is service.Command) string {
	if is.Held != "" {
		return "waiting for the message bus: " + is.Held
	}
	return fmt.Sprintf("waiting for rig %s, until %s; Ctrl-C ends the waiting, not the command", is.Rig, is.ExpiresAt.Time().Local().Format("15:04"))
}

// outcomeError is why a command that is over was not done.
func outcomeError(is service.Command) error {
	e := &client.Error{Exit: client.ExitRefused, Next: "thermite command show " + is.ID + " shows the command."}
	switch is.State {
	case service.CommandApplied:
		return nil
	case service.CommandNotApplied:
		e.Words = fmt.Sprintf("rig %s did not do it: %s", is.Rig, is.Why)
	case service.CommandRejected:
		e.Words = fmt.Sprintf("rig %s refused the command: %s", is.Rig, is.Why)
	case service.CommandExpired:
		e.Exit, e.Words = client.ExitFailed, fmt.Sprintf("the command's time passed: %s", is.Why)
		e.Next = "thermite rig show " + is.Rig + " says how the rig is."
	default:
		e.Exit, e.Words = client.ExitFailed, "the command was cancelled"
	}
	return e
}
