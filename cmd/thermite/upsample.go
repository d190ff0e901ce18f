package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"thermite/cmd/thermite/internal/up"
	"thermite/pkg/wire"
)

// errEnded says that thermite up ended by itself while it was watched;
// its own error says why.
var errEnded = errors.New("ended")

// watchTick is how often a demo or a sample says how far it is.
const watchTick = 500 * time.Millisecond

// sampleResult is what a sample came to.
type sampleResult struct {
	URL    string `json:"url"`
	Rig    string `json:"rig"`
	Ledger string `json:"ledger"`
	// Made is how many events the rig's ledger holds, Held how many of them
	// control does.
	Made uint64 `json:"made"`
	Held uint64 `json:"held"`
	// Same says that control's chain is the ledger's: the same events, each
	// once, in the same order.
	Same         bool    `json:"same"`
	Milliseconds float64 `json:"elapsed_ms"`
}

// watchSample says how far the sample is until control holds all of its events,
// and then what it came to.
func (a *app) watchSample(ctx context.Context, f upFlags, r up.Ready, ended chan error) error {
	d, err := a.waitHeld(ctx, f, r, ended)
	a.progressDone()
	if err != nil {
		return err
	}
	return a.sampleDone(d)
}

// waitHeld says how far the sample is until control holds all of its events.
func (a *app) waitHeld(ctx context.Context, f upFlags, r up.Ready, ended chan error) (sampleResult, error) {
	began := time.Now()
	tick := time.NewTicker(watchTick)
	defer tick.Stop()
	var late <-chan time.Time
	if f.timeout > 0 {
		late = time.After(f.timeout)
	}
	var d sampleResult
	for {
		select {
		case <-ctx.Done():
			return d, errEnded
		case err := <-ended:
			ended <- err
			return d, errEnded
		case <-late:
			d, _ = sampleState(ctx, r)
			return d, fmt.Errorf("not held after %v: the rig made %d events, and control holds %d of them", f.timeout, d.Made, d.Held)
		case <-tick.C:
		}
		var err error
		if d, err = sampleState(ctx, r); err != nil {
			return d, err
		}
		d.Milliseconds = float64(time.Since(began).Milliseconds())
		a.progress("%d of %d events made, %d of them with control", min(d.Made, f.events), f.events, d.Held)
		if d.Made > f.events && d.Held == d.Made {
			return d, nil
		}
	}
}

// sampleState asks the harness and control how far they are.
func sampleState(ctx context.Context, r up.Ready) (sampleResult, error) {
	held, chain, err := r.Control.Held(ctx, up.RigName)
	if err != nil {
		return sampleResult{}, err
	}
	state, err := r.Harness.Ledger().State()
	if err != nil {
		return sampleResult{}, err
	}
	d := sampleResult{URL: r.URL, Rig: up.RigName, Ledger: state.Ledger, Made: state.Last}
	if held.Ledger == state.Ledger {
		d.Held = held.Cursor
	}
	d.Same = held == (wire.Place{Ledger: state.Ledger, Cursor: state.Last}) && chain == state.Chain
	return d, nil
}

// sampleDone says what the sample came to.
func (a *app) sampleDone(d sampleResult) error {
	if !d.Same {
		return fmt.Errorf("control holds %d events of ledger %s, but not the ones the rig made", d.Held, d.Ledger)
	}
	if a.json {
		return a.printJSON(d)
	}
	_, err := fmt.Fprintf(a.out, "Rig %s made %d events. Control holds the same %d, each once and in order: its chain is the ledger's.\n", d.Rig, d.Made, d.Held)
	return err
}

// progress writes a line over the last one on a terminal, and nothing else
// where there is none.
func (a *app) progress(format string, args ...any) {
	if a.terminal.width > 0 {
		fmt.Fprint(a.errs, "\r\x1b[K"+plain(fmt.Sprintf(format, args...)))
	}
}

// progressClear takes the line back, for one that stays.
func (a *app) progressClear() {
	if a.terminal.width > 0 {
		fmt.Fprint(a.errs, "\r\x1b[K")
	}
}

// progressDone ends the line.
func (a *app) progressDone() {
	if a.terminal.width > 0 {
		fmt.Fprintln(a.errs)
	}
}
