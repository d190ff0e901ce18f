// Package harness is the rig's part that does the research: it holds the
// ledger, takes control's commands, has runs worked on in lanes and their
// attempts judged, and signs pages of the ledger for the supervisor. It can
// make up events instead.
package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"thermite/pkg/harness/api"
	"thermite/pkg/harness/controller"
	"thermite/pkg/harness/kb"
	"thermite/pkg/harness/ledger"
	"thermite/pkg/harness/routes"
	"thermite/pkg/harness/sample"
	"thermite/pkg/lines"
	"thermite/pkg/wire"
)

// Harness is the part. New makes it ready, Run works until its context ends,
// and Close lets go of its files.
type Harness struct {
	cfg      Config
	ledger   *ledger.Ledger
	signer   *wire.Signer
	listener net.Listener
	server   *api.Server
	// controller is the main loop, and work what it has done; work is nil
	// without a broker.
	controller *controller.Controller
	work       *work
	// outbox and queue are its part in the knowledge base.
	outbox *kb.Outbox
	queue  *kb.Queue
	// routes are what the supervisor handed it of the rig's config.
	routes *routes.Routes
	live   *lines.Log
}

// New opens the ledger and checks it, reads the report key, and listens. A
// damaged ledger is no error: the harness then says so to whoever asks, and
// does nothing else.
func New(ctx context.Context, cfg Config) (*Harness, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	h := &Harness{cfg: cfg, listener: cfg.Listener, routes: routes.New()}
	if err := h.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the harness of rig %s: %w", cfg.Rig, err), h.Close())
	}
	return h, nil
}

func (h *Harness) open(ctx context.Context) error {
	started := h.cfg.Now()
	if err := h.cfg.makeStateDir(); err != nil {
		return err
	}
	signer, made, err := openKey(h.cfg.keyPath(), h.cfg.Rand)
	if err != nil {
		return err
	}
	if h.signer = signer; made {
		h.cfg.Log.Info("made the report key", "key", signer.Public().Fingerprint())
	}
	h.ledger, err = ledger.Open(ctx, ledger.Config{Path: h.cfg.ledgerPath(), Now: h.cfg.Now, Rand: h.cfg.Rand, Log: h.cfg.Log})
	if err != nil {
		return err
	}
	if state, err := h.ledger.State(); err == nil {
		h.cfg.Log.Info("the ledger is open", "ledger", state.Ledger, "last", state.Last, "check", h.ledger.CheckTook())
	}
	if h.listener == nil {
		if h.listener, err = api.Listen(h.cfg.Socket); err != nil {
			return err
		}
	}
	if h.outbox, err = kb.OpenOutbox(filepath.Join(h.cfg.StateDir, kb.Folder), h.cfg.Now, h.cfg.Log); err != nil {
		return err
	}
	h.queue = kb.NewQueue(0)
	if h.live, err = lines.New(lines.Config{Rig: h.cfg.Rig, Signer: h.signer, Now: h.cfg.Now, Rand: h.cfg.Rand}); err != nil {
		return err
	}
	if err := h.openWork(); err != nil {
		return err
	}
	h.server = api.New(api.Config{KBQueue: h.queue, KBOutbox: h.outbox, Routes: h.routes, Ledger: h.ledger, Controller: h.controller, Live: h.live, Signer: h.signer, Rig: h.cfg.Rig, Build: h.cfg.Build,
		StartedAt: wire.At(started), Log: h.cfg.Log})
	return nil
}

// Run serves the API, works, and makes up events if it was told to, until ctx
// ends or one of them fails for good.
func (h *Harness) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return h.server.Serve(ctx, h.listener) })
	g.Go(func() error { h.controller.Run(ctx); return nil })
	if h.work != nil {
		g.Go(func() error { return h.work.api.Serve(ctx, h.work.listener) })
	}
	if h.cfg.Sample > 0 && h.ledger.Damage() == nil {
		g.Go(func() error { return h.makeSample(ctx) })
	}
	return g.Wait()
}

// makeSample makes up events. A ledger that turns out damaged ends that, not
// the harness, which must go on to say so.
func (h *Harness) makeSample(ctx context.Context) error {
	err := sample.Run(ctx, h.ledger, h.cfg.sample())
	var damage *ledger.DamageError
	if errors.As(err, &damage) || ctx.Err() != nil {
		return nil
	}
	return err
}

// Ledger is the harness's ledger.
func (h *Harness) Ledger() *ledger.Ledger { return h.ledger }

// Key is the report key's public part.
func (h *Harness) Key() wire.PublicKey { return h.signer.Public() }

// Routes are the model routes and MCP servers that the supervisor handed it.
func (h *Harness) Routes() *routes.Routes { return h.routes }

// Health says how the harness is.
func (h *Harness) Health() wire.HarnessHealth { return h.server.Health() }

// Addr is where the harness listens.
func (h *Harness) Addr() string { return h.listener.Addr().String() }

// Close lets go of the socket and the ledger. Run must have ended.
func (h *Harness) Close() error {
	var errs []error
	if h.listener != nil {
		if err := h.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if h.work != nil {
		if err := h.work.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if h.ledger != nil {
		errs = append(errs, h.ledger.Close())
	}
	return errors.Join(errs...)
}
