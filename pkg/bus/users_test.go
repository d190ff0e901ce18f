package bus_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"pgregory.net/rapid"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/wire"
)

// The same users give the same file, in whatever order they come, and it is
// one that the server takes, with one account a rig.
func TestUsersRender(t *testing.T) {
	dir := prepared(t)
	keys := make([]string, 40)
	for i := range keys {
		keys[i] = newKey(t)
	}
	name := rapid.StringMatching(`[a-z0-9][a-z0-9-]{0,39}`)
	rapid.Check(t, func(rt *rapid.T) {
		rigs := rapid.SliceOfNDistinct(name, 0, 20, rapid.ID[string]).Draw(rt, "rigs")
		u := bus.Users{Control: keys[0], System: keys[1], Backup: keys[2]}
		for i, rig := range rigs {
			u.Rigs = append(u.Rigs, bus.RigUser{Rig: rig, Key: keys[3+i], Runs: rapid.SliceOfN(name, 0, 5).Draw(rt, "runs")})
		}
		b, err := u.Render()
		if err != nil {
			rt.Fatal(err)
		}
		shuffled := u
		shuffled.Rigs = rapid.Permutation(u.Rigs).Draw(rt, "order")
		again, err := shuffled.Render()
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(string(b), string(again)); diff != "" {
			rt.Fatal(diff)
		}
		write(t, filepath.Join(dir, bus.UsersFile), string(b))
		opts := parse(t, bus.Settings{Dir: dir})
		var got []string
		for _, a := range opts.Accounts {
			got = append(got, a.Name)
		}
		want := append(slices.Clone(rigs), "CONTROL", "SYS")
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatal(diff)
		}
		if len(opts.Nkeys) != 3+len(rigs) || opts.SystemAccount != "SYS" || len(opts.Users) != 0 {
			rt.Fatalf("%d keys, %d users, system account %s", len(opts.Nkeys), len(opts.Users), opts.SystemAccount)
		}
	})
}

// What can't be a user is refused, and says whose it is; a key is one
// user's.
func TestUsersRefused(t *testing.T) {
	a, b := newKey(t), newKey(t)
	for want, u := range map[string]bus.Users{
		"key of control":    {Control: "x"},
		"key of rig alpha":  {Rigs: []bus.RigUser{{Rig: "alpha", Key: "x"}}},
		"one key":           {Control: a, Rigs: []bus.RigUser{{Rig: "alpha", Key: a}}},
		"control and the b": {Control: a, Backup: a},
		"alpha and rig bet": {Rigs: []bus.RigUser{{Rig: "beta", Key: a}, {Rig: "alpha", Key: a}}},
		"alpha is there tw": {Rigs: []bus.RigUser{{Rig: "alpha", Key: a}, {Rig: "alpha", Key: b}}},
		"rig name":          {Rigs: []bus.RigUser{{Rig: "al.pha", Key: a}}},
		`"CONTROL"`:         {Rigs: []bus.RigUser{{Rig: "CONTROL", Key: a}}},
		`rig name ">"`:      {Rigs: []bus.RigUser{{Rig: ">", Key: a}}},
		"run name":          {Rigs: []bus.RigUser{{Rig: "alpha", Key: a, Runs: []string{"a", "*"}}}},
	} {
		if _, err := u.Render(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// A rig may publish the live lines of its newest 1,000 runs, not of the next.
func TestUsersNewestRuns(t *testing.T) {
	b := bustest.Start(t, bustest.Options{})
	runs := make([]string, 1002)
	for i := range runs {
		runs[i] = fmt.Sprintf("run-%d", len(runs)-i)
	}
	b.AddRig("alpha", runs...)
	alpha := connect(b, b.RigDial("alpha"))
	for run, want := range map[string]bool{"run-1002": true, "run-3": true, "run-2": false, "run-1": false} {
		if got := alpha.mayPublish(t, wire.RunLiveSubject(run, "planner")); got != want {
			t.Errorf("%s: %v", run, got)
		}
	}
}

// The users file is written only when it changes, whole, for the server's
// group to read and nobody else.
func TestWriteUsers(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, bus.UsersFile)
	u := bus.Users{Control: newKey(t)}
	for i, want := range []bool{true, false, false} {
		changed, err := bus.WriteUsers(dir, u)
		if err != nil || changed != want {
			t.Errorf("time %d: changed %v, %v", i, changed, err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the file: %v, %v", info.Mode(), err)
	}
	before := read(t, path)
	if _, err := bus.WriteUsers(dir, bus.Users{Control: "x"}); err == nil {
		t.Error("a bad key is written")
	}
	if read(t, path) != before {
		t.Error("a refusal changed the file")
	}
	u.Rigs = []bus.RigUser{{Rig: "alpha", Key: newKey(t)}}
	if changed, err := bus.WriteUsers(dir, u); err != nil || !changed {
		t.Errorf("changed %v, %v", changed, err)
	}
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 1 {
		t.Errorf("the folder holds %v, %v", names, err)
	}
	if _, err := bus.WriteUsers(filepath.Join(dir, "missing"), u); err == nil {
		t.Error("a folder that is not there is written to")
	}
}

// The second form of an ack names control's account as the server does: a
// server that uses that form hands out acks that a rig may give.
func TestSecondFormOfAck(t *testing.T) {
	dir := prepared(t)
	b := bustest.Start(t, bustest.Options{Rigs: []string{"alpha"}, NoStreams: true})
	write(t, filepath.Join(dir, bus.UsersFile), read(t, filepath.Join(b.Dir, bus.UsersFile)))
	conf, err := bus.Settings{Dir: dir, Port: -1}.Render()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, bus.ConfFile), string(conf)+"\nfeature_flags { js_ack_fc_v2: true }\n")
	for from, to := range map[string]string{bus.CertFile: bus.CertFile, bus.KeyFile: bus.KeyFile} {
		write(t, filepath.Join(dir, to), read(t, filepath.Join(b.Dir, from)))
	}
	opts, err := server.ProcessConfigFile(filepath.Join(dir, bus.ConfFile))
	if err != nil {
		t.Fatal(err)
	}
	opts.NoSigs = true
	ns, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	go ns.Start()
	defer ns.Shutdown()
	if !ns.ReadyForConnections(bustest.Wait) {
		t.Fatal("the server does not start")
	}
	url := "tls://" + ns.Addr().String()
	d := b.ControlDial()
	d.URL = url
	control := b.Connect(d)
	d = b.RigDial("alpha")
	d.URL = url
	alpha := b.Connect(d)
	ackedInForm(t, control, alpha, "$JS.ACK._."+hash+".COMMANDS.rig-alpha-commands.")
}

// Users of 100 and of 1,000 rigs: a reload's cost grows with the rigs, not
// with their square.
func BenchmarkReload(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprintf("%d-rigs", n), func(b *testing.B) {
			bb := bustest.Start(b, bustest.Options{})
			u := bb.Users()
			for i := range n {
				u.Rigs = append(u.Rigs, bus.RigUser{Rig: fmt.Sprintf("rig-%d", i), Key: newKey(b), Runs: []string{fmt.Sprintf("run-%d", i)}})
			}
			bb.SetUsers(u)
			admin := bus.NewAdmin(bb.System())
			if _, err := admin.Apply(b.Context(), u); err != nil {
				b.Fatal(err)
			}
			start := time.Now()
			for b.Loop() {
				if _, err := admin.Apply(b.Context(), u); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(time.Since(start).Microseconds())/float64(b.N*n), "µs/rig")
		})
	}
}
