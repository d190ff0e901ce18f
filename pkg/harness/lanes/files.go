package lanes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/go-json-experiment/json"

	"thermite/pkg/harness/steps"
	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// folder is the lane's folder of now.
func (l *Lanes) folder(lane uint64) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	dir, ok := l.at[lane]
	if !ok {
		return "", fmt.Errorf("lane %d: %w", lane, ErrNoLane)
	}
	return dir, nil
}

// Folder is the lane's clone of the project.
func (l *Lanes) Folder(lane uint64) (string, error) {
	dir, err := l.folder(lane)
	return filepath.Join(dir, projectName), err
}

// Read gives the project as it is in the lane, without its git folder and
// what the globs of skip name. What no candidate may hold is in the tree for
// kit.Overlay to refuse; what can't be a tree at all is an error that
// kit.IsRefused says.
func (l *Lanes) Read(ctx context.Context, lane uint64, skip []string) (tree kit.Tree, err error) {
	dir, err := l.folder(lane)
	if err != nil {
		return nil, err
	}
	project := filepath.Join(dir, projectName)
	ops := []wire.StepOp{{Pack: &wire.StepPack{Folder: project, Without: skip}}}
	err = l.step(ctx, lane, ops, []string{project}, func(r io.Reader) (err error) {
		tree, err = kit.ReadArchive(r)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading lane %d: %w", lane, ofLane(err))
	}
	return tree, nil
}

// List gives the files of the lane's project, by path.
func (l *Lanes) List(ctx context.Context, lane uint64) ([]wire.StepEntry, error) {
	dir, err := l.folder(lane)
	if err != nil {
		return nil, err
	}
	project := filepath.Join(dir, projectName)
	result, err := l.stepResult(ctx, lane, []wire.StepOp{{List: project}}, []string{project}, nil)
	if err != nil {
		return nil, fmt.Errorf("listing lane %d: %w", lane, ofLane(err))
	}
	return result.Ops[0].List, nil
}

// ReadFile gives a plain file of the lane's project, reached through no link.
func (l *Lanes) ReadFile(ctx context.Context, lane uint64, path string) (data []byte, err error) {
	project, err := l.checked(lane, path)
	if err != nil {
		return nil, err
	}
	ops := []wire.StepOp{{Read: &wire.StepRead{Folder: project, Path: path}}}
	err = l.step(ctx, lane, ops, []string{project}, func(r io.Reader) (err error) {
		data, err = io.ReadAll(io.LimitReader(r, kit.MaxFileBytes))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s in lane %d: %w", path, lane, ofLane(err))
	}
	return data, nil
}

// WriteFile writes a plain file of the lane's project, whole or not at all.
func (l *Lanes) WriteFile(ctx context.Context, lane uint64, path string, data []byte) error {
	project, err := l.checked(lane, path)
	if err != nil {
		return err
	}
	ops := []wire.StepOp{{Write: &wire.StepWrite{Path: filepath.Join(project, path), Data: data, Mode: 0o644}}}
	if err := l.step(ctx, lane, ops, []string{project}, nil); err != nil {
		return fmt.Errorf("writing %s in lane %d: %w", path, lane, ofLane(err))
	}
	return nil
}

// RemoveFile removes a file of the lane's project, or a folder with all it
// holds, if it is there.
func (l *Lanes) RemoveFile(ctx context.Context, lane uint64, path string) error {
	project, err := l.checked(lane, path)
	if err != nil {
		return err
	}
	if err := l.step(ctx, lane, []wire.StepOp{{Remove: filepath.Join(project, path)}}, []string{project}, nil); err != nil {
		return fmt.Errorf("removing %s in lane %d: %w", path, lane, ofLane(err))
	}
	return nil
}

// checked gives the lane's project, if path can be a file in it.
func (l *Lanes) checked(lane uint64, path string) (project string, err error) {
	if err := kit.CheckPath(path); err != nil {
		return "", err
	}
	return l.Folder(lane)
}

// ofLane says whose fault an operation's error is: of what a lane holds, and
// of what is not there, its worker is told.
func ofLane(err error) error {
	failed := (*steps.Error)(nil)
	if !errors.As(err, &failed) || failed.Done.Error == "" {
		return err
	}
	if failed.Done.Absent {
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return &kit.Refused{What: "the lane's folder", Faults: []kit.Fault{{Why: failed.Done.Error}}}
}

// WriteTrial writes what the lane's worker is told to a file that only the
// lane's user can read, and gives its path.
func (l *Lanes) WriteTrial(ctx context.Context, lane uint64, t wire.Trial) (path string, err error) {
	dir, err := l.folder(lane)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	if err := json.MarshalWrite(&b, t); err != nil {
		return "", fmt.Errorf("writing the trial of lane %d: %w", lane, err)
	}
	home := filepath.Join(dir, homeName)
	path = filepath.Join(home, trialName)
	if err := l.step(ctx, lane, []wire.StepOp{{Write: &wire.StepWrite{Path: path, Data: b.Bytes(), Mode: 0o600}}}, []string{home}, nil); err != nil {
		return "", fmt.Errorf("writing the trial of lane %d: %w", lane, err)
	}
	return path, nil
}
