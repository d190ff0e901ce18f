package dash

import "thermite/pkg/control/service"

type runHistoryPage struct {
	runFrame
	// Lines are those of the rig's newest events that are of the run.
	Lines    []line
	Commands []service.Command
	More     string
}

// How many commands and events the page has, which is no list of them.
const (
	commandsShown = 20
	runEvents     = 40
)

func (v *visit) showHistory(p *problem, status int) error {
	f, err := v.runFrame(tabHistory, p)
	if err != nil {
		return err
	}
	page := runHistoryPage{runFrame: f}
	full, err := v.d.service.Rig(v.r.Context(), v.caller, f.Rig, service.RigQuery{Ledger: f.Ledger})
	if err != nil {
		return err
	}
	for _, l := range full.View.Recent {
		if l.Run == f.Run.Run && len(page.Lines) < runEvents {
			page.Lines = append(page.Lines, line{l, f.Ledger})
		}
	}
	list, err := v.d.service.Commands(v.r.Context(), v.caller, service.CommandQuery{PageQuery: service.PageQuery{Limit: commandsShown}, Rig: f.Rig, Run: f.Run.Run})
	if err != nil {
		return err
	}
	if page.Commands = list.Commands; list.Next != "" {
		page.More = "/rigs/" + f.Rig + "/commands"
	}
	return v.render("run-history", status, page)
}
