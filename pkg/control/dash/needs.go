package dash

import (
	"net/url"

	"thermite/pkg/control/service"
)

type needsPage struct {
	frame
	Cards   []card
	Problem *problem
}

// card is a need with what answers it.
type card struct {
	service.Need
	// Rig is the address of the rig it is about.
	Rig string
	// Waiting is the report key that the owner may accept, and Held the one
	// that control takes now.
	Waiting, Held *service.Key
}

// needs shows what waits for the owner.
func (d *Dash) needs(v *visit) error { return v.showNeeds(nil, 200) }

func (v *visit) showNeeds(p *problem, status int) error {
	f, err := v.frame("Needs you", "needs")
	if err != nil {
		return err
	}
	f.Live = true
	page := needsPage{frame: f, Problem: p}
	list, err := v.d.service.Needs(v.r.Context(), v.caller)
	if err != nil {
		return err
	}
	rigs, err := v.rigsByName()
	if err != nil {
		return err
	}
	for _, n := range list.Needs {
		c := card{Need: n}
		if r, ok := rigs[n.Subject]; ok {
			c.Rig = "/rigs/" + url.PathEscape(n.Subject)
			if r.KeyWaiting && !n.CanBeSeen {
				full, err := v.d.service.Rig(v.r.Context(), v.caller, n.Subject, service.RigQuery{})
				if err != nil {
					return err
				}
				c.Waiting, c.Held = full.Keys.Waiting, full.Keys.Report
			}
		}
		page.Cards = append(page.Cards, c)
	}
	return v.render("needs", status, page)
}

// rigsByName gives every rig's line.
func (v *visit) rigsByName() (map[string]service.RigSummary, error) {
	all := map[string]service.RigSummary{}
	for q := (service.PageQuery{Limit: service.MaxPage}); ; {
		list, err := v.d.service.Rigs(v.r.Context(), v.caller, q)
		if err != nil {
			return nil, err
		}
		for _, r := range list.Rigs {
			all[r.Name] = r
		}
		if q.After = list.Next; q.After == "" {
			return all, nil
		}
	}
}

// seeNeed ends a need that seeing ends.
func (d *Dash) seeNeed(v *visit) error {
	if err := d.service.SeeNeed(v.r.Context(), v.caller, v.r.PathValue("id")); err != nil {
		p, status := v.problemOf(err)
		return v.showNeeds(p, status)
	}
	return v.goTo("/needs")
}
