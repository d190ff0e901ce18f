package views

import (
	"bytes"
	"slices"

	"thermite/pkg/wire"
)

// mostRecent is how many of the newest events a view shows.
const mostRecent = 200

// How large a body may be to be put in words later, and to be put in words
// at all if it holds a text that no page reads.
const (
	laterBody = 1 << 10
	mostBody  = 8 << 10
)

// ring keeps the newest events, each as one line. Words cost more than the
// rest of a fold, and of most events nobody ever sees them, so a small body
// waits for the first snapshot that shows it.
type ring struct {
	slots []slot
	// next is the slot of the next event once all are used.
	next int
}

// slot is one event of the ring.
type slot struct {
	line Line
	// body waits to be put in words; empty when line.Summary is complete.
	body []byte
}

func (r *ring) add(m Message, unread bool) {
	var s *slot
	if len(r.slots) < mostRecent {
		r.slots = append(r.slots, slot{})
		s = &r.slots[len(r.slots)-1]
	} else {
		s = &r.slots[r.next]
		r.next = (r.next + 1) % mostRecent
	}
	e := m.Event
	s.line = Line{Mark: mark(m), Kind: e.Kind, Actor: e.Actor, Run: e.Run, Subject: e.Subject, Unread: unread}
	s.body = s.body[:0]
	if len(e.Body) <= laterBody {
		s.body = append(s.body, e.Body...)
		return
	}
	s.line.Summary, s.line.Unread = summary(e, unread)
}

// lines gives the events, the newest first.
func (r *ring) lines() []Line {
	list := make([]Line, 0, len(r.slots))
	for i := range r.slots {
		s := &r.slots[(r.next+i)%len(r.slots)]
		if len(s.body) > 0 {
			e := wire.Event{ID: s.line.ID, Time: s.line.Time, Kind: s.line.Kind, Actor: s.line.Actor, Run: s.line.Run,
				Subject: s.line.Subject, Body: bytes.Clone(s.body)}
			s.line.Summary, s.line.Unread = summary(e, s.line.Unread)
			s.body = s.body[:0]
		}
		list = append(list, s.line)
	}
	slices.Reverse(list)
	return list
}
