package service

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"thermite/pkg/control/commands"
	"thermite/pkg/control/rigs"
	"thermite/pkg/control/store"
	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// Runs is control's run registry.
type Runs interface {
	// Holds says that the registry gives the run to the rig.
	Holds(run, rig string) bool
	// Named gives the runs of that name, one a rig.
	Named(run string) []store.Run
}

// defaultWorker works on a run whose worker nobody named.
const defaultWorker = "tune"

// StartRun gives a rig a run to work on.
func (s *Service) StartRun(ctx context.Context, c Caller, n NewRun, key string) (Command, error) {
	if err := c.Check(MayChange); err != nil {
		return Command{}, err
	}
	r, err := s.workingRig(ctx, n.Rig)
	if err != nil {
		return Command{}, err
	}
	args, err := s.assignment(n)
	if err != nil {
		return Command{}, err
	}
	if err := s.checkNamed(ctx, c, n); err != nil {
		return Command{}, err
	}
	do := func(ctx context.Context) (Command, error) {
		if err := s.nameRun(ctx, r, n, &args); err != nil {
			return Command{}, err
		}
		made, err := s.issue(ctx, c, commands.Order{Rig: r.Name, Args: args}, key)
		if errors.Is(err, commands.ErrRunExists) {
			err = runExists(r.Name, args.Run)
		}
		if args.GitAccess != "" || len(args.MCPServers) > 0 {
			s.config.Configs.Changed() // staging waits for what it names
		}
		return made, err
	}
	return Once(ctx, s, c, "start-run", key, n, do)
}

// assignment makes the command's arguments of what was asked for, all but a
// name that nobody gave.
func (s *Service) assignment(n NewRun) (wire.RunAssign, error) {
	args := wire.RunAssign{Run: n.Run, Campaign: n.Campaign, Title: n.Title, Kit: n.Kit, Worker: n.Worker, WorkerArgs: n.WorkerArgs,
		Lanes: max(n.Lanes, 1), Seed: n.Seed, Budget: n.Budget, GitAccess: n.GitAccess, MCPServers: n.MCPServers}
	if n.Kit.Embedded != "" && !slices.Contains(kit.Names(), n.Kit.Embedded) {
		return args, noKit("body.kit.embedded")
	}
	if args.Worker == "" {
		args.Worker = defaultWorker
	}
	if args.Worker == "exec" && len(args.WorkerArgs) == 0 {
		return args, invalid("body.worker_args", errors.New("worker_args is missing: the worker exec runs a command"))
	}
	if args.Seed == 0 {
		var err error
		if args.Seed, err = drawSeed(s.config.Rand); err != nil {
			return args, err
		}
	}
	// What control names itself is checked with the rest once it is named.
	check := args
	if check.Run == "" {
		check.Run = "x"
	}
	if check.Campaign == "" {
		check.Campaign = check.Run
	}
	if err := check.Check(); err != nil {
		return args, badArguments(err)
	}
	return args, nil
}

// drawSeed draws a seed that canonical JSON carries exactly; never 0, which
// is none.
func drawSeed(rand io.Reader) (uint64, error) {
	var b [8]byte
	if _, err := io.ReadFull(rand, b[:]); err != nil {
		return 0, fmt.Errorf("drawing a run's seed: %w", err)
	}
	return binary.BigEndian.Uint64(b[:])%wire.MaxInteger + 1, nil
}

// nameRun names the run, and its campaign, where nobody did, and refuses a
// name that the rig had.
func (s *Service) nameRun(ctx context.Context, r rigs.Rig, n NewRun, args *wire.RunAssign) error {
	v, err := s.view(ctx, r, "")
	if err != nil {
		return err
	}
	if n.Run == "" {
		args.Run, err = freeName(n.Kit, func(name string) bool {
			_, has := runIn(v, name)
			return has || len(s.config.Runs.Named(name)) > 0
		})
		if err != nil {
			return err
		}
	} else if _, has := runIn(v, n.Run); has {
		return runExists(r.Name, n.Run)
	}
	if args.Campaign == "" {
		args.Campaign = args.Run
	}
	return nil
}

func runExists(rig, run string) error {
	return &Error{Code: CodeRunExists, Text: fmt.Sprintf("rig %s has, or had, a run %s: give this one another name", rig, run),
		Fields: []FieldError{{Location: "body.run", Message: "this name is taken"}}}
}

// maxNamed is how many names of a kit are tried, and maxStem what a number
// leaves room for.
const (
	maxNamed = 100_000
	maxStem  = 33
)

// freeName gives the first name after the kit's that is not taken.
func freeName(k wire.KitSource, taken func(string) bool) (string, error) {
	stem := kitName(k)
	for n := 1; n < maxNamed; n++ {
		name := stem
		if n > 1 {
			name = fmt.Sprintf("%s-%d", stem, n)
		}
		if !taken(name) {
			return name, nil
		}
	}
	return "", invalid("body.run", fmt.Errorf("run is missing, and every name after %s is taken", stem))
}

// kitName is what the kit's source calls it, as far as that can be a name.
func kitName(k wire.KitSource) string {
	name := k.Embedded
	if name == "" {
		name = strings.ToLower(strings.TrimSuffix(path.Base(k.Git), ".git"))
	}
	if name = name[:min(len(name), maxStem)]; wire.CheckName("kit", name) != nil {
		return "run"
	}
	return name
}

// workingRig gives a rig that may be given a command.
func (s *Service) workingRig(ctx context.Context, name string) (rigs.Rig, error) {
	r, err := s.rig(ctx, name)
	if err != nil {
		return r, err
	}
	if r.Retired() {
		return r, newError(CodeRigRetired, "rig %s is retired: bring it back first", name)
	}
	return r, nil
}
