package guard_test

import (
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"testing"
	"time"
)

// seed gives every limit and interval its value, as the seed (or, where it
// is silent, the design) has it. Bytes, counts, or a duration.
var seed = map[string]any{
	"MaxBusMessage":      8 << 20,            // "too large for one message, 8 MiB"
	"MaxEventBytes":      8<<20 - 64<<10,     // an event with its headers and its page in one message
	"MaxPageEvents":      1000,               // "in pages of up to 1,000"
	"MaxBatchEvents":     1000,               // "in batches of up to 1,000 events and 8 MiB"
	"MaxBatchBytes":      8 << 20,            //
	"MaxPagesWaiting":    32,                 // "At most 32 pages of one rig wait there"
	"MaxReportsWaiting":  32,                 // "At most 32 reports wait for the turn"
	"MaxEarlierFolds":    16,                 // "Control keeps the 16 such folds read last"
	"MaxLiveRuns":        1000,               // "the newest 1,000"
	"MaxLiveMessage":     1 << 20,            // "A message holds at most 1 MiB"
	"MaxLiveMessages":    1000,               // "at most 1,000 messages of each subject"
	"MaxLiveBytes":       256 << 20,          // "and 256 MiB in all"
	"MaxLiveLine":        512 << 10,          // ours
	"MaxLiveWaiting":     500,                // "with more than 500 lines waiting for it"
	"MaxLiveSubjects":    100,                // "for the 100 subjects it used last"
	"LiveInterval":       3 * time.Second,    // THERMITE_LIVE_INTERVAL_MS: "every 3 seconds"
	"LiveMaxAge":         time.Hour,          // "It keeps a message for an hour at most"
	"MaxEventsRead":      5000,               // "A page of 5,000"
	"MaxAskBytes":        1 << 20,            // ours
	"MaxBodyBytes":       1 << 20,            // ours
	"MaxDailyCharacters": 200_000,            // "at most 200,000 characters"
	"MaxScreenBytes":     64 << 10,           // ours
	"MaxScreens":         6,                  // ours
	"ScreensWatched":     time.Second,        // "every second while a trial is watched"
	"ScreensIdle":        5 * time.Second,    // "every 5 seconds otherwise"
	"MaxSpaceItems":      2000,               // ours
	"MaxSpaceGone":       200,                // ours
	"SpaceEvery":         10 * time.Minute,   // "every 10 minutes, and after each removal"
	"DailyLook":          time.Minute,        // ours
	"MaxCommandBytes":    1 << 20,            // ours
	"MaxCommandsWaiting": 100,                // "It holds up to 100 commands for each rig"
	"MaxCommandTurns":    100,                // "when 100 commands already wait their turn to be published"
	"CommandAgain":       5 * time.Second,    // "the bus hands it again every 5 seconds"
	"CommandRetry":       10 * time.Second,   // "publishes the held commands again every 10 seconds"
	"CommandMaxAge":      7 * 24 * time.Hour, // "a command for at most a week"
	"RenewBefore":        10 * time.Minute,   // "Within 10 minutes of its expiry"
	"RenewFor":           time.Hour,          // "with an expiry an hour on"
	"RenewMost":          24 * time.Hour,     // "at most 24 hours after it was issued"
	"MaxKBChunkBytes":    1 << 20,            // "each at most 1 MiB and its headers"
	"MaxKBChunksWaiting": 256,                // "At most 256 chunks of one rig wait there"
	"MaxKBFilesAsked":    500,                // "by their SHA-256, at most 500"
	"MaxKBFileBytes":     128 << 20,          // ours
	"MaxKBTextBytes":     256 << 10,          // ours
	"KBDiskRetry":        time.Minute,        // "control tries again every minute"
	"MaxConfigBytes":     1 << 20,            // ours
	"MaxSecretBytes":     16 << 10,           // ours
	"ConfigLook":         5 * time.Second,    // "It looks at every rig on the bus every 5 seconds"
	"ModelRoutePoll":     5 * time.Second,    // THERMITE_MODEL_ROUTE_POLL_SECONDS; the number is ours
	"GitAccessWait":      2 * time.Minute,    // "Staging waits up to 2 minutes for an access its assignment names"
	"SignInRenew":        10 * time.Minute,   // "renews what a value holds before it ends"; the number is ours
	"MaxLanes":           64,                 // ours
	"MaxDiffBytes":       128 << 10,          // ours
	"MaxOutputBytes":     8 << 10,            // ours
	"MaxBrokerLine":      1 << 20,            // "1 MiB a line"
	"MaxInteger":         int64(1)<<53 - 1,   // RFC 8785
	"PollInterval":       60 * time.Second,   // THERMITE_POLL_SECONDS: "every 60 seconds"
	"RegisterRetry":      30 * time.Second,   // "tries again every 30 seconds"
	"ReportRetry":        5 * time.Second,    // "handed again 5 seconds later"
	"ApplyRetry":         5 * time.Second,    // "the apply tries again every 5 seconds"
	"UsersLook":          5 * time.Second,    // "looks at its users every 5 seconds"
	"UsersNeed":          time.Minute,        // "has not taken the file for a minute"
	"ConsumersLook":      time.Minute,        // "every minute it looks at every rig's again"
	"AskTimeout":         20 * time.Second,   // "An ask with no answer ends after 20 seconds"
	"CallTimeout":        5 * time.Minute,    // "a call over HTTPS that hangs after 5 minutes"
	"DuplicateWindow":    2 * time.Minute,    // "published twice within two minutes is kept once"
	"MaxClockAhead":      10 * time.Minute,   // ours
	"BusPort":            4222,               // "on NATS's own port, 4222"
	"LeafPort":           7422,               // "The pod's port 7422"
}

// Promise: every limit the seed names is one constant with the seed's value.
// A constant that this table lacks fails too, so none changes unseen.
func TestLimitsHaveTheSeedsValues(t *testing.T) {
	has := constantsOf(t, "pkg/wire/limits.go")
	for name, want := range seed {
		got, ok := has[name]
		if !ok {
			t.Errorf("pkg/wire/limits.go has no %s", name)
			continue
		}
		if d, ok := want.(time.Duration); ok {
			want = int64(d)
		}
		if !constant.Compare(got, token.EQL, constant.Make(toInt64(want))) {
			t.Errorf("%s is %s, where the seed has %v", name, got, want)
		}
	}
	for name := range has {
		if _, ok := seed[name]; !ok {
			t.Errorf("%s in pkg/wire/limits.go is not in this test's table: add it with the seed's words", name)
		}
	}
}

func toInt64(v any) int64 {
	if n, ok := v.(int); ok {
		return int64(n)
	}
	return v.(int64)
}

// constantsOf gives the value of each exported constant of a file that needs
// nothing but the package time.
func constantsOf(t *testing.T, file string) map[string]constant.Value {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, filepath.Join(root, file), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	conf := types.Config{Importer: importer.ForCompiler(set, "source", nil)}
	pkg, err := conf.Check("limits", set, []*ast.File{f}, nil)
	if err != nil {
		t.Fatalf("reading the constants of %s: %v", file, err)
	}
	values := map[string]constant.Value{}
	for _, name := range pkg.Scope().Names() {
		if c, ok := pkg.Scope().Lookup(name).(*types.Const); ok && c.Exported() {
			values[name] = c.Val()
		}
	}
	return values
}

// later are the limits of channels that are not built yet.
var later = map[string]string{
	"LeafPort": "pods",
}

// Promise: a limit is kept: some code reads each constant.
func TestEveryLimitIsKept(t *testing.T) {
	used := map[string]bool{}
	for _, p := range packages(t) {
		for _, file := range p.GoFiles {
			if p.path() == "pkg/wire" && file == "limits.go" {
				continue
			}
			ast.Inspect(parseFile(t, p, file), func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					used[id.Name] = true
				}
				return true
			})
		}
	}
	for name := range seed {
		switch {
		case !used[name] && later[name] == "":
			t.Errorf("no code reads wire.%s", name)
		case used[name] && later[name] != "":
			t.Errorf("wire.%s is read now: take it off the list of later ones", name)
		}
	}
}
