package views

import (
	"cmp"
	"slices"

	"thermite/pkg/wire"
)

// Campaign is a question that several runs, on any rigs, work on.
type Campaign struct {
	Campaign string    `json:"campaign" doc:"Its name"`
	Rigs     []string  `json:"rigs" nullable:"false" doc:"The rigs that worked on it, by name"`
	Runs     int       `json:"runs" doc:"How many runs it has"`
	Running  int       `json:"running" doc:"How many of them go on"`
	Attempts uint64    `json:"attempts" doc:"How many attempts they have"`
	Last     wire.Time `json:"last" doc:"When its last event was"`
	Boards   []Board   `json:"boards" nullable:"false" doc:"Its leaderboards: scores of another kit, or by another metric, can't be compared"`
}

// Board ranks the runs of a campaign whose scores can be compared.
type Board struct {
	Kit     string       `json:"kit" doc:"Their kit"`
	Version string       `json:"kit_version,omitzero" doc:"The kit's version"`
	Digest  string       `json:"kit_digest,omitzero" doc:"The digest of the kit as it was staged"`
	Metric  *wire.Metric `json:"metric,omitzero" doc:"What their scores are"`
	Entries []Entry      `json:"entries" nullable:"false" doc:"The runs, the best first; those without a score last"`
}

// Entry is a run on a leaderboard.
type Entry struct {
	Rank     int        `json:"rank,omitzero" doc:"From 1; runs with the same score share it; absent without a score"`
	Rig      string     `json:"rig" doc:"The rig"`
	Run      string     `json:"run" doc:"The run"`
	Title    string     `json:"title,omitzero" doc:"Its title"`
	State    string     `json:"state" doc:"running, paused, ended or seen"`
	Worker   string     `json:"worker,omitzero" doc:"The program that works on its trials"`
	Attempts uint64     `json:"attempts" doc:"How many attempts there were"`
	Base     *float64   `json:"base,omitzero" doc:"The score of the kit's base"`
	Best     *Champion  `json:"best,omitzero" doc:"Its champion"`
	Steps    []Champion `json:"steps" nullable:"false" doc:"All its champions, oldest first"`
	Started  *Mark      `json:"started,omitzero" doc:"The event that created it"`
	Last     Mark       `json:"last" doc:"Its last event"`
}

// Campaigns gives the campaigns of the rigs' runs, by name, each with its
// leaderboards. Of says which campaign a run is in; "" leaves it to the run.
func Campaigns(rigs []Rig, of func(rig, run string) string) []Campaign {
	all := map[string]*Campaign{}
	for _, rig := range rigs {
		for _, r := range rig.Runs {
			name := cmp.Or(of(rig.Rig, r.Run), r.Campaign, r.Run)
			c := all[name]
			if c == nil {
				c = &Campaign{Campaign: name}
				all[name] = c
			}
			c.add(rig.Rig, r)
		}
	}
	list := make([]Campaign, 0, len(all))
	for _, c := range all {
		slices.Sort(c.Rigs)
		slices.SortFunc(c.Boards, func(a, b Board) int {
			return cmp.Or(cmp.Compare(a.Kit, b.Kit), cmp.Compare(b.Version, a.Version), cmp.Compare(a.Digest, b.Digest))
		})
		for i := range c.Boards {
			c.Boards[i].rank()
		}
		list = append(list, *c)
	}
	slices.SortFunc(list, func(a, b Campaign) int { return cmp.Compare(a.Campaign, b.Campaign) })
	return list
}

func (c *Campaign) add(rig string, r Run) {
	c.Runs++
	if r.State == RunRunning {
		c.Running++
	}
	c.Attempts += r.Attempts
	if r.Last.Time.Time().After(c.Last.Time()) {
		c.Last = r.Last.Time
	}
	if !slices.Contains(c.Rigs, rig) {
		c.Rigs = append(c.Rigs, rig)
	}
	e := Entry{Rig: rig, Run: r.Run, Title: r.Title, State: r.State, Worker: r.Worker, Attempts: r.Attempts, Best: r.Champion,
		Steps: r.Champions, Started: r.Started, Last: r.Last}
	if r.Base != nil {
		e.Base = r.Base.Score
	}
	b := c.board(r)
	b.Entries = append(b.Entries, e)
}

// board gives the board for scores such as the run's.
func (c *Campaign) board(r Run) *Board {
	var digest string
	if r.Source != nil {
		digest = r.Source.Digest
	}
	for i := range c.Boards {
		if b := &c.Boards[i]; b.Kit == r.Kit && b.Version == r.KitVersion && b.Digest == digest && sameMetric(b.Metric, r.Metric) {
			return b
		}
	}
	c.Boards = append(c.Boards, Board{Kit: r.Kit, Version: r.KitVersion, Digest: digest, Metric: r.Metric})
	return &c.Boards[len(c.Boards)-1]
}

func sameMetric(a, b *wire.Metric) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Name == b.Name && a.Unit == b.Unit && a.Direction == b.Direction
}

// rank puts the best run first; of runs with the same score, the one that had
// it first; those without a score last.
func (b *Board) rank() {
	slices.SortStableFunc(b.Entries, func(x, y Entry) int {
		if c := b.compare(x, y); c != 0 || x.score() == nil {
			return c
		}
		return x.Best.Time.Time().Compare(y.Best.Time.Time())
	})
	for i := range b.Entries {
		switch e := &b.Entries[i]; {
		case e.score() == nil:
		case i > 0 && b.compare(b.Entries[i-1], *e) == 0:
			e.Rank = b.Entries[i-1].Rank
		default:
			e.Rank = i + 1
		}
	}
}

// compare compares two entries by their scores.
func (b *Board) compare(x, y Entry) int {
	of, than := x.score(), y.score()
	switch {
	case of == nil && than == nil:
		return 0
	case of == nil:
		return 1
	case than == nil:
		return -1
	case b.Metric != nil && b.Metric.Direction == wire.DirectionMin:
		return cmp.Compare(*of, *than)
	}
	return cmp.Compare(*than, *of)
}

// score is the entry's best score, if it has one.
func (e Entry) score() *float64 {
	if e.Best == nil {
		return nil
	}
	return e.Best.Score
}
