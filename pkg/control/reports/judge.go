package reports

import (
	"errors"
	"fmt"
	"time"

	"thermite/pkg/control/rigs"
	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// Verdict is what control does with a page.
type Verdict int

// The verdicts.
const (
	// Take it: it is good, and may hold events that control does not.
	Take Verdict = iota + 1
	// Held already: it is good, and control holds all of it.
	Held
	// Refuse it for good: the page goes, and the audit log says why.
	Refuse
)

// The codes of a page that is refused for good.
const (
	CodeBadPage     = "bad_page"
	CodeNotForBus   = "not_for_bus"
	CodeWrongRig    = "wrong_rig"
	CodeUnknownRig  = "unknown_rig"
	CodeRetired     = "rig_retired"
	CodeKeyWaiting  = "report_key_waiting"
	CodeBuild       = "build_refused"
	CodeClockAhead  = "clock_ahead"
	CodeOlderLedger = "older_ledger"
	CodeGap         = "event_gap"
	CodeRewritten   = "ledger_rewritten"
	CodeNames       = "too_many_names"
)

// Facts are what a page is judged by.
type Facts struct {
	// Rig is the rig that sent it, by its subject, which the bus checked.
	Rig string
	// Now is control's clock.
	Now  time.Time
	Keys rigs.KeyState
	// Build is why control does not work with the page's build; nil: it does.
	Build error
	// Held is what control holds of the page's ledger; Known is false for a
	// ledger it never heard of. Current is the rig's current ledger.
	Held    store.Held
	Known   bool
	Current string
	// Fresh counts the names in the page that are new to control, and Left
	// those that the rig may still bring now.
	Fresh, Left int
}

// Decision is what becomes of a page.
type Decision struct {
	Verdict Verdict
	// Code and Words say why it is refused.
	Code, Words string
	// Expected is the held cursor, where the page does not follow it.
	Expected *uint64
	// FirstKey says that its key is the rig's first, and HoldKey that it is a
	// later one, which waits for the owner.
	FirstKey, HoldKey bool
	// Opens says that its ledger is one control never heard of.
	Opens bool
	// Adopts says that control does not know the ledger's chain where the
	// page starts, and takes the page's.
	Adopts bool
}

func refuse(code, format string, args ...any) Decision {
	return Decision{Verdict: Refuse, Code: code, Words: fmt.Sprintf(format, args...)}
}

// undecodable decides on a page that DecodePage refused.
func undecodable(err error) Decision {
	if errors.Is(err, wire.ErrNotForBus) {
		return refuse(CodeNotForBus, "%v", err)
	}
	return refuse(CodeBadPage, "%v", err)
}

// Judge decides on a page that DecodePage took. It is pure.
func Judge(p *wire.Page, f Facts) Decision {
	for _, check := range []func(*wire.Page, Facts) Decision{checkRig, checkKey, checkBuild, checkClock, checkPlace, checkChain, checkNames} {
		if d := check(p, f); d.Verdict != 0 {
			return d
		}
	}
	d := Decision{Verdict: Take, FirstKey: f.Keys.Accepted.IsZero(), Opens: !f.Known}
	d.Adopts = f.Known && !f.Held.HasChain && p.After == f.Held.Cursor
	if f.Known && p.Last() <= f.Held.At() {
		d.Verdict = Held
	}
	return d
}

// checkRig: the rig is who the bus says it is, and is one of control's.
func checkRig(p *wire.Page, f Facts) Decision {
	switch {
	case p.Rig != f.Rig:
		return refuse(CodeWrongRig, "the page is of rig %s, where rig %s sent it", p.Rig, f.Rig)
	case !f.Keys.Known:
		return refuse(CodeUnknownRig, "control knows no rig %s", f.Rig)
	case f.Keys.Retired:
		return refuse(CodeRetired, "rig %s is retired", f.Rig)
	}
	return Decision{}
}

// checkKey: the first key is taken, unless something else is wrong; a later
// one is the owner's to accept.
func checkKey(p *wire.Page, f Facts) Decision {
	if f.Keys.Accepted.IsZero() || f.Keys.Accepted == p.Key {
		return Decision{}
	}
	d := refuse(CodeKeyWaiting, "the page is signed by key %s, where control takes rig %s's pages by key %s: the new key waits for the owner",
		p.Key.Fingerprint(), f.Rig, f.Keys.Accepted.Fingerprint())
	d.HoldKey = true
	return d
}

func checkBuild(p *wire.Page, f Facts) Decision {
	if f.Build != nil {
		return refuse(CodeBuild, "control does not work with the harness's build %q: %v", p.Build, f.Build)
	}
	return Decision{}
}

// checkClock: no event that is new to control is of a time to come.
func checkClock(p *wire.Page, f Facts) Decision {
	latest := f.Now.Add(wire.MaxClockAhead)
	for _, e := range p.Events {
		if e.ID > f.Held.At() && e.Time.Time().After(latest) {
			return refuse(CodeClockAhead, "the rig's clock is ahead of control's: event %d (%s) is of %s, where control has %s",
				e.ID, e.Kind, e.Time, wire.At(f.Now))
		}
	}
	return Decision{}
}

// checkPlace: the page starts no later than what control holds, and what is
// new in it is of the current ledger.
func checkPlace(p *wire.Page, f Facts) Decision {
	at := f.Held.At()
	switch {
	case f.Known && p.Ledger != f.Current && p.Last() > at:
		return refuse(CodeOlderLedger, "ledger %s ended when ledger %s began: control holds it up to event %d and takes no more of it",
			p.Ledger, f.Current, at)
	case p.After > at:
		d := refuse(CodeGap, "a gap in the event stream: the page starts after event %d of ledger %s, where control holds it up to event %d",
			p.After, p.Ledger, at)
		d.Expected = &at
		return d
	}
	return Decision{}
}

// checkChain: at the held cursor the page's ledger is the one control holds.
// A page that ends before it, or starts after it at the floor, does not tell.
func checkChain(p *wire.Page, f Facts) Decision {
	cursor := f.Held.Cursor
	if !f.Known || !f.Held.HasChain || p.After > cursor || p.Last() < cursor {
		return Decision{}
	}
	chain := p.ChainBefore
	for _, raw := range p.Raw[:cursor-p.After] {
		chain = chain.Next(raw)
	}
	if chain != f.Held.Chain {
		return refuse(CodeRewritten, "ledger %s was rewritten: its chain at event %d is %s, where control holds %s",
			p.Ledger, cursor, chain, f.Held.Chain)
	}
	return Decision{}
}

// checkNames: a rig brings no more new ledgers, runs and kinds than control
// can keep.
func checkNames(p *wire.Page, f Facts) Decision {
	if f.Fresh > f.Left {
		return refuse(CodeNames, "the page after event %d has %d ledgers, runs and kinds that are new to control, of which rig %s may bring %d more now: it may bring one every %v",
			p.After, f.Fresh, f.Rig, f.Left, namesEvery)
	}
	return Decision{}
}
