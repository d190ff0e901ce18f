package bus_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/wire"
)

// A reload keeps what the server was started with: it listens where it did,
// takes messages of 8 MiB, and nobody is disconnected. So it is with the
// server's own reload, and with one over the bus.
func TestReloadChangesNothingElse(t *testing.T) {
	b := bustest.Start(t, bustest.Options{Rigs: []string{"alpha"}, Leaf: true})
	alpha, admin := b.Rig("alpha"), bus.NewAdmin(b.System())
	url, leafURL, id := b.URL(), b.Server().LeafURL(), b.Server().ID()
	leaf := b.Leaf("alpha")
	leaf.AwaitJoined()
	for name, reload := range map[string]func() error{
		"the server's": b.Server().Reload, "the admin's": func() error {
			_, err := admin.Apply(within(t, bustest.Wait), b.Users())
			return err
		},
	} {
		for range 3 {
			if err := reload(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if b.URL() != url || b.Server().LeafURL() != leafURL || b.Server().ID() != id {
			t.Errorf("%s: it is now %s, %s, %s", name, b.URL(), b.Server().LeafURL(), b.Server().ID())
		}
		if got := alpha.MaxPayload(); got != wire.MaxBusMessage {
			t.Errorf("%s: messages may have %d bytes", name, got)
		}
		request(t, alpha, wire.ReportSubject("alpha"))
		request(t, b.Rig("alpha"), wire.ReportSubject("alpha"))
	}
	if n := alpha.Stats().Reconnects; n != 0 || !leaf.Joined() {
		t.Errorf("alpha was disconnected %d times, its leaf node is there: %v", n, leaf.Joined())
	}
}

// A server that is stopped and started again holds what it answered for, and
// those who were connected come again by themselves.
func TestStartAgain(t *testing.T) {
	b := bustest.Start(t, bustest.Options{Rigs: []string{"alpha"}})
	js, alpha := b.JS(), b.Rig("alpha")
	if _, err := bus.PublishBatch(within(t, bustest.Wait), js, eventMsgs(10, 100, 1), 0); err != nil {
		t.Fatal(err)
	}
	request(t, alpha, wire.ReportSubject("alpha"))
	url := b.URL()
	b.Stop()
	until(t, "alpha has noticed", func() bool { return !alpha.IsConnected() })
	b.Again()
	if b.URL() != url {
		t.Errorf("it listens on %s, not %s", b.URL(), url)
	}
	awaitAnswer(t, alpha, wire.ReportSubject("alpha"))
	if last := lastOf(t, b.JS()); last != 10 {
		t.Errorf("EVENTS ends at %d", last)
	}
}

// A start that can't be says why, and ends.
func TestStartFails(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		ctx     context.Context
		prepare func(s *bus.Settings)
		want    string
	}{
		"the port is taken":   {t.Context(), func(s *bus.Settings) { s.Port = n }, "address already in use"},
		"there are no users":  {t.Context(), func(s *bus.Settings) { remove(t, filepath.Join(s.Dir, bus.UsersFile)) }, "users.conf"},
		"there is no key":     {t.Context(), func(s *bus.Settings) { remove(t, filepath.Join(s.Dir, bus.KeyFile)) }, "server.key"},
		"the users are wrong": {t.Context(), func(s *bus.Settings) { write(t, filepath.Join(s.Dir, bus.UsersFile), "accounts {") }, "users.conf"},
		"the store can't be": {t.Context(), func(s *bus.Settings) {
			s.StoreDir = filepath.Join(s.Dir, bus.UsersFile)
		}, "storage directory"},
		"there is no folder":   {t.Context(), func(s *bus.Settings) { s.Dir = filepath.Join(s.Dir, "missing") }, "missing"},
		"a setting is wrong":   {t.Context(), func(s *bus.Settings) { s.ServerName = "A B" }, "server_name"},
		"it is told to stop":   {ended, func(*bus.Settings) {}, "context canceled"},
		"its conf is a folder": {t.Context(), func(s *bus.Settings) { mkdir(t, filepath.Join(s.Dir, bus.ConfFile)) }, "nats.conf"},
	} {
		t.Run(name, func(t *testing.T) {
			s := bus.Settings{Dir: prepared(t), Port: -1}
			tc.prepare(&s)
			srv, err := bus.StartServer(tc.ctx, s, slog.New(slog.DiscardHandler))
			if err == nil {
				srv.Shutdown()
				t.Fatal("it starts")
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func mkdir(t testing.TB, path string) {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

// A connection that can't be is refused, in words, before anything is dialed.
func TestConnectRefused(t *testing.T) {
	b := bustest.Start(t, bustest.Options{Rigs: []string{"alpha"}})
	good := b.RigDial("alpha")
	for want, change := range map[string]func(*bus.Dial){
		"no address":        func(d *bus.Dial) { d.URL = "127.0.0.1:4222" },
		"of the form":       func(d *bus.Dial) { d.URL = "http://127.0.0.1:4222" },
		"holds a user":      func(d *bus.Dial) { d.URL = "nats://user:secret@127.0.0.1:4222" },
		"no key":            func(d *bus.Dial) { d.Key = nil },
		"no authority":      func(d *bus.Dial) { d.Authority = nil },
		"no inbox":          func(d *bus.Dial) { d.Inbox = "" },
		"no log":            func(d *bus.Dial) { d.Log = nil },
		"custom inbox pref": func(d *bus.Dial) { d.Inbox = "a.>" },
	} {
		d := good
		change(&d)
		nc, err := bus.Connect(t.Context(), d)
		if err == nil {
			nc.Close()
			t.Errorf("%s: it connects", want)
			continue
		}
		if !strings.Contains(err.Error(), want) && want != "custom inbox pref" {
			t.Errorf("%s: %v", want, err)
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error tells a secret: %v", err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := bus.Connect(ended, good); !errors.Is(err, context.Canceled) {
		t.Errorf("told to stop: %v", err)
	}
}

// A connection comes by itself once there is a server, whichever scheme its
// address has, and says each time that it came and went.
func TestConnectLater(t *testing.T) {
	b := bustest.Start(t, bustest.Options{Rigs: []string{"alpha"}})
	p := b.Proxy()
	p.Down()
	type state struct {
		connected bool
		err       error
	}
	states := make(chan state, 1000)
	d := b.RigDial("alpha")
	d.URL = strings.Replace(p.URL(), "tls://", "nats://", 1)
	d.OnState = func(connected bool, err error) { states <- state{connected, err} }
	nc, err := bus.Connect(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	await := func(connected bool) {
		t.Helper()
		for end := time.After(bustest.Wait); ; {
			select {
			case s := <-states:
				if s.connected != (s.err == nil) {
					t.Errorf("connected %v, with %v", s.connected, s.err)
				}
				if s.connected == connected {
					return
				}
			case <-end:
				t.Fatalf("it is not said that it is connected: %v", connected)
			}
		}
	}
	await(false)
	p.Resume()
	await(true)
	if _, err := nc.TLSConnectionState(); err != nil {
		t.Errorf("it has no TLS: %v", err)
	}
	request(t, nc, wire.ReportSubject("alpha"))
	p.Cut()
	await(false)
	await(true)
	p.Down()
	await(false)
	until(t, "it is away", func() bool { return !nc.IsConnected() })
	if err := nc.Publish(wire.ReportSubject("alpha"), []byte("x")); !errors.Is(err, nats.ErrReconnectBufExceeded) {
		t.Errorf("a publish while the bus is away: %v", err)
	}
	p.Resume()
	await(true)
	request(t, nc, wire.ReportSubject("alpha"))
}

// What is asked over a connection ends with it, and is not begun over one
// that is away.
func TestWhileConnected(t *testing.T) {
	b := bustest.Start(t, bustest.Options{Rigs: []string{"alpha"}})
	p := b.Proxy()
	d := b.RigDial("alpha")
	d.URL = p.URL()
	nc := b.Connect(d)
	ctx, stop, err := bus.WhileConnected(t.Context(), nc)
	if err != nil {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Error("it ends while the connection is there")
	}
	stop()
	ctx, stop, err = bus.WhileConnected(t.Context(), nc)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	p.Down()
	select {
	case <-ctx.Done():
	case <-time.After(bustest.Wait):
		t.Fatal("it does not end with the connection")
	}
	if cause := context.Cause(ctx); !errors.Is(cause, bus.ErrAway) {
		t.Errorf("it ends with %v", cause)
	}
	until(t, "the connection is away", func() bool { return !nc.IsConnected() })
	if _, _, err := bus.WhileConnected(t.Context(), nc); !errors.Is(err, bus.ErrAway) {
		t.Errorf("away: %v", err)
	}
}
