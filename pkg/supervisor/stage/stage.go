// Package stage fetches what commands bring, the kits kept in git, into the
// folder that the rig's harness takes them from. The harness checks what it
// takes: its user is another, and this one can write there.
package stage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// Config is what a Stager needs.
type Config struct {
	// Inbox is the folder; empty: nothing can be staged.
	Inbox string
	// LocalKits lets a kit's address be a folder of this machine.
	LocalKits bool
	// GitAccess gives the Git access of that name, once control gave the rig
	// one; nil: there are none.
	GitAccess func(ctx context.Context, name string) (wire.GitAccess, error)
	Now       func() time.Time
	Log       *slog.Logger
}

// Stager stages.
type Stager struct{ cfg Config }

// unfinished begins the name of a folder that is being written.
const unfinished = "new-"

// keep is how long a folder that no command asked for again is kept: the bus
// hands a command no longer.
const keep = wire.CommandMaxAge

// New makes a stager. It makes the inbox, and removes what earlier starts left
// there unfinished, or so long ago that no command is about it.
func New(cfg Config) (*Stager, error) {
	s := &Stager{cfg}
	if cfg.Inbox == "" {
		return s, nil
	}
	if err := s.sweep(); err != nil {
		return nil, fmt.Errorf("opening the harness's inbox: %w", err)
	}
	return s, nil
}

func (s *Stager) sweep() error {
	if err := os.MkdirAll(s.cfg.Inbox, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(s.cfg.Inbox)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if strings.HasPrefix(e.Name(), unfinished) || wire.IsCommandID(e.Name()) && s.cfg.Now().Sub(info.ModTime()) > keep {
			if err := os.RemoveAll(filepath.Join(s.cfg.Inbox, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// Stage fetches the kit for the command with that id, and gives the name of
// its folder in the inbox. What was staged for it before is taken as it is,
// if it reads back as the kit that the command wants. A Git access, if it
// names one, is used for its own host alone.
func (s *Stager) Stage(ctx context.Context, id string, source wire.KitSource, access string) (folder string, err error) {
	if s.cfg.Inbox == "" {
		return "", errors.New("this rig's supervisor can't stage a kit from git: it has no inbox (THERMITE_SUPERVISOR_INBOX)")
	}
	if filepath.IsAbs(source.Git) && !s.cfg.LocalKits {
		return "", fmt.Errorf("this rig takes no kit from a folder of its machine, as %s is: its supervisor's setting THERMITE_SUPERVISOR_LOCAL_KITS does not allow it", source.Git)
	}
	into := filepath.Join(s.cfg.Inbox, id)
	if has, err := kit.Open(into); err == nil && source.Digest != "" && has.Digest == source.Digest {
		return id, nil
	}
	began := s.cfg.Now()
	signIn, err := s.access(ctx, source, access)
	if err != nil {
		return "", err
	}
	staged, err := s.stage(ctx, source, signIn, into, filepath.Join(s.cfg.Inbox, unfinished+id))
	if err != nil {
		return "", err
	}
	s.cfg.Log.Info("a kit was staged", "command", id, "kit", staged.Kit.About.Name, "digest", staged.Digest, "took", s.cfg.Now().Sub(began))
	return id, nil
}

// access gives what git signs in with; nil when nothing was named. It is in
// memory and in git's environment alone.
func (s *Stager) access(ctx context.Context, source wire.KitSource, name string) (*kit.Access, error) {
	if name == "" {
		return nil, nil
	}
	if s.cfg.GitAccess == nil {
		//lint:ignore ST1005 the name is Git's, and the sentence the seed's
		return nil, fmt.Errorf("Git access %s: this rig's supervisor takes none", name)
	}
	has, err := s.cfg.GitAccess(ctx, name)
	if err != nil {
		return nil, err
	}
	if u, err := url.Parse(source.Git); err != nil || u.Scheme != "https" || !strings.EqualFold(u.Host, has.Host) {
		//lint:ignore ST1005 the name is Git's, and the sentence the seed's
		return nil, fmt.Errorf("Git access %s is for %s, and the kit is at %s: it goes to no other host, and by https alone", name, has.Host, source.Git)
	}
	return &kit.Access{Host: has.Host, Username: has.Username, Secret: has.Secret.Reveal()}, nil
}

// stage writes the kit to a folder of its own first, so that a stop leaves
// none that looks whole.
func (s *Stager) stage(ctx context.Context, source wire.KitSource, signIn *kit.Access, into, first string) (*kit.Staged, error) {
	if err := errors.Join(os.RemoveAll(first), os.RemoveAll(into)); err != nil {
		return nil, fmt.Errorf("making room in the harness's inbox: %w", err)
	}
	staged, err := kit.Stage(ctx, kit.Source{Git: source.Git, Commit: source.Commit, Local: s.cfg.LocalKits, Access: signIn}, first)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(first))
	}
	if source.Digest != "" && staged.Digest != source.Digest {
		err := fmt.Errorf("the kit at %s has the digest %s, not %s as the command says", source.Commit, staged.Digest, source.Digest)
		return nil, errors.Join(err, os.RemoveAll(first))
	}
	if err := os.Rename(first, into); err != nil {
		return nil, fmt.Errorf("putting the kit in the harness's inbox: %w", err)
	}
	return staged, nil
}

// Drop removes what was staged for the command, which is over.
func (s *Stager) Drop(id string) error {
	if s.cfg.Inbox == "" {
		return nil
	}
	if err := os.RemoveAll(filepath.Join(s.cfg.Inbox, id)); err != nil {
		return fmt.Errorf("removing what was staged for command %s: %w", id, err)
	}
	return nil
}
