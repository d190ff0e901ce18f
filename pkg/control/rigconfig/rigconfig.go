// Package rigconfig is control's part of the config's channel: it keeps each
// rig's four keys in CONFIG at what control can make now.
//
//	store (routes, servers, accesses, assignments) ─▶ make ─▶ revision ─▶ sealed, signed ─▶ CONFIG
//	                                                            ▲ compared with the one on the bus
//
// Guarantees: a key is written only when its value or its rig's seal key
// changed, also after a start; a value that can't be made is not written, and
// the rig keeps the one it has; no secret is logged, in an error, or on the bus
// in the clear.
package rigconfig

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/control/secrets"
	"thermite/pkg/control/store"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

// Bus is the CONFIG stream.
type Bus interface {
	// Revisions reads what is there: each rig's revisions by key, and how many
	// messages there are.
	Revisions(ctx context.Context) (Held, error)
	// Count says how many messages there are, and which stream it is.
	Count(ctx context.Context) (messages uint64, stream string, err error)
	// Write puts a value on its key's subject.
	Write(ctx context.Context, rig, key, revision string, sealed []byte) error
	// Clear removes every value of the rig.
	Clear(ctx context.Context, rig string) error
}

// Held is what CONFIG holds.
type Held struct {
	// Rigs are the revisions by rig and key.
	Rigs     map[string]map[string]string
	Messages uint64
	// Stream names the stream: one that was made again has another.
	Stream string
}

// Views say how the rigs' runs are.
type Views interface {
	Rig(ctx context.Context, rig string) (views.Rig, error)
}

// Config is what Configs need.
type Config struct {
	Store   *store.Store
	Secrets *secrets.Key
	Signer  *wire.Signer
	Views   Views
	// Renewer renews sign-ins.
	Renewer Renewer
	// Every is how often it looks; 0 is wire.ConfigLook.
	Every time.Duration
	Clock func() time.Time
	Log   *slog.Logger
}

// Configs are the rigs' config.
type Configs struct {
	Config
	due chan struct{}

	// What follows is the look's, of which there is one at a time.

	bus  Bus
	held *Held
	// last is what the last look that was whole made the values of.
	last *inputs
	// audits are entries that are not written yet.
	audits []store.AuditEntry
	// said is what was logged of each thing that fails.
	said map[string]string

	renewals renewals

	mu    sync.Mutex
	state State
}

// State is what Configs did since control started.
type State struct {
	// Written counts the values that were written, by key, and Failing are
	// those that can't be made or written now.
	Written, Failing map[string]uint64
	// Last is why one could not be, and LastAt when that was found.
	Last   string
	LastAt time.Time
}

// New makes Configs that know no bus yet.
func New(c Config) *Configs {
	if c.Every == 0 {
		c.Every = wire.ConfigLook
	}
	return &Configs{Config: c, due: make(chan struct{}, 1), said: map[string]string{}, renewals: renewals{next: map[string]time.Time{}},
		state: State{Written: map[string]uint64{}, Failing: map[string]uint64{}}}
}

// Changed has a look made at once: something that a value is made of changed.
func (c *Configs) Changed() {
	select {
	case c.due <- struct{}{}:
	default:
	}
}

// State gives what it did.
func (c *Configs) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.state
	s.Written, s.Failing = map[string]uint64{}, map[string]uint64{}
	for _, key := range wire.ConfigKeys {
		s.Written[key], s.Failing[key] = c.state.Written[key], c.state.Failing[key]
	}
	return s
}

// Run looks every Every, and when something changed, until ctx ends.
func (c *Configs) Run(ctx context.Context, bus Bus) error {
	c.bus = bus
	var renewing sync.WaitGroup
	defer renewing.Wait()
	tick := time.NewTicker(c.Every)
	defer tick.Stop()
	for {
		err := c.look(ctx)
		if ctx.Err() != nil {
			return nil
		}
		c.say("the look", err)
		renewing.Go(func() { c.renew(ctx) })
		select {
		case <-ctx.Done():
			return nil
		case <-c.due:
		case <-tick.C:
		}
	}
}

// say logs a failure of what once for each reason.
func (c *Configs) say(what string, err error) {
	words := ""
	if err != nil {
		words = err.Error()
	}
	if words == c.said[what] {
		return
	}
	if words == "" {
		delete(c.said, what)
		c.Log.Info("the rigs' config goes on", "what", what)
		return
	}
	c.said[what] = words
	c.Log.Warn("a config value not written; the rig keeps the one it has", "what", what, "err", err)
}

// look makes every value whose parts may have changed, and writes those that
// did.
func (c *Configs) look(ctx context.Context) error {
	if err := c.audit(ctx); err != nil {
		return err
	}
	in, err := c.read(ctx)
	if err != nil {
		return err
	}
	again, err := c.readBack(ctx)
	if err != nil {
		return err
	}
	if !again && c.last != nil && reflect.DeepEqual(*c.last, *in) {
		return nil
	}
	c.last = nil
	whole, err := c.writeAll(ctx, in)
	if err == nil {
		err = c.audit(ctx)
	}
	if whole && err == nil {
		c.last = in
	}
	return err
}

// readBack reads the revisions on the bus, if they may not be as control
// knows them: after a start, a write with no answer, or when the bus lost some.
func (c *Configs) readBack(ctx context.Context) (again bool, err error) {
	if c.held != nil {
		messages, stream, err := c.bus.Count(ctx)
		if err != nil {
			return false, err
		}
		if messages == c.held.Messages && stream == c.held.Stream {
			return false, nil
		}
	}
	held, err := c.bus.Revisions(ctx)
	if err != nil {
		return false, err
	}
	c.held = &held
	return true, nil
}

// writeAll writes the values that changed. whole says that all could be.
func (c *Configs) writeAll(ctx context.Context, in *inputs) (whole bool, err error) {
	make := newMaker(c.Secrets, in)
	failing, last := map[string]uint64{}, error(nil)
	failed := func(rig, key string, err error) {
		if err != nil {
			failing[key]++
			last = fmt.Errorf("%s of rig %s: %w", key, rig, err)
		}
		c.say(key+" of rig "+rig, err)
	}
	for _, r := range in.Rigs {
		for _, key := range wire.ConfigKeys {
			value, err := make.value(r.Rig, key)
			if err == nil {
				err = c.write(ctx, r, key, value)
			}
			if ctx.Err() != nil {
				return false, ctx.Err()
			}
			failed(r.Rig, key, err)
			if err != nil && c.held == nil {
				// The bus did not answer: it would not for the others either.
				c.keep(failing, last)
				return false, err
			}
		}
	}
	for _, words := range make.leftOut() {
		c.say(words.what, words.err)
	}
	whole, err = c.clear(ctx, in)
	c.keep(failing, last)
	return whole && len(failing) == 0, err
}

func (c *Configs) keep(failing map[string]uint64, last error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.Failing = failing
	if last != nil && last.Error() != c.state.Last {
		c.state.Last, c.state.LastAt = last.Error(), c.Clock()
	}
}

// write writes the value, if it is another than the one on the bus. An empty
// one is not written where there is none.
func (c *Configs) write(ctx context.Context, r store.ConfigRig, key string, value wire.ConfigValue) error {
	has := c.held.Rigs[r.Rig][key]
	if has == "" && value.Empty() {
		return nil
	}
	plain, err := wire.Canonical(value)
	if err != nil {
		return err
	}
	signs := c.Signer.Public()
	revision := c.Secrets.Revision([]byte(r.Rig), []byte(key), r.Seal[:], signs[:], plain)
	if revision == has {
		return nil
	}
	sealed, err := wire.SealConfig(c.Signer, r.Seal, r.Rig, key, revision, value)
	if err != nil {
		return err
	}
	if err := c.bus.Write(ctx, r.Rig, key, revision, sealed); err != nil {
		c.held = nil // it may be there all the same
		return err
	}
	if c.held.Rigs[r.Rig] == nil {
		c.held.Rigs[r.Rig] = map[string]string{}
	}
	if has == "" {
		c.held.Messages++
	}
	c.held.Rigs[r.Rig][key] = revision
	c.mu.Lock()
	c.state.Written[key]++
	c.mu.Unlock()
	c.Log.Info("a config value was written", "rig", r.Rig, "key", key, "revision", revision)
	if v, ok := value.(wire.GitAccessConfig); ok {
		names := make([]any, len(v.Accesses))
		for i, a := range v.Accesses {
			names[i] = a.Name
		}
		c.audits = append(c.audits, store.AuditEntry{At: c.Clock(), Actor: "control", Source: "config", Action: "git_access_handed",
			Subject: r.Rig, Detail: map[string]any{"names": names}})
	}
	return nil
}

// audit writes what the audit log has not yet.
func (c *Configs) audit(ctx context.Context) error {
	if len(c.audits) == 0 {
		return nil
	}
	err := c.Store.Write(ctx, func(tx *sqlx.Tx) error {
		for _, e := range c.audits {
			if err := c.Store.Audit(ctx, tx, e); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		c.audits = nil
	}
	return err
}

// clear removes the values of rigs that get none any more: those retired.
func (c *Configs) clear(ctx context.Context, in *inputs) (whole bool, err error) {
	if c.held == nil {
		return false, nil
	}
	gets := map[string]bool{}
	for _, r := range in.Rigs {
		gets[r.Rig] = true
	}
	for rig, keys := range c.held.Rigs {
		if gets[rig] {
			continue
		}
		if err := c.bus.Clear(ctx, rig); err != nil {
			c.held = nil
			return false, err
		}
		c.held.Messages -= uint64(len(keys))
		delete(c.held.Rigs, rig)
		c.Log.Info("the config of a rig that gets none any more was removed from the bus", "rig", rig)
	}
	return true, nil
}
