package trialapi

import (
	"context"
	"io"
	"net/http"

	"thermite/pkg/wire"
)

// KB is the knowledge base, as a trial's worker reaches it. An error that is,
// or wraps, a *wire.TrialProblem is the answer as it is.
type KB interface {
	// PutFile keeps a file, which must have the SHA-256, for an item to name.
	PutFile(ctx context.Context, sha256 string, r io.Reader) error
	// WriteItem has the item in the ledger, in the trial's own slot.
	WriteItem(ctx context.Context, trial Ref, w wire.KBWrite) (wire.KBWritten, error)
	// SearchKB and ReadKB ask control, which knows what the run may read.
	SearchKB(ctx context.Context, trial Ref, q wire.KBQuery) (wire.KBHits, error)
	ReadKB(ctx context.Context, trial Ref, r wire.KBRead) (wire.KBText, error)
}

// Bounds of a trial's items: how many a second in the long run and at once,
// and how large one's body may be.
const (
	itemsEach   = 1
	itemsAtOnce = 20
	maxItemBody = 6*wire.MaxKBTextBytes + maxBody
)

// noKB is the answer of a harness without one.
func (s *Server) kb() (KB, error) {
	if s.cfg.KB == nil {
		return nil, problem(wire.TrialNotFound, "this harness has no knowledge base")
	}
	return s.cfg.KB, nil
}

// putKBFile keeps a file.
func (s *Server) putKBFile(c call, rest string) (answer, error) {
	kb, err := s.kb()
	if err != nil {
		return answer{}, err
	}
	if err := query(c).none(); err != nil {
		return answer{}, err
	}
	if !wire.IsSHA256(rest) {
		return answer{}, problem(wire.TrialNotFound, "%q is no SHA-256 in hex, 64 digits in lower case", clip(rest))
	}
	if c.ContentLength > wire.MaxKBFileBytes {
		return answer{}, &wire.TrialProblem{Status: http.StatusRequestEntityTooLarge, Code: wire.TrialBadBody, Detail: "the file is too large for the knowledge base"}
	}
	if err := c.trial.stopping(); err != nil {
		return answer{}, err
	}
	if err := kb.PutFile(c.Context(), rest, c.Body); err != nil {
		return answer{}, s.fault(c, err)
	}
	return answer{status: http.StatusNoContent}, nil
}

// postKBItem writes an item.
func (s *Server) postKBItem(c call, _ string) (answer, error) {
	kb, err := s.kb()
	if err != nil {
		return answer{}, err
	}
	var item wire.KBWrite
	if err := readMost(c, maxItemBody, &item); err != nil {
		return answer{}, err
	}
	// The slot and the size are not the worker's to say; these pass.
	if err := item.Item("trial-1", 1).Check(); err != nil {
		return answer{}, problem(wire.TrialBadBody, "%v", err)
	}
	if err := c.trial.stopping(); err != nil {
		return answer{}, err
	}
	if !c.trial.items.Allow() {
		return answer{}, problem(wire.TrialTooMany, "more than %d items at once, or %d a second: wait a moment", itemsAtOnce, itemsEach)
	}
	done, err := kb.WriteItem(c.Context(), c.trial.ref(), item)
	if err != nil {
		return answer{}, s.fault(c, err)
	}
	return answer{status: http.StatusCreated, value: done}, nil
}

// postKBSearch searches.
func (s *Server) postKBSearch(c call, _ string) (answer, error) {
	kb, err := s.kb()
	if err != nil {
		return answer{}, err
	}
	var q wire.KBQuery
	if err := read(c, &q); err != nil {
		return answer{}, err
	}
	if err := q.Check(); err != nil {
		return answer{}, problem(wire.TrialBadBody, "%v", err)
	}
	hits, err := kb.SearchKB(c.Context(), c.trial.ref(), q)
	if err != nil {
		return answer{}, s.fault(c, err)
	}
	return answer{status: http.StatusOK, value: hits}, nil
}

// getKBItem reads an item.
func (s *Server) getKBItem(c call, rest string) (answer, error) {
	kb, err := s.kb()
	if err != nil {
		return answer{}, err
	}
	q := query(c)
	r := wire.KBRead{ID: rest, Offset: q.number("offset")}
	if err := q.done(); err != nil {
		return answer{}, err
	}
	if err := r.Check(); err != nil {
		return answer{}, problem(wire.TrialNotFound, "%v", err)
	}
	text, err := kb.ReadKB(c.Context(), c.trial.ref(), r)
	if err != nil {
		return answer{}, s.fault(c, err)
	}
	return answer{status: http.StatusOK, value: text}, nil
}
