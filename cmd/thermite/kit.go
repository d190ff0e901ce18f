package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"thermite/cmd/thermite/internal/client"
	"thermite/pkg/control/service"
)

func kitCommand(a *app) *cobra.Command {
	return group("kit", "show the problems that ship, and make and check your own", kitListCommand(a), kitShowCommand(a), kitCheckCommand(a), kitNewCommand(a))
}

func kitListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "list the kits that ship", Args: noArgs,
		RunE: a.calling(func(ctx context.Context, c *client.Client, _ []string) error {
			list, err := c.Kits(ctx)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(list)
			}
			t := &table{header: []string{"KIT", "VERSION", "ASKS FOR", "TUNABLES", "FIXTURES", "TITLE"}, wide: []int{5}}
			for _, k := range list.Kits {
				t.add(k.Name, k.Version, metricGoal(k.Metric), strconv.Itoa(k.TunableCount), strconv.Itoa(k.FixtureCount), k.Title)
			}
			return a.printTable(t)
		}),
	}
}

// metricWords says what a kit's score is.
func metricWords(m service.KitMetric) string {
	if m.Direction == "min" {
		return metricName(m) + " (lower is better)"
	}
	return metricName(m) + " (higher is better)"
}

// metricName is a metric with its unit.
func metricName(m service.KitMetric) string {
	switch {
	case m.Unit == "" || m.Unit == m.Name:
		return m.Name
	case strings.HasPrefix(m.Unit, "of "):
		return m.Name + " " + m.Unit
	default:
		return m.Name + ", " + m.Unit
	}
}

// metricGoal says what a kit asks for.
func metricGoal(m service.KitMetric) string {
	if m.Direction == "min" {
		return "lowest " + metricName(m)
	}
	return "highest " + metricName(m)
}

func kitShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show KIT", Short: "show a kit: what it asks for, and how a candidate is judged", Args: exactly("kit"),
		ValidArgsFunction: completeFirst(a, kitNames),
		RunE: a.calling(func(ctx context.Context, c *client.Client, args []string) error {
			k, err := c.Kit(ctx, args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(k)
			}
			return a.showKit(k)
		}),
	}
}

func (a *app) showKit(k service.KitView) error {
	t := a.factsTable()
	t.add("kit", k.Name+", version "+k.Version)
	t.add("title", k.Title)
	t.add("", k.Summary)
	for _, m := range k.Metrics {
		t.add(map[bool]string{true: "score", false: "also measured"}[m.Primary], metricWords(m))
		t.add("", ruleWords(m))
	}
	t.add("may change", strings.Join(k.Editable, " "))
	t.add("cases", fmt.Sprintf("%d public, %d secret a judging", len(k.PublicSeeds), k.SecretCases))
	for _, p := range k.Requires {
		t.add("needs", strings.TrimSpace(p.Name+" "+p.Least))
	}
	if k.Model {
		t.add("needs", "a model route on the rig")
	}
	return a.printTables(t, stepsTable(k), tunablesTable(k), fixturesTable(k))
}

// ruleWords says when a score makes a champion.
func ruleWords(m service.KitMetric) string {
	least := fmt.Sprintf("%g", m.MinEffect)
	if m.Relative {
		least = fmt.Sprintf("%g %%", m.MinEffect*100)
	}
	words := "a champion is better by " + least + " at least"
	if m.Noise == "measured" {
		words += fmt.Sprintf(", with %g %% confidence over %d pairs of runs or more", m.Confidence*100, m.Repeats)
	}
	if m.Bound != nil {
		words += fmt.Sprintf("; past %g it waits for you", *m.Bound)
	}
	return words
}

func stepsTable(k service.KitView) *table {
	t := &table{header: []string{"STEP", "TIME", "MEMORY", "CPUS", "DISK", "COMMAND"}, wide: []int{5}}
	for _, s := range k.Steps {
		if len(s.Commands) > 0 {
			t.add(s.Name, (time.Duration(s.TimeoutMS) * time.Millisecond).String(), bytesOf(s.MemoryBytes), fmt.Sprintf("%g", s.CPUs), bytesOf(s.DiskBytes), strings.Join(s.Commands, "; "))
		}
	}
	return t
}

func tunablesTable(k service.KitView) *table {
	t := &table{header: []string{"TUNABLE", "KIND", "RANGE", "SCALE", "BASE"}, wide: []int{2}}
	for _, v := range k.Tunables {
		between := " to "
		if v.Kind == "choice" {
			between = ", "
		}
		t.add(v.Name, v.Kind, strings.Join(v.Range, between), v.Scale, v.Base)
	}
	return t
}

func fixturesTable(k service.KitView) *table {
	t := &table{header: []string{"FIXTURE", "EXPECTED", "BY", "TITLE"}, wide: []int{3}}
	for _, f := range k.Fixtures {
		t.add(f.Name, strings.ReplaceAll(f.Expect, "_", " "), orDash(f.By), f.Title)
	}
	return t
}

// kitNames gives a shell the kits that ship.
func kitNames(ctx context.Context, c *client.Client) ([]cobra.Completion, error) {
	list, err := c.Kits(ctx)
	var names []cobra.Completion
	for _, k := range list.Kits {
		names = append(names, cobra.CompletionWithDesc(k.Name, k.Title))
	}
	return names, err
}
