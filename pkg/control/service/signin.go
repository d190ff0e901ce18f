package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"thermite/pkg/control/identity"
	"thermite/pkg/control/rigs"
	"thermite/pkg/control/store"
)

// maxToken is the most characters of a token that are looked at.
const maxToken = 200

// Stranger is a caller with no token.
func Stranger(source string) Caller { return Caller{Role: RoleStranger, Source: source} }

// Authenticate gives the caller who holds the token: the owner, a reader or a
// rig. A token that is not good is slowed, counted and in the audit log.
func (s *Service) Authenticate(ctx context.Context, token, source string) (Caller, error) {
	c, err := s.holder(ctx, token, source)
	if e := (*Error)(nil); errors.As(err, &e) && e.Code == CodeBadToken {
		return Stranger(source), s.fails.failed(ctx, source, e)
	}
	if err != nil {
		return Stranger(source), err
	}
	return c, s.limits.calls.take(c.id(), s.config.Now())
}

// holder gives who holds the token.
func (s *Service) holder(ctx context.Context, token, source string) (Caller, error) {
	bad := newError(CodeBadToken, "this token is not good here: it was mistyped, revoked or replaced")
	if len(token) == 0 || len(token) > maxToken {
		return Caller{}, bad
	}
	hash := identity.HashToken(token)
	t, err := s.config.Store.TokenByHash(ctx, hash)
	switch {
	case err == nil && t.Revoked():
		return Caller{}, bad
	case err == nil:
		return callerOf(t, source), nil
	case !errors.Is(err, store.ErrNotFound):
		return Caller{}, fmt.Errorf("looking for a token: %w", err)
	}
	rig, err := s.config.Store.RigByToken(ctx, hash)
	if errors.Is(err, store.ErrNotFound) {
		return Caller{}, bad
	}
	if err != nil {
		return Caller{}, fmt.Errorf("looking for a rig's token: %w", err)
	}
	switch err := s.config.Rigs.Authenticate(ctx, rig, token); {
	case errors.Is(err, rigs.ErrRetired):
		return Caller{}, newError(CodeRigRetired, "this rig is retired: the owner can bring it back")
	case errors.Is(err, rigs.ErrBadToken), errors.Is(err, rigs.ErrNoRig):
		return Caller{}, bad
	case err != nil:
		return Caller{}, fmt.Errorf("checking a rig's token: %w", err)
	}
	return Caller{Role: RoleRig, Name: rig, Source: source}, nil
}

func callerOf(t store.Token, source string) Caller {
	return Caller{Role: Role(t.Role), Name: t.Name, Source: source, token: t.ID}
}

// CheckStranger counts a call with no token, by where it comes from.
func (s *Service) CheckStranger(source string) error {
	return s.limits.calls.take(Stranger(source).id(), s.config.Now())
}

// SessionLife is how long a browser stays signed in.
const SessionLife = 30 * 24 * time.Hour
