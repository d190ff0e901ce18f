package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"thermite/pkg/wire"
)

const run0 = "/v1/rigs/" + rigName + "/runs/" + runName

// command is a command as control shows it.
type command struct {
	ID    string `json:"id"`
	State string `json:"state"`
	Why   string `json:"why"`
}

// event is an event as control shows it.
type event struct {
	Seq   uint64     `json:"seq"`
	Event wire.Event `json:"event"`
}

// page is a page of events.
type page struct {
	Events []event `json:"events"`
	Next   string  `json:"next"`
}

// begin gives the rig a run, and waits for its first verdict: from then on it
// submits and judges.
func (w *world) begin(ctx context.Context) error {
	var c command
	err := w.until(ctx, beginWait, "the rig to register", func() error {
		return w.call(ctx, http.MethodPost, "/v1/runs", map[string]any{"rig": rigName, "run": runName, "kit": map[string]string{"embedded": kitName}}, &c)
	})
	if err != nil {
		return err
	}
	if _, err := w.outcome(ctx, c); err != nil {
		return err
	}
	return w.until(ctx, beginWait, "the first attempt's verdict", func() error {
		var p page
		if err := w.call(ctx, http.MethodGet, "/v1/rigs/"+rigName+"/events?limit=2&kind=verdict", nil, &p); err != nil {
			return err
		}
		if len(p.Events) < 2 { // the base's is the first
			return errors.New("there is none yet")
		}
		return nil
	})
}

// outcome waits for the command's outcome, and gives when control showed it.
func (w *world) outcome(ctx context.Context, c command) (at time.Time, err error) {
	err = w.until(ctx, 3*wire.PollInterval, "the outcome of command "+c.ID, func() error {
		if err := w.call(ctx, http.MethodGet, "/v1/commands/"+c.ID+"?wait=30s", nil, &c); err != nil {
			return err
		}
		at = time.Now()
		if c.State == "pending" {
			return errors.New("it is pending")
		}
		return nil
	})
	if err == nil && c.State != "applied" {
		err = fmt.Errorf("command %s is %s: %s", c.ID, c.State, c.Why)
	}
	return at, err
}

// measureCommands pauses the run and resumes it, again and again: when the
// harness recorded each command is by the harness's own clock, which here is
// control's.
func (w *world) measureCommands(ctx context.Context, rows []row, n int) error {
	for i := range n {
		verb := []string{"pause", "resume"}[i%2]
		var c command
		began := time.Now()
		if err := w.call(ctx, http.MethodPost, run0+"/"+verb, map[string]string{"why": "to measure how long it takes"}, &c); err != nil {
			return err
		}
		shown, err := w.outcome(ctx, c)
		if err != nil {
			return err
		}
		recorded, err := w.recorded(ctx, c.ID)
		if err != nil {
			return err
		}
		rows[rowCommand].took(recorded.Sub(began))
		rows[rowOutcome].took(shown.Sub(began))
	}
	if n%2 == 1 {
		var c command
		if err := w.call(ctx, http.MethodPost, run0+"/resume", map[string]string{}, &c); err != nil {
			return err
		}
		_, err := w.outcome(ctx, c)
		return err
	}
	return nil
}

// recorded gives when the harness recorded the command.
func (w *world) recorded(ctx context.Context, id string) (at time.Time, err error) {
	for after := ""; ; {
		var p page
		if err := w.call(ctx, http.MethodGet, "/v1/rigs/"+rigName+"/events?limit=5000&kind=command&after="+after, nil, &p); err != nil {
			return at, err
		}
		for _, e := range p.Events {
			b, err := wire.ReadBody[wire.CommandTaken](e.Event)
			if err == nil && b.ID == id {
				return e.Event.Time.Time(), nil
			}
		}
		if after = p.Next; len(p.Events) == 0 {
			return at, fmt.Errorf("no event tells of command %s", id)
		}
	}
}

// measureVerdicts watches the verdicts come, which nobody asks for: each
// until the attempt's page shows it, and until a search finds its record.
func (w *world) measureVerdicts(ctx context.Context, rows []row, reports int) error {
	// From here on; what came before was hurried by the commands.
	var p page
	if err := w.call(ctx, http.MethodGet, "/v1/rigs/"+rigName+"/events?limit=1&kind=rig_check", nil, &p); err != nil {
		return err
	}
	after, from := p.Next, time.Now()
	for n := 0; n < reports; {
		ask := url.Values{"limit": {"5000"}, "kind": {wire.KindVerdict}, "wait": {"30s"}, "after": {after}}
		if err := w.call(ctx, http.MethodGet, "/v1/rigs/"+rigName+"/events?"+ask.Encode(), nil, &p); err != nil {
			return err
		}
		after = p.Next
		if len(p.Events) == 0 {
			if time.Since(from) > time.Duration(reports+3)*wire.PollInterval {
				return fmt.Errorf("in %v control got %d reports with verdicts", time.Since(from), n)
			}
			continue
		}
		n++
		for _, e := range p.Events {
			if err := w.measureVerdict(ctx, rows, e); err != nil {
				return err
			}
		}
		say("report %d brought %d verdicts", n, len(p.Events))
	}
	return nil
}

func (w *world) measureVerdict(ctx context.Context, rows []row, e event) error {
	b, err := wire.ReadBody[wire.Verdict](e.Event)
	if err != nil {
		return err
	}
	judged, number := e.Event.Time.Time(), strconv.FormatUint(b.Attempt, 10)
	err = w.until(ctx, time.Minute, "attempt "+number+" to show its verdict", func() error {
		var a struct {
			Outcome string `json:"outcome"`
		}
		if err := w.call(ctx, http.MethodGet, run0+"/attempts/"+number, nil, &a); err != nil {
			return err
		}
		if a.Outcome == "" {
			return errors.New("it shows none")
		}
		rows[rowVerdict].took(time.Since(judged))
		return nil
	})
	if err != nil {
		return err
	}
	return w.until(ctx, time.Minute, "a search to find attempt "+number, func() error {
		var found struct {
			Hits []struct {
				Event uint64 `json:"event"`
			} `json:"hits"`
		}
		ask := url.Values{"q": {"attempt " + number}, "run": {runName}, "limit": {"100"}}
		if err := w.call(ctx, http.MethodGet, "/v1/kb/search?"+ask.Encode(), nil, &found); err != nil {
			return err
		}
		for _, h := range found.Hits {
			if h.Event == e.Event.ID {
				rows[rowItem].took(time.Since(judged))
				return nil
			}
		}
		return fmt.Errorf("none of the %d items found is of event %d", len(found.Hits), e.Event.ID)
	})
}
