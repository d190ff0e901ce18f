package controller

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/dustin/go-humanize"

	"thermite/pkg/files"
	"thermite/pkg/harness/ledger"
	"thermite/pkg/harness/state"
	"thermite/pkg/wire"
)

// A removal is what a space.remove was about to remove when it was written
// down: a harness that ends before it has recorded that does so as it starts
// again.
type removal struct {
	Run     string            `json:"run,omitzero"`
	Removed wire.SpaceRemoved `json:"removed"`
}

// removalPath is the file of the removal under way; empty without a broker.
func (c *Controller) removalPath() string {
	if c.cfg.Work == nil {
		return ""
	}
	return filepath.Join(filepath.Dir(c.cfg.Work.Sessions.dir), "removing.json")
}

// remove does a space.remove, and records what is gone. One that was cut off
// is done again.
func (c *Controller) remove(ctx context.Context, command wire.Command, a wire.SpaceRemove) (wire.CommandAnswer, error) {
	// No kit is staged for a run meanwhile, that would then lack it.
	c.space.Lock()
	defer c.space.Unlock()
	if has, ok, err := c.known(ctx, command.ID); ok || err != nil {
		return has, err
	}
	if c.cfg.Work == nil {
		return c.take(ctx, command, a, nil, "this rig's harness has no broker, so it keeps nothing")
	}
	if err := c.finishRemoval(ctx); err != nil {
		return wire.CommandAnswer{}, err
	}
	_, all, err := c.things(ctx)
	if err != nil {
		return wire.CommandAnswer{}, err
	}
	var wanted []thing
	var items []wire.SpaceItem
	for _, t := range all {
		if a.Wants(t.SpaceItem) {
			wanted, items = append(wanted, t), append(items, t.SpaceItem)
		}
	}
	c.writeRemoval(removal{a.Run, wire.NewSpaceRemoved(command.ID, a.Why, items)})
	gone, failed := removeAll(wanted)
	if failed != nil {
		c.cfg.Log.Warn("not all was removed that could be", "command", command.ID, "err", failed)
	}
	answer, err := c.recordRemoval(ctx, command, a, gone, failed)
	if err == nil {
		c.dropRemoval()
	}
	return answer, err
}

// removeAll removes the things, and gives those that are gone.
func removeAll(wanted []thing) (gone []wire.SpaceItem, failed error) {
	for _, t := range wanted {
		done, err := t.remove()
		if err != nil {
			failed = errors.Join(failed, err)
		}
		if done && err == nil {
			gone = append(gone, t.SpaceItem)
		}
	}
	return gone, failed
}

func (c *Controller) recordRemoval(ctx context.Context, command wire.Command, a wire.SpaceRemove, gone []wire.SpaceItem, failed error) (wire.CommandAnswer, error) {
	removed := wire.NewSpaceRemoved(command.ID, a.Why, gone)
	did := fmt.Sprintf("%d removed, %s", len(gone), humanize.IBytes(removed.Bytes))
	if len(gone) == 0 {
		did = "there was nothing to remove of no open run and no champion"
	}
	if failed != nil {
		did += "; not all: " + failed.Error()
	}
	answer := wire.CommandAnswer{ID: command.ID, State: wire.CommandApplied, Why: did}
	_, err := c.decide(ctx, func(*state.State, time.Time) ([]ledger.Draft, error) {
		return state.Removed(command, a.Run, removed, did)
	})
	if err != nil {
		return wire.CommandAnswer{}, err
	}
	c.cfg.Log.Info("took a command", "command", command.ID, "kind", command.Kind, "outcome", answer.State, "why", did)
	return answer, nil
}

// writeRemoval notes what is about to go. It can't be where the disk is full,
// which is when it matters most that something goes.
func (c *Controller) writeRemoval(r removal) {
	b, err := wire.Canonical(r)
	if err == nil {
		err = files.Write(c.removalPath(), b, 0o600)
	}
	if err != nil {
		c.cfg.Log.Warn("what is removed is not noted first", "err", err)
	}
}

func (c *Controller) dropRemoval() {
	if err := os.Remove(c.removalPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.cfg.Log.Warn("the note of what was removed stays", "err", err)
	}
}

// settleRemoval records, as the harness starts, what the one before removed
// and had not recorded.
func (c *Controller) settleRemoval(ctx context.Context) {
	for wait := firstWait; ; wait = min(2*wait, mostWait) {
		c.space.Lock()
		err := c.finishRemoval(ctx)
		c.space.Unlock()
		if err == nil || errors.Is(err, ErrStopped) || !pause(ctx, wait) {
			return
		}
		c.cfg.Log.Warn("what was removed before is not recorded yet", "err", err)
	}
}

// finishRemoval records a removal that was cut off before it was. What of it
// is still there stays: the command comes again.
func (c *Controller) finishRemoval(ctx context.Context) error {
	path := c.removalPath()
	if path == "" {
		return nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var r removal
	if err == nil {
		err = wire.DecodeStrict(b, &r)
	}
	if err != nil {
		c.cfg.Log.Warn("the note of what was removed can't be read", "err", err)
		c.dropRemoval()
		return nil
	}
	_, all, err := c.things(ctx)
	if err != nil {
		return err
	}
	_, err = c.decide(ctx, func(s *state.State, _ time.Time) ([]ledger.Draft, error) {
		if _, taken := s.Taken(r.Removed.Command); taken {
			return nil, nil
		}
		gone := goneOf(r.Removed, all)
		if len(gone.Items) == 0 {
			return nil, nil
		}
		return state.RemovedBefore(r.Run, gone)
	})
	if err != nil {
		return fmt.Errorf("recording what was removed: %w", err)
	}
	c.dropRemoval()
	return nil
}

// goneOf leaves out what is there still.
func goneOf(r wire.SpaceRemoved, all []thing) wire.SpaceRemoved {
	type name struct{ kind, run, name string }
	there := map[name]bool{}
	for _, t := range all {
		there[name{t.Kind, t.Run, t.Name}] = true
	}
	var gone []wire.SpaceItem
	for _, i := range r.Items {
		if !there[name{i.Kind, i.Run, i.Name}] {
			gone = append(gone, i)
		}
	}
	return wire.NewSpaceRemoved(r.Command, r.Why, gone)
}
