// Package supervisor is the rig's part that talks to control. Today it
// registers the rig's keys, relays the harness's events, and hands the harness
// control's commands and the rig's config.
//
//	New ─▶ register over HTTPS, until control has the keys ─▶ the bus ─▶ rounds
//
// A round asks control for its place, with the supervisor's figures, and puts
// what the harness has since on the bus: see package reports. Commands come as
// control issues them: see package commands; so does the rig's config, see
// package rigconfig. Nothing here
// ends the supervisor but its settings at the start: what fails later is
// said, and tried again.
package supervisor

import (
	"context"
	"crypto/x509"
	"encoding/base32"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"thermite/pkg/bus"
	"thermite/pkg/lines"
	"thermite/pkg/supervisor/asks"
	"thermite/pkg/supervisor/commands"
	"thermite/pkg/supervisor/harness"
	"thermite/pkg/supervisor/kb"
	"thermite/pkg/supervisor/live"
	"thermite/pkg/supervisor/register"
	"thermite/pkg/supervisor/reports"
	"thermite/pkg/supervisor/rigconfig"
	"thermite/pkg/supervisor/stage"
	"thermite/pkg/wire"
)

// Supervisor is the part. New makes it ready, and Run works until its context
// ends.
type Supervisor struct {
	cfg       Config
	times     Times
	startedAt wire.Time
	authority *x509.CertPool
	busKey    *bus.UserKey
	sealKey   *register.SealKey
	link      *link
	registrar *register.Registrar
	harness   *harness.Client
	stager    *stage.Stager
	// own are the supervisor's own live lines, and denials hear what the bus
	// does not open to them.
	own     *lines.Log
	denials *live.Denials

	mu sync.Mutex
	// relay is there once control has the keys.
	relay *reports.Loop
	// commands are there with it.
	commands *commands.Loop
	// asking are the other loops that ask control.
	asking *asking
	// files are there with it.
	files *kb.Files
	// config is there with it: it takes the rig's config.
	config *rigconfig.Loop
	// live is there with it.
	live *live.Loop
	// asked says how the last figures ask went.
	asked asked
	// step is when a loop went on last.
	step time.Time
}

// New reads the authority's certificate, and the rig's keys on the bus, which
// it makes at the first start.
func New(_ context.Context, cfg Config) (*Supervisor, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.OnState == nil {
		cfg.OnState = func(string) {}
	}
	s := &Supervisor{cfg: cfg, times: cfg.Times.withDefaults(), startedAt: wire.At(cfg.Now()), step: cfg.Now()}
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("starting the supervisor of rig %s: %w", cfg.Rig, err)
	}
	s.link = newLink(cfg.Now, cfg.OnState)
	s.denials = live.NewDenials()
	s.harness = harness.New(cfg.Socket, s.times.Harness)
	s.registrar = register.New(register.Config{
		Client: register.NewClient(register.ClientConfig{URL: cfg.ControlURL, Rig: cfg.Rig, TokenFile: cfg.TokenFile,
			Authority: s.authority, Timeout: s.times.Call, Build: cfg.Build}),
		BusKey: s.busKey.Public(), SealKey: s.sealKey.Public(), Figures: s.Figures, Every: s.times.Register, Log: cfg.Log,
	})
	return s, nil
}

func (s *Supervisor) open() error {
	if err := os.MkdirAll(s.cfg.StateDir, 0o700); err != nil {
		return fmt.Errorf("making the state folder: %w", err)
	}
	var err error
	if s.authority, err = bus.ReadPool(s.cfg.Authority); err != nil {
		return err
	}
	var made bool
	if s.busKey, made, err = bus.OpenUserKey(s.cfg.busKeyPath()); err != nil {
		return err
	}
	if made {
		s.cfg.Log.Info("made this rig's key on the bus", "key", wire.Fingerprint([]byte(s.busKey.Public())))
	}
	if s.sealKey, made, err = register.OpenSealKey(s.cfg.sealKeyPath(), s.cfg.Rand); err != nil {
		return err
	}
	if made {
		s.cfg.Log.Info("made this rig's seal key", "key", s.sealKey.Public().Fingerprint())
	}
	if s.own, err = lines.New(lines.Config{Rig: s.cfg.Rig, Now: s.cfg.Now, Rand: s.cfg.Rand}); err != nil {
		return err
	}
	s.stager, err = stage.New(stage.Config{Inbox: s.cfg.Inbox, LocalKits: s.cfg.LocalKits, GitAccess: s.gitAccess, Now: s.cfg.Now, Log: s.cfg.Log})
	return err
}

// Run registers the keys, and relays the harness's events, until ctx ends.
func (s *Supervisor) Run(ctx context.Context) error {
	defer s.harness.Close()
	s.cfg.OnState("registering with control")
	registered, err := s.registrar.Until(ctx)
	if err != nil {
		return nil // ctx ended: it tries until then
	}
	nc, err := bus.Connect(ctx, bus.Dial{URL: s.cfg.BusURL, Key: s.busKey, Authority: s.authority, Name: s.cfg.Rig,
		Inbox: wire.RigInbox(s.cfg.Rig), Log: s.cfg.Log, OnState: s.link.set, OnError: s.onError, ReconnectWait: s.times.Reconnect})
	if err != nil {
		return err
	}
	defer nc.Close()
	asker := asks.New(asks.Config{Rig: s.cfg.Rig, Conn: nc, Nonce: s.nonce, Timeout: s.times.Ask}, registered.ControlKey)
	files, err := s.startFiles(nc, asker)
	if err != nil {
		return err
	}
	relay, err := s.startRelay(nc, asker, files, registered.Place)
	if err != nil {
		return err
	}
	asking := s.startAsking(asker)
	taking, err := s.startCommands(nc, asker, relay, asking)
	if err != nil {
		return err
	}
	config, err := s.startConfig(nc, asker)
	if err != nil {
		return err
	}
	showing, err := s.startLive(nc, registered.Place)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return asking.run(ctx) })
	g.Go(func() error {
		// The first round would else be lost for a whole pause whenever the bus
		// is not there at once: it ends a sign-in that it gets as it reloads.
		s.link.wait(ctx, time.Duration(s.cfg.Poll))
		return relay.Run(ctx, time.Duration(s.cfg.Poll))
	})
	g.Go(func() error { return taking.Run(ctx) })
	g.Go(func() error { return config.Run(ctx) })
	g.Go(func() error { return showing.Run(ctx, s.cfg.live()) })
	g.Go(func() error { return s.keepRegistered(ctx, nc, asker) })
	return g.Wait()
}

// startRelay makes the relay, from control's place.
func (s *Supervisor) startRelay(nc *nats.Conn, asker *asks.Asker, files *kb.Files, place wire.Place) (*reports.Loop, error) {
	publisher, err := reports.NewPublisher(nc, s.cfg.Rig, s.times.Publish)
	if err != nil {
		return nil, err
	}
	relay := reports.NewLoop(reports.Config{Rig: s.cfg.Rig, Harness: s.harness, Bus: onLink{s.link, publisher},
		Control: figuresAsk{s, asker}, Before: files.Round, Log: s.cfg.Log, OnStep: s.stepped}, place)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.relay, s.step = relay, s.cfg.Now()
	return relay, nil
}

// startCommands makes the loop that takes commands. An outcome is reported
// soon: somebody may wait for it.
func (s *Supervisor) startCommands(nc *nats.Conn, asker *asks.Asker, relay *reports.Loop, asking *asking) (*commands.Loop, error) {
	soon := func(kind string) {
		relay.Soon()
		if kind == wire.CommandSpaceRemove {
			asking.space.Soon()
		}
	}
	taking, err := commands.New(nc, commands.Config{Rig: s.cfg.Rig, Harness: s.harness, Control: asker, Stager: toldStager{s.stager, s.own},
		OnOutcome: soon, Now: s.cfg.Now, Log: s.cfg.Log})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands = taking
	return taking, nil
}

// startConfig makes the loop that takes the rig's config.
func (s *Supervisor) startConfig(nc *nats.Conn, asker *asks.Asker) (*rigconfig.Loop, error) {
	config, err := rigconfig.New(nc, rigconfig.Config{Rig: s.cfg.Rig, Opener: s.sealKey, Control: asker, Harness: s.harness,
		Poll: time.Duration(s.cfg.ModelRoutePoll), AccessWait: s.times.GitAccess, Log: s.cfg.Log})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config = config
	return config, nil
}

// gitAccess gives staging the Git access of that name, from the rig's config.
func (s *Supervisor) gitAccess(ctx context.Context, name string) (wire.GitAccess, error) {
	s.mu.Lock()
	config := s.config
	s.mu.Unlock()
	if config == nil {
		//lint:ignore ST1005 the name is Git's, and the sentence the seed's
		return wire.GitAccess{}, fmt.Errorf("Git access %s: this supervisor has not begun to take its config", name)
	}
	return config.GitAccess(ctx, name)
}

// nonce gives 128 random bits as a word.
func (s *Supervisor) nonce() (string, error) {
	b := make([]byte, 16)
	if _, err := io.ReadFull(s.cfg.Rand, b); err != nil {
		return "", fmt.Errorf("drawing a nonce: %w", err)
	}
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b)), nil
}

// Figures are the supervisor's own account of itself.
func (s *Supervisor) Figures() wire.Figures {
	f := wire.Figures{Build: s.cfg.Build, StartedAt: s.startedAt, Loops: map[string]wire.LoopFigures{
		"registration": s.registrar.State(), "bus": s.link.figures(),
	}}
	s.mu.Lock()
	relay, ask, taking, asking, files, config, showing := s.relay, s.asked, s.commands, s.asking, s.files, s.config, s.live
	s.mu.Unlock()
	asking.figures(f.Loops)
	if showing != nil {
		f.Loops["live"] = showing.State()
		f.Live = showing.Figures()
	}
	if taking != nil {
		f.Loops["commands"] = taking.State()
	}
	if files != nil {
		f.Loops["kb-files"] = files.State()
	}
	if config != nil {
		f.Loops["config"] = config.State()
		figures := config.Figures()
		f.Config = &figures
	}
	if relay != nil {
		f.Relay = relay.Figures()
		f.Loops["reports"] = relay.State()
		f.Loops["figures"] = ask.figures()
	}
	return clip(f)
}

// maxText keeps each text of the figures well under what control takes.
const maxText = 1000

// clip cuts the figures' texts to what control takes.
func clip(f wire.Figures) wire.Figures {
	if f.Config != nil {
		f.Config.LastRefused = clipText(f.Config.LastRefused)
	}
	f.Relay.LastError = clipText(f.Relay.LastError)
	for name, l := range f.Loops {
		l.Detail = clipText(l.Detail)
		f.Loops[name] = l
	}
	return f
}

func clipText(s string) string {
	s = strings.ToValidUTF8(s, "�")
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "…"
}
