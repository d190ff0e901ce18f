// Package kb is the harness's part in the knowledge base: the outbox of the
// files that items name, until control keeps them, and the queue of what
// trials ask of control. The harness calls nobody: its supervisor takes both.
package kb

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"thermite/pkg/wire"
)

// Folder is the outbox's name in the harness's state.
const Folder = ".kb-files"

// Bounds of the outbox: how much it holds, and how long a file stays that no
// item names.
const (
	mostBytes   = 2 << 30
	unnamedStay = time.Hour
)

// unnamed ends the name of a file that no item names yet.
const unnamed = ".new"

// ErrNoFile says that the outbox has no such file.
var ErrNoFile = errors.New("no file of that SHA-256 was put")

// ErrFull says that the outbox is full.
var ErrFull = errors.New("the outbox of the knowledge base's files is full until control has taken some")

// ErrOther says that a file is not the one that it was said to be.
var ErrOther = errors.New("it is another file")

// Outbox keeps files by their SHA-256. Any number of goroutines may use it.
type Outbox struct {
	dir string
	now func() time.Time
	log *slog.Logger

	mu sync.Mutex
}

// OpenOutbox opens the outbox in the folder, which is made if it is not there.
func OpenOutbox(dir string, now func() time.Time, log *slog.Logger) (*Outbox, error) {
	o := &Outbox{dir: dir, now: now, log: log}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("opening the outbox of the knowledge base's files: %w", err)
	}
	for _, part := range o.names(func(name string) bool { return strings.HasPrefix(name, partly) }) {
		if err := os.Remove(filepath.Join(dir, part)); err != nil {
			return nil, fmt.Errorf("opening the outbox of the knowledge base's files: %w", err)
		}
	}
	return o, nil
}

// partly begins the name of a file that is not whole yet.
const partly = "part-"

// names gives the names in the folder that are wanted; none if it can't be
// read, which the next write says.
func (o *Outbox) names(want func(string) bool) []string {
	entries, err := os.ReadDir(o.dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if want(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// Put keeps what r gives, which must have the SHA-256, for an item to name it.
func (o *Outbox) Put(ctx context.Context, sum string, r io.Reader) error {
	if _, err := o.Size(sum); err == nil {
		_, err := io.Copy(io.Discard, r)
		return err
	}
	if o.room() < wire.MaxKBFileBytes {
		return ErrFull
	}
	f, err := os.CreateTemp(o.dir, partly)
	if err != nil {
		return fmt.Errorf("keeping the file %s: %w", sum, err)
	}
	defer os.Remove(f.Name()) // it has another name by then, or is none
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, hash), io.LimitReader(&till{ctx, r}, wire.MaxKBFileBytes+1))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("keeping the file %s: %w", sum, err)
	}
	switch is := hex.EncodeToString(hash.Sum(nil)); {
	case n == 0 || n > wire.MaxKBFileBytes:
		return fmt.Errorf("%w: a file has 1 to %d bytes", ErrOther, uint64(wire.MaxKBFileBytes))
	case is != sum:
		return fmt.Errorf("%w: its SHA-256 is %s", ErrOther, is)
	}
	return os.Rename(f.Name(), filepath.Join(o.dir, sum+unnamed))
}

// till ends a read with its context.
type till struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (t *till) Read(b []byte) (int, error) {
	if err := t.ctx.Err(); err != nil {
		return 0, err
	}
	return t.r.Read(b)
}

// room is how much more the outbox may hold. What no item named in time goes.
func (o *Outbox) room() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	room := int64(mostBytes)
	entries, err := os.ReadDir(o.dir)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue // it went just now
		}
		if strings.HasSuffix(e.Name(), unnamed) && o.now().Sub(info.ModTime()) > unnamedStay {
			if err := os.Remove(filepath.Join(o.dir, e.Name())); err != nil {
				o.log.Warn("a file that no item names stays in the outbox", "file", e.Name(), "err", err)
			}
			continue
		}
		room -= info.Size()
	}
	return room
}

// Size gives a file's size, named or not.
func (o *Outbox) Size(sum string) (uint64, error) {
	for _, name := range []string{sum, sum + unnamed} {
		info, err := os.Stat(filepath.Join(o.dir, name))
		if err == nil {
			return uint64(info.Size()), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return 0, fmt.Errorf("looking for the file %s: %w", sum, err)
		}
	}
	return 0, ErrNoFile
}

// Name has the file put to control: an item names it, or is about to.
func (o *Outbox) Name(sum string) error {
	err := os.Rename(filepath.Join(o.dir, sum+unnamed), filepath.Join(o.dir, sum))
	if errors.Is(err, fs.ErrNotExist) {
		_, err = os.Stat(filepath.Join(o.dir, sum))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNoFile
	}
	if err != nil {
		return fmt.Errorf("keeping the file %s: %w", sum, err)
	}
	d, err := os.Open(o.dir)
	if err != nil {
		return fmt.Errorf("keeping the file %s: %w", sum, err)
	}
	return errors.Join(d.Sync(), d.Close())
}

// List gives the files that items name, the oldest first, at most
// wire.MaxKBFilesAsked of them.
func (o *Outbox) List() (wire.KBOutbox, error) {
	entries, err := os.ReadDir(o.dir)
	if err != nil {
		return wire.KBOutbox{}, fmt.Errorf("listing the outbox of the knowledge base's files: %w", err)
	}
	type file struct {
		wire.KBOutFile
		at time.Time
	}
	var all []file
	for _, e := range entries {
		if !wire.IsSHA256(e.Name()) {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // it went just now
		}
		all = append(all, file{wire.KBOutFile{SHA256: e.Name(), Size: uint64(info.Size())}, info.ModTime()})
	}
	slices.SortStableFunc(all, func(a, b file) int { return a.at.Compare(b.at) })
	out := wire.KBOutbox{Files: []wire.KBOutFile{}}
	for _, f := range all[:min(len(all), wire.MaxKBFilesAsked)] {
		out.Files = append(out.Files, f.KBOutFile)
	}
	return out, nil
}

// Open opens a file that items name.
func (o *Outbox) Open(sum string) (*os.File, error) {
	f, err := os.Open(filepath.Join(o.dir, sum))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoFile
	}
	return f, err
}

// Kept takes files that control keeps out of the outbox.
func (o *Outbox) Kept(sums []string) error {
	var errs []error
	for _, sum := range sums {
		if err := os.Remove(filepath.Join(o.dir, sum)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
