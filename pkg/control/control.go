// Package control is control, the part: it puts the packages below it
// together, starts them in their order, and stops them in the other.
//
//	New   state folder ─▶ keys ─▶ store ─▶ authority ─▶ users file and certificate (the bus's server can start)
//	Run   the bus ─▶ streams ─▶ apply, views built ─▶ reports, asks ─▶ pages and API
//
// The looks at the bus's users begin as soon as the server takes control's
// key. Pages are served once every view is built and never before, so none
// shows a part of a rig. A failure that trying again can't mend ends Run,
// with what to do in its words; what can be mended is tried again by the part
// that met it.
package control

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"thermite/pkg/bus"
	"thermite/pkg/control/apply"
	"thermite/pkg/control/commands"
	"thermite/pkg/control/daily"
	"thermite/pkg/control/identity"
	"thermite/pkg/control/kb"
	"thermite/pkg/control/live"
	"thermite/pkg/control/needs"
	"thermite/pkg/control/rigconfig"
	"thermite/pkg/control/rigs"
	"thermite/pkg/control/runs"
	"thermite/pkg/control/screens"
	"thermite/pkg/control/secrets"
	"thermite/pkg/control/service"
	"thermite/pkg/control/space"
	"thermite/pkg/control/store"
	"thermite/pkg/control/users"
	"thermite/pkg/control/views"
)

// Control is control, ready to run.
type Control struct {
	config    Config
	lock      *os.File
	identity  *identity.Identity
	store     *store.Store
	authority *bus.Authority
	needs     *needs.Needs
	runs      *runs.Registry
	views     *views.Views
	users     *users.Users
	rigs      *rigs.Rigs
	commands  *commands.Commands
	daily     *daily.Reports
	kb        *kb.KB
	configs   *rigconfig.Configs
	space     *space.Space
	screens   *screens.Screens
	listener  net.Listener
	tls       *tls.Config
	// live is there once control takes live lines.
	live *live.View
	// apply is there once the views are built.
	apply *apply.Apply
	// service is there once control serves.
	service atomic.Pointer[service.Service]
}

// New makes control ready to run: its keys, its store, and the files that the
// bus's server needs to start. It listens, and answers nothing yet.
func New(ctx context.Context, config Config) (*Control, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	c := &Control{config: config}
	if err := c.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("starting control: %w", err), c.Close())
	}
	return c, nil
}

func (c *Control) open(ctx context.Context) (err error) {
	// The lock comes before the keys: two controls must not both make them.
	if c.lock, err = lock(c.config.lockPath()); err != nil {
		return err
	}
	if c.identity, err = identity.Open(c.config.StateDir, c.config.Rand); err != nil {
		return err
	}
	if c.store, err = store.Open(ctx, c.config.storePath()); err != nil {
		return err
	}
	if c.authority, err = bus.OpenAuthority(c.config.StateDir, c.config.Now); err != nil {
		return err
	}
	made, err := identity.KeepOwnerToken(ctx, c.config.StateDir, c.store, c.config.Rand, c.config.Now())
	if err != nil {
		return err
	}
	if made {
		c.config.Log.Info("the owner's token was made: read it and move it away", "file", filepath.Join(c.config.StateDir, identity.OwnerTokenFile))
	}
	if c.runs, err = runs.Open(ctx, c.store); err != nil {
		return err
	}
	c.views = views.New(c.config.Log)
	c.needs = needs.New(c.store, c.config.Now)
	c.commands = commands.New(commands.Config{Store: c.store, Needs: c.needs, Runs: c.runs, Signer: c.identity.Signer,
		Clock: c.config.Now, Rand: c.config.Rand, Log: c.config.Log})
	c.daily, c.space = daily.New(c.store, c.config.Now), space.New(c.store, c.config.Now)
	c.screens = screens.New(c.config.Now)
	c.kb = kb.New(kb.Config{Store: c.store, Runs: c.runs, Dir: c.config.kbFilesDir(), Clock: c.config.Now, Log: c.config.Log})
	key, err := secrets.Open(c.config.StateDir, c.config.Rand)
	if err != nil {
		return err
	}
	c.configs = rigconfig.New(rigconfig.Config{Store: c.store, Secrets: key, Signer: c.identity.Signer, Views: c.views,
		Renewer: rigconfig.NewOAuth(), Clock: c.config.Now, Log: c.config.Log})
	if err := c.openUsers(ctx); err != nil {
		return err
	}
	return c.listen()
}

// openUsers opens what knows the rigs, and writes the files that the bus's
// server reads.
func (c *Control) openUsers(ctx context.Context) error {
	own := bus.Users{Control: c.identity.Control.Public(), System: c.identity.System.Public(), Backup: c.identity.Backup.Public()}
	c.users = users.New(users.Config{
		Store: c.store, Needs: c.needs, Runs: c.runs, Dir: c.config.BusDir, Own: own, Authority: c.authority,
		Names: c.config.busNames(), Clock: c.config.Now, Log: c.config.Log,
	})
	c.rigs = rigs.New(rigs.Config{
		Store: c.store, Needs: c.needs, ControlKey: c.identity.Signer.Public(), Users: c.users, Views: c.views,
		Connections: c.users, Place: c.place, Registered: c.configs.Changed, Clock: c.config.Now, Rand: c.config.Rand, Log: c.config.Log,
	})
	if err := c.rigs.HoldOwnKeys(ctx, own.Control, own.System, own.Backup); err != nil {
		return err
	}
	// The server's group may read the folder, and nobody else.
	if err := os.MkdirAll(c.config.BusDir, 0o750); err != nil {
		return fmt.Errorf("making the folder that the bus's server reads: %w", err)
	}
	return c.users.Write(ctx)
}

// listen opens the address of the pages and the API.
func (c *Control) listen() (err error) {
	if !c.config.Plain {
		if c.tls, err = c.authority.HTTPSConfig(c.config.apiNames()); err != nil {
			return err
		}
	}
	if c.listener = c.config.Listener; c.listener != nil {
		return nil
	}
	if c.listener, err = net.Listen("tcp", c.config.Listen); err != nil {
		return fmt.Errorf("listening for the pages and the API: %w", err)
	}
	return nil
}

// URL is where rigs and people reach control.
func (c *Control) URL() string { return c.config.publicURL(c.listener.Addr()) }

// UseBus names the bus's server, when its address is known only once it runs.
// It comes before Run.
func (c *Control) UseBus(url string) { c.config.BusURL = url }

// UsePublicBus names where rigs on other machines reach it, likewise. Its host
// is one that the settings named: the certificate is made with those.
func (c *Control) UsePublicBus(url string) { c.config.BusPublicURL = url }

// Alive says whether control's store answers, for a watchdog.
func (c *Control) Alive(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, aliveWait)
	defer cancel()
	_, err := c.store.SQLiteVersion(ctx)
	return err
}

// aliveWait is how long the store may take to answer the watchdog.
const aliveWait = 10 * time.Second

// Close gives back what New took. It comes after Run.
func (c *Control) Close() error {
	var errs []error
	if c.listener != nil {
		if err := c.listener.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if c.store != nil {
		errs = append(errs, c.store.Close())
	}
	if c.lock != nil {
		errs = append(errs, c.lock.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("closing control: %w", err)
	}
	return nil
}
