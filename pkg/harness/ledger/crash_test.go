package ledger_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"thermite/pkg/harness/ledger"
)

// childEnv tells this test's own program to append to the ledger there until
// it is killed.
const childEnv = "LEDGER_TEST_APPENDS_TO"

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		if err := appendForever(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// appendForever prints the last id of each append that was answered.
func appendForever(path string) error {
	ctx := context.Background()
	l, err := ledger.Open(ctx, ledger.Config{Path: path, Now: time.Now, Rand: rand.Reader, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		if n%97 == 96 {
			s, err := l.State()
			if err != nil {
				return err
			}
			if _, err := l.Reset(ctx, s.Ledger, "test"); err != nil {
				return err
			}
		}
		events, err := l.Append(ctx, drafts(n, 1+n%40)...)
		if err != nil {
			return err
		}
		s, err := l.State()
		if err != nil {
			return err
		}
		fmt.Println(s.Ledger, events[len(events)-1].ID)
	}
}

// Promise: killed at any moment and started again, a ledger holds every event
// whose append was answered, and nothing has to be repaired.
func TestKilledLedgerHoldsWhatItAnswered(t *testing.T) {
	b := newBench(t)
	kills := 12
	if testing.Short() {
		kills = 3
	}
	random := mathrand.New(mathrand.NewPCG(3, 4))
	for range kills {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"="+b.path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		var said string
		for range 1 + random.IntN(60) {
			if lines.Scan() {
				said = lines.Text()
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // what it said before it died
			said = lines.Text()
		}
		_ = cmd.Wait() // it was killed
		var id string
		var last uint64
		if _, err := fmt.Sscan(said, &id, &last); err != nil {
			t.Fatalf("%q: %v", said, err)
		}
		l, err := ledger.Open(t.Context(), b.config())
		if err != nil {
			t.Fatal(err)
		}
		if l.Damage() != nil || len(l.Notices()) > 0 {
			t.Errorf("after the kill: damage %v, notices %q", l.Damage(), l.Notices())
		}
		infos, err := l.Ledgers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		holds := false
		for _, info := range infos {
			holds = holds || info.Ledger == id && info.Last >= last
		}
		if !holds {
			t.Errorf("event %d of ledger %s was answered, and is lost: %+v", last, id, infos)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Promise: with the disk full an append is refused and changes nothing, reads
// go on, and once there is room the next event follows without a gap.
func TestFullDiskRefusesAndGoesOn(t *testing.T) {
	b := newBench(t)
	l := b.open()
	add(t, l, drafts(0, 50)...)
	signal.Ignore(syscall.SIGXFSZ) // else the limit below ends the process
	t.Cleanup(func() { signal.Reset(syscall.SIGXFSZ) })
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	wal, err := os.Stat(b.path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	full := syscall.Rlimit{Cur: uint64(wal.Size()) + 20_000, Max: was.Max}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &full); err != nil {
		t.Fatal(err)
	}
	restore := func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(restore)
	refused := 0
	for i := range 30 {
		before := state(t, l)
		if _, err := l.Append(t.Context(), drafts(50+i, 20)...); err == nil {
			continue
		}
		refused++
		if after := state(t, l); after != before {
			t.Fatalf("a refused append moved the ledger from %+v to %+v", before, after)
		}
		if got := readAll(t, l); uint64(len(got)) != before.Last {
			t.Fatalf("%d events are read of %d", len(got), before.Last)
		}
	}
	if refused == 0 {
		t.Fatal("the disk was never full")
	}
	restore()
	was2 := state(t, l)
	if e := add(t, l, drafts(99, 3)...); e[0].ID != was2.Last+1 {
		t.Errorf("after event %d comes %d", was2.Last, e[0].ID)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = b.open()
	if d := l.Damage(); d != nil || state(t, l).Last != was2.Last+3 {
		t.Errorf("opened again: %v", d)
	}
}

// failing gives no random bits.
type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// Promise: a start that can't be made says on what, and leaves nothing that
// hinders the next.
func TestOpenSaysWhatFailed(t *testing.T) {
	b := newBench(t)
	c := b.config()
	c.Rand = failing{}
	if _, err := ledger.Open(t.Context(), c); err == nil || !strings.Contains(err.Error(), "ledger's id") {
		t.Errorf("without random bits: %v", err)
	}
	if l := b.open(); l.Damage() != nil || len(l.Notices()) > 0 {
		t.Errorf("the next start: damage %v, notices %q", l.Damage(), l.Notices())
	}
	b = newBench(t)
	if err := os.WriteFile(b.path, []byte(strings.Repeat("this is my diary\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ledger.Open(t.Context(), b.config()); err == nil || !strings.Contains(err.Error(), filepath.Base(b.path)) {
		t.Errorf("over a file that is no database: %v", err)
	}
	if got, err := os.ReadFile(b.path); err != nil || !strings.HasPrefix(string(got), "this is my diary") {
		t.Errorf("the file is changed: %v", err)
	}
}
