package live

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"thermite/pkg/wire"
)

// feed is the newest lines of one scope.
type feed struct {
	// id tells a feed from another of the scope, before it or after a start.
	id    uint64
	lines []*entry
	// count is how many lines there ever were: the newest one's number here.
	count   uint64
	bytes   int
	changed chan struct{}
	sources map[string]*LiveSource
}

// LiveSource is who said lines of a scope.
type LiveSource struct {
	Source string    `json:"source" doc:"Who says them" example:"trial:3"`
	Lines  uint64    `json:"lines" doc:"Lines that control took since it started"`
	Missed uint64    `json:"missed" doc:"Lines that did not come to control"`
	LastAt wire.Time `json:"last_at" doc:"When it said the newest"`
}

// maxSources is how many sources of a scope are known: the newest.
const maxSources = 200

func newFeed(id uint64) *feed {
	return &feed{id: id, changed: make(chan struct{}), sources: map[string]*LiveSource{}}
}

// add adds lines, all of one source, and drops the oldest there is no room for.
func (f *feed) add(fresh []*entry, v *View) {
	for _, e := range fresh {
		f.bytes, v.bytes = f.bytes+len(e.raw), v.bytes+len(e.raw)
	}
	f.lines = append(f.lines, fresh...)
	f.count += uint64(len(fresh))
	drop := 0
	for n := len(f.lines); n-drop > keepLines || f.bytes > keepBytes && n-drop > 1; drop++ {
		f.bytes, v.bytes = f.bytes-len(f.lines[drop].raw), v.bytes-len(f.lines[drop].raw)
	}
	if drop > 0 {
		f.lines = slices.Delete(f.lines, 0, drop)
	}
	f.note(fresh)
	close(f.changed)
	f.changed = make(chan struct{})
}

// note counts the lines of their source.
func (f *feed) note(fresh []*entry) {
	last := fresh[len(fresh)-1]
	s := f.sources[last.Source]
	if s == nil {
		if len(f.sources) >= maxSources {
			f.forget()
		}
		s = &LiveSource{Source: last.Source}
		f.sources[last.Source] = s
	}
	s.Lines, s.Missed, s.LastAt = s.Lines+uint64(len(fresh)), s.Missed+fresh[0].Missed, last.At
}

func (f *feed) forget() {
	var oldest *LiveSource
	for _, s := range f.sources {
		if oldest == nil || s.LastAt.Time().Before(oldest.LastAt.Time()) {
			oldest = s
		}
	}
	delete(f.sources, oldest.Source)
}

func (f *feed) newest() place {
	if len(f.lines) == 0 {
		return place{}
	}
	return f.lines[len(f.lines)-1].at
}

// Cursor says how far a reader has read a scope. The zero one has read
// nothing.
type Cursor struct {
	at place
	// feed and count say how many lines of the feed came before, if that is
	// still the one.
	feed, count uint64
}

// IsZero says that nothing was read.
func (c Cursor) IsZero() bool { return c == Cursor{} }

// String writes the cursor: <message>.<line>.<feed>.<count>
func (c Cursor) String() string {
	if c.IsZero() {
		return ""
	}
	return fmt.Sprintf("%d.%d.%d.%d", c.at.seq, c.at.index, c.feed, c.count)
}

// ParseCursor reads what String wrote.
func ParseCursor(s string) (Cursor, error) {
	if s == "" {
		return Cursor{}, nil
	}
	var n [4]uint64
	parts := strings.Split(s, ".")
	if len(parts) != len(n) {
		return Cursor{}, fmt.Errorf("%q is no place in the live lines", clip(s))
	}
	for i, part := range parts {
		var err error
		if n[i], err = strconv.ParseUint(part, 10, 53); err != nil || strconv.FormatUint(n[i], 10) != part {
			return Cursor{}, fmt.Errorf("%q is no place in the live lines", clip(s))
		}
	}
	return Cursor{at: place{n[0], int(n[1])}, feed: n[2], count: n[3]}, nil
}

func clip(s string) string {
	if s = strings.ToValidUTF8(s, "\uFFFD"); len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}

// Page is what a reader gets.
type Page struct {
	// Lines are in the order in which control took them.
	Lines []LiveLine
	// Raw are the same, each in JSON.
	Raw [][]byte
	// Missed is how many lines came since the cursor that are not among them.
	Missed uint64
	// Next is the cursor after them.
	Next Cursor
	// Sources are who said lines of the scope, the one that spoke last first.
	Sources []LiveSource
}

// Want is what of a page a reader wants beside the lines' JSON.
type Want int

const (
	// All wants everything.
	All Want = iota
	// RawOnly wants the lines in JSON alone.
	RawOnly
)

// Read gives the scope's lines after the cursor, the newest of them if there
// are more than most, and what is closed when there are others. Without a
// cursor none is missed.
func (v *View) Read(s Scope, after Cursor, most int, w Want) (Page, <-chan struct{}) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	f := v.feeds[s]
	if f == nil {
		// Nothing was ever said there: whatever comes first tells.
		return Page{Next: after}, v.anything()
	}
	lines, missed := f.after(after)
	if n := len(lines); n > most {
		if missed += uint64(n - most); after.IsZero() {
			missed = 0
		}
		lines = lines[n-most:]
	}
	page := Page{Missed: missed, Next: Cursor{at: f.newest(), feed: f.id, count: f.count}, Raw: make([][]byte, len(lines))}
	for i, e := range lines {
		page.Raw[i] = e.raw
	}
	if w == RawOnly {
		return page, f.changed
	}
	page.Lines = make([]LiveLine, len(lines))
	for i, e := range lines {
		page.Lines[i] = e.LiveLine
	}
	for _, source := range f.sources {
		page.Sources = append(page.Sources, *source)
	}
	slices.SortFunc(page.Sources, func(a, b LiveSource) int {
		return cmp.Or(b.LastAt.Time().Compare(a.LastAt.Time()), cmp.Compare(a.Source, b.Source))
	})
	return page, f.changed
}

// anything is closed at the next line of anyone. The mutex is held, for
// reading at least.
func (v *View) anything() <-chan struct{} { return v.feeds[Scope{}].changed }

// after gives the lines after the cursor, and how many came after it and are
// no more there: those that the feed is known to have had.
func (f *feed) after(c Cursor) (lines []*entry, missed uint64) {
	first := f.count - uint64(len(f.lines)) // the count before the first line
	if c.feed == f.id && c.count <= f.count && c.count > 0 {
		if c.count < first {
			return f.lines, first - c.count
		}
		return f.lines[c.count-first:], 0
	}
	// Another control's, or of lines that were forgotten: the place in the
	// stream tells, unless the stream begins anew.
	if f.newest().before(c.at) {
		return f.lines, 0
	}
	i := sort.Search(len(f.lines), func(i int) bool { return c.at.before(f.lines[i].at) })
	return f.lines[i:], 0
}

// Active is a run, or a rig's lines of none, that lines came of.
type Active struct {
	Rig, Run string
	Lines    uint64
	LastAt   time.Time
	Last     LiveLine
}

// Active gives the runs that lines came of, the newest first, at most most.
func (v *View) Active(rig string, most int) []Active {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var all []Active
	for s, f := range v.feeds {
		if s.Run == "" || rig != "" && s.Rig != rig || len(f.lines) == 0 {
			continue
		}
		last := f.lines[len(f.lines)-1]
		all = append(all, Active{Rig: s.Rig, Run: s.Run, Lines: f.count, LastAt: last.At.Time(), Last: last.LiveLine})
	}
	slices.SortFunc(all, func(a, b Active) int {
		return cmp.Or(b.LastAt.Compare(a.LastAt), cmp.Compare(a.Rig, b.Rig), cmp.Compare(a.Run, b.Run))
	})
	return all[:min(len(all), most)]
}

// Watch counts somebody who watches; done ends it.
func (v *View) Watch() (done func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.watching++
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.watching--
	}
}
