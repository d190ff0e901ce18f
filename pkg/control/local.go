package control

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"thermite/pkg/control/commands"
	"thermite/pkg/control/identity"
	"thermite/pkg/control/rigs"
	"thermite/pkg/wire"
)

// byUp is who makes the rig beside control, for the audit log.
var byUp = rigs.By{Actor: "control", Source: "up"}

// ErrNotServing says that control does not serve its pages yet.
var ErrNotServing = errors.New("control does not serve its pages yet")

// SignInLink makes an address that signs a browser in as the owner, once. It
// is for whoever runs control on their own machine.
func (c *Control) SignInLink(ctx context.Context) (string, error) {
	s := c.service.Load()
	if s == nil {
		return "", fmt.Errorf("making a sign-in link: %w", ErrNotServing)
	}
	code, err := s.MakeSignInCode(ctx)
	if err != nil {
		return "", err
	}
	return c.URL() + "/signin?code=" + url.QueryEscape(code), nil
}

// Commands are control's commands to its rigs. One that is issued before Run
// waits for it.
func (c *Control) Commands() *commands.Commands { return c.commands }

// SigningKey is what control's commands and answers are signed with.
func (c *Control) SigningKey() wire.PublicKey { return c.identity.Signer.Public() }

// WriteSigningKey writes it where a harness of this machine reads it. Control
// keeps a copy as signing.pub in its own folder, which nobody else may enter.
func (c *Control) WriteSigningKey(path string) error {
	return identity.WritePublicKey(path, c.SigningKey())
}

// KeepRig gives a token of the rig, which it makes if it is not there. One
// that is there gets a new token: the start that made it was cut short before
// it kept the first.
func (c *Control) KeepRig(ctx context.Context, name string) (token string, err error) {
	token, err = c.rigs.Make(ctx, byUp, name)
	if errors.Is(err, rigs.ErrExists) {
		token, err = c.rigs.NewToken(ctx, byUp, name)
	}
	return token, err
}
