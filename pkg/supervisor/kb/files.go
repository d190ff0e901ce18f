package kb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"thermite/pkg/wire"
)

// Outbox is the harness's.
type Outbox interface {
	KBFiles(ctx context.Context) (wire.KBOutbox, error)
	// KBFile gives a file's bytes; who reads them closes it.
	KBFile(ctx context.Context, sha256 string) (io.ReadCloser, error)
	KBKept(ctx context.Context, sums []string) error
}

// Bus is KB_FILES.
type Bus interface {
	// Put puts a file, chunk by chunk, and gives nil once the bus has all of
	// it. An error may wrap ErrFull.
	Put(ctx context.Context, f wire.KBOutFile, bytes io.Reader) error
}

// ErrFull says that the bus holds all the chunks of this rig that it may.
var ErrFull = errors.New("the bus holds all the chunks of this rig that it may")

// Keeper is control, which keeps the files.
type Keeper interface {
	// KBFiles gives those of the files that control keeps: with an item that
	// names them, and those whose item has not come.
	KBFiles(ctx context.Context, sums []string) (kept, waiting []string, err error)
}

// FilesConfig is what Files work with.
type FilesConfig struct {
	Harness Outbox
	Bus     Bus
	Control Keeper
	Log     *slog.Logger
}

// Files put the outbox's files on the bus, round by round. One goroutine calls
// Round.
type Files struct {
	cfg FilesConfig
	// put are the files that were put, or that control has, and the outbox
	// still holds.
	put map[string]*put
	// asked says that control was asked since the start: it may keep files that
	// a supervisor before this one put.
	asked bool

	mu    sync.Mutex
	state wire.LoopFigures
}

// put is a file that the bus took.
type put struct {
	// rounds is how many rounds are left until it is put again, and wait how
	// many there were: it takes control a while, at its disk's floor long.
	rounds, wait int
	// waits says that control keeps it, and that its item has not come.
	waits bool
}

// mostRounds is the most rounds between two puts of a file.
const mostRounds = 16

// NewFiles makes them.
func NewFiles(cfg FilesConfig) *Files {
	return &Files{cfg: cfg, put: map[string]*put{}, state: wire.LoopFigures{State: "waiting", Detail: "it has not begun"}}
}

// State says how the files are.
func (f *Files) State() wire.LoopFigures {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

// Round puts the files that are due, and has those leave the outbox that
// control keeps.
func (f *Files) Round(ctx context.Context) {
	left, err := f.round(ctx)
	if ctx.Err() != nil {
		return
	}
	now := wire.LoopFigures{State: "waiting", Detail: "the outbox is empty"}
	switch {
	case err != nil:
		now = wire.LoopFigures{State: "failing", Detail: err.Error()}
	case left > 0:
		now.Detail = fmt.Sprintf("%d files of the outbox wait for control to keep them", left)
	}
	f.mu.Lock()
	before := f.state
	f.state = now
	f.mu.Unlock()
	if now.State == "failing" && before.State != "failing" {
		f.cfg.Log.Warn("the knowledge base's files not put; trying again", "err", now.Detail)
	}
}

// round gives how many files are left in the outbox.
func (f *Files) round(ctx context.Context) (left int, err error) {
	list, err := f.cfg.Harness.KBFiles(ctx)
	if err != nil {
		return 0, err
	}
	f.forget(list.Files)
	if len(list.Files) == 0 {
		return 0, nil
	}
	if !f.asked {
		if err := f.ask(ctx, list.Files); err != nil {
			return len(list.Files), err
		}
		f.asked = true
		if list, err = f.cfg.Harness.KBFiles(ctx); err != nil {
			return 0, err
		}
	}
	var failed error
	for _, file := range list.Files {
		if p := f.put[file.SHA256]; p != nil && !p.due() {
			continue
		}
		if failed = f.putOne(ctx, file); failed != nil {
			break // the next round tries it again, from its start
		}
	}
	var asked []wire.KBOutFile
	for _, file := range list.Files {
		if f.put[file.SHA256] != nil {
			asked = append(asked, file)
		}
	}
	if len(asked) > 0 {
		err = f.ask(ctx, asked)
	}
	left = len(list.Files)
	for _, file := range asked {
		if f.put[file.SHA256] == nil {
			left--
		}
	}
	return left, errors.Join(failed, err)
}

// due counts a round, and says whether the file is put again in this one.
func (p *put) due() bool {
	if p.waits {
		return false
	}
	p.rounds--
	return p.rounds < 0
}

// forget drops what is not in the outbox any more.
func (f *Files) forget(files []wire.KBOutFile) {
	there := map[string]bool{}
	for _, file := range files {
		there[file.SHA256] = true
	}
	for sum := range f.put {
		if !there[sum] {
			delete(f.put, sum)
		}
	}
}

func (f *Files) putOne(ctx context.Context, file wire.KBOutFile) error {
	bytes, err := f.cfg.Harness.KBFile(ctx, file.SHA256)
	if err != nil {
		return err
	}
	err = f.cfg.Bus.Put(ctx, file, bytes)
	if err = errors.Join(err, bytes.Close()); err != nil {
		return fmt.Errorf("putting the file %s: %w", file.SHA256, err)
	}
	wait := 1
	if before := f.put[file.SHA256]; before != nil {
		wait = min(2*before.wait, mostRounds)
	}
	f.put[file.SHA256] = &put{rounds: wait, wait: wait}
	return nil
}

// ask asks control about files, and has those leave the outbox that it keeps.
func (f *Files) ask(ctx context.Context, files []wire.KBOutFile) error {
	sums := make([]string, len(files))
	for i, file := range files {
		sums[i] = file.SHA256
	}
	kept, waiting, err := f.cfg.Control.KBFiles(ctx, sums)
	if err != nil {
		return err
	}
	for _, sum := range waiting {
		f.put[sum] = &put{waits: true, wait: 1}
	}
	if len(kept) == 0 {
		return nil
	}
	if err := f.cfg.Harness.KBKept(ctx, kept); err != nil {
		return err
	}
	for _, sum := range kept {
		delete(f.put, sum)
	}
	return nil
}
