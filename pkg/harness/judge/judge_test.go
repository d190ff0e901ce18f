package judge_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/harness/judge"
	"thermite/pkg/kit"
)

// Promise: each way that a candidate goes wrong, or right, ends in a verdict
// that says which step and why, within its limits, and leaves nothing.
func TestVerdicts(t *testing.T) {
	launchers(t, func(t *testing.T, w *world) {
		const value = `echo 50 > "$2/value"`
		staged := w.tiny("4s", "")
		base := w.base(staged)
		for name, c := range map[string]struct {
			tree          kit.Tree
			outcome, step string
			why           string
		}{
			"better":               {run(staged, value), "promoted", "", "better than the champion on secret cases too"},
			"the same":             {staged.Base, "not_better", "", "not better"},
			"worse":                {run(staged, `echo 0 > "$2/value"`), "not_better", "", "not better"},
			"refused by the check": {run(staged, `echo 100 > "$2/value"`), "refused", "check", "on the case of seed 1: past what the case holds: 100 of 99"},
			"no answer":            {run(staged, `true`), "refused", "check", "there is no value"},
			"nonsense":             {run(staged, `echo 77 > "$2/value"`), "failed", "check", "the kit's check can't judge it"},
			"past the bound":       {run(staged, `echo 1000 > "$2/value"`), "suspect", "", "1000 is past the kit's bound of 100"},
			"a secret case":        {run(staged, `echo 95 > "$2/value"`), "refused", "check", "the check refuses it on a secret case"},
			"fails a secret case":  {run(staged, value+`; n=$(cut -d' ' -f2 $1/input); test $n -lt 3`), "failed", "run", "it fails a secret case"},
			"does not build":       {with(staged, map[string]string{"build": "echo why not >&2; exit 3"}), "refused", "build", "it is not built: sh ended with 3"},
			"builds nothing":       {with(staged, map[string]string{"build": "rm run"}), "refused", "build", "left no"},
			"build hangs":          {with(staged, map[string]string{"build": "sleep 600"}), "failed", "build", "sh took more than 4s"},
			"build fills the disk": {with(staged, map[string]string{"build": "head -c 100000000 /dev/zero > big; sleep 600"}), "failed", "build", ""},
			"build prints":         {with(staged, map[string]string{"build": "yes"}), "failed", "build", ""},
			"build kills the step": {with(staged, map[string]string{"build": "kill -9 $PPID; sleep 600"}), "failed", "build", "SIGKILL"},
			"ends with 3":          {run(staged, value+`; exit 3`), "failed", "run", "it ended with 3"},
			"crashes":              {run(staged, `kill -SEGV $$`), "failed", "run", "it was ended by SIGSEGV"},
			"hangs":                {run(staged, value+`; sleep 600`), "failed", "run", "it took more than 4s"},
			"is no program":        {with(staged, map[string]string{"run": "\x7fELF and no more"}), "failed", "run", ""},
			"kills its group":      {run(staged, value+`; kill -9 0`), "failed", "run", "it was ended by SIGKILL"},
			"forks":                {run(staged, `f() { f | f & sleep 0.01; }; while :; do f; done`), "failed", "run", ""},
			"eats memory":          {run(staged, `x=xxxxxxxxxxxxxxxx; while :; do x=$x$x; done`), "failed", "run", ""},
			"prints a gigabyte":    {run(staged, `head -c 1000000000 /dev/zero; `+value), "failed", "run", "it used more output than it may"},
			"fills the disk":       {run(staged, `head -c 100000000 /dev/zero > "$3/big"; echo 1 > "$2/value"`), "refused", "", ""},
			"a file without end":   {run(staged, `truncate -s 1G "$2/value"; for i in 1 2 3; do truncate -s 2M "$2/value"; done`), "", "", ""},
			"another file":         {run(staged, value+`; echo mine > "$2/time"`), "refused", "run", "time: is not for it to leave"},
			"a link":               {run(staged, `ln -s /etc/hostname "$2/value"`), "refused", "run", "value: is a symbolic link"},
			"a pipe":               {run(staged, `mkfifo "$2/value"`), "refused", "run", "value: is no plain file"},
			"shut away":            {run(staged, value+`; chmod 0 "$2/value"; id -u`), "failed", "run", "permission denied"},
			"many folders":         {run(staged, value+`; cd "$2"; i=0; while [ $i -lt 100 ]; do mkdir d; cd d; i=$((i+1)); done`), "refused", "run", "folders deep"},
			"leaves a process":     {run(staged, `(setsid sh -c 'sleep 1; echo 50 > "$1/value"' x "$2" >/dev/null 2>&1 &)`), "refused", "check", "there is no value"},
			"holds its outputs":    {run(staged, value+`; (setsid sleep 600 &)`), "promoted", "", ""},
			"its own project":      {run(staged, `echo 50 > ${0%/*}/kept; cp ${0%/*}/kept "$2/value"`), "", "run", ""},
		} {
			t.Run(name, func(t *testing.T) {
				w := *w
				w.t = t
				job := w.job(staged, 7, c.tree)
				job.ChampionPublic = &base.Public
				r, err := w.judge.Judge(w.context(), job)
				if err != nil {
					t.Fatal(err)
				}
				w.check(r)
				v := r.Verdict
				if strings.Contains(v.Why+r.Build.Why+r.Build.Output, w.config.Dir) {
					t.Errorf("it tells of the judge's folders: %+v", v)
				}
				if c.outcome == "" && v.Outcome == "promoted" && c.step != "" || c.outcome != "" && v.Outcome != c.outcome && !stoppedTwoWays(name, v.Outcome) ||
					c.step != "" && v.Step != c.step || !strings.Contains(v.Why, c.why) {
					t.Errorf("it is %s at %q: %s", v.Outcome, v.Step, v.Why)
				}
			})
		}
		w.empty()
	})
}

// stoppedTwoWays are what one launcher stops as it happens and another by
// what is then missing.
func stoppedTwoWays(name, outcome string) bool {
	return name == "fills the disk" && outcome == "failed"
}

// Promise: a candidate without noise is promoted by as much as the kit's least
// effect, and one that is better by less is told so.
func TestLeastEffect(t *testing.T) {
	w := newWorld(t, "same-user")
	staged := w.tiny("20s", "min_effect = 5")
	base := w.base(staged)
	for value, want := range map[string]string{"5": "better", "6": "promoted"} {
		job := w.job(staged, 1, run(staged, "echo "+value+` > "$2/value"`))
		job.ChampionPublic = &base.Public
		r, err := w.judge.Judge(w.context(), job)
		if err != nil {
			t.Fatal(err)
		}
		if r.Verdict.Outcome != want {
			t.Errorf("%s is %+v", value, r.Verdict)
		}
		if want == "promoted" && (r.Measure.Effect == nil || r.Measure.Effect.Center != 5 || r.Measure.Effect.Least != 5) {
			t.Errorf("the effect is %+v", r.Measure.Effect)
		}
	}
}

// Promise: what a verdict says, and its score, tell nothing of secret cases;
// what its owner may see of them is marked.
func TestAVerdictTellsNoSecret(t *testing.T) {
	w := newWorld(t, "same-user")
	staged := w.tiny("20s", "")
	base := w.base(staged)
	for name, script := range map[string]string{"refused": `echo 95 > "$2/value"`, "promoted": `echo 50 > "$2/value"`,
		"failed": `echo 50 > "$2/value"; cat $1/input; cat $1/input >&2; n=$(cut -d' ' -f2 $1/input); test $n -lt 3`} {
		job := w.job(staged, 1, run(staged, script))
		job.ChampionPublic = &base.Public
		r, err := w.judge.Judge(w.context(), job)
		if err != nil {
			t.Fatal(err)
		}
		v := r.Verdict
		if v.Outcome != name {
			t.Errorf("%s is %+v", name, v)
		}
		told := v.Why + r.Check.Why + r.Check.Output
		for _, word := range []string{"seed", "90", "95", "past what"} {
			if strings.Contains(told, word) {
				t.Errorf("%s tells: %s", name, told)
			}
		}
		if (v.Score != nil) != (name == "promoted") || v.Score != nil && *v.Score != 50 {
			t.Errorf("%s has the score %v", name, v.Score)
		}
		cases := r.Check.Cases
		if name == "promoted" {
			cases = r.Measure.Cases
		}
		secret := 0
		for _, c := range cases {
			if c.Seed > 2 != c.Secret {
				t.Errorf("the case %+v is marked wrong", c)
			}
			if c.Secret {
				secret++
			}
		}
		if secret == 0 {
			t.Errorf("%s has no secret case: %+v", name, cases)
		}
	}
}

// Promise: the same judging has the same secret cases, another has others, and
// so has another judge's. No case is run again in a judging, so that nothing a
// run remembers of one is worth anything.
func TestSecretCasesAreTheJudgings(t *testing.T) {
	w := newWorld(t, "same-user")
	staged := w.tiny("20s", "")
	seeds := func(j *judge.Judge, job judge.Job) (secret []uint64) {
		r, err := j.Judge(w.context(), job)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range r.Measure.Cases {
			if c.Secret && !c.Champion {
				secret = append(secret, c.Seed)
			}
		}
		return secret
	}
	job := w.job(staged, 1, run(staged, `echo 50 > "$2/value"`))
	first := seeds(w.judge, job)
	if len(first) != 2 || first[0] == first[1] {
		t.Fatalf("the secret seeds are %v", first)
	}
	if again := seeds(w.judge, job); !slices.Equal(first, again) {
		t.Errorf("the same judging has %v and %v", first, again)
	}
	noisy := w.job(w.tiny("20s", "noise = \"measured\"\nrepeats = 9"), 1, job.Tree)
	if all := seeds(w.judge, noisy); len(all) != 9 || len(slices.Compact(slices.Sorted(slices.Values(all)))) != 9 {
		t.Errorf("the nine pairs are on %v", all)
	}
	job.Judging = 2
	if other := seeds(w.judge, job); slices.Contains(other, first[0]) {
		t.Errorf("another judging has %v and %v", first, other)
	}
	job.Judging = 1
	w.judge.Close()
	w.config.Key = bytes.Repeat([]byte{8}, 32)
	if other := seeds(w.newJudge(), job); slices.Contains(other, first[0]) {
		t.Errorf("another judge has %v and %v", first, other)
	}
}

// Promise: what passes the bound waits for its owner, who may let it be judged
// on.
func TestAllowSuspect(t *testing.T) {
	w := newWorld(t, "same-user")
	staged := w.tiny("20s", "")
	job := w.job(staged, 1, run(staged, `echo 1000 > "$2/value"`))
	job.AllowSuspect = true
	r, err := w.judge.Judge(w.context(), job)
	if err != nil || r.Verdict.Outcome != "promoted" {
		t.Errorf("it is %+v, %v", r.Verdict, err)
	}
}

// Promise: a champion is what it is compared with, though its build is gone,
// and figures read from its event are those it had.
func TestAgainstAChampion(t *testing.T) {
	w := newWorld(t, "same-user")
	staged := w.tiny("20s", "")
	champion := run(staged, `echo 40 > "$2/value"`)
	r, err := w.judge.Judge(w.context(), w.job(staged, 1, champion))
	if err != nil || r.Verdict.Outcome != "promoted" {
		t.Fatalf("it is %+v, %v", r.Verdict, err)
	}
	public := judge.FiguresOf(staged.Kit, *r.Measure)
	if diff := cmp.Diff(r.Public, public); diff != "" {
		t.Errorf("the event's figures differ:\n%s", diff)
	}
	w.judge.Close()
	kept, err := filepath.Glob(filepath.Join(w.config.Dir, "judge-kept", "build-*"))
	if err != nil || len(kept) == 0 {
		t.Fatalf("no build is kept: %v", err)
	}
	for _, k := range kept {
		if err := os.Remove(k); err != nil {
			t.Fatal(err)
		}
	}
	for value, want := range map[string]string{"39": "not_better", "41": "promoted"} {
		job := w.job(staged, 2, run(staged, "echo "+value+` > "$2/value"`))
		job.Champion, job.ChampionAttempt, job.ChampionPublic = champion, 1, &public
		r, err := w.judge.Judge(w.context(), job)
		if err != nil || r.Verdict.Outcome != want || r.Verdict.Against != 1 {
			t.Errorf("%s is %+v, %v", value, r.Verdict, err)
		}
	}
}

// Promise: what is the kit's fault says so, and which step, with what it
// printed.
func TestTheKitsOwnFaults(t *testing.T) {
	w := newWorld(t, "same-user")
	for name, c := range map[string]struct {
		change func(files map[string]string)
		want   string
	}{
		"lacks": {func(f map[string]string) {
			f["kit.toml"] = strings.Replace(f["kit.toml"], `least = "1.0"`, `least = "2.0"`, 1)
		}, `this rig lacks what it requires: sh 2.0 or later: here is "1.0"`},
		"absent": {func(f map[string]string) {
			f["kit.toml"] = strings.Replace(f["kit.toml"], `"echo", "sh 1.0"`, `"no-such", "x"`, 1)
		}, "no-such: executable file not found"},
		"setup": {func(f map[string]string) {
			f["kit.toml"] = strings.Replace(f["kit.toml"], "echo warm", "echo cold >&2; exit 4; echo", 1)
		}, "its setup: sh ended with 4: cold"},
		"cases": {func(f map[string]string) { f["case"] = "echo no case >&2; exit 5" }, "its cases: sh ended with 5: no case"},
		"model": {func(f map[string]string) {
			f["kit.toml"] = strings.Replace(f["kit.toml"], "[run]", "[run]\nmodel = true", 1)
		}, "no model route"},
	} {
		t.Run(name, func(t *testing.T) {
			staged := w.tiny("20s", "", c.change)
			err := w.judge.Prepare(w.context(), staged)
			if !errors.Is(err, judge.ErrKit) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v", err)
			}
		})
	}
	staged := w.tiny("20s", "", func(f map[string]string) { f["project/run"] = "#!/bin/sh\nexit 6\n" })
	r, err := w.judge.Base(w.context(), w.job(staged, 0, nil))
	if err != nil || r.Verdict.Outcome != "failed" || r.Check == nil || r.Check.OK || !strings.Contains(r.Check.Why, "it ended with 6") {
		t.Errorf("a base that fails is %+v, %v", r, err)
	}
	w.empty()
}

// Promise: a kit is set up once, by whoever comes first, and again when what
// was made is gone; a judge that comes back needs none of it anew.
func TestPrepareIsOnce(t *testing.T) {
	w := newWorld(t, "same-user")
	staged := w.tiny("20s", "", func(f map[string]string) {
		f["kit.toml"] = strings.Replace(f["kit.toml"], "echo warm > {cache}/warm", "date +%s%N > {cache}/warm", 1)
	})
	warm := func() string {
		t.Helper()
		errs := make(chan error, 3)
		for range cap(errs) {
			go func() { errs <- w.judge.Prepare(w.context(), staged) }()
		}
		for range cap(errs) {
			if err := <-errs; err != nil {
				t.Fatal(err)
			}
		}
		paths, err := filepath.Glob(filepath.Join(w.config.Dir, "judge", "*", "t", "cache", "warm"))
		if err != nil || len(paths) != 1 {
			t.Fatalf("it is set up %v, %v", paths, err)
		}
		b, err := os.ReadFile(paths[0])
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	first := warm()
	w.judge.Close()
	w.judge = w.newJudge()
	if err := w.judge.Clean(w.context()); err != nil {
		t.Fatal(err)
	}
	w.judge.Close()
	w.judge = w.newJudge()
	if again := warm(); again != first {
		t.Error("it is set up again by a judge that comes back")
	}
	if err := os.RemoveAll(filepath.Join(w.config.Dir, "judge")); err != nil {
		t.Fatal(err)
	}
	w.judge = w.newJudge()
	if again := warm(); again == first {
		t.Error("it is not set up again when it is gone")
	}
}

// Promise: a judging that is told to end ends, with all its processes; what
// one that was killed left is ended and removed by the next judge.
func TestAJudgingThatIsCutOff(t *testing.T) {
	w := newWorld(t, "same-user")
	staged := w.tiny("1m", "")
	if err := w.judge.Prepare(w.context(), staged); err != nil {
		t.Fatal(err)
	}
	running := func() []string {
		list, err := w.client.List(w.context())
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, p := range list {
			ids = append(ids, p.ID)
		}
		return ids
	}
	started := func(what string) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); !slices.ContainsFunc(running(), func(id string) bool { return strings.HasPrefix(id, what) }); {
			if time.Now().After(deadline) {
				t.Fatalf("no process %s is started", what)
			}
		}
	}
	for what, tree := range map[string]kit.Tree{"judge-": run(staged, "sleep 600"), "step-": with(staged, map[string]string{"build": "sleep 600"})} {
		ctx, cancel := context.WithCancel(w.context())
		ended := make(chan error, 1)
		go func() {
			_, err := w.judge.Judge(ctx, w.job(staged, 1, tree))
			ended <- err
		}()
		started(what)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("it ends with %v", err)
		}
		w.judge.Close()
		if ids := running(); len(ids) > 0 {
			t.Errorf("%v run on", ids)
		}
	}
	// One that is killed ends nothing: this stands for it.
	left, job := make(chan struct{}), w.job(staged, 1, run(staged, "sleep 600"))
	before := w.judge
	go func() {
		defer close(left)
		_, _ = before.Judge(w.context(), job)
	}()
	started("judge-")
	next := w.newJudge()
	if err := next.Clean(w.context()); err != nil {
		t.Fatal(err)
	}
	<-left
	before.Close()
	w.judge = next
	w.empty()
}
