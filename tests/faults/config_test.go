package faults

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus/bustest"
	"thermite/pkg/supervisor/harness"
	"thermite/pkg/wire"
)

// routesSet is how often each rig's model route is changed while parts die.
const routesSet = 12

// Promise: the last value of a rig's config is the one in force. While control,
// the bus, harnesses and supervisors die again and again by SIGKILL, and answers
// are lost both ways, each rig's model route is changed; then every harness
// holds what CONFIG holds, which has one value a key, and a control that starts
// again writes nothing.
func TestConfigOfRigsThatDie(t *testing.T) {
	// Nobody listens at the broker's socket, so no trial works.
	c := start(t, 2, 0, 1, "--broker", "/nonexistent/broker.sock", "--trial-listen", "127.0.0.1:0", "--worker", "/bin/true")
	random := rand.New(rand.NewPCG(c.seed(), 2))
	counts := map[string]int{}
	for n := range routesSet {
		for _, r := range c.rigs {
			body := map[string]any{"api": "openai-chat", "base_url": "https://api.example.org/v1", "model": fmt.Sprintf("model-%d", n),
				"secret": map[string]string{"key": fmt.Sprintf("key-%d", n)}, "uses": []map[string]string{{"role": "agents", "rig": r.name}}}
			c.wait(time.Minute, "control to take the route", func() error {
				return c.tryCall(http.MethodPut, "/v1/model-routes/of-"+r.name, body, nil)
			})
		}
		c.fault(random, counts, true)
	}
	t.Logf("while routes were changed: %v", counts)
	c.settle()
	c.allWritten()
	js := c.stream()
	for _, r := range c.rigs {
		c.wait(2*time.Minute, "the harness of "+r.name+" to have the last route", func() error { return c.inForce(js, r) })
	}
	before := c.configStream(js)
	if before.Msgs != uint64(len(c.rigs)) {
		c.fatal(fmt.Errorf("CONFIG holds %d messages for one key of %d rigs", before.Msgs, len(c.rigs)))
	}
	c.control.kill()
	c.control.start(c.t)
	c.settle()
	c.allWritten()
	js = c.stream()
	// A route that changes comes after what control would write by itself.
	first := c.rigs[0]
	body := map[string]any{"api": "openai-chat", "base_url": "https://api.example.org/v1", "model": "last", "uses": []map[string]string{{"role": "agents", "rig": first.name}}}
	c.wait(time.Minute, "control to take the route", func() error { return c.tryCall(http.MethodPut, "/v1/model-routes/of-"+first.name, body, nil) })
	c.wait(time.Minute, "it to be written", func() error {
		if now := c.configStream(js); now.LastSeq == before.LastSeq {
			return fmt.Errorf("the last is %d", now.LastSeq)
		}
		return nil
	})
	if now := c.configStream(js); now.LastSeq != before.LastSeq+1 {
		c.fatal(fmt.Errorf("control wrote %d values where one changed", now.LastSeq-before.LastSeq))
	}
	c.wait(time.Minute, "the harness to have it", func() error { return c.inForce(js, first) })
}

// allWritten waits until control has looked twice and written nothing.
func (c *cluster) allWritten() {
	c.t.Helper()
	js := c.stream()
	last, since := uint64(0), time.Now()
	c.wait(2*time.Minute, "control to have written every value", func() error {
		if now := c.configStream(js).LastSeq; now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) < 2*wire.ConfigLook+time.Second {
			return fmt.Errorf("it wrote one %v ago", time.Since(since))
		}
		return nil
	})
}

func (c *cluster) configStream(js jetstream.JetStream) (state jetstream.StreamState) {
	c.t.Helper()
	c.wait(time.Minute, "the bus to say what CONFIG holds", func() error {
		// The connection may just be on its way to the server.
		stream, err := js.Stream(c.t.Context(), wire.StreamConfig)
		if err == nil {
			state = stream.CachedInfo().State
		}
		return err
	})
	return state
}

// inForce says why the rig's harness does not hold what CONFIG does.
func (c *cluster) inForce(js jetstream.JetStream, r *rig) error {
	stream, err := js.Stream(c.t.Context(), wire.StreamConfig)
	if err != nil {
		return err
	}
	last, err := stream.GetLastMsgForSubject(c.t.Context(), wire.ConfigSubject(r.name, wire.ConfigModelRoute))
	if err != nil {
		return err
	}
	client := harness.New(filepath.Join(r.dir, "s"), bustest.Wait)
	defer client.Close()
	held, err := client.HeldConfig(c.t.Context(), wire.ConfigModelRoute)
	if err != nil {
		return err
	}
	if want := last.Header.Get(wire.HeaderRevision); held.Revision != want {
		return fmt.Errorf("it has revision %q, and the bus %q", held.Revision, want)
	}
	return nil
}
