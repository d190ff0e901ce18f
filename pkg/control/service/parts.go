package service

import (
	"sync"
	"time"

	"thermite/pkg/bus"
	"thermite/pkg/control/events"
	"thermite/pkg/control/users"
	"thermite/pkg/wire"
)

// Watch is what control knows of its own connection to the bus. Its Told is
// what a bus.Dial's OnState calls.
type Watch struct {
	now func() time.Time

	mu   sync.Mutex
	link Link
}

// NewWatch gives a watch of a connection that has not come yet.
func NewWatch(now func() time.Time) *Watch {
	return &Watch{now: now, link: Link{State: LinkAway, Since: wire.At(now()), Error: "control has not reached the message bus yet"}}
}

// Told takes that the connection came, or went or could not be made.
func (w *Watch) Told(connected bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	state, words := LinkConnected, ""
	if !connected {
		state, words = LinkAway, "the connection ended"
		if err != nil {
			words = err.Error()
		}
	}
	since := w.link.Since
	if w.link.State != state {
		since = wire.At(w.now())
	}
	w.link = Link{State: state, Since: since, Error: words}
}

// Link says how the connection is.
func (w *Watch) Link() Link {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.link
}

// ServerOf shows what the bus's server says of itself.
func ServerOf(s bus.ServerState) Server {
	out := Server{ID: s.ID, Name: s.Name, Version: s.Version, StartedAt: wire.At(s.Started), MemoryBytes: s.MemBytes,
		Clients: s.Clients, Leafs: s.Leafs, SlowConsumers: s.SlowConsumers, InMessages: s.InMsgs, OutMessages: s.OutMsgs,
		InBytes: s.InBytes, OutBytes: s.OutBytes, StoreBytes: s.StoreUsed, StoreMaxBytes: s.StoreMax, Streams: make([]Stream, len(s.Streams))}
	for i, st := range s.Streams {
		out.Streams[i] = Stream{Name: st.Name, Messages: st.Messages, Bytes: st.Bytes, FirstSeq: st.First, LastSeq: st.Last,
			Consumers: make([]Consumer, len(st.Consumers))}
		for j, c := range st.Consumers {
			out.Streams[i].Consumers[j] = Consumer{Name: c.Name, Pending: c.Pending, Unacked: c.AckPending}
		}
	}
	return out
}

// WriterOf shows how the events' writer is.
func WriterOf(s events.WriterState) Writer {
	return Writer{Published: s.Events, Batches: s.Batches, Waiting: s.Waiting, Refused: s.Refused, LastRefused: s.LastRefused,
		RefusedAt: wire.At(s.RefusedAt)}
}

// UsersOf shows what the bus's server took of its users.
func UsersOf(s users.State) Users {
	out := Users{Rigs: s.Rigs, TakenAt: wire.At(s.TakenAt), ErrorFrom: wire.At(s.Since)}
	if s.Failing != nil {
		out.Error = s.Failing.Error()
	}
	return out
}
