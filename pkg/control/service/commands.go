package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"thermite/pkg/wire"
)

// Commands gives the rigs their commands, and knows what came of each.
type Commands interface {
	// Issue signs a command and puts it on its way. An order whose key was
	// given before is that order once more, or ErrKeyReused when it differs.
	Issue(ctx context.Context, o Order) (Command, error)
	// Get gives a command, and ErrNoCommand when there is none.
	Get(ctx context.Context, id string) (Command, error)
	// List gives at most limit commands before the one named, the newest
	// first; of the rig, unless that is empty.
	List(ctx context.Context, rig, before string, limit int) ([]Command, error)
	// Cancel takes a command back, or gives ErrCommandOver.
	Cancel(ctx context.Context, by Caller, id string) (Command, error)
	// Wait gives the command as soon as it is over, or as it is when the time
	// has passed or ctx ended.
	Wait(ctx context.Context, id string, most time.Duration) (Command, error)
}

// Order is a command to be given.
type Order struct {
	Rig  string
	Args wire.Arguments
	// Ledger is the only one that it is good for; empty is whichever the rig
	// has.
	Ledger string
	By     Caller
	// Key names the order among its caller's; empty is no name.
	Key string
}

// The errors of Commands that a caller is told of.
var (
	ErrNoCommand   = errors.New("no such command")
	ErrCommandOver = errors.New("the command is over")
	ErrKeyReused   = errors.New("the key was used for another order")
)

// Actor is the caller as the audit log names it.
func (c Caller) Actor() string { return c.actor() }

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
	return s.issue(ctx, Order{Rig: r.Name, Args: args, Ledger: v.Ledger, By: c, Key: key})
}

// issue gives the rig the command.
func (s *Service) issue(ctx context.Context, o Order) (Command, error) {
	if err := checkKey(o.Key); err != nil {
		return Command{}, err
	}
	made, err := s.config.Commands.Issue(ctx, o)
	if err != nil {
		return Command{}, commandError(err)
	}
	return made, nil
}

// badArguments says what is wrong with a command's arguments in its caller's
// words: wire's name the field first.
func badArguments(err error) error {
	field, _, _ := strings.Cut(err.Error(), " ")
	return invalid("body."+strings.TrimSuffix(field, ":"), err)
}

// commandError says what was wrong with a call about a command.
func commandError(err error) error {
	switch {
	case errors.Is(err, ErrNoCommand):
		return &Error{Code: CodeNoCommand, Text: "there is no command with that id", Cause: err}
	case errors.Is(err, ErrCommandOver):
		return &Error{Code: CodeCommandOver, Text: "the command has its outcome already, so it can't be taken back", Cause: err}
	case errors.Is(err, ErrKeyReused):
		return &Error{Code: CodeKeyReused, Text: "this idempotency key was used for another request: use a new one", Cause: err}
	default:
		return err
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
	if q.After != "" && !wire.IsCommandID(q.After) {
		return list, invalid("query.after", errors.New("after must be the next of another page"))
	}
	if q.Rig != "" {
		if _, err := s.rig(ctx, q.Rig); err != nil {
			return list, err
		}
	}
	rows, err := s.config.Commands.List(ctx, q.Rig, q.After, limit+1)
	if errors.Is(err, ErrNoCommand) {
		return list, invalid("query.after", errors.New("after must be the next of another page"))
	}
	if err != nil {
		return list, err
	}
	if len(rows) > limit {
		rows = rows[:limit]
		list.Next = rows[limit-1].ID
	}
	list.Commands = append(list.Commands, rows...)
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
		return Command{}, commandError(ErrNoCommand)
	}
	is, err := s.config.Commands.Get(ctx, id)
	if err != nil {
		return Command{}, commandError(err)
	}
	if wait == 0 || is.Over() {
		return is, nil
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
		return Command{}, commandError(err)
	}
	return is, nil
}

// CancelCommand takes back a command whose outcome is not known yet. One that
// the rig has taken already is done all the same.
func (s *Service) CancelCommand(ctx context.Context, c Caller, id string) (Command, error) {
	if err := c.Check(MayChange); err != nil {
		return Command{}, err
	}
	if !wire.IsCommandID(id) {
		return Command{}, commandError(ErrNoCommand)
	}
	is, err := s.config.Commands.Cancel(ctx, c, id)
	if err != nil {
		return Command{}, commandError(err)
	}
	return is, nil
}
