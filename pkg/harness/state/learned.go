package state

import (
	"net/http"

	"thermite/pkg/harness/ledger"
	"thermite/pkg/wire"
)

// Learned gives the event of an item that a trial writes into the knowledge
// base; else the *wire.TrialProblem that says why there is none.
func (s *State) Learned(run string, trial uint64, item wire.KBItem) ([]ledger.Draft, error) {
	r := s.Run(run)
	if r == nil || !r.Active() || r.Trial(trial) == nil {
		return nil, problem(http.StatusGone, wire.TrialStopping, "trial %d of run %s has ended", trial, run)
	}
	if err := item.Check(); err != nil {
		return nil, problem(http.StatusBadRequest, wire.TrialBadBody, "%v", err)
	}
	return r.drafts(draft{About("trial", trial), "kb:" + item.Slot + "/" + item.Key, item})
}
