package faults

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

var (
	seedFlag  = flag.Uint64("faults.seed", 0, "seed of the faults; 0 takes one from the clock and logs it")
	killsFlag = flag.Int("faults.kills", 200, "how many kills at least")
)

// The promise: an event is in EVENTS once, in its ledger's order, whatever is
// killed, lost or full. Every part dies again and again, by SIGKILL, while a
// rig writes 20,000 events; the bus's store fills, and answers are lost.
func TestKillsOfOneRig(t *testing.T) {
	c := start(t, 1, 20_000, 150)
	c.torment(20_000)
	c.settle()
	c.compare()
}

// The same with 20 rigs at once, which share control and the bus.
func TestKillsOfTwentyRigs(t *testing.T) {
	c := start(t, 20, 1_000, 8)
	c.torment(1_000)
	c.settle()
	c.compare()
}

// torment kills parts, loses answers and fills the store until every rig has
// written total events and there were enough kills, all of them before the
// last event.
func (c *cluster) torment(total uint64) {
	c.t.Helper()
	random := rand.New(rand.NewPCG(c.seed(), 0))
	counts := make(map[string]int)
	kills := 0
	for written := 0.0; written < 1; written = c.written(total) {
		// The kills keep up with the writing, on a slow machine too.
		calm := float64(kills) > written*1.2*float64(*killsFlag)
		c.fault(random, counts, calm)
		kills = counts["killed nats"] + counts["killed control"] + counts["killed harness"] + counts["killed supervisor"]
	}
	c.t.Logf("while the rigs wrote: %v", counts)
	if kills < *killsFlag {
		c.fatal(fmt.Errorf("only %d kills while the rigs wrote, where there are to be %d: the events came too fast", kills, *killsFlag))
	}
}

// written says how much of their total made events the rigs' ledgers hold,
// from 0 to 1.
func (c *cluster) written(total uint64) float64 {
	var sum uint64
	for _, r := range c.rigs {
		sum += min(last(c.t, r), total)
	}
	return float64(sum) / float64(total*uint64(len(c.rigs)))
}

// fault does one bad thing, and lets some time pass if it is calm.
func (c *cluster) fault(random *rand.Rand, counts map[string]int, calm bool) {
	r := c.rigs[random.IntN(len(c.rigs))]
	pause := func(least, most int) { <-time.After(time.Duration(least+random.IntN(most-least)) * time.Millisecond) }
	again := func(what string, p *process) {
		counts["killed "+what]++
		p.kill()
		pause(0, 60)
		p.start(c.t)
	}
	switch random.IntN(10) {
	case 0, 1:
		if c.maxStore = c.nextStore(random); c.maxStore < roomy {
			counts["small store"]++
		}
		again("nats", c.nats)
	case 2, 3:
		again("control", c.control)
	case 4, 5:
		again("harness", r.harness)
	case 6, 7:
		again("supervisor", r.supervisor)
	case 8:
		counts["lost answers to control"]++
		c.controlWay.LoseAnswers()
		pause(20, 200)
		c.controlWay.Resume()
	case 9:
		counts["lost answers to rigs"]++
		c.rigsWay.LoseAnswers()
		pause(20, 200)
		c.rigsWay.Resume()
	}
	if calm {
		pause(50, 500)
	}
}

// nextStore gives what the bus's store may hold next: often little more than
// it holds, so that it fills soon.
func (c *cluster) nextStore(random *rand.Rand) int64 {
	var state struct {
		Server struct {
			StoreBytes int64 `json:"store_bytes"`
		} `json:"server"`
	}
	if random.IntN(2) == 0 || c.tryCall("GET", "/v1/bus", nil, &state) != nil || state.Server.StoreBytes == 0 {
		return roomy
	}
	return max(liveMiB<<20, state.Server.StoreBytes) + random.Int64N(200<<10)
}

// settle ends the faults, and waits until control holds all that the ledgers
// hold.
func (c *cluster) settle() {
	c.t.Helper()
	c.maxStore = roomy
	c.nats.kill()
	c.nats.start(c.t)
	for _, p := range c.parts() {
		if p.ended() {
			c.fatal(fmt.Errorf("%s ended by itself", p.name))
		}
	}
	c.wait(8*time.Minute, "control to hold every ledger's end", func() error {
		held, err := c.held()
		if err != nil {
			return err
		}
		for _, r := range c.rigs {
			if want := last(c.t, r); held[r.name] != want {
				return fmt.Errorf("control holds rig %s to event %d of %d", r.name, held[r.name], want)
			}
		}
		return nil
	})
}
