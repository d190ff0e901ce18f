package wire

import (
	"fmt"
	"slices"
)

// The space ask: every 10 minutes, and after each removal, a supervisor says
// what its rig keeps of the kinds that a command space.remove removes.

// The kinds of what a rig keeps.
const (
	// SpaceBuild is a champion's build that the judge compares with.
	SpaceBuild = "build"
	// SpaceSetup is what a kit's setup made: its tools and public cases.
	SpaceSetup = "setup"
	// SpaceKit is a kit's files.
	SpaceKit = "kit"
	// SpaceRepository is a run's repository, which lanes are cloned from.
	SpaceRepository = "repository"
	// SpacePatches are attempts' patches of one run.
	SpacePatches = "patches"
)

// SpaceKinds are all of them.
var SpaceKinds = []string{SpaceBuild, SpaceSetup, SpaceKit, SpaceRepository, SpacePatches}

// SpaceItem is one thing that a rig keeps.
type SpaceItem struct {
	// Kind is one of SpaceKinds.
	Kind string `json:"kind"`
	// Run is the run that it is of, the newest if it is of many; empty if it
	// is of none of the ledger.
	Run string `json:"run,omitzero"`
	// Name tells it from others of its kind and run.
	Name string `json:"name"`
	// At is when it was used last, or made.
	At Time `json:"at"`
	// Bytes is what it takes on the disk, and Files how many files it has.
	Bytes uint64 `json:"bytes"`
	Files uint64 `json:"files"`
	// Open says that a run needs it that goes on or has an attempt to judge,
	// and Champion that a champion does: neither is removed.
	Open     bool `json:"open,omitzero"`
	Champion bool `json:"champion,omitzero"`
	// Busy says that something uses it at this moment: it is not removed now.
	Busy bool `json:"busy,omitzero"`
}

// Removable says whether a space.remove may remove it.
func (i SpaceItem) Removable() bool { return !i.Open && !i.Champion && !i.Busy }

// SpaceReport is what a rig keeps.
type SpaceReport struct {
	Ledger string `json:"ledger"`
	// At is when the harness looked.
	At Time `json:"at"`
	// Items are the largest, at most MaxSpaceItems, largest first; LeftOut
	// counts the others, and LeftOutBytes what they take.
	Items        []SpaceItem `json:"items"`
	LeftOut      uint64      `json:"left_out,omitzero"`
	LeftOutBytes uint64      `json:"left_out_bytes,omitzero"`
	// DiskBytes and DiskFree are of the file system that the work is on.
	DiskBytes uint64 `json:"disk_bytes,omitzero"`
	DiskFree  uint64 `json:"disk_free,omitzero"`
}

// Check says what is wrong with the item, by its field.
func (i SpaceItem) Check() error {
	if i.Run != "" {
		if err := CheckName("run", i.Run); err != nil {
			return err
		}
	}
	if i.At.IsZero() {
		return fmt.Errorf("at is missing")
	}
	return first(oneOf("kind", i.Kind, SpaceKinds), some("name", i.Name, maxName), count("bytes", i.Bytes), count("files", i.Files))
}

// Check says what is wrong with the report, by its field.
func (r SpaceReport) Check() error {
	if r.At.IsZero() {
		return fmt.Errorf("at is missing")
	}
	if len(r.Items) > MaxSpaceItems {
		return fmt.Errorf("items has %d entries, at most %d: the report is too large", len(r.Items), MaxSpaceItems)
	}
	for n, i := range r.Items {
		if err := i.Check(); err != nil {
			return fmt.Errorf("items[%d].%w", n, err)
		}
	}
	return first(CheckLedger(r.Ledger), count("left_out", r.LeftOut), count("left_out_bytes", r.LeftOutBytes),
		count("disk_bytes", r.DiskBytes), count("disk_free", r.DiskFree))
}

// NewSpaceReport gives a report of the items, which it sorts and bounds.
func NewSpaceReport(ledger string, at Time, items []SpaceItem) SpaceReport {
	slices.SortStableFunc(items, func(a, b SpaceItem) int {
		switch {
		case a.Bytes > b.Bytes:
			return -1
		case a.Bytes < b.Bytes:
			return 1
		}
		return 0
	})
	r := SpaceReport{Ledger: ledger, At: at, Items: items[:min(len(items), MaxSpaceItems)]}
	for _, i := range items[len(r.Items):] {
		r.LeftOut++
		r.LeftOutBytes += i.Bytes
	}
	return r
}

// EncodeSpaceReport gives the report as JSON, after its check.
func EncodeSpaceReport(r SpaceReport) ([]byte, error) {
	if err := r.Check(); err != nil {
		return nil, fmt.Errorf("saying what the rig keeps: %w", err)
	}
	return Canonical(r)
}

// DecodeSpaceReport reads a report and checks it.
func DecodeSpaceReport(b []byte) (SpaceReport, error) {
	var r SpaceReport
	err := decodeHarness(b, &r)
	if err == nil {
		err = r.Check()
	}
	if err != nil {
		return SpaceReport{}, fmt.Errorf("reading what the rig keeps: %w", err)
	}
	return r, nil
}

// SpaceAsk is what a supervisor sends on its space subject.
type SpaceAsk struct {
	// Nonce is random and comes back in the answer, so that an old answer
	// can't pass for this one's.
	Nonce string      `json:"nonce"`
	Space SpaceReport `json:"space"`
}

// SpaceAnswer is control's answer.
type SpaceAnswer struct {
	Rig   string `json:"rig"`
	Nonce string `json:"nonce"`
	// OK says that control keeps the report.
	OK bool `json:"ok"`
	// Refused is why control refused the ask, in words; else empty.
	Refused string `json:"refused,omitzero"`
}

// EncodeSpaceAsk gives the ask as JSON, after its check.
func EncodeSpaceAsk(a SpaceAsk) ([]byte, error) {
	err := first(checkNonce(a.Nonce), a.Space.Check())
	if err != nil {
		return nil, fmt.Errorf("making a space ask: %w", err)
	}
	return Canonical(a)
}

// DecodeSpaceAsk reads an ask and checks it.
func DecodeSpaceAsk(b []byte) (SpaceAsk, error) {
	var a SpaceAsk
	if err := decodeAsk("space", b, &a); err != nil {
		return SpaceAsk{}, err
	}
	if err := checkNonce(a.Nonce); err != nil {
		return SpaceAsk{}, fmt.Errorf("reading a space ask: %w", err)
	}
	if err := a.Space.Check(); err != nil {
		return SpaceAsk{}, fmt.Errorf("reading a space ask: space.%w", err)
	}
	return a, nil
}

// EncodeSpaceAnswer signs the answer with control's key.
func EncodeSpaceAnswer(s *Signer, a SpaceAnswer) ([]byte, error) {
	return sealSigned(DomainAnswer, s, a)
}

// DecodeSpaceAnswer reads the answer to the rig's ask with nonce, signed by
// control's key.
func DecodeSpaceAnswer(control PublicKey, rig, nonce string, b []byte) (SpaceAnswer, error) {
	var a SpaceAnswer
	if err := openAnswer("space", control, b, &a); err != nil {
		return SpaceAnswer{}, err
	}
	if err := answers("space", a.Rig, a.Nonce, rig, nonce); err != nil {
		return SpaceAnswer{}, err
	}
	return a, nil
}
