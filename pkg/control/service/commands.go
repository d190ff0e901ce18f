package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"thermite/pkg/control/commands"
	"thermite/pkg/wire"
)

// Commands gives the rigs their commands, and knows what came of each.
type Commands interface {
	// Issue signs a command and puts it on its way. An order whose key was
	// given before is that order once more.
	Issue(ctx context.Context, o commands.Order) (commands.Command, error)
	Get(ctx context.Context, id string) (commands.Command, error)
	List(ctx context.Context, q commands.Query) ([]commands.Command, error)
	// Cancel takes a command back that has no outcome yet.
	Cancel(ctx context.Context, id, by, source string) (commands.Command, error)
	// Wait gives the command as soon as it has its outcome, or as it is when
	// the time has passed.
	Wait(ctx context.Context, id string, most time.Duration) (commands.Command, error)
	// Held says how many of the rig's commands wait for the bus.
	Held(ctx context.Context, rig string) (commands.Held, error)
}

// held gives the rig's commands that wait for the bus; nil when none does.
func (s *Service) held(ctx context.Context, rig string) (*HeldCommands, error) {
	h, err := s.config.Commands.Held(ctx, rig)
	if err != nil || h.Count == 0 {
		return nil, err
	}
	return &HeldCommands{Count: h.Count, Why: h.Why, Since: wire.At(h.Since)}, nil
}

// orderRun gives the rig a command about a run that it has.
func (s *Service) orderRun(ctx context.Context, c Caller, name RunName, args wire.Arguments, key string) (Command, error) {
	if err := c.Check(MayChange); err != nil {
		return Command{}, err
	}
	if err := args.Check(); err != nil {
		return Command{}, badArguments(err)
	}
	r, err := s.workingRig(ctx, name.Rig)
	if err != nil {
		return Command{}, err
	}
	v, err := s.view(ctx, r, "")
	if err != nil {
		return Command{}, err
	}
	if _, ok := runIn(v, name.Run); !ok && !s.config.Runs.Holds(name.Run, name.Rig) {
		return Command{}, noRun(name)
	}
	return s.issue(ctx, c, commands.Order{Rig: r.Name, Args: args, Ledger: v.Ledger}, key)
}

// issue gives a rig the caller's command. A key names one order of one kind.
func (s *Service) issue(ctx context.Context, c Caller, o commands.Order, key string) (Command, error) {
	if err := checkKey(key); err != nil {
		return Command{}, err
	}
	if o.By, o.Source = c.actor(), c.Source; key != "" {
		o.Key = o.Args.Command() + " " + key
	}
	made, err := s.config.Commands.Issue(ctx, o)
	if err != nil {
		return Command{}, commandError(o.Rig, err)
	}
	return commandOf(made), nil
}

func commandOf(c commands.Command) Command {
	return Command{ID: c.ID, Rig: c.Rig, Kind: c.Kind, Run: c.Run, Args: c.Args, Ledger: c.Ledger, By: c.By, IssuedAt: wire.At(c.IssuedAt),
		ExpiresAt: wire.At(c.ExpiresAt), State: string(c.Status), Held: c.Held, Why: c.Why, Number: c.Made, EndedAt: wire.At(c.EndedAt)}
}

// badArguments says what is wrong with a command's arguments in its caller's
// words: wire's name the field first.
func badArguments(err error) error {
	field, _, _ := strings.Cut(err.Error(), " ")
	return invalid("body."+strings.TrimSuffix(field, ":"), err)
}

// commandError says what was wrong with a call about a command.
func commandError(rig string, err error) error {
	switch {
	case errors.Is(err, commands.ErrNoCommand):
		return &Error{Code: CodeNoCommand, Text: "there is no command with that id", Cause: err}
	case errors.Is(err, commands.ErrOver):
		return &Error{Code: CodeCommandOver, Text: "the command has its outcome already, so it can't be taken back", Cause: err}
	case errors.Is(err, commands.ErrKeyReused):
		return &Error{Code: CodeKeyReused, Text: "this idempotency key was used for another request: use a new one", Cause: err}
	case errors.Is(err, commands.ErrTooMany):
		return &Error{Code: CodeTooManyPending, Cause: err, RetryAfter: time.Minute,
			Text: fmt.Sprintf("too many commands of rig %s wait for their outcome: cancel some, or wait", rig)}
	case errors.Is(err, commands.ErrBadOrder):
		return &Error{Code: CodeInvalid, Text: err.Error(), Cause: err}
	default:
		return rigError(rig, err)
	}
}

// Commands gives a page of the commands, the newest first.
func (s *Service) Commands(ctx context.Context, c Caller, q CommandQuery) (CommandList, error) {
	list := CommandList{Commands: []Command{}}
	if err := c.Check(MayRead); err != nil {
		return list, err
	}
	limit, err := q.limit()
	if err != nil {
		return list, err
	}
	before, err := q.before()
	if err != nil {
		return list, err
	}
	if q.Rig != "" {
		if _, err := s.rig(ctx, q.Rig); err != nil {
			return list, err
		}
	}
	rows, err := s.config.Commands.List(ctx, commands.Query{Before: before, Limit: limit + 1, Rig: q.Rig, Run: q.Run})
	if err != nil {
		return list, err
	}
	if len(rows) > limit {
		rows = rows[:limit]
		list.Next = idOf(rows[limit-1].Number)
	}
	for _, row := range rows {
		list.Commands = append(list.Commands, commandOf(row))
	}
	return list, nil
}

// Command gives a command. With a wait it answers as soon as the command is
// over, or when the wait is.
func (s *Service) Command(ctx context.Context, c Caller, id string, wait time.Duration) (Command, error) {
	if err := c.Check(MayRead); err != nil {
		return Command{}, err
	}
	if wait < 0 || wait > MaxWait {
		return Command{}, invalid("query.wait", fmt.Errorf("wait must be 0s to %v", MaxWait))
	}
	if !wire.IsCommandID(id) {
		return Command{}, commandError("", commands.ErrNoCommand)
	}
	is, err := s.config.Commands.Get(ctx, id)
	if err != nil {
		return Command{}, commandError("", err)
	}
	if wait == 0 || is.Over() {
		return commandOf(is), nil
	}
	done, err := s.limits.wait(c.id())
	if err != nil {
		return Command{}, err
	}
	defer done()
	is, err = s.config.Commands.Wait(ctx, id, wait)
	switch {
	case ctx.Err() != nil:
		return Command{}, cancelled(ctx.Err())
	case err != nil:
		return Command{}, commandError("", err)
	}
	return commandOf(is), nil
}

// CancelCommand takes back a command whose outcome is not known yet. One that
// the rig has taken already is done all the same.
func (s *Service) CancelCommand(ctx context.Context, c Caller, id string) (Command, error) {
	if err := c.Check(MayChange); err != nil {
		return Command{}, err
	}
	if !wire.IsCommandID(id) {
		return Command{}, commandError("", commands.ErrNoCommand)
	}
	is, err := s.config.Commands.Cancel(ctx, id, c.actor(), c.Source)
	if err != nil {
		return Command{}, commandError("", err)
	}
	return commandOf(is), nil
}
