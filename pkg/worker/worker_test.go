package worker_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"thermite/pkg/wire"
	"thermite/pkg/worker"
	"thermite/pkg/worker/trialtest"
)

// run does a trial and gives its last line.
func run(t *testing.T, ctx context.Context, file string, work worker.Work) (wire.TrialResult, error) {
	t.Helper()
	var out strings.Builder
	err := worker.Run(ctx, worker.Config{File: file, Out: &out, Now: time.Now, Log: slog.New(slog.DiscardHandler)}, work)
	r, bad := wire.DecodeTrialResult(wire.LastLine([]byte(out.String())))
	if bad != nil {
		t.Fatalf("it prints %q: %v", out.String(), bad)
	}
	return r, err
}

// wait works until it must end.
func wait(ctx context.Context, _ worker.Job) (uint64, error) {
	<-ctx.Done()
	return 2, context.Cause(ctx)
}

// Promise: a trial's result says how it ended; a stop of its owner, of its
// time or by a signal is no failure.
func TestResults(t *testing.T) {
	for name, c := range map[string]struct {
		deadline time.Duration
		work     worker.Work
		does     func(w *trialtest.World, signal func())
		want     wire.TrialResult
	}{
		"done": {time.Hour, func(context.Context, worker.Job) (uint64, error) { return 3, nil }, nil,
			wire.TrialResult{Outcome: wire.ResultDone, Attempts: 3}},
		"failed": {time.Hour, func(context.Context, worker.Job) (uint64, error) { return 1, errors.New("no luck") }, nil,
			wire.TrialResult{Outcome: wire.ResultFailed, Why: "no luck", Attempts: 1}},
		"stopped": {time.Hour, wait, func(w *trialtest.World, _ func()) { w.Admitted.Stop("enough") },
			wire.TrialResult{Outcome: wire.ResultDone, Why: "enough", Attempts: 2}},
		"time": {2100 * time.Millisecond, wait, nil,
			wire.TrialResult{Outcome: wire.ResultDone, Why: "its time is up", Attempts: 2}},
		"signal": {time.Hour, wait, func(_ *trialtest.World, signal func()) { signal() },
			wire.TrialResult{Outcome: wire.ResultDone, Why: "the worker was told to end", Attempts: 2}},
		"nobody's token": {time.Hour, wait, func(w *trialtest.World, _ func()) { w.Admitted.Dismiss() },
			wire.TrialResult{Outcome: wire.ResultFailed, Attempts: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			w := trialtest.New(t, trialtest.Options{Trial: wire.Trial{Deadline: wire.At(time.Now().Add(c.deadline))}})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.does != nil {
				go c.does(w, cancel)
			}
			r, err := run(t, ctx, w.File, c.work)
			if c.want.Outcome == wire.ResultFailed && c.want.Why == "" {
				c.want.Why = r.Why
			}
			if r != c.want || (err != nil) != (r.Outcome == wire.ResultFailed) {
				t.Errorf("it ends with %+v, %v, not %+v", r, err, c.want)
			}
		})
	}
}

// Promise: a trial's file that is none fails the trial, and says what is
// wrong with it.
func TestTrialFiles(t *testing.T) {
	for name, c := range map[string]struct{ text, says string }{
		"empty":         {"", "reading the trial"},
		"unknown field": {`{"rigs":"alpha"}`, "rigs"},
		"no token":      {`{"url":"http://127.0.0.1:1","folder":"/lane","deadline":"2026-12-01T00:00:00.000000Z"}`, "no token"},
		"no folder":     {`{"url":"http://127.0.0.1:1","token":"x","deadline":"2026-12-01T00:00:00.000000Z"}`, "no folder"},
		"no deadline":   {`{"url":"http://127.0.0.1:1","token":"x","folder":"/lane"}`, "no deadline"},
		"too long":      {strings.Repeat(" ", 5<<20), "more than"},
		"none":          {"-", "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "trial.json")
			if c.text != "-" {
				if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r, err := run(t, t.Context(), file, wait)
			if err == nil || r.Outcome != wire.ResultFailed || !strings.Contains(r.Why, c.says) {
				t.Errorf("it ends with %+v, %v, not %q", r, err, c.says)
			}
		})
	}
}
