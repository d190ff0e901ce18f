package bus

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// ServerState is what the server says of itself.
type ServerState struct {
	ID, Name, Version string
	Started           time.Time
	// MemBytes is the memory the server's process holds.
	MemBytes int64
	// Clients and Leafs count the connections that are there.
	Clients, Leafs int
	SlowConsumers  int64
	InMsgs         int64
	OutMsgs        int64
	InBytes        int64
	OutBytes       int64
	// StoreUsed and StoreMax are JetStream's store, in bytes.
	StoreUsed, StoreMax uint64
	// Streams are in their names' order.
	Streams []StreamState
	// Rigs are the rigs that have a connection now, by name.
	Rigs map[string]RigConnection
}

// StreamState is one stream.
type StreamState struct {
	Name        string
	Messages    uint64
	Bytes       uint64
	First, Last uint64
	// Consumers are those that stay, in their names' order.
	Consumers []ConsumerState
}

// ConsumerState is one consumer of a stream.
type ConsumerState struct {
	Name string
	// Pending counts the messages it has still to take, and AckPending those
	// it has taken and not acked.
	Pending    uint64
	AckPending int
}

// RigConnection is a rig's connection to the server, or its connections.
type RigConnection struct {
	// Msgs and Bytes count what it sent since it came.
	Msgs, Bytes int64
	// Since is when it came.
	Since time.Time
	// Leaf says that it is a leaf node's.
	Leaf bool
}

// Server asks the server for its figures.
func (a *Admin) Server(ctx context.Context) (ServerState, error) {
	var v server.Varz
	if err := a.ask(ctx, "VARZ", nil, &v); err != nil {
		return ServerState{}, err
	}
	var j server.JSInfo
	opts := server.JSzOptions{Account: AccountControl, Streams: true, Consumer: true, Config: true}
	if err := a.ask(ctx, "JSZ", opts, &j); err != nil {
		return ServerState{}, err
	}
	conns, err := a.connections(ctx)
	if err != nil {
		return ServerState{}, err
	}
	leafs := 0
	for _, c := range conns {
		if isLeaf(c) {
			leafs++
		}
	}
	return ServerState{
		ID: v.ID, Name: v.Name, Version: v.Version, Started: v.Start, MemBytes: v.Mem,
		Clients: len(conns) - leafs, Leafs: leafs, SlowConsumers: v.SlowConsumers,
		InMsgs: v.InMsgs, OutMsgs: v.OutMsgs, InBytes: v.InBytes, OutBytes: v.OutBytes,
		StoreUsed: j.Store, StoreMax: uint64(max(0, j.Config.MaxStore)),
		Streams: streamStates(j.AccountDetails), Rigs: rigConnections(conns),
	}, nil
}

func streamStates(accounts []*server.AccountDetail) []StreamState {
	var out []StreamState
	for _, account := range accounts {
		if account.Name != AccountControl {
			continue
		}
		for _, s := range account.Streams {
			st := StreamState{Name: s.Name, Messages: s.State.Msgs, Bytes: s.State.Bytes, First: s.State.FirstSeq, Last: s.State.LastSeq}
			for _, c := range s.Consumer {
				if c.Config == nil || c.Config.Durable == "" {
					continue // a reading that goes on now
				}
				st.Consumers = append(st.Consumers, ConsumerState{Name: c.Name, Pending: c.NumPending, AckPending: c.NumAckPending})
			}
			slices.SortFunc(st.Consumers, func(a, b ConsumerState) int { return cmp.Compare(a.Name, b.Name) })
			out = append(out, st)
		}
	}
	slices.SortFunc(out, func(a, b StreamState) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// isLeaf says that the connection is a leaf node's.
func isLeaf(c *server.ConnInfo) bool { return c.Kind == "Leafnode" }

func rigConnections(conns []*server.ConnInfo) map[string]RigConnection {
	out := make(map[string]RigConnection)
	for _, c := range conns {
		if c.Account == AccountControl || c.Account == AccountSystem || c.Account == "" {
			continue
		}
		// The oldest says since when the rig is there.
		r, more := out[c.Account]
		if !more || c.Start.Before(r.Since) {
			r.Since, r.Leaf = c.Start, isLeaf(c)
		}
		r.Msgs += c.InMsgs
		r.Bytes += c.InBytes
		out[c.Account] = r
	}
	return out
}

// Rigs gives the rigs that have a connection now, by name.
func (a *Admin) Rigs(ctx context.Context) (map[string]RigConnection, error) {
	conns, err := a.connections(ctx)
	if err != nil {
		return nil, err
	}
	return rigConnections(conns), nil
}
