package control

import (
	"context"

	"thermite/pkg/bus"
	"thermite/pkg/control/apply"
	"thermite/pkg/control/events"
	"thermite/pkg/control/live"
	"thermite/pkg/control/reports"
	"thermite/pkg/control/rigconfig"
	"thermite/pkg/control/service"
	"thermite/pkg/control/users"
	"thermite/pkg/wire"
)

// busState says how control and the bus are, for the service.
type busState struct {
	watch   *watch
	admin   *bus.Admin
	users   *users.Users
	writer  *events.Writer
	apply   *apply.Apply
	reports *reports.Consumer
	configs *rigconfig.Configs
	live    *live.View
}

// Link says whether control holds a connection to the bus.
func (b *busState) Link() service.Link { return b.watch.get() }

// Server asks the bus's server for its figures.
func (b *busState) Server(ctx context.Context) (service.Server, error) {
	s, err := b.admin.Server(ctx)
	if err != nil {
		return service.Server{}, err
	}
	streams := make([]service.Stream, len(s.Streams))
	for i, st := range s.Streams {
		streams[i] = stream(st)
	}
	return service.Server{
		ID: s.ID, Name: s.Name, Version: s.Version, StartedAt: wire.At(s.Started), MemoryBytes: s.MemBytes, Clients: s.Clients, Leafs: s.Leafs,
		SlowConsumers: s.SlowConsumers, InMessages: s.InMsgs, OutMessages: s.OutMsgs, InBytes: s.InBytes, OutBytes: s.OutBytes,
		StoreBytes: s.StoreUsed, StoreMaxBytes: s.StoreMax, Streams: streams,
	}, nil
}

func stream(s bus.StreamState) service.Stream {
	out := service.Stream{Name: s.Name, Messages: s.Messages, Bytes: s.Bytes, FirstSeq: s.First, LastSeq: s.Last,
		Consumers: make([]service.Consumer, len(s.Consumers))}
	for i, c := range s.Consumers {
		out.Consumers[i] = service.Consumer{Name: c.Name, Pending: c.Pending, Unacked: c.AckPending}
	}
	return out
}

// Users says what the server has taken of its users.
func (b *busState) Users() service.Users {
	s := b.users.State()
	u := service.Users{Rigs: s.Rigs, TakenAt: wire.At(s.TakenAt), ErrorFrom: wire.At(s.Since)}
	if s.Failing != nil {
		u.Error = s.Failing.Error()
	}
	return u
}

// Writer says how the writer of the events stream is.
func (b *busState) Writer() service.Writer {
	s := b.writer.State()
	return service.Writer{Published: s.Events, Batches: s.Batches, Waiting: s.Waiting, Refused: s.Refused, LastRefused: s.LastRefused,
		RefusedAt: wire.At(s.RefusedAt)}
}

// Apply says how the apply is.
func (b *busState) Apply() service.Apply {
	s := b.apply.State()
	state, why := partState(s.Why, s.Stopped)
	return service.Apply{State: state, Place: s.Place, Behind: s.Behind, Unread: s.Unread, Why: why, WhyWhen: wire.At(s.Since)}
}

// Reports says how the reading of the rigs' reports is.
func (b *busState) Reports() service.Reports {
	s := b.reports.State()
	state, _ := partState(s.Why, false)
	return service.Reports{State: state, Taken: s.Taken, Held: s.Held, Refused: s.Refused, ForNow: s.ForNow, Last: s.Last, LastAt: wire.At(s.LastAt)}
}

// Config says how the writing of the rigs' config is.
func (b *busState) Config() service.ConfigState {
	s := b.configs.State()
	out := service.ConfigState{Last: s.Last, LastAt: wire.At(s.LastAt)}
	for _, key := range wire.ConfigKeys {
		out.Keys = append(out.Keys, service.ConfigKeyState{Key: key, Written: s.Written[key], Failing: s.Failing[key]})
	}
	return out
}

// Live says how the live view is.
func (b *busState) Live() service.LiveState {
	s := b.live.State()
	state, why := partState(s.Waits, false)
	out := service.LiveState{State: state, Why: why, Messages: s.Messages, Lines: s.Lines, Again: s.Again, Missed: s.Missed, Watching: s.Watching,
		RefusedBy: make(map[string]uint64, len(live.Whys)), Last: s.Last, LastAt: wire.At(s.LastAt)}
	for _, why := range live.Whys {
		out.RefusedBy[string(why)] = s.Refused[why]
		out.Refused += s.Refused[why]
	}
	return out
}

// partState is how a part is that waits, or stopped, because of why.
func partState(why error, stopped bool) (state, words string) {
	switch {
	case why == nil:
		return service.PartWorking, ""
	case stopped:
		return service.PartStopped, why.Error()
	default:
		return service.PartWaiting, why.Error()
	}
}
