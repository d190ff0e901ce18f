package control_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/control/identity"
	"thermite/pkg/control/recordtest"
	"thermite/pkg/wire"
)

var (
	loadRigs   = flag.Int("load-rigs", 500, "how many rigs report to one control")
	loadWindow = flag.Duration("load-window", wire.PollInterval, "in how long each of them reports once")
	loadEvents = flag.Int("load-events", 60, "how many events each reports: one a second")
)

// BenchmarkSupervisors is control and the bus's server, each its own process,
// with many rigs that report once in a window: a page, and the figures until
// control has taken it. It says how long that takes, and what memory and
// processor time each of the two had.
func BenchmarkSupervisors(b *testing.B) {
	l := startLoad(b)
	rigs := l.rigs(b)
	before := [2]process{readProcess(b, l.control), readProcess(b, l.server)}
	var took []time.Duration
	for b.Loop() {
		took = append(took, l.round(b, rigs)...)
	}
	seconds := b.Elapsed().Seconds()
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(took[len(took)/2]), "ms/report")
	b.ReportMetric(ms(took[len(took)*99/100]), "ms/report-p99")
	for i, name := range []string{"control", "server"} {
		now := readProcess(b, []int{l.control, l.server}[i])
		b.ReportMetric(float64(now.peak)/(1<<20), name+"-MiB")
		b.ReportMetric(100*(now.cpu-before[i].cpu).Seconds()/seconds, name+"-cpu-%")
	}
}

// load is control and the server as processes.
type load struct {
	*world
	url             string
	control, server int // process ids
	busURL          string
}

type loadRig struct {
	*rig
	nc         *nats.Conn
	js         jetstream.JetStream
	ledger     *recordtest.Rig
	registered wire.Registered
}

func startLoad(b *testing.B) *load {
	b.Helper()
	bin := b.TempDir()
	out, err := exec.Command("go", "build", "-o", bin, "thermite/cmd/thermite-control", "thermite/cmd/thermite-nats").CombinedOutput()
	if err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	l := &load{world: newWorld(b)}
	port, listen := closedPort(b), closedPort(b)
	l.busURL, l.url = "nats://127.0.0.1:"+port, "https://127.0.0.1:"+listen
	l.config.PublicURL = l.url
	l.control = l.process(filepath.Join(bin, "thermite-control"),
		"--state", l.config.StateDir, "--nats-dir", l.config.BusDir, "--nats-url", l.busURL, "--listen", "127.0.0.1:"+listen)
	l.server = l.process(filepath.Join(bin, "thermite-nats"), "--dir", l.config.BusDir, "--host", "127.0.0.1", "--port", port)
	l.at = func() string { return l.url }
	l.eventually("control serves", func() bool {
		nc, err := net.Dial("tcp", "127.0.0.1:"+listen)
		if err != nil {
			return false
		}
		_ = nc.Close()
		_, err = os.Stat(filepath.Join(l.config.StateDir, identity.OwnerTokenFile))
		return err == nil
	})
	l.must("GET", "/v1/health", "", nil, nil)
	return l
}

// closedPort gives a port that nobody listens on just now.
func closedPort(b *testing.B) string {
	b.Helper()
	n, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer n.Close()
	return strconv.Itoa(n.Addr().(*net.TCPAddr).Port)
}

// process starts a program that ends with the benchmark.
func (l *load) process(path string, args ...string) (pid int) {
	l.t.Helper()
	cmd := exec.Command(path, args...)
	cmd.Stderr = l.log
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

// rigs makes rigs that are on the bus. They register at once, as after an
// outage: what the server must be told of them is then told together.
func (l *load) rigs(b *testing.B) []*loadRig {
	b.Helper()
	rigs := make([]*loadRig, *loadRigs)
	for i := range rigs {
		name := fmt.Sprintf("rig-%d", i)
		rigs[i] = &loadRig{rig: l.makeRig(name), ledger: recordtest.NewRig(b, name)}
	}
	var all sync.WaitGroup
	for _, r := range rigs {
		all.Go(func() {
			if status := l.tryRegister(r.rig, &r.registered); status >= 300 {
				b.Errorf("the registration of rig %s answered %d", r.name, status)
			}
		})
	}
	all.Wait()
	for _, r := range rigs {
		r.connect(b, l)
	}
	return rigs
}

// connect signs in to the bus.
func (r *loadRig) connect(b *testing.B, l *load) {
	b.Helper()
	pool, err := bus.ReadPool(filepath.Join(l.config.StateDir, bus.AuthorityFile))
	if err != nil {
		b.Fatal(err)
	}
	came := make(chan struct{}, 1)
	r.nc, err = bus.Connect(b.Context(), bus.Dial{URL: l.busURL, Key: r.key, Authority: pool, Name: r.name, Inbox: wire.RigInbox(r.name),
		Log: slog.New(slog.DiscardHandler), OnState: func(connected bool, _ error) {
			if connected {
				select {
				case came <- struct{}{}:
				default:
				}
			}
		}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(r.nc.Close)
	select {
	case <-came:
	case <-time.After(wait):
		b.Fatalf("rig %s does not sign in", r.name)
	}
	if r.js, err = jetstream.New(r.nc); err != nil {
		b.Fatal(err)
	}
}

// round has each rig report once, spread over the window, and gives how long
// each took until control's answer to its figures showed the page taken.
func (l *load) round(b *testing.B, rigs []*loadRig) []time.Duration {
	took := make([]time.Duration, len(rigs))
	tick := time.NewTicker(*loadWindow / time.Duration(len(rigs)))
	defer tick.Stop()
	var all sync.WaitGroup
	for i, r := range rigs {
		<-tick.C
		all.Go(func() {
			d, err := r.report(b.Context())
			if err != nil {
				b.Errorf("rig %s: %v", r.name, err)
			}
			took[i] = d
		})
	}
	all.Wait()
	return took
}

// A rig's asks are not to be most of the load: it waits this long before it
// asks again, and twice as long each time after.
const (
	firstPause = 10 * time.Millisecond
	longPause  = time.Second
)

func (r *loadRig) report(ctx context.Context) (time.Duration, error) {
	after := r.ledger.Last()
	r.ledger.Append(*loadEvents, nil)
	page := r.ledger.Page(after, r.ledger.Last())
	start := time.Now()
	_, err := r.js.Publish(ctx, wire.ReportSubject(r.name), page, jetstream.WithMsgID(wire.PageID(r.ledger.Ledger, after, r.ledger.Last())))
	if err != nil {
		return 0, err
	}
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		ask, err := wire.EncodeFiguresAsk(wire.FiguresAsk{Nonce: "n", Figures: wire.Figures{Build: "test", StartedAt: wire.At(start)}})
		if err != nil {
			return 0, err
		}
		reply, err := r.nc.Request(wire.AskSubject(r.name, "figures"), ask, wire.AskTimeout)
		if err != nil {
			return 0, err
		}
		answer, err := wire.DecodeFiguresAnswer(r.registered.ControlKey, r.name, "n", reply.Data)
		if err != nil {
			return 0, err
		}
		switch {
		case answer.Refused != "":
			return 0, fmt.Errorf("refused: %s", answer.Refused)
		case answer.Place.Cursor == r.ledger.Last():
			return time.Since(start), nil
		case time.Since(start) > wait:
			return 0, fmt.Errorf("control is at %d after %v", answer.Place.Cursor, wait)
		}
		<-time.After(pause)
	}
}

// process is what a process used so far.
type process struct {
	peak int64 // bytes
	cpu  time.Duration
}

// readProcess reads it from /proc.
func readProcess(b *testing.B, pid int) process {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Skipf("this system does not say what a process uses: %v", err)
	}
	var p process
	for line := range strings.Lines(string(status)) {
		if kb, is := strings.CutPrefix(line, "VmHWM:"); is {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(kb), " kB"), 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			p.peak = n << 10
		}
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	// After the name, in brackets: utime and stime are the 12th and 13th, in
	// hundredths of a second.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		p.cpu += time.Duration(n) * 10 * time.Millisecond
	}
	return p
}
