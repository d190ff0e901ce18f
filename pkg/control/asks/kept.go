package asks

import (
	"context"

	"thermite/pkg/wire"
)

// Daily keeps the rigs' daily reports.
type Daily interface {
	// Take keeps a report, and gives its id.
	Take(ctx context.Context, rig string, a wire.DailyAsk) (id string, err error)
}

// Space keeps what the rigs keep.
type Space interface {
	Take(ctx context.Context, rig string, r wire.SpaceReport) error
}

// Screens are what watched trials print.
type Screens interface {
	// Take keeps those of trials that are watched, and gives the trials that
	// are watched now.
	Take(rig string, screens []wire.Screen) []wire.TrialRef
}

// screens takes a rig's screens, and says which it sends next.
func (a *Asks) screens(ctx context.Context, rig string, data []byte) wire.ScreensAnswer {
	answer := wire.ScreensAnswer{Rig: rig}
	ask, err := wire.DecodeScreensAsk(data)
	if err != nil {
		answer.Refused = err.Error()
		return answer
	}
	answer.Nonce = ask.Nonce
	if answer.Refused, err = a.unknown(ctx, rig); err != nil {
		a.Log.Error("a rig's screens not taken", "rig", rig, "err", err)
		answer.Refused = textFailed
	}
	if answer.Refused == "" {
		answer.Watched = a.Screens.Take(rig, ask.Screens)
	}
	return answer
}

// space keeps what a rig says that it keeps.
func (a *Asks) space(ctx context.Context, rig string, data []byte) wire.SpaceAnswer {
	answer := wire.SpaceAnswer{Rig: rig}
	ask, err := wire.DecodeSpaceAsk(data)
	if err != nil {
		answer.Refused = err.Error()
		return answer
	}
	answer.Nonce = ask.Nonce
	if answer.Refused, err = a.unknown(ctx, rig); err == nil && answer.Refused == "" {
		err = a.Space.Take(ctx, rig, ask.Space)
	}
	if err != nil {
		a.Log.Error("what a rig keeps is not kept", "rig", rig, "err", err)
		answer.Refused = textFailed
	}
	answer.OK = answer.Refused == ""
	return answer
}

// daily keeps a rig's report of a day.
func (a *Asks) daily(ctx context.Context, rig string, data []byte) wire.DailyAnswer {
	answer := wire.DailyAnswer{Rig: rig}
	ask, err := wire.DecodeDailyAsk(data)
	if err != nil {
		answer.Refused = err.Error()
		return answer
	}
	answer.Nonce = ask.Nonce
	if answer.Refused, err = a.unknown(ctx, rig); err == nil && answer.Refused == "" {
		answer.ID, err = a.Daily.Take(ctx, rig, ask)
	}
	if err != nil {
		a.Log.Error("a daily report not kept", "rig", rig, "day", ask.Day, "err", err)
		answer.ID, answer.Refused = "", textFailed
	}
	return answer
}
