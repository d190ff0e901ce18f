// Package ledger is a rig's append-only event store: the truth about what
// happened on the rig.
//
// A ledger has a random id, and events numbered from 1 without a gap, each in
// canonical JSON and chained to all before it. One SQLite file holds the
// current ledger and those that a full reset ended. Append answers when the
// events are on disk; what it answered is never changed.
//
// # What is checked
//
// Open reads every event of the file and follows the chain, has SQLite check
// the file's own structure, and compares the end with the head, a small file
// beside it that names the last event ever appended. Any byte of an event or
// a chain that changed, any event that is missing, also at the end, and any
// page that can't be read is found there, and the ledger is damaged from then
// on: every call that would append or give events is refused with a
// *DamageError that names the event. Reads go on checking the chain of what
// they give.
//
// It is checked whole, and not from a signed checkpoint, because it is fast
// enough: it is spread over all cores, and a million events of 500 bytes were
// measured to take 1.1 to 1.4 s on two (BenchmarkStart); and a checkpoint would
// leave what came before it unread.
package ledger

import (
	"context"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"thermite/migrations"
	"thermite/pkg/sqlite"
	"thermite/pkg/wire"
)

// Config is what a ledger needs.
type Config struct {
	// Path is the SQLite file; the head is beside it, as Path + ".head".
	Path string
	// Now is the clock. A ledger's times never go back, whatever it does.
	Now func() time.Time
	// Rand gives the random bits of a new ledger's id.
	Rand io.Reader
	Log  *slog.Logger
}

// State is where a ledger stands.
type State struct {
	Ledger string
	// Last is the id of the last event, and Chain the chain after it.
	Last  uint64
	Chain wire.Chain
}

// Place is the state as a place.
func (s State) Place() wire.Place { return wire.Place{Ledger: s.Ledger, Cursor: s.Last} }

// Ledger is the open store. Its methods may be called from any goroutine.
type Ledger struct {
	cfg   Config
	db    *sqlite.DB // nil when the file can't even be opened
	head  *head
	check time.Duration

	mu      sync.Mutex
	current place
	state   State
	time    wire.Time
	stale   bool // the file may hold other than state: a write failed
	damage  *DamageError
	notices []string
	wake    chan struct{}
}

// place is where a ledger's events are in the file: event n at base + n.
type place struct {
	number, base int64
	id           string
}

// Open opens the store at cfg.Path, makes it with its first ledger if there
// is none, and checks all of it. A damaged store opens too, and Damage says
// so; an error is about anything else.
func Open(ctx context.Context, cfg Config) (*Ledger, error) {
	l := &Ledger{cfg: cfg, wake: make(chan struct{})}
	if err := l.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the ledger in %s: %w", filepath.Base(cfg.Path), err), l.Close())
	}
	return l, nil
}

func (l *Ledger) open(ctx context.Context) error {
	var err error
	if l.head, err = openHead(l.cfg.Path + ".head"); err != nil {
		return err
	}
	begun := l.cfg.Now()
	damage, err := l.load(ctx)
	if err != nil {
		return err
	}
	l.check = l.cfg.Now().Sub(begun)
	if damage != nil {
		l.damaged(damage)
		return nil
	}
	return nil
}

// load opens the file and checks it.
func (l *Ledger) load(ctx context.Context) (*DamageError, error) {
	promised, err := l.promised()
	if err != nil {
		return nil, err
	}
	if promised.Last > 0 {
		if info, err := os.Stat(l.cfg.Path); errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0 {
			return &DamageError{Ledger: promised.Ledger, Event: 1, What: fmt.Sprintf("%s holds no event, where it held %d",
				filepath.Base(l.cfg.Path), promised.Last)}, nil
		}
	}
	if l.db, err = sqlite.Open(ctx, l.cfg.Path, migrations.Ledger()); err != nil {
		if unreadable(err) && promised.Last > 0 {
			return firstUnreadable(ctx, l.cfg.Path, promised, err), nil
		}
		return nil, err
	}
	damage, err := l.verify(ctx, promised)
	if damage != nil || err != nil {
		return damage, err
	}
	if l.current.number == 0 {
		return nil, l.begin(ctx, "")
	}
	if promised.Last == 0 && len(l.notices) == 0 {
		l.notice(l.endUnchecked("is missing"))
	}
	if err := l.reload(ctx); err != nil {
		return nil, err
	}
	return nil, l.head.write(l.state)
}

// endUnchecked says that there was no good head to check the end by.
func (l *Ledger) endUnchecked(why string) string {
	return fmt.Sprintf("%s.head %s, so whether the ledger's last events are all there could not be checked: it is written again",
		filepath.Base(l.cfg.Path), why)
}

// promised reads the head: the least that the file must hold.
func (l *Ledger) promised() (State, error) {
	s, err := l.head.read()
	if errors.Is(err, errHeadUnreadable) {
		l.notice(l.endUnchecked("can't be read"))
		return State{}, nil
	}
	return s, err
}

// State gives where the current ledger stands.
func (l *Ledger) State() (State, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.damage != nil {
		return State{}, l.damage
	}
	return l.state, nil
}

// Changed gives a channel that closes at the next append or reset.
func (l *Ledger) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wake
}

// wakeAll tells who waits on Changed. The caller holds mu.
func (l *Ledger) wakeAll() {
	close(l.wake)
	l.wake = make(chan struct{})
}

// Damage gives what is wrong with the store; nil when nothing is.
func (l *Ledger) Damage() *DamageError {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.damage
}

// Notices gives what was found wrong and set right, in words.
func (l *Ledger) Notices() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.notices...)
}

// notice logs and keeps one notice. The caller does not hold mu.
func (l *Ledger) notice(words string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noticeLocked(words)
}

// maxNotices bounds what a harness that runs for long keeps of them.
const maxNotices = 20

func (l *Ledger) noticeLocked(words string) {
	l.cfg.Log.Warn("the ledger's store is not as it was left", "what", words)
	if len(l.notices) < maxNotices {
		l.notices = append(l.notices, words)
	}
}

// Path is the store's file.
func (l *Ledger) Path() string { return l.cfg.Path }

// CheckTook is how long the check of the whole store took at Open.
func (l *Ledger) CheckTook() time.Duration { return l.check }

// Close ends the use of the store. A second call does nothing.
func (l *Ledger) Close() error {
	var errs []error
	if l.db != nil {
		errs = append(errs, l.db.Close())
	}
	if l.head != nil {
		errs = append(errs, l.head.close())
	}
	return errors.Join(errs...)
}

// newID makes a ledger's id: 128 random bits in lower-case base32, 26
// characters.
func newID(random io.Reader) (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("making a ledger's id: %w", err)
	}
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:])), nil
}
