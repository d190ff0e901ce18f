package dash

import (
	"strconv"
	"strings"
	"time"

	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// The forms of a run's pages: each gives the rig one command.

func (v *visit) why() string { return strings.TrimSpace(v.field("why")) }

func (d *Dash) pauseRun(v *visit) error {
	return v.order(tabOverview, "", func(r service.RunName, key string) (service.Command, error) {
		return d.service.PauseRun(v.r.Context(), v.caller, r, service.Reason{Why: v.why()}, key)
	})
}

func (d *Dash) resumeRun(v *visit) error {
	return v.order(tabOverview, "", func(r service.RunName, key string) (service.Command, error) {
		return d.service.ResumeRun(v.r.Context(), v.caller, r, service.Reason{Why: v.why()}, key)
	})
}

func (d *Dash) stopRun(v *visit) error {
	return v.order(tabOverview, "", func(r service.RunName, key string) (service.Command, error) {
		return d.service.StopRun(v.r.Context(), v.caller, r, service.Reason{Why: v.why()}, key)
	})
}

// changeRun changes those of the run's settings that differ.
func (d *Dash) changeRun(v *visit) error {
	return v.order(tabOverview, "", func(r service.RunName, key string) (service.Command, error) {
		run, err := d.service.ViewRun(v.r.Context(), v.caller, r, service.RunQuery{})
		if err != nil {
			return service.Command{}, err
		}
		to, err := v.settings(run.Run)
		if err != nil {
			return service.Command{}, err
		}
		return d.service.ChangeRun(v.r.Context(), v.caller, r, to, key)
	})
}

// settings reads the form of a run's settings.
func (v *visit) settings(run service.Run) (to wire.RunSettings, err error) {
	if title := strings.TrimSpace(v.field("title")); title != run.Title {
		to.Title = &title
	}
	lanes, err := v.whole("lanes", "Lanes")
	if err != nil {
		return to, err
	}
	if lanes != run.LaneCount {
		to.Lanes = &lanes
	}
	b, err := v.budget()
	if err != nil {
		return to, err
	}
	was := wire.Budget{}
	if run.Budget != nil {
		was = *run.Budget
	}
	if b.MicroDollars = was.MicroDollars; b != was {
		to.Budget = &b
	}
	return to, nil
}

// budget reads a form's bounds of attempts and of time; an empty field is
// none.
func (v *visit) budget() (b wire.Budget, err error) {
	if b.Attempts, err = v.whole("attempts", "Attempts"); err != nil {
		return b, err
	}
	text := strings.ReplaceAll(strings.TrimSpace(v.field("time")), " ", "")
	if text == "" {
		return b, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return b, &service.Error{Code: service.CodeInvalid, Text: "the time must be one such as 90s, 20m or 1h30m", Cause: err}
	}
	b.WallMS = uint64(d.Milliseconds())
	return b, nil
}

// whole reads a field that is a whole number; empty is 0.
func (v *visit) whole(field, name string) (uint64, error) {
	text := strings.TrimSpace(v.field(field))
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > wire.MaxInteger {
		return 0, &service.Error{Code: service.CodeInvalid, Text: name + " must be a whole number", Cause: err}
	}
	return n, nil
}

func (d *Dash) addExperiment(v *visit) error {
	return v.order(tabQueue, "/queue", func(r service.RunName, key string) (service.Command, error) {
		at, err := v.whole("position", "The position")
		if err != nil {
			return service.Command{}, err
		}
		n := service.NewExperiment{Title: strings.TrimSpace(v.field("title")), Text: v.text("text"), Position: at}
		return d.service.AddExperiment(v.r.Context(), v.caller, r, n, key)
	})
}

// text gives a long text as it was typed, with the line ends of a browser
// made plain.
func (v *visit) text(field string) string {
	return strings.TrimSpace(strings.ReplaceAll(v.field(field), "\r\n", "\n"))
}

// onExperiment gives the rig a command about the experiment of the address.
func (v *visit) onExperiment(give func(r service.RunName, experiment uint64, key string) (service.Command, error)) error {
	n, err := v.number("experiment")
	if err != nil {
		return err
	}
	return v.order(tabQueue, "/queue", func(r service.RunName, key string) (service.Command, error) { return give(r, n, key) })
}

func (d *Dash) moveExperiment(v *visit) error {
	return v.onExperiment(func(r service.RunName, experiment uint64, key string) (service.Command, error) {
		at, err := v.whole("position", "The position")
		if err != nil {
			return service.Command{}, err
		}
		return d.service.MoveExperiment(v.r.Context(), v.caller, r, experiment, service.Position{Position: at}, key)
	})
}

func (d *Dash) editExperiment(v *visit) error {
	return v.onExperiment(func(r service.RunName, experiment uint64, key string) (service.Command, error) {
		title, text := strings.TrimSpace(v.field("title")), v.text("text")
		return d.service.EditExperiment(v.r.Context(), v.caller, r, experiment, service.ExperimentChange{Title: &title, Text: &text}, key)
	})
}

func (d *Dash) dropExperiment(v *visit) error {
	return v.onExperiment(func(r service.RunName, experiment uint64, key string) (service.Command, error) {
		return d.service.DropExperiment(v.r.Context(), v.caller, r, experiment, service.Reason{Why: v.why()}, key)
	})
}

// onTrial gives the rig a command about the trial of the address.
func (v *visit) onTrial(give func(r service.RunName, trial uint64, key string) (service.Command, error)) error {
	n, err := v.number("trial")
	if err != nil {
		return err
	}
	return v.order(tabOverview, "", func(r service.RunName, key string) (service.Command, error) { return give(r, n, key) })
}

func (d *Dash) messageTrial(v *visit) error {
	return v.onTrial(func(r service.RunName, trial uint64, key string) (service.Command, error) {
		return d.service.MessageTrial(v.r.Context(), v.caller, r, trial, service.Message{Text: v.text("text")}, key)
	})
}

func (d *Dash) stopTrial(v *visit) error {
	return v.onTrial(func(r service.RunName, trial uint64, key string) (service.Command, error) {
		return d.service.StopTrial(v.r.Context(), v.caller, r, trial, service.Reason{Why: v.why()}, key)
	})
}

// onAttempt gives the rig a command about the attempt of the address. What is
// wrong is said on the attempt's page.
func (v *visit) onAttempt(give func(r service.RunName, attempt uint64, key string) (service.Command, error)) error {
	n, err := v.number("attempt")
	if err != nil {
		return err
	}
	name := v.runName()
	c, err := give(name, n, v.field("key"))
	if err == nil {
		return v.goTo(runAddress(name.Rig, name.Run) + "/attempts/" + v.r.PathValue("attempt") + "?command=" + c.ID)
	}
	if service.ErrorOf(err).Kind() == service.KindNotFound {
		return err
	}
	p, status := v.problemOf(err)
	return v.showAttempt(p, status)
}

func (d *Dash) disqualify(v *visit) error {
	return v.onAttempt(func(r service.RunName, attempt uint64, key string) (service.Command, error) {
		return d.service.DisqualifyAttempt(v.r.Context(), v.caller, r, attempt, service.Disqualification{Why: v.why()}, key)
	})
}

func (d *Dash) rejudge(v *visit) error {
	return v.onAttempt(func(r service.RunName, attempt uint64, key string) (service.Command, error) {
		return d.service.RejudgeAttempt(v.r.Context(), v.caller, r, attempt, service.Rejudging{Why: v.why(), AllowSuspect: v.field("allow_suspect") != ""}, key)
	})
}
