package mcp

import (
	"context"
	"time"

	"thermite/pkg/control/service"
)

// liveTools are the tools that read what agents do as they do it.
func (m *Server) liveTools(b *book) {
	type lines struct {
		Rig   string `json:"rig,omitzero" maxLength:"40" doc:"Only this rig's; absent, every rig's"`
		Run   string `json:"run,omitzero" maxLength:"40" doc:"Only those of this run of the rig"`
		Limit int    `json:"limit,omitzero" minimum:"1" maximum:"100" doc:"The most lines to give, the newest; 20 when absent"`
		After string `json:"after,omitzero" maxLength:"80" doc:"The next of the answer before, for the lines that follow; absent, the newest lines"`
		Wait  int    `json:"wait_seconds,omitzero" minimum:"0" maximum:"30" doc:"How long to wait for a line when there is none yet"`
	}
	add(b, tool{name: "live_lines", title: "The live lines", words: "What the rigs' agents, judges and controllers are doing: the newest lines of every run, of a rig or of one run. It is a view of now: the record is the events."},
		func(ctx context.Context, c service.Caller, in lines) (service.LivePage, error) {
			if in.Limit == 0 {
				in.Limit = defaultPage
			}
			p, err := m.service.LiveLines(ctx, c, service.LiveQuery{Rig: in.Rig, Run: in.Run, After: in.After, Limit: in.Limit, Wait: time.Duration(in.Wait) * time.Second})
			p.Sources, p.Runs = first(p.Sources, maxPage), first(p.Runs, defaultPage)
			for i := range p.Lines {
				p.Lines[i].Text = start(p.Lines[i].Text, maxText)
			}
			for i := range p.Runs {
				p.Runs[i].Last.Text = start(p.Runs[i].Last.Text, maxText)
			}
			return p, err
		})
}
