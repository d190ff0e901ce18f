package main

import (
	"context"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"thermite/cmd/thermite/internal/client"
	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// startFlags say what a run is begun with.
type startFlags struct {
	run    service.NewRun
	commit string
	budget budgetFlags
}

func runStartCommand(a *app) *cobra.Command {
	var f startFlags
	cmd := &cobra.Command{
		Use: "start KIT [-- COMMAND...]", Short: "have a rig work on a kit",
		Long: `Have a rig work on a kit: one that ships ("thermite kit list"), or with --commit one
of a git repository, whose https or ssh address KIT then is. The rig judges the kit's
base first, then the worker's trials submit attempts, and the best judged is the
champion. Without a bound (--attempts, --time) the run goes on until you stop it.

The worker tune needs no model: it turns the kit's tunables. The worker exec runs the
command that follows -- for each trial.`,
		Example: `  thermite run start circle-packing-26 --time 10m
  thermite run start bytecount --worker exec --attempts 20 -- ./my-agent --fast`,
		ValidArgsFunction: completeFirst(a, kitNames),
		Args:              kitAndCommand,
	}
	cmd.RunE = a.calling(func(ctx context.Context, c *client.Client, args []string) error {
		n, err := f.newRun(cmd, args)
		if err != nil {
			return err
		}
		if n.Rig == "" {
			if n.Rig, err = onlyRig(ctx, c); err != nil {
				return err
			}
		}
		is, err := c.StartRun(ctx, n)
		if err != nil {
			return err
		}
		return a.told(ctx, c, is, func(is service.Command) string {
			return fmt.Sprintf("Run %s is begun on rig %s. How it goes: thermite run show %s", is.Run, is.Rig, is.Run)
		})
	})
	f.add(a, cmd)
	return a.addNoWait(cmd)
}

// kitAndCommand takes a kit, and after -- the command of the worker exec.
func kitAndCommand(cmd *cobra.Command, args []string) error {
	before := cmd.ArgsLenAtDash()
	if before < 0 {
		before = len(args)
	}
	return exactly("kit")(cmd, args[:before])
}

func (f *startFlags) add(a *app, cmd *cobra.Command) {
	flags, n := cmd.Flags(), &f.run
	flags.StringVar(&n.Rig, "rig", "", "the rig to work on it; needless when there is one")
	flags.StringVar(&n.Run, "name", "", "the run's name; else one after the kit's")
	flags.StringVar(&n.Campaign, "campaign", "", "the campaign that it is in; else one of its own")
	flags.StringVar(&n.Title, "title", "", "its title; else the kit's")
	flags.StringVar(&n.Worker, "worker", "", "what works on its trials: tune, or exec with a command; else tune, or exec if there is a command")
	flags.StringVar(&f.commit, "commit", "", "the full commit of the kit's repository")
	flags.StringVar(&n.GitAccess, "git-access", "", "the Git access that the kit's repository is fetched with")
	flags.StringArrayVar(&n.MCPServers, "mcp-server", nil, "an MCP server that its agents may use; again for each")
	flags.Uint64Var(&n.Lanes, "lanes", 1, "how many trials may work at once")
	flags.Uint64Var(&n.Seed, "seed", 0, "seeds what it draws at random; 0: one is drawn")
	f.budget.add(cmd)
	_ = cmd.RegisterFlagCompletionFunc("rig", completeFlag(a, rigNames))
	_ = cmd.RegisterFlagCompletionFunc("campaign", completeFlag(a, campaignNames))
	_ = cmd.RegisterFlagCompletionFunc("worker", cobra.FixedCompletions([]string{"tune", "exec"}, cobra.ShellCompDirectiveNoFileComp))
}

// newRun is what the command line asks for.
func (f *startFlags) newRun(cmd *cobra.Command, args []string) (service.NewRun, error) {
	n := f.run
	n.WorkerArgs = slices.Clone(args[1:])
	for what, name := range map[string]string{"rig": n.Rig, "run": n.Run, "campaign": n.Campaign} {
		if name == "" {
			continue
		}
		if err := wire.CheckName(what, name); err != nil {
			return n, useError{err}
		}
	}
	if n.Worker == "" && len(n.WorkerArgs) > 0 {
		n.Worker = "exec"
	}
	if len(n.WorkerArgs) > 0 && n.Worker != "exec" {
		return n, wrongUse("a command after -- is for --worker exec, not %s", n.Worker)
	}
	if n.Worker == "exec" && len(n.WorkerArgs) == 0 {
		return n, wrongUse("the worker exec needs its command, after --\nusage: %s", cmd.UseLine())
	}
	var err error
	if n.Kit, err = kitSource(args[0], f.commit); err != nil {
		return n, err
	}
	n.Budget, err = f.budget.on(cmd, nil)
	return n, err
}

// kitSource is where the kit is that a person named.
func kitSource(kit, commit string) (wire.KitSource, error) {
	s := wire.KitSource{Embedded: kit}
	if strings.Contains(kit, ":") || path.IsAbs(kit) {
		if commit == "" {
			return s, wrongUse("a kit of a repository needs --commit, the full commit to take")
		}
		s = wire.KitSource{Git: kit, Commit: commit}
	} else if commit != "" {
		return s, wrongUse("--commit is for a kit of a git repository: %q is none's address", kit)
	}
	if err := s.Check(); err != nil {
		return s, useError{err}
	}
	return s, nil
}

// onlyRig is the one rig there is.
func onlyRig(ctx context.Context, c *client.Client) (string, error) {
	list, err := c.Rigs(ctx)
	if err != nil {
		return "", err
	}
	var names []string
	for _, r := range list.Rigs {
		if r.RetiredAt.IsZero() {
			names = append(names, r.Name)
		}
	}
	switch len(names) {
	case 0:
		return "", wrongUse("there is no rig to work on it\nMake one: thermite rig add NAME")
	case 1:
		return names[0], nil
	}
	return "", wrongUse("which rig? Give --rig, one of %s", strings.Join(names, ", "))
}

// budgetFlags say what a run may use.
type budgetFlags struct {
	attempts uint64
	time     time.Duration
	dollars  float64
}

func (f *budgetFlags) add(cmd *cobra.Command) {
	cmd.Flags().Uint64Var(&f.attempts, "attempts", 0, "end after so many attempts; 0: no bound")
	cmd.Flags().DurationVar(&f.time, "time", 0, "end after so long, such as 10m or 8h; 0: no bound")
	cmd.Flags().Float64Var(&f.dollars, "dollars", 0, "end when its models cost so much; 0: no bound")
}

// on gives the budget of before with what the flags say changed, or nil when
// they say nothing.
func (f *budgetFlags) on(cmd *cobra.Command, before *wire.Budget) (*wire.Budget, error) {
	var b wire.Budget
	if before != nil {
		b = *before
	}
	changed := cmd.Flags().Changed
	if !changed("attempts") && !changed("time") && !changed("dollars") {
		return nil, nil
	}
	if changed("attempts") {
		b.Attempts = f.attempts
	}
	if changed("time") {
		if f.time < 0 {
			return nil, wrongUse("--time is %v: 0 is no bound", f.time)
		}
		b.WallMS = uint64(f.time.Milliseconds())
	}
	if changed("dollars") {
		micro := f.dollars * 1e6
		if !(micro >= 0 && micro <= wire.MaxInteger) {
			return nil, wrongUse("--dollars is %v: 0 is no bound", f.dollars)
		}
		b.MicroDollars = uint64(math.Round(micro))
	}
	return &b, nil
}
