package service

import (
	"math"

	"thermite/pkg/control/rigs"
	"thermite/pkg/wire"
)

// summary gives the rig's line in the list.
func (s *Service) summary(r rigs.Rig) RigSummary {
	sum := RigSummary{Name: r.Name, CreatedAt: wire.At(r.CreatedAt), RetiredAt: wire.At(r.RetiredAt), Connection: connection(r.Connection),
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
func connection(c rigs.Connection) Connection {
	return Connection{State: string(c.State), Since: wire.At(c.Since), Why: c.Why}
}

// keysOf gives the rig's public keys.
func keysOf(r rigs.Rig) RigKeys {
	var k RigKeys
	if !r.ReportKey.IsZero() {
		k.Report = &Key{Fingerprint: r.ReportKey.Fingerprint()}
	}
	if !r.WaitingKey.IsZero() {
		k.Waiting = &Key{Fingerprint: r.WaitingKey.Fingerprint(), Since: wire.At(r.WaitingSince)}
	}
	if r.BusPrint != "" {
		k.Bus = &Key{Fingerprint: r.BusPrint}
	}
	if !r.SealKey.IsZero() {
		k.Seal = &Key{Fingerprint: r.SealKey.Fingerprint()}
	}
	return k
}
