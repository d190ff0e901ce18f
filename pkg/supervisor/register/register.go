// Package register makes a rig's keys on the bus and registers their public
// parts with control: the one call that a supervisor makes over HTTPS, before
// anything of it goes on the bus.
package register

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"thermite/pkg/wire"
)

// RefusedError is control's refusal of a registration.
type RefusedError struct {
	// Status is the HTTP status, and Code control's name of the reason.
	Status int
	Code   string
	// Words are control's own.
	Words string
}

// Error says why, and what to do about it.
func (e *RefusedError) Error() string {
	s := fmt.Sprintf("control refused (%d %s): %s", e.Status, clip(e.Code), e.Words)
	if do := e.toDo(); do != "" {
		s += ": " + do
	}
	return s
}

// toDo says what to do, where control's words may not.
func (e *RefusedError) toDo() string {
	switch e.Code {
	case "bus_key_refused", "seal_key_refused", "bus_away", "overtaken", "rig_retired", "keys_missing":
		return "" // control says it
	case "no_rig":
		return "make the rig with thermite rig add, or give this supervisor the name that control knows the rig by"
	}
	switch {
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusForbidden:
		return "put this rig's own token, as control gave it last, in the token's file"
	case e.Status == http.StatusTooManyRequests, e.Status >= 500:
		return ""
	}
	return "this supervisor and control may be of versions that do not fit: update the older one"
}

// Config is what a Registrar works with.
type Config struct {
	Client *Client
	// BusKey and SealKey are the keys' public parts.
	BusKey  string
	SealKey wire.SealKey
	// Figures gives the supervisor's figures as they are now.
	Figures func() wire.Figures
	// Every is the pause between tries.
	Every time.Duration
	Log   *slog.Logger
}

// Registrar registers a rig's keys.
type Registrar struct {
	cfg Config

	mu    sync.Mutex
	state wire.LoopFigures
}

// New makes a registrar.
func New(cfg Config) *Registrar {
	return &Registrar{cfg: cfg, state: wire.LoopFigures{State: "waiting", Detail: "it has not begun"}}
}

// Until registers the keys, and tries until control has them or ctx ends. It
// logs why it must try again, once for each reason.
func (r *Registrar) Until(ctx context.Context) (wire.Registered, error) {
	said := ""
	for {
		r.set("working", "registering this rig's keys with control")
		registered, err := r.cfg.Client.Register(ctx, wire.Registration{BusKey: r.cfg.BusKey, SealKey: r.cfg.SealKey, Figures: r.cfg.Figures()})
		if err == nil {
			r.set("waiting", "control has this rig's keys")
			r.cfg.Log.Info("control has this rig's keys", "control_key", registered.ControlKey.Fingerprint(),
				"ledger", registered.Place.Ledger, "cursor", registered.Place.Cursor)
			return registered, nil
		}
		if ctx.Err() != nil {
			return wire.Registered{}, ctx.Err()
		}
		r.set("failing", err.Error())
		if why := err.Error(); why != said {
			said = why
			r.cfg.Log.Warn("control has not registered this rig's keys; trying again", "every", r.cfg.Every, "err", err)
		}
		select {
		case <-ctx.Done():
			return wire.Registered{}, ctx.Err()
		case <-time.After(r.cfg.Every):
		}
	}
}

func (r *Registrar) set(state, detail string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = wire.LoopFigures{State: state, Detail: detail}
}

// State says how the registration is.
func (r *Registrar) State() wire.LoopFigures {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}
