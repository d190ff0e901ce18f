package main

import (
	"bytes"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"thermite/pkg/control/service"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

func number(f float64) *float64 { return &f }

func mark(seq uint64, minutes int) views.Mark {
	return views.Mark{Seq: seq, ID: seq, Time: at(minutes)}
}

// A run that is well under way, with an attempt of every kind.
var (
	sum     = &wire.Metric{Name: "sum", Unit: "of radii", Direction: "max", Bound: number(2.64)}
	effect  = &wire.Effect{Center: 0.0412, Low: 0.0371, High: 0.0448, Confidence: 0.95, Least: 0.0001, Pairs: 6}
	packing = views.Run{
		Run: "pack26", State: views.RunRunning, Title: "26 circles in a square, with the largest sum of radii", Campaign: "packing", Kit: "circle-packing-26",
		KitVersion: "1", Worker: "tune", LaneCount: 2, Seed: 7, Metric: sum, Budget: &wire.Budget{Attempts: 100, WallMS: 3_600_000},
		Started: &views.Mark{Seq: 3, ID: 3, Time: at(30)}, First: mark(3, 30), Last: mark(40, 59), Trials: 3, Attempts: 5,
		Verdicts: []views.Count{{Name: "promoted", Count: 1}, {Name: "not_better", Count: 1}, {Name: "refused", Count: 1}, {Name: "suspect", Count: 1}},
		Scores: []views.Score{{Mark: mark(10, 32), Attempt: 1, Outcome: "promoted", Score: 2.59241}, {Mark: mark(20, 33), Attempt: 2, Outcome: "not_better", Score: 2.4},
			{Mark: mark(30, 34), Attempt: 4, Outcome: "suspect", Score: 2.7}},
		Base:     &views.Attempt{Mark: mark(4, 31), Attempt: 0, Score: number(2.5512), Outcome: "promoted"},
		Champion: &champion,
		Champions: []views.Champion{{Mark: mark(5, 31), Score: number(2.5512), Why: "the kit's base"}, champion,
			{Mark: mark(35, 40), Attempt: 4, Title: "random start 4 of 8", Score: number(2.7), Disqualified: true},
			{Mark: mark(36, 41), Attempt: 1, Title: champion.Title, Score: champion.Score, Why: "attempt 4 is disqualified"}},
		Lanes:    []views.Lane{{Lane: 1, Trial: 2, Experiment: 2, Title: "Search the tunables", Worker: "tune", Started: mark(25, 34), Attempts: 3, Judging: 1}},
		Past:     []views.Trial{{Mark: mark(24, 34), Trial: 1, Lane: 1, Experiment: 1, Worker: "tune", Attempts: 2, Outcome: "timed_out", Why: "it had 3m0s", WallMS: 180_000}},
		Queue:    []views.Experiment{{Experiment: 3, Title: "Start from rows, then shake", State: "waiting", Position: 1, By: "owner", Added: mark(26, 35), Changed: mark(26, 35)}},
		Proposed: []views.Experiment{{Experiment: 4, Title: "Weigh the corners", State: "proposed", By: "advisor:teacher", Why: "three of the best leave them empty", Added: mark(27, 36), Changed: mark(27, 36)}},
		Working:  []views.Experiment{{Experiment: 2, Title: "Search the tunables", State: "working", Lane: 1, Trial: 2, By: "controller", Added: mark(24, 34), Changed: mark(25, 34)}},
		Over:     []views.Experiment{{Experiment: 1, Title: "Search the tunables", State: "finished", Trial: 1, By: "controller", Added: mark(4, 31), Changed: mark(24, 34)}},
		Newest:   []views.Attempt{waits, suspect, refusedAttempt, promoted},
	}
	champion = views.Champion{Mark: mark(10, 32), Attempt: 1, Title: "random start 1 of 8", Trial: 1, Score: number(2.59241), Effect: effect,
		Tunables: map[string]string{"restarts": "7", "rate": "0.01"}, Why: "better than the champion by 0.0412 on secret cases"}
	promoted = views.Attempt{Mark: mark(9, 32), Attempt: 1, Trial: 1, Lane: 1, Experiment: 1, Title: "random start 1 of 8", Idea: "a first look at the whole range", Patch: strings.Repeat("ab", 32),
		Files: 1, Added: 2, Removed: 2, Tunables: map[string]string{"restarts": "7", "rate": "0.01"}, Judging: 1, Step: "measure", Outcome: "promoted", Score: number(2.59241),
		Low: number(2.581), High: number(2.603), Effect: effect, Why: "better than the champion by 0.0412 on secret cases", Places: views.Places{Build: 11, Check: 12, Measure: 13, Verdict: 14}}
	refusedAttempt = views.Attempt{Mark: mark(21, 33), Attempt: 3, Trial: 2, Title: "random start 3 of 8", Files: 2, Added: 400, Removed: 1, Outcome: "refused", Why: "main.go: a candidate may not change it"}
	suspect        = views.Attempt{Mark: mark(28, 36), Attempt: 4, Trial: 2, Title: "random start 4 of 8", Files: 1, Added: 2, Removed: 2, Outcome: "suspect", Score: number(2.7), Why: "past the kit's bound, 2.64", Disqualified: true}
	waits          = views.Attempt{Mark: mark(38, 58), Attempt: 5, Trial: 2, Title: "step from attempt 1: restarts 7 → 9", Files: 1, Added: 1, Removed: 1}
	judgedAttempt  = service.AttemptView{Rig: "lathe", Run: "pack26", Ledger: latheNow.View.Ledger, Metric: sum, AttemptDetail: views.AttemptDetail{
		Attempt: promoted, Diff: "--- a/x\n", Judged: &views.Mark{Seq: 14, ID: 14, Time: at(32)},
		Steps: []views.JudgedStep{
			{Mark: mark(11, 32), Step: "build", OK: true, WallMS: 812, Output: "go: built\x1b[2J optimise\n"},
			{Mark: mark(12, 32), Step: "check", OK: true, WallMS: 40, Values: map[string]float64{"sum": 2.59241}},
			{Mark: mark(13, 32), Step: "measure", OK: true, WallMS: 9200, Values: map[string]float64{"sum": 2.59241}, Effect: effect, Cases: []wire.StepCase{
				{Seed: 1, OK: true, WallMS: 210.25, CPUMS: 208, RSS: 12 << 20, Values: map[string]float64{"sum": 2.59}},
				{Seed: 81, Secret: true, OK: true, WallMS: 211, CPUMS: 207.5, RSS: 12 << 20, Values: map[string]float64{"sum": 2.6}},
				{Seed: 81, Secret: true, Champion: true, OK: false, Why: "timed out", WallMS: 20000, CPUMS: 19000, RSS: 13 << 20},
			}},
		}}}
	refusedCommand = service.Command{ID: strings.Repeat("a", 26), Rig: "lathe", Kind: wire.CommandQueueDrop, Run: "pack26", Args: jsontext.Value(`{"experiment":9,"run":"pack26","why":""}`),
		By: "owner", IssuedAt: at(50), ExpiresAt: at(110), State: "not_applied", Why: "the queue has no experiment 9", EndedAt: at(50)}
	heldCommand = service.Command{ID: strings.Repeat("b", 26), Rig: "drill-press-in-the-cellar", Kind: wire.CommandRunAssign, Run: "pack26", Args: jsontext.Value(`{}`),
		By: "owner", IssuedAt: at(55), ExpiresAt: at(115), State: "pending", Held: "the message bus is away"}
)

// Promise: what a person reads of runs is plain, complete and fits 100
// columns, and a pipe gets it whole. The transcripts are in testdata/golden.
func TestTranscriptsOfRuns(t *testing.T) {
	run := service.RunView{Rig: "lathe", Ledger: latheNow.View.Ledger, Run: packing}
	entry := views.Entry{Rank: 1, Rig: "lathe", Run: "pack26", Title: packing.Title, State: "running", Worker: "tune", Attempts: 5, Base: number(2.5512), Best: &champion, Last: packing.Last}
	unscored := views.Entry{Rig: "drill", Run: "pack26", State: "seen", Last: mark(41, 59)}
	summary := service.RunSummary{Rig: "lathe", Run: "pack26", State: "running", Title: packing.Title, Campaign: "packing", Kit: "circle-packing-26", Attempts: 5,
		Base: number(2.5512), Champion: &champion, First: packing.First, Last: packing.Last}
	ended := service.RunSummary{Rig: "drill-press-in-the-cellar", Run: "bytecount-2", State: "ended", Outcome: "finished", Kit: "bytecount", First: mark(1, 10), Last: mark(2, 20)}
	answers := map[string]any{
		"/v1/runs":                                service.RunList{Runs: []service.RunSummary{summary, ended}},
		"/v1/runs?pack26":                         service.RunList{Runs: []service.RunSummary{summary}},
		"/v1/rigs/lathe/runs/pack26":              run,
		"/v1/rigs/lathe/runs/pack26/queue":        service.RunQueue{Rig: "lathe", Run: "pack26", Working: packing.Working, Waiting: packing.Queue, Proposed: packing.Proposed, Over: packing.Over},
		"/v1/rigs/lathe/runs/pack26/champion":     service.ChampionView{Rig: "lathe", Run: "pack26", Champion: &champion, Champions: packing.Champions, Base: number(2.5512), Metric: sum},
		"/v1/rigs/lathe/runs/pack26/attempts":     service.AttemptList{Rig: "lathe", Run: "pack26", Attempts: packing.Newest},
		"/v1/rigs/lathe/runs/pack26/attempts/1":   judgedAttempt,
		"/v1/campaigns":                           service.CampaignList{Campaigns: []service.CampaignSummary{{Campaign: "packing", Kits: []string{"circle-packing-26"}, Rigs: []string{"drill", "lathe"}, Runs: 2, Running: 1, Attempts: 5, Last: at(59), Best: &entry}}},
		"/v1/campaigns/packing":                   service.Campaign{Campaign: "packing", Rigs: []string{"drill", "lathe"}, Runs: 2, Running: 1, Attempts: 5, Last: at(59), Boards: []views.Board{{Kit: "circle-packing-26", Version: "1", Metric: sum, Entries: []views.Entry{entry, unscored}}}},
		"/v1/commands":                            service.CommandList{Commands: []service.Command{heldCommand, refusedCommand}},
		"/v1/commands/" + refusedCommand.ID:       refusedCommand,
		"/v1/rigs/lathe/runs/pack26/queue/9/drop": refusedCommand,
		"/v1/rigs/lathe/runs/pack26/prompts": service.PromptList{Rig: "lathe", Run: "pack26", Prompts: []service.Prompt{
			{Mark: mark(12, 30), Actor: "controller", Trial: 1, Bytes: 41_337, Text: "Pack 26 circles in the unit square.\nThe check is exact.", Clipped: true},
			{Mark: mark(19, 41), Actor: "controller", Bytes: 30, Text: "\x1b[31mPlan what to try\x1b[0m next."}}},
		"/v1/rigs/lathe/runs/pack26/prompts/19":         service.PromptView{Rig: "lathe", Run: "pack26", Prompt: service.Prompt{Mark: mark(19, 41), Text: "\x1b[31mPlan what to try\x1b[0m next.\nThen do it."}},
		"/v1/kits":                                      service.KitList{Kits: []service.KitSummary{packingKit.KitSummary}},
		"/v1/kits/circle-packing-26":                    packingKit,
		"/v1/rigs/lathe/runs/pack26/attempts/1/rejudge": nil,
	}
	s := serve(t, func(w http.ResponseWriter, r *http.Request, _ string) {
		path := r.URL.Path
		if name := r.URL.Query().Get("run"); name != "" && path == "/v1/runs" {
			path += "?" + name
		}
		if a, ok := answers[path]; ok && a != nil {
			respond(t, w, http.StatusOK, a)
			return
		}
		problem(http.StatusNotFound, "no_run", "rig lathe has no run of that name")(w, r, "")
	})
	for name, args := range map[string]string{
		"run-list": "run list", "run-show": "run show pack26", "run-queue-list": "run queue list pack26", "run-trial-list": "run trial list lathe/pack26",
		"run-not-done": "run queue drop pack26 9", "attempt-list": "attempt list pack26", "attempt-show": "attempt show pack26 1 --cases", "champion": "champion pack26",
		"campaign-list": "campaign list", "campaign-show": "campaign show packing", "command-list": "command list", "command-show": "command show " + refusedCommand.ID,
		"run-prompts-list": "run prompts list pack26", "run-prompts-show": "run prompts show pack26 19",
		"kit-list": "kit list", "kit-show": "kit show circle-packing-26",
	} {
		t.Run(name, func(t *testing.T) {
			onTerminal := s.thermiteOn(t.Context(), t, &bytes.Buffer{}, terminal{width: 100}, "", strings.Fields(args)...)
			inPipe := s.thermite(t.Context(), t, strings.Fields(args)...)
			got := "$ thermite " + args + "\n" + onTerminal.out + onTerminal.errors + "\n$ thermite " + args + " | cat\n" + inPipe.out
			compare(t, filepath.Join("testdata", "golden", name+".txt"), got)
			for line := range strings.Lines(onTerminal.out) {
				if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 100 {
					t.Errorf("a line has %d columns: %s", n, line)
				}
			}
		})
	}
}

var packingKit = service.KitView{
	KitSummary: service.KitSummary{Name: "circle-packing-26", Version: "1", Title: "26 circles in a square, with the largest sum of radii", Summary: "The candidate is a small Go program.\nThe check is exact.",
		Metric: packingScore, FixtureCount: 14, TunableCount: 2},
	Editable: []string{"optimise/*.go"}, Requires: []service.KitProgram{{Name: "go", Least: "1.22"}}, PublicSeeds: []uint64{1, 2, 3}, SecretCases: 6,
	Metrics: []service.KitMetric{packingScore},
	Steps: []service.KitStep{{Name: "setup", Commands: []string{}, TimeoutMS: 600_000}, {Name: "run", Commands: []string{"{project}/bin/pack {case} {out}"}, TimeoutMS: 20_000,
		MemoryBytes: 256 << 20, CPUs: 1, PIDs: 64, DiskBytes: 1 << 20}},
	Tunables: []service.KitTunable{{Name: "restarts", File: "optimise/optimise.go", Kind: "int", Range: []string{"1", "20"}, Scale: "log", Base: "1"},
		{Name: "start", File: "optimise/optimise.go", Kind: "choice", Range: []string{"grid", "rows", "random"}, Scale: "linear", Base: "grid"}},
	Fixtures: []service.KitFixture{{Name: "honest-win", Title: "More starts and steps, and shakes of the best", Expect: "promoted"},
		{Name: "public-square", Title: "Packings written down for the squares of the public seeds", Expect: "refused", By: "check", Seeds: "secret"}},
}

var packingScore = service.KitMetric{Name: "sum", Unit: "of radii", Direction: "max", Source: "check", Primary: true, Noise: "measured", Repeats: 6, MinEffect: 0.0001, Confidence: 0.95, Bound: number(2.64)}
