package rigconfig

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/control/rigs"
	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// What a caller may decide by. A rig that is not there is rigs.ErrNoRig.
var (
	// ErrBad says that a thing can't be so: its words say what and where.
	ErrBad = errors.New("it can't be so")
	// ErrNone says that there is none of that name.
	ErrNone = errors.New("control has none of that name")
)

// By is who changes something, and from where, for the audit log.
type By struct{ Actor, Source string }

// RouteChange is a model route as it is to be. A nil Secret keeps the one there
// is; an empty one is none.
type RouteChange struct {
	Name, API, BaseURL, Model string
	Secret                    *Payload
	// Uses are the roles that use it, and no other.
	Uses []store.RouteUse
}

// ServerChange is an MCP server as it is to be; Secret as in RouteChange.
type ServerChange struct {
	Name, URL string
	Secret    *Payload
}

// AccessChange is a Git access as it is to be; an empty Secret keeps the one
// there is.
type AccessChange struct {
	Name, Host, Username string
	Secret               wire.Secret
}

func bad(err error) error { return fmt.Errorf("%w: %w", ErrBad, err) }

// change writes what do writes, with its entry in the audit log, and
// has the rigs get it.
func (c *Configs) change(ctx context.Context, by By, action, subject string, detail map[string]any, do func(*sqlx.Tx) error) error {
	err := c.Store.Write(ctx, func(tx *sqlx.Tx) error {
		if err := do(tx); err != nil {
			return err
		}
		return c.Store.Audit(ctx, tx, store.AuditEntry{At: c.Clock(), Actor: by.Actor, Source: by.Source, Action: action, Subject: subject, Detail: detail})
	})
	if err == nil {
		c.Changed()
	}
	return err
}

// secret gives the sealed secret as it is to be: the one of change, or the one
// that has is.
func (c *Configs) secret(kind, name string, change *Payload, has []byte) (Payload, []byte, error) {
	if change == nil {
		// One that no longer opens is kept as well: its owner did not set another.
		p, err := openPayload(c.Secrets, kind, name, has)
		if err != nil {
			p = Payload{}
		}
		return p, has, nil
	}
	if err := change.Check(); err != nil {
		return Payload{}, nil, bad(err)
	}
	sealed, err := change.seal(c.Secrets, kind, name)
	return *change, sealed, err
}

// SetModelRoute writes the route.
func (c *Configs) SetModelRoute(ctx context.Context, by By, r RouteChange) error {
	if err := (wire.ModelRoute{Name: r.Name, API: r.API, BaseURL: r.BaseURL, Model: r.Model}).Check(); err != nil {
		return bad(err)
	}
	if err := checkUses(r.Uses); err != nil {
		return bad(err)
	}
	return c.change(ctx, by, "model_route_set", "model-route:"+r.Name, map[string]any{"api": r.API, "base_url": r.BaseURL, "model": r.Model,
		"secret_changed": r.Secret != nil, "uses": usesOf(r.Uses)}, func(tx *sqlx.Tx) error {
		has, err := c.Store.ModelRouteIn(ctx, tx, r.Name)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if err := c.checkRigs(ctx, tx, r.Uses); err != nil {
			return err
		}
		p, sealed, err := c.secret(kindRoute, r.Name, r.Secret, has.Sealed)
		if err != nil {
			return err
		}
		next := store.ModelRoute{Name: r.Name, API: r.API, BaseURL: r.BaseURL, Model: r.Model, Sealed: sealed, Headers: p.headerNames(),
			HasKey: p.Key != "", Renews: p.Renew != nil, ChangedAt: c.Clock()}
		if r.Secret == nil {
			next.Headers, next.HasKey, next.Renews = has.Headers, has.HasKey, has.Renews
		}
		if err := c.Store.SetModelRoute(ctx, tx, next); err != nil {
			return err
		}
		return c.Store.SetRouteUses(ctx, tx, r.Name, r.Uses)
	})
}

func checkUses(uses []store.RouteUse) error {
	for i, u := range uses {
		if !slices.Contains(wire.ModelRoles, u.Role) {
			return fmt.Errorf("uses[%d].role is none of %v", i, wire.ModelRoles)
		}
		if u.Rig != "" {
			if err := wire.CheckName("rig", u.Rig); err != nil {
				return fmt.Errorf("uses[%d].rig: %w", i, err)
			}
		}
		if slices.Contains(uses[:i], u) {
			return fmt.Errorf("uses[%d] is there twice", i)
		}
	}
	return nil
}

func usesOf(uses []store.RouteUse) []any {
	all := make([]any, len(uses))
	for i, u := range uses {
		if all[i] = u.Role; u.Rig != "" {
			all[i] = u.Role + " of " + u.Rig
		}
	}
	return all
}

func (c *Configs) checkRigs(ctx context.Context, tx *sqlx.Tx, uses []store.RouteUse) error {
	for _, u := range uses {
		if u.Rig == "" {
			continue
		}
		if _, err := c.Store.RigIn(ctx, tx, u.Rig); errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("rig %s: %w", u.Rig, rigs.ErrNoRig)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// SetMCPServer writes the server.
func (c *Configs) SetMCPServer(ctx context.Context, by By, s ServerChange) error {
	if err := errors.Join(wire.CheckName("MCP server", s.Name), wire.CheckBaseURL("url", s.URL)); err != nil {
		return bad(err)
	}
	return c.change(ctx, by, "mcp_server_set", "mcp-server:"+s.Name, map[string]any{"url": s.URL, "secret_changed": s.Secret != nil}, func(tx *sqlx.Tx) error {
		has, err := c.Store.MCPServerIn(ctx, tx, s.Name)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		p, sealed, err := c.secret(kindServer, s.Name, s.Secret, has.Sealed)
		if err != nil {
			return err
		}
		next := store.MCPServer{Name: s.Name, URL: s.URL, Sealed: sealed, Headers: sorted(p.signIn()), Renews: p.Renew != nil, ChangedAt: c.Clock()}
		if s.Secret == nil {
			next.Headers, next.Renews = has.Headers, has.Renews
		}
		return c.Store.SetMCPServer(ctx, tx, next)
	})
}

// SetGitAccess writes the access.
func (c *Configs) SetGitAccess(ctx context.Context, by By, a AccessChange) error {
	if err := errors.Join(wire.CheckName("Git access", a.Name), wire.CheckHost("host", a.Host), wire.CheckUsername("username", a.Username),
		wire.CheckSecret("secret", a.Secret)); err != nil {
		return bad(err)
	}
	return c.change(ctx, by, "git_access_set", "git-access:"+a.Name, map[string]any{"host": a.Host, "username": a.Username, "secret_changed": a.Secret != ""}, func(tx *sqlx.Tx) error {
		has, err := c.Store.GitAccessIn(ctx, tx, a.Name)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		sealed := has.Sealed
		if a.Secret != "" {
			if sealed, err = (Payload{Key: a.Secret}).seal(c.Secrets, kindAccess, a.Name); err != nil {
				return err
			}
		}
		if sealed == nil {
			return bad(errors.New("secret is missing: a Git access is nothing without one"))
		}
		if a.Secret == "" && a.Host != has.Host {
			return bad(errors.New("secret is missing: with another host, the secret is given again, so that none goes where it was not meant to"))
		}
		return c.Store.SetGitAccess(ctx, tx, store.GitAccess{Name: a.Name, Host: a.Host, Username: a.Username, Sealed: sealed, ChangedAt: c.Clock()})
	})
}

// RemoveModelRoute removes the route; the roles that used it have none of their
// own from then on.
func (c *Configs) RemoveModelRoute(ctx context.Context, by By, name string) error {
	return c.remove(ctx, by, "model_route_removed", "model-route:"+name, func(tx *sqlx.Tx) error { return c.Store.RemoveModelRoute(ctx, tx, name) })
}

// RemoveMCPServer removes the server; a run that names it learns that control
// can't give it.
func (c *Configs) RemoveMCPServer(ctx context.Context, by By, name string) error {
	return c.remove(ctx, by, "mcp_server_removed", "mcp-server:"+name, func(tx *sqlx.Tx) error { return c.Store.RemoveMCPServer(ctx, tx, name) })
}

// RemoveGitAccess removes the access, from every rig that was given it.
func (c *Configs) RemoveGitAccess(ctx context.Context, by By, name string) error {
	return c.remove(ctx, by, "git_access_removed", "git-access:"+name, func(tx *sqlx.Tx) error { return c.Store.RemoveGitAccess(ctx, tx, name) })
}

func (c *Configs) remove(ctx context.Context, by By, action, subject string, do func(*sqlx.Tx) error) error {
	err := c.change(ctx, by, action, subject, nil, do)
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%s: %w", subject, ErrNone)
	}
	return err
}
