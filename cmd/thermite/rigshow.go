package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"thermite/cmd/thermite/internal/client"
	"thermite/pkg/control/service"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

func rigShowCommand(a *app) *cobra.Command {
	ledger := ""
	cmd := forRig(a, "show", "show a rig: its connection, keys and what its events say", func(ctx context.Context, c *client.Client, rig string) error {
		if ledger != "" {
			if err := wire.CheckLedger(ledger); err != nil {
				return useError{err}
			}
		}
		view, err := c.Rig(ctx, rig, ledger)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(view)
		}
		return a.showRig(view)
	})
	cmd.Flags().StringVar(&ledger, "ledger", "", "show this ledger of the rig, an earlier one; else its current one")
	return cmd
}

func (a *app) showRig(r service.RigView) error {
	if err := a.printTable(a.rigFacts(r)); err != nil {
		return err
	}
	if r.KeyWaiting && r.Keys.Waiting != nil {
		a.warn("\nIts harness reports with another key, and control takes no report until you accept it.\n"+
			"Compare it with the one on the rig's machine, then: thermite rig accept-key %s %s", r.Name, r.Keys.Waiting.Fingerprint)
	}
	if r.View.Failed != nil {
		a.warn("\nIts view can't be shown: %s", r.View.Failed.Words)
		return nil
	}
	for _, t := range []*table{runsTable(r.View.Runs), a.recentTable(r.View.Recent)} {
		if len(t.rows) == 0 {
			continue
		}
		fmt.Fprintln(a.out)
		if err := a.printTable(t); err != nil {
			return err
		}
	}
	return nil
}

// rigFacts are the lines about the rig itself.
func (a *app) rigFacts(r service.RigView) *table {
	now := a.now()
	t := &table{header: []string{"", ""}, bare: true, wide: []int{1}, wraps: true}
	fact := func(name, value string) {
		if value != "" {
			t.add(name, value)
		}
	}
	connection := r.Connection.State
	if !r.Connection.Since.IsZero() {
		connection += ", " + a.moment(r.Connection.Since.Time(), now)
	}
	fact("rig", r.Name)
	fact("bus", connection)
	fact("", r.Connection.Why)
	fact("made", a.moment(r.CreatedAt.Time(), now))
	if !r.RetiredAt.IsZero() {
		fact("retired", a.moment(r.RetiredAt.Time(), now))
	}
	fact("ledger", r.View.Ledger)
	fact("events", heldEvents(r))
	if !r.LastEvent.IsZero() {
		fact("last event", a.moment(r.LastEvent.Time(), now))
	}
	fact("build", r.Build)
	if r.Figures != nil {
		fact("figures", a.moment(r.FiguresAt.Time(), now))
		fact("relay", r.Figures.Relay.LastError)
		for _, name := range slices.Sorted(maps.Keys(r.Figures.Loops)) {
			if loop := r.Figures.Loops[name]; loop.State == "failing" {
				fact("loop "+name, loop.State+": "+loop.Detail)
			}
		}
	}
	fact("bus key", fingerprint(r.Keys.Bus))
	fact("seal key", fingerprint(r.Keys.Seal))
	fact("report key", fingerprint(r.Keys.Report))
	fact("waiting key", fingerprint(r.Keys.Waiting))
	return t
}

// fingerprint names a key that may not be there.
func fingerprint(k *service.Key) string {
	if k == nil {
		return ""
	}
	return k.Fingerprint
}

// heldEvents says how much of the ledger control holds.
func heldEvents(r service.RigView) string {
	words := fmt.Sprintf("%d held", r.LastCursor)
	if r.Behind > 0 {
		words += fmt.Sprintf(", %d more on the rig", r.Behind)
	}
	if r.View.Unread > 0 {
		words += fmt.Sprintf(", %d that control can't read", r.View.Unread)
	}
	return words
}

func runsTable(runs []views.Run) *table {
	t := &table{header: []string{"RUN", "STATE", "KIT", "TRIALS", "ATTEMPTS", "BEST", "TITLE"}, wide: []int{0, 2, 6}}
	for _, r := range runs {
		t.add(r.Run, r.State, orDash(r.Kit), count(r.Trials), count(r.Attempts), best(r), r.Title)
	}
	return t
}

// best writes the score of a run's champion.
func best(r views.Run) string {
	if r.Champion == nil || r.Champion.Score == nil {
		return "-"
	}
	words := fmt.Sprintf("%.6g", *r.Champion.Score)
	if r.Metric != nil {
		words += " " + r.Metric.Unit
	}
	return strings.TrimSpace(words)
}

// recentShown is how many of the newest events rig show has.
const recentShown = 10

func (a *app) recentTable(lines []views.Line) *table {
	now := a.now()
	t := &table{header: []string{"NEWEST EVENTS", "KIND", "RUN", "WHAT"}, wide: []int{2, 3}}
	for _, l := range lines[:min(len(lines), recentShown)] {
		t.add(a.moment(l.Time.Time(), now), l.Kind, orDash(l.Run), about(l.Subject, l.Summary))
	}
	return t
}
