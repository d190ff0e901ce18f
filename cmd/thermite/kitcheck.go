package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"thermite/cmd/thermite/internal/kitcheck"
	"thermite/cmd/thermite/internal/rig"
	"thermite/pkg/kit"
)

func kitCheckCommand(a *app) *cobra.Command {
	var (
		only    []string
		verbose bool
	)
	cmd := &cobra.Command{
		Use: "check DIR|KIT", Short: "judge a kit's base and all candidates that ship with it", Args: exactly("folder, or name of a kit that ships"),
		Long: `Build, run and judge a kit's base and every candidate that ships with it, as a
rig would, and hold what becomes of each to what the kit says: its cheats are
refused by what it names, its win is promoted, and what is the same is not.

It ends with 1 if anything is not so. What only walls between users refuse is
shown as not held where there are none: where you are not root.

A kit whose runs call a model takes it from OPENAI_BASE_URL, OPENAI_API_KEY and
OPENAI_MODEL; it must be on this machine's loopback.`,
		Example: `  thermite kit check bytecount
  thermite kit check ./my-kit --only honest-win`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.kitCheck(cmd.Context(), checkedKit(args[0]), only, verbose)
		},
	}
	cmd.Flags().StringSliceVar(&only, "only", nil, "judge only these of its candidates, parted by commas")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "show the log of the broker and the judge")
	return cmd
}

// checkedKit says where the kit is: a folder, or one that ships.
func checkedKit(arg string) kit.Source {
	if !strings.ContainsRune(arg, filepath.Separator) && arg != "." && arg != ".." && slices.Contains(kit.Names(), arg) {
		return kit.Source{Embedded: arg}
	}
	return kit.Source{Dir: arg}
}

func (a *app) kitCheck(ctx context.Context, source kit.Source, only []string, verbose bool) (err error) {
	dir, err := os.MkdirTemp("", "thermite-kit-check-")
	if err != nil {
		return fmt.Errorf("making a folder to check the kit in: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	log := slog.New(slog.DiscardHandler)
	if verbose {
		log = slog.New(slog.NewTextHandler(a.errs, nil))
	}
	report, err := kitcheck.Run(ctx, kitcheck.Config{
		Source: source, Only: only, Dir: dir,
		Model: kitcheck.Model{URL: a.getenv("OPENAI_BASE_URL"), Key: a.getenv("OPENAI_API_KEY"), Name: a.getenv("OPENAI_MODEL")},
		Build: version, Now: time.Now, Rand: rand.Reader, Log: log,
		Doing: func(words string) { a.progress("%s", words) },
	})
	a.progressClear()
	if err != nil {
		return kitCheckError(err)
	}
	return a.showCheck(report)
}

// kitCheckError says what to do about a kit that can't be checked.
func kitCheckError(err error) error {
	switch {
	case errors.Is(err, kitcheck.ErrNoModel):
		return fmt.Errorf("%w: name it with OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL", err)
	case errors.Is(err, kitcheck.ErrNoFixture):
		return useError{err}
	case errors.Is(err, rig.ErrNoWay):
		return fmt.Errorf("%w; name another folder with TMPDIR, such as /var/tmp", err)
	}
	return err
}

// showCheck shows a report, and is an error if it is not as the kit says.
func (a *app) showCheck(r kitcheck.Report) error {
	if a.json {
		if err := a.printJSON(r); err != nil {
			return err
		}
		return checkFailure(r)
	}
	t := &table{header: []string{"", "CANDIDATE", "EXPECTED", "GOT", "TIME", "WHY"}, wide: []int{5, 2}, wraps: true}
	for _, row := range append([]kitcheck.Row{r.Base}, r.Fixtures...) {
		t.add(strings.ReplaceAll(row.Result, "_", " "), row.Name, expected(row), got(row), fmt.Sprintf("%.1f s", float64(row.WallMS)/1000), row.Why)
	}
	if err := a.printTable(t); err != nil {
		return err
	}
	if n := r.Count(kitcheck.NotHeld); n > 0 {
		a.warn("%d of its cheats are not held here: only walls between users refuse them, and every role is this user. Root has them.", n)
	}
	if err := checkFailure(r); err != nil {
		return err
	}
	a.warn("The kit %s is as it says: %d candidates judged.", r.Kit, len(r.Fixtures)+1)
	return nil
}

// expected and got write both sides of a row.
func expected(r kitcheck.Row) string {
	words := strings.ReplaceAll(r.Expect, "_", " ")
	if r.By != "" {
		words += " by " + r.By
	}
	if r.Seeds != "" {
		words += ", " + r.Seeds + " cases"
	}
	return words
}

func got(r kitcheck.Row) string {
	words := strings.ReplaceAll(r.Got, "_", " ")
	if r.Step != "" {
		words += " by " + r.Step
	}
	if r.Score != nil {
		words += " " + figure(*r.Score)
	}
	return words
}

// checkFailure says what of the kit is not as it says.
func checkFailure(r kitcheck.Report) error {
	if r.OK() {
		return nil
	}
	var words []string
	if n := r.Count(kitcheck.Surprise); n > 0 {
		words = append(words, fmt.Sprintf("%d of %d candidates are not as it says", n, len(r.Fixtures)+1))
	}
	for _, m := range r.Missing {
		words = append(words, "it ships without "+m)
	}
	return fmt.Errorf("the kit %s: %s", r.Kit, strings.Join(words, "; "))
}
