package control

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/control/apply"
	"thermite/pkg/control/asks"
	"thermite/pkg/control/commands"
	"thermite/pkg/control/dash"
	"thermite/pkg/control/events"
	"thermite/pkg/control/kb/inbox"
	"thermite/pkg/control/live"
	"thermite/pkg/control/mcp"
	"thermite/pkg/control/metrics"
	"thermite/pkg/control/reports"
	"thermite/pkg/control/rest"
	"thermite/pkg/control/rigconfig"
	"thermite/pkg/control/service"
	"thermite/pkg/control/users"
	"thermite/pkg/wire"
)

// streamsRetry is how long control waits before it tries again to make the
// bus's streams.
const streamsRetry = time.Second

// Run works until ctx ends, or until something fails that trying again can't
// mend. Then it stops what it started, what takes something in first.
func (c *Control) Run(ctx context.Context) error {
	c.tell("reaching the bus")
	link, err := connect(ctx, c.config, c.identity, c.authority)
	if err != nil {
		return fmt.Errorf("starting control: %w", err)
	}
	c.users.Use(link.admin)
	parts := newParts(ctx, c.config.Log)
	err = c.work(ctx, parts, link)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil
	}
	c.tell("stopping")
	if err = errors.Join(err, parts.stopAll(), link.close()); err != nil {
		c.config.Log.Error("control ends: " + err.Error())
	}
	return err
}

// work starts the parts, each once those before it are ready, and waits for
// the end.
func (c *Control) work(ctx context.Context, parts *parts, link *link) error {
	if err := c.reachBus(ctx, link); err != nil {
		return err
	}
	parts.start("the bus's users", c.users.Run)
	parts.start("the rigs' figures", c.rigs.Run)
	js, err := c.openStreams(ctx, link)
	if err != nil {
		return err
	}
	state, err := c.startRecord(ctx, parts, link, js)
	if err != nil {
		return err
	}
	c.startSurfaces(parts, js, state)
	select {
	case <-ctx.Done():
		return nil
	case err := <-parts.failed:
		return err
	}
}

// startRecord builds the views, and starts what takes the rigs' events.
func (c *Control) startRecord(ctx context.Context, parts *parts, link *link, js jetstream.JetStream) (*busState, error) {
	c.tell("building the views from the events stream")
	if err := c.retireViews(ctx); err != nil {
		return nil, err
	}
	c.apply = apply.New(apply.Config{Store: c.store, Source: events.NewStream(js), Runs: c.runs, Commands: c.commands, KB: c.kb, Views: c.views, Clock: c.config.Now, Log: c.config.Log})
	if err := c.apply.Start(ctx); err != nil {
		return nil, err
	}
	writer := events.NewWriter(events.WriterConfig{JS: js, Room: link.admin, Apply: c.apply, Runs: c.runs, Clock: c.config.Now, Log: c.config.Log})
	taking := reports.New(reports.Config{JS: js, Store: c.store, Rigs: c.rigs, Writer: writer, Ledgers: c.apply, Names: c.views, Clock: c.config.Now, Log: c.config.Log})
	answering := asks.New(asks.Config{NC: link.asks, Rigs: c.rigs, Commands: c.commands, Daily: c.daily, Screens: c.screens, Space: c.space, KB: c.kb, Place: c.apply.Place, Signer: c.identity.Signer, Clock: c.config.Now, Log: c.config.Log})
	files, err := inbox.Open(inbox.Config{JS: js, Store: c.store, Dir: c.config.kbFilesDir(), Floor: c.config.KBFloor << 20, Clock: c.config.Now, Log: c.config.Log})
	if err != nil {
		return nil, err
	}
	parts.start("the apply", c.apply.Run)
	parts.start("the rigs' reports", taking.Run)
	parts.start("the rigs' asks", answering.Run)
	parts.start("the knowledge base's files", files.Run)
	parts.start("the rigs' consumers", users.NewConsumers(js, c.users, c.config.Log).Run)
	liveJS, err := jetstream.New(link.live)
	if err != nil {
		return nil, fmt.Errorf("opening JetStream for live lines: %w", err)
	}
	c.live = live.New(live.Config{Rigs: c.rigs, Runs: c.runs, Clock: c.config.Now, Log: c.config.Log, MaxBytes: c.config.liveBytes()})
	parts.start("the live lines", func(ctx context.Context) error { return c.live.Run(ctx, liveJS) })
	parts.start("the commands", func(ctx context.Context) error { return c.commands.Run(ctx, commands.NewStream(js)) })
	parts.start("the rigs' config", func(ctx context.Context) error { return c.configs.Run(ctx, rigconfig.NewStream(js)) })
	return &busState{watch: link.watch, admin: link.admin, users: c.users, writer: writer, apply: c.apply, reports: taking, configs: c.configs, live: c.live}, nil
}

// join is what a rig's machine must know.
func (c *Control) join() service.Join {
	return service.Join{ControlURL: c.URL(), BusURL: c.config.busPublicURL(), Authority: string(c.authority.PEM()), Fingerprint: c.authority.Fingerprint(),
		SigningKey: c.SigningKey().String()}
}

// startSurfaces starts what people and programs call.
func (c *Control) startSurfaces(parts *parts, js jetstream.JetStream, state *busState) {
	reader := events.NewReader(js, c.views)
	c.views.Use(reader)
	s := service.New(service.Config{
		Store: c.store, Rigs: c.rigs, Needs: c.needs, Views: c.views, Events: reader, Commands: c.commands, Runs: c.runs, Live: c.live, Bus: state,
		Daily: c.daily, Screens: c.screens, Space: c.space, KB: c.kb, Configs: c.configs,
		Join:  c.join(),
		Build: c.config.Build, Now: c.config.Now, Rand: c.config.Rand, Log: c.config.Log,
	})
	c.service.Store(s)
	parts.start("the service", s.Run)
	mux := http.NewServeMux()
	mux.Handle("/v1/", rest.New(s, c.config.Log))
	mux.Handle(mcp.Path, mcp.New(s, c.config.Log, mcp.Options{URL: c.URL(), Build: c.config.Build}))
	mux.Handle("/", dash.New(s, c.config.Log, dash.Options{Plain: strings.HasPrefix(c.URL(), "http://")}))
	mux.Handle(metrics.Path, metrics.New(s, c.config.Build, c.config.Log))
	parts.start("the pages and the API", httpPart(c.listener, mux, c.tls, c.config.Log, c.ready))
}

// reachBus waits for the bus's server, and has it take the users.
func (c *Control) reachBus(ctx context.Context, link *link) error {
	c.tell("waiting for the bus's server at " + c.config.BusURL)
	err := link.came.wait(ctx, func(err error) {
		c.config.Log.Warn("control waits for the bus's server", "url", c.config.BusURL, "err", err)
	})
	if err != nil {
		return err
	}
	if err := link.systemCame.wait(ctx, func(error) {}); err != nil {
		return err
	}
	// The server answers nothing while it reloads, so what is asked of it
	// waits for the first reload. One that fails is tried again at each look.
	if err := c.users.Now(ctx); ctx.Err() != nil {
		return err
	}
	return nil
}

// openStreams makes the bus's streams.
func (c *Control) openStreams(ctx context.Context, link *link) (jetstream.JetStream, error) {
	js, err := jetstream.New(link.control)
	if err != nil {
		return nil, fmt.Errorf("opening JetStream: %w", err)
	}
	for said := ""; ; {
		err := c.ensureStreams(ctx, js)
		if fatal := (*apply.StreamError)(nil); err == nil || errors.As(err, &fatal) {
			return js, err
		}
		if err.Error() != said {
			said = err.Error()
			c.tell("making the bus's streams")
			c.config.Log.Warn("the bus's streams are not there yet; trying again", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(streamsRetry):
		}
	}
}

// ensureStreams makes the streams. A store that applied some of EVENTS is not
// given an empty one: that would be in the way of the one to restore.
func (c *Control) ensureStreams(ctx context.Context, js jetstream.JetStream) error {
	applied, err := c.store.Applied(ctx)
	if err != nil {
		return err
	}
	if applied.Place > 0 {
		_, err := js.Stream(ctx, wire.StreamEvents)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return apply.Lost(applied.Place)
		}
		if err != nil {
			return fmt.Errorf("looking for the events stream: %w", err)
		}
	}
	return bus.EnsureStreams(ctx, js, c.config.liveBytes())
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

// place gives where control is in the rig's events. No rig registers before
// the apply is there.
func (c *Control) place(ctx context.Context, rig string) (wire.Place, error) {
	return c.apply.Place(ctx, rig)
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
