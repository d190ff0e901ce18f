package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"thermite/cmd/thermite/internal/client"
	"thermite/cmd/thermite/internal/settings"
	"thermite/cmd/thermite/internal/up"
	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// demoCampaign is the campaign that demos' runs are in.
const demoCampaign = "demo"

// demoResult is what a demo came to.
type demoResult struct {
	// Dashboard is the run's page.
	Dashboard string `json:"dashboard"`
	Rig       string `json:"rig"`
	Run       string `json:"run"`
	Kit       string `json:"kit"`
	// Attempt is the champion, Score its score, and Base the kit's base's.
	Attempt uint64  `json:"attempt"`
	Score   float64 `json:"score"`
	Base    float64 `json:"base"`
	Verdict string  `json:"verdict"`
	Why     string  `json:"why"`
	// Attempts is how many there were by then.
	Attempts uint64 `json:"attempts"`
	// Signatures says that each event that control holds, the champion's too,
	// is on a page that the rig's key signed, and that their chain is the one
	// that control holds; Events is how many.
	Signatures   bool   `json:"signatures_verified"`
	Events       uint64 `json:"events_verified"`
	Ledger       string `json:"ledger"`
	Milliseconds int64  `json:"elapsed_ms"`
}

// A demo is a run on the rig that thermite up started.
type demo struct {
	app   *app
	ready up.Ready
	flags upFlags
	began time.Time
	calls *client.Client
	run   service.RunName
	told  verdicts
}

// watchDemo starts the demo's run and says how far it is, until there is a
// champion if that is what is waited for, and else until up ends.
func (a *app) watchDemo(ctx context.Context, f upFlags, r up.Ready, ended chan error, began time.Time) error {
	own := *a
	own.flags = settings.Flags{Config: r.Client}
	own.getenv = func(string) string { return "" } // this control, whatever the environment names
	c, err := own.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	if f.timeout > 0 {
		late, cancel := context.WithDeadlineCause(ctx, began.Add(f.timeout), errLate)
		defer cancel()
		ctx = late
	}
	d := &demo{app: a, ready: r, flags: f, began: began, calls: c}
	err = d.work(ctx, ended)
	a.progressDone()
	switch {
	case err != nil && errors.Is(context.Cause(ctx), errLate):
		return fmt.Errorf("no champion after %v: %s", f.timeout, d.told.words())
	case err != nil && ctx.Err() != nil:
		return errEnded
	}
	return err
}

// errLate says that --timeout is over.
var errLate = errors.New("late")

func (d *demo) work(ctx context.Context, ended chan error) error {
	if err := d.start(ctx); err != nil {
		return fmt.Errorf("starting the demo's run: %w", err)
	}
	d.app.warn("  run        %s", d.page())
	tick := time.NewTicker(watchTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			ended <- err
			return errEnded
		case <-tick.C:
		}
		v, err := d.calls.Run(ctx, d.run)
		if err != nil {
			return err
		}
		d.say(v.Run)
		switch {
		case v.State == service.RunEnded && v.Outcome == "failed":
			return fmt.Errorf("the demo's run failed: %s", v.Why)
		case d.flags.until == untilChampion && v.Champion != nil && v.Champion.Attempt > 0:
			if done, err := d.finish(ctx, v); done || err != nil {
				return err
			}
		case d.flags.until == untilChampion && v.State == service.RunEnded:
			return fmt.Errorf("the demo's run ended without a champion: %s", v.Why)
		}
	}
}

// start has control give the rig the run.
func (d *demo) start(ctx context.Context) error {
	f := d.flags
	is, err := d.calls.StartRun(ctx, service.NewRun{Rig: up.RigName, Campaign: demoCampaign, Kit: wire.KitSource{Embedded: f.kit},
		Worker: f.worker, Lanes: f.lanes, Seed: f.seed})
	if err == nil {
		d.run = service.RunName{Rig: is.Rig, Run: is.Run}
		is, err = d.app.await(ctx, d.calls, is)
	}
	if err != nil {
		return err
	}
	return outcomeError(is)
}

// page is the address of the run's page.
func (d *demo) page() string {
	return d.ready.URL + "/rigs/" + url.PathEscape(d.run.Rig) + "/runs/" + url.PathEscape(d.run.Run)
}

// say tells what is new of the run.
func (d *demo) say(v service.Run) {
	for _, line := range d.told.news(v) {
		d.app.progressClear()
		d.app.warn("%s", line)
	}
	d.app.progress("%s", d.told.words())
}

// finish gives the result, once control holds what leads to the champion.
func (d *demo) finish(ctx context.Context, v service.RunView) (done bool, err error) {
	signed, err := verifySigned(ctx, d.ready, d.calls)
	if err != nil {
		return false, err
	}
	if signed.ledger != v.Ledger || signed.events < v.Champion.ID {
		return false, nil // the view is ahead of what was looked at
	}
	r := demoResult{Dashboard: d.page(), Rig: d.run.Rig, Run: d.run.Run, Kit: v.Kit, Attempt: v.Champion.Attempt, Verdict: wire.VerdictPromoted,
		Why: v.Champion.Why, Attempts: v.Attempts, Signatures: true, Events: signed.events, Ledger: v.Ledger,
		Milliseconds: time.Since(d.began).Milliseconds()}
	if v.Champion.Score != nil {
		r.Score = *v.Champion.Score
	}
	if v.Base != nil && v.Base.Score != nil {
		r.Base = *v.Base.Score
	}
	d.app.progressDone()
	if d.app.json {
		return true, d.app.printJSON(r)
	}
	_, err = fmt.Fprintf(d.app.out, "Attempt %d of run %s is its champion: %s, where the kit's base has %s.\n"+
		"Control holds %d events of the rig, each signed by the rig's key, and their chain is the ledger's.\n",
		r.Attempt, r.Run, figure(r.Score), figure(r.Base), r.Events)
	return true, err
}

// figure writes a score.
func figure(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
