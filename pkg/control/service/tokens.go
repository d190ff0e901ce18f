package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/control/identity"
	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// Tokens gives every token of the owner and of readers, revoked ones too.
func (s *Service) Tokens(ctx context.Context, c Caller) (TokenList, error) {
	list := TokenList{Tokens: []Token{}}
	if err := c.Check(MayChange); err != nil {
		return list, err
	}
	rows, err := s.config.Store.Tokens(ctx)
	if err != nil {
		return list, err
	}
	for _, t := range rows {
		list.Tokens = append(list.Tokens, tokenOf(t, c))
	}
	return list, nil
}

func tokenOf(t store.Token, c Caller) Token {
	return Token{ID: idOf(t.ID), Role: t.Role, Name: t.Name, CreatedAt: wire.At(t.CreatedAt), RevokedAt: wire.At(t.RevokedAt), Yours: t.ID == c.token}
}

// MakeToken makes a token of the owner's or a reader's.
func (s *Service) MakeToken(ctx context.Context, c Caller, n NewToken) (MadeToken, error) {
	if err := c.Check(MayChange); err != nil {
		return MadeToken{}, err
	}
	if n.Role != store.RoleOwner && n.Role != store.RoleReader {
		return MadeToken{}, invalid("body.role", errors.New("role must be owner or reader"))
	}
	if err := checkTokenName(n.Name); err != nil {
		return MadeToken{}, invalid("body.name", err)
	}
	secret, err := identity.MakeToken(s.config.Rand)
	if err != nil {
		return MadeToken{}, err
	}
	t := store.Token{Hash: identity.HashToken(secret), Role: n.Role, Name: n.Name, CreatedAt: s.config.Now()}
	err = s.config.Store.Write(ctx, func(tx *sqlx.Tx) error {
		if t.ID, err = s.config.Store.AddToken(ctx, tx, t); err != nil {
			return err
		}
		return s.config.Store.Audit(ctx, tx, c.entry(t.CreatedAt, "token_made", "token:"+idOf(t.ID), map[string]any{"role": n.Role, "name": n.Name}))
	})
	if err != nil {
		return MadeToken{}, err
	}
	return MadeToken{Token: tokenOf(t, c), Secret: secret}, nil
}

// maxTokenName bounds a token's name.
const maxTokenName = 100

func checkTokenName(name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return errors.New("name must say whose the token is or what for")
	case len(name) > maxTokenName:
		return fmt.Errorf("name has %d bytes, at most %d", len(name), maxTokenName)
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("name must have printable characters only")
	default:
		return nil
	}
}

// RevokeToken ends a token and every session that was signed in with it. The
// owner's last token stays.
func (s *Service) RevokeToken(ctx context.Context, c Caller, id string) error {
	if err := c.Check(MayChange); err != nil {
		return err
	}
	none := newError(CodeNoToken, "there is no token with that id")
	n, err := readID("path.id", "a token's id is a number", id)
	if err != nil {
		return none
	}
	return s.config.Store.Write(ctx, func(tx *sqlx.Tx) error {
		t, err := s.config.Store.TokenIn(ctx, tx, n)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return none
		case err != nil:
			return err
		case t.Revoked():
			return nil // as was asked
		}
		if t.Role == store.RoleOwner {
			owners, err := s.config.Store.OwnerTokens(ctx, tx)
			if err != nil {
				return err
			}
			if owners < 2 {
				return newError(CodeLastOwner, "this is the owner's last token: make another first, so that you are not locked out")
			}
		}
		now := s.config.Now()
		if err := s.config.Store.RevokeToken(ctx, tx, n, now); err != nil {
			return err
		}
		return s.config.Store.Audit(ctx, tx, c.entry(now, "token_revoked", "token:"+id, map[string]any{"role": t.Role, "name": t.Name}))
	})
}
