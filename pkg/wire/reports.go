package wire

import (
	"errors"
	"fmt"
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

// EncodePage signs the events raw, in canonical JSON, that come after the
// place (after, before) of the ledger. It trusts raw: the ledger checked each
// event as it was appended.
func EncodePage(s *Signer, rig, ledger, build string, after uint64, before Chain, raw [][]byte) ([]byte, error) {
	f := pageFrame{After: after, Build: build, ChainBefore: before, ChainAfter: before, Key: s.public, Ledger: ledger, Rig: rig}
	for _, b := range raw {
		f.ChainAfter = f.ChainAfter.Next(b)
	}
	if err := f.check(len(raw)); err != nil {
		return nil, fmt.Errorf("encoding the page of ledger %s after event %d: %w", clip(ledger), after, err)
	}
	return f.seal(s, raw), nil
}

// DecodePage reads a page and checks all of it that can be checked without
// knowing the rig: its form, each event, their order, the chain across them,
// and the signature by the key the page names. Whether that key, rig and
// place are right is the caller's to check. The page's parts alias b.
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
	f, sig, list, ok := quickFrame(b)
	if !ok {
		return readPage(b)
	}
	if err := f.verify(b, sig); err != nil {
		return nil, err
	}
	p := f.page()
	chain := f.ChainBefore
	for i := 0; i < len(list); {
		e, end, ok := quickEvent(list, i)
		if !ok || end < len(list) && list[end] != ',' || end+1 == len(list) || len(p.Events) == MaxPageEvents {
			return readPage(b)
		}
		raw := list[i:end:end]
		if err := p.take(e, raw, checkEvent(e, len(raw))); err != nil {
			return nil, err
		}
		chain = chain.Next(raw)
		i = end + 1
	}
	return p, p.checkChain(chain)
}

// readPage is decodePage by the general reader, which takes any page and
// knows what is wrong with one.
func readPage(b []byte) (*Page, error) {
	if depth(b) > maxDepth+3 {
		return nil, errTooDeep
	}
	f, err := readPageForm(b)
	if err != nil {
		return nil, err
	}
	if err := f.frame().verify(b, f.Sig); err != nil {
		return nil, err
	}
	p := f.frame().page()
	chain := f.ChainBefore
	for _, raw := range f.Events {
		e, err := DecodeEvent(raw)
		if err := p.take(e, raw, err); err != nil {
			return nil, err
		}
		chain = chain.Next(raw)
	}
	return p, p.checkChain(chain)
}

// take adds the next event, if reading it gave no error and its id follows.
func (p *Page) take(e Event, raw []byte, err error) error {
	if err != nil {
		return fmt.Errorf("entry %d of its events: %w", len(p.Events), err)
	}
	if want := p.Last() + 1; e.ID != want {
		return fmt.Errorf("entry %d of its events has id %d where %d is next", len(p.Events), e.ID, want)
	}
	p.Events, p.Raw = append(p.Events, e), append(p.Raw, raw)
	return nil
}

// checkChain says whether the events lead to where the page says.
func (p *Page) checkChain(chain Chain) error {
	if chain != p.ChainAfter {
		return fmt.Errorf("its chain_after is %s, where its events lead to %s", p.ChainAfter, chain)
	}
	return nil
}

// maxBuild bounds a build's version.
const maxBuild = 100

// PageID is the message id of a page of the ledger with the events after
// the place, up to last. On the bus a digest of the page follows it, so that no
// other rig can occupy the id of a page.
func PageID(ledger string, after, last uint64) string {
	return fmt.Sprintf("%s:%d-%d", ledger, after, last)
}
