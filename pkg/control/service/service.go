// Package service is what control can do for a person or a program, each
// thing once: REST, MCP, the dashboard and the CLI call it and have no logic
// of their own. Its types are what every surface shows, in the JSON that REST
// answers with.
//
//	rest ─┐
//	dash ─┼─▶ service ─▶ rigs, views, events, store, bus
//	mcp  ─┘
//
// Guarantees: a method checks that its caller may, before anything else;
// every change is in the audit log with who, what, when and from where; an
// error is an *Error that a person can be shown, and what it must not show
// is in control's log under the call's request id. Everything may be called
// by any number of goroutines.
package service

import (
	"context"
	"io"
	"log/slog"
	"time"

	"thermite/pkg/control/events"
	"thermite/pkg/control/needs"
	"thermite/pkg/control/rigs"
	"thermite/pkg/control/store"
	"thermite/pkg/control/views"
)

// Config is what a Service calls.
type Config struct {
	Store  *store.Store
	Rigs   *rigs.Rigs
	Needs  *needs.Needs
	Views  *views.Views
	Events *events.Reader
	// Commands and Runs are the rigs' commands, and the run registry.
	Commands Commands
	Runs     Runs
	// Daily are the rigs' daily reports.
	Daily Daily
	// KB is the knowledge base.
	KB KB
	// Configs are the rigs' config.
	Configs Configs
	// Screens are what watched trials print.
	Screens Screens
	// Space is what the rigs keep on their disks.
	Space Space
	// Live is the live view.
	Live Live
	// Bus says how control's parts on the bus are.
	Bus Bus
	// Join is what a new rig must know beside its name and token.
	Join Join
	// Build is control's version.
	Build string
	// Now and Rand give the time and what tokens are made of.
	Now  func() time.Time
	Rand io.Reader
	Log  *slog.Logger
}

// Bus says how control and the bus are.
type Bus interface {
	// Link says whether control holds a connection to the bus now.
	Link() Link
	// Server asks the bus's server for its figures.
	Server(ctx context.Context) (Server, error)
	// Writer, Apply, Reports and Users are control's parts, as they are now.
	Writer() Writer
	Apply() Apply
	Reports() Reports
	Users() Users
	// Config is what control wrote of the rigs' config.
	Config() ConfigState
	Live() LiveState
}

// Service is control, as its surfaces see it.
type Service struct {
	config Config
	fails  *failures
	codes  *codes
	again  *again
	limits *limits
	server lastServer
}

// New makes a Service.
func New(c Config) *Service {
	return &Service{config: c, fails: newFailures(c), codes: newCodes(c), again: newAgain(c.Now), limits: newLimits()}
}

// Run writes what is written once in a while, until ctx ends.
func (s *Service) Run(ctx context.Context) error { return s.fails.run(ctx) }
