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
