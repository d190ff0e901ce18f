// Package runs is control's run registry: which rig holds which run, and
// which campaign the run is in. The subject of an event, the live lines that
// a rig may publish and the campaign pages go by it.
//
// Control enters a run that a rig made as it takes the report that says so,
// before it publishes the report's events; the apply enters it again, from
// the stream, which changes nothing but where the store is older than the
// stream. What control assigned is entered by Assign.
//
// Reads are from memory, by anyone at any time. What is read is on disk.
package runs

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// Registry is the run registry.
type Registry struct {
	store *store.Store

	mu sync.RWMutex
	// named are the runs of each name, by rig.
	named map[string]named
	// rigs are the names of each rig's runs, the newest last.
	rigs map[string][]string
}

// named are the runs of one name, by rig.
type named map[string]store.Run

// mayMake says whether a run that the rig made is entered beside these: only
// if control assigned the rig the run (then it is there already), or assigned
// no rig a run of that name.
func (n named) mayMake(rig string) bool {
	if _, holds := n[rig]; holds {
		return false
	}
	for _, r := range n {
		if r.Origin == store.RunAssigned {
			return false
		}
	}
	return true
}

// Open reads the registry from the store.
func Open(ctx context.Context, s *store.Store) (*Registry, error) {
	all, err := s.Runs(ctx)
	if err != nil {
		return nil, err
	}
	r := &Registry{store: s, named: map[string]named{}, rigs: map[string][]string{}}
	r.keep(all)
	return r, nil
}

// Holds says that the registry gives the run to the rig.
func (r *Registry) Holds(run, rig string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	_, holds := r.named[run][rig]
	return holds
}

// Publishes says whether the rig's events of the run go on the run's subject:
// unless the registry gives the run only to other rigs.
func (r *Registry) Publishes(run, rig string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	named := r.named[run]
	_, holds := named[rig]
	return holds || len(named) == 0
}

// RunsOf gives the names of the rig's runs, the newest first.
func (r *Registry) RunsOf(rig string) []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	names := slices.Clone(r.rigs[rig])
	slices.Reverse(names)
	return names
}

// Named gives the runs of that name, one a rig, the newest last.
func (r *Registry) Named(run string) []store.Run {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.SortedFunc(maps.Values(r.named[run]), func(a, b store.Run) int { return cmp.Compare(a.Number, b.Number) })
}

// Take enters the runs that the rig's events made.
func (r *Registry) Take(ctx context.Context, rig string, events []wire.Event) error {
	made := r.made(rig, events)
	if len(made) == 0 {
		return nil
	}
	var keep func()
	err := r.store.Write(ctx, func(tx *sqlx.Tx) (err error) {
		keep, err = r.enter(ctx, tx, rig, made)
		return err
	})
	if err != nil {
		return fmt.Errorf("entering runs of rig %s: %w", rig, err)
	}
	keep()
	return nil
}

// TakeIn is Take as a part of tx. What it enters is read once the caller has
// committed tx and called keep.
func (r *Registry) TakeIn(ctx context.Context, tx *sqlx.Tx, rig string, events []wire.Event) (keep func(), err error) {
	made := r.made(rig, events)
	if len(made) == 0 {
		return func() {}, nil
	}
	return r.enter(ctx, tx, rig, made)
}

// Assign enters that control assigned the rig the run, in that campaign. A
// run of that name that the rig made is the assigned one from now on.
func (r *Registry) Assign(ctx context.Context, run, rig, campaign string, at time.Time) error {
	var keep func()
	err := r.store.Write(ctx, func(tx *sqlx.Tx) (err error) {
		keep, err = r.AssignIn(ctx, tx, run, rig, campaign, at)
		return err
	})
	if err == nil {
		keep()
	}
	return err
}

// AssignIn is Assign as a part of tx. What it enters is read once the caller
// has committed tx and called keep.
func (r *Registry) AssignIn(ctx context.Context, tx *sqlx.Tx, run, rig, campaign string, at time.Time) (keep func(), err error) {
	kept, err := r.store.SetRun(ctx, tx, store.Run{Run: run, Rig: rig, Origin: store.RunAssigned, Campaign: campaign, CreatedAt: at})
	if err != nil {
		return nil, err
	}
	return func() { r.keep([]store.Run{kept}) }, nil
}

// made gives those of the events that may enter a run.
func (r *Registry) made(rig string, events []wire.Event) []wire.Event {
	var made []wire.Event
	for _, e := range events {
		if e.Kind != wire.KindRunCreated || e.Run == "" {
			continue
		}
		r.mu.RLock()
		enters := r.named[e.Run].mayMake(rig)
		r.mu.RUnlock()
		if enters {
			made = append(made, e)
		}
	}
	return made
}

// enter writes the runs that the events made.
func (r *Registry) enter(ctx context.Context, tx *sqlx.Tx, rig string, made []wire.Event) (keep func(), err error) {
	var entered []store.Run
	for _, e := range made {
		others, err := r.store.RunsNamed(ctx, tx, e.Run)
		if err != nil {
			return nil, err
		}
		n := named{}
		for _, run := range others {
			n[run.Rig] = run
		}
		if !n.mayMake(rig) {
			continue
		}
		run := store.Run{Run: e.Run, Rig: rig, Origin: store.RunMade, Campaign: claimed(e), CreatedAt: e.Time.Time()}
		if run.Campaign != "" {
			known, err := r.store.CampaignKnown(ctx, tx, run.Campaign, rig)
			if err != nil {
				return nil, err
			}
			if known {
				run.Campaign = ""
			}
		}
		if run.Campaign == "" {
			run.Campaign = run.Run
		}
		if run, err = r.store.SetRun(ctx, tx, run); err != nil {
			return nil, err
		}
		entered = append(entered, run)
	}
	return func() { r.keep(entered) }, nil
}

// keep has the runs read from now on.
func (r *Registry) keep(runs []store.Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, run := range runs {
		n := r.named[run.Run]
		if n == nil {
			n = named{}
			r.named[run.Run] = n
		}
		if _, again := n[run.Rig]; again {
			r.rigs[run.Rig] = slices.DeleteFunc(r.rigs[run.Rig], func(name string) bool { return name == run.Run })
		}
		n[run.Rig] = run
		r.rigs[run.Rig] = append(r.rigs[run.Rig], run.Run)
	}
}

// claimed is the campaign that the event names; empty if it names none that
// can be one.
func claimed(e wire.Event) string {
	body, err := wire.ReadBody[wire.RunCreated](e)
	if err != nil || wire.CheckName("campaign", body.Campaign) != nil {
		return ""
	}
	return body.Campaign
}
