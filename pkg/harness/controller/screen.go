package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"thermite/pkg/harness/state"
	"thermite/pkg/wire"
)

// screenTail is how much of what a worker printed is read for its screen: more
// than a screen has, as what moves the cursor is no part of it.
const screenTail = 2 * wire.MaxScreenBytes

// Screen gives what a trial's worker printed last, errors after the rest. One
// of a trial that is not at work says so.
func (c *Controller) Screen(ctx context.Context, trial wire.TrialRef) (wire.Screen, error) {
	s := wire.Screen{TrialRef: trial, At: wire.At(c.cfg.Now())}
	at, err := c.cfg.Ledger.State()
	if err != nil {
		return s, err
	}
	of := ref{ledger: at.Ledger, run: trial.Run, number: trial.Trial}
	err = c.look(ctx, func(st *state.State, _ time.Time) error {
		if r := st.Run(trial.Run); r == nil || r.Trial(trial.Trial) == nil {
			s.Gone = fmt.Sprintf("trial %d of run %s is not at work", trial.Trial, trial.Run)
		}
		return nil
	})
	if err != nil || s.Gone != "" {
		return s, err
	}
	folder, err := c.folderOf(ctx, of)
	if err != nil {
		return s, fmt.Errorf("finding what trial %d of run %s printed: %w", trial.Trial, trial.Run, err)
	}
	if folder == "" {
		return s, nil // its worker has not started yet
	}
	var printed []byte
	for _, name := range []string{"stdout", "stderr"} {
		b, all, err := tailOf(filepath.Join(folder, name))
		if err != nil {
			return s, fmt.Errorf("reading what trial %d of run %s printed: %w", trial.Trial, trial.Run, err)
		}
		if len(printed) > 0 && printed[len(printed)-1] != '\n' && len(b) > 0 {
			printed = append(printed, '\n')
		}
		printed, s.Printed = append(printed, b...), s.Printed+all
	}
	s.Text = wire.ScreenText(printed)
	return s, nil
}

// folderOf gives where the broker keeps what the trial's worker prints; empty
// if it runs none.
func (c *Controller) folderOf(ctx context.Context, of ref) (string, error) {
	if c.cfg.Work == nil {
		return "", nil
	}
	all, err := c.cfg.Work.Roles.List(ctx)
	if err != nil {
		return "", err
	}
	for _, p := range all {
		if p.ID == processOf(of) {
			return p.Folder, nil
		}
	}
	return "", nil
}

// tailOf reads a file's end, and says how much it holds.
func tailOf(path string) (b []byte, all uint64, err error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	b, err = io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-screenTail), screenTail))
	return b, uint64(info.Size()), err
}
