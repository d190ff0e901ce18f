package mcp

import (
	"context"

	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// promptAPage is how much of a prompt's text one answer has, in bytes.
const promptAPage = 16 << 10

// promptPage is a part of a prompt.
type promptPage struct {
	Rig   string    `json:"rig" doc:"The rig"`
	Run   string    `json:"run" doc:"The run"`
	Seq   uint64    `json:"seq" doc:"The place of its event in the EVENTS stream"`
	Time  wire.Time `json:"time" doc:"When it was told"`
	Actor string    `json:"actor" doc:"Who told it"`
	Trial uint64    `json:"trial,omitzero" doc:"The trial whose agent was told"`
	Text  string    `json:"text" doc:"A part of the text"`
	Bytes uint64    `json:"bytes" doc:"How long the whole text is, in bytes"`
	Next  int       `json:"next,omitzero" doc:"Give this as after for the next part; absent on the last"`
}

// promptTools are the tools that read what a run's agents were told.
func (m *Server) promptTools(b *book) {
	type list struct {
		InRun
		Page
		InLedger
		Trial uint64 `json:"trial,omitzero" maximum:"9007199254740991" doc:"Only what this trial's agent was told"`
	}
	add(b, tool{name: "list_prompts", title: "A run's prompts", words: "What a run's agents were told, the oldest first, each with the start of its text."},
		func(ctx context.Context, c service.Caller, in list) (service.PromptList, error) {
			l, err := m.service.Prompts(ctx, c, in.name(), service.PromptsQuery{PageQuery: in.query(), Trial: in.Trial, Ledger: in.Ledger})
			for i := range l.Prompts {
				if p := &l.Prompts[i]; len(p.Text) > maxText {
					p.Text, p.Clipped = start(p.Text, maxText), true
				}
			}
			return l, err
		})
	type one struct {
		InRun
		InLedger
		Seq   uint64 `json:"seq" minimum:"1" maximum:"9007199254740991" doc:"The prompt's seq, as list_prompts has it"`
		After int    `json:"after,omitzero" minimum:"0" maximum:"16777216" doc:"The next of the part before; absent for the first"`
	}
	add(b, tool{name: "prompt", title: "View a prompt", words: "What an agent was told, 16 KiB at a time."},
		func(ctx context.Context, c service.Caller, in one) (promptPage, error) {
			p, err := m.service.Prompt(ctx, c, in.name(), in.Seq, service.RunQuery{Ledger: in.Ledger})
			if err != nil {
				return promptPage{}, err
			}
			text, next := part(p.Text, in.After, promptAPage)
			return promptPage{Rig: p.Rig, Run: p.Run, Seq: p.Seq, Time: p.Time, Actor: p.Actor, Trial: p.Trial, Text: text, Bytes: p.Bytes, Next: next}, nil
		})
}
