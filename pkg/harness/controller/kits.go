package controller

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"thermite/pkg/harness/state"
	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// Kits keeps the staged kits, each in a folder named by its digest, which
// roles' users may read:
//
//	<Dir>/<digest>/kit, project   as kit.Stage writes them
type Kits struct {
	dir  string
	rand io.Reader

	mu   sync.Mutex
	kits map[string]*kit.Staged
}

// ErrNotStaged says that a kit's files are not there and can't be had again.
var ErrNotStaged = errors.New("its kit is no more there")

// OpenKits opens the kits' folder, which it makes. What a stage that was cut
// off left goes.
func OpenKits(dir string, rand io.Reader) (*Kits, error) {
	err := errors.Join(os.MkdirAll(dir, 0o711), os.Chmod(dir, 0o711))
	var entries []fs.DirEntry
	if err == nil {
		entries, err = os.ReadDir(dir)
	}
	for _, e := range entries {
		if !isDigest(e.Name()) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("opening the staged kits: %w", err)
	}
	return &Kits{dir: dir, rand: rand, kits: map[string]*kit.Staged{}}, nil
}

func isDigest(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 32
}

// Stage has a kit there to work with: one that ships, or one that the
// supervisor put into a folder.
func (k *Kits) Stage(ctx context.Context, source wire.KitSource, from string) (*kit.Staged, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var staged *kit.Staged
	var err error
	switch {
	case source.Embedded != "":
		staged, err = kit.Load(ctx, kit.Source{Embedded: source.Embedded})
	case from != "":
		staged, err = kit.Open(from)
	default:
		err = ErrNotStaged
	}
	if err != nil {
		return nil, err
	}
	return k.keep(staged)
}

// keep writes a kit's files, whole or not at all.
func (k *Kits) keep(staged *kit.Staged) (*kit.Staged, error) {
	if has, err := k.open(staged.Digest); err == nil {
		return has, nil
	}
	var b [8]byte
	if _, err := io.ReadFull(k.rand, b[:]); err != nil {
		return nil, fmt.Errorf("keeping the kit %s: %w", staged.Kit.About.Name, err)
	}
	half, dir := filepath.Join(k.dir, "half-"+hex.EncodeToString(b[:])), filepath.Join(k.dir, staged.Digest)
	err := errors.Join(os.Mkdir(half, 0o755), os.Chmod(half, 0o755))
	if err == nil {
		err = errors.Join(staged.Files.Write(filepath.Join(half, "kit")), staged.Base.Write(filepath.Join(half, "project")))
	}
	if err == nil { // what is there by that name is not whole
		err = errors.Join(os.RemoveAll(dir), os.Rename(half, dir))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("keeping the kit %s: %w", staged.Kit.About.Name, err), os.RemoveAll(half))
	}
	return k.open(staged.Digest)
}

// Open gives the kit of a digest: from memory, from its folder, or, of one
// that ships, staged again.
func (k *Kits) Open(ctx context.Context, source wire.KitSource) (*kit.Staged, error) {
	k.mu.Lock()
	staged, err := k.open(source.Digest)
	k.mu.Unlock()
	if err == nil {
		return staged, nil
	}
	again, stageErr := k.Stage(ctx, source, "")
	switch {
	case stageErr != nil:
		return nil, fmt.Errorf("%w: %w", stageErr, err)
	case again.Digest != source.Digest:
		return nil, fmt.Errorf("%w: this Thermite ships another kit %s", ErrNotStaged, source.Embedded)
	}
	return again, nil
}

// open reads a kit's folder. The caller holds mu.
func (k *Kits) open(digest string) (*kit.Staged, error) {
	if staged := k.kits[digest]; staged != nil {
		return staged, nil
	}
	if !isDigest(digest) {
		return nil, fmt.Errorf("%q is no kit's digest", digest)
	}
	staged, err := kit.Open(filepath.Join(k.dir, digest))
	if err != nil {
		return nil, err
	}
	if staged.Digest != digest {
		return nil, fmt.Errorf("the kit's files were altered: they are %s", staged.Digest)
	}
	k.kits[digest] = staged
	return staged, nil
}

// factsOf gives what a run's first event says of its kit.
func factsOf(s *kit.Staged) *state.Kit {
	facts := &state.Kit{Name: s.Kit.About.Name, Version: s.Kit.About.Version, Title: s.Kit.About.Title, Digest: s.Digest, Tunables: len(s.Kit.Worker.Tunables)}
	m := s.Kit.PrimaryMetric()
	facts.Metric = wire.Metric{Name: m.Name, Unit: m.Unit, Direction: m.Direction, Bound: m.Bound}
	return facts
}

// List gives the kits that are there, by their digests, each with its folder.
func (k *Kits) List() (map[string]string, error) {
	entries, err := os.ReadDir(k.dir)
	if err != nil {
		return nil, fmt.Errorf("listing the staged kits: %w", err)
	}
	all := map[string]string{}
	for _, e := range entries {
		if isDigest(e.Name()) {
			all[e.Name()] = filepath.Join(k.dir, e.Name())
		}
	}
	return all, nil
}

// Remove removes a kit's files.
func (k *Kits) Remove(digest string) error {
	if !isDigest(digest) {
		return fmt.Errorf("removing a kit: %q is no kit's digest", digest)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.kits, digest)
	if err := os.RemoveAll(filepath.Join(k.dir, digest)); err != nil {
		return fmt.Errorf("removing the kit %s: %w", digest, err)
	}
	return nil
}
