package state

import (
	"thermite/pkg/harness/ledger"
	"thermite/pkg/wire"
)

// Removed gives the events of a space.remove: what is gone, if anything, and
// the command's own outcome, with what it came to in words.
func Removed(c wire.Command, run string, gone wire.SpaceRemoved, did string) ([]ledger.Draft, error) {
	var all []ledger.Draft
	if len(gone.Items) > 0 {
		var err error
		if all, err = RemovedBefore(run, gone); err != nil {
			return nil, err
		}
	}
	own, err := drafts(run, draft{controller, "command:" + c.ID, wire.CommandTaken{ID: c.ID, Command: c.Kind, Outcome: wire.CommandApplied, Why: Clip(did, maxWhy)}})
	return append(all, own...), err
}

// RemovedBefore gives the event of what a removal that was cut off had
// removed.
func RemovedBefore(run string, gone wire.SpaceRemoved) ([]ledger.Draft, error) {
	return drafts(run, draft{owner, "command:" + gone.Command, gone})
}
