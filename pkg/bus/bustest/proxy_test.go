package bustest

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// echo is a server that answers each byte with itself.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}

func dial(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// answers sends a byte and says whether it comes back within the time, or
// that the connection ended.
func answers(t *testing.T, c net.Conn, b byte, within time.Duration) error {
	t.Helper()
	if _, err := c.Write([]byte{b}); err != nil {
		return err
	}
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	var got [1]byte
	if _, err := io.ReadFull(c, got[:]); err != nil {
		return err
	}
	if got[0] != b {
		t.Errorf("got %d, not %d", got[0], b)
	}
	return nil
}

// The proxy passes, keeps, loses and cuts as it is told.
func TestProxy(t *testing.T) {
	p := NewProxy(t, "tcp://"+echo(t))
	const soon = 50 * time.Millisecond
	c := dial(t, p)
	if err := answers(t, c, 1, Wait); err != nil {
		t.Fatal(err)
	}

	p.Pause()
	if err := answers(t, c, 2, soon); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("paused: %v", err)
	}
	p.Resume()
	if err := c.SetReadDeadline(time.Now().Add(Wait)); err != nil {
		t.Fatal(err)
	}
	var got [1]byte
	if _, err := io.ReadFull(c, got[:]); err != nil || got[0] != 2 {
		t.Errorf("what was kept: %d, %v", got[0], err)
	}

	p.LoseAnswers()
	if err := answers(t, c, 3, soon); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("losing answers: %v", err)
	}
	p.Resume()
	if err := answers(t, c, 4, Wait); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection that lost an answer goes on: %v", err)
	}

	c = dial(t, p)
	if err := answers(t, c, 5, Wait); err != nil {
		t.Fatal(err)
	}
	p.AfterSending(2, p.LoseAnswers)
	if err := answers(t, c, 6, Wait); err != nil {
		t.Errorf("one byte of two sent: %v", err)
	}
	if err := answers(t, c, 7, soon); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("two bytes of two sent: %v", err)
	}
	p.Resume()

	c = dial(t, p)
	if err := answers(t, c, 8, Wait); err != nil {
		t.Fatal(err)
	}
	p.Cut()
	if err := answers(t, c, 9, Wait); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("cut: %v", err)
	}
	if err := answers(t, dial(t, p), 10, Wait); err != nil {
		t.Errorf("a new one after the cut: %v", err)
	}
	p.Down()
	if err := answers(t, dial(t, p), 11, Wait); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("down: %v", err)
	}
	p.Resume()
	if err := answers(t, dial(t, p), 12, Wait); err != nil {
		t.Errorf("up again: %v", err)
	}
}
