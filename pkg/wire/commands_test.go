package wire_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"thermite/pkg/wire"
)

var issued = time.Date(2026, 11, 30, 12, 0, 0, 123456000, time.UTC)

// shortText draws a text of at most so many bytes.
func shortText(least, most int) *rapid.Generator[string] {
	return anyText().Filter(func(s string) bool {
		return least <= len(s) && len(s) <= most && jsontext.Value(must(jsontext.AppendQuote(nil, s))).IsValid() && strings.ToValidUTF8(s, "") == s
	})
}

func anyKitSource() *rapid.Generator[wire.KitSource] {
	digest := rapid.OneOf(rapid.Just(""), rapid.StringMatching(`[0-9a-f]{64}`))
	return rapid.OneOf(
		rapid.Custom(func(t *rapid.T) wire.KitSource {
			return wire.KitSource{Embedded: anyName().Draw(t, "kit"), Digest: digest.Draw(t, "digest")}
		}),
		rapid.Custom(func(t *rapid.T) wire.KitSource {
			return wire.KitSource{Git: rapid.SampledFrom([]string{"https://git.example/kit.git", "ssh://git@git.example:22/kit", "/srv/kits/a"}).Draw(t, "git"),
				Commit: rapid.StringMatching(`[0-9a-f]{40}|[0-9a-f]{64}`).Draw(t, "commit"), Digest: digest.Draw(t, "digest")}
		}))
}

// anyArguments draws arguments of any kind.
func anyArguments() *rapid.Generator[wire.Arguments] {
	of := func(draw func(t *rapid.T, run string) wire.Arguments) *rapid.Generator[wire.Arguments] {
		return rapid.Custom(func(t *rapid.T) wire.Arguments { return draw(t, anyName().Draw(t, "run")) })
	}
	number := rapid.Uint64Range(1, wire.MaxInteger)
	count := rapid.Uint64Range(0, wire.MaxInteger)
	why := shortText(0, 500)
	budget := rapid.OneOf(rapid.Just[*wire.Budget](nil), rapid.Custom(func(t *rapid.T) *wire.Budget {
		return &wire.Budget{MicroDollars: count.Draw(t, "money"), Attempts: count.Draw(t, "attempts"), WallMS: count.Draw(t, "wall")}
	}))
	return rapid.OneOf(
		of(func(t *rapid.T, run string) wire.Arguments {
			a := wire.RunAssign{Run: run, Campaign: anyName().Draw(t, "campaign"), Title: shortText(0, 300).Draw(t, "title"), Kit: anyKitSource().Draw(t, "kit"),
				Worker: anyName().Draw(t, "worker"), Lanes: rapid.Uint64Range(0, wire.MaxLanes).Draw(t, "lanes"), Seed: count.Draw(t, "seed"), Budget: budget.Draw(t, "budget")}
			if a.Kit.CheckAccess() == nil && rapid.Bool().Draw(t, "access") {
				a.GitAccess = anyName().Draw(t, "git access")
			}
			a.MCPServers = rapid.SliceOfNDistinct(anyName(), 1, 3, func(s string) string { return s }).Draw(t, "servers")
			if rapid.Bool().Draw(t, "args") {
				a.WorkerArgs = rapid.SliceOfN(shortText(0, 300), 1, 4).Draw(t, "words")
			}
			return a
		}),
		of(func(t *rapid.T, run string) wire.Arguments {
			title, lanes := shortText(1, 300).Draw(t, "title"), rapid.Uint64Range(1, wire.MaxLanes).Draw(t, "lanes")
			return wire.RunChange{Run: run, RunSettings: wire.RunSettings{Title: &title, Lanes: &lanes, Budget: budget.Draw(t, "budget")}}
		}),
		of(func(t *rapid.T, run string) wire.Arguments {
			return wire.SpaceRemove{Kinds: wire.SpaceKinds[:rapid.IntRange(1, len(wire.SpaceKinds)).Draw(t, "kinds")], Run: run, Why: why.Draw(t, "why")}
		}),
		of(func(t *rapid.T, run string) wire.Arguments { return wire.RunPause{Run: run, Why: why.Draw(t, "why")} }),
		of(func(t *rapid.T, run string) wire.Arguments { return wire.RunResume{Run: run, Why: why.Draw(t, "why")} }),
		of(func(t *rapid.T, run string) wire.Arguments { return wire.RunStop{Run: run, Why: why.Draw(t, "why")} }),
		of(func(t *rapid.T, run string) wire.Arguments {
			return wire.QueueAdd{Run: run, Title: shortText(1, 300).Draw(t, "title"), Text: shortText(0, 500).Draw(t, "text"), Position: count.Draw(t, "position")}
		}),
		of(func(t *rapid.T, run string) wire.Arguments {
			return wire.QueueMove{Run: run, Experiment: number.Draw(t, "experiment"), Position: count.Draw(t, "position")}
		}),
		of(func(t *rapid.T, run string) wire.Arguments {
			text := shortText(0, 500).Draw(t, "text")
			return wire.QueueEdit{Run: run, Experiment: number.Draw(t, "experiment"), Text: &text}
		}),
		of(func(t *rapid.T, run string) wire.Arguments {
			return wire.QueueDrop{Run: run, Experiment: number.Draw(t, "experiment"), Why: why.Draw(t, "why")}
		}),
		of(func(t *rapid.T, run string) wire.Arguments {
			return wire.TrialMessage{Run: run, Trial: number.Draw(t, "trial"), Text: shortText(1, 500).Draw(t, "text")}
		}),
		of(func(t *rapid.T, run string) wire.Arguments {
			return wire.TrialStop{Run: run, Trial: number.Draw(t, "trial"), Why: why.Draw(t, "why")}
		}),
		of(func(t *rapid.T, run string) wire.Arguments {
			return wire.AttemptDisqualify{Run: run, Attempt: number.Draw(t, "attempt"), Why: shortText(1, 500).Draw(t, "why")}
		}),
		of(func(t *rapid.T, run string) wire.Arguments {
			return wire.AttemptRejudge{Run: run, Attempt: number.Draw(t, "attempt"), Why: why.Draw(t, "why"), AllowSuspect: rapid.Bool().Draw(t, "suspect")}
		}))
}

func anyCommand() *rapid.Generator[wire.Command] {
	return rapid.Custom(func(t *rapid.T) wire.Command {
		args := anyArguments().Draw(t, "args")
		at := issued.Add(time.Duration(rapid.IntRange(0, 1e6).Draw(t, "after")) * time.Second)
		return wire.Command{ID: rapid.StringMatching(`[a-z2-7]{26}`).Draw(t, "id"), Rig: anyName().Draw(t, "rig"),
			Ledger: rapid.OneOf(rapid.Just(""), anyLedger()).Draw(t, "ledger"), Kind: args.Command(), Args: must(wire.Canonical(args)),
			IssuedAt: wire.At(at), ExpiresAt: wire.At(at.Add(time.Duration(rapid.IntRange(1, 1e6).Draw(t, "life")) * time.Second))}
	})
}

// Promise: every command comes back as it was signed, with its arguments, and
// encodes again to the same bytes; another key's is refused, and still named.
func TestCommandsComeBackTheSame(t *testing.T) {
	kinds := map[string]bool{}
	rapid.Check(t, func(t *rapid.T) {
		s := signer(t, 1)
		want := anyCommand().Draw(t, "command")
		b := must(wire.EncodeCommand(s, want))
		got, err := wire.OpenCommand(s.Public(), b)
		if diff := cmp.Diff(want, got, timesEqual); err != nil || diff != "" {
			t.Fatalf("%v (-want +got):\n%s", err, diff)
		}
		if again := must(wire.EncodeCommand(s, got)); !bytes.Equal(again, b) {
			t.Fatalf("%s encodes again as %s", b, again)
		}
		args, err := got.Arguments()
		if err != nil || args.Command() != want.Kind || args.RunName() == "" || !bytes.Equal(must(wire.Canonical(args)), want.Args) {
			t.Fatalf("its arguments are %+v, %v", args, err)
		}
		kinds[want.Kind] = true
		if other, err := wire.OpenCommand(signer(t, 2).Public(), b); !errors.Is(err, wire.ErrBadSignature) || other.ID != want.ID {
			t.Fatalf("with another key: %s, %v", other.ID, err)
		}
		if only, err := wire.ReadCommand(b); err != nil || only.ID != want.ID {
			t.Fatalf("read alone: %s, %v", only.ID, err)
		}
	})
	for _, kind := range wire.CommandKinds {
		if !kinds[kind] {
			t.Errorf("no command of kind %s was drawn", kind)
		}
	}
}

// Promise: a command in which any byte is another is refused.
func TestAChangedCommandIsRefused(t *testing.T) {
	s := signer(t, 1)
	b := must(wire.EncodeCommand(s, command(wire.RunPause{Run: "run-1", Why: "why"})))
	for i := range b {
		for _, bit := range []byte{1, 32} {
			changed := slices.Clone(b)
			changed[i] ^= bit
			if _, err := wire.OpenCommand(s.Public(), changed); err == nil {
				t.Errorf("%q as %q at %d is taken", b[i], changed[i], i)
			}
		}
	}
	for n := range b {
		if _, err := wire.OpenCommand(s.Public(), b[:n]); !errors.Is(err, wire.ErrNoCommand) {
			t.Errorf("its first %d bytes: %v", n, err)
		}
	}
}

func command(args wire.Arguments) wire.Command {
	return wire.Command{ID: strings.Repeat("a2", 13), Rig: "alpha", Kind: args.Command(), Args: must(wire.Canonical(args)),
		IssuedAt: wire.At(issued), ExpiresAt: wire.At(issued.Add(time.Hour))}
}

// Promise: what is no command is neither made nor taken, and the error names
// what is wrong.
func TestBadCommandsAreRefused(t *testing.T) {
	s := signer(t, 1)
	long := strings.Repeat("x", 64<<10+1)
	some, worker, none := "title", "Tune", uint64(0)
	for says, change := range map[string]func(*wire.Command){
		`id "x" is none`:                  func(c *wire.Command) { c.ID = "x" },
		`rig name "Alpha"`:                func(c *wire.Command) { c.Rig = "Alpha" },
		`ledger "short"`:                  func(c *wire.Command) { c.Ledger = "short" },
		"its kind is unknown":             func(c *wire.Command) { c.Kind = "run.explode" },
		"it expires at":                   func(c *wire.Command) { c.ExpiresAt = c.IssuedAt },
		"args of run.pause":               func(c *wire.Command) { c.Args = jsontext.Value(`{"run":"run-1","why":"","more":1}`) },
		`run name ""`:                     func(c *wire.Command) { c.Args = jsontext.Value(`{"why":""}`) },
		"why has 8001 bytes":              args(wire.RunPause{Run: "a", Why: long[:8001]}),
		"exactly one of embedded and git": args(wire.RunAssign{Run: "a", Campaign: "c", Worker: "tune"}),
		"no https or ssh address":         args(wire.RunAssign{Run: "a", Campaign: "c", Worker: "tune", Kit: wire.KitSource{Git: "file:///etc", Commit: strings.Repeat("a", 40)}}),
		"no full commit":                  args(wire.RunAssign{Run: "a", Campaign: "c", Worker: "tune", Kit: wire.KitSource{Git: "https://x/y", Commit: "main"}}),
		"no SHA-256 in hex":               args(wire.RunAssign{Run: "a", Campaign: "c", Worker: "tune", Kit: wire.KitSource{Embedded: "k", Digest: "abc"}}),
		`campaign name ""`:                args(wire.RunAssign{Run: "a", Worker: "tune", Kit: wire.KitSource{Embedded: "k"}}),
		`worker name "T"`:                 args(wire.RunAssign{Run: "a", Campaign: "c", Worker: "T", Kit: wire.KitSource{Embedded: "k"}}),
		"lanes is 65, at most 64":         args(wire.RunAssign{Run: "a", Campaign: "c", Worker: "tune", Lanes: 65, Kit: wire.KitSource{Embedded: "k"}}),
		"worker_args has 101 entries":     args(wire.RunAssign{Run: "a", Campaign: "c", Worker: "exec", WorkerArgs: make([]string, 101), Kit: wire.KitSource{Embedded: "k"}}),
		"worker_args[0] has 8001 bytes":   args(wire.RunAssign{Run: "a", Campaign: "c", Worker: "exec", WorkerArgs: []string{long[:8001]}, Kit: wire.KitSource{Embedded: "k"}}),
		`worker name "Tune"`:              args(wire.RunChange{Run: "a", RunSettings: wire.RunSettings{Worker: &worker}}),
		"lanes is missing":                args(wire.RunChange{Run: "a", RunSettings: wire.RunSettings{Title: &some, Lanes: &none}}),
		"title is missing":                args(wire.QueueAdd{Run: "a"}),
		"text has 65537 bytes":            args(wire.QueueAdd{Run: "a", Title: "t", Text: long}),
		"position is 9007199254740992":    args(wire.QueueAdd{Run: "a", Title: "t", Position: wire.MaxInteger + 1}),
		"experiment is missing":           args(wire.QueueMove{Run: "a"}),
		"title and text are missing":      args(wire.QueueEdit{Run: "a", Experiment: 1}),
		"text is missing":                 args(wire.TrialMessage{Run: "a", Trial: 1}),
		"trial is missing":                args(wire.TrialStop{Run: "a"}),
		"why is missing":                  args(wire.AttemptDisqualify{Run: "a", Attempt: 1}),
		"attempt is missing":              args(wire.AttemptRejudge{Run: "a"}),
	} {
		c := command(wire.RunPause{Run: "run-1"})
		change(&c)
		if _, err := wire.EncodeCommand(s, c); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("made, where it should be refused for %q: %v", says, err)
		}
		raw, err := wire.Canonical(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := wire.OpenCommand(s.Public(), wire.SignCommand(s, raw)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("taken, where it should be refused for %q: %v", says, err)
		}
	}
}

func args(a wire.Arguments) func(*wire.Command) {
	return func(c *wire.Command) { c.Kind, c.Args = a.Command(), must(wire.Canonical(a)) }
}

// Promise: a command too large for the channel is not made.
func TestACommandTooLargeIsNotMade(t *testing.T) {
	a := wire.RunAssign{Run: "a", Campaign: "c", Worker: "exec", Kit: wire.KitSource{Embedded: "k"}, WorkerArgs: make([]string, 100)}
	for i := range a.WorkerArgs {
		a.WorkerArgs[i] = strings.Repeat("\x01", 8000) // six bytes each in JSON
	}
	if _, err := wire.EncodeCommand(signer(t, 1), command(a)); !errors.Is(err, wire.ErrNoCommand) || !strings.Contains(err.Error(), "at most 1048576") {
		t.Errorf("it is made: %v", err)
	}
	if _, err := wire.ReadCommand(bytes.Repeat([]byte(" "), wire.MaxCommandBytes+1)); !errors.Is(err, wire.ErrNoCommand) {
		t.Errorf("it is read: %v", err)
	}
}

// Promise: a rig takes a command only for itself, its ledger, and while it is
// in force.
func TestWhichCommandsARigTakes(t *testing.T) {
	const ledger = "ledger0a"
	c := command(wire.RunPause{Run: "run-1"})
	c.Ledger = ledger
	anyLedgers := c
	anyLedgers.Ledger = ""
	for name, k := range map[string]struct {
		c           wire.Command
		rig, ledger string
		now         time.Time
		is          error
	}{
		"as it is issued":        {c, "alpha", ledger, issued, nil},
		"just before the end":    {c, "alpha", ledger, issued.Add(time.Hour - time.Microsecond), nil},
		"at its end":             {c, "alpha", ledger, issued.Add(time.Hour), wire.ErrExpired},
		"another rig":            {c, "beta", ledger, issued, wire.ErrOtherRig},
		"another ledger":         {c, "alpha", "ledger0b", issued, wire.ErrOtherCommandLedger},
		"for whichever ledger":   {anyLedgers, "alpha", "ledger0b", issued, nil},
		"a clock a bit behind":   {c, "alpha", ledger, issued.Add(-wire.MaxClockAhead), nil},
		"a clock too far behind": {c, "alpha", ledger, issued.Add(-wire.MaxClockAhead - time.Microsecond), wire.ErrExpired},
	} {
		if err := wire.CheckCommand(k.c, k.rig, k.ledger, k.now); !errors.Is(err, k.is) {
			t.Errorf("%s: %v, not %v", name, err, k.is)
		}
	}
}

// Promise: a renewal comes back as it was sent, with the command; one of
// another rig, nonce, command or key is refused.
func TestRenewalsComeBackTheSame(t *testing.T) {
	s := signer(t, 1)
	c := command(wire.RunPause{Run: "run-1"})
	signed := must(wire.EncodeCommand(s, c))
	ask := wire.RenewAsk{Nonce: "n-1", ID: c.ID}
	if got, err := wire.DecodeRenewAsk(must(wire.EncodeRenewAsk(ask))); err != nil || got != ask {
		t.Errorf("the ask is %+v, %v", got, err)
	}
	for _, bad := range []string{`{}`, `{"id":"x","nonce":"n"}`, `{"id":"` + c.ID + `","nonce":""}`, `{"id":"` + c.ID + `","nonce":"n","more":1}`, `[`} {
		if _, err := wire.DecodeRenewAsk([]byte(bad)); err == nil {
			t.Errorf("%s is an ask", bad)
		}
	}
	good := wire.RenewAnswer{Rig: "alpha", Nonce: "n-1", ID: c.ID, Pending: true, Command: signed}
	over := wire.RenewAnswer{Rig: "alpha", Nonce: "n-1", ID: c.ID}
	for _, want := range []wire.RenewAnswer{good, over, {Rig: "alpha", Nonce: "n-1", Refused: "no"}} {
		got, err := wire.DecodeRenewAnswer(s.Public(), "alpha", ask, must(wire.EncodeRenewAnswer(s, want)))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	other := c
	other.ID = strings.Repeat("b3", 13)
	elsewhere := c
	elsewhere.Rig = "beta"
	for name, change := range map[string]func(*wire.RenewAnswer){
		"another rig":           func(a *wire.RenewAnswer) { a.Rig = "beta" },
		"another nonce":         func(a *wire.RenewAnswer) { a.Nonce = "n-2" },
		"another id":            func(a *wire.RenewAnswer) { a.ID = other.ID },
		"another command":       func(a *wire.RenewAnswer) { a.Command = must(wire.EncodeCommand(s, other)) },
		"another rig's command": func(a *wire.RenewAnswer) { a.Command = must(wire.EncodeCommand(s, elsewhere)) },
		"another key's command": func(a *wire.RenewAnswer) { a.Command = must(wire.EncodeCommand(signer(t, 2), c)) },
		"no command":            func(a *wire.RenewAnswer) { a.Command = nil },
	} {
		a := good
		change(&a)
		if _, err := wire.DecodeRenewAnswer(s.Public(), "alpha", ask, must(wire.EncodeRenewAnswer(s, a))); err == nil {
			t.Errorf("with %s it is taken", name)
		}
	}
	if _, err := wire.DecodeRenewAnswer(s.Public(), "alpha", ask, must(wire.EncodeRenewAnswer(signer(t, 2), good))); !errors.Is(err, wire.ErrBadSignature) {
		t.Errorf("by another key: %v", err)
	}
}

// Promise: what hands a command on comes back as it was sent, and says what is
// wrong when it can't be.
func TestDeliveriesComeBackTheSame(t *testing.T) {
	d := wire.CommandDelivery{Command: must(wire.EncodeCommand(signer(t, 1), command(wire.RunPause{Run: "run-1"}))), Staged: "folder"}
	got, err := wire.DecodeCommandDelivery(must(wire.EncodeCommandDelivery(d)))
	if diff := cmp.Diff(d, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := wire.OpenCommand(signer(t, 1).Public(), got.Command); err != nil {
		t.Errorf("the command in it: %v", err)
	}
	both := d
	both.Failed = "no"
	if _, err := wire.DecodeCommandDelivery(must(wire.EncodeCommandDelivery(both))); err == nil {
		t.Error("staged and failed at once is taken")
	}
	a := wire.CommandAnswer{ID: strings.Repeat("a2", 13), State: wire.CommandApplied, Why: "why"}
	if got, err := wire.DecodeCommandAnswer(must(wire.EncodeCommandAnswer(a))); err != nil || got != a {
		t.Errorf("the answer is %+v, %v", got, err)
	}
	a.State = "done"
	if _, err := wire.DecodeCommandAnswer(must(wire.EncodeCommandAnswer(a))); err == nil {
		t.Error("a state that is none is taken")
	}
}

func FuzzOpenCommand(f *testing.F) {
	s := signer(f, 1)
	for _, a := range []wire.Arguments{wire.RunPause{Run: "run-1", Why: "why"}, wire.QueueAdd{Run: "a", Title: "ü"},
		wire.RunAssign{Run: "a", Campaign: "c", Worker: "tune", Kit: wire.KitSource{Git: "https://x/y", Commit: strings.Repeat("a", 40)}}} {
		f.Add([]byte(must(wire.Canonical(command(a)))))
	}
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		// As they come, and well signed by a control gone bad.
		_, _ = wire.OpenCommand(s.Public(), raw)
		c, err := wire.OpenCommand(s.Public(), wire.SignCommand(s, raw))
		if err != nil {
			return
		}
		again, err := wire.EncodeCommand(s, c)
		if err != nil || !bytes.Equal(again, wire.SignCommand(s, raw)) {
			t.Fatalf("%q encodes again as %q: %v", raw, again, err)
		}
		if args, err := c.Arguments(); err != nil || args.Command() != c.Kind {
			t.Fatalf("%q has the arguments %+v, %v", raw, args, err)
		}
	})
}

func FuzzDecodeRenewAsk(f *testing.F) {
	f.Add([]byte(`{"id":"` + strings.Repeat("a2", 13) + `","nonce":"n"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := wire.DecodeRenewAsk(b)
		if err != nil {
			return
		}
		if again, err := wire.DecodeRenewAsk(must(wire.EncodeRenewAsk(a))); err != nil || again != a {
			t.Fatalf("%q comes back as %+v, %v", b, again, err)
		}
	})
}

func FuzzDecodeCommandDelivery(f *testing.F) {
	f.Add([]byte(`{"command":{"a":1},"staged":"f"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := wire.DecodeCommandDelivery(b)
		if err != nil {
			return
		}
		if _, err := wire.EncodeCommandDelivery(d); err != nil {
			t.Fatalf("%q: %v", b, err)
		}
	})
}
