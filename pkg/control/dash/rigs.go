package dash

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"

	"thermite/pkg/control/service"
)

type rigsPage struct {
	frame
	Rigs    []service.RigSummary
	Next    string
	Name    string
	Key     string
	Problem *problem
}

// rigs shows the rigs, and the form that makes one.
func (d *Dash) rigs(v *visit) error { return v.showRigs("", nil, http.StatusOK) }

func (v *visit) showRigs(name string, p *problem, status int) error {
	f, err := v.frame("Rigs", "rigs")
	if err != nil {
		return err
	}
	f.Live = p == nil
	list, err := v.d.service.Rigs(v.r.Context(), v.caller, service.PageQuery{After: v.r.URL.Query().Get("after")})
	if err != nil {
		return err
	}
	return v.render("rigs", status, rigsPage{frame: f, Rigs: list.Rigs, Next: list.Next, Name: name, Key: rand.Text(), Problem: p})
}

type tokenPage struct {
	frame
	Made service.RigToken
	// New says that the rig had a token before.
	New bool
}

// makeRig makes a rig and shows its token. The form sent again, as by a
// reload, shows the same once more: its key says that it is the same one.
func (d *Dash) makeRig(v *visit) error {
	n := service.NewRig{Name: v.field("name")}
	made, err := service.Once(v.r.Context(), d.service, v.caller, "dash make rig", v.field("key"), n,
		func(ctx context.Context) (service.RigToken, error) { return d.service.MakeRig(ctx, v.caller, n) })
	if err != nil {
		p, status := v.problemOf(err)
		return v.showRigs(n.Name, p, status)
	}
	return v.showToken(made, false)
}

// newRigToken gives a rig a new token and shows it.
func (d *Dash) newRigToken(v *visit) error {
	rig := v.r.PathValue("rig")
	made, err := service.Once(v.r.Context(), d.service, v.caller, "dash rig token "+rig, v.field("key"), rig,
		func(ctx context.Context) (service.RigToken, error) { return d.service.NewRigToken(ctx, v.caller, rig) })
	if err != nil {
		return v.rigProblem(rig, err)
	}
	return v.showToken(made, true)
}

func (v *visit) showToken(made service.RigToken, again bool) error {
	f, err := v.frame("Token of rig "+made.Name, "rigs")
	if err != nil {
		return err
	}
	return v.render("token", http.StatusCreated, tokenPage{frame: f, Made: made, New: again})
}

// retireRig takes a rig's right to work.
func (d *Dash) retireRig(v *visit) error { return v.changeRig(d.service.RetireRig) }

// restoreRig brings a retired rig back.
func (d *Dash) restoreRig(v *visit) error { return v.changeRig(d.service.RestoreRig) }

// acceptKey accepts the report key that waits.
func (d *Dash) acceptKey(v *visit) error {
	return v.changeRig(func(ctx context.Context, c service.Caller, rig string) (service.RigSummary, error) {
		return d.service.AcceptReportKey(ctx, c, rig, v.field("fingerprint"))
	})
}

// changeRig makes the change and shows the rig.
func (v *visit) changeRig(change func(context.Context, service.Caller, string) (service.RigSummary, error)) error {
	rig := v.r.PathValue("rig")
	if _, err := change(v.r.Context(), v.caller, rig); err != nil {
		return v.rigProblem(rig, err)
	}
	return v.goTo("/rigs/" + url.PathEscape(rig))
}

// rigProblem shows a change's error on the rig's page, if there is the rig.
func (v *visit) rigProblem(rig string, err error) error {
	if service.ErrorOf(err).Code == service.CodeNoRig {
		return err
	}
	p, status := v.problemOf(err)
	return v.showRig(rig, p, status)
}
