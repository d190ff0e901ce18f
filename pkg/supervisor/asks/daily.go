package asks

import (
	"context"
	"fmt"

	"thermite/pkg/wire"
)

// Daily sends a day's report, and gives its id at control: the same one for
// each time that the day is sent.
func (a *Asker) Daily(ctx context.Context, report wire.DailyAsk) (id string, err error) {
	data, nonce, err := a.asking(ctx, "daily", func(nonce string) ([]byte, error) {
		report.Nonce = nonce
		return wire.EncodeDailyAsk(report)
	})
	if err != nil {
		return "", fmt.Errorf("asking control to keep the daily report: %w", err)
	}
	answer, err := wire.DecodeDailyAnswer(a.Key(), a.cfg.Rig, nonce, data)
	if err != nil {
		return "", err
	}
	if answer.Refused != "" {
		return "", &RefusedError{Words: answer.Refused}
	}
	return answer.ID, nil
}
