package judge_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"thermite/pkg/kit"
)

// tinyKit is a kit of scripts, which needs nothing compiled: what counts is
// the number that a run writes, up to the case's, which is hidden.
const tinyKit = `
[kit]
name = "tiny"
version = "1"
title = "A number"
summary = "The larger number."
[requires.sh]
version = ["echo", "sh 1.0"]
least = "1.0"
[project]
path = "project"
editable = ["*"]
setup = [["cp", "{kit}/check", "{tools}/check"], ["sh", "-c", "echo warm > {cache}/warm"]]
setup_timeout = "1m"
[env]
HOME = "{tmp}"
[build]
command = ["sh", "./build", "{cache}", "{tmp}"]
timeout = "%[1]s"
outputs = ["run"]
[cases]
command = ["sh", "{kit}/case", "{seed}", "{case}"]
public = [1, 2]
secret = 2
hidden = ["most"]
[run]
command = ["{project}/run", "{case}", "{out}", "{tmp}"]
timeout = "%[1]s"
writes = ["value"]
[check]
command = ["sh", "{tools}/check", "{case}", "{out}", "{measured}"]
[[metric]]
name = "value"
direction = "max"
bound = 100
%[2]s
[limits.build]
memory = "256MiB"
pids = 40
disk = "8MiB"
[limits.run]
memory = "64MiB"
pids = 40
disk = "2MiB"
[[fixture]]
name = "win"
title = "Two"
patch = "patch"
expect = "promoted"
`

// tinyFiles are the kit's others. The check refuses a number past the case's,
// and takes a measured time and nothing else for one.
var tinyFiles = map[string]string{
	"patch":         "",
	"project/build": "test -f \"$1/warm\" && echo built >&2\n",
	"project/run":   "#!/bin/sh\necho 1 > \"$2/value\"\n",
	"case":          "echo seed $1 > $2/input; if [ $1 -gt 2 ]; then echo 90 > $2/most; else echo 99 > $2/most; fi\n",
	"check": `v=$(cat $2/value 2>/dev/null)
case "$v" in ''|*[!0-9]*) printf '{"ok":false,"why":"there is no value","values":{}}'; exit;; esac
if [ "$v" = 77 ]; then echo nonsense; exit; fi
if [ "$v" -gt $(cat $1/most) ] && [ "$v" -lt 1000 ]; then printf '{"ok":false,"why":"past what the case holds: %s of %s","values":{}}' "$v" "$(cat $1/most)"; exit; fi
grep -q '"wall":[0-9.e-]*' $3 || exit 3
printf '{"ok":true,"why":"","values":{"value":%s}}' "$v"
`,
}

// tiny stages the kit, with a time for each of a candidate's steps and more
// of its metric.
func (w *world) tiny(timeout, metric string, change ...func(files map[string]string)) *kit.Staged {
	w.t.Helper()
	files := map[string]string{"kit.toml": fmt.Sprintf(tinyKit, timeout, metric)}
	for name, text := range tinyFiles {
		files[name] = text
	}
	for _, c := range change {
		c(files)
	}
	dir := w.t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			w.t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			w.t.Fatal(err)
		}
	}
	return w.stage(kit.Source{Dir: dir})
}

// with gives the base with other files.
func with(staged *kit.Staged, files map[string]string) kit.Tree {
	var tree kit.Tree
	for _, f := range staged.Base {
		if text, ok := files[f.Path]; ok {
			f.Data = []byte(text)
		}
		tree = append(tree, f)
	}
	return tree
}

// run gives the base with another run: a script.
func run(staged *kit.Staged, script string) kit.Tree {
	return with(staged, map[string]string{"run": "#!/bin/sh\n" + script + "\n"})
}
