// Package rig is what a rig's work needs in one process and with no set-up: a
// broker, users for its roles, the worker's program, and the folders that the
// roles' users share.
//
// As root each role is a user of its own: a number that no account of the
// machine has, the same at each start on one folder; a root that has no such
// numbers is refused, for candidates would run as root. As anybody else every
// role is that user, and roles are not isolated from each other.
//
//	<Dir>           every user may pass through it
//	  broker/       the broker's, closed: what processes print, roles.json
//	  work/         the judge's and the lanes' folders
//	  programs/     the worker's program, where roles can't reach it elsewhere
package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"thermite/pkg/broker"
)

// Config is what a rig works with.
type Config struct {
	// Dir keeps it. It must be absolute, and be there.
	Dir string
	// Worker is the program that workers and steps are started with, and its
	// first arguments. Empty: see findWorker.
	Worker []string

	Build string
	Now   func() time.Time
	Rand  io.Reader
	Log   *slog.Logger
}

// Rig is the rig. Open makes it ready, Run serves its broker's client until
// ctx ends, and Close gives back what Open took.
type Rig struct {
	// Work is the folder of the judge and the lanes.
	Work string
	// Socket is the broker's.
	Socket string
	// Worker is the worker's program, and the arguments that make it one.
	Worker []string
	// Path is the PATH of steps and workers.
	Path string
	// Users are the roles' users; nil where each is the own user.
	Users map[string]int

	cfg    Config
	broker *broker.Broker
	close  func() error
}

// Open makes the folders, chooses the users and starts the broker.
func Open(ctx context.Context, cfg Config) (*Rig, error) {
	r := &Rig{cfg: cfg, Work: filepath.Join(cfg.Dir, "work"), close: func() error { return nil }}
	if err := r.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("making the rig ready to work: %w", err), r.close())
	}
	return r, nil
}

func (r *Rig) open(ctx context.Context) error {
	own := filepath.Join(r.cfg.Dir, "broker")
	if err := os.MkdirAll(own, 0o700); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		if err := r.chooseUsers(filepath.Join(own, "roles.json")); err != nil {
			return err
		}
	}
	if err := r.openFolders(); err != nil {
		return err
	}
	tools := findTools(ctx, r.Users != nil, r.cfg.Log)
	r.Path = tools.path
	var err error
	if r.Worker, err = r.placeWorker(); err != nil {
		return err
	}
	if r.Socket, r.close, err = PlaceSocket(own, "broker.sock"); err != nil {
		return err
	}
	r.broker, err = broker.New(ctx, broker.Config{
		StateDir: filepath.Join(own, "state"), Socket: r.Socket, Users: r.Users, Read: tools.read, Program: findStarter(ctx, r.cfg.Build),
		Build: r.cfg.Build, Now: r.cfg.Now, Log: r.cfg.Log,
	})
	return err
}

func (r *Rig) chooseUsers(path string) (err error) {
	r.Users, err = keepUsers(path, broker.DefaultRoles(), r.cfg.Rand)
	return err
}

// openFolders makes the shared folder, and lets the roles' users through to
// it.
func (r *Rig) openFolders() error {
	if err := os.MkdirAll(r.Work, 0o711); err != nil {
		return err
	}
	if r.Users == nil {
		return nil
	}
	for _, dir := range []string{r.cfg.Dir, r.Work} {
		if err := letThrough(dir); err != nil {
			return err
		}
	}
	return checkWay(r.Work)
}

// Isolated says whether roles are kept from each other, and else why not, in
// words for who started it.
func (r *Rig) Isolated() (is bool, why string) {
	if r.broker.Launcher().Capabilities().Users {
		return true, ""
	}
	return false, "every role is this user, so a candidate is not kept from the judge's files; as root each role is a user of its own"
}

// Run serves the broker's client until ctx ends.
func (r *Rig) Run(ctx context.Context) error { return r.broker.Run(ctx) }

// Close comes after Run.
func (r *Rig) Close() error { return r.close() }
