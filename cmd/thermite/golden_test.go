package main

import (
	"bytes"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/control/service"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

var update = flag.Bool("update", false, "write testdata/golden anew; read what changed before you commit it")

// at is a moment some minutes after the scripts' start.
func at(minutes int) wire.Time { return wire.At(start.Add(time.Duration(minutes) * time.Minute)) }

// A control with troubles of every kind.
var (
	lathe = service.RigSummary{
		Name: "lathe", CreatedAt: at(-3000), Connection: service.Connection{State: "broken", Since: at(50), Why: "its connection to the bus ended: it reads too slowly"},
		Ledger: "k5ybdcuhbbfvq2evrb3n2p7u4e", LastCursor: 20311, LastSeq: 90321, LastEvent: at(49), Runs: 2, Behind: 17, Build: "v0.2.0", FiguresAt: at(50), KeyWaiting: true,
	}
	drill = service.RigSummary{
		Name: "drill-press-in-the-cellar", CreatedAt: at(-20), Connection: service.Connection{State: "connected", Since: at(-10)},
		Ledger: "a5ybdcuhbbfvq2evrb3n2p7u4e", LastCursor: 3, LastSeq: 90300, LastEvent: at(58), Runs: 1, Build: "v0.2.0", FiguresAt: at(59),
	}
	score    = 2.63592
	latheNow = service.RigView{
		RigSummary: lathe,
		Keys: service.RigKeys{
			Report: &service.Key{Fingerprint: "Qe3yPQ6mdX9_0mV0m3c1kA"}, Waiting: &service.Key{Fingerprint: "Ze3yPQ6mdX9_0mV0m3c1kZ", Since: at(40)},
			Bus: &service.Key{Fingerprint: "Be3yPQ6mdX9_0mV0m3c1kB"}, Seal: &service.Key{Fingerprint: "Se3yPQ6mdX9_0mV0m3c1kS"},
		},
		Figures: &wire.Figures{Build: "v0.2.0", StartedAt: at(-3000), Relay: wire.RelayFigures{LastError: "the bus is away"},
			Loops: map[string]wire.LoopFigures{"reports": {State: "failing", Detail: "the harness does not answer"}, "figures": {State: "working"}}},
		Ledgers: []views.LedgerMarks{},
		View: views.Rig{
			Rig: "lathe", Ledger: "k5ybdcuhbbfvq2evrb3n2p7u4e", Current: true, Events: 20311, Unread: 2,
			Runs: []views.Run{
				{Run: "pack26-2", State: views.RunRunning, Kit: "circle-packing-26", Title: "26 circles in the unit square, largest sum of radii", Trials: 24, Attempts: 40,
					Metric: &wire.Metric{Name: "sum_radii", Direction: "max"}, Champion: &views.Champion{Mark: views.Mark{Time: at(30)}, Score: &score}, First: views.Mark{Time: at(0)}, Last: views.Mark{Time: at(49)}},
				{Run: "seen-only", State: views.RunSeen, First: views.Mark{Time: at(0)}, Last: views.Mark{Time: at(1)}},
			},
			Recent: []views.Line{
				{Mark: views.Mark{Seq: 90321, ID: 20311, Time: at(49)}, Kind: "verdict", Actor: "judge", Run: "pack26-2", Subject: "attempt:42", Summary: "attempt 42 better, score 2.63592: better than the champion, yet within the noise"},
				{Mark: views.Mark{Seq: 90320, ID: 20310, Time: at(48)}, Kind: "model_call", Actor: "trial:23", Run: "pack26-2", Subject: "trial:23", Summary: "large-2, 41002 tokens in, 1341 out"},
				{Mark: views.Mark{Seq: 90319, ID: 20309, Time: at(47)}, Kind: "rig_check", Actor: "controller", Summary: "the rig can work: 6 checked"},
			},
		},
	}
	broken = service.RigView{RigSummary: drill, Ledgers: []views.LedgerMarks{}, View: views.Rig{Ledger: "a5ybdcuhbbfvq2evrb3n2p7u4e",
		Failed: &views.Failure{Mark: views.Mark{Seq: 90300, ID: 3, Time: at(58)}, Kind: "verdict", Words: "the rig's fold failed on event 3 (verdict)"}}}

	busNow = service.BusState{
		Link:   service.Link{State: "connected", Since: at(-500)},
		Server: &service.Server{Version: "2.15.2", MemoryBytes: 94 << 20, Clients: 12, Leafs: 1, StoreBytes: 9 << 30, StoreMaxBytes: 64 << 30, StartedAt: at(-600), Streams: streams},
		Writer: service.Writer{Published: 90321, Batches: 700, Waiting: 3, Refused: 4, LastRefused: "the message bus did not take this report's events: the bus's store is full", RefusedAt: at(20)},
		Apply:  service.Apply{State: "waiting", Place: 90000, Behind: 321, Unread: 1, Why: "writing the store: disk full", WhyWhen: at(55)},
		Reports: service.Reports{State: "working", Taken: 1000, Held: 7, Refused: 2, ForNow: 4,
			Last: "a gap in the event stream", LastAt: at(10)},
		Users: service.Users{Rigs: 2, TakenAt: at(30), Error: "the server did not take the file: no answer", ErrorFrom: at(31)},
	}
	busAway = service.BusState{
		Link: service.Link{State: "away", Since: at(55), Error: "connection refused"}, ServerError: "the bus is away",
		Apply: service.Apply{State: "waiting"}, Reports: service.Reports{State: "waiting"},
	}
	streams = []service.Stream{
		{Name: "EVENTS", Messages: 90321, Bytes: 300 << 20, FirstSeq: 1, LastSeq: 90321, Consumers: []service.Consumer{}},
		{Name: "REPORTS", Messages: 3, Bytes: 2 << 20, FirstSeq: 1001, LastSeq: 1003, Consumers: []service.Consumer{{Name: "control-reports", Pending: 2, Unacked: 1}, {Name: "other", Pending: 0}}},
	}
)

// Promise: what a person reads is plain, complete and fits 100 columns, and
// a pipe gets it whole. The transcripts are in testdata/golden.
func TestTranscripts(t *testing.T) {
	answers := map[string]any{
		"/v1/rigs":               service.RigList{Rigs: []service.RigSummary{drill, lathe}},
		"/v1/rigs/lathe":         latheNow,
		"/v1/rigs/drill":         broken,
		"/v1/rigs/lathe/history": service.History{Steps: []service.HistoryStep{{ID: "2", At: at(40), Step: "report_key_waiting", Text: "Its harness reports with another key, which waits for the owner"}, {ID: "1", At: at(-3000), Step: "made", Text: "The owner made it"}}},
		"/v1/bus":                busNow,
		"/v1/health": service.Health{Status: "degraded", Bus: service.Link{State: "connected", Since: at(-500)}, Build: "v0.2.0", Now: at(60),
			Apply: service.HealthApply{State: "waiting", Why: "writing the store: disk full"}, Store: service.HealthStore{Error: "disk full"}},
		"/v1/needs":  service.NeedList{Needs: []service.Need{{ID: "3", Code: "rig_report_key_waiting", Title: "A rig's harness reports with a new key", Detail: "key Ze3yPQ6mdX9_0mV0m3c1kZ where Qe3yPQ6mdX9_0mV0m3c1kA is accepted", Do: "Control takes none of its reports until you accept the key.", Subject: "lathe", Since: at(40)}, {ID: "4", Code: "rig_bus_key_changed", Title: "A rig signs in to the message bus with a new key", Do: "A supervisor makes a new key when it lost its state folder.", Subject: "drill-press-in-the-cellar", Since: at(58), CanBeSeen: true}}},
		"/v1/audit":  service.AuditPage{Entries: []service.AuditEntry{{ID: "9", At: at(10), Actor: "control", Source: "reports", Action: "report_refused", Subject: "lathe", Detail: map[string]any{"why": "a gap in the event stream", "expected_cursor": 20311.0}}, {ID: "8", At: at(-20), Actor: "owner:owner", Source: "127.0.0.1", Action: "rig_made", Subject: "drill-press-in-the-cellar"}}},
		"/v1/tokens": service.TokenList{Tokens: []service.Token{{ID: "1", Role: "owner", Name: "owner", CreatedAt: at(-9000), Yours: true}, {ID: "2", Role: "reader", Name: "wall display", CreatedAt: at(-60), RevokedAt: at(30)}}},
	}
	s := serve(t, func(w http.ResponseWriter, r *http.Request, _ string) {
		if a, ok := answers[r.URL.Path]; ok {
			respond(t, w, http.StatusOK, a)
		} else {
			problem(http.StatusNotFound, "no_route", "there is nothing at "+r.URL.Path)(w, r, "")
		}
	})
	away := serve(t, func(w http.ResponseWriter, r *http.Request, _ string) { respond(t, w, http.StatusOK, busAway) })
	for name, c := range map[string]struct {
		server *scripted
		args   string
	}{
		"rig-list": {s, "rig list"}, "rig-show": {s, "rig show lathe"}, "rig-show-failed": {s, "rig show drill"}, "rig-history": {s, "rig history lathe"},
		"bus": {s, "bus"}, "bus-away": {away, "bus"}, "health": {s, "health"}, "needs": {s, "needs"}, "audit": {s, "audit"}, "token-list": {s, "token list"},
	} {
		t.Run(name, func(t *testing.T) {
			onTerminal := c.server.thermiteOn(t.Context(), t, &bytes.Buffer{}, terminal{width: 100}, "", strings.Fields(c.args)...)
			inPipe := c.server.thermite(t.Context(), t, strings.Fields(c.args)...)
			got := "$ thermite " + c.args + "\n" + onTerminal.out + onTerminal.errors +
				"\n$ thermite " + c.args + " | cat\n" + inPipe.out
			compare(t, filepath.Join("testdata", "golden", name+".txt"), got)
		})
	}
}

// compare holds got to the file, or writes it.
func compare(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
