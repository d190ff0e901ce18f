// Package events is EVENTS, control's record: the one writer that publishes
// the rigs' events to it, the reading of all of it for the apply, and the
// reading of one rig's events for pages, REST and folds of earlier ledgers.
//
//	reports ─▶ Writer ─▶ EVENTS ─┬─▶ Stream ─▶ apply
//	                             └─▶ Reader ─▶ REST, views
//
// Guarantees: an event is published once, in its ledger's order, a batch whole
// or not at all. A rig's reading gives only what has the rig's header, each
// event at its place, and looks at as little of other rigs' as it can.
package events
