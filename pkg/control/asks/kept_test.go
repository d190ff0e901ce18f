package asks_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"thermite/pkg/bus/bustest"
	"thermite/pkg/control/asks"
	"thermite/pkg/control/daily"
	"thermite/pkg/control/recordtest"
	"thermite/pkg/control/space"
	"thermite/pkg/wire"
)

// keeping has control keep what the record's rigs send with their asks.
func keeping(t *testing.T, change func(*recordtest.Record, *asks.Config), rigs ...string) *world {
	t.Helper()
	r := recordtest.Start(t, recordtest.Options{Rigs: rigs})
	w := &world{r, t, recordtest.Key(t, "control")}
	cfg := asks.Config{NC: r.JS.Conn(), Rigs: r.Rigs, Place: r.Apply.Place, Signer: w.key, Clock: r.Now, Log: r.Log.Logger()}
	change(r, &cfg)
	a := asks.New(cfg)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	nc := r.Bus.Rig(rigs[0])
	r.Until("control answers", func() bool {
		_, err := nc.Request(wire.AskSubject(rigs[0], "figures"), []byte("{}"), 100*time.Millisecond)
		return err == nil
	})
	return w
}

// request makes an ask as the rig's supervisor does.
func (w *world) request(rig, kind string, ask []byte) []byte {
	w.t.Helper()
	msg, err := w.Bus.Rig(rig).Request(wire.AskSubject(rig, kind), ask, bustest.Wait)
	if err != nil {
		w.t.Fatal(err)
	}
	return msg.Data
}

func (w *world) daily(rig string, ask wire.DailyAsk) wire.DailyAnswer {
	w.t.Helper()
	b, err := wire.EncodeDailyAsk(ask)
	if err != nil {
		w.t.Fatal(err)
	}
	a, err := wire.DecodeDailyAnswer(w.key.Public(), rig, ask.Nonce, w.request(rig, "daily", b))
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

func dailyAsk(day, text string) wire.DailyAsk {
	from, err := time.Parse(time.DateOnly, day)
	if err != nil {
		panic(err)
	}
	to := from.Add(24 * time.Hour)
	return wire.DailyAsk{Nonce: "n-" + day, Day: day, Ledger: "ledger0000000000000000000a", From: wire.At(from), To: wire.At(to), MadeAt: wire.At(to), Text: text}
}

// Promise: a rig's day is kept once, under one id, however often it comes;
// the newest text stands, and one rig's day is not another's.
func TestADayIsKeptOnce(t *testing.T) {
	var kept *daily.Reports
	w := keeping(t, func(r *recordtest.Record, c *asks.Config) { kept = daily.New(r.Store, r.Now); c.Daily = kept }, "alpha", "beta")
	first := w.daily("alpha", dailyAsk("2026-11-30", "# one\n"))
	again := w.daily("alpha", dailyAsk("2026-11-30", "# one again\n"))
	other := w.daily("beta", dailyAsk("2026-11-30", "# another's\n"))
	next := w.daily("alpha", dailyAsk("2026-12-01", "# two\n"))
	if first.Refused != "" || first.ID == "" || again.ID != first.ID || other.ID == first.ID || next.ID == first.ID {
		t.Errorf("the answers are %+v, %+v, %+v, %+v", first, again, other, next)
	}
	rows, err := kept.List(t.Context(), "alpha", "", 10)
	if err != nil || len(rows) != 2 || rows[0].Day != "2026-12-01" || rows[1].Characters != len("# one again\n") || rows[1].Text != "" {
		t.Errorf("control lists %+v: %v", rows, err)
	}
	if row, err := kept.Get(t.Context(), "alpha", "2026-11-30"); err != nil || row.Text != "# one again\n" {
		t.Errorf("control has %+v: %v", row, err)
	}
	if row, err := kept.Get(t.Context(), "alpha", ""); err != nil || row.Text != "# two\n" {
		t.Errorf("the newest is %+v: %v", row, err)
	}
}

// Promise: of a rig's days the newest stay, so many as control keeps.
func TestOldDaysGo(t *testing.T) {
	r := recordtest.Start(t, recordtest.Options{Rigs: []string{"alpha"}})
	kept := daily.New(r.Store, r.Now)
	day := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	for n := range daily.Kept + 5 {
		ask := dailyAsk(day.AddDate(0, 0, n).Format(time.DateOnly), "x")
		if _, err := kept.Take(t.Context(), "alpha", ask); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := kept.List(t.Context(), "alpha", "", 1000)
	if err != nil || len(rows) != daily.Kept || rows[daily.Kept-1].Day != "2025-01-06" {
		t.Errorf("%d days stay, the oldest %+v: %v", len(rows), rows[len(rows)-1], err)
	}
}

// Promise: a report of a rig that is retired or unknown, one that can't be
// read and one that is too large are refused, in words, and nothing is kept.
func TestRefusedDays(t *testing.T) {
	var kept *daily.Reports
	w := keeping(t, func(r *recordtest.Record, c *asks.Config) { kept = daily.New(r.Store, r.Now); c.Daily = kept }, "alpha", "gone")
	w.Bus.AddRig("ghost")
	if err := w.Retire("gone"); err != nil {
		t.Fatal(err)
	}
	for rig, words := range map[string]string{"ghost": "control knows no rig ghost", "gone": "rig gone is retired"} {
		if a := w.daily(rig, dailyAsk("2026-11-30", "x")); a.Refused != words || a.ID != "" {
			t.Errorf("rig %s's answer is %+v", rig, a)
		}
	}
	long := dailyAsk("2026-11-30", strings.Repeat("x", wire.MaxDailyCharacters+1))
	tooLong, err := wire.Canonical(long)
	if err != nil {
		t.Fatal(err)
	}
	for says, ask := range map[string][]byte{
		"reading a daily ask":             []byte("hello"),
		"at most 200000":                  tooLong,
		"too large":                       []byte(strings.Repeat(" ", wire.MaxAskBytes+1)),
		`unknown object member name "id"`: []byte(`{"nonce":"n","id":"x"}`),
	} {
		a, err := wire.DecodeDailyAnswer(w.key.Public(), "alpha", "", w.request("alpha", "daily", ask))
		if err != nil || !strings.Contains(a.Refused, says) {
			t.Errorf("%.40q: the answer is %+v, %v", ask, a, err)
		}
	}
	for _, rig := range []string{"alpha", "gone"} {
		if rows, err := kept.List(t.Context(), rig, "", 10); err != nil || len(rows) != 0 {
			t.Errorf("control keeps %+v of rig %s: %v", rows, rig, err)
		}
	}
}

func (w *world) space(rig string, report wire.SpaceReport) wire.SpaceAnswer {
	w.t.Helper()
	b, err := wire.EncodeSpaceAsk(wire.SpaceAsk{Nonce: "n", Space: report})
	if err != nil {
		w.t.Fatal(err)
	}
	a, err := wire.DecodeSpaceAnswer(w.key.Public(), rig, "n", w.request(rig, "space", b))
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// Promise: control keeps what a rig keeps, the newest alone, of each rig its
// own; a retired or unknown rig's is refused in words.
func TestWhatRigsKeep(t *testing.T) {
	var kept *space.Space
	w := keeping(t, func(r *recordtest.Record, c *asks.Config) { kept = space.New(r.Store, r.Now); c.Space = kept }, "alpha", "beta", "gone")
	w.Bus.AddRig("ghost")
	if err := w.Retire("gone"); err != nil {
		t.Fatal(err)
	}
	report := func(bytes uint64) wire.SpaceReport {
		at := wire.At(recordtest.Began)
		return wire.NewSpaceReport("ledger0000000000000000000a", at, []wire.SpaceItem{{Kind: wire.SpaceKit, Name: "k", At: at, Bytes: bytes, Files: 1}})
	}
	for _, bytes := range []uint64{5, 7} {
		if a := w.space("alpha", report(bytes)); !a.OK || a.Refused != "" {
			t.Errorf("the answer is %+v", a)
		}
	}
	w.space("beta", report(9))
	if r, at, err := kept.Get(t.Context(), "alpha"); err != nil || len(r.Items) != 1 || r.Items[0].Bytes != 7 || at.IsZero() {
		t.Errorf("control keeps %+v at %s: %v", r, at, err)
	}
	for rig, words := range map[string]string{"ghost": "control knows no rig ghost", "gone": "rig gone is retired"} {
		if a := w.space(rig, report(1)); a.Refused != words || a.OK {
			t.Errorf("rig %s's answer is %+v", rig, a)
		}
	}
	a, err := wire.DecodeSpaceAnswer(w.key.Public(), "alpha", "", w.request("alpha", "space", []byte(`{"nonce":"n","space":{"ledger":"x"}}`)))
	if err != nil || !strings.Contains(a.Refused, "reading a space ask") || a.OK {
		t.Errorf("one that can't be read: %+v, %v", a, err)
	}
}
