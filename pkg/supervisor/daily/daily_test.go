package daily

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/supervisor/reports"
	"thermite/pkg/wire"
)

const ledger = "ledger0000000000000000000a"

func at(text string) time.Time {
	t, err := time.Parse("2006-01-02 15:04", text)
	if err != nil {
		panic(err)
	}
	return t
}

// Promise: a day is due once it is over, oldest first, after the last that
// control has; a supervisor that was away makes a week of them at most.
func TestDueDays(t *testing.T) {
	for _, c := range []struct{ now, at, last, want string }{
		{"2026-12-01 00:00", "00:00", "", "2026-11-30"},
		{"2026-12-01 23:59", "00:00", "", "2026-11-30"},
		{"2026-12-01 23:59", "00:00", "2026-11-30", ""},
		{"2026-12-02 00:00", "00:00", "2026-11-30", "2026-12-01"},
		{"2026-12-04 09:00", "00:00", "2026-11-30", "2026-12-01 2026-12-02 2026-12-03"},
		{"2026-12-20 09:00", "00:00", "2026-11-30", "2026-12-13 2026-12-14 2026-12-15 2026-12-16 2026-12-17 2026-12-18 2026-12-19"},
		{"2026-12-01 18:29", "18:30", "2026-11-30", ""},
		{"2026-12-01 18:30", "18:30", "2026-11-30", "2026-12-01"},
		{"2026-12-01 18:30", "18:30", "2026-12-05", ""}, // the clock went back
		{"2026-12-01 18:30", "18:30", "nonsense", "2026-12-01"},
	} {
		var of TimeOfDay
		if err := of.Set(c.at); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, d := range due(at(c.now), of, c.last) {
			names = append(names, d.Name)
			if d.To.Sub(d.From) != 24*time.Hour || d.To.After(at(c.now)) {
				t.Errorf("at %s: the day is from %s to %s", c.now, d.From, d.To)
			}
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("at %s, with days that end at %s and %s done: %q, want %q", c.now, c.at, c.last, got, c.want)
		}
	}
	for _, bad := range []string{"", "24:00", "7:00", "07:00:00", "07.00", "noon"} {
		if err := new(TimeOfDay).UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is taken as a time of the day", bad)
		}
	}
}

// rig is a scripted harness, and control.
type rig struct {
	t      *testing.T
	ledger string
	events []wire.Event
	// tooLarge is how many events of a page are too many.
	tooLarge int
	calls    int
	health   wire.HarnessHealth

	refuses error
	taken   []wire.DailyAsk
}

func (r *rig) add(at time.Time, kind, run string, body wire.Body) {
	r.t.Helper()
	raw, err := wire.EncodeBody(body)
	if err != nil {
		r.t.Fatal(err)
	}
	r.events = append(r.events, wire.Event{ID: uint64(len(r.events)) + 1, Time: wire.At(at), Kind: kind, Actor: "controller", Run: run, Body: raw})
}

func (r *rig) Ledger(context.Context) (wire.LedgerState, error) {
	return wire.LedgerState{Rig: "alpha", Ledger: r.ledger, Last: uint64(len(r.events))}, nil
}

func (r *rig) Health(context.Context) (wire.HarnessHealth, error) { return r.health, nil }

func (r *rig) Page(_ context.Context, after wire.Place, limit int) ([]byte, error) {
	r.calls++
	part := r.events[after.Cursor:min(len(r.events), int(after.Cursor)+limit)]
	if r.tooLarge > 0 && len(part) >= r.tooLarge {
		return nil, fmt.Errorf("a page: %w", reports.ErrTooLarge)
	}
	var raw [][]byte
	for _, e := range part {
		b, err := wire.EncodeEvent(e)
		if err != nil {
			r.t.Fatal(err)
		}
		raw = append(raw, b)
	}
	s, err := wire.NewSigner(make([]byte, 32))
	if err != nil {
		r.t.Fatal(err)
	}
	before := wire.Chain{1} // nobody checks that
	if after.Cursor == 0 {
		before = wire.ChainStart(r.ledger)
	}
	return wire.EncodePage(s, "alpha", r.ledger, "v1", after.Cursor, before, raw)
}

func (r *rig) Daily(_ context.Context, a wire.DailyAsk) (string, error) {
	if r.refuses != nil {
		return "", r.refuses
	}
	a.Nonce = "n"
	if err := a.Check(); err != nil {
		r.t.Errorf("an ask that control refuses: %v", err)
	}
	r.taken = append(r.taken, a)
	return "1", nil
}

func (r *rig) loop(file string, now *time.Time) *Loop {
	return New(Config{Rig: "alpha", Harness: r, Control: r, File: file, Now: func() time.Time { return *now }, Log: slog.New(slog.DiscardHandler)})
}

func (r *rig) days() (days []string) {
	for _, a := range r.taken {
		days = append(days, a.Day)
	}
	return days
}

// newRig has five events an hour from the time on, for so many hours.
func newRig(t *testing.T, from time.Time, hours int) *rig {
	r := &rig{t: t, ledger: ledger}
	for h := range hours {
		for i := range 5 {
			r.add(from.Add(time.Duration(h)*time.Hour+time.Duration(i)*time.Minute), wire.KindRunPaused, "run-1", wire.RunPaused{Why: "a rest"})
		}
	}
	return r
}

// Promise: each day is sent once, also by a supervisor that starts again, and
// again until control has it; days that were missed are made up for.
func TestEachDayIsSentOnce(t *testing.T) {
	r := newRig(t, at("2026-11-30 20:00"), 72)
	file, now := filepath.Join(t.TempDir(), "daily.json"), at("2026-12-01 00:10")
	r.refuses = errors.New("control is not on the bus")
	if err := r.loop(file, &now).Round(t.Context()); !errors.Is(err, r.refuses) {
		t.Fatalf("control refuses: %v", err)
	}
	r.refuses = nil
	for range 3 { // each a supervisor that starts again
		if err := r.loop(file, &now).Round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"2026-11-30"}, r.days()); diff != "" {
		t.Fatalf("the days (-want +sent):\n%s", diff)
	}
	if text := r.taken[0].Text; !strings.Contains(text, "| Events | 20 |") {
		t.Errorf("four hours of five events:\n%s", text)
	}
	now = at("2026-12-03 00:00")
	if err := r.loop(file, &now).Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"2026-11-30", "2026-12-01", "2026-12-02"}, r.days()); diff != "" {
		t.Errorf("the days (-want +sent):\n%s", diff)
	}
	for _, a := range r.taken[1:] {
		if !strings.Contains(a.Text, "| Events | 120 |") {
			t.Errorf("a whole day:\n%s", a.Text)
		}
	}
}

// Promise: a rig that had not begun by a day's end sends nothing of it; one
// that did nothing says so.
func TestDaysOfNothing(t *testing.T) {
	r := newRig(t, at("2026-12-01 08:00"), 1)
	file, now := filepath.Join(t.TempDir(), "daily.json"), at("2026-12-01 09:00")
	l := r.loop(file, &now)
	for _, now = range []time.Time{at("2026-12-01 09:00"), at("2026-12-02 00:00"), at("2026-12-03 00:00")} {
		if err := l.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"2026-12-01", "2026-12-02"}, r.days()); diff != "" {
		t.Fatalf("the days (-want +sent):\n%s", diff)
	}
	if text := r.taken[1].Text; !strings.Contains(text, "Nothing happened") {
		t.Errorf("a day without an event:\n%s", text)
	}
}

// Promise: a day's events are found in a long ledger by looking at few of the
// others, and pages that are too large are read in parts.
func TestADayIsFoundInALongLedger(t *testing.T) {
	r := newRig(t, at("2026-01-01 00:00"), 24*300)
	r.tooLarge = 100
	now := at("2026-06-02 00:00")
	l := r.loop(filepath.Join(t.TempDir(), "daily.json"), &now)
	if err := l.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(r.taken[0].Text, "| Events | 120 |") {
		t.Errorf("a whole day:\n%s", r.taken[0].Text)
	}
	if r.calls > 40 {
		t.Errorf("it read %d pages of a ledger of %d events", r.calls, len(r.events))
	}
}

// Promise: a file that can't be read costs at most a report sent again.
func TestABrokenFile(t *testing.T) {
	r := newRig(t, at("2026-11-30 20:00"), 4)
	file, now := filepath.Join(t.TempDir(), "daily.json"), at("2026-12-01 00:10")
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.loop(file, &now).Round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"2026-11-30"}, r.days()); diff != "" {
		t.Errorf("the days (-want +sent):\n%s", diff)
	}
}

// Promise: a report says what the day came to, and what agents wrote is plain
// text in it.
func TestReport(t *testing.T) {
	r := &rig{t: t, ledger: ledger, health: wire.HarnessHealth{Notices: []string{"the disk is nearly full"}}}
	noon := at("2026-11-30 12:00")
	score := func(f float64) *float64 { return &f }
	r.add(noon.Add(-24*time.Hour), wire.KindRunPaused, "old", wire.RunPaused{Why: "of another day"})
	r.add(noon, wire.KindRunCreated, "pack26", wire.RunCreated{Campaign: "pack", Kit: "circle-packing-26", Title: "Twenty-six *circles*"})
	r.add(noon, wire.KindTrialStarted, "pack26", wire.TrialStarted{Trial: 1, Lane: 1, Worker: "tune"})
	r.add(noon, wire.KindChampion, "pack26", wire.Champion{Score: score(2.5), Why: "the base"})
	r.add(noon, wire.KindAttempt, "pack26", wire.Attempt{Attempt: 1, Trial: 1, Title: "try <script>alert(1)</script> | [a](http://x)\n# big"})
	r.add(noon, wire.KindVerdict, "pack26", wire.Verdict{Attempt: 1, Outcome: "promoted", Score: score(2.6), Why: "better"})
	r.add(noon, wire.KindChampion, "pack26", wire.Champion{Attempt: 1, Score: score(2.6)})
	r.add(noon, wire.KindVerdict, "pack26", wire.Verdict{Attempt: 2, Outcome: "suspect", Why: "past the bound"})
	r.add(noon, wire.KindTrialEnded, "pack26", wire.TrialEnded{Trial: 1, Outcome: "failed", Why: "its worker ended with 2"})
	r.add(noon, wire.KindModelCall, "pack26", wire.ModelCall{Model: "m", MicroDollars: 1_250_000, Failed: "overloaded"})
	r.add(noon, wire.KindCommand, "", wire.CommandTaken{ID: strings.Repeat("a", 26), Command: "run.pause", Outcome: wire.CommandNotApplied, Why: "run x has ended"})
	r.add(noon, wire.KindRunEnded, "pack26", wire.RunEnded{Outcome: "finished", Why: "its attempts are used"})
	r.events = append(r.events, wire.Event{ID: uint64(len(r.events)) + 1, Time: wire.At(noon), Kind: wire.KindVerdict, Actor: "judge", Run: "pack26", Body: []byte(`{"attempt":"x"}`)})
	now := at("2026-12-01 00:00")
	if err := r.loop(filepath.Join(t.TempDir(), "daily.json"), &now).Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	text := r.taken[0].Text
	for _, want := range []string{
		"# alpha, 2026-11-30\n", "| Events | 12 |", "| Runs begun, ended | 1, 1 |", "| New champions | 2 |", "| Verdicts | 1 promoted, 1 suspect |",
		"| Model calls | 1, 1 failed |", "| Spent on models | $1.25 |", "1 of the events could not be read", "## Run pack26\n",
		`It began: Twenty\-six`, "It ended, finished: its attempts are used.", "1 trial began, of which ended: 1 failed. 1 attempt: 1 promoted, 1 suspect.",
		"| the kit's base | 2.5 |", `| attempt 1 | 2.6 | 12:00:00 | try \<script\>alert\(1\)\</script\> \| \[a\]\(http://x\) \# big |`,
		"- trial 1, failed: its worker ended with 2", "- attempt 2, suspect: past the bound", "0 applied, 1 not applied, 0 rejected.",
		"- run.pause was not applied: run x has ended", "- the disk is nearly full",
	} {
		if strings.Contains(want, `\-`) {
			want = strings.ReplaceAll(want, `\-`, "-")
		}
		if !strings.Contains(text, want) {
			t.Errorf("the report has no %q", want)
		}
	}
	if strings.Contains(text, "old") || t.Failed() {
		t.Errorf("the report:\n%s", text)
	}
}

// Promise: a report is never longer than control takes, whatever happened.
func TestAReportIsNeverTooLong(t *testing.T) {
	r := NewReport("alpha", ledger, endingAt(at("2026-12-01 00:00")))
	for run := range 400 {
		for n := range 60 {
			raw, err := wire.EncodeBody(wire.TrialEnded{Trial: uint64(n) + 1, Outcome: "failed", Why: strings.Repeat("*界", 500)})
			if err != nil {
				t.Fatal(err)
			}
			r.Add(wire.Event{ID: 1, Time: wire.At(at("2026-11-30 12:00")), Kind: wire.KindTrialEnded, Run: fmt.Sprintf("run-%d", run), Body: raw})
		}
	}
	text := r.Markdown()
	if n := utf8.RuneCountInString(text); n > wire.MaxDailyCharacters || n < wire.MaxDailyCharacters/2 {
		t.Errorf("it has %d characters", n)
	}
	if !strings.HasSuffix(text, "it is cut here.\n") || r.MoreRuns != 200 {
		t.Errorf("it ends with %q, %d more runs", text[len(text)-100:], r.MoreRuns)
	}
	ask := wire.DailyAsk{Nonce: "n", Day: r.Day.Name, Ledger: ledger, From: wire.At(r.Day.From), To: wire.At(r.Day.To), MadeAt: wire.At(r.Day.To), Text: text}
	if _, err := wire.EncodeDailyAsk(ask); err != nil {
		t.Error(err)
	}
}
