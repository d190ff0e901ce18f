package bus

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/nats-io/nats.go"
)

// Dial is how a part connects to the bus.
type Dial struct {
	// URL is the server's address, tls://host:port or nats://host:port. The
	// connection is over TLS whichever it says.
	URL string
	// Key signs in.
	Key *UserKey
	// Authority is the only authority that is trusted.
	Authority *x509.CertPool
	// Name is the connection's name in the server's monitoring.
	Name string
	// Inbox is the prefix of the replies' subjects, the only one that the
	// user may subscribe under.
	Inbox string
	Log   *slog.Logger
	// OnState is told that the connection came (nil error), or went or
	// failed with why. It must not block.
	OnState func(connected bool, err error)
	// OnError is told what went wrong apart from the connection, such as a
	// permission denied. The server then holds no subscription any more that
	// it refused. It must not block.
	OnError func(sub *nats.Subscription, err error)
	// ReconnectWait is the pause between tries; 0: one second. Up to as much
	// again is added, at random, so that rigs do not all come at once.
	ReconnectWait time.Duration
}

// Timings of a connection.
const (
	dialTimeout   = 5 * time.Second
	pingInterval  = 20 * time.Second
	maxPings      = 2
	reconnectWait = time.Second
)

// Connect connects to the bus and stays connected until the connection is
// closed: it tries for ever, also when the server refuses the key, which may
// not be known yet. When the first try fails the connection comes back all
// the same, and tries again in the background.
//
// Nothing is kept to be sent while the bus is away: a publish fails at once,
// and whoever wanted it makes it again.
func Connect(ctx context.Context, d Dial) (*nats.Conn, error) {
	if err := d.check(); err != nil {
		return nil, fmt.Errorf("connecting to the bus: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("connecting to the bus at %s: %w", d.URL, err)
	}
	nc, err := nats.Connect(d.URL, d.options(ctx)...)
	if err != nil {
		return nil, fmt.Errorf("connecting to the bus at %s: %w", d.URL, err)
	}
	return nc, nil
}

func (d Dial) check() error {
	u, err := url.Parse(d.URL)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "tls" && u.Scheme != "nats"):
		return fmt.Errorf("%q is no address of the form nats://host:port", d.URL)
	case u.User != nil:
		return errors.New("the address holds a user: the bus takes keys only")
	case d.Key == nil:
		return errors.New("no key is given")
	case d.Authority == nil:
		return errors.New("no authority is given")
	case d.Inbox == "":
		return errors.New("no inbox is given")
	case d.Log == nil:
		return errors.New("no log is given")
	}
	return nil
}

func (d Dial) options(ctx context.Context) []nats.Option {
	wait := d.ReconnectWait
	if wait == 0 {
		wait = reconnectWait
	}
	timeout := dialTimeout
	if end, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(end))
	}
	state := func(connected bool, err error) {
		if d.OnState != nil {
			d.OnState(connected, err)
		}
	}
	var seldom seldom
	return []nats.Option{
		nats.Name(d.Name),
		nats.Secure(&tls.Config{RootCAs: d.Authority, MinVersion: tls.VersionTLS13}),
		nats.Nkey(d.Key.Public(), d.Key.Sign),
		nats.CustomInboxPrefix(d.Inbox),
		nats.Timeout(timeout),
		nats.PingInterval(pingInterval), nats.MaxPingsOutstanding(maxPings),
		nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true), nats.IgnoreAuthErrorAbort(),
		nats.ReconnectWait(wait), nats.ReconnectJitter(wait, wait),
		nats.ReconnectBufSize(-1),
		// The address that was given is the one the certificate is for.
		nats.IgnoreDiscoveredServers(), nats.DontRandomize(),
		nats.ConnectHandler(func(*nats.Conn) {
			d.Log.Info("connected to the bus", "url", d.URL)
			state(true, nil)
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			d.Log.Info("connected to the bus again", "url", d.URL)
			state(true, nil)
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err == nil {
				state(false, nats.ErrConnectionClosed)
				return
			}
			d.Log.Warn("the bus is away", "url", d.URL, "err", err)
			state(false, err)
		}),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) {
			d.Log.Debug("the bus is still away", "url", d.URL, "err", err)
			state(false, err)
		}),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			if now, unsaid := seldom.say("an error"); now {
				d.Log.Warn("an error on the bus", "url", d.URL, "err", err, unsaidAttr, unsaid)
			}
			// A key refused as the connection comes again is told here only.
			if errors.Is(err, nats.ErrAuthorization) {
				state(false, err)
				return
			}
			if d.OnError != nil {
				d.OnError(sub, err)
			}
		}),
	}
}
