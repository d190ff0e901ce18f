package protocol_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"thermite/pkg/broker/protocol"
	"thermite/pkg/wire"
)

func pair(t *testing.T) (net.Conn, *protocol.Conn) {
	t.Helper()
	a, b := net.Pipe()
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, protocol.NewConn(b)
}

// Promise: a line is read whole however it comes, up to the limit and not a
// byte longer; one that the end cuts off is none.
func TestReadLine(t *testing.T) {
	for name, c := range map[string]struct {
		sent string
		want []string
		err  error
	}{
		"lines":    {"a\n\nbc\n", []string{"a", "", "bc"}, io.EOF},
		"cut":      {"a\nbc", []string{"a"}, io.EOF},
		"longest":  {strings.Repeat("x", wire.MaxBrokerLine-1) + "\n", []string{strings.Repeat("x", wire.MaxBrokerLine-1)}, io.EOF},
		"too long": {strings.Repeat("x", wire.MaxBrokerLine) + "\n", nil, protocol.ErrLineTooLong},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := pair(t)
			go func() {
				for len(c.sent) > 0 {
					n, err := from.Write([]byte(c.sent[:min(len(c.sent), 1000)]))
					if err != nil {
						return
					}
					c.sent = c.sent[n:]
				}
				from.Close()
			}()
			for _, want := range c.want {
				if got, err := to.ReadLine(); err != nil || string(got) != want {
					t.Fatalf("it reads %d bytes, %v, not %d", len(got), err, len(want))
				}
			}
			if got, err := to.ReadLine(); !errors.Is(err, c.err) {
				t.Errorf("at the end it reads %q, %v, not %v", got, err, c.err)
			}
			_ = to.Close()
		})
	}
}

// Promise: lines that several write at a time do not mix, and one that is too
// long is not begun.
func TestWrite(t *testing.T) {
	from, to := pair(t)
	if err := to.Write(wire.BrokerAnswer{Error: &wire.BrokerProblem{Detail: strings.Repeat("x", wire.MaxBrokerLine)}}); !errors.Is(err, protocol.ErrLineTooLong) {
		t.Errorf("too long a line: %v", err)
	}
	var writing sync.WaitGroup
	for n := range 20 {
		writing.Go(func() {
			if err := to.Write(wire.BrokerAnswer{Seq: uint64(n + 1), Error: &wire.BrokerProblem{Code: "x", Detail: strings.Repeat("y", 10_000)}}); err != nil {
				t.Error(err)
			}
		})
	}
	reader, seen := protocol.NewConn(from), map[uint64]bool{}
	for range 20 {
		line, err := reader.ReadLine()
		if err != nil {
			t.Fatal(err)
		}
		a, err := wire.DecodeBrokerAnswer(line)
		if err != nil || len(a.Error.Detail) != 10_000 {
			t.Fatal(fmt.Errorf("a line of %d bytes: %w", len(line), err))
		}
		seen[a.Seq] = true
	}
	writing.Wait()
	if len(seen) != 20 {
		t.Errorf("%d of 20 lines came", len(seen))
	}
}
