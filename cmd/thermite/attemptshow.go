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
	"thermite/pkg/wire"
)

func attemptShowCommand(a *app) *cobra.Command {
	judging, cases := uint64(0), false
	cmd := forRun(a, "show RUN ATTEMPT", "show an attempt: what it is, each step of its judging, and the verdict", []string{"attempt"},
		func(ctx context.Context, c *client.Client, r service.RunName, args []string) error {
			v, err := c.Attempt(ctx, r, numberOf(args[0]), judging)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(v)
			}
			return a.showAttempt(v, cases)
		})
	cmd.Long = `Show an attempt: what it is, each step of its judging, and the verdict. Attempt 0 is
the kit's base. "thermite attempt patch RUN ATTEMPT" prints what it changes.`
	cmd.Flags().Uint64Var(&judging, "judging", 0, "which of its judgings, from 1; 0: the last")
	cmd.Flags().BoolVar(&cases, "cases", false, "show each run that the judge looked at")
	return cmd
}

func (a *app) showAttempt(v service.AttemptView, cases bool) error {
	tables := []*table{a.attemptFacts(v), stepsJudged(v)}
	if cases {
		tables = append(tables, casesTable(v))
	}
	if err := a.printTables(tables...); err != nil {
		return err
	}
	for _, s := range v.Steps {
		if s.Output == "" {
			continue
		}
		text := strings.TrimSuffix(plainLines(s.Output), "\n")
		if _, err := fmt.Fprintf(a.out, "\nWhat %s printed last:\n%s\n", s.Step, text); err != nil {
			return err
		}
	}
	return nil
}

// attemptFacts are the lines about the attempt itself.
func (a *app) attemptFacts(v service.AttemptView) *table {
	now := a.now()
	t := a.factsTable()
	fact := func(name, value string) {
		if value != "" {
			t.add(name, value)
		}
	}
	number := v.AttemptDetail.Attempt.Attempt
	fact("attempt", fmt.Sprintf("%d of run %s on rig %s", number, v.Run, v.Rig))
	fact("title", v.Title)
	if v.Idea != v.Title {
		fact("idea", v.Idea)
	}
	if number != 0 {
		fact("submitted", fmt.Sprintf("%s by trial %d in lane %d", a.moment(v.Time.Time(), now), v.Trial, v.Lane))
		fact("set out from", attemptName(v.Parent))
		fact("changes", fmt.Sprintf("%s, +%d -%d lines", plural(int(v.Files), "file"), v.Added, v.Removed))
	}
	fact("tunables", pairs(v.Tunables))
	if number != 0 || v.Outcome != "" {
		fact("verdict", verdictWords(v.AttemptDetail.Attempt))
	}
	fact("", v.Why)
	if v.FailedAt != "" {
		fact("failed at", v.FailedAt)
	}
	fact("score", scoreRange(v))
	if v.Outcome != "" && number != 0 {
		fact("against", attemptName(v.Against))
	}
	fact("effect", effectWords(v.Effect))
	if v.Judged != nil {
		fact("judged", a.moment(v.Judged.Time.Time(), now))
	}
	if n := len(v.Earlier); n > 0 {
		fact("judging", fmt.Sprintf("%d; --judging shows an earlier one", v.Judging))
	}
	return t
}

// scoreRange writes a score with its interval and its unit.
func scoreRange(v service.AttemptView) string {
	if v.Score == nil {
		return ""
	}
	words := scoreOf(v.Score)
	if v.Low != nil && v.High != nil {
		words += fmt.Sprintf(" (%s to %s)", scoreOf(v.Low), scoreOf(v.High))
	}
	if m := scoreWords(v.Metric); m != "" {
		words += ", " + m
	}
	return words
}

// effectWords says how much better than the champion it was on secret cases.
func effectWords(e *wire.Effect) string {
	if e == nil {
		return ""
	}
	f := func(x float64) string { return fmt.Sprintf("%+.4g", x) }
	if e.Relative {
		f = func(x float64) string { return fmt.Sprintf("%+.3g %%", x*100) }
	}
	return fmt.Sprintf("%s (%s to %s with %g %% confidence over %d pairs); a champion needs %s",
		f(e.Center), f(e.Low), f(e.High), e.Confidence*100, e.Pairs, f(e.Least))
}

// pairs writes names and values, by name.
func pairs(values map[string]string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		list = append(list, name+"="+values[name])
	}
	return strings.Join(list, " ")
}

func stepsJudged(v service.AttemptView) *table {
	t := &table{header: []string{"STEP", "RESULT", "TOOK", "RUNS", "VALUES", "WHY"}, wide: []int{5, 4}, wraps: true}
	for _, s := range v.Steps {
		t.add(s.Step, passed(s.OK), milliseconds(float64(s.WallMS)), fmt.Sprint(len(s.Cases)), figures(s.Values), s.Why)
	}
	return t
}

func passed(ok bool) string {
	if ok {
		return "passed"
	}
	return "failed"
}

// figures writes names and numbers, by name.
func figures(values map[string]float64) string {
	words := map[string]string{}
	for name, v := range values {
		words[name] = fmt.Sprintf("%.6g", v)
	}
	return pairs(words)
}

func casesTable(v service.AttemptView) *table {
	t := &table{header: []string{"STEP", "SEED", "CASE", "OF", "RESULT", "WALL", "CPU", "MEMORY", "VALUES", "WHY"}, wide: []int{9, 8}}
	for _, s := range v.Steps {
		for _, r := range s.Cases {
			kind, of := "public", "candidate"
			if r.Secret {
				kind = "secret"
			}
			if r.Champion {
				of = "champion"
			}
			t.add(s.Step, count(r.Seed), kind, of, passed(r.OK), milliseconds(r.WallMS), milliseconds(r.CPUMS),
				bytesOf(int64(r.RSS)), figures(r.Values), r.Why)
		}
	}
	return t
}
