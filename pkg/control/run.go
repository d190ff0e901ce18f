package control

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/control/events"
	"thermite/pkg/control/metrics"
	"thermite/pkg/control/rest"
	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// streamsRetry is how long control waits before it tries again to make the
// bus's streams.
const streamsRetry = 5 * time.Second

// Run works until ctx ends, or until something fails that trying again can't
// mend. Then it stops what it started, what takes something in first.
func (c *Control) Run(ctx context.Context) error {
	c.tell("reaching the bus")
	link, err := connect(ctx, c.config, c.identity, c.authority)
	if err != nil {
		return fmt.Errorf("starting control: %w", err)
	}
	c.users.Use(bus.NewAdmin(link.system))
	parts := newParts(ctx, c.config.Log)
	err = c.work(ctx, parts, link)
	c.tell("stopping")
	return errors.Join(err, parts.stopAll(), link.close())
}

// work starts the parts and waits for the end.
func (c *Control) work(ctx context.Context, parts *parts, link *link) error {
	parts.start("the bus's users", c.users.Run)
	parts.start("the rigs' figures", c.rigs.Run)
	js, err := c.openBus(ctx, link)
	if err != nil {
		return ended(ctx, err)
	}
	if err := c.retireViews(ctx); err != nil {
		return err
	}
	reader := events.NewReader(js, c.views)
	c.views.Use(reader)
	s := service.New(service.Config{
		Store: c.store, Rigs: c.rigs, Needs: c.needs, Views: c.views, Events: reader, Bus: &busState{link: link, admin: bus.NewAdmin(link.system), users: c.users},
		Join:  service.Join{ControlURL: c.URL(), BusURL: c.config.busPublicURL(), Authority: string(c.authority.PEM()), Fingerprint: c.authority.Fingerprint()},
		Build: c.config.Build, Now: c.config.Now, Rand: c.config.Rand, Log: c.config.Log,
	})
	parts.start("the service", s.Run)
	mux := http.NewServeMux()
	mux.Handle("/v1/", rest.New(s, c.config.Log))
	mux.Handle(metrics.Path, metrics.New(s, c.config.Build, c.config.Log))
	parts.start("the pages and the API", httpPart(c.listener, mux, c.tls, c.config.Log, c.ready))
	select {
	case <-ctx.Done():
		return nil
	case err := <-parts.failed:
		return err
	}
}

// openBus waits for the bus, and makes its streams.
func (c *Control) openBus(ctx context.Context, link *link) (jetstream.JetStream, error) {
	c.tell("waiting for the bus's server at " + c.config.BusURL)
	err := link.state.wait(ctx, func(err error) {
		c.config.Log.Warn("control waits for the bus's server", "url", c.config.BusURL, "err", err)
	})
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(link.control)
	if err != nil {
		return nil, fmt.Errorf("opening JetStream: %w", err)
	}
	for {
		err := bus.EnsureStreams(ctx, js)
		if err == nil {
			return js, nil
		}
		c.tell("making the bus's streams")
		c.config.Log.Warn("the bus's streams are not there yet; trying again", "err", err)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(streamsRetry):
		}
	}
}

// retireViews has the views keep no fold of a retired rig.
func (c *Control) retireViews(ctx context.Context) error {
	all, err := c.rigs.List(ctx)
	if err != nil {
		return err
	}
	for _, r := range all {
		if r.Retired() {
			c.views.Retire(r.Name)
		}
	}
	return nil
}

// place gives where control is in the rig's events.
func (c *Control) place(ctx context.Context, rig string) (wire.Place, error) {
	all, err := c.store.AllHeld(ctx)
	if err != nil {
		return wire.Place{}, err
	}
	var place wire.Place
	var newest uint64
	for _, h := range all {
		if h.Rig == rig && h.Number >= newest {
			newest, place = h.Number, wire.Place{Ledger: h.Ledger, Cursor: h.At()}
		}
	}
	return place, nil
}

// ended is err, but nothing when ctx's end is why.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// tell tells the service manager what control is at.
func (c *Control) tell(words string) {
	if c.config.OnState != nil {
		c.config.OnState(words)
	}
}

// ready says that control serves.
func (c *Control) ready() {
	c.config.Log.Info("control serves its pages and its API", "url", c.URL())
	c.tell("serving")
	if c.config.OnReady != nil {
		c.config.OnReady()
	}
}
