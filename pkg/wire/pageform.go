package wire

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

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

func (f *pageForm) frame() pageFrame {
	return pageFrame{After: f.After, Build: f.Build, ChainAfter: f.ChainAfter, ChainBefore: f.ChainBefore, Key: f.Key,
		Ledger: f.Ledger, Rig: f.Rig}
}

// readPageForm reads a page with the general reader and checks what is
// around its events.
func readPageForm(b []byte) (*pageForm, error) {
	var f pageForm
	if err := DecodeStrict(b, &f); err != nil {
		return nil, err
	}
	again, err := json.Marshal(&f, jsontext.PreserveRawStrings(true), jsontext.CanonicalizeRawInts(false))
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(b, again) {
		return nil, fmt.Errorf("%w: it differs from its canonical form at byte %d", ErrNotCanonical, firstDifference(b, again))
	}
	frame := f.frame()
	return &f, frame.check(len(f.Events))
}

// pageFrame is what is around a page's events, but for the signature.
type pageFrame struct {
	After                   uint64
	Build                   string
	ChainAfter, ChainBefore Chain
	Key                     PublicKey
	Ledger, Rig             string
}

// check says what is wrong with a page of so many events.
func (f *pageFrame) check(events int) error {
	if err := CheckName("rig", f.Rig); err != nil {
		return err
	}
	if err := CheckLedger(f.Ledger); err != nil {
		return fmt.Errorf("%w: %w", ErrNotForBus, err)
	}
	switch {
	case events > MaxPageEvents:
		return fmt.Errorf("it has %d events, at most %d", events, MaxPageEvents)
	case f.After > MaxInteger-MaxPageEvents:
		return fmt.Errorf("after is %d, too large", f.After)
	case len(f.Build) > maxBuild:
		return fmt.Errorf("build has %d bytes, at most %d", len(f.Build), maxBuild)
	case !utf8.ValidString(f.Build):
		return errors.New("build is not UTF-8")
	case f.After == 0 && f.ChainBefore != ChainStart(f.Ledger):
		return fmt.Errorf("its chain_before is not the start of ledger %s", f.Ledger)
	}
	return nil
}

// page gives the page that the frame is around, without its events.
func (f pageFrame) page() *Page {
	return &Page{Rig: f.Rig, Ledger: f.Ledger, After: f.After, ChainBefore: f.ChainBefore, ChainAfter: f.ChainAfter,
		Build: f.Build, Key: f.Key, Events: []Event{}, Raw: [][]byte{}}
}

// What is fixed in a page's bytes, from the end of its events on.
const (
	afterEvents = `],"key":"`
	// sigTail is how many bytes `,"sig":"…"}` takes.
	sigTail = len(`,"sig":"`) + 86 + len(`"}`)
	// maxTail is the most that comes after the events.
	maxTail = len(afterEvents) + 43 + len(`","ledger":"","rig":""`) + 2*maxNameLength + sigTail
	// frameRoom is about what a page takes beside its events.
	frameRoom = 512
)

// verify checks the signature of a page's bytes. It comes before the events
// are read: what nobody signed costs no more than this.
func (f pageFrame) verify(page []byte, sig Signature) error {
	message := append(make([]byte, 0, len(page)), DomainPage.prefix()...)
	message = append(message, page[:len(page)-sigTail]...)
	return verifyMessage(DomainPage, f.Key, append(message, '}'), sig)
}

// seal writes the page and signs it.
func (f *pageFrame) seal(s *Signer, raw [][]byte) []byte {
	size := frameRoom + len(f.Build)
	for _, r := range raw {
		size += len(r) + 1
	}
	b := append(make([]byte, 0, size), DomainPage.prefix()...)
	from := len(b)
	b = strconv.AppendUint(append(b, `{"after":`...), f.After, 10)
	b, _ = jsontext.AppendQuote(append(b, `,"build":`...), f.Build) // checked to be UTF-8
	b = append(append(b, `,"chain_after":"`...), f.ChainAfter.String()...)
	b = append(append(b, `","chain_before":"`...), f.ChainBefore.String()...)
	b = append(b, `","events":[`...)
	for i, r := range raw {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, r...)
	}
	b = append(append(b, afterEvents...), f.Key.String()...)
	b = append(append(b, `","ledger":"`...), f.Ledger...)
	b = append(append(b, `","rig":"`...), f.Rig...)
	b = append(b, `"}`...)
	sig, _ := s.signMessage(b).MarshalText() // never an error
	b = append(append(b[:len(b)-1], `,"sig":"`...), sig...)
	return append(b, `"}`...)[from:]
}

// quickFrame reads what is around the events of a page in canonical form, and
// checks it. list is what is between the events' brackets.
func quickFrame(b []byte) (f pageFrame, sig Signature, list []byte, ok bool) {
	var i int
	f.After, i = quickUint(b, after(b, 0, `{"after":`))
	build, i := quickName(b, after(b, i, `,"build":`))
	chainAfter, i := plainString(b, after(b, i, `,"chain_after":`))
	chainBefore, i := plainString(b, after(b, i, `,"chain_before":`))
	if i = after(b, i, `,"events":[`); i < 0 {
		return f, sig, nil, false
	}
	from := max(i, len(b)-maxTail)
	end := bytes.LastIndex(b[from:], []byte(afterEvents))
	if end < 0 {
		return f, sig, nil, false
	}
	end += from
	key, next := plainString(b, end+len(afterEvents)-1)
	ledger, next := plainString(b, after(b, next, `,"ledger":`))
	rig, next := plainString(b, after(b, next, `,"rig":`))
	signature, next := plainString(b, after(b, next, `,"sig":`))
	if after(b, next, "}") != len(b) {
		return f, sig, nil, false
	}
	f.Build, f.Ledger, f.Rig = string(build), string(ledger), string(rig)
	if first(f.ChainAfter.UnmarshalText(chainAfter), f.ChainBefore.UnmarshalText(chainBefore), f.Key.UnmarshalText(key),
		sig.UnmarshalText(signature)) != nil || f.check(0) != nil {
		return f, sig, nil, false
	}
	return f, sig, b[i:end], true
}
