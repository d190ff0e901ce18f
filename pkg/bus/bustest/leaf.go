package bustest

import (
	"context"
	"crypto/tls"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"thermite/pkg/wire"
)

// Leaf is a NATS server of a rig's own, joined to the bus as a leaf node. It
// lets anyone on its loopback do anything on it.
type Leaf struct {
	b   *Bus
	rig string
	ns  *server.Server
}

// Leaf starts a leaf node that signs in to the bus with the rig's key. The
// bus was started with the Leaf option.
func (b *Bus) Leaf(rig string) *Leaf {
	b.t.Helper()
	b.RigKey(rig)
	// The pinned server signs for a leaf node with the seed alone.
	seed, err := os.ReadFile(b.seedFile("rig-" + rig))
	if err != nil {
		b.t.Fatal(err)
	}
	to, err := url.Parse(b.Server().LeafURL())
	if err != nil || to.Host == "" {
		b.t.Fatalf("the bus takes no leaf nodes: %q, %v", b.Server().LeafURL(), err)
	}
	opts := &server.Options{
		ServerName: "leaf-" + rig, Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true, MaxPayload: wire.MaxBusMessage,
		LeafNode: server.LeafNodeOpts{
			ReconnectInterval: 50 * time.Millisecond,
			Remotes: []*server.RemoteLeafOpts{{
				URLs: []*url.URL{to}, TLS: true,
				TLSConfig: &tls.Config{RootCAs: b.Authority.Pool(), MinVersion: tls.VersionTLS13},
				Nkey:      strings.TrimSpace(string(seed)),
			}},
		},
	}
	ns, err := server.NewServer(opts)
	if err != nil {
		b.t.Fatal(err)
	}
	l := &Leaf{b: b, rig: rig, ns: ns}
	b.t.Cleanup(func() {
		ns.Shutdown()
		ns.WaitForShutdown()
	})
	go ns.Start()
	if !ns.ReadyForConnections(Wait) {
		b.t.Fatal("the leaf node does not start")
	}
	return l
}

// Joined says whether the leaf node has its connection to the bus.
func (l *Leaf) Joined() bool { return l.ns.NumLeafNodes() > 0 }

// AwaitJoined returns once the leaf node has its connection to the bus.
func (l *Leaf) AwaitJoined() {
	l.b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Wait)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !l.Joined() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			l.b.t.Fatalf("the leaf node of %s does not join the bus", l.rig)
		}
	}
}

// Client gives a new connection to the leaf node itself.
func (l *Leaf) Client() *nats.Conn {
	l.b.t.Helper()
	nc, err := nats.Connect(l.ns.ClientURL(), nats.CustomInboxPrefix(wire.RigInbox(l.rig)))
	if err != nil {
		l.b.t.Fatal(err)
	}
	l.b.t.Cleanup(nc.Close)
	return nc
}
