// Package lines keeps a part's newest live lines until they are on their way
// to control: a harness's, until its supervisor has them, and a supervisor's
// own.
//
//	Say ─▶ a ring for each source of each run ─▶ Read: batches, signed ─▶ the bus
//
// Guarantees: a source's lines are read once each, in their order and with
// numbers that have no gap, as long as its ring holds them; a line is never
// cut, and the oldest go first where there is no room. One source that says
// much takes no room from another.
package lines

import (
	"encoding/base32"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"thermite/pkg/wire"
)

// Config is what a Log works with.
type Config struct {
	Rig string
	// Signer signs the batches; a supervisor's own are not signed.
	Signer *wire.Signer
	Now    func() time.Time
	// Rand gives the names of logs, to many goroutines.
	Rand io.Reader
}

// Bounds of what is kept: of each source, and how many sources are known.
const (
	maxLines   = 2000
	maxBytes   = 2 << 20
	maxSources = 500
	// maxRead is about how much one Read gives, of lines as they are written.
	maxRead = 2 * wire.MaxLiveMessage
	// around is more than what is around a line in a batch, or around a batch
	// in its message, headers included.
	around = 2 << 10
	// perLine is more than what is around a line's text.
	perLine = 100
)

// Log has a part's live lines. Its methods may be called from any
// goroutine.
type Log struct {
	cfg Config
	// start names this start of the part.
	start string

	mu      sync.Mutex
	sources map[key]*source
	// order counts all lines, and taken is the order of the last line that
	// the reader has.
	order, taken uint64
}

type key struct{ run, source string }

type source struct {
	key
	log   string
	next  uint64
	lines []line
	bytes int
	// last is the order of its newest line.
	last uint64
}

type line struct {
	wire.LiveLine
	order uint64
	// size is about what it takes in a message.
	size int
	of   *source
}

// New makes a log without lines.
func New(cfg Config) (*Log, error) {
	start, err := draw(cfg.Rand)
	if err != nil {
		return nil, err
	}
	return &Log{cfg: cfg, start: start, sources: map[key]*source{}}, nil
}

// draw gives 128 random bits as a word.
func draw(rand io.Reader) (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(rand, b[:]); err != nil {
		return "", fmt.Errorf("drawing the name of a log of live lines: %w", err)
	}
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:])), nil
}

// Say adds a text to a source's lines: a line, or more where it has ends of
// lines in it. An empty run is none. What is no text is made one.
func (l *Log) Say(run, from, text string) {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
	now := wire.At(l.cfg.Now())
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.source(key{run, from})
	if s == nil {
		return // no random bits: there is no view, and the work goes on
	}
	for one := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if one = strings.TrimRight(one, " \t"); one == "" {
			continue
		}
		l.order++
		add := line{LiveLine: wire.LiveLine{Number: s.next, At: now, Text: one}, order: l.order, size: sizeOf(one), of: s}
		s.next, s.last = s.next+1, l.order
		s.lines, s.bytes = append(s.lines, add), s.bytes+add.size
		s.trim()
	}
}

// sizeOf is how long a line is in a message.
func sizeOf(text string) int {
	b, err := json.Marshal(text) // which escapes more than canonical JSON
	if err != nil {
		return len(text) + perLine
	}
	return len(b) + perLine
}

// source gives a source, which it makes at its first line. The mutex is held.
func (l *Log) source(k key) *source {
	if s := l.sources[k]; s != nil {
		return s
	}
	log, err := draw(l.cfg.Rand)
	if err != nil {
		return nil
	}
	if len(l.sources) >= maxSources {
		l.forget()
	}
	s := &source{key: k, log: log, next: 1}
	l.sources[k] = s
	return s
}

// forget drops the source that said its newest line longest ago.
func (l *Log) forget() {
	var oldest *source
	for _, s := range l.sources {
		if oldest == nil || s.last < oldest.last {
			oldest = s
		}
	}
	delete(l.sources, oldest.key)
}

// trim drops the oldest lines that there is no room for.
func (s *source) trim() {
	drop := 0
	for n := len(s.lines); n-drop > maxLines || s.bytes > maxBytes && n-drop > 1; drop++ {
		s.bytes -= s.lines[drop].size
	}
	s.drop(drop)
}

// drop drops the n oldest lines, whose bytes are taken off already.
func (s *source) drop(n int) {
	if n > 0 {
		s.lines = slices.Delete(s.lines, 0, n)
	}
}

// Read gives the lines after a place, signed: after is the Next of the answer
// before, of the start that it names. With a place of another start, or none,
// it gives those that no reader has said to have. What lies before the place is
// the reader's, and no more kept here.
func (l *Log) Read(start string, after uint64) (wire.LiveLines, error) {
	lines, answer := l.take(start, after)
	for _, batch := range batches(lines) {
		b := wire.LiveBatch{Rig: l.cfg.Rig, Run: batch[0].of.run, Source: batch[0].of.source, Log: batch[0].of.log,
			First: batch[0].Number, Last: batch[len(batch)-1].Number}
		for _, one := range batch {
			b.Lines = append(b.Lines, one.LiveLine)
		}
		raw, err := wire.EncodeLiveBatch(l.cfg.Signer, b)
		if err != nil {
			return wire.LiveLines{}, err
		}
		answer.Batches = append(answer.Batches, raw)
	}
	return answer, nil
}

// take gives the next lines, in the order in which they were said.
func (l *Log) take(start string, after uint64) ([]line, wire.LiveLines) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if start == l.start && after <= l.order {
		l.taken = max(l.taken, after)
	}
	var lines []line
	for _, s := range l.sources {
		drop := 0
		for ; drop < len(s.lines) && s.lines[drop].order <= l.taken; drop++ {
			s.bytes -= s.lines[drop].size
		}
		s.drop(drop)
		lines = append(lines, s.lines...)
	}
	slices.SortFunc(lines, func(a, b line) int { return int(int64(a.order) - int64(b.order)) })
	answer := wire.LiveLines{Start: l.start, Next: l.order, Batches: []jsontext.Value{}}
	for i, size := 0, 0; i < len(lines); i++ {
		if size += lines[i].size; size > maxRead && i > 0 {
			lines, answer.Next, answer.More = lines[:i], lines[i-1].order, true
			break
		}
	}
	return slices.Clone(lines), answer
}

// batches parts lines by their source, each into what fits one message, in
// the order of their first lines. A line that fits none has one to itself.
func batches(lines []line) [][]line {
	var all [][]line
	at, sizes := map[*source]int{}, map[*source]int{}
	for _, one := range lines {
		i, ok := at[one.of]
		follows := ok && all[i][len(all[i])-1].Number+1 == one.Number
		if !follows || sizes[one.of]+one.size > wire.MaxLiveMessage-around {
			i = len(all)
			all, at[one.of], sizes[one.of] = append(all, nil), i, 0
		}
		all[i], sizes[one.of] = append(all[i], one), sizes[one.of]+one.size
	}
	return all
}
