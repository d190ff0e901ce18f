package views

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// earlier keeps the views of earlier ledgers and of retired rigs that were
// read last.
type earlier struct {
	keep   int
	flight singleflight.Group

	mu sync.Mutex
	// kept has the one read last at its end.
	kept []*kept
}

// kept is one such view: of the ledger's events through a place.
type kept struct {
	key     string
	through uint64
	view    Rig
}

// foldDeadline ends the making of a view that nobody waits for any more.
const foldDeadline = 5 * time.Minute

func (e *earlier) get(key string, through uint64) (Rig, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := slices.IndexFunc(e.kept, func(k *kept) bool { return k.key == key && k.through >= through })
	if i < 0 {
		return Rig{}, false
	}
	k := e.kept[i]
	e.kept = append(slices.Delete(e.kept, i, i+1), k)
	return k.view, true
}

func (e *earlier) put(k *kept) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kept = append(slices.DeleteFunc(e.kept, func(o *kept) bool { return o.key == k.key }), k)
	if over := len(e.kept) - e.keep; over > 0 {
		e.kept = slices.Delete(e.kept, 0, over)
	}
}

// onDemand gives the view of a ledger that has no live fold. All who ask for
// it meanwhile share one reading of the stream, which goes on for the others
// when the first goes away.
func (v *Views) onDemand(ctx context.Context, x *index, want ledger) (Rig, error) {
	key := x.rig + "/" + want.id
	r, ok := v.earlier.get(key, want.last.Seq)
	if !ok {
		result := v.earlier.flight.DoChan(fmt.Sprintf("%s/%d", key, want.last.Seq), func() (any, error) {
			// The reading before may have ended just now.
			if r, ok := v.earlier.get(key, want.last.Seq); ok {
				return r, nil
			}
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), foldDeadline)
			defer cancel()
			r, err := v.build(ctx, x.rig, want)
			if err == nil {
				v.earlier.put(&kept{key: key, through: want.last.Seq, view: r})
			}
			return r, err
		})
		select {
		case <-ctx.Done():
			return Rig{}, fmt.Errorf("reading ledger %s of rig %s: %w", want.id, x.rig, ctx.Err())
		case got := <-result:
			if got.Err != nil {
				return Rig{}, fmt.Errorf("reading ledger %s of rig %s: %w", want.id, x.rig, got.Err)
			}
			r = got.Val.(Rig)
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	r.Current = x.current().id == want.id
	return r, nil
}

// build folds the ledger's events from the stream.
func (v *Views) build(ctx context.Context, rig string, want ledger) (Rig, error) {
	f := newFold(rig, want.id)
	failure, err := v.refold(ctx, f, want)
	if err != nil {
		return Rig{}, err
	}
	if failure == nil {
		r, err := snapshot(f)
		if err == nil {
			return r, nil
		}
		failure = v.failed(rig, want.id, Message{Seq: f.last.Seq}, err)
	}
	return failedView(rig, want, false, failure), nil
}

// errFold stops the reading at a fold that failed.
var errFold = errors.New("the fold failed")

// refold brings the fold up to the ledger's last event. A fold that fails is
// no error: the failure says it.
func (v *Views) refold(ctx context.Context, f *fold, want ledger) (failure *Failure, err error) {
	if v.source == nil {
		return nil, errors.New("no source of earlier events was named")
	}
	from := max(want.first.Seq, f.last.Seq+1)
	err = v.source.Ledger(ctx, f.rig, want.id, from, want.last.Seq, func(m Message) error {
		if m.Event.ID <= f.last.ID {
			return nil
		}
		if err := v.fold(f, m); err != nil {
			failure = v.failed(f.rig, want.id, m, err)
			return errFold
		}
		return nil
	})
	if errors.Is(err, errFold) {
		err = nil
	}
	return failure, err
}
