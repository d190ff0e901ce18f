package events

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

// Bounds of a read.
const (
	// readBytes ends a page of events that is large, though it has few.
	readBytes = 16 << 20
	// readAtOnce is how many messages are asked of the server at once.
	readAtOnce = wire.MaxEventsRead
	// readTimeout ends a read, or a part of a long one, that the bus doesn't
	// answer.
	readTimeout = 20 * time.Second
	// eventsAStretch is how many events a stretch must have on average for the
	// stretches to be read one by one. A stretch costs a consumer of its own,
	// about as much time as so many events cost the server to find by their
	// subjects, or the client to skip.
	eventsAStretch = 50
)

// Where says where in the stream a rig's events are. Control's views are it.
type Where interface {
	// Last is the place of the last event that may be read.
	Last() uint64
	// Stretches gives where the rig's events are from place from to place
	// through, until they have that many events; 0 is all. It may give fewer,
	// yet none only when there is none.
	Stretches(rig string, from, through uint64, events int) []views.Stretch
	// Runs gives the runs that the rig's events from place from to place
	// through may name.
	Runs(rig string, from, through uint64) []string
}

// Reader reads the rigs' events from EVENTS: a rig's own subject and those of
// the runs its events name, and of these only what has the rig's header. Any
// number of goroutines may use it.
type Reader struct {
	js    jetstream.JetStream
	where Where
}

// NewReader makes a reader of the stream that js reaches.
func NewReader(js jetstream.JetStream, where Where) *Reader { return &Reader{js: js, where: where} }

// Query says which of a rig's events to read.
type Query struct {
	// After is the place after which to read.
	After uint64
	// Limit is the most events to give; 0 and any above wire.MaxEventsRead
	// are that.
	Limit int
	// Kinds, if any, are the only kinds to give.
	Kinds []string
	// Run, if not empty, is the only run whose events to give.
	Run string
}

// Stored is an event as the stream holds it.
type Stored struct {
	// Seq is its place.
	Seq uint64
	// Ledger and Report are its headers.
	Ledger, Report string
	// Raw is the event in canonical JSON.
	Raw []byte
}

// Page is what a read gave.
type Page struct {
	// Events are in the stream's order.
	Events []Stored
	// Next is the place to read on from: the last event's, or further when no
	// other event follows yet.
	Next uint64
	// More says that there may be more now.
	More bool
}

// Events gives the rig's events that the query names, up to the last that
// control's views have. A page ends early when it gets large, so it may hold
// fewer than asked for and More.
func (r *Reader) Events(ctx context.Context, rig string, q Query) (Page, error) {
	if q.Limit <= 0 || q.Limit > wire.MaxEventsRead {
		q.Limit = wire.MaxEventsRead
	}
	through := r.where.Last()
	page := Page{Events: []Stored{}, Next: max(q.After, through)}
	size, full := 0, false
	take := func(m Stored) (more bool, err error) {
		if wants, err := q.wants(m); err != nil || !wants {
			return true, err
		}
		page.Events = append(page.Events, m)
		size += len(m.Raw)
		full = len(page.Events) == q.Limit || size >= readBytes
		return !full, nil
	}
	// One plan may not be enough: it covers only so much, and a policy may
	// have removed events that it counted.
	for after := q.After; !full && after < through; {
		scans := r.plan(rig, after, q, through)
		if len(scans) == 0 {
			break
		}
		for _, s := range scans {
			if err := r.scan(ctx, rig, s, q.Limit-len(page.Events), take); err != nil {
				return Page{}, fmt.Errorf("reading the events of rig %s after place %d: %w", rig, q.After, err)
			}
			if full {
				break
			}
			after = s.Last
		}
	}
	if full {
		page.Next, page.More = page.Events[len(page.Events)-1].Seq, true
	}
	return page, nil
}

// wants says whether the query asks for m, which is on a subject that it
// asks for. A rig's own subject also has events of runs that are not the
// rig's, so a run is looked up in the event.
func (q *Query) wants(m Stored) (bool, error) {
	if q.Run == "" {
		return true, nil
	}
	e, err := wire.ReadEvent(m.Raw)
	return e.Run == q.Run, err
}

// Ledger gives do each event of the rig's ledger from place from to place
// through, in order. It stops at do's error.
func (r *Reader) Ledger(ctx context.Context, rig, ledger string, from, through uint64, do func(views.Message) error) error {
	take := func(m Stored) (more bool, err error) {
		if m.Ledger != ledger {
			return true, nil
		}
		e, err := wire.ReadEvent(m.Raw)
		if err != nil {
			return false, err
		}
		return true, do(views.Message{Seq: m.Seq, Rig: rig, Ledger: ledger, Report: m.Report, Event: e, Raw: m.Raw})
	}
	for after := from - 1; after < through; {
		scans := r.plan(rig, after, Query{}, through)
		if len(scans) == 0 {
			break
		}
		for _, s := range scans {
			if err := r.scan(ctx, rig, s, math.MaxInt, take); err != nil {
				return fmt.Errorf("reading ledger %s of rig %s: %w", ledger, rig, err)
			}
			after = s.Last
		}
	}
	return nil
}

// scan is a part of the stream to read: all of it, or what is on the
// subjects; and of that what lies in the stretches.
type scan struct {
	views.Stretch
	subjects  []string
	stretches []views.Stretch
}

// plan says how to read what the query asks for after the place. What the rig published is
// read stretch by stretch, as long as these are long enough; what is sparse,
// or only of some kinds or one run, is found by its subjects.
func (r *Reader) plan(rig string, after uint64, q Query, through uint64) []scan {
	plain := len(q.Kinds) == 0 && q.Run == ""
	events := 0
	if plain {
		events = q.Limit
	}
	stretches := r.where.Stretches(rig, after+1, through, events)
	if len(stretches) == 0 {
		return nil
	}
	var have uint64
	for _, s := range stretches {
		have += s.Last - s.First + 1
	}
	if plain && have >= eventsAStretch*uint64(len(stretches)) {
		scans := make([]scan, len(stretches))
		for i, s := range stretches {
			scans[i] = scan{Stretch: s, stretches: stretches[i : i+1]}
		}
		return scans
	}
	all := views.Stretch{First: stretches[0].First, Last: stretches[len(stretches)-1].Last}
	return []scan{{all, r.subjects(rig, q, all), stretches}}
}

// subjects are those that the events the query asks for may have.
func (r *Reader) subjects(rig string, q Query, s views.Stretch) []string {
	runs := r.where.Runs(rig, s.First, s.Last)
	if q.Run != "" {
		runs = []string{q.Run}
	}
	kinds := slices.Compact(slices.Sorted(slices.Values(q.Kinds)))
	if len(kinds) == 0 {
		kinds = []string{">"}
	}
	var list []string
	for _, kind := range kinds {
		list = append(list, wire.RigEventSubject(rig, kind))
		for _, run := range runs {
			if kind != wire.KindQueue {
				list = append(list, wire.RunEventSubject(run, kind))
			}
			if kind == wire.KindQueue || kind == ">" {
				list = append(list, wire.RunQueueSubject(run, "*"))
			}
		}
	}
	return list
}
