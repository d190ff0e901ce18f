package dash

import (
	"net/http"
	"net/url"

	"thermite/pkg/control/service"
)

type rigCommandsPage struct {
	frame
	Rig      string
	Commands []service.Command
	Next     string
	Problem  *problem
}

// rigCommands shows a page of what control told a rig to do.
func (d *Dash) rigCommands(v *visit) error { return v.showRigCommands(nil, http.StatusOK) }

func (v *visit) showRigCommands(p *problem, status int) error {
	rig := v.r.PathValue("rig")
	f, err := v.frame("Commands of rig "+rig, "rigs")
	if err != nil {
		return err
	}
	f.Live = p == nil
	page := rigCommandsPage{frame: f, Rig: rig, Problem: p}
	list, err := v.d.service.Commands(v.r.Context(), v.caller, service.CommandQuery{PageQuery: service.PageQuery{After: v.r.URL.Query().Get("after")}, Rig: rig})
	if err != nil {
		return err
	}
	page.Commands = list.Commands
	if list.Next != "" {
		page.Next = "/rigs/" + url.PathEscape(rig) + "/commands?after=" + url.QueryEscape(list.Next)
	}
	return v.render("rig-commands", status, page)
}

// cancelCommand takes a command back.
func (d *Dash) cancelCommand(v *visit) error {
	if _, err := d.service.CancelCommand(v.r.Context(), v.caller, v.r.PathValue("command")); err != nil {
		p, status := v.problemOf(err)
		return v.showRigCommands(p, status)
	}
	return v.goTo("/rigs/" + url.PathEscape(v.r.PathValue("rig")) + "/commands")
}
