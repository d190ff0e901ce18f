package dash

import (
	"net/url"

	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// told is a command with what a page says of it.
type told struct {
	service.Command
	// Tone is how its notice looks.
	Tone string
}

// doings say what each kind of command has the rig do.
var doings = map[string]string{
	wire.CommandRunAssign: "Start the run", wire.CommandRunSettings: "Change the run's settings", wire.CommandRunPause: "Pause the run",
	wire.CommandRunResume: "Go on with the run", wire.CommandRunStop: "Stop the run", wire.CommandQueueAdd: "Add an experiment",
	wire.CommandQueueMove: "Move an experiment", wire.CommandQueueEdit: "Change an experiment", wire.CommandQueueDrop: "Drop an experiment",
	wire.CommandTrialMessage: "Tell a worker something", wire.CommandTrialStop: "Stop a trial",
	wire.CommandAttemptDisqualify: "Disqualify an attempt", wire.CommandAttemptRejudge: "Judge an attempt again",
	wire.CommandSpaceRemove: "Free space",
}

// doing says what the kind of command has the rig do.
func doing(kind string) string {
	if words, ok := doings[kind]; ok {
		return words
	}
	return kind
}

// told gives the command that the address names; nil when it names none.
func (v *visit) told() (*told, error) {
	id := v.r.URL.Query().Get("command")
	if id == "" {
		return nil, nil
	}
	c, err := v.d.service.Command(v.r.Context(), v.caller, id, 0)
	if e := service.ErrorOf(err); err != nil && e.Kind() == service.KindNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	t := &told{Command: c}
	switch c.State {
	case service.CommandPending:
		if c.Held != "" {
			t.Tone = "warn"
		}
	case service.CommandApplied:
		t.Tone = "good"
	case service.CommandCancelled:
		t.Tone = "warn"
	default:
		t.Tone = "bad"
	}
	return t, nil
}

// order gives the rig a command, and leads to the page that then says what
// came of it. What is wrong is said on the tab's page.
func (v *visit) order(tab, page string, give func(service.RunName, string) (service.Command, error)) error {
	name := v.runName()
	c, err := give(name, v.field("key"))
	if err == nil {
		return v.goTo(runAddress(name.Rig, name.Run) + page + "?command=" + url.QueryEscape(c.ID))
	}
	if service.ErrorOf(err).Kind() == service.KindNotFound {
		return err
	}
	p, status := v.problemOf(err)
	return v.d.tabs()[tab](v, p, status)
}
