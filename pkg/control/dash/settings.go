package dash

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"

	"thermite/pkg/control/service"
)

type settingsBusPage struct {
	frame
	Tab  string
	Join service.Join
	Bus  service.BusState
}

// settingsBus shows how rigs find the message bus, and who may use it.
func (d *Dash) settingsBus(v *visit) error {
	f, err := v.frame("Settings: message bus", "settings")
	if err != nil {
		return err
	}
	f.Live = true
	join, err := d.service.Join(v.r.Context(), v.caller)
	if err != nil {
		return err
	}
	state, err := d.service.Bus(v.r.Context(), v.caller)
	if err != nil {
		return err
	}
	return v.ok("settings-bus", settingsBusPage{frame: f, Tab: "bus", Join: join, Bus: state})
}

// authority gives the certificate that signs control's and the bus's.
func (d *Dash) authority(v *visit) error {
	join, err := d.service.Join(v.r.Context(), v.caller)
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "application/x-pem-file")
	v.w.Header().Set("Content-Disposition", `attachment; filename="authority.pem"`)
	_, _ = v.w.Write([]byte(join.Authority))
	return nil
}

type tokensPage struct {
	frame
	Tab           string
	Good, Revoked []service.Token
	// Name and Role are what was typed.
	Name, Role, Key string
	Made            *service.MadeToken
	Problem         *problem
}

// tokens shows the tokens, and the form that makes one.
func (d *Dash) tokens(v *visit) error {
	return v.showTokens(tokensPage{Role: string(service.RoleReader)}, http.StatusOK)
}

func (v *visit) showTokens(page tokensPage, status int) error {
	f, err := v.frame("Settings: tokens", "settings")
	if err != nil {
		return err
	}
	list, err := v.d.service.Tokens(v.r.Context(), v.caller)
	if err != nil {
		return err
	}
	page.frame, page.Tab, page.Key = f, "tokens", rand.Text()
	for _, t := range list.Tokens {
		if t.RevokedAt.IsZero() {
			page.Good = append(page.Good, t)
		} else {
			page.Revoked = append(page.Revoked, t)
		}
	}
	return v.render("settings-tokens", status, page)
}

// makeToken makes a token and shows it.
func (d *Dash) makeToken(v *visit) error {
	n := service.NewToken{Role: v.field("role"), Name: strings.TrimSpace(v.field("name"))}
	page := tokensPage{Name: n.Name, Role: n.Role}
	made, err := service.Once(v.r.Context(), d.service, v.caller, "dash make token", v.field("key"), n,
		func(ctx context.Context) (service.MadeToken, error) { return d.service.MakeToken(ctx, v.caller, n) })
	if err != nil {
		var status int
		page.Problem, status = v.problemOf(err)
		return v.showTokens(page, status)
	}
	return v.showTokens(tokensPage{Role: string(service.RoleReader), Made: &made}, http.StatusCreated)
}

// revokeToken ends a token.
func (d *Dash) revokeToken(v *visit) error {
	if err := d.service.RevokeToken(v.r.Context(), v.caller, v.r.PathValue("id")); err != nil {
		p, status := v.problemOf(err)
		return v.showTokens(tokensPage{Role: string(service.RoleReader), Problem: p}, status)
	}
	return v.goTo("/settings/tokens")
}

type aboutPage struct {
	frame
	Tab string
}

// about shows what this control is.
func (d *Dash) about(v *visit) error {
	f, err := v.frame("Settings: about", "settings")
	if err != nil {
		return err
	}
	return v.ok("settings-about", aboutPage{frame: f, Tab: "about"})
}
