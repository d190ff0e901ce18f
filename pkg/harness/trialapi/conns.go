package trialapi

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// maxConnections is how many connections the API holds. One more takes the
// place of that which has been without a trial's call for longest: a lane
// that opens many keeps no other's worker out, nor the harness from its files.
const maxConnections = 256

// connections are those that are open.
type connections struct {
	mu sync.Mutex
	// all are in the order in which they were opened or last had a call.
	all []*connection
}

type connection struct {
	net.Conn
	// calls are how many of its calls are under way.
	calls int
}

func newConnections() *connections { return &connections{} }

type connectionKey struct{}

// context is http.Server's ConnContext: it comes to know a connection.
func (c *connections) context(ctx context.Context, conn net.Conn) context.Context {
	opened := &connection{Conn: conn}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, opened)
	if len(c.all) > maxConnections {
		c.closeOldest()
	}
	return context.WithValue(ctx, connectionKey{}, opened)
}

// closeOldest closes the first connection without a call. The server then
// says by state that it is closed.
func (c *connections) closeOldest() {
	for i, old := range c.all {
		if old.calls == 0 {
			_ = old.Close() // it holds nothing that could be lost
			c.all = append(c.all[:i:i], c.all[i+1:]...)
			return
		}
	}
}

// state is http.Server's ConnState: it forgets a connection that is closed.
func (c *connections) state(conn net.Conn, to http.ConnState) {
	if to != http.StateClosed && to != http.StateHijacked {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, old := range c.all {
		if old.Conn == conn {
			c.all = append(c.all[:i:i], c.all[i+1:]...)
			return
		}
	}
}

// busy marks the call's connection as having a trial's call, until the result
// is called.
func (c *connections) busy(ctx context.Context) (done func()) {
	conn, ok := ctx.Value(connectionKey{}).(*connection)
	if !ok {
		return func() {}
	}
	c.count(conn, 1)
	return func() { c.count(conn, -1) }
}

// count adds to a connection's calls, and puts it at the end.
func (c *connections) count(conn *connection, more int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	conn.calls += more
	for i, old := range c.all {
		if old == conn {
			c.all = append(append(c.all[:i:i], c.all[i+1:]...), conn)
			return
		}
	}
}
