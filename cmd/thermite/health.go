package main

import (
	"github.com/spf13/cobra"

	"thermite/cmd/thermite/internal/client"
	"thermite/pkg/control/service"
)

func healthCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "health", Short: "say how control is; ends with 1 when something is not as it should be", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			defer c.Close()
			health, err := c.Health(cmd.Context())
			if err != nil {
				return err
			}
			if a.json {
				err = a.printJSON(health)
			} else {
				err = a.printTable(a.healthFacts(health))
			}
			if err == nil && health.Status != "ok" {
				err = &client.Error{Exit: client.ExitFailed, Words: "control is " + health.Status, Next: "thermite bus says more of it, and so does control's log."}
			}
			return err
		},
	}
}

func (a *app) healthFacts(h service.Health) *table {
	t := &table{header: []string{"PART", "STATE", "WHAT"}, wide: []int{2}, wraps: true}
	t.add("control", h.Status, h.Build)
	bus := h.Bus.Error
	if !h.Bus.Since.IsZero() {
		bus = join(a.moment(h.Bus.Since.Time(), a.now()), bus)
	}
	t.add("bus", h.Bus.State, bus)
	t.add("apply", h.Apply.State, h.Apply.Why)
	store := "ok"
	if !h.Store.OK {
		store = "failed"
	}
	t.add("store", store, h.Store.Error)
	return t
}
