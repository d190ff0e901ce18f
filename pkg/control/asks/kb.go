package asks

import (
	"context"

	"thermite/pkg/wire"
)

// KB is control's knowledge base. Refused says in words why a rig gets
// nothing.
type KB interface {
	// Asked is a search of a run's.
	Asked(ctx context.Context, rig string, ask wire.KBSearchAsk) (hits wire.KBHits, refused string, err error)
	// Read is a read of a run's.
	Read(ctx context.Context, rig string, ask wire.KBReadAsk) (text *wire.KBText, refused string, err error)
	// Kept gives those of the files that control keeps: with an item of the
	// rig's that names them, and without.
	Kept(ctx context.Context, rig string, sums []string) (named, waiting []string, err error)
}

// The kinds of what is asked on thermite.kb.<kind>.<rig>.
const (
	kindKBSearch = "kb.search"
	kindKBRead   = "kb.read"
)

// kbKinds are the asks about the knowledge base.
func (a *Asks) kbKinds(kinds map[string]func(context.Context, string, []byte) ([]byte, error)) {
	if a.KB == nil {
		return
	}
	kinds[kindKBSearch] = func(ctx context.Context, rig string, ask []byte) ([]byte, error) {
		return wire.EncodeKBSearchAnswer(a.Signer, a.search(ctx, rig, ask))
	}
	kinds[kindKBRead] = func(ctx context.Context, rig string, ask []byte) ([]byte, error) {
		return wire.EncodeKBReadAnswer(a.Signer, a.read(ctx, rig, ask))
	}
	kinds["kb-files"] = func(ctx context.Context, rig string, ask []byte) ([]byte, error) {
		return wire.EncodeKBFilesAnswer(a.Signer, a.kbFiles(ctx, rig, ask))
	}
}

func (a *Asks) search(ctx context.Context, rig string, data []byte) wire.KBSearchAnswer {
	answer := wire.KBSearchAnswer{Rig: rig, KBHits: wire.KBHits{Hits: []wire.KBHit{}}}
	ask, err := wire.DecodeKBSearchAsk(data)
	if err != nil {
		answer.Refused = err.Error()
		return answer
	}
	answer.Nonce = ask.Nonce
	if answer.Refused, err = a.unknown(ctx, rig); err == nil && answer.Refused == "" {
		answer.KBHits, answer.Refused, err = a.KB.Asked(ctx, rig, ask)
	}
	if err != nil {
		a.Log.Error("a search not answered", "rig", rig, "run", ask.Run, "err", err)
		answer.Refused = textFailed
	}
	if answer.Refused != "" {
		answer.KBHits = wire.KBHits{Hits: []wire.KBHit{}}
	}
	return answer
}

func (a *Asks) read(ctx context.Context, rig string, data []byte) wire.KBReadAnswer {
	answer := wire.KBReadAnswer{Rig: rig}
	ask, err := wire.DecodeKBReadAsk(data)
	if err != nil {
		answer.Refused = err.Error()
		return answer
	}
	answer.Nonce = ask.Nonce
	if answer.Refused, err = a.unknown(ctx, rig); err == nil && answer.Refused == "" {
		answer.Item, answer.Refused, err = a.KB.Read(ctx, rig, ask)
	}
	if err != nil {
		a.Log.Error("a read not answered", "rig", rig, "run", ask.Run, "item", ask.ID, "err", err)
		answer.Refused = textFailed
	}
	if answer.Refused != "" {
		answer.Item = nil
	}
	return answer
}

func (a *Asks) kbFiles(ctx context.Context, rig string, data []byte) wire.KBFilesAnswer {
	answer := wire.KBFilesAnswer{Rig: rig, Kept: []string{}}
	ask, err := wire.DecodeKBFilesAsk(data)
	if err != nil {
		answer.Refused = err.Error()
		return answer
	}
	answer.Nonce = ask.Nonce
	if answer.Refused, err = a.unknown(ctx, rig); err == nil && answer.Refused == "" {
		answer.Kept, answer.Waiting, err = a.KB.Kept(ctx, rig, ask.Files)
	}
	if err != nil {
		a.Log.Error("a rig's files not answered", "rig", rig, "err", err)
		answer.Refused = textFailed
	}
	if answer.Kept == nil || answer.Refused != "" {
		answer.Kept = []string{}
	}
	return answer
}
