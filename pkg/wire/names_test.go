package wire_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"thermite/pkg/wire"
)

// Promise: names, kinds, ledgers' ids and actors are what the design says,
// and nothing else: each check is its pattern.
func TestNamesAreTheirPatterns(t *testing.T) {
	name, index := `[a-z0-9][a-z0-9-]{0,39}`, `(0|[1-9][0-9]{0,14})`
	for what, c := range map[string]struct {
		pattern string
		check   func(string) error
	}{
		"name":   {name, func(s string) error { return wire.CheckName("rig", s) }},
		"kind":   {`[a-z][a-z0-9_]{0,39}`, wire.CheckKind},
		"ledger": {`[a-z0-9]{8,40}`, wire.CheckLedger},
		"actor": {`controller|judge|planner|owner|supervisor|control|(lane|trial):` + index + `|(advisor|city):` + name,
			wire.CheckActor},
	} {
		t.Run(what, func(t *testing.T) {
			is := regexp.MustCompile(`\A(?:` + c.pattern + `)\z`)
			near := rapid.OneOf(rapid.StringMatching(c.pattern), anyText(), rapid.SampledFrom([]string{"a\n", "\na", "a.b", "a*", ">", "a b", "A", "ä", "-a", "a-",
				strings.Repeat("a", 41), strings.Repeat("a", 40), "lane:", "lane:1:2", "advisor:-", "trial:1000000000000000", "a\x00"}))
			rapid.Check(t, func(t *rapid.T) {
				s := near.Draw(t, "s")
				if rapid.Bool().Draw(t, "changed") && s != "" {
					i := rapid.IntRange(0, len(s)-1).Draw(t, "at")
					s = s[:i] + rapid.SampledFrom([]string{"", ".", "*", ">", "-", "_", ":", "A", "0", " ", "\n", "é"}).Draw(t, "with") + s[i+1:]
				}
				if err := c.check(s); (err == nil) != is.MatchString(s) {
					t.Fatalf("%q: %v", s, err)
				}
			})
		})
	}
}

// Promise: no name that passes its check escapes its token of a subject.
func TestNoNameEscapesItsToken(t *testing.T) {
	subjects := map[string]func(rig, run, kind, source string) string{
		"thermite.rig.$.report":         func(rig, _, _, _ string) string { return wire.ReportSubject(rig) },
		"thermite.rig.$.ev.$":           func(rig, _, kind, _ string) string { return wire.RigEventSubject(rig, kind) },
		"thermite.run.$.ev.$":           func(_, run, kind, _ string) string { return wire.RunEventSubject(run, kind) },
		"thermite.run.$.queue.$":        func(_, run, kind, _ string) string { return wire.RunQueueSubject(run, kind) },
		"thermite.rig.$.live.$":         func(rig, _, _, source string) string { return wire.RigLiveSubject(rig, source) },
		"thermite.run.$.live.$":         func(_, run, _, source string) string { return wire.RunLiveSubject(run, source) },
		"thermite.rig.$.cmd":            func(rig, _, _, _ string) string { return wire.CommandSubject(rig) },
		"thermite.rig.$.config.$":       func(rig, _, _, source string) string { return wire.ConfigSubject(rig, source) },
		"thermite.rig.$.kbfile":         func(rig, _, _, _ string) string { return wire.KBFileSubject(rig) },
		"thermite.kb.search.$":          func(rig, _, _, _ string) string { return wire.KBSearchSubject(rig) },
		"thermite.kb.read.$":            func(rig, _, _, _ string) string { return wire.KBReadSubject(rig) },
		"thermite.rig.$.ask.$":          func(rig, _, _, source string) string { return wire.AskSubject(rig, source) },
		"_INBOX.rig.$":                  func(rig, _, _, _ string) string { return wire.RigInbox(rig) },
		"rig-$-commands (a consumer's)": func(rig, _, _, _ string) string { return wire.CommandsConsumer(rig) + " (a consumer's)" },
		"rig-$-config (a consumer's)":   func(rig, _, _, _ string) string { return wire.ConfigConsumer(rig) + " (a consumer's)" },
	}
	rapid.Check(t, func(t *rapid.T) {
		rig, run, source := anyName().Draw(t, "rig"), anyName().Draw(t, "run"), anyName().Draw(t, "source")
		kind := rapid.StringMatching(`[a-z][a-z0-9_]{0,39}`).Draw(t, "kind")
		for shape, subject := range subjects {
			got := subject(rig, run, kind, source)
			is := regexp.MustCompile(`\A` + strings.ReplaceAll(regexp.QuoteMeta(shape), `\$`, `[a-z0-9_-]+`) + `\z`)
			if !is.MatchString(got) {
				t.Fatalf("%s is not %s", got, shape)
			}
		}
	})
}

// Promise: an event goes on its run's subject by its kind, a change to the
// queue by what it did, and everything else on the rig's own.
func TestEventSubject(t *testing.T) {
	event := func(kind, run, body string) wire.Event {
		return wire.Event{ID: 1, Kind: kind, Run: run, Body: []byte(body)}
	}
	for _, c := range []struct {
		e    wire.Event
		runs bool
		want string
	}{
		{event("note", "", "{}"), false, "thermite.rig.alpha.ev.note"},
		{event("note", "", "{}"), true, "thermite.rig.alpha.ev.note"},
		{event("note", "pack26", "{}"), true, "thermite.run.pack26.ev.note"},
		{event("note", "pack26", "{}"), false, "thermite.rig.alpha.ev.note"},
		{event("queue", "pack26", `{"op":"added"}`), true, "thermite.run.pack26.queue.added"},
		{event("queue", "pack26", `{"op":"added"}`), false, "thermite.rig.alpha.ev.queue"},
		{event("queue", "", `{"op":"added"}`), false, "thermite.rig.alpha.ev.queue"},
	} {
		if got, err := wire.EventSubject("alpha", c.runs, c.e); err != nil || got != c.want {
			t.Errorf("%s of run %q, the rig's: %v: %s, not %s (%v)", c.e.Kind, c.e.Run, c.runs, got, c.want, err)
		}
	}
	for _, op := range wire.QueueOps {
		want := fmt.Sprintf("thermite.run.pack26.queue.%s", op)
		if got, err := wire.EventSubject("alpha", true, event("queue", "pack26", `{"op":"`+op+`"}`)); err != nil || got != want {
			t.Errorf("%s: %s, not %s (%v)", op, got, want, err)
		}
	}
}
