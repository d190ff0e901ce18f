package wire_test

import (
	"math"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"thermite/pkg/wire"
)

// Promise: what the trial API sends and takes is this, word for word, as
// workers that others wrote know it, and no digit is lost.
func TestTrialMessages(t *testing.T) {
	score := 2.5
	check(t, wire.Trial{Rig: "alpha", Run: "pack26", Trial: 2, Lane: 1, Experiment: 3, Title: "a search", Text: "look", URL: "http://127.0.0.1:8371", Token: "t",
		Folder: "/lane", Kit: "[kit]", Prompt: "p", Metric: wire.Metric{Name: "sum", Direction: "max"}, Worker: "exec", Args: []string{"work"}, Seed: math.MaxUint64,
		Base: &score, Champion: &score, ChampionAttempt: 4, Most: 25, Deadline: wire.At(time.Unix(1_790_000_000, 0))},
		`{"rig":"alpha","run":"pack26","trial":2,"lane":1,"experiment":3,"title":"a search","text":"look","url":"http://127.0.0.1:8371","token":"t",`+
			`"folder":"/lane","kit":"[kit]","prompt":"p","metric":{"name":"sum","direction":"max"},"worker":"exec","args":["work"],"seed":18446744073709551615,`+
			`"base":2.5,"champion":2.5,"champion_attempt":4,"most":25,"deadline":"2026-09-21T14:13:20.000000Z"}`)
	check(t, wire.Notices{Stop: true, Why: "stopped", Messages: []wire.Notice{{Number: 1, Text: "hello"}}}, `{"stop":true,"why":"stopped","messages":[{"number":1,"text":"hello"}]}`)
	check(t, wire.Notices{}, `{"stop":false}`)
	check(t, wire.TrialProgress{Text: "at work"}, `{"text":"at work"}`)
	check(t, wire.TrialFiles{Files: []wire.TrialFile{{Path: "src/a.go", Size: 3, Editable: true}}}, `{"files":[{"path":"src/a.go","size":3,"editable":true}]}`)
	check(t, wire.Submit{Title: "more", Why: "a hunch"}, `{"title":"more","why":"a hunch"}`)
	check(t, wire.Submitted{Attempt: 5}, `{"attempt":5}`)
	check(t, wire.TrialAttempts{Attempts: []wire.TrialAttempt{{Attempt: 5, Trial: 2}}}, `{"attempts":[{"attempt":5,"trial":2,"judged":false}]}`)
	check(t, wire.TrialAttempt{Attempt: 5, Trial: 2, Title: "more", Tunables: map[string]string{"steps": "7"}, Judged: true, Outcome: "refused", Score: &score, Why: "no",
		Step: "check", Output: "o", Cases: []wire.StepCase{{Seed: 1, OK: true, WallMS: 1.5}}, Disqualify: true},
		`{"attempt":5,"trial":2,"title":"more","tunables":{"steps":"7"},"judged":true,"outcome":"refused","score":2.5,"why":"no","step":"check","output":"o",`+
			`"cases":[{"seed":1,"ok":true,"wall_ms":1.5,"cpu_ms":0,"rss":0}],"disqualified":true}`)
	check(t, wire.TrialProblem{Status: 409, Title: "Conflict", Detail: "as it was", Code: wire.TrialNothing, Attempt: 4},
		`{"status":409,"title":"Conflict","detail":"as it was","code":"nothing_new","attempt":4}`)
	if got := (&wire.TrialProblem{Code: wire.TrialRefused, Detail: "a link"}).Error(); got != "the trial API answers refused: a link" {
		t.Errorf("as an error it says %q", got)
	}
}

// check holds that v is this JSON, both ways.
func check[T any](t *testing.T, v T, want string) {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if string(b) != want {
		t.Errorf("%T is\n%s\nnot\n%s", v, b, want)
	}
	var back T
	if err := wire.DecodeStrict([]byte(want), &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(v, back); diff != "" {
		t.Errorf("%T is read otherwise:\n%s", v, diff)
	}
}
