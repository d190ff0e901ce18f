package dash

import "thermite/pkg/control/service"

type kitsPage struct {
	frame
	Kits []service.KitSummary
}

// kits shows the kits that ship.
func (d *Dash) kits(v *visit) error {
	f, err := v.frame("Kits", "kits")
	if err != nil {
		return err
	}
	list, err := d.service.Kits(v.r.Context(), v.caller)
	if err != nil {
		return err
	}
	return v.ok("kits", kitsPage{f, list.Kits})
}

type kitPage struct {
	frame
	service.KitView
	Runs []service.RunSummary
}

// runsOfKit is how many runs a kit's page shows.
const runsOfKit = 10

// kit shows a kit, and the newest runs with it.
func (d *Dash) kit(v *visit) error {
	k, err := d.service.Kit(v.r.Context(), v.caller, v.r.PathValue("kit"))
	if err != nil {
		return err
	}
	f, err := v.frame("Kit "+k.Name, "kits")
	if err != nil {
		return err
	}
	page := kitPage{frame: f, KitView: k}
	list, err := d.service.Runs(v.r.Context(), v.caller, service.RunsQuery{PageQuery: service.PageQuery{Limit: service.MaxPage}})
	if err != nil {
		return err
	}
	for _, r := range list.Runs {
		if r.Kit == k.Name && len(page.Runs) < runsOfKit {
			page.Runs = append(page.Runs, r)
		}
	}
	return v.ok("kit", page)
}
