package service

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"thermite/pkg/control/events"
	"thermite/pkg/wire"
)

// RigEvents gives a page of a rig's events, in the stream's order. With a
// wait it answers as soon as there is an event, or with none when the wait is
// over.
func (s *Service) RigEvents(ctx context.Context, c Caller, rig string, q EventsQuery) (EventsPage, error) {
	if err := c.Check(MayRead); err != nil {
		return EventsPage{}, err
	}
	if err := q.check(); err != nil {
		return EventsPage{}, err
	}
	if _, err := s.rig(ctx, rig); err != nil {
		return EventsPage{}, err
	}
	page, err := s.readEvents(ctx, rig, q)
	if err != nil || q.Wait <= 0 || len(page.Events) > 0 || page.More {
		return page, err
	}
	done, err := s.limits.wait(c.id())
	if err != nil {
		return EventsPage{}, err
	}
	defer done()
	return s.waitEvents(ctx, rig, q, page)
}

// waitEvents waits for the first event after the empty page.
func (s *Service) waitEvents(ctx context.Context, rig string, q EventsQuery, page EventsPage) (EventsPage, error) {
	wait, cancel := context.WithTimeout(ctx, q.Wait)
	defer cancel()
	for len(page.Events) == 0 && !page.More {
		next, err := strconv.ParseUint(page.Next, 10, 64)
		if err != nil {
			return EventsPage{}, fmt.Errorf("waiting for events of rig %s: %w", rig, err)
		}
		if err := s.config.Views.Wait(wait, rig, next); err != nil {
			if ctx.Err() != nil {
				return EventsPage{}, cancelled(ctx.Err())
			}
			return page, nil // the wait is over, and there is none
		}
		q.After = next
		if page, err = s.readEvents(ctx, rig, q); err != nil {
			return EventsPage{}, err
		}
	}
	return page, nil
}

func (q *EventsQuery) check() error {
	switch {
	case q.After > wire.MaxInteger:
		return invalid("query.after", errors.New("after must be the next of another page, or the seq of an event"))
	case q.Limit < 0 || q.Limit > wire.MaxEventsRead:
		return invalid("query.limit", fmt.Errorf("limit must be 1 to %d", wire.MaxEventsRead))
	case q.Wait < 0 || q.Wait > MaxWait:
		return invalid("query.wait", fmt.Errorf("wait must be 0s to %v", MaxWait))
	}
	for _, kind := range q.Kinds {
		if err := wire.CheckKind(kind); err != nil {
			return invalid("query.kind", err)
		}
	}
	if q.Run != "" {
		if err := wire.CheckName("run", q.Run); err != nil {
			return invalid("query.run", err)
		}
	}
	return nil
}

// readEvents reads a page from the stream.
func (s *Service) readEvents(ctx context.Context, rig string, q EventsQuery) (EventsPage, error) {
	done, err := s.limits.read(ctx)
	if err != nil {
		return EventsPage{}, err
	}
	defer done()
	got, err := s.config.Events.Events(ctx, rig, events.Query{After: q.After, Limit: q.Limit, Kinds: q.Kinds, Run: q.Run})
	if err != nil {
		return EventsPage{}, s.busError(ctx, err)
	}
	page := EventsPage{Rig: rig, Events: make([]Event, len(got.Events)), Next: strconv.FormatUint(got.Next, 10), More: got.More}
	for i, m := range got.Events {
		page.Events[i] = Event{Seq: m.Seq, Ledger: m.Ledger, Event: m.Raw}
	}
	return page, nil
}

// busError says what failed at the bus in a caller's words, when it is away.
func (s *Service) busError(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return cancelled(err)
	case s.config.Bus.Link().State != LinkConnected:
		return &Error{Code: CodeBusAway, Text: "the message bus is away, so the events can't be read: try again in a while",
			RetryAfter: 5 * time.Second, Cause: err}
	default:
		return err
	}
}
