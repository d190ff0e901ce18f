package judge_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// Promise: what a candidate brings, as it is built and as it is run, reaches
// nothing of the judge but what it is given, and that only as it is given:
// not the hidden part of its case, the kit, what setup made, another's build,
// the judge's key and socket, or a process that is not its own.
func TestACandidateReachesNothingOfTheJudge(t *testing.T) {
	launchers(t, func(t *testing.T, w *world) {
		staged := w.tiny("20s", "")
		w.base(staged)
		w.judge.Close()
		key := filepath.Join(w.dir, "key")
		if err := os.WriteFile(key, []byte("42"), 0o600); err != nil {
			t.Fatal(err)
		}
		kits, builds := w.kept("kit-"), w.kept("build-")
		// In a folder of its own that hides the machine's, what it writes is
		// nowhere: so what it wrote is looked for from outside.
		if err := os.Mkdir(filepath.Join(w.config.Dir, "judge", "decoy"), 0o711); err != nil {
			t.Fatal(err)
		}
		try := tries(map[string]string{
			"read a hidden answer of the public":   "cat " + kits + "/c/0/whole/most",
			"read the kit":                         "cat " + staged.KitDir + "/check",
			"read the judge's key":                 "cat " + key,
			"list the judge's folders":             "ls " + w.config.Dir + "/judge | grep decoy",
			"list what is kept":                    "ls " + w.config.Dir + "/judge-kept",
			"read a job of the judge":              "ls " + w.config.Dir + "/judge-jobs",
			"change the check":                     "echo x >> " + kits + "/t/tools/check",
			"change the cache that builds have":    "echo x >> " + kits + "/t/cache/warm",
			"add to the cache that builds have":    "touch " + kits + "/t/cache/stray",
			"change the champion's build":          "echo x >> " + builds + "/b/project/run",
			"see the broker":                       "test -S " + w.dir + "/broker.sock -a -w " + w.dir + "/broker.sock",
			"read the broker's processes' outputs": "ls " + w.dir + "/broker/processes",
			"give its files away":                  "chown 61044 $own",
		}) + "( mv " + builds + "/b/project " + builds + "/b/stray; for d in " + builds + " " + builds + "/b " + w.config.Dir + "/judge-kept " + w.config.Dir + "/judge " +
			w.config.Dir + " " + w.dir + "; do touch $d/stray; done ) 2>/dev/null\n"
		build := with(staged, map[string]string{"build": "own=$PWD\n" + try + tries(map[string]string{
			"write the step's result": "echo '{}' >&3",
			"look into the step":      "ls /proc/$PPID/fd | grep -q 3 && cat /proc/$PPID/environ /proc/$PPID/mem",
		}) + "exit 1\n"})
		candidate := run(staged, `case "$1" in */0/seen) echo 50 > "$2/value"; exit;; esac`+"\nown=${0%/*}\n"+try+tries(map[string]string{
			"read its case's hidden answer": `cat "$1/../whole/most"`,
			"change its case":               `echo x >> "$1/input"`,
			"change itself":                 `echo x >> "$0"`,
			"find what it left before":      `n=${2%/out}; ls "$2/../.." | grep -v "^${n##*/}$"`,
			"see the builder's files":       "ls $own/../cache/warm || ls $own/../tmp/x",
			"see another's process":         `for p in /proc/[0-9]*; do if grep -q "^Uid:.6104[124]" $p/status; then exit 0; fi; done; false`,
			"end a process of the judge":    "kill -9 " + strconv.Itoa(os.Getpid()),
		})+"touch $own/stray $own/../stray \"$2/../../stray\" \"$2/../../../l/stray\" 2>/dev/null\nexit 1")
		for name, tree := range map[string]kit.Tree{"build": build, "run": candidate} {
			r, err := w.judge.Judge(w.context(), w.job(staged, 1, tree))
			if err != nil {
				t.Fatal(err)
			}
			if r.Verdict.Step != name {
				t.Fatalf("the %s is %+v", name, r.Verdict)
			}
			said := r.Build.Output
			if r.Check != nil {
				said = r.Check.Output
			}
			if !strings.Contains(said, "it tried") {
				t.Errorf("the %s tried nothing: %s", name, said)
			}
			for line := range strings.Lines(said) {
				if what, could := strings.CutPrefix(line, "it could "); could {
					t.Errorf("the %s could %s", name, what)
				}
			}
		}
		w.judge.Close()
		err := filepath.WalkDir(w.dir, func(p string, _ os.DirEntry, err error) error {
			if filepath.Base(p) == "stray" {
				t.Errorf("%s was made", p)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// tries is a script that tries things and says which it could.
func tries(things map[string]string) string {
	var b strings.Builder
	for what, script := range things {
		b.WriteString("if ( " + script + " ) >/dev/null 2>&1; then echo it could " + strings.ReplaceAll(what, "'", "") + " >&2; fi\n")
	}
	b.WriteString("echo it tried >&2\n")
	return b.String()
}

// kept gives the folder of a kept thing.
func (w *world) kept(kind string) string {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.config.Dir, "judge-kept", kind+"*"))
	if err != nil || len(files) == 0 {
		w.t.Fatalf("nothing %s is kept: %v", kind, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		w.t.Fatal(err)
	}
	return filepath.Join(w.config.Dir, "judge", string(b))
}

// Promise: a role that is none of the judge's reads nothing that the judge
// keeps to itself, though it knows the way and is let in by the broker.
func TestALaneReadsNothingHidden(t *testing.T) {
	w := plainWorld(t)
	staged := w.tiny("20s", "")
	w.base(staged)
	hidden := filepath.Join(w.kept("kit-"), "c", "0", "whole")
	for what, argv := range map[string][]string{
		"read a hidden answer": {"/bin/cat", filepath.Join(hidden, "most")},
		"list hidden answers":  {"/bin/ls", hidden},
		"list the folders":     {"/bin/ls", filepath.Join(w.config.Dir, "judge")},
		"list the jobs":        {"/bin/ls", filepath.Join(w.config.Dir, "judge-jobs")},
		"list what is kept":    {"/bin/ls", filepath.Join(w.config.Dir, "judge-kept")},
	} {
		id := "lane-" + strings.ReplaceAll(what, " ", "-")
		if _, err := w.client.Start(w.context(), wire.BrokerStart{ID: id, Role: "lane-1", Argv: argv, ReadOnly: []string{w.config.Dir}}); err != nil {
			t.Fatal(err)
		}
		e, err := w.client.Wait(w.context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if e.Code == 0 {
			t.Errorf("a lane could %s", what)
		}
		if err := w.client.Forget(w.context(), id); err != nil {
			t.Fatal(err)
		}
	}
}

// Promise: a build whose cache is links may add to it, and changes nothing of
// what setup left, nor leaves the next build anything.
func TestACacheOfLinks(t *testing.T) {
	launchers(t, func(t *testing.T, w *world) {
		staged := w.tiny("20s", "", func(f map[string]string) {
			f["kit.toml"] = strings.Replace(f["kit.toml"], "[build]", "[build]\ncache = \"links\"", 1)
		})
		w.base(staged)
		tree := with(staged, map[string]string{"build": `test -s "$1/warm" || exit 1
test -e "$1/new" && exit 2
echo more >> "$1/warm" && exit 3
rm "$1/warm" && echo mine > "$1/warm" && echo new > "$1/new" || exit 4
`})
		for range 2 {
			r, err := w.judge.Judge(w.context(), w.job(staged, 1, tree))
			if err != nil || !r.Build.OK {
				t.Errorf("it is not built: %+v, %v", r.Build, err)
			}
		}
		if b, err := os.ReadFile(filepath.Join(w.kept("kit-"), "t", "cache", "warm")); err != nil || string(b) != "warm\n" {
			t.Errorf("what setup left is %q, %v", b, err)
		}
	})
}
