package rigconfig

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/wire"
)

// Renewed is a token that was got anew.
type Renewed struct {
	Token wire.Secret
	// RefreshToken replaces the one before; empty keeps it.
	RefreshToken wire.Secret
	// Life is how long the token is good.
	Life time.Duration
}

// Renewer gets a token anew. Its errors say nothing of a secret.
type Renewer interface {
	Renew(ctx context.Context, r Renewal) (Renewed, error)
}

// renewPause is how long a renewal that failed waits for its next try.
const renewPause = time.Minute

// renewals are what is known of the sign-ins that are renewed.
type renewals struct {
	at sync.Mutex // one round at a time
	// next is when each may be tried again after a failure.
	next map[string]time.Time
}

// renew renews the sign-ins that end soon, and has the rigs get them.
func (c *Configs) renew(ctx context.Context) {
	if c.Renewer == nil || !c.renewals.at.TryLock() {
		return
	}
	defer c.renewals.at.Unlock()
	routes, err := c.Store.ModelRoutes(ctx)
	for _, r := range routes {
		if r.Renews {
			c.renewOne(ctx, kindRoute, r.Name, r.Sealed)
		}
	}
	servers, serversErr := c.Store.MCPServers(ctx)
	for _, s := range servers {
		if s.Renews {
			c.renewOne(ctx, kindServer, s.Name, s.Sealed)
		}
	}
	if err := errors.Join(err, serversErr); err != nil && ctx.Err() == nil {
		c.Log.Warn("the sign-ins of the rigs' config can't be read", "err", err)
	}
}

// renewOne renews one, if it is due.
func (c *Configs) renewOne(ctx context.Context, kind, name string, sealed []byte) {
	what, now := kind+":"+name, c.Clock()
	p, err := openPayload(c.Secrets, kind, name, sealed)
	if err != nil || p.Renew == nil || now.Before(c.renewals.next[what]) {
		return // one that does not open is said by the look
	}
	if p.Key != "" && p.ExpiresAt.Time().Sub(now) > wire.SignInRenew {
		return
	}
	got, err := c.Renewer.Renew(ctx, *p.Renew)
	if err == nil {
		err = c.renewed(ctx, kind, name, sealed, p, got)
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		c.renewals.next[what] = now.Add(renewPause)
		c.Log.Warn("a sign-in was not renewed; trying again", "what", what, "every", renewPause, "err", err)
		return
	}
	c.Log.Info("a sign-in was renewed", "what", what)
	c.Changed()
}

// errChanged says that the owner set another meanwhile.
var errChanged = errors.New("its owner set another meanwhile")

// renewed keeps the new token in the place of the one before.
func (c *Configs) renewed(ctx context.Context, kind, name string, was []byte, p Payload, got Renewed) error {
	if got.Token == "" || got.Life <= 0 {
		return errors.New("the answer holds no token with a time it is good for")
	}
	renewal := *p.Renew
	if got.RefreshToken != "" {
		renewal.RefreshToken = got.RefreshToken
	}
	p.Key, p.ExpiresAt, p.Renew = got.Token, wire.At(c.Clock().Add(got.Life)), &renewal
	if err := p.Check(); err != nil {
		return fmt.Errorf("what the answer holds can't be: %w", err)
	}
	sealed, err := p.seal(c.Secrets, kind, name)
	if err != nil {
		return err
	}
	return c.Store.Write(ctx, func(tx *sqlx.Tx) error {
		if kind == kindRoute {
			r, err := c.Store.ModelRouteIn(ctx, tx, name)
			if err != nil {
				return err
			}
			if string(r.Sealed) != string(was) {
				return errChanged
			}
			r.Sealed, r.HasKey = sealed, true
			return c.Store.SetModelRoute(ctx, tx, r)
		}
		s, err := c.Store.MCPServerIn(ctx, tx, name)
		if err != nil {
			return err
		}
		if string(s.Sealed) != string(was) {
			return errChanged
		}
		s.Sealed = sealed
		return c.Store.SetMCPServer(ctx, tx, s)
	})
}
