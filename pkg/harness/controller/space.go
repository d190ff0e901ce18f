package controller

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"thermite/pkg/harness/judge"
	"thermite/pkg/harness/repos"
	"thermite/pkg/harness/state"
	"thermite/pkg/wire"
)

// A thing is what the rig keeps, with what removes it.
type thing struct {
	wire.SpaceItem
	// remove says whether it is gone: not if something uses it by now.
	remove func() (bool, error)
}

// newPatch is how long a patch that no run is known of may be one whose
// attempt is being recorded.
const newPatch = time.Hour

// Space says what the rig keeps.
func (c *Controller) Space(ctx context.Context) (wire.SpaceReport, error) {
	c.space.RLock()
	defer c.space.RUnlock()
	facts, all, err := c.things(ctx)
	if err != nil {
		return wire.SpaceReport{}, fmt.Errorf("looking at what the rig keeps: %w", err)
	}
	items := make([]wire.SpaceItem, len(all))
	for i, t := range all {
		items[i] = t.SpaceItem
	}
	r := wire.NewSpaceReport(facts.ledger, wire.At(c.cfg.Now()), items)
	if c.cfg.Work != nil {
		r.DiskBytes, r.DiskFree = disk(c.cfg.Work.Kits.dir)
	}
	return r, nil
}

// disk gives what the path's file system has, and what of it is free.
func disk(path string) (bytes, free uint64) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, 0
	}
	return s.Blocks * uint64(s.Bsize), s.Bavail * uint64(s.Bsize)
}

// keepFacts are what the ledger says of what must stay.
type keepFacts struct {
	ledger string
	now    time.Time
	// open are the runs that go on, or have an attempt to judge.
	open map[string]bool
	// kits are the newest run of each kit, whether one of its runs is open,
	// and whether its files can be had again.
	kits map[string]kitFacts
	// champions are each run's now: its build stays.
	champions map[judge.Of]bool
	// patches are those that stay: of open runs, and of all that ever was a
	// champion, as a run's repository is made of them.
	patches map[string]patchFacts
}

type kitFacts struct {
	run      string
	open     bool
	embedded bool
}

type patchFacts struct {
	run            string
	open, champion bool
}

// facts reads them from the state.
func (c *Controller) facts(ctx context.Context) (f keepFacts, err error) {
	f = keepFacts{open: map[string]bool{}, kits: map[string]kitFacts{}, champions: map[judge.Of]bool{}, patches: map[string]patchFacts{}}
	at, err := c.cfg.Ledger.State()
	if err != nil {
		return f, err
	}
	f.ledger = at.Ledger
	err = c.look(ctx, func(s *state.State, now time.Time) error {
		f.now = now
		for _, r := range s.Runs {
			f.add(r)
		}
		return nil
	})
	return f, err
}

func (f *keepFacts) add(r *state.Run) {
	open := r.Ended == "" || r.Waiting()
	f.open[r.Name] = open
	if source := r.Created.Source; source != nil {
		k := f.kits[source.Digest]
		f.kits[source.Digest] = kitFacts{run: r.Name, open: k.open || open, embedded: source.Embedded != ""}
	}
	if len(r.Crowns) > 0 {
		f.champions[judge.Of{Ledger: f.ledger, Run: r.Name, Attempt: r.Champion()}] = true
	}
	was := map[uint64]bool{}
	for _, champion := range r.Champions {
		was[champion.Attempt] = true
	}
	for i, a := range r.Attempts {
		if champion := was[uint64(i)+1]; a.Patch != "" && (open || champion) {
			p := f.patches[a.Patch]
			f.patches[a.Patch] = patchFacts{run: r.Name, open: p.open || open, champion: p.champion || champion}
		}
	}
}

// things lists all that the rig keeps.
func (c *Controller) things(ctx context.Context) (facts keepFacts, all []thing, err error) {
	if facts, err = c.facts(ctx); err != nil || c.cfg.Work == nil {
		return facts, nil, err
	}
	for _, list := range []func(keepFacts) ([]thing, error){c.cfg.Work.keptByJudge, c.cfg.Work.keptKits, c.cfg.Work.keptRepos, c.cfg.Work.keptPatches} {
		some, err := list(facts)
		if err != nil {
			return facts, nil, err
		}
		all = append(all, some...)
	}
	return facts, all, nil
}

func (w *Work) keptByJudge(f keepFacts) (all []thing, err error) {
	kept, err := w.Judge.Kept()
	for _, k := range kept {
		i := wire.SpaceItem{Kind: wire.SpaceSetup, Name: short(k.Key), At: wire.At(k.At), Bytes: k.Bytes, Files: k.Files, Busy: k.Busy}
		if k.Digest != "" {
			kit := f.kits[k.Digest]
			i.Run, i.Open = kit.run, kit.open
		} else {
			i.Kind = wire.SpaceBuild
			for _, of := range k.Of {
				if of.Ledger == f.ledger {
					i.Run, i.Open, i.Champion = of.Run, i.Open || f.open[of.Run], i.Champion || f.champions[of]
				}
			}
		}
		all = append(all, thing{i, func() (bool, error) { return w.Judge.Remove(k.Key) }})
	}
	return all, err
}

func (w *Work) keptKits(f keepFacts) (all []thing, err error) {
	kits, err := w.Kits.List()
	for _, digest := range sorted(kits) {
		of := f.kits[digest]
		i := wire.SpaceItem{Kind: wire.SpaceKit, Run: of.run, Name: short(digest), Open: of.open}
		// A kit of a repository can't be had again: its runs' champions could
		// then be judged no more.
		i.Champion = of.run != "" && !of.embedded
		i.Bytes, i.Files = judge.Usage(kits[digest])
		i.At = wire.At(modified(kits[digest], f.now))
		all = append(all, thing{i, func() (bool, error) { return true, w.Kits.Remove(digest) }})
	}
	return all, err
}

func (w *Work) keptRepos(f keepFacts) (all []thing, err error) {
	runs, err := w.Repos.List()
	for run, paths := range runs {
		i := wire.SpaceItem{Kind: wire.SpaceRepository, Name: run.Ledger + "-" + run.Run}
		if run.Ledger == f.ledger {
			i.Run, i.Open = run.Run, f.open[run.Run]
		}
		for _, p := range paths {
			bytes, n := judge.Usage(p)
			i.Bytes, i.Files = i.Bytes+bytes, i.Files+n
			if at := wire.At(modified(p, f.now)); at.Time().After(i.At.Time()) {
				i.At = at
			}
		}
		all = append(all, thing{i, func() (bool, error) { return true, w.Repos.Remove(repos.Run(run)) }})
	}
	slices.SortFunc(all, func(a, b thing) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// keptPatches gives the patches by their run, and by whether they stay.
func (w *Work) keptPatches(f keepFacts) (all []thing, err error) {
	kept, err := w.Patches.List()
	if err != nil {
		return nil, err
	}
	of, err := w.Patches.Runs()
	if err != nil {
		return nil, err
	}
	type group struct {
		run                  string
		open, champion, busy bool
	}
	items, sums := map[group]*wire.SpaceItem{}, map[group][]string{}
	var order []group
	for _, p := range kept {
		stays := f.patches[p.Sum]
		g := group{run: stays.run, open: stays.open, champion: stays.champion}
		for _, run := range of[p.Sum] {
			if _, known := f.open[run]; known && g.run == "" {
				g.run = run
			}
			g.open = g.open || f.open[run]
		}
		g.busy = g.run == "" && f.now.Sub(p.At) < newPatch
		if items[g] == nil {
			items[g] = &wire.SpaceItem{Kind: wire.SpacePatches, Run: g.run, Name: patchesName(g.open, g.champion), Open: g.open, Champion: g.champion, Busy: g.busy}
			order = append(order, g)
		}
		i := items[g]
		i.Bytes, i.Files = i.Bytes+p.Bytes, i.Files+1
		if p.At.After(i.At.Time()) {
			i.At = wire.At(p.At)
		}
		sums[g] = append(sums[g], p.Sum)
	}
	for _, g := range order {
		all = append(all, thing{*items[g], func() (bool, error) { return true, w.Patches.Remove(sums[g]...) }})
	}
	slices.SortFunc(all, func(a, b thing) int { return strings.Compare(a.Run+a.Name, b.Run+b.Name) })
	return all, nil
}

func patchesName(open, champion bool) string {
	switch {
	case champion:
		return "of champions"
	case open:
		return "of attempts"
	}
	return "of attempts that did not win"
}

// short is a name short enough to read.
func short(s string) string {
	const most = 24
	return s[:min(len(s), most)]
}

// modified is when a path was changed last; now if that can't be known.
func modified(path string, now time.Time) time.Time {
	info, err := os.Lstat(path)
	if err != nil {
		return now
	}
	return info.ModTime()
}
