package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"thermite/pkg/files"
	"thermite/pkg/wire"
)

// head is a small file that names the last event ever appended. It is how a
// store that lost its end is noticed: SQLite takes a file without its
// write-ahead log, or an older copy of it, for whole.
//
// It is written after each append, in one write over itself, and is not
// synced: after the machine's own death it may be older than the store, never
// newer, so that it only ever promises what was there. Its lock keeps a
// second harness off the store.
type head struct{ f *os.File }

// ErrInUse says that another process has the ledger open.
var ErrInUse = errors.New("another process has this ledger open")

var errHeadUnreadable = errors.New("the head can't be read")

// headTitle is a head's first line, and its version.
const headTitle = "thermite ledger head v1"

func openHead(path string) (*head, error) {
	f, err := files.Lock(path)
	if errors.Is(err, files.ErrLocked) {
		err = ErrInUse
	}
	if err != nil {
		return nil, err
	}
	return &head{f: f}, nil
}

// format gives a head's bytes: always as many for ledgers' ids of one length.
func format(s State) string {
	lines := fmt.Sprintf("%s\n%s %016d %s\n", headTitle, s.Ledger, s.Last, s.Chain)
	sum := sha256.Sum256([]byte(lines))
	return lines + hex.EncodeToString(sum[:]) + "\n"
}

// write makes the head name s.
func (h *head) write(s State) error {
	text := format(s)
	if _, err := h.f.WriteAt([]byte(text), 0); err != nil {
		return fmt.Errorf("writing the ledger's head: %w", err)
	}
	return nil
}

// read gives what the head names; the zero State when it is new.
func (h *head) read() (State, error) {
	b, err := io.ReadAll(io.LimitReader(io.NewSectionReader(h.f, 0, 1<<12), 1<<12))
	if err != nil {
		return State{}, fmt.Errorf("reading the ledger's head: %w", err)
	}
	if len(b) == 0 {
		return State{}, nil
	}
	var s State
	var chain string
	_, rest, _ := strings.Cut(string(b), "\n")
	if _, err := fmt.Sscanf(rest, "%s %d %s\n", &s.Ledger, &s.Last, &chain); err != nil {
		return State{}, errHeadUnreadable
	}
	if err := s.Chain.UnmarshalText([]byte(chain)); err != nil || format(s) != string(b) || wire.CheckLedger(s.Ledger) != nil {
		return State{}, errHeadUnreadable
	}
	return s, nil
}

// close ends the use of the head. A second call does nothing.
func (h *head) close() error {
	if h.f == nil {
		return nil
	}
	err := errors.Join(h.f.Sync(), h.f.Close())
	h.f = nil
	return err
}
