package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"thermite/pkg/harness/kb"
	"thermite/pkg/harness/ledger"
	"thermite/pkg/harness/state"
	"thermite/pkg/harness/trialapi"
	"thermite/pkg/wire"
)

// KB is the knowledge base for trials: items go in the ledger, files in the
// outbox, and what is asked to the supervisor. It implements trialapi.KB.
type KB struct {
	Controller *Controller
	Outbox     *kb.Outbox
	Queue      *kb.Queue
}

func trialProblem(status int, code, format string, args ...any) error {
	return &wire.TrialProblem{Status: status, Title: http.StatusText(status), Code: code, Detail: fmt.Sprintf(format, args...)}
}

// PutFile implements trialapi.KB.
func (k *KB) PutFile(ctx context.Context, sum string, r io.Reader) error {
	err := k.Outbox.Put(ctx, sum, r)
	switch {
	case errors.Is(err, kb.ErrOther):
		return trialProblem(http.StatusUnprocessableEntity, wire.TrialBadBody, "the file %s: %v", sum, err)
	case errors.Is(err, kb.ErrFull):
		return trialProblem(http.StatusTooManyRequests, wire.TrialTooMany, "%v", err)
	}
	return err
}

// WriteItem implements trialapi.KB. The file is on the disk, where the
// supervisor finds it, before the event that names it is.
func (k *KB) WriteItem(ctx context.Context, trial trialapi.Ref, w wire.KBWrite) (wire.KBWritten, error) {
	var size uint64
	if w.File != nil {
		var err error
		if size, err = k.Outbox.Size(w.File.SHA256); err == nil {
			err = k.Outbox.Name(w.File.SHA256)
		}
		if errors.Is(err, kb.ErrNoFile) {
			return wire.KBWritten{}, trialProblem(http.StatusNotFound, wire.TrialNotFound, "the item's file %s was not put: put it first", w.File.SHA256)
		}
		if err != nil {
			return wire.KBWritten{}, err
		}
	}
	item := w.Item(wire.KBSlot(state.About("trial", trial.Trial)), size)
	events, err := k.Controller.decide(ctx, func(s *state.State, now time.Time) ([]ledger.Draft, error) {
		return s.Learned(trial.Run, trial.Trial, item)
	})
	if err != nil {
		return wire.KBWritten{}, err
	}
	return wire.KBWritten{Slot: item.Slot, Key: item.Key, Event: events[0].ID}, nil
}

// SearchKB implements trialapi.KB.
func (k *KB) SearchKB(ctx context.Context, trial trialapi.Ref, q wire.KBQuery) (wire.KBHits, error) {
	a, err := k.ask(ctx, wire.KBAsk{Run: trial.Run, Search: &q})
	if err == nil && a.Hits == nil {
		err = trialProblem(http.StatusServiceUnavailable, wire.TrialAway, "the knowledge base gave something else than was asked")
	}
	if err != nil {
		return wire.KBHits{}, err
	}
	return *a.Hits, nil
}

// ReadKB implements trialapi.KB.
func (k *KB) ReadKB(ctx context.Context, trial trialapi.Ref, r wire.KBRead) (wire.KBText, error) {
	a, err := k.ask(ctx, wire.KBAsk{Run: trial.Run, Read: &r})
	if err == nil && a.Item == nil {
		err = trialProblem(http.StatusServiceUnavailable, wire.TrialAway, "the knowledge base gave something else than was asked")
	}
	if err != nil {
		return wire.KBText{}, err
	}
	return *a.Item, nil
}

func (k *KB) ask(ctx context.Context, ask wire.KBAsk) (wire.KBAnswered, error) {
	a, err := k.Queue.Ask(ctx, ask)
	switch {
	case errors.Is(err, kb.ErrNobody):
		return a, trialProblem(http.StatusServiceUnavailable, wire.TrialAway, "%v", err)
	case errors.Is(err, kb.ErrMany):
		return a, trialProblem(http.StatusTooManyRequests, wire.TrialTooMany, "%v", err)
	case err != nil:
		return a, err
	case a.Failed != "":
		return a, trialProblem(http.StatusServiceUnavailable, wire.TrialAway, "the knowledge base can't be asked now: %s", a.Failed)
	case a.Refused != "" && ask.Read != nil:
		return a, trialProblem(http.StatusNotFound, wire.TrialNotFound, "%s", a.Refused)
	case a.Refused != "":
		return a, trialProblem(http.StatusUnprocessableEntity, wire.TrialRefused, "%s", a.Refused)
	}
	return a, nil
}
