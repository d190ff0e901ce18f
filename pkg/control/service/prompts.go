package service

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"thermite/pkg/wire"
)

// PromptStart is how much of a prompt's text a list tells, in bytes.
const PromptStart = 2 << 10

// PromptsQuery says which prompts of a run.
type PromptsQuery struct {
	PageQuery
	// Trial, when not 0, is the trial whose agent was told.
	Trial uint64
	// Ledger is the rig's ledger that the run is in; none is the current one.
	Ledger string
}

// Prompt is what an agent of a run was told.
type Prompt struct {
	Mark
	Actor   string `json:"actor" doc:"Who told it" example:"controller"`
	Trial   uint64 `json:"trial,omitzero" doc:"The trial whose agent was told; absent when it was none of a trial"`
	Bytes   uint64 `json:"bytes" doc:"How long the whole text is, in bytes"`
	Text    string `json:"text" doc:"The text"`
	Clipped bool   `json:"clipped,omitzero" doc:"Whether text is only the start: the prompt by its seq has all of it"`
}

// PromptList is a page of a run's prompts, in the order that they were told.
type PromptList struct {
	Rig     string   `json:"rig" doc:"The rig"`
	Run     string   `json:"run" doc:"The run"`
	Ledger  string   `json:"ledger" doc:"The rig's ledger that they are in"`
	Prompts []Prompt `json:"prompts" nullable:"false" doc:"The prompts, the oldest first, each with the start of its text"`
	Next    string   `json:"next,omitzero" doc:"Give this as after for the next page; absent on the last"`
}

// PromptView is a prompt with all of its text.
type PromptView struct {
	Rig string `json:"rig" doc:"The rig"`
	Run string `json:"run" doc:"The run"`
	Prompt
}

// Prompts gives a page of what the agents of a run were told, the oldest
// first: the rig's agent_prompt events on the run's subject, never those of
// another rig's run of the same name.
func (s *Service) Prompts(ctx context.Context, c Caller, name RunName, q PromptsQuery) (PromptList, error) {
	list := PromptList{Rig: name.Rig, Run: name.Run, Prompts: []Prompt{}}
	if err := c.Check(MayRead); err != nil {
		return list, err
	}
	limit, err := q.limit()
	if err != nil {
		return list, err
	}
	after, err := q.before()
	if err != nil {
		return list, err
	}
	r, err := s.findRun(ctx, name, q.Ledger)
	if err != nil {
		return list, err
	}
	list.Ledger = r.Ledger
	if told, err := s.prompted(ctx, r); err != nil || !told {
		return list, err
	}
	read := EventsQuery{After: max(uint64(after), r.First.Seq-1), Kinds: []string{wire.KindAgentPrompt}, Run: r.Run.Run}
	for more := true; more && read.After < r.Last.Seq; {
		page, err := s.readEvents(ctx, r.Rig, read)
		if err != nil {
			return list, err
		}
		for _, e := range page.Events {
			p, wants, err := q.read(e, r.Ledger)
			switch {
			case err != nil:
				return list, err
			case !wants:
			case len(list.Prompts) == limit:
				list.Next = strconv.FormatUint(list.Prompts[limit-1].Seq, 10)
				return list, nil
			default:
				list.Prompts = append(list.Prompts, p.start())
			}
		}
		more = page.More
		if read.After, err = strconv.ParseUint(page.Next, 10, 64); err != nil {
			return list, fmt.Errorf("reading the prompts of run %s of rig %s: %w", name.Run, r.Rig, err)
		}
	}
	return list, nil
}

// prompted says whether the ledger of the run has any prompt: the stream need
// not be read for none.
func (s *Service) prompted(ctx context.Context, r RunView) (bool, error) {
	rig, err := s.rig(ctx, r.Rig)
	if err != nil {
		return false, err
	}
	v, err := s.view(ctx, rig, r.Ledger)
	return slices.ContainsFunc(v.Kinds, func(c Count) bool { return c.Name == wire.KindAgentPrompt }), err
}

// read reads the prompt that the event is, if the query wants it.
func (q PromptsQuery) read(e Event, ledger string) (p Prompt, wants bool, err error) {
	if e.Ledger != ledger {
		return p, false, nil
	}
	d, err := e.Decode()
	if err != nil {
		return p, false, err
	}
	p, err = promptOf(e.Seq, d)
	return p, err == nil && (q.Trial == 0 || q.Trial == p.Trial), err
}

func promptOf(seq uint64, e wire.Event) (Prompt, error) {
	b, err := wire.ReadBody[wire.AgentPrompt](e)
	if err != nil {
		return Prompt{}, fmt.Errorf("reading the prompt at place %d: %w", seq, err)
	}
	return Prompt{Mark: Mark{Seq: seq, ID: e.ID, Time: e.Time}, Actor: e.Actor, Trial: b.Trial, Bytes: uint64(len(b.Text)), Text: b.Text}, nil
}

// start is the prompt with the start of its text, whole characters of it.
func (p Prompt) start() Prompt {
	if len(p.Text) <= PromptStart {
		return p
	}
	end := PromptStart
	for end > 0 && !utf8.RuneStart(p.Text[end]) {
		end--
	}
	p.Text, p.Clipped = p.Text[:end], true
	return p
}

// Prompt gives all of the prompt of a run that is at the place in EVENTS.
func (s *Service) Prompt(ctx context.Context, c Caller, name RunName, seq uint64, q RunQuery) (PromptView, error) {
	if err := c.Check(MayRead); err != nil {
		return PromptView{}, err
	}
	r, err := s.findRun(ctx, name, q.Ledger)
	if err != nil {
		return PromptView{}, err
	}
	none := newError(CodeNoPrompt, "run %s of rig %s has no prompt at place %d", r.Run.Run, r.Rig, seq)
	if seq < r.First.Seq || seq > r.Last.Seq {
		return PromptView{}, none
	}
	done, err := s.limits.read(ctx)
	if err != nil {
		return PromptView{}, err
	}
	defer done()
	found, err := s.config.Events.At(ctx, r.Rig, []uint64{seq})
	if err != nil {
		return PromptView{}, s.busError(ctx, err)
	}
	for _, m := range found {
		if m.Event.Kind == wire.KindAgentPrompt && m.Event.Run == r.Run.Run && m.Ledger == r.Ledger {
			p, err := promptOf(m.Seq, m.Event)
			return PromptView{Rig: r.Rig, Run: r.Run.Run, Prompt: p}, err
		}
	}
	return PromptView{}, none
}
