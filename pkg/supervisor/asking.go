package supervisor

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"thermite/pkg/supervisor/asks"
	"thermite/pkg/supervisor/daily"
	"thermite/pkg/supervisor/kb"
	"thermite/pkg/supervisor/screens"
	"thermite/pkg/supervisor/space"
	"thermite/pkg/wire"
)

// asking are the loops that ask control beside the figures.
type asking struct {
	daily *daily.Loop
	// relay asks what trials ask of the knowledge base.
	relay *kb.Relay
	space *space.Loop
	// screens sends what watched trials print.
	screens *screens.Loop
}

// startAsking makes them.
func (s *Supervisor) startAsking(asker *asks.Asker) *asking {
	on := onLinkAsks{s.link, asker}
	a := &asking{
		daily: daily.New(daily.Config{Rig: s.cfg.Rig, Harness: s.harness, Control: on, At: s.cfg.DailyAt, File: s.cfg.dailyPath(),
			Every: s.times.DailyLook, Now: s.cfg.Now, Log: s.cfg.Log}),
		relay:   kb.NewRelay(kb.RelayConfig{Harness: s.harness, Control: on, Log: s.cfg.Log}),
		screens: screens.New(screens.Config{Harness: s.harness, Control: on, Watched: s.times.ScreensWatched, Idle: s.times.ScreensIdle, Log: s.cfg.Log}),
		space:   space.New(space.Config{Harness: s.harness, Control: on, Every: s.times.Space, Retry: time.Duration(s.cfg.Poll), Log: s.cfg.Log}),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking = a
	return a
}

// run runs them until ctx ends.
func (a *asking) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.daily.Run(ctx) })
	g.Go(func() error { return a.relay.Run(ctx) })
	g.Go(func() error { return a.space.Run(ctx) })
	g.Go(func() error { return a.screens.Run(ctx) })
	return g.Wait()
}

// figures say how each is.
func (a *asking) figures(loops map[string]wire.LoopFigures) {
	if a == nil {
		return
	}
	loops["daily"], loops["space"] = a.daily.State(), a.space.State()
	loops["screens"] = a.screens.State()
	loops["kb"] = a.relay.State()
}

// onLinkAsks asks while the bus is there.
type onLinkAsks struct {
	link *link
	*asks.Asker
}

// Daily implements daily.Control.
func (o onLinkAsks) Daily(ctx context.Context, report wire.DailyAsk) (string, error) {
	if err := o.link.check(); err != nil {
		return "", err
	}
	ctx, cancel := o.link.while(ctx)
	defer cancel()
	return o.Asker.Daily(ctx, report)
}

// Space implements space.Control.
func (o onLinkAsks) Space(ctx context.Context, report wire.SpaceReport) error {
	if err := o.link.check(); err != nil {
		return err
	}
	ctx, cancel := o.link.while(ctx)
	defer cancel()
	return o.Asker.Space(ctx, report)
}

// Screens implements screens.Control.
func (o onLinkAsks) Screens(ctx context.Context, sent []wire.Screen) ([]wire.TrialRef, error) {
	if err := o.link.check(); err != nil {
		return nil, err
	}
	ctx, cancel := o.link.while(ctx)
	defer cancel()
	return o.Asker.Screens(ctx, sent)
}
