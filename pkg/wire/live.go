package wire

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// The live lines' channel: what the lanes, the planner, the judge and the
// advisors are doing, for a person to see as it happens. It is a view, not a
// record. The harness signs its lines in batches, one source's of one run in
// each; the supervisor publishes them, and lines of its own unsigned; control
// checks them and shows the newest.

// LiveLine is one line of a source.
type LiveLine struct {
	// Number counts the lines of the batch's log up from 1, without a gap: a
	// gap between batches is lines that did not come.
	Number uint64 `json:"number"`
	At     Time   `json:"at"`
	// Text has no line's end in it.
	Text string `json:"text"`
}

// LiveBatch is consecutive lines of one source of one run.
type LiveBatch struct {
	Rig string `json:"rig"`
	// Run is empty for lines of no run, such as the judge's between runs.
	Run string `json:"run,omitzero"`
	// Source is who says the lines: see CheckLiveSource.
	Source string `json:"source"`
	// Log is drawn anew for each source of each run, whenever the part that
	// writes it starts: 26 of a-z and 2-7, 128 random bits.
	Log   string     `json:"log"`
	First uint64     `json:"first"`
	Last  uint64     `json:"last"`
	Lines []LiveLine `json:"lines"`
}

// ID is the batch's message id on the bus, <log>:<first>-<last>. Logs' names
// are random, so that no other rig can occupy the id of a batch to come.
func (b LiveBatch) ID() string { return fmt.Sprintf("%s:%d-%d", b.Log, b.First, b.Last) }

// signedLive is a batch on the wire, in canonical JSON. The supervisor's own
// have no key and no signature.
type signedLive struct {
	Batch jsontext.Value `json:"batch"`
	Key   PublicKey      `json:"key,omitzero"`
	Sig   Signature      `json:"sig,omitzero"`
}

// ErrBadLive is wrapped by every error about live lines that can't be read.
var ErrBadLive = errors.New("bad live lines")

// Live sources without a suffix: the harness's, and the supervisor's own.
const (
	LivePlanner    = "planner"
	LiveJudge      = "judge"
	LiveController = "controller"
	LiveSupervisor = "supervisor"
)

// LiveTrial is the source of a trial: trial:<n>
func LiveTrial(trial uint64) string { return fmt.Sprintf("trial:%d", trial) }

// LiveAdvisor is the source of an advisor: advisor:<name>
func LiveAdvisor(name string) string { return "advisor:" + name }

// CheckLiveSource says whether s is a source of live lines: planner, judge,
// controller, trial:<n>, supervisor or advisor:<name>.
func CheckLiveSource(s string) error {
	if slices.Contains([]string{LivePlanner, LiveJudge, LiveController, LiveSupervisor}, s) {
		return nil
	}
	who, which, ok := strings.Cut(s, ":")
	if ok && (who == "trial" && isIndex(which) || who == "advisor" && isName(which)) {
		return nil
	}
	return fmt.Errorf("source %q: one of planner, judge, controller, trial:<n>, supervisor, advisor:<name>", clip(s))
}

// SupervisorsOwn says whether the source is one of the supervisor's own, whose
// lines are not signed.
func SupervisorsOwn(source string) bool {
	return source == LiveSupervisor || strings.HasPrefix(source, "advisor:")
}

// LiveToken is a source in a subject: trial:7 is trial-7, and advisor:teacher
// is advisor-teacher.
func LiveToken(source string) string { return strings.Replace(source, ":", "-", 1) }

// LiveSubject is where a batch goes in LIVE: its run's subject, or with none,
// or a run that the bus does not open to the rig yet, the rig's own.
func LiveSubject(b LiveBatch, runIsOpen bool) string {
	if b.Run == "" || !runIsOpen {
		return RigLiveSubject(b.Rig, LiveToken(b.Source))
	}
	return RunLiveSubject(b.Run, LiveToken(b.Source))
}

// EncodeLiveBatch checks the batch, signs it and gives it as canonical JSON. A
// nil signer leaves it unsigned, as the supervisor's own are.
func EncodeLiveBatch(s *Signer, b LiveBatch) ([]byte, error) {
	if err := b.check(); err != nil {
		return nil, fmt.Errorf("encoding live lines of %s: %w", clip(b.Source), err)
	}
	raw, err := Canonical(b)
	if err != nil {
		return nil, fmt.Errorf("encoding live lines of %s: %w", b.Source, err)
	}
	e := signedLive{Batch: raw}
	if s != nil {
		e.Key, e.Sig = s.Public(), s.sign(DomainLive, raw)
	}
	return Canonical(e)
}

// DecodeLiveBatch reads a batch and checks all of it that can be checked by
// itself: its form, its lines, and the signature by the key that it names.
// Whether that key is its rig's, and the run too, is the caller's to check. A
// zero key is a batch that is not signed.
func DecodeLiveBatch(data []byte) (LiveBatch, PublicKey, error) {
	b, key, err := decodeLiveBatch(data)
	if err != nil {
		return LiveBatch{}, PublicKey{}, fmt.Errorf("%w: %w", ErrBadLive, err)
	}
	return b, key, nil
}

func decodeLiveBatch(data []byte) (b LiveBatch, key PublicKey, err error) {
	// One that is too large for the bus is read all the same, by who has to say
	// that it is.
	if len(data) > MaxLiveAnswer {
		return b, key, fmt.Errorf("they have %d bytes, at most %d", len(data), MaxLiveAnswer)
	}
	var e signedLive
	if err := decodeCanonical(data, &e); err != nil {
		return b, key, err
	}
	if err := DecodeStrict(e.Batch, &b); err != nil {
		return b, key, err
	}
	if err := b.check(); err != nil {
		return b, key, err
	}
	// What is signed twice the same is the same bytes: nothing else reads as
	// this batch.
	if again, err := Canonical(b); err != nil || !bytes.Equal(again, e.Batch) {
		return b, key, ErrNotCanonical
	}
	if e.Key.IsZero() {
		if e.Sig != (Signature{}) {
			return b, key, fmt.Errorf("it is signed and names no key: %w", ErrBadSignature)
		}
		return b, key, nil
	}
	return b, e.Key, verify(DomainLive, e.Key, e.Batch, e.Sig)
}

// check says what is wrong with the batch by itself.
func (b LiveBatch) check() error {
	if err := first(CheckName("rig", b.Rig), CheckLiveSource(b.Source), count("last", b.Last)); err != nil {
		return err
	}
	if b.Run != "" {
		if err := CheckName("run", b.Run); err != nil {
			return err
		}
	}
	switch {
	case !IsCommandID(b.Log):
		return fmt.Errorf("log %q is no log's name", clip(b.Log))
	case b.First == 0 || b.Last < b.First || uint64(len(b.Lines)) != b.Last-b.First+1:
		return fmt.Errorf("it has %d lines, which are said to be %d to %d", len(b.Lines), b.First, b.Last)
	}
	for i, l := range b.Lines {
		switch {
		case l.Number != b.First+uint64(i):
			return fmt.Errorf("entry %d of its lines has number %d where %d is next", i, l.Number, b.First+uint64(i))
		case l.At.IsZero():
			return fmt.Errorf("line %d has no time", l.Number)
		}
		if err := CheckLiveText(l.Text); err != nil {
			return fmt.Errorf("line %d: %w", l.Number, err)
		}
	}
	return nil
}

// CheckLiveText says whether s can be a live line: text without a line's end.
func CheckLiveText(s string) error {
	switch {
	case len(s) > MaxLiveLine:
		return fmt.Errorf("it has %d bytes, at most %d", len(s), MaxLiveLine)
	case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
		return errors.New("it is no text")
	case strings.ContainsAny(s, "\r\n"):
		return errors.New("it has more than one line")
	}
	return nil
}

// LiveFigures say what a supervisor did with live lines since it started.
type LiveFigures struct {
	// Published and Dropped count lines. A line is dropped only when the bus
	// refused it on the rig's own subject too, or when it is too large.
	Published uint64 `json:"published"`
	Dropped   uint64 `json:"dropped"`
	// Subjects are the same counts for the subjects that it used last, at most
	// MaxLiveSubjects.
	Subjects map[string]LiveCounts `json:"subjects,omitzero"`
}

// LiveCounts count one subject's lines.
type LiveCounts struct {
	Published uint64 `json:"published"`
	Dropped   uint64 `json:"dropped"`
}

func checkLiveFigures(f *LiveFigures) error {
	if f == nil {
		return nil
	}
	if len(f.Subjects) > MaxLiveSubjects {
		return fmt.Errorf("figures.live.subjects has %d entries, at most %d", len(f.Subjects), MaxLiveSubjects)
	}
	if err := first(count("figures.live.published", f.Published), count("figures.live.dropped", f.Dropped)); err != nil {
		return err
	}
	for subject, c := range f.Subjects {
		what := "figures.live.subjects." + clip(subject)
		// thermite.run.<run>.live.<source>, of names that are bounded.
		if err := first(some("figures.live.subjects", subject, 4*maxNameLength), count(what+".published", c.Published), count(what+".dropped", c.Dropped)); err != nil {
			return err
		}
	}
	return nil
}

// LiveLines is the harness's answer to what live lines it has after a place,
// in the order in which they were said.
type LiveLines struct {
	// Start names this start of the harness, and Next is the place to read on
	// from. A place of another start is none: its lines are gone.
	Start string `json:"start"`
	Next  uint64 `json:"next"`
	// More says that there is more at once.
	More bool `json:"more,omitzero"`
	// Batches are ready for the bus, each a signed batch.
	Batches []jsontext.Value `json:"batches"`
}

// MaxLiveAnswer bounds the harness's answer; it holds one batch at least.
const MaxLiveAnswer = 4 * MaxLiveMessage

// EncodeLiveLines gives a as JSON.
func EncodeLiveLines(a LiveLines) ([]byte, error) { return Canonical(a) }

// DecodeLiveLines reads what live lines a harness has. The batches are not
// read.
func DecodeLiveLines(b []byte) (LiveLines, error) {
	var a LiveLines
	if err := DecodeStrict(b, &a); err != nil {
		return LiveLines{}, fmt.Errorf("reading the harness's live lines: %w", err)
	}
	if err := count("next", a.Next); err != nil {
		return LiveLines{}, fmt.Errorf("reading the harness's live lines: %w", err)
	}
	if !IsCommandID(a.Start) {
		return LiveLines{}, fmt.Errorf("reading the harness's live lines: start %q is none", clip(a.Start))
	}
	return a, nil
}

// TrialLines are live lines of a trial, as its worker says them: a line each,
// or more where a text holds ends of lines.
type TrialLines struct {
	Lines []string `json:"lines"`
}

// Bounds of TrialLines: how many there are in one call, and of how many bytes
// its body is.
const (
	MaxTrialLines     = 1000
	MaxTrialLinesBody = MaxLiveMessage
)
