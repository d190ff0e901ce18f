package asks

import (
	"context"
	"fmt"

	"thermite/pkg/wire"
)

// Screens sends the screens of the trials that were watched, and gives those
// that are watched now.
func (a *Asker) Screens(ctx context.Context, screens []wire.Screen) ([]wire.TrialRef, error) {
	data, nonce, err := a.asking(ctx, "screens", func(nonce string) ([]byte, error) {
		return wire.EncodeScreensAsk(wire.ScreensAsk{Nonce: nonce, Screens: screens})
	})
	if err != nil {
		return nil, fmt.Errorf("asking control which trials are watched: %w", err)
	}
	answer, err := wire.DecodeScreensAnswer(a.Key(), a.cfg.Rig, nonce, data)
	if err != nil {
		return nil, err
	}
	if answer.Refused != "" {
		return nil, &RefusedError{Words: answer.Refused}
	}
	return answer.Watched, nil
}
