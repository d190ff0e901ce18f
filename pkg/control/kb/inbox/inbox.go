// Package inbox takes the knowledge base's files from KB_FILES, puts each
// together chunk by chunk, checks it by its size and SHA-256, and keeps it
// once.
//
// A rig has one file at a time that is being put together: a first chunk drops
// one that was cut short. A chunk that is none's turn is passed over, since
// its rig puts the file again until control keeps it. While the disk is at its
// floor no chunk is written: each waits on the stream.
package inbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/time/rate"

	"thermite/pkg/control/kb"
	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// Config is what an Inbox works with.
type Config struct {
	JS    jetstream.JetStream
	Store *store.Store
	// Dir is the folder of the files that control keeps; it is the inbox's.
	Dir string
	// Floor is how many bytes of the disk stay free.
	Floor uint64
	// Free says how many bytes of the folder's disk are; nil asks the system.
	Free func(dir string) (uint64, error)
	// Retry is how long to wait at the floor, 0 is wire.KBDiskRetry, and Again
	// after another failure, 0 is five seconds.
	Retry, Again time.Duration
	Clock        func() time.Time
	Log          *slog.Logger
}

// Inbox puts files together. One goroutine runs it.
type Inbox struct {
	Config
	// parts are the files being put together, by rig.
	parts map[string]*part
	// seldom says and keeps what a rig can have said as often as it likes.
	seldom rate.Sometimes

	mu    sync.Mutex
	state State
}

// part is a file of which some chunks are there.
type part struct {
	sha256 string
	size   uint64
	// next is the number of the next chunk, and sum of those before it.
	next uint64
	sum  hash.Hash
}

// State are the inbox's figures since control started.
type State struct {
	// Chunks counts those written, Passed those that were none's turn, Kept
	// the files kept, and Refused those that were not what they said.
	Chunks, Passed, Kept, Refused uint64
	// Why is why it waits, since Since; nil while it works.
	Why   error
	Since time.Time
}

// ErrFloor says that the disk is at its floor.
var ErrFloor = errors.New("control's disk is at its floor")

// putting is the folder of the files being put together.
const putting = "putting"

// again is how long to wait after a failure.
const again = 5 * time.Second

// Open makes the inbox. What control was putting together before is gone: its
// rigs put it again.
func Open(c Config) (*Inbox, error) {
	if c.Free == nil {
		c.Free = free
	}
	if c.Retry == 0 {
		c.Retry = wire.KBDiskRetry
	}
	if c.Again == 0 {
		c.Again = again
	}
	i := &Inbox{Config: c, parts: map[string]*part{}, seldom: rate.Sometimes{First: 10, Interval: time.Minute}}
	err := errors.Join(os.RemoveAll(filepath.Join(c.Dir, putting)), os.MkdirAll(filepath.Join(c.Dir, putting), 0o700))
	if err != nil {
		return nil, fmt.Errorf("opening the knowledge base's files: %w", err)
	}
	return i, nil
}

// State gives the figures.
func (i *Inbox) State() State {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.state
}

func (i *Inbox) count(add func(*State)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	add(&i.state)
}

func (i *Inbox) partPath(rig string) string { return filepath.Join(i.Dir, putting, rig) }

// take takes one chunk of a rig's file. After an error nothing of it is kept,
// and it may be taken again.
func (i *Inbox) take(ctx context.Context, rig string, c wire.KBChunk, data []byte) error {
	if c.Number == 0 {
		i.drop(rig)
		kept, err := i.Store.KBFileKept(ctx, c.SHA256)
		if err != nil {
			return err
		}
		if kept {
			i.count(func(s *State) { s.Passed++ })
			return nil
		}
		i.parts[rig] = &part{sha256: c.SHA256, size: c.Size, sum: sha256.New()}
	}
	p := i.parts[rig]
	if p == nil || p.sha256 != c.SHA256 || p.size != c.Size || p.next != c.Number {
		i.count(func(s *State) { s.Passed++ })
		return nil
	}
	if err := i.write(rig, c, data); err != nil {
		return err
	}
	if !c.Last() {
		p.sum.Write(data)
		p.next++
		i.count(func(s *State) { s.Chunks++ })
		return nil
	}
	sum, err := cloned(p.sum)
	if err != nil {
		return err
	}
	sum.Write(data)
	if is := hex.EncodeToString(sum.Sum(nil)); is != c.SHA256 {
		i.drop(rig)
		return i.refuse(ctx, rig, fmt.Sprintf("a file put as %s is %s", c.SHA256, is))
	}
	if err := i.keep(ctx, rig, c); err != nil {
		return err
	}
	delete(i.parts, rig)
	i.count(func(s *State) { s.Chunks++; s.Kept++ })
	i.Log.Info("a file of the knowledge base is kept", "rig", rig, "sha256", c.SHA256, "size", c.Size)
	return nil
}

// cloned is a hash that can be written to without the other.
func cloned(h hash.Hash) (hash.Hash, error) {
	c, ok := h.(hash.Cloner)
	if !ok {
		return nil, fmt.Errorf("a hash of %T can't be copied", h)
	}
	return c.Clone()
}

// write puts the chunk in its place in the file.
func (i *Inbox) write(rig string, c wire.KBChunk, data []byte) error {
	has, err := i.Free(i.Dir)
	if err != nil {
		return fmt.Errorf("asking how full the disk of the knowledge base's files is: %w", err)
	}
	if has < i.Floor+uint64(len(data)) {
		return fmt.Errorf("%w: %d bytes are free, and %d must stay so", ErrFloor, has, i.Floor)
	}
	f, err := os.OpenFile(i.partPath(rig), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, int64(c.Number*wire.MaxKBChunkBytes))
	if c.Last() && err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// keep has the whole file kept: on the disk under its name, then in the store.
func (i *Inbox) keep(ctx context.Context, rig string, c wire.KBChunk) error {
	path := kb.FilePath(i.Dir, c.SHA256)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.Rename(i.partPath(rig), path)
	}
	if errors.Is(err, fs.ErrNotExist) && there(path, c.Size) {
		err = nil // it was, and the store did not take it then
	}
	if err == nil {
		err = errors.Join(sync1(filepath.Dir(path)), sync1(i.Dir))
	}
	if err != nil {
		return fmt.Errorf("keeping the file %s: %w", c.SHA256, err)
	}
	return i.Store.Write(ctx, func(tx *sqlx.Tx) error {
		return i.Store.KeepKBFile(ctx, tx, c.SHA256, c.Size, rig, i.Clock())
	})
}

func there(path string, size uint64) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && uint64(info.Size()) == size
}

// sync1 has a folder's names on the disk.
func sync1(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// drop forgets the file that the rig was putting.
func (i *Inbox) drop(rig string) {
	if i.parts[rig] == nil {
		return
	}
	delete(i.parts, rig)
	if err := os.Remove(i.partPath(rig)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		i.Log.Warn("a file that was cut short stays until its rig's next", "rig", rig, "err", err)
	}
}

// refuse counts what is no good, and says why in the audit log.
func (i *Inbox) refuse(ctx context.Context, rig, why string) (err error) {
	i.count(func(s *State) { s.Refused++ })
	i.seldom.Do(func() {
		i.Log.Warn("a file of the knowledge base refused", "rig", rig, "err", why)
		err = i.Store.Write(ctx, func(tx *sqlx.Tx) error {
			return i.Store.Audit(ctx, tx, store.AuditEntry{At: i.Clock(), Actor: "rig:" + rig, Source: "the message bus", Action: "kb_file_refused", Subject: rig,
				Detail: map[string]any{"why": why}})
		})
	})
	return err
}
