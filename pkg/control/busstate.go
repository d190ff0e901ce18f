package control

import (
	"context"

	"thermite/pkg/bus"
	"thermite/pkg/control/service"
	"thermite/pkg/control/users"
	"thermite/pkg/wire"
)

// busState is how control and the bus are, for the service.
type busState struct {
	link  *link
	admin *bus.Admin
	users *users.Users
}

// Link says whether control holds a connection to the bus.
func (b *busState) Link() service.Link {
	connected, since, err, _ := b.link.state.get()
	l := service.Link{State: service.LinkAway, Since: wire.At(since)}
	if connected {
		l.State = service.LinkConnected
	} else if err != nil {
		l.Error = err.Error()
	}
	return l
}

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
	u := service.Users{Rigs: s.Rigs, TakenAt: wire.At(s.TakenAt)}
	if s.Failing != nil {
		u.Error, u.ErrorFrom = s.Failing.Error(), wire.At(s.Since)
	}
	return u
}

func (b *busState) Writer() service.Writer   { return service.Writer{} }
func (b *busState) Apply() service.Apply     { return service.Apply{State: service.PartWorking} }
func (b *busState) Reports() service.Reports { return service.Reports{State: service.PartWorking} }
