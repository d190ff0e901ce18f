package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"thermite/cmd/thermite/internal/client"
	"thermite/pkg/control/service"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

// eventsFlags say which events of a rig to show.
type eventsFlags struct {
	after  uint64
	last   int
	all    bool
	limit  int
	kinds  []string
	run    string
	follow bool
}

// defaultLast is how many of the newest events are shown when nobody said.
const defaultLast = 20

// maxLast is how many of the newest events a rig's view names.
const maxLast = 200

func rigEventsCommand(a *app) *cobra.Command {
	var f eventsFlags
	var cmd *cobra.Command
	cmd = forRig(a, "events", "show a rig's events, in order", func(ctx context.Context, c *client.Client, rig string) error {
		if err := f.check(cmd); err != nil {
			return err
		}
		return a.events(ctx, c, rig, f)
	})
	cmd.Long = `Show a rig's events, in the order control holds them: the newest 20, or those that
the flags say. SEQ is an event's place in control's record, which --after takes; ID
is its number in the rig's ledger.`
	flags := cmd.Flags()
	flags.Uint64Var(&f.after, "after", 0, "show the events after this place")
	flags.IntVar(&f.last, "last", defaultLast, fmt.Sprintf("show so many of the newest, at most %d", maxLast))
	flags.BoolVar(&f.all, "all", false, "show every event")
	flags.IntVar(&f.limit, "limit", 0, "end after so many; 0: no limit")
	flags.StringSliceVar(&f.kinds, "kind", nil, "show only these kinds; give it again, or part them by commas")
	flags.StringVar(&f.run, "run", "", "show only this run's events")
	flags.BoolVarP(&f.follow, "follow", "f", false, "go on with events as they come; with --json, one a line")
	cmd.MarkFlagsMutuallyExclusive("after", "last", "all")
	return cmd
}

// check says what is wrong with the flags, and widens the default where a
// filter makes "the newest" hard to know.
func (f *eventsFlags) check(cmd *cobra.Command) error {
	switch {
	case f.limit < 0:
		return wrongUse("--limit is %d: 0 is no limit", f.limit)
	case f.last < 0 || f.last > maxLast:
		return wrongUse("--last is %d: use 0 to %d, or --all", f.last, maxLast)
	case f.after > wire.MaxInteger:
		return wrongUse("--after is %d: use 0 to %d", f.after, uint64(wire.MaxInteger))
	}
	for _, kind := range f.kinds {
		if err := wire.CheckKind(kind); err != nil {
			return useError{fmt.Errorf("--kind: %w", err)}
		}
	}
	if f.run != "" {
		if err := wire.CheckName("run", f.run); err != nil {
			return useError{fmt.Errorf("--run: %w", err)}
		}
	}
	filtered := len(f.kinds) > 0 || f.run != ""
	if cmd.Flags().Changed("after") || (filtered && !cmd.Flags().Changed("last")) {
		f.all = true // from after on
	}
	return nil
}

// events shows the rig's events that f says.
func (a *app) events(ctx context.Context, c *client.Client, rig string, f eventsFlags) error {
	after := f.after
	if !f.all {
		view, err := c.Rig(ctx, rig, "")
		if err != nil {
			return err
		}
		after = beforeLast(view, f.last)
	}
	w := a.eventsWriter(rig, f.follow)
	if err := a.readEvents(ctx, c, rig, after, f, w); err != nil {
		if f.follow && errors.Is(err, context.Canceled) {
			return nil // a person's Ctrl-C is how following ends
		}
		return err
	}
	return w.end()
}

// beforeLast is the place before the last n events of the rig.
func beforeLast(view service.RigView, n int) uint64 {
	recent := view.View.Recent
	switch {
	case n == 0:
		return view.LastSeq
	case len(recent) > n:
		return recent[n-1].Seq - 1
	case len(recent) > 0:
		return recent[len(recent)-1].Seq - 1
	default:
		return 0 // there is none, or the view failed: then all are shown
	}
}

// followRetry is how long following waits after a call that failed.
const followRetry = 2 * time.Second

// readEvents reads page after page and shows it, and with follow goes on for
// as long as ctx lasts.
func (a *app) readEvents(ctx context.Context, c *client.Client, rig string, after uint64, f eventsFlags, w eventsWriter) error {
	away := false
	for left := f.limit; ; {
		q := service.EventsQuery{After: after, Limit: wire.MaxEventsRead, Kinds: f.kinds, Run: f.run}
		if f.limit > 0 {
			q.Limit = min(left, wire.MaxEventsRead)
		}
		if f.follow {
			q.Wait = service.MaxWait
		}
		page, err := c.Events(ctx, rig, q)
		if err != nil {
			var called *client.Error
			if !f.follow || !errors.As(err, &called) || called.Exit != client.ExitUnreachable {
				return err
			}
			if !away {
				a.warn("%s; trying again", called.Words)
			}
			away = true
			if err := pause(ctx, followRetry); err != nil {
				return err
			}
			continue
		}
		if away {
			a.warn("control is back")
		}
		away = false
		if err := w.page(page); err != nil {
			return err
		}
		next, err := placeAfter(page, after)
		if err != nil {
			return err
		}
		after = next
		left -= len(page.Events)
		if (f.limit > 0 && left <= 0) || (!f.follow && !page.More) {
			return nil
		}
	}
}

// placeAfter is where to read on after the page.
func placeAfter(page service.EventsPage, after uint64) (uint64, error) {
	var next uint64
	if _, err := fmt.Sscanf(page.Next, "%d", &next); err != nil || next < after || (page.More && next == after) {
		return 0, fmt.Errorf("control's page of events after place %d says to go on after %q", after, page.Next)
	}
	return next, nil
}

// pause waits for d, or gives ctx's error.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// An eventsWriter shows pages of events as they come.
type eventsWriter interface {
	page(service.EventsPage) error
	end() error
}

func (a *app) eventsWriter(rig string, follow bool) eventsWriter {
	switch {
	case !a.json:
		return &eventsTable{app: a}
	case follow:
		return eventsLines{a}
	default:
		return &eventsDocument{app: a, rig: rig, encoder: jsontext.NewEncoder(a.out)}
	}
}

// eventsTable shows events as a table, a page's rows at a time.
type eventsTable struct {
	app  *app
	bare bool // the header is out
}

func (w *eventsTable) page(page service.EventsPage) error {
	if len(page.Events) == 0 {
		return nil
	}
	t := &table{header: []string{"SEQ", "ID", "TIME", "KIND", "RUN", "ACTOR", "WHAT"}, wide: []int{4, 6}, bare: w.bare}
	w.bare = true
	for _, e := range page.Events {
		decoded, err := e.Decode()
		if err != nil {
			return err
		}
		t.add(count(e.Seq), count(decoded.ID), w.app.clock(decoded.Time.Time()), decoded.Kind, orDash(decoded.Run), decoded.Actor, what(decoded))
	}
	return w.app.printTable(t)
}

func (w *eventsTable) end() error {
	if !w.bare {
		w.app.warn("There is no such event with control. A rig reports once a minute unless told otherwise; --follow waits for the next.")
	}
	return nil
}

// what says what an event is about, and what it says.
func what(e wire.Event) string { return about(e.Subject, views.Summary(e)) }

// about puts an event's subject before its summary, unless that names it.
func about(subject, summary string) string {
	if strings.Contains(summary, strings.Replace(subject, ":", " ", 1)) {
		return summary
	}
	return strings.TrimSpace(subject + " " + summary)
}

// clock writes an event's time: the time of day on a terminal if it was
// today, else in full.
func (a *app) clock(t time.Time) string {
	if a.terminal.width == 0 {
		return t.UTC().Format(time.RFC3339Nano)
	}
	return t.Local().Format("01-02 15:04:05")
}

// eventsLines shows each event as a line of JSON.
type eventsLines struct{ app *app }

func (w eventsLines) page(page service.EventsPage) error {
	for _, e := range page.Events {
		if err := w.app.printLine(e); err != nil {
			return err
		}
	}
	return nil
}

func (w eventsLines) end() error { return nil }

// eventsDocument shows all events as one document, a page at a time so that
// it never holds them all.
type eventsDocument struct {
	app     *app
	rig     string
	encoder *jsontext.Encoder
	begun   bool
	next    string
	more    bool
}

func (w *eventsDocument) page(page service.EventsPage) error {
	if !w.begun {
		if err := w.begin(); err != nil {
			return err
		}
	}
	w.next, w.more = page.Next, page.More
	for e := range slices.Values(page.Events) {
		if err := json.MarshalEncode(w.encoder, e, json.Deterministic(true)); err != nil {
			return fmt.Errorf("writing the events: %w", err)
		}
	}
	return nil
}

func (w *eventsDocument) begin() error {
	w.begun = true
	return w.tokens(jsontext.BeginObject, jsontext.String("rig"), jsontext.String(w.rig), jsontext.String("events"), jsontext.BeginArray)
}

func (w *eventsDocument) end() error {
	if !w.begun {
		if err := w.begin(); err != nil {
			return err
		}
	}
	return w.tokens(jsontext.EndArray, jsontext.String("next"), jsontext.String(w.next),
		jsontext.String("more"), jsontext.Bool(w.more), jsontext.EndObject)
}

func (w *eventsDocument) tokens(tokens ...jsontext.Token) error {
	for _, t := range tokens {
		if err := w.encoder.WriteToken(t); err != nil {
			return fmt.Errorf("writing the events: %w", err)
		}
	}
	return nil
}
