package faults

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/wire"
)

// commandsTold is how many commands each rig is given while parts die.
const commandsTold = 25

// Promise: a command is applied once. While control, the bus, harnesses and
// supervisors die again and again by SIGKILL, and answers are lost both ways,
// every command that control was given gets its outcome: one event in its
// rig's ledger, what it says done once, a run's commands in their order; and
// control has that outcome and no other, and the bus no command left.
func TestCommandsOfRigsThatDie(t *testing.T) {
	// Nobody listens at the broker's socket, so runs begin and no trial does.
	c := start(t, 2, 0, 1, "--broker", "/nonexistent/broker.sock", "--trial-listen", "127.0.0.1:0", "--worker", "/bin/true")
	random := rand.New(rand.NewPCG(c.seed(), 1))
	for _, r := range c.rigs {
		c.wait(time.Minute, "rig "+r.name+" to begin its run", func() error { return c.begin(r) })
	}
	counts := map[string]int{}
	told := map[string][]string{}
	for n := range commandsTold {
		for _, r := range c.rigs {
			title := fmt.Sprintf("idea %03d of %s", n, r.name)
			told[r.name] = append(told[r.name], title)
			c.wait(time.Minute, "control to take the command", func() error {
				return c.tryOnce(http.MethodPost, "/v1/rigs/"+r.name+"/runs/run-1/queue", title, map[string]string{"title": title}, nil)
			})
		}
		c.fault(random, counts, true)
	}
	t.Logf("while commands were given: %v", counts)
	c.settle()
	c.wait(5*time.Minute, "every command's outcome", c.noneIsPending)
	for _, r := range c.rigs {
		c.compareCommands(r, told[r.name])
	}
	if left := c.commandsOnBus(); left != 0 {
		c.fatal(fmt.Errorf("the bus still holds %d commands", left))
	}
}

// seed gives the seed of the faults, and logs it.
func (c *cluster) seed() uint64 {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	c.t.Logf("faults by -faults.seed=%d", seed)
	return seed
}

// begin has the rig's run begin, and waits until control knows.
func (c *cluster) begin(r *rig) error {
	body := map[string]any{"rig": r.name, "run": "run-1", "campaign": "c", "kit": map[string]string{"embedded": "bytecount"}, "worker": "tune"}
	if err := c.tryOnce(http.MethodPost, "/v1/runs", "begin "+r.name, body, nil); err != nil {
		return err
	}
	var view struct {
		State string `json:"state"`
	}
	if err := c.tryCall(http.MethodGet, "/v1/rigs/"+r.name+"/runs/run-1", nil, &view); err != nil {
		return err
	}
	if view.State != "running" {
		return fmt.Errorf("it is %s", view.State)
	}
	return nil
}

// commandRow is a command as control shows it.
type commandRow struct {
	ID    string `json:"id"`
	Rig   string `json:"rig"`
	Kind  string `json:"kind"`
	State string `json:"state"`
	Why   string `json:"why"`
}

// commandsOf gives the rig's commands as control has them, the oldest first.
func (c *cluster) commandsOf(rig string) (all []commandRow, err error) {
	after := ""
	for {
		var page struct {
			Commands []commandRow `json:"commands"`
			Next     string       `json:"next"`
		}
		if err := c.tryCall(http.MethodGet, "/v1/commands?limit=100&rig="+rig+"&after="+after, nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Commands...)
		if after = page.Next; after == "" {
			slices.Reverse(all)
			return all, nil
		}
	}
}

func (c *cluster) noneIsPending() error {
	for _, r := range c.rigs {
		all, err := c.commandsOf(r.name)
		if err != nil {
			return err
		}
		for _, row := range all {
			if row.State == "pending" {
				return fmt.Errorf("command %s of rig %s is %s", row.ID, r.name, row.State)
			}
		}
	}
	return nil
}

// compareCommands holds what control has of the rig's commands, and what the
// ledger has, against what was told.
func (c *cluster) compareCommands(r *rig, told []string) {
	c.t.Helper()
	rows, err := c.commandsOf(r.name)
	if err != nil {
		c.fatal(err)
	}
	if len(rows) != len(told)+1 {
		c.fatal(fmt.Errorf("control has %d commands of rig %s, which was given %d", len(rows), r.name, len(told)+1))
	}
	_, raw := ledgerEvents(c.t, r)
	var added, outcomes []string
	for _, b := range raw {
		e, err := wire.DecodeEvent(b)
		if err != nil {
			c.fatal(err)
		}
		switch e.Kind {
		case wire.KindQueue:
			if q, err := wire.DecodeBody[wire.Queue](e); err == nil && q.Op == wire.QueueAdded && strings.HasPrefix(q.Title, "idea ") {
				added = append(added, q.Title)
			}
		case wire.KindCommand:
			b, err := wire.DecodeBody[wire.CommandTaken](e)
			if err != nil {
				c.fatal(err)
			}
			outcomes = append(outcomes, b.ID+" "+b.Outcome)
		case wire.KindCommandRejected:
			c.fatal(fmt.Errorf("rig %s refused a command: %s", r.name, e.Body))
		}
	}
	var want []string
	for _, row := range rows {
		want = append(want, row.ID+" "+row.State)
	}
	if !slices.Equal(outcomes, want) {
		c.t.Errorf("rig %s recorded (-control +rig):\n%s", r.name, cmp.Diff(want, outcomes))
	}
	if !slices.Equal(added, told) {
		c.t.Errorf("rig %s did (-told +did):\n%s", r.name, cmp.Diff(told, added))
	}
	c.t.Logf("rig %s: %d commands, each applied once and in order", r.name, len(outcomes))
}

// commandsOnBus counts the commands on the bus.
func (c *cluster) commandsOnBus() uint64 {
	c.t.Helper()
	js := c.stream()
	stream, err := js.Stream(c.t.Context(), wire.StreamCommands)
	if err != nil {
		c.t.Fatal(err)
	}
	return stream.CachedInfo().State.Msgs
}
