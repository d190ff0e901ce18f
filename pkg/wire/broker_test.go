package wire_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"thermite/pkg/wire"
)

// Promise: the broker's lines are as its description has them.
func TestBrokerLines(t *testing.T) {
	line := `{"seq":7,"start":{"id":"trial-7","role":"lane-1","argv":["/usr/bin/true","-x"],"env":{"PATH":"/usr/bin"},"cwd":"/lane","stdin":"in\n",` +
		`"result":true,"limits":{"memory":536870912,"cpus":1.5,"tasks":64,"output":1048576,"disk":67108864,"files":256},"deadline":2.5,` +
		`"ports":[8090],"read_only":["/kit"],"read_write":["/lane"]}}`
	want := wire.BrokerRequest{Seq: 7, Start: &wire.BrokerStart{ID: "trial-7", Role: "lane-1", Argv: []string{"/usr/bin/true", "-x"},
		Env: map[string]string{"PATH": "/usr/bin"}, Cwd: "/lane", Stdin: "in\n", Result: true,
		Limits:   wire.BrokerLimits{Memory: 512 << 20, CPUs: 1.5, Tasks: 64, Output: 1 << 20, Disk: 64 << 20, Files: 256},
		Deadline: 2500 * time.Millisecond, Ports: []int{8090}, ReadOnly: []string{"/kit"}, ReadWrite: []string{"/lane"}}}
	got, err := wire.DecodeBrokerRequest([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if again, err := json.Marshal(got); err != nil || string(again) != line {
		t.Errorf("it is written as\n%s\n%v, not\n%s", again, err, line)
	}
	exited := wire.BrokerAnswer{Exited: &wire.BrokerExited{ID: "a", Code: -1, Signal: "SIGKILL", Wall: 1500 * time.Millisecond, CPU: 20 * time.Microsecond,
		RSS: 4096, TimedOut: true, Folder: "/f"}}
	b, err := json.Marshal(exited)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"exited":{"id":"a","code":-1,"signal":"SIGKILL","wall":1.5,"cpu":0.00002,"rss":4096,"timed_out":true,"folder":"/f"}}`; string(b) != want {
		t.Errorf("an end is written as\n%s, not\n%s", b, want)
	}
	// A newer broker may say more.
	if a, err := wire.DecodeBrokerAnswer([]byte(`{"seq":1,"done":{},"new":1}`)); err != nil || a.Done == nil {
		t.Errorf("%+v, %v", a, err)
	}
}

func FuzzDecodeBrokerRequest(f *testing.F) {
	for _, line := range []string{
		`{"seq":7,"start":{"id":"a","role":"lane-1","argv":["/bin/true"],"deadline":2.5}}`,
		`{"seq":1,"start":{"id":"a","role":"lane-1","argv":["/bin/true"],"env":{"A":"b"},"limits":{"cpus":0.5}}}`,
		`{"seq":2,"signal":{"id":"a","signal":"SIGKILL"}}`, `{"seq":3,"list":{}}`, `{"seq":4,"wait":{"id":"a"}}`, `{"seq":5,"ping":{}}`,
		`{"seq":6,"forget":{"id":"a"}}`, `{"seq":7,"stats":{"id":"a"}}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := wire.DecodeBrokerRequest(line)
		if err != nil {
			return
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatalf("%q was read and can't be written: %v", line, err)
		}
		second, err := wire.DecodeBrokerRequest(again)
		if err != nil {
			t.Fatalf("%q was read, and is written as %q, which is not: %v", line, again, err)
		}
		if third, err := json.Marshal(second, json.Deterministic(true)); err != nil || len(third) != len(again) {
			t.Fatalf("%q, then %q: %v", again, third, err)
		}
		if s := r.Start; s != nil {
			if len(s.Argv) == 0 || s.Argv[0][0] != '/' || bytes.ContainsAny([]byte(s.ID), "/.\x00") || s.Deadline < 0 {
				t.Fatalf("%q was taken", line)
			}
		}
	})
}
