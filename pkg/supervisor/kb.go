package supervisor

import (
	"context"
	"io"

	"github.com/nats-io/nats.go"

	"thermite/pkg/supervisor/asks"
	"thermite/pkg/supervisor/kb"
	"thermite/pkg/wire"
)

// KBSearch implements kb.Control.
func (o onLinkAsks) KBSearch(ctx context.Context, run string, q wire.KBQuery) (wire.KBHits, error) {
	if err := o.link.check(); err != nil {
		return wire.KBHits{}, err
	}
	ctx, cancel := o.link.while(ctx)
	defer cancel()
	return o.Asker.KBSearch(ctx, run, q)
}

// KBRead implements kb.Control.
func (o onLinkAsks) KBRead(ctx context.Context, run string, r wire.KBRead) (wire.KBText, error) {
	if err := o.link.check(); err != nil {
		return wire.KBText{}, err
	}
	ctx, cancel := o.link.while(ctx)
	defer cancel()
	return o.Asker.KBRead(ctx, run, r)
}

// KBFiles implements kb.Keeper.
func (o onLinkAsks) KBFiles(ctx context.Context, sums []string) (kept, waiting []string, err error) {
	if err := o.link.check(); err != nil {
		return nil, nil, err
	}
	ctx, cancel := o.link.while(ctx)
	defer cancel()
	return o.Asker.KBFiles(ctx, sums)
}

// onLinkFiles puts files while the bus is there.
type onLinkFiles struct {
	link *link
	bus  kb.Bus
}

// Put implements kb.Bus.
func (o onLinkFiles) Put(ctx context.Context, f wire.KBOutFile, bytes io.Reader) error {
	if err := o.link.check(); err != nil {
		return err
	}
	ctx, cancel := o.link.while(ctx)
	defer cancel()
	return o.bus.Put(ctx, f, bytes)
}

// startFiles makes what puts the knowledge base's files.
func (s *Supervisor) startFiles(nc *nats.Conn, asker *asks.Asker) (*kb.Files, error) {
	putter, err := kb.NewPutter(nc, s.cfg.Rig, s.times.Publish, s.stepped)
	if err != nil {
		return nil, err
	}
	files := kb.NewFiles(kb.FilesConfig{Harness: s.harness, Bus: onLinkFiles{s.link, putter}, Control: onLinkAsks{s.link, asker}, Log: s.cfg.Log})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = files
	return files, nil
}
