package service

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/control/identity"
	"thermite/pkg/control/store"
)

const (
	// CodeLife is how long a sign-in link is good.
	CodeLife = 15 * time.Minute
	// maxCodes is how many are good at once: a new one ends the oldest.
	maxCodes = 16
)

// codes are the codes of sign-in links. They are in memory only, and each is
// good once.
type codes struct {
	now  func() time.Time
	mu   sync.Mutex
	good []code
}

type code struct {
	hash    [sha256.Size]byte
	token   int64
	expires time.Time
}

func newCodes(c Config) *codes { return &codes{now: c.Now} }

func (c *codes) add(text string, token int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.good = append(c.good, code{sha256.Sum256([]byte(text)), token, c.now().Add(CodeLife)})
	if over := len(c.good) - maxCodes; over > 0 {
		c.good = append([]code(nil), c.good[over:]...)
	}
}

// use ends the code and gives whose token it stands for.
func (c *codes) use(text string) (token int64, ok bool) {
	hash := sha256.Sum256([]byte(text))
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, g := range c.good {
		if hmac.Equal(g.hash[:], hash[:]) {
			c.good = append(c.good[:i:i], c.good[i+1:]...)
			return g.token, c.now().Before(g.expires)
		}
	}
	return 0, false
}

// MakeSignInCode makes the code of a link that signs a browser in as the
// owner, once, within CodeLife. Control calls it for itself: no surface
// offers it.
func (s *Service) MakeSignInCode(ctx context.Context) (string, error) {
	tokens, err := s.config.Store.Tokens(ctx)
	if err != nil {
		return "", fmt.Errorf("making a sign-in link: %w", err)
	}
	for _, t := range tokens {
		if t.Role == store.RoleOwner && !t.Revoked() {
			text, err := identity.MakeToken(s.config.Rand)
			if err != nil {
				return "", fmt.Errorf("making a sign-in link: %w", err)
			}
			s.codes.add(text, t.ID)
			return text, nil
		}
	}
	return "", errors.New("making a sign-in link: the owner has no token that is good")
}

// SignInByCode signs a browser in by a link's code.
func (s *Service) SignInByCode(ctx context.Context, text, source string) (Session, error) {
	used := newError(CodeSignInLink, "this sign-in link is not good any more: each is good once, for %d minutes", int(CodeLife.Minutes()))
	id, ok := s.codes.use(text)
	if !ok || len(text) > maxToken {
		return Session{}, s.fails.failed(ctx, source, used)
	}
	var t store.Token
	err := s.config.Store.Write(ctx, func(tx *sqlx.Tx) (err error) {
		t, err = s.config.Store.TokenIn(ctx, tx, id)
		return err
	})
	if err != nil {
		return Session{}, fmt.Errorf("signing in by a link: %w", err)
	}
	if t.Revoked() {
		return Session{}, used
	}
	return s.open(ctx, callerOf(t, source), "link")
}

// SignIn signs a browser in by the owner's token or a reader's.
func (s *Service) SignIn(ctx context.Context, token, source string) (Session, error) {
	c, err := s.Authenticate(ctx, token, source)
	if err != nil {
		return Session{}, err
	}
	if c.Role == RoleRig {
		return Session{}, newError(CodeNotAllowed, "this is a rig's token: sign in with the owner's or a reader's")
	}
	return s.open(ctx, c, "token")
}

// open makes the session.
func (s *Service) open(ctx context.Context, c Caller, how string) (Session, error) {
	value, err := identity.MakeToken(s.config.Rand)
	if err != nil {
		return Session{}, fmt.Errorf("signing in: %w", err)
	}
	now := s.config.Now()
	session := Session{Value: value, Expires: now.Add(SessionLife), Caller: c}
	err = s.config.Store.Write(ctx, func(tx *sqlx.Tx) error {
		if err := s.config.Store.AddSession(ctx, tx, identity.HashToken(value), c.token, now, session.Expires); err != nil {
			return err
		}
		return s.config.Store.Audit(ctx, tx, c.entry(now, "signed_in", "", map[string]any{"by": how}))
	})
	if err != nil {
		return Session{}, fmt.Errorf("signing in: %w", err)
	}
	return session, nil
}

// SessionCaller gives who signed in with the cookie's value.
func (s *Service) SessionCaller(ctx context.Context, value, source string) (Caller, error) {
	ended := newError(CodeNotSignedIn, "you are not signed in, or it was over 30 days ago")
	if value == "" || len(value) > maxToken {
		return Stranger(source), ended
	}
	t, err := s.config.Store.TokenOfSession(ctx, identity.HashToken(value), s.config.Now())
	if errors.Is(err, store.ErrNotFound) {
		return Stranger(source), ended
	}
	if err != nil {
		return Stranger(source), fmt.Errorf("looking for a session: %w", err)
	}
	c := callerOf(t, source)
	return c, s.limits.calls.take(c.id(), s.config.Now())
}

// SignOut ends the session.
func (s *Service) SignOut(ctx context.Context, c Caller, value string) error {
	err := s.config.Store.Write(ctx, func(tx *sqlx.Tx) error {
		if err := s.config.Store.EndSession(ctx, tx, identity.HashToken(value)); err != nil {
			return err
		}
		return s.config.Store.Audit(ctx, tx, c.entry(s.config.Now(), "signed_out", "", nil))
	})
	if err != nil {
		return fmt.Errorf("signing out: %w", err)
	}
	return nil
}

// FormToken is what a form of the session must carry for its change to be
// taken: another site cannot know it.
func FormToken(session string) string {
	m := hmac.New(sha256.New, []byte(session))
	m.Write([]byte("thermite/form/v1\n"))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// CheckFormToken says whether the form is of the session.
func CheckFormToken(session, form string) bool {
	return session != "" && hmac.Equal([]byte(FormToken(session)), []byte(form))
}
