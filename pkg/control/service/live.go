package service

import (
	"context"
	"fmt"
	"time"

	"thermite/pkg/control/live"
	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// Live is the live view.
type Live interface {
	// Read gives a scope's lines after the cursor, the newest if there are
	// more than most, and what is closed when there are others.
	Read(s live.Scope, after live.Cursor, most int, w live.Want) (live.Page, <-chan struct{})
	// Active gives the runs that lines came of, the newest first.
	Active(rig string, most int) []live.Active
	// Watch counts somebody who watches.
	Watch() (done func())
}

// LiveLine is one live line.
type LiveLine = live.LiveLine

// LiveSource is who says live lines.
type LiveSource = live.LiveSource

// LiveQuery says whose live lines: everyone's; one rig's, with Rig; or a
// run's, with Rig and Run.
type LiveQuery struct {
	Rig, Run string
	// After is the Next of the page before; empty for the newest lines.
	After string
	// Limit is the most lines; 0 and more than wire.MaxLiveWaiting are that.
	Limit int
	// Wait is how long to wait for a line when there is none yet, at most
	// MaxWait.
	Wait time.Duration
}

// LivePage is live lines.
type LivePage struct {
	Rig     string       `json:"rig,omitzero" doc:"Whose, when one rig's were asked" example:"workshop"`
	Run     string       `json:"run,omitzero" doc:"Of which run, when one run's were asked" example:"pack26"`
	Lines   []LiveLine   `json:"lines" nullable:"false" doc:"The lines, the newest last, at most 500"`
	Missed  uint64       `json:"missed" doc:"How many lines came after the ones asked for that are not among these: a reader that falls behind gets the newest"`
	Sources []LiveSource `json:"sources" nullable:"false" doc:"Who says lines there, the one that spoke last first"`
	Runs    []LiveRun    `json:"runs" nullable:"false" doc:"Unless one run's were asked: the runs that lines came of, the newest first"`
	Next    string       `json:"next" doc:"Give this as after for the lines that follow; empty while there were none" example:"20311.4.1764590000000.77"`
}

// LiveRun is a run that live lines came of.
type LiveRun struct {
	Rig    string    `json:"rig" doc:"The rig" example:"workshop"`
	Run    string    `json:"run" doc:"The run" example:"pack26"`
	Lines  uint64    `json:"lines" doc:"Lines that control took since it started"`
	LastAt wire.Time `json:"last_at" doc:"When the newest was said"`
	Last   LiveLine  `json:"last" doc:"The newest"`
}

// mostLiveRuns is how many runs a page of live lines names.
const mostLiveRuns = 100

// scope reads whose lines are asked for.
func (s *Service) scope(ctx context.Context, q LiveQuery) (live.Scope, error) {
	scope := live.Scope{Rig: q.Rig, Run: q.Run}
	switch {
	case q.Rig == "" && q.Run != "":
		return scope, invalid("query.run", fmt.Errorf("run needs rig: each rig may have a run of that name"))
	case q.Rig == "":
		return scope, nil
	}
	if _, err := s.rig(ctx, q.Rig); err != nil {
		return scope, err
	}
	if q.Run != "" && !s.config.Runs.Holds(q.Run, q.Rig) {
		return scope, noRun(RunName{Rig: q.Rig, Run: q.Run})
	}
	return scope, nil
}

// liveCursor reads where the caller is.
func liveCursor(location, after string) (live.Cursor, error) {
	c, err := live.ParseCursor(after)
	if err != nil {
		return c, invalid(location, fmt.Errorf("after must be the next of another page: %w", err))
	}
	return c, nil
}

// LiveLines gives live lines: the newest, or those after a page's next. With
// a wait it answers as soon as there is one, or with none when the wait is
// over.
func (s *Service) LiveLines(ctx context.Context, c Caller, q LiveQuery) (LivePage, error) {
	if err := c.Check(MayRead); err != nil {
		return LivePage{}, err
	}
	switch {
	case q.Limit < 0 || q.Limit > wire.MaxLiveWaiting:
		return LivePage{}, invalid("query.limit", fmt.Errorf("limit must be 1 to %d", wire.MaxLiveWaiting))
	case q.Wait < 0 || q.Wait > MaxWait:
		return LivePage{}, invalid("query.wait", fmt.Errorf("wait must be 0s to %v", MaxWait))
	case q.Limit == 0:
		q.Limit = wire.MaxLiveWaiting
	}
	after, err := liveCursor("query.after", q.After)
	if err != nil {
		return LivePage{}, err
	}
	scope, err := s.scope(ctx, q)
	if err != nil {
		return LivePage{}, err
	}
	got, changed := s.config.Live.Read(scope, after, q.Limit, live.All)
	if len(got.Lines) == 0 && q.Wait > 0 {
		done, err := s.limits.wait(c.id())
		if err != nil {
			return LivePage{}, err
		}
		defer done()
		timer := time.NewTimer(q.Wait)
		defer timer.Stop()
		for over := false; len(got.Lines) == 0 && !over; {
			select {
			case <-ctx.Done():
				return LivePage{}, cancelled(ctx.Err())
			case <-timer.C:
				over = true
			case <-changed:
			}
			got, changed = s.config.Live.Read(scope, after, q.Limit, live.All)
		}
	}
	page := LivePage{Rig: q.Rig, Run: q.Run, Lines: append([]LiveLine{}, got.Lines...), Missed: got.Missed, Sources: append([]LiveSource{}, got.Sources...),
		Runs: []LiveRun{}, Next: got.Next.String()}
	if q.Run == "" {
		for _, a := range s.config.Live.Active(q.Rig, mostLiveRuns) {
			page.Runs = append(page.Runs, LiveRun{Rig: a.Rig, Run: a.Run, Lines: a.Lines, LastAt: wire.At(a.LastAt), Last: a.Last})
		}
	}
	return page, nil
}

// LiveWatch is somebody who watches live lines as they come.
type LiveWatch struct {
	view  Live
	scope live.Scope
	after live.Cursor
	done  []func()
}

// LiveNews are lines that came, each in JSON as LiveLine is.
type LiveNews struct {
	Lines  [][]byte
	Missed uint64
	// Next is the place after them, to go on from.
	Next string
}

// WatchLive begins to watch live lines from a place on; Close ends it.
func (s *Service) WatchLive(ctx context.Context, c Caller, q LiveQuery) (*LiveWatch, error) {
	if err := c.Check(MayRead); err != nil {
		return nil, err
	}
	after, err := liveCursor("header.Last-Event-ID", q.After)
	if err != nil {
		return nil, err
	}
	scope, err := s.scope(ctx, q)
	if err != nil {
		return nil, err
	}
	done, err := s.limits.view(c.id())
	if err != nil {
		return nil, err
	}
	return &LiveWatch{view: s.config.Live, scope: scope, after: after, done: []func(){done, s.config.Live.Watch()}}, nil
}

// Close ends the watching.
func (w *LiveWatch) Close() {
	for _, done := range w.done {
		done()
	}
}

// Next gives the lines that came since the last call, and waits for some until
// ctx ends: then it gives none. Of more than 500 it gives the newest, and how
// many it leaves out.
func (w *LiveWatch) Next(ctx context.Context) (news LiveNews, ok bool) {
	for {
		page, changed := w.view.Read(w.scope, w.after, wire.MaxLiveWaiting, live.RawOnly)
		if len(page.Raw) > 0 {
			w.after = page.Next
			return LiveNews{Lines: page.Raw, Missed: page.Missed, Next: page.Next.String()}, true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return LiveNews{}, false
		}
	}
}

// rigsLive gives what the rigs' supervisors counted.
func (s *Service) rigsLive(ctx context.Context) ([]RigLive, error) {
	all, err := s.config.Rigs.List(ctx)
	if err != nil {
		return nil, err
	}
	list := []RigLive{}
	for _, r := range all {
		if f := liveFigures(r.Rig); f != nil && !r.Retired() {
			list = append(list, RigLive{Rig: r.Name, Published: f.Published, Dropped: f.Dropped})
		}
	}
	return list, nil
}

func liveFigures(r store.Rig) *wire.LiveFigures { return r.Figures.Live }
