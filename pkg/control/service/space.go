package service

import (
	"context"
	"errors"
	"slices"
	"time"

	"thermite/pkg/control/commands"
	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// Space is what the rigs keep on their disks.
type Space interface {
	// Get gives what the rig said last, and when, or store.ErrNotFound.
	Get(ctx context.Context, rig string) (wire.SpaceReport, time.Time, error)
}

// SpaceItem is one thing that a rig keeps.
type SpaceItem struct {
	Kind      string    `json:"kind" enum:"build,setup,kit,repository,patches" doc:"build: a champion's, which the judge compares with; setup: what a kit's setup made; kit: a kit's files; repository: a run's, which lanes are cloned from; patches: of a run's attempts" example:"build"`
	Run       string    `json:"run,omitzero" doc:"The run that it is of, the newest if it is of many; absent when it is of none of the rig's ledger" example:"pack26"`
	Name      string    `json:"name" doc:"What tells it from others of its kind and run"`
	At        wire.Time `json:"at" doc:"When it was used last, or made"`
	Bytes     uint64    `json:"bytes" doc:"What it takes on the disk" example:"1048576"`
	Files     uint64    `json:"files" doc:"How many files it has" example:"12"`
	Open      bool      `json:"open" doc:"Whether a run needs it that goes on or has an attempt to judge: it is not removed"`
	Champion  bool      `json:"champion" doc:"Whether a champion needs it: it is not removed"`
	Busy      bool      `json:"busy" doc:"Whether something used it as the rig looked: it is not removed then"`
	Removable bool      `json:"removable" doc:"Whether a removal would remove it"`
}

// SpaceView is what a rig keeps, as it said last.
type SpaceView struct {
	Rig    string    `json:"rig" doc:"The rig" example:"workshop"`
	Known  bool      `json:"known" doc:"Whether the rig said so yet; it does when it first works, every 10 minutes and after each removal"`
	Ledger string    `json:"ledger,omitzero" doc:"The rig's ledger as it looked"`
	At     wire.Time `json:"at,omitzero" doc:"When the rig looked"`
	// TakenAt is when control took that.
	TakenAt        wire.Time   `json:"taken_at,omitzero" doc:"When control took that"`
	Items          []SpaceItem `json:"items" nullable:"false" doc:"What it keeps, the largest first"`
	LeftOut        uint64      `json:"left_out" doc:"How many things are not named"`
	LeftOutBytes   uint64      `json:"left_out_bytes" doc:"What those take"`
	Bytes          uint64      `json:"bytes" doc:"What all of it takes"`
	RemovableBytes uint64      `json:"removable_bytes" doc:"What of it a removal would free"`
	DiskBytes      uint64      `json:"disk_bytes,omitzero" doc:"The size of the file system that the work is on"`
	DiskFree       uint64      `json:"disk_free,omitzero" doc:"What of it is free"`
}

// SpaceRemoval says what a rig is to remove.
type SpaceRemoval struct {
	Kinds  []string  `json:"kinds,omitempty" nullable:"false" doc:"The kinds to remove: build, setup, kit, repository, patches; absent is all" example:"[\"build\"]"`
	Run    string    `json:"run,omitzero" maxLength:"40" doc:"Only this run's" example:"pack26"`
	Before wire.Time `json:"before,omitzero" doc:"Only what was used last before this"`
	Why    string    `json:"why,omitzero" maxLength:"4000" doc:"Why"`
}

// RigSpace gives what a rig keeps, as it said last.
func (s *Service) RigSpace(ctx context.Context, c Caller, rig string) (SpaceView, error) {
	if err := c.Check(MayRead); err != nil {
		return SpaceView{}, err
	}
	if _, err := s.rig(ctx, rig); err != nil {
		return SpaceView{}, err
	}
	v := SpaceView{Rig: rig, Items: []SpaceItem{}}
	r, at, err := s.config.Space.Get(ctx, rig)
	if errors.Is(err, store.ErrNotFound) {
		return v, nil
	}
	if err != nil {
		return v, err
	}
	v.Known, v.Ledger, v.At, v.TakenAt = true, r.Ledger, r.At, wire.At(at)
	v.LeftOut, v.LeftOutBytes, v.Bytes = r.LeftOut, r.LeftOutBytes, r.LeftOutBytes
	v.DiskBytes, v.DiskFree = r.DiskBytes, r.DiskFree
	for _, i := range r.Items {
		v.Bytes += i.Bytes
		if i.Removable() {
			v.RemovableBytes += i.Bytes
		}
		v.Items = append(v.Items, SpaceItem{Kind: i.Kind, Run: i.Run, Name: i.Name, At: i.At, Bytes: i.Bytes, Files: i.Files, Open: i.Open,
			Champion: i.Champion, Busy: i.Busy, Removable: i.Removable()})
	}
	return v, nil
}

// RemoveSpace has a rig remove what it keeps, of no run that is open and of no
// champion.
func (s *Service) RemoveSpace(ctx context.Context, c Caller, rig string, what SpaceRemoval, key string) (Command, error) {
	if err := c.Check(MayChange); err != nil {
		return Command{}, err
	}
	args := wire.SpaceRemove{Kinds: what.Kinds, Run: what.Run, Before: what.Before, Why: what.Why}
	if len(args.Kinds) == 0 {
		args.Kinds = slices.Clone(wire.SpaceKinds)
	}
	if err := args.Check(); err != nil {
		return Command{}, badArguments(err)
	}
	r, err := s.workingRig(ctx, rig)
	if err != nil {
		return Command{}, err
	}
	v, err := s.view(ctx, r, "")
	if err != nil {
		return Command{}, err
	}
	return s.issue(ctx, c, commands.Order{Rig: r.Name, Args: args, Ledger: v.Ledger}, key)
}
