package wire

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Page is a run of a ledger's events, signed by the harness: how a rig
// reports. It may be empty, and then says only that the ledger stands at
// After.
//
// A page holds no time and no random value, so the same events after the
// same place always give the same bytes, and the bus keeps a page published
// twice once.
type Page struct {
	Rig    string
	Ledger string
	// After is the id of the last event before the page; 0 at a ledger's
	// start.
	After uint64
	// Events are consecutive, the first with id After+1.
	Events []Event
	// Raw are the events in canonical JSON, as they are hashed and stored:
	// Raw[i] is Events[i].
	Raw [][]byte
	// ChainBefore and ChainAfter are the ledger's chain around the page.
	ChainBefore, ChainAfter Chain
	// Build is the version of the harness that signed the page.
	Build string
	// Key is the harness's report key.
	Key PublicKey
}

// Last is the id of the last event that the page covers.
func (p *Page) Last() uint64 { return p.After + uint64(len(p.Events)) }

// ErrBadPage is wrapped by every error of DecodePage.
var ErrBadPage = errors.New("bad page")

// pageForm is a page on the wire. The fields are in canonical order and sig
// comes last, so that the signed bytes are the page's own, up to sig.
type pageForm struct {
	After       uint64           `json:"after"`
	Build       string           `json:"build"`
	ChainAfter  Chain            `json:"chain_after"`
	ChainBefore Chain            `json:"chain_before"`
	Events      []jsontext.Value `json:"events"`
	Key         PublicKey        `json:"key"`
	Ledger      string           `json:"ledger"`
	Rig         string           `json:"rig"`
	Sig         Signature        `json:"sig"`
}

// sigTail is how many bytes `,"sig":"…"}` takes.
const sigTail = len(`,"sig":"`) + 86 + len(`"}`)

// signedBytes cuts the signature off a page's bytes.
func signedBytes(page []byte) []byte {
	cut := bytes.Clone(page[:len(page)-sigTail])
	return append(cut, '}')
}

// EncodePage signs the events raw, in canonical JSON, that come after the
// place (after, before) of the ledger. It trusts raw: the ledger checked each
// event as it was appended.
func EncodePage(s *Signer, rig, ledger, build string, after uint64, before Chain, raw [][]byte) ([]byte, error) {
	f := pageForm{After: after, Build: build, ChainBefore: before, ChainAfter: before, Events: make([]jsontext.Value, len(raw)),
		Key: s.public, Ledger: ledger, Rig: rig}
	for i, b := range raw {
		f.Events[i] = b
		f.ChainAfter = f.ChainAfter.Next(b)
	}
	b, err := encodePageForm(&f)
	if err != nil {
		return nil, fmt.Errorf("encoding the page of ledger %s after event %d: %w", ledger, after, err)
	}
	f.Sig = s.sign(DomainPage, signedBytes(b))
	b, err = encodePageForm(&f)
	if err != nil {
		return nil, fmt.Errorf("encoding the page of ledger %s after event %d: %w", ledger, after, err)
	}
	return b, nil
}

// encodePageForm writes the form with its events' bytes as they are.
func encodePageForm(f *pageForm) ([]byte, error) {
	return json.Marshal(f, jsontext.PreserveRawStrings(true), jsontext.CanonicalizeRawInts(false))
}

// DecodePage reads a page and checks all of it that can be checked without
// knowing the rig: its form, each event, their order, the chain across them,
// and the signature by the key the page names. Whether that key, rig and
// place are right is the caller's to check.
func DecodePage(b []byte) (*Page, error) {
	p, err := decodePage(b)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadPage, err)
	}
	return p, nil
}

func decodePage(b []byte) (*Page, error) {
	if len(b) > MaxBusMessage {
		return nil, fmt.Errorf("it has %d bytes, at most %d", len(b), MaxBusMessage)
	}
	var f pageForm
	if err := DecodeStrict(b, &f); err != nil {
		return nil, err
	}
	if err := checkPageForm(&f, b); err != nil {
		return nil, err
	}
	// The signature is checked before the events are read: what nobody
	// signed costs no more than this.
	if err := verify(DomainPage, f.Key, signedBytes(b), f.Sig); err != nil {
		return nil, err
	}
	p := &Page{Rig: f.Rig, Ledger: f.Ledger, After: f.After, ChainBefore: f.ChainBefore, ChainAfter: f.ChainAfter,
		Build: f.Build, Key: f.Key, Events: make([]Event, len(f.Events)), Raw: make([][]byte, len(f.Events))}
	chain := f.ChainBefore
	for i, raw := range f.Events {
		e, err := DecodeEvent(raw)
		if err != nil {
			return nil, fmt.Errorf("entry %d of its events: %w", i, err)
		}
		if want := f.After + uint64(i) + 1; e.ID != want {
			return nil, fmt.Errorf("entry %d of its events has id %d where %d is next", i, e.ID, want)
		}
		chain = chain.Next(raw)
		p.Events[i], p.Raw[i] = e, raw
	}
	if chain != f.ChainAfter {
		return nil, fmt.Errorf("its chain_after is %s, where its events lead to %s", f.ChainAfter, chain)
	}
	return p, nil
}

// checkPageForm checks what is around the events.
func checkPageForm(f *pageForm, b []byte) error {
	again, err := encodePageForm(f)
	if err != nil {
		return err
	}
	if !bytes.Equal(b, again) {
		return fmt.Errorf("%w: it differs from its canonical form at byte %d", ErrNotCanonical, firstDifference(b, again))
	}
	if err := CheckName("rig", f.Rig); err != nil {
		return err
	}
	if err := CheckLedger(f.Ledger); err != nil {
		return fmt.Errorf("%w: %w", ErrNotForBus, err)
	}
	switch {
	case len(f.Events) > MaxPageEvents:
		return fmt.Errorf("it has %d events, at most %d", len(f.Events), MaxPageEvents)
	case f.After > MaxInteger-MaxPageEvents:
		return fmt.Errorf("after is %d, too large", f.After)
	case len(f.Build) > maxBuild:
		return fmt.Errorf("build has %d bytes, at most %d", len(f.Build), maxBuild)
	case f.After == 0 && f.ChainBefore != ChainStart(f.Ledger):
		return fmt.Errorf("its chain_before is not the start of ledger %s", f.Ledger)
	}
	return nil
}

// maxBuild bounds a build's version.
const maxBuild = 100

// PageID is the message id of a page of the ledger with the events after
// the place, up to last. A ledger's id is random and known to its rig and
// control alone, so no other rig can occupy an id of its pages.
func PageID(ledger string, after, last uint64) string {
	return fmt.Sprintf("%s:%d-%d", ledger, after, last)
}
