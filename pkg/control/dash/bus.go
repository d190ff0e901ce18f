package dash

import (
	"thermite/pkg/control/service"
)

type busPage struct {
	frame
	Bus  service.BusState
	Rigs []service.RigSummary
}

// bus shows the message bus as control sees it.
func (d *Dash) bus(v *visit) error {
	f, err := v.frame("Message bus", "bus")
	if err != nil {
		return err
	}
	f.Live = true
	state, err := d.service.Bus(v.r.Context(), v.caller)
	if err != nil {
		return err
	}
	list, err := d.service.Rigs(v.r.Context(), v.caller, service.PageQuery{Limit: mostRigs})
	if err != nil {
		return err
	}
	page := busPage{frame: f, Bus: state}
	for _, r := range list.Rigs {
		if r.Connection.State != service.ConnectionRetired {
			page.Rigs = append(page.Rigs, r)
		}
	}
	return v.ok("bus", page)
}

// StoreFull is how much of its room the bus's store takes, in percent.
func (p busPage) StoreFull() int {
	if p.Bus.Server == nil || p.Bus.Server.StoreMaxBytes == 0 {
		return 0
	}
	return int(min(100, float64(p.Bus.Server.StoreBytes)/float64(p.Bus.Server.StoreMaxBytes)*100))
}
