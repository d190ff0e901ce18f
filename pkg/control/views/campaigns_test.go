package views

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/wire"
)

// Promise: a campaign ranks the runs whose scores can be compared, by which
// scores are better; those with the same score share a rank, the first to
// have it first; a run without a score has none.
func TestCampaigns(t *testing.T) {
	least := &wire.Metric{Name: "wall", Unit: "s", Direction: wire.DirectionMin}
	most := &wire.Metric{Name: "sum", Direction: wire.DirectionMax}
	run := func(name, campaign, kit string, m *wire.Metric, score float64, minute int) Run {
		at := Mark{Time: wire.At(began.Add(time.Duration(minute) * time.Minute))}
		r := Run{Run: name, Campaign: campaign, Kit: kit, Metric: m, State: RunRunning, Attempts: 3, Last: at}
		if score != 0 {
			r.Champion = &Champion{Mark: at, Attempt: 1, Score: &score}
		}
		return r
	}
	got := Campaigns([]Rig{
		{Rig: "beta", Runs: []Run{run("a", "fast", "bytecount", least, 0.2, 5), run("b", "fast", "bytecount", least, 0.1, 9), run("c", "fast", "packing", most, 2, 1)}},
		{Rig: "alpha", Runs: []Run{run("a", "fast", "bytecount", least, 0.1, 7), run("d", "fast", "bytecount", least, 0, 1), run("e", "mine", "packing", most, 3, 1),
			run("f", "", "packing", most, 3, 1)}},
	}, func(rig, run string) string {
		if run == "e" {
			return "fast"
		}
		return ""
	})
	var said []string
	for _, c := range got {
		said = append(said, fmt.Sprintf("%s: %d runs, %d attempts, rigs %v, last %s", c.Campaign, c.Runs, c.Attempts, c.Rigs, c.Last))
		for _, b := range c.Boards {
			for _, e := range b.Entries {
				said = append(said, fmt.Sprintf("  %s %d: %s/%s", b.Kit, e.Rank, e.Rig, e.Run))
			}
		}
	}
	want := []string{
		"f: 1 runs, 3 attempts, rigs [alpha], last 2026-11-30T12:01:00.000000Z", "  packing 1: alpha/f",
		"fast: 6 runs, 18 attempts, rigs [alpha beta], last 2026-11-30T12:09:00.000000Z",
		"  bytecount 1: alpha/a", "  bytecount 1: beta/b", "  bytecount 3: beta/a", "  bytecount 0: alpha/d",
		"  packing 1: alpha/e", "  packing 2: beta/c",
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("the campaigns (-want +got):\n%s", diff)
	}
}
