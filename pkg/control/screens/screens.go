// Package screens is a view of what watched trials' workers print: who looks
// at a trial has it watched for a while, its rig then sends its screen, and
// control keeps the newest. Nothing of it is kept on the disk.
package screens

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"thermite/pkg/wire"
)

// Lapse is how long a trial is watched after somebody looked.
const Lapse = 15 * time.Second

// ErrTooMany says that as many of the rig's trials are watched as may be.
var ErrTooMany = errors.New("too many trials of this rig are watched already")

// Screens are the newest, by rig and trial.
type Screens struct {
	clock func() time.Time

	mu   sync.Mutex
	rigs map[string]map[wire.TrialRef]*watch
}

// watch is one trial that is watched.
type watch struct {
	until  time.Time
	screen *wire.Screen
	// changed is closed, and made again, as a screen comes.
	changed chan struct{}
}

// New makes the view.
func New(clock func() time.Time) *Screens {
	return &Screens{clock: clock, rigs: map[string]map[wire.TrialRef]*watch{}}
}

// lapse forgets the rig's trials that nobody watches any more. The lock is
// held.
func (s *Screens) lapse(rig string) {
	now := s.clock()
	for trial, w := range s.rigs[rig] {
		if now.After(w.until) {
			delete(s.rigs[rig], trial)
		}
	}
	if len(s.rigs[rig]) == 0 {
		delete(s.rigs, rig)
	}
}

// watch has the trial watched for a while. The lock is held.
func (s *Screens) watch(rig string, trial wire.TrialRef) (*watch, error) {
	s.lapse(rig)
	w := s.rigs[rig][trial]
	if w == nil {
		if len(s.rigs[rig]) >= wire.MaxScreens {
			return nil, fmt.Errorf("rig %s has %d watched trials: %w", rig, wire.MaxScreens, ErrTooMany)
		}
		if s.rigs[rig] == nil {
			s.rigs[rig] = map[wire.TrialRef]*watch{}
		}
		w = &watch{changed: make(chan struct{})}
		s.rigs[rig][trial] = w
	}
	w.until = s.clock().Add(Lapse)
	return w, nil
}

// Look has the trial watched, and gives its newest screen if that is later
// than after; else it waits for one, at most so long. It gives nil when none
// came.
func (s *Screens) Look(ctx context.Context, rig string, trial wire.TrialRef, after time.Time, most time.Duration) (*wire.Screen, error) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	for {
		s.mu.Lock()
		w, err := s.watch(rig, trial)
		if err != nil {
			s.mu.Unlock()
			return nil, err
		}
		screen, changed := w.screen, w.changed
		s.mu.Unlock()
		if screen != nil && screen.At.Time().After(after) || most <= 0 {
			return screen, nil
		}
		select {
		case <-changed:
		case <-timer.C:
			most = 0
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Take keeps the screens of the rig's trials that are watched, drops the
// others, and gives the trials that are watched now.
func (s *Screens) Take(rig string, sent []wire.Screen) []wire.TrialRef {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lapse(rig)
	for _, one := range sent {
		if w := s.rigs[rig][one.TrialRef]; w != nil {
			w.screen = &one
			close(w.changed)
			w.changed = make(chan struct{})
		}
	}
	var watched []wire.TrialRef
	for trial := range s.rigs[rig] {
		watched = append(watched, trial)
	}
	slices.SortFunc(watched, func(a, b wire.TrialRef) int {
		return slices.Compare([]string{a.Run, fmt.Sprintf("%020d", a.Trial)}, []string{b.Run, fmt.Sprintf("%020d", b.Trial)})
	})
	return watched
}
