package bustest

import (
	"net"
	"strings"
	"sync"
	"testing"
)

// Proxy stands between a client and the bus, or any other server over TCP,
// and breaks the way between them. It reads nothing of what passes.
type Proxy struct {
	target   string
	listener net.Listener
	done     sync.WaitGroup

	mu     sync.Mutex
	change *sync.Cond
	state  proxyState
	conns  map[*proxied]struct{}
	closed bool
	// lost counts the answers' bytes that were lost.
	lost int64
	// sent counts what clients sent since then was set, which is called once
	// it is after.
	sent, after int64
	then        func()
}

type proxyState int

const (
	passing proxyState = iota
	paused
	losing
	down
)

// proxied is one client's connection and the one to the server for it.
type proxied struct {
	client, server net.Conn
	// lost says that some bytes were lost, so that it can't go on.
	lost bool
}

func (c *proxied) close() {
	_ = c.client.Close()
	if c.server != nil {
		_ = c.server.Close()
	}
}

// NewProxy starts a proxy to target, host:port or an address with a scheme.
// It ends with the test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	if _, hostPort, ok := strings.Cut(target, "://"); ok {
		target = hostPort
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{target: target, listener: l, conns: make(map[*proxied]struct{})}
	p.change = sync.NewCond(&p.mu)
	p.done.Go(p.accept)
	t.Cleanup(p.Close)
	return p
}

// Proxy starts a proxy to the bus.
func (b *Bus) Proxy() *Proxy {
	b.t.Helper()
	return NewProxy(b.t, b.URL())
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// URL is the bus's address through the proxy.
func (p *Proxy) URL() string { return "tls://" + p.Addr() }

// Cut ends every connection. Clients may come again at once.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.close()
	}
}

// Down ends every connection and takes no new one until Resume.
func (p *Proxy) Down() { p.set(down) }

// Pause keeps what both sides send, until Resume.
func (p *Proxy) Pause() { p.set(paused) }

// LoseAnswers drops what the server sends from now on; what clients send
// still reaches it. Resume ends the connections that lost something.
func (p *Proxy) LoseAnswers() { p.set(losing) }

// Resume lets everything pass again.
func (p *Proxy) Resume() { p.set(passing) }

// AfterSending calls do, such as p.LoseAnswers, once clients have sent n bytes
// from now on, before the bytes that reach n go on to the server.
func (p *Proxy) AfterSending(n int64, do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent, p.after, p.then = 0, n, do
}

// count counts what a client sent, and does what waits for it.
func (p *Proxy) count(n int) {
	p.mu.Lock()
	p.sent += int64(n)
	var do func()
	if p.then != nil && p.sent >= p.after {
		do, p.then = p.then, nil
	}
	p.mu.Unlock()
	if do != nil {
		do()
	}
}

func (p *Proxy) set(s proxyState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = s
	for c := range p.conns {
		if s == down || (s == passing && c.lost) {
			c.close()
		}
	}
	p.change.Broadcast()
}

// Lost counts the bytes of answers that were lost.
func (p *Proxy) Lost() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// Close ends the proxy.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for c := range p.conns {
		c.close()
	}
	p.change.Broadcast()
	p.mu.Unlock()
	p.done.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.done.Go(func() { p.serve(&proxied{client: client}) })
	}
}

// serve passes one client's connection on until either side ends it.
func (p *Proxy) serve(c *proxied) {
	defer c.close()
	if !p.add(c) {
		return
	}
	defer p.remove(c)
	var both sync.WaitGroup
	both.Go(func() {
		defer c.close()
		p.pass(c, c.server, c.client, false)
	})
	p.pass(c, c.client, c.server, true)
	c.close()
	both.Wait()
}

// add dials the server for c, unless the proxy is down.
func (p *Proxy) add(c *proxied) bool {
	server, err := net.Dial("tcp", p.target)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		return false
	}
	c.server = server
	if p.closed || p.state == down {
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *Proxy) remove(c *proxied) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// pass copies from one side to the other. Answers may be lost.
func (p *Proxy) pass(c *proxied, to, from net.Conn, answers bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if !answers {
			p.count(n)
		}
		lose, open := p.gate(c, answers)
		if !open {
			return
		}
		if lose {
			p.mu.Lock()
			p.lost += int64(n)
			p.mu.Unlock()
			continue
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// gate waits while the proxy is paused, and says whether to lose the bytes.
func (p *Proxy) gate(c *proxied, answers bool) (lose, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.state == paused && !p.closed {
		p.change.Wait()
	}
	if p.closed || p.state == down {
		return false, false
	}
	// A connection that lost a part of an answer may not pass the rest.
	if answers && (p.state == losing || c.lost) {
		c.lost = true
		return true, true
	}
	return false, true
}
