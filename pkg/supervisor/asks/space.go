package asks

import (
	"context"
	"fmt"

	"thermite/pkg/wire"
)

// Space says what the rig keeps, and returns once control keeps that.
func (a *Asker) Space(ctx context.Context, report wire.SpaceReport) error {
	data, nonce, err := a.asking(ctx, "space", func(nonce string) ([]byte, error) {
		return wire.EncodeSpaceAsk(wire.SpaceAsk{Nonce: nonce, Space: report})
	})
	if err != nil {
		return fmt.Errorf("telling control what the rig keeps: %w", err)
	}
	answer, err := wire.DecodeSpaceAnswer(a.Key(), a.cfg.Rig, nonce, data)
	if err != nil {
		return err
	}
	if answer.Refused != "" || !answer.OK {
		return &RefusedError{Words: answer.Refused}
	}
	return nil
}
