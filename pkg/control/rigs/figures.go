package rigs

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// figuresFlush is how often the figures kept since go to the store: in one
// transaction for every rig, so that many rigs that wait cost little.
const figuresFlush = 5 * time.Second

// figures are those that the store has not yet.
type figures struct {
	mu    sync.Mutex
	fresh map[string]kept
}

type kept struct {
	figures wire.Figures
	at      time.Time
}

// keep takes the rig's figures, if they are later than those it has.
func (f *figures) keep(rig string, k kept) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fresh == nil {
		f.fresh = map[string]kept{}
	}
	if has, ok := f.fresh[rig]; !ok || !k.at.Before(has.at) {
		f.fresh[rig] = k
	}
}

// forget drops the rig's figures: the store has later ones.
func (f *figures) forget(rig string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.fresh, rig)
}

// all gives a copy of every rig's figures.
func (f *figures) all() map[string]kept {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.fresh)
}

// written drops those of done that are still the rig's.
func (f *figures) written(done map[string]kept) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for rig, k := range done {
		if f.fresh[rig].at.Equal(k.at) {
			delete(f.fresh, rig)
		}
	}
}

// onto puts the rig's figures, if there are any, onto what the store has.
func (f *figures) onto(rig *store.Rig) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if k, ok := f.fresh[rig.Name]; ok {
		rig.Figures, rig.FiguresAt = k.figures, k.at
	}
}

// KeepFigures keeps the rig's figures as they came at at. They are read at
// once, and in the store within seconds: a stop may lose what the rig says
// again within the minute.
func (r *Rigs) KeepFigures(_ context.Context, rig string, f wire.Figures, at time.Time) error {
	r.figures.keep(rig, kept{f, at})
	return nil
}

// Run keeps the figures in the store until ctx ends, and then a last time.
func (r *Rigs) Run(ctx context.Context) error {
	tick := time.NewTicker(figuresFlush)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return r.flushFigures(context.WithoutCancel(ctx))
		case <-tick.C:
		}
		if err := r.flushFigures(ctx); err != nil && ctx.Err() == nil {
			r.Log.Warn("the rigs' figures are not in the store yet", "err", err)
		}
	}
}

// flushFigures writes the figures that the store has not.
func (r *Rigs) flushFigures(ctx context.Context) error {
	fresh := r.figures.all()
	if len(fresh) == 0 {
		return nil
	}
	err := r.Store.Write(ctx, func(tx *sqlx.Tx) error {
		for rig, k := range fresh {
			err := r.Store.SetFigures(ctx, tx, rig, k.figures, k.at)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
		}
		return nil
	})
	if err == nil {
		r.figures.written(fresh)
	}
	return err
}
