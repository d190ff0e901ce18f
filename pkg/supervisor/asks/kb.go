package asks

import (
	"context"
	"fmt"

	"thermite/pkg/wire"
)

// KBSearch searches the knowledge base for a run.
func (a *Asker) KBSearch(ctx context.Context, run string, q wire.KBQuery) (wire.KBHits, error) {
	nonce, err := a.cfg.Nonce()
	if err != nil {
		return wire.KBHits{}, fmt.Errorf("asking control to search: %w", err)
	}
	b, err := wire.EncodeKBSearchAsk(wire.KBSearchAsk{Nonce: nonce, Run: run, Query: q})
	if err != nil {
		return wire.KBHits{}, fmt.Errorf("asking control to search: %w", err)
	}
	data, err := a.request(ctx, wire.KBSearchSubject(a.cfg.Rig), b)
	if err != nil {
		return wire.KBHits{}, fmt.Errorf("asking control to search: %w", err)
	}
	answer, err := wire.DecodeKBSearchAnswer(a.Key(), a.cfg.Rig, nonce, data)
	if err == nil && answer.Refused != "" {
		err = &RefusedError{Words: answer.Refused}
	}
	return answer.KBHits, err
}

// KBRead reads an item for a run.
func (a *Asker) KBRead(ctx context.Context, run string, r wire.KBRead) (wire.KBText, error) {
	nonce, err := a.cfg.Nonce()
	if err != nil {
		return wire.KBText{}, fmt.Errorf("asking control to read: %w", err)
	}
	b, err := wire.EncodeKBReadAsk(wire.KBReadAsk{Nonce: nonce, Run: run, ID: r.ID, Offset: r.Offset})
	if err != nil {
		return wire.KBText{}, fmt.Errorf("asking control to read: %w", err)
	}
	data, err := a.request(ctx, wire.KBReadSubject(a.cfg.Rig), b)
	if err != nil {
		return wire.KBText{}, fmt.Errorf("asking control to read: %w", err)
	}
	answer, err := wire.DecodeKBReadAnswer(a.Key(), a.cfg.Rig, nonce, data)
	switch {
	case err != nil:
		return wire.KBText{}, err
	case answer.Refused != "":
		return wire.KBText{}, &RefusedError{Words: answer.Refused}
	}
	return *answer.Item, nil
}

// KBFiles gives those of the files that control keeps: with an item that names
// them, and those whose item has not come.
func (a *Asker) KBFiles(ctx context.Context, sums []string) (kept, waiting []string, err error) {
	data, nonce, err := a.asking(ctx, "kb-files", func(nonce string) ([]byte, error) {
		return wire.EncodeKBFilesAsk(wire.KBFilesAsk{Nonce: nonce, Files: sums})
	})
	if err != nil {
		return nil, nil, fmt.Errorf("asking control which files it keeps: %w", err)
	}
	answer, err := wire.DecodeKBFilesAnswer(a.Key(), a.cfg.Rig, nonce, data)
	if err == nil && answer.Refused != "" {
		err = &RefusedError{Words: answer.Refused}
	}
	return answer.Kept, answer.Waiting, err
}
