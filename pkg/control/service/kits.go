package service

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"thermite/pkg/kit"
)

// Kits gives the kits that ship, by name.
func (s *Service) Kits(_ context.Context, c Caller) (KitList, error) {
	list := KitList{Kits: []KitSummary{}}
	if err := c.Check(MayRead); err != nil {
		return list, err
	}
	for _, name := range kit.Names() {
		k, _, err := kit.Shipped(name)
		if err != nil {
			return list, err
		}
		list.Kits = append(list.Kits, summaryOfKit(k))
	}
	return list, nil
}

// Kit gives all of a kit that ships.
func (s *Service) Kit(_ context.Context, c Caller, name string) (KitView, error) {
	if err := c.Check(MayRead); err != nil {
		return KitView{}, err
	}
	if !slices.Contains(kit.Names(), name) {
		return KitView{}, noKit("")
	}
	k, files, err := kit.Shipped(name)
	if err != nil {
		return KitView{}, err
	}
	return viewOfKit(k, files)
}

func summaryOfKit(k kit.Kit) KitSummary {
	return KitSummary{Name: k.About.Name, Version: k.About.Version, Title: k.About.Title, Summary: strings.TrimSpace(k.About.Summary),
		Metric: metricOfKit(k.PrimaryMetric()), FixtureCount: len(k.Fixtures), TunableCount: len(k.Worker.Tunables), Model: k.Run.Model}
}

func metricOfKit(m kit.Metric) KitMetric {
	shown := KitMetric{Name: m.Name, Unit: m.Unit, Direction: m.Direction, Source: m.Source, Primary: m.Primary, Noise: m.Noise,
		MinEffect: m.MinEffect.Value, Relative: m.MinEffect.Relative, Bound: m.Bound}
	if m.Noise == "measured" {
		shown.Repeats, shown.Confidence = m.Repeats, m.Confidence
	}
	return shown
}

func viewOfKit(k kit.Kit, files kit.Tree) (KitView, error) {
	v := KitView{KitSummary: summaryOfKit(k), Editable: listOf(k.Project.Editable), PublicSeeds: listOf(k.Cases.Public), SecretCases: k.Cases.Secret,
		Requires: []KitProgram{}, Steps: stepsOfKit(k), Metrics: []KitMetric{}, Tunables: []KitTunable{}, Fixtures: []KitFixture{}}
	if f, ok := files.File(k.Worker.Prompt); ok {
		v.Statement = string(f.Data)
	}
	for _, name := range slices.Sorted(maps.Keys(k.Requires)) {
		v.Requires = append(v.Requires, KitProgram{Name: name, Least: k.Requires[name].Least})
	}
	for _, m := range k.Metrics {
		v.Metrics = append(v.Metrics, metricOfKit(m))
	}
	values, err := k.ReadTunables(files.Sub(k.Project.Path))
	if err != nil {
		return KitView{}, fmt.Errorf("reading the tunables of the kit %s: %w", k.About.Name, err)
	}
	for _, t := range k.Worker.Tunables {
		turn := KitTunable{Name: t.Name, File: t.File, Kind: t.Kind, Scale: t.Scale, Base: values[t.Name], Range: []string{}}
		for _, end := range t.Range {
			turn.Range = append(turn.Range, fmt.Sprint(end))
		}
		v.Tunables = append(v.Tunables, turn)
	}
	for _, f := range k.Fixtures {
		v.Fixtures = append(v.Fixtures, KitFixture{Name: f.Name, Title: f.Title, Expect: f.Expect, By: f.By, Seeds: f.Seeds})
	}
	return v, nil
}

// stepsOfKit gives the kit's steps in the order they run.
func stepsOfKit(k kit.Kit) []KitStep {
	step := func(name string, timeout kit.Duration, may kit.Limit, commands ...[]string) KitStep {
		shown := KitStep{Name: name, Commands: []string{}, TimeoutMS: time.Duration(timeout).Milliseconds(),
			MemoryBytes: int64(may.Memory), CPUs: may.CPUs, PIDs: may.PIDs, DiskBytes: int64(may.Disk)}
		for _, argv := range commands {
			if len(argv) > 0 {
				shown.Commands = append(shown.Commands, strings.Join(argv, " "))
			}
		}
		return shown
	}
	return []KitStep{
		step(kit.StepSetup, k.Project.SetupTimeout, k.Limits.Setup, k.Project.Setup...),
		step(kit.StepBuild, k.Build.Timeout, k.Limits.Build, k.Build.Command),
		step(kit.StepCases, k.Cases.Timeout, k.Limits.Cases, k.Cases.Command),
		step(kit.StepRun, k.Run.Timeout, k.Limits.Run, k.Run.Command),
		step(kit.StepCheck, k.Check.Timeout, k.Limits.Check, k.Check.Command),
	}
}

// listOf gives a list that is never null.
func listOf[T any](list []T) []T { return append([]T{}, list...) }

// noKit says that no kit of that name ships, and where it was named.
func noKit(location string) error {
	e := newError(CodeNoKit, "no kit of that name ships: there are %s", strings.Join(kit.Names(), ", "))
	if location != "" {
		e.Code, e.Fields = CodeInvalid, []FieldError{{Location: location, Message: "no such kit ships"}}
	}
	return e
}
