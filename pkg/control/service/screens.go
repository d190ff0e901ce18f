package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"thermite/pkg/control/screens"
	"thermite/pkg/wire"
)

// Screens are what watched trials print.
type Screens interface {
	// Look has the trial watched for a while, and gives its newest screen,
	// waiting for one later than after if need be; nil when none came.
	Look(ctx context.Context, rig string, trial wire.TrialRef, after time.Time, most time.Duration) (*wire.Screen, error)
}

// ScreenQuery says which screen of a trial.
type ScreenQuery struct {
	// After is the time of the screen that the caller has: a later one is
	// waited for, at most Wait.
	After wire.Time
	Wait  time.Duration
}

// ScreenView is what a trial's worker printed last.
type ScreenView struct {
	Rig   string `json:"rig" doc:"The rig" example:"workshop"`
	Run   string `json:"run" doc:"The run" example:"pack26"`
	Trial uint64 `json:"trial" doc:"The trial" example:"3"`
	// Known says that its rig has sent one since somebody watches.
	Known   bool      `json:"known" doc:"Whether the rig has sent the screen since somebody watches: within 5 seconds of the first look"`
	At      wire.Time `json:"at,omitzero" doc:"When the rig looked; give it as after to wait for a later one"`
	Text    string    `json:"text" doc:"The last lines that the worker printed, at most 64 KiB, errors after the rest"`
	Printed uint64    `json:"printed" doc:"How many bytes it printed in all"`
	Gone    string    `json:"gone,omitzero" doc:"Why there is no screen: the trial is not at work"`
}

// TrialScreen has a trial watched, and gives its newest screen.
func (s *Service) TrialScreen(ctx context.Context, c Caller, name RunName, trial uint64, q ScreenQuery) (ScreenView, error) {
	v := ScreenView{Rig: name.Rig, Run: name.Run, Trial: trial}
	if err := c.Check(MayRead); err != nil {
		return v, err
	}
	if q.Wait < 0 || q.Wait > MaxWait {
		return v, invalid("query.wait", fmt.Errorf("wait must be 0s to %v", MaxWait))
	}
	if _, err := s.workingRig(ctx, name.Rig); err != nil {
		return v, err
	}
	of := wire.TrialRef{Run: name.Run, Trial: trial}
	if err := of.Check(); err != nil {
		return v, invalid("path.trial", err)
	}
	if _, err := s.findRun(ctx, name, ""); err != nil {
		return v, err
	}
	if q.Wait > 0 {
		done, err := s.limits.wait(c.id())
		if err != nil {
			return v, err
		}
		defer done()
	}
	screen, err := s.config.Screens.Look(ctx, name.Rig, of, q.After.Time(), q.Wait)
	switch {
	case ctx.Err() != nil:
		return v, cancelled(ctx.Err())
	case errors.Is(err, screens.ErrTooMany):
		return v, &Error{Code: CodeBusy, RetryAfter: screens.Lapse, Cause: err,
			Text: fmt.Sprintf("%d trials of rig %s are watched already: close one, or wait", wire.MaxScreens, name.Rig)}
	case err != nil:
		return v, err
	case screen != nil:
		v.Known, v.At, v.Text, v.Printed, v.Gone = true, screen.At, screen.Text, screen.Printed, screen.Gone
	}
	return v, nil
}
