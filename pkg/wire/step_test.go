package wire_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/wire"
)

// steps are a job with every operation.
func steps() wire.StepJob {
	return wire.StepJob{Ops: []wire.StepOp{
		{Remove: "/a"},
		{Empty: "/a", GoOn: true},
		{Make: &wire.StepMake{Folder: "/a/b", Mode: 0o711}},
		{Unpack: &wire.StepUnpack{Archive: "/t", Folder: "/a/c", Mode: 0o755}},
		{Copy: &wire.StepCopy{From: "/a/c", To: "/a/d", Mode: 0o700, Only: []string{"**"}, Without: []string{"x/*"}, Strict: true, Most: 9, Link: true}},
		{Run: &wire.StepRun{Argv: []string{"go", "version"}, Env: map[string]string{"PATH": "/bin"}, Dir: "/a", Timeout: 90 * time.Second, Keep: 10, Need: []string{"/a/e"}}, GoOn: true},
		{Pack: &wire.StepPack{Folder: "/a", Without: []string{"y"}}},
		{List: "/a"},
		{Write: &wire.StepWrite{Path: "/a/f", Data: []byte{0, 255}, Mode: 0o600}},
		{Read: &wire.StepRead{Folder: "/a", Path: "b/c"}},
	}}
}

// Promise: a job and a result are read as they were written.
func TestStepsRoundTrip(t *testing.T) {
	b, err := wire.EncodeStepJob(steps())
	if err != nil {
		t.Fatal(err)
	}
	got, err := wire.DecodeStepJob(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(steps(), got); diff != "" {
		t.Errorf("the job differs (-written +read):\n%s", diff)
	}
	result := wire.StepResult{Ops: []wire.StepDone{
		{List: []wire.StepEntry{{Path: "x", Mode: 1 << 27, Size: 3}}},
		{Error: "no", Refused: true, Absent: true, Missing: []string{"/y"}, Run: &wire.StepRan{Code: -1, Signal: "SIGKILL", TimedOut: true, Wall: time.Second, Stdout: "o", Stderr: "e", TooLong: true}}}}
	if b, err = wire.EncodeStepResult(result); err != nil {
		t.Fatal(err)
	}
	back, err := wire.DecodeStepResult(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(result, back); diff != "" {
		t.Errorf("the result differs (-written +read):\n%s", diff)
	}
}

// Promise: what a command printed may be any bytes.
func TestStepResultTakesAnyBytes(t *testing.T) {
	b, err := wire.EncodeStepResult(wire.StepResult{Ops: []wire.StepDone{{Error: "\xff", Run: &wire.StepRan{Stdout: "a\xc3b"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := wire.DecodeStepResult(b); err != nil || r.Ops[0].Run.Stdout != "a\ufffdb" {
		t.Errorf("it is read as %+v, %v", r, err)
	}
}

// Promise: a job that is none is refused by what and where.
func TestStepJobsThatAreNone(t *testing.T) {
	for in, want := range map[string]string{
		`{"ops":[]}`:                                                    "ops has 0 entries",
		`{"ops":[{}]}`:                                                  "ops[0]: one of empty",
		`{"ops":[{"list":"/a","remove":"/b"}]}`:                         "this has 2 of them",
		`{"ops":[{"list":"/a"},{"remove":"/"}]}`:                        "ops[1]: remove: / is everything",
		`{"ops":[{"remove":"/a/../b"}]}`:                                "absolute path",
		`{"ops":[{"make":{"folder":"/a","mode":2559}}]}`:                "make.mode 04777: plain permissions",
		`{"ops":[{"make":{"folder":"/a","mode":0}}]}`:                   "make.mode",
		`{"ops":[{"unpack":{"archive":"t","folder":"/a","mode":448}}]}`: "unpack.archive",
		`{"ops":[{"copy":{"from":"/a","to":"b","mode":448}}]}`:          "copy.to",
		`{"ops":[{"run":{"argv":[],"timeout":1}}]}`:                     "run.argv has 0 parts",
		`{"ops":[{"run":{"argv":["x"],"timeout":0}}]}`:                  "run.timeout",
		`{"ops":[{"run":{"argv":["x"],"timeout":1,"keep":-1}}]}`:        "run.keep",
		`{"ops":[{"run":{"argv":["x"],"timeout":1,"need":["y"]}}]}`:     "run.need",
		`{"ops":[{"run":{"argv":["x"],"timeout":1,"dir":"y"}}]}`:        "run.dir",
		`{"ops":[{"pack":{"folder":""}}]}`:                              "pack.folder",
		`{"ops":[{"write":{"path":"a","data":"","mode":420}}]}`:         "write.path",
		`{"ops":[{"unknown":1}]}`:                                       "unknown",
		`{"ops":[{"list":"/a"}]} {}`:                                    "after top-level value",
	} {
		if _, err := wire.DecodeStepJob([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %v, not %q", in, err, want)
		}
	}
}

func FuzzDecodeStepJob(f *testing.F) {
	b, err := wire.EncodeStepJob(steps())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		j, err := wire.DecodeStepJob(b)
		if err != nil {
			return
		}
		again, err := wire.EncodeStepJob(j)
		if err != nil {
			t.Skip() // numbers of seconds that lose digits
		}
		if _, err := wire.DecodeStepJob(again); err != nil {
			t.Fatalf("%q is written again as %q: %v", b, again, err)
		}
	})
}
