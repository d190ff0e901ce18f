// Package commands is the supervisor's part of the commands' channel: it
// takes its rig's commands from the bus, stages what they bring, and hands
// each to the harness, as control signed it.
//
//	COMMANDS ─▶ queue ─▶ stage, renew ─▶ the harness ─▶ its outcome ─▶ ack
//
// Guarantees: a command is acked once the harness has its outcome, or once
// control says that it wants it no more, and never before; until then the bus
// hands it again. A command whose content can't be staged goes to the harness
// all the same, with why. One command that takes long holds up none of
// another run.
package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/wire"
)

// Harness is the rig's harness.
type Harness interface {
	// Deliver hands it a command, with what was staged for it.
	Deliver(ctx context.Context, d wire.CommandDelivery) (wire.CommandAnswer, error)
}

// Control is what control is asked.
type Control interface {
	// Renew gives a command that it holds pending as it is signed now.
	Renew(ctx context.Context, id string) (signed []byte, pending bool, err error)
	// Key is what control signs with.
	Key() wire.PublicKey
}

// Stager fetches what commands bring.
type Stager interface {
	// Stage gives the name of the folder with the kit in the harness's inbox;
	// access is the Git access to fetch it with, or empty.
	Stage(ctx context.Context, id string, source wire.KitSource, access string) (folder string, err error)
	// Drop removes it.
	Drop(id string) error
}

// Config is what a Loop works with.
type Config struct {
	Rig     string
	Harness Harness
	Control Control
	Stager  Stager
	// OnOutcome is told that the harness has recorded the outcome of a command
	// of the kind, so that it is reported soon. It must not block.
	OnOutcome func(kind string)
	Now       func() time.Time
	Log       *slog.Logger
}

// Loop takes the rig's commands.
type Loop struct {
	cfg Config
	js  jetstream.JetStream
	// in are the messages from the bus, and back is what came of effects.
	in   chan jetstream.Msg
	back chan func(now time.Time) []effect

	// What follows is the loop's own goroutine's.
	queue queue
	// messages are the last ones of each command, to be acked.
	messages map[string]jetstream.Msg
	// stops end the staging of each command that stages.
	stops map[string]context.CancelFunc
	work  sync.WaitGroup
	// stages lets so many kits be fetched at once.
	stages chan struct{}

	mu    sync.Mutex
	state wire.LoopFigures
	// said is why a command was not handed, as it was logged last.
	said string
}

const textTaking = "it takes commands from the bus"

// The shell's own waits.
const (
	// tick is how often it looks at what time brings.
	tick = time.Second
	// again is the pause before it looks for its consumer again, which control
	// makes.
	again = time.Second
	// mostStages is how many kits are fetched at once.
	mostStages = 2
	// drainWait is how long that may take which came as the loop ends.
	drainWait = time.Second
	// pullExpiry is how long one request for commands stands at the server:
	// one that a supervisor leaves behind soon takes none any more.
	pullExpiry = 10 * time.Second
)

// New makes the loop over the rig's connection.
func New(nc *nats.Conn, cfg Config) (*Loop, error) {
	js, err := jetstream.NewWithAPIPrefix(nc, bus.JSAPIPrefix)
	if err != nil {
		return nil, fmt.Errorf("taking commands from the bus: %w", err)
	}
	if cfg.OnOutcome == nil {
		cfg.OnOutcome = func(string) {}
	}
	return &Loop{cfg: cfg, js: js, in: make(chan jetstream.Msg), back: make(chan func(time.Time) []effect),
		messages: map[string]jetstream.Msg{}, stops: map[string]context.CancelFunc{}, stages: make(chan struct{}, mostStages),
		state: wire.LoopFigures{State: "waiting", Detail: "it has not begun"}}, nil
}

// State says how the loop is.
func (l *Loop) State() wire.LoopFigures {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

func (l *Loop) set(state, detail string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = wire.LoopFigures{State: state, Detail: detail}
}

// Run takes commands until ctx ends.
func (l *Loop) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var taking sync.WaitGroup
	taking.Go(func() { l.take(ctx) })
	defer func() {
		stop()
		taking.Wait()
		l.work.Wait()
		l.giveBack()
	}()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		var do []effect
		select {
		case <-ctx.Done():
			return nil
		case msg := <-l.in:
			do = l.delivered(msg)
		case what := <-l.back:
			do = what(l.cfg.Now())
		case <-ticker.C:
			do = l.queue.next(l.cfg.Now())
		}
		for _, e := range do {
			l.do(ctx, e)
		}
	}
}

// giveBack has the bus hand what is held at once to who comes next.
func (l *Loop) giveBack() {
	for _, it := range l.queue.items {
		// One that is lost is handed again all the same, a little later.
		_ = l.messages[it.id].Nak()
	}
}

// take brings the messages in, and looks for the consumer again when it is
// gone.
func (l *Loop) take(ctx context.Context) {
	said := ""
	for ctx.Err() == nil {
		err := l.consume(ctx, func() {
			l.set("working", textTaking)
			said = ""
		})
		if ctx.Err() != nil {
			return
		}
		l.set("failing", err.Error())
		if err.Error() != said {
			said = err.Error()
			l.cfg.Log.Warn("no commands come from the bus; trying again", "every", again, "err", err)
		}
		pause := time.NewTimer(again)
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
		pause.Stop()
	}
}

// consume takes messages from the rig's consumer until that breaks, and gives
// why.
func (l *Loop) consume(ctx context.Context, began func()) error {
	look, cancel := context.WithTimeout(ctx, wire.AskTimeout)
	consumer, err := l.js.Consumer(look, wire.StreamCommands, wire.CommandsConsumer(l.cfg.Rig))
	cancel()
	if err != nil {
		return fmt.Errorf("looking for this rig's consumer of commands, which control makes: %w", err)
	}
	info := consumer.CachedInfo()
	select {
	case l.back <- func(now time.Time) []effect {
		l.queue.began(now, info.NumAckPending, info.Delivered.Consumer)
		return nil
	}:
	case <-ctx.Done():
		return ctx.Err()
	}
	broken := make(chan error, 1)
	taking, err := consumer.Consume(func(msg jetstream.Msg) {
		select {
		case l.in <- msg:
		case <-ctx.Done():
			_ = msg.Nak() // as giveBack does
		}
	}, jetstream.PullMaxMessages(wire.MaxCommandsWaiting), jetstream.PullExpiry(pullExpiry),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			select {
			case broken <- err:
			default:
			}
		}))
	if err != nil {
		return fmt.Errorf("taking commands from the bus: %w", err)
	}
	defer taking.Stop()
	began()
	select {
	case <-ctx.Done():
		// What came and was not taken in is given back.
		taking.Drain()
		select {
		case <-taking.Closed():
		case <-time.After(drainWait):
		}
		return ctx.Err()
	case <-taking.Closed():
		return errors.New("taking commands from the bus: the connection ended")
	case err := <-broken:
		return fmt.Errorf("taking commands from the bus: %w", err)
	}
}

// delivered takes one message in.
func (l *Loop) delivered(msg jetstream.Msg) []effect {
	meta, err := msg.Metadata()
	if err != nil {
		l.cfg.Log.Error("a message that is none of the bus's is passed over", "err", err)
		return nil
	}
	l.queue.came(l.cfg.Now(), meta.Sequence.Consumer)
	it, err := l.read(msg.Data(), meta.Sequence.Stream)
	if err != nil {
		l.cfg.Log.Error("a message on the bus is no command; it is passed over", "err", err)
		if err := msg.TermWithReason("it is no command"); err != nil {
			l.cfg.Log.Warn("a message not ended on the bus", "err", err)
		}
		return nil
	}
	l.messages[it.id] = msg
	return l.queue.delivered(l.cfg.Now(), it, meta.NumDelivered > 1)
}

// read reads the message at the place in COMMANDS. Only control can write one
// there; a command that the harness would refuse is handed to it all the same,
// which records it, but nothing is fetched for what control did not sign.
func (l *Loop) read(data []byte, place uint64) (item, error) {
	it := item{seq: place, raw: data, expires: l.cfg.Now().Add(wire.CommandMaxAge)}
	c, err := wire.OpenCommand(l.cfg.Control.Key(), data)
	switch {
	case c.ID == "" && !json.Valid(data):
		return item{}, err
	case c.ID == "":
		it.id = fmt.Sprintf("message %d", it.seq)
		return it, nil
	case err != nil:
		// What it says of itself is not to be believed, nor renewed.
		it.id = c.ID
		return it, nil
	}
	args, err := c.Arguments()
	if err != nil {
		return item{}, err
	}
	it.id, it.expires, it.run = c.ID, c.ExpiresAt.Time(), args.RunName()
	if a, ok := args.(wire.RunAssign); ok && a.Kit.Git != "" {
		it.source, it.access = &a.Kit, a.GitAccess
	}
	return it, nil
}
