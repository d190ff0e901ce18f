package dash

import (
	"cmp"
	"crypto/rand"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// sortedKeys gives the names of m, sorted.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

type startPage struct {
	frame
	Rigs    []string
	Kits    []service.KitSummary
	Typed   startForm
	Key     string
	Problem *problem
}

// startForm is the form that starts a run, as it was typed.
type startForm struct {
	Rig, Kit, Git, Commit, Run, Campaign, Title, Worker, Args, Lanes, Seed, Attempts, Time string
}

// startRunForm shows the form that starts a run.
func (d *Dash) startRunForm(v *visit) error {
	q := v.r.URL.Query()
	return v.showStart(startForm{Rig: q.Get("rig"), Kit: q.Get("kit"), Campaign: q.Get("campaign"), Worker: "tune", Lanes: "1", Time: "10m"}, nil, http.StatusOK)
}

func (v *visit) showStart(typed startForm, p *problem, status int) error {
	f, err := v.frame("Start a run", "runs")
	if err != nil {
		return err
	}
	page := startPage{frame: f, Typed: typed, Key: rand.Text(), Problem: p}
	kits, err := v.d.service.Kits(v.r.Context(), v.caller)
	if err != nil {
		return err
	}
	page.Kits = kits.Kits
	rigs, err := v.rigsByName()
	if err != nil {
		return err
	}
	for _, name := range sortedKeys(rigs) {
		if rigs[name].Connection.State != service.ConnectionRetired {
			page.Rigs = append(page.Rigs, name)
		}
	}
	if page.Typed.Kit == "" && page.Typed.Git == "" && len(page.Kits) > 0 {
		// The one that the worker tune can do the most with.
		page.Typed.Kit = slices.MaxFunc(page.Kits, func(a, b service.KitSummary) int { return cmp.Compare(a.TunableCount, b.TunableCount) }).Name
	}
	return v.render("start", status, page)
}

// otherKit is the choice of a kit that doesn't ship.
const otherKit = "git"

// startRun gives a rig a run, and leads to the run's page.
func (d *Dash) startRun(v *visit) error {
	typed := startForm{Rig: v.field("rig"), Kit: v.field("kit"), Git: strings.TrimSpace(v.field("git")), Commit: strings.TrimSpace(v.field("commit")),
		Run: strings.TrimSpace(v.field("run")), Campaign: strings.TrimSpace(v.field("campaign")), Title: strings.TrimSpace(v.field("title")),
		Worker: v.field("worker"), Args: v.field("args"), Lanes: v.field("lanes"), Seed: v.field("seed"), Attempts: v.field("attempts"), Time: v.field("time")}
	n, err := v.newRun(typed)
	if err == nil {
		var c service.Command
		if c, err = d.service.StartRun(v.r.Context(), v.caller, n, v.field("key")); err == nil {
			return v.goTo(runAddress(c.Rig, c.Run) + "?command=" + url.QueryEscape(c.ID))
		}
	}
	p, status := v.problemOf(err)
	return v.showStart(typed, p, status)
}

// newRun reads the form.
func (v *visit) newRun(f startForm) (n service.NewRun, err error) {
	n = service.NewRun{Rig: f.Rig, Run: f.Run, Campaign: f.Campaign, Title: f.Title, Worker: f.Worker, Kit: wire.KitSource{Embedded: f.Kit}}
	if f.Kit == otherKit {
		n.Kit = wire.KitSource{Git: f.Git, Commit: f.Commit}
	}
	for line := range strings.Lines(f.Args) {
		if word := strings.TrimRight(line, "\r\n"); word != "" {
			n.WorkerArgs = append(n.WorkerArgs, word)
		}
	}
	if f.Worker != "exec" {
		n.WorkerArgs = nil
	}
	b, err := v.budget()
	if b != (wire.Budget{}) {
		n.Budget = &b
	}
	lanes, lanesErr := v.whole("lanes", "Lanes")
	seed, seedErr := v.whole("seed", "The seed")
	n.Lanes, n.Seed = lanes, seed
	return n, cmp.Or(err, lanesErr, seedErr)
}
