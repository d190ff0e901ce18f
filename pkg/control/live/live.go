// Package live is control's live view: what the rigs' agents are doing now.
//
//	LIVE ─▶ one consumer, in order ─▶ checks ─▶ the newest lines of each run, each rig, and all ─▶ pages
//
// It is a view, not a record: it is in memory, of bounded size, and built
// again from what the bus still keeps when control starts. Guarantees: a line
// is in it once, in its source's order; a message that fails a check is
// counted by why, taken off the bus and not shown later; a reader that falls
// behind gets the newest lines and how many it missed, and holds up nobody.
package live

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/time/rate"

	"thermite/pkg/control/rigs"
	"thermite/pkg/wire"
)

// Rigs are control's rigs.
type Rigs interface {
	ReportKeys(ctx context.Context, rig string) (rigs.KeyState, error)
}

// Runs is control's run registry.
type Runs interface {
	// Holds says that the registry gives the run to the rig.
	Holds(run, rig string) bool
}

// Config is what a View works with.
type Config struct {
	Rigs  Rigs
	Runs  Runs
	Clock func() time.Time
	Log   *slog.Logger
	// MaxBytes is what LIVE holds at most; 0 is wire.MaxLiveBytes.
	MaxBytes int64
}

// LiveLine is a live line as control shows it.
type LiveLine struct {
	Rig    string    `json:"rig" doc:"The rig" example:"workshop"`
	Run    string    `json:"run,omitzero" doc:"The run; absent for a line of none" example:"pack26"`
	Source string    `json:"source" doc:"Who says it: planner, judge, controller, trial:<n>, supervisor or advisor:<name>" example:"trial:3"`
	At     wire.Time `json:"at" doc:"When it was said, by the rig's clock"`
	Text   string    `json:"text" doc:"The line"`
	Number uint64    `json:"number" doc:"Counts the source's lines up from 1 since its part of the rig started" example:"41"`
	// Missed are lines of the source before this one that did not come.
	Missed uint64 `json:"missed,omitzero" doc:"How many of the source's lines just before this one did not come to control"`
}

// entry is a line in the view.
type entry struct {
	LiveLine
	at place
	// raw is the line in JSON, written once for all who watch.
	raw []byte
}

// place is where a line lies in LIVE: its message, and which line there.
type place struct {
	seq   uint64
	index int
}

func (p place) before(q place) bool { return p.seq < q.seq || p.seq == q.seq && p.index < q.index }

// Scope says whose lines: everyone's, one rig's, or those of one run of a rig.
type Scope struct{ Rig, Run string }

// Bounds of what the view keeps: so many lines of each scope, of so many
// bytes, and so many bytes of all scopes; and how many logs it knows.
const (
	keepLines = 2000
	keepBytes = 2 << 20
	keepAll   = 256 << 20
	keepLogs  = 20_000
)

// View is the live view. Its methods may be called from any goroutine.
type View struct {
	cfg    Config
	seldom rate.Sometimes

	mu    sync.RWMutex
	feeds map[Scope]*feed
	// bytes are those of all feeds, and made is the number of the last one.
	bytes int
	made  uint64
	logs  *logs
	state State
	// watching counts those who watch now.
	watching int
}

// State says what the view took.
type State struct {
	// Messages and Lines are those taken since control started. Again counts
	// the lines that came once more and were passed over.
	Messages, Lines, Again uint64
	// Refused counts the messages refused, by why.
	Refused map[Why]uint64
	// Last is why the last one was refused, in words, and LastAt when.
	Last   string
	LastAt time.Time
	// Missed counts lines that did not come, by their numbers.
	Missed uint64
	// Watching is how many pages and programs watch now.
	Watching int
	// Waits is why the consumer waits; nil while it works.
	Waits error
}

// New makes a view without lines.
func New(cfg Config) *View {
	v := &View{cfg: cfg, seldom: rate.Sometimes{First: 10, Interval: time.Minute}, feeds: map[Scope]*feed{}, logs: newLogs(keepLogs),
		state: State{Refused: map[Why]uint64{}},
		// No feed of an earlier start has the number of one of this.
		made: uint64(cfg.Clock().UnixMilli())}
	v.feed(Scope{})
	return v
}

// State gives what the view took.
func (v *View) State() State {
	v.mu.RLock()
	defer v.mu.RUnlock()
	s := v.state
	s.Watching = v.watching
	s.Refused = make(map[Why]uint64, len(v.state.Refused))
	for why, n := range v.state.Refused {
		s.Refused[why] = n
	}
	return s
}

// waits keeps why the consumer waits.
func (v *View) waits(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.state.Waits = err
}

// Take adds a batch that passed the checks, from its message in LIVE.
func (v *View) Take(seq uint64, b wire.LiveBatch) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	skip, missed := v.logs.next(b)
	v.state.Messages++
	v.state.Again += uint64(skip)
	v.state.Missed += missed
	if skip == len(b.Lines) {
		return nil
	}
	fresh := make([]*entry, 0, len(b.Lines)-skip)
	for i, l := range b.Lines[skip:] {
		e := &entry{LiveLine: LiveLine{Rig: b.Rig, Run: b.Run, Source: b.Source, At: l.At, Text: l.Text, Number: l.Number}, at: place{seq, skip + i}}
		if i == 0 {
			e.Missed = missed
		}
		raw, err := json.Marshal(e.LiveLine)
		if err != nil {
			return fmt.Errorf("writing a live line: %w", err)
		}
		e.raw = raw
		fresh = append(fresh, e)
	}
	v.state.Lines += uint64(len(fresh))
	scopes := []Scope{{}, {Rig: b.Rig}}
	if b.Run != "" {
		scopes = append(scopes, Scope{b.Rig, b.Run})
	}
	for _, s := range scopes {
		v.feed(s).add(fresh, v)
	}
	v.trim()
	return nil
}

// feed gives the scope's lines. The mutex is held.
func (v *View) feed(s Scope) *feed {
	f := v.feeds[s]
	if f == nil {
		v.made++
		f = newFeed(v.made)
		v.feeds[s] = f
	}
	return f
}

// trim forgets the feeds that had their newest line longest ago, when all
// hold too much.
func (v *View) trim() {
	for v.bytes > keepAll && len(v.feeds) > 1 {
		var oldest Scope
		found := false
		for s := range v.feeds {
			if s != (Scope{}) && (!found || v.feeds[s].newest().before(v.feeds[oldest].newest())) {
				oldest, found = s, true
			}
		}
		f := v.feeds[oldest]
		v.bytes -= f.bytes
		delete(v.feeds, oldest)
		close(f.changed) // who watches looks again, and finds the next one
	}
}
