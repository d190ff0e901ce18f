package dash

import (
	"thermite/pkg/control/service"
)

type screenPage struct {
	frame
	Screen service.ScreenView
	Base   string
}

// screen shows what a trial's worker printed last. Looking has it watched:
// the page asks again and again.
func (d *Dash) screen(v *visit) error {
	trial, err := v.number("trial")
	if err != nil {
		return err
	}
	name := v.runName()
	s, err := d.service.TrialScreen(v.r.Context(), v.caller, name, trial, service.ScreenQuery{})
	if err != nil {
		return err
	}
	f, err := v.frame("A trial of run "+name.Run, "runs")
	if err != nil {
		return err
	}
	f.Live = true
	return v.ok("trial-screen", screenPage{frame: f, Screen: s, Base: runAddress(name.Rig, name.Run)})
}
