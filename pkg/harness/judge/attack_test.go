package judge_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Promise: a run can't tell whether it is the candidate's or the champion's,
// so no attempt becomes the champion by an earlier one of the same program
// that does worse as the champion.
func TestARunCannotTellWhichItIs(t *testing.T) {
	w := plainWorld(t)
	staged := w.tiny("20s", "")
	w.base(staged)
	for name, mine := range map[string]string{
		"by the folders":       `case "$2" in "${0%/b/project/run}"/*) ;; *) false;; esac`,
		"by the run's number":  `n=${2%/out}; case "${n##*/}" in 0|3|4|7|8) ;; *) false;; esac`,
		"by when it was built": `test $(($(date +%s) - $(stat -c %Y "$0"))) -lt 600`,
	} {
		t.Run(name, func(t *testing.T) {
			script := `if ` + mine + `; then echo 60 > "$2/value"; else echo 5 > "$2/value"; fi`
			first := run(staged, script)
			r, err := w.judge.Judge(w.context(), w.job(staged, 1, first))
			if err != nil || r.Verdict.Outcome != "promoted" {
				t.Fatalf("the first is %+v, %v", r.Verdict, err)
			}
			w.age(t)
			job := w.job(staged, 2, run(staged, script+" # again"))
			job.Champion, job.ChampionAttempt = first, 1
			if r, err = w.judge.Judge(w.context(), job); err != nil || r.Verdict.Outcome == "promoted" {
				t.Errorf("the same again is %+v, %v", r.Verdict, err)
			}
		})
	}
	w.empty()
}

// age makes what is kept older.
func (w *world) age(t *testing.T) {
	t.Helper()
	built, err := filepath.Glob(filepath.Join(w.config.Dir, "judge", "*", "b", "project", "run"))
	if err != nil || len(built) == 0 {
		t.Fatalf("there is no build: %v", err)
	}
	then := time.Now().Add(-time.Hour)
	for _, f := range built {
		if err := os.Chtimes(f, then, then); err != nil {
			t.Fatal(err)
		}
	}
}

// Promise: what a run is given is the folder that was built in, and not
// another in its place that the build led to.
func TestABuildLeavesItsProject(t *testing.T) {
	w := plainWorld(t)
	staged := w.tiny("20s", "")
	w.base(staged)
	for name, build := range map[string]string{
		"a link to another": `cd ..; mv project other; ln -s other project`,
		"a link to all":     `cd ..; cp project/run .; mv project other; ln -s ../b project`,
		"one that is shut":  `chmod 700 .`,
	} {
		tree := with(staged, map[string]string{"build": build, "run": "#!/bin/sh\necho 60 > \"$2/value\"\n"})
		r, err := w.judge.Judge(w.context(), w.job(staged, 1, tree))
		if err != nil {
			t.Fatal(err)
		}
		if w.check(r); r.Verdict.Outcome != "refused" || r.Verdict.Step != "build" {
			t.Errorf("%s is %+v", name, r.Verdict)
		}
	}
	w.empty()
}
