package service

import (
	"math"

	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// summary gives the rig's line in the list.
func (s *Service) summary(r store.Rig) RigSummary {
	sum := RigSummary{Name: r.Name, CreatedAt: wire.At(r.CreatedAt), RetiredAt: wire.At(r.RetiredAt), Connection: s.connection(r),
		Build: r.Figures.Build, FiguresAt: wire.At(r.FiguresAt), KeyWaiting: !r.WaitingKey.IsZero(),
		Runs: len(s.config.Views.Runs(r.Name, 0, math.MaxUint64))}
	if ledgers := s.config.Views.Ledgers(r.Name); len(ledgers) > 0 {
		now := ledgers[len(ledgers)-1]
		sum.Ledger = now.Ledger
		if now.Last != nil {
			sum.LastCursor, sum.LastSeq, sum.LastEvent = now.Last.ID, now.Last.Seq, now.Last.Time
		}
	}
	if f := r.Figures.Relay; f.Ledger == sum.Ledger && f.LedgerLast > sum.LastCursor {
		sum.Behind = f.LedgerLast - sum.LastCursor
	}
	return sum
}

// connection says how the rig is on the bus.
func (s *Service) connection(r store.Rig) Connection {
	switch {
	case r.Retired():
		return Connection{State: ConnectionRetired, Since: wire.At(r.RetiredAt), Why: "it is retired"}
	case r.KeysMissingAt.After(r.RegisteredAt):
		return Connection{State: ConnectionBroken, Since: wire.At(r.KeysMissingAt),
			Why: "its supervisor called with no keys for the message bus: it is one that reports over HTTP, which control does not take"}
	case r.BusKey == "":
		return Connection{State: ConnectionNew, Since: wire.At(r.CreatedAt), Why: "its supervisor has not called yet"}
	}
	on, since, known := s.config.Connections.Rig(r.Name)
	switch {
	case !known:
		return Connection{State: ConnectionUnknown, Why: "the message bus is away, so control can't tell"}
	case on:
		return Connection{State: ConnectionOn, Since: wire.At(since)}
	default:
		return Connection{State: ConnectionBroken, Since: wire.At(since), Why: "its supervisor is not on the message bus"}
	}
}

// keysOf gives the rig's public keys.
func keysOf(r store.Rig) RigKeys {
	var k RigKeys
	if !r.ReportKey.IsZero() {
		k.Report = &Key{Fingerprint: r.ReportKey.Fingerprint()}
	}
	if !r.WaitingKey.IsZero() {
		k.Waiting = &Key{Fingerprint: r.WaitingKey.Fingerprint(), Since: wire.At(r.WaitingSince)}
	}
	if r.BusKey != "" {
		k.Bus = &Key{Fingerprint: r.BusKey}
	}
	if !r.SealKey.IsZero() {
		k.Seal = &Key{Fingerprint: r.SealKey.Fingerprint()}
	}
	return k
}
