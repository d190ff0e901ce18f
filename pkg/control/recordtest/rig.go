package recordtest

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"thermite/pkg/wire"
)

// Began is the time of a test ledger's first event.
var Began = time.Date(2026, 11, 30, 12, 0, 0, 123456000, time.UTC)

// Rig is a rig's ledger and its harness's key, in memory.
type Rig struct {
	Name, Ledger, Build string
	Signer              *wire.Signer
	// Raw are the ledger's events in canonical JSON, from event 1, and Chain
	// its chain after each; Chain[0] is the start's.
	Raw   [][]byte
	Chain []wire.Chain

	t       testing.TB
	ledgers int
}

// NewRig gives a rig with an empty ledger and a key of its own.
func NewRig(t testing.TB, name string) *Rig {
	t.Helper()
	r := &Rig{Name: name, Build: "v1", t: t, Signer: Key(t, name)}
	r.Reset()
	return r
}

// Key gives the report key that the name stands for.
func Key(t testing.TB, name string) *wire.Signer {
	t.Helper()
	seed := bytes.Repeat([]byte("."), 32)
	copy(seed, name)
	s, err := wire.NewSigner(seed)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Reset opens a new ledger, as a full reset does.
func (r *Rig) Reset() {
	r.ledgers++
	r.Ledger = fmt.Sprintf("ledger%sx%d", bytes.ReplaceAll([]byte(r.Name), []byte("-"), nil), r.ledgers)
	r.Raw, r.Chain = nil, []wire.Chain{wire.ChainStart(r.Ledger)}
}

// Last is the ledger's last event.
func (r *Rig) Last() uint64 { return uint64(len(r.Raw)) }

// Append adds n events, each changed by change if there is one.
func (r *Rig) Append(n int, change func(*wire.Event)) *Rig {
	r.t.Helper()
	for range n {
		e := wire.Event{ID: r.Last() + 1, Kind: wire.KindAdvice, Actor: "controller", Body: []byte(`{"text":"","title":"t"}`)}
		e.Time = wire.At(Began.Add(time.Duration(e.ID) * time.Second))
		if change != nil {
			change(&e)
		}
		raw, err := wire.EncodeEvent(e)
		if err != nil {
			r.t.Fatal(err)
		}
		r.Raw = append(r.Raw, raw)
		r.Chain = append(r.Chain, r.Chain[len(r.Chain)-1].Next(raw))
	}
	return r
}

// Page gives the signed page of the events after one up to another.
func (r *Rig) Page(after, last uint64) []byte {
	r.t.Helper()
	b, err := wire.EncodePage(r.Signer, r.Name, r.Ledger, r.Build, after, r.Chain[after], r.Raw[after:last])
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

// All gives the page of the whole ledger.
func (r *Rig) All() []byte { r.t.Helper(); return r.Page(0, r.Last()) }

// Made makes an event that creates the run in the campaign.
func Made(run, campaign string) func(*wire.Event) {
	return func(e *wire.Event) {
		e.Kind, e.Run = wire.KindRunCreated, run
		e.Body = fmt.Appendf(nil, `{"campaign":%q,"kit":"k","title":"t"}`, campaign)
	}
}

// In makes an event of the run.
func In(run string) func(*wire.Event) {
	return func(e *wire.Event) { e.Run = run }
}
