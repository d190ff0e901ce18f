// Package rigconfig is the supervisor's part of the config's channel: it takes
// the rig's config from the bus, opens it with the rig's seal key, and hands
// each part to who uses it.
//
//	CONFIG ─▶ open ─▶ held, in memory ─▶ the harness: model routes, MCP servers
//	                                  ├▶ the advisors: their routes, MCP servers
//	                                  └▶ staging: Git accesses
//
// Guarantees: a change is handed on as soon as it is opened; what can't be
// taken is counted and passed over, and the value held stays, also while the
// bus is away; a harness that lost what it was handed gets it again. Nothing of
// a value is logged, written to disk or in an error.
package rigconfig

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/wire"
)

// Harness is the rig's harness.
type Harness interface {
	HandConfig(ctx context.Context, key, revision string, v wire.ConfigValue) error
	HeldConfig(ctx context.Context, key string) (wire.ConfigHeld, error)
}

// Opener opens what is sealed to the rig.
type Opener interface {
	OpenConfig(control wire.PublicKey, rig, key string, b []byte) (wire.SealedConfig, wire.ConfigValue, error)
}

// Control says what control signs with.
type Control interface{ Key() wire.PublicKey }

// Config is what a Loop works with.
type Config struct {
	Rig     string
	Opener  Opener
	Control Control
	Harness Harness
	// Poll is how often it looks at its harness; 0 is wire.ModelRoutePoll.
	Poll time.Duration
	// AccessWait is how long a Git access is waited for; 0 is
	// wire.GitAccessWait.
	AccessWait time.Duration
	Log        *slog.Logger
}

// Loop takes the rig's config.
type Loop struct {
	cfg Config
	nc  *nats.Conn
	js  jetstream.JetStream
	// due tells the handing that there is something to hand.
	due chan struct{}

	mu    sync.Mutex
	held  held
	state wire.LoopFigures
	// handing is why the harness has not all of it; else empty.
	handing string
	changed chan struct{}
}

// The loop's own waits.
const (
	// again is the pause before it looks for its consumer again.
	again = time.Second
	// pullExpiry is how long one request for values stands at the server.
	pullExpiry = 10 * time.Second
)

const textTaking = "it takes its config from the bus"

// New makes the loop over the rig's connection.
func New(nc *nats.Conn, cfg Config) (*Loop, error) {
	js, err := jetstream.NewWithAPIPrefix(nc, bus.JSAPIPrefix)
	if err != nil {
		return nil, fmt.Errorf("taking the config from the bus: %w", err)
	}
	if cfg.Poll == 0 {
		cfg.Poll = wire.ModelRoutePoll
	}
	if cfg.AccessWait == 0 {
		cfg.AccessWait = wire.GitAccessWait
	}
	return &Loop{cfg: cfg, nc: nc, js: js, due: make(chan struct{}, 1), held: newHeld(), changed: make(chan struct{}),
		state: wire.LoopFigures{State: "waiting", Detail: "it has not begun"}}, nil
}

// Run takes the config until ctx ends.
func (l *Loop) Run(ctx context.Context) error {
	var handing sync.WaitGroup
	handing.Go(func() { l.hand(ctx) })
	defer handing.Wait()
	said := ""
	for ctx.Err() == nil {
		err := l.watch(ctx, func() { said = "" })
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, errControlKey) {
			continue
		}
		l.set("failing", err.Error())
		if err.Error() != said {
			said = err.Error()
			l.cfg.Log.Warn("no config comes from the bus; this rig keeps what it holds", "again", again, "err", err)
		}
		pause := time.NewTimer(again)
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
		pause.Stop()
	}
	return nil
}

// State says how the loop is.
func (l *Loop) State() wire.LoopFigures {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.State == "working" && l.handing != "" {
		return wire.LoopFigures{State: "failing", Detail: l.handing}
	}
	return l.state
}

func (l *Loop) set(state, detail string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = wire.LoopFigures{State: state, Detail: detail}
}

// Figures count what it took and refused.
func (l *Loop) Figures() wire.ConfigFigures {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held.figures()
}

// errControlKey ends a watch: what control did not sign with the key of before
// may be good now.
var errControlKey = errors.New("control signs with another key now")

// watch reads the latest value of each key, and takes each new one from the
// rig's consumer until that breaks. It gives why.
func (l *Loop) watch(ctx context.Context, began func()) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	signs := l.cfg.Control.Key()
	look, cancel := context.WithTimeout(ctx, wire.AskTimeout)
	defer cancel()
	consumer, err := l.js.Consumer(look, wire.StreamConfig, wire.ConfigConsumer(l.cfg.Rig))
	if err != nil {
		return fmt.Errorf("looking for this rig's consumer of its config, which control makes: %w", err)
	}
	for _, key := range wire.ConfigKeys {
		b, place, err := bus.LatestConfig(look, l.nc, l.cfg.Rig, key)
		if err != nil {
			return err
		}
		l.latest(key, place, b)
	}
	broken := make(chan error, 1)
	taking, err := consumer.Consume(l.came, jetstream.PullMaxMessages(len(wire.ConfigKeys)), jetstream.PullExpiry(pullExpiry),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			select {
			case broken <- err:
			default:
			}
		}))
	if err != nil {
		return fmt.Errorf("taking the config from the bus: %w", err)
	}
	defer taking.Stop()
	began()
	l.set("working", textTaking)
	tick := time.NewTicker(l.cfg.Poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-taking.Closed():
			return errors.New("taking the config from the bus: the connection ended")
		case err := <-broken:
			return fmt.Errorf("taking the config from the bus: %w", err)
		case <-tick.C:
			if l.cfg.Control.Key() != signs {
				return errControlKey
			}
		}
	}
}

// latest takes what the bus has for the key as the watch begins; no bytes say
// that control wrote none.
func (l *Loop) latest(key string, place uint64, b []byte) {
	if b == nil {
		l.mu.Lock()
		changed := l.held.none(key)
		l.mu.Unlock()
		if changed {
			l.tell()
		}
		return
	}
	l.mu.Lock()
	has, known := l.held.values[key]
	l.mu.Unlock()
	if known && has.place == place && has.raw == hash(b) {
		return // it was taken before the connection went
	}
	l.take(key, place, b)
}

// came takes a message of the consumer. It is acked whatever it is: one that
// can't be taken now can't be later.
func (l *Loop) came(msg jetstream.Msg) {
	defer func() {
		if err := msg.Ack(); err != nil {
			l.cfg.Log.Warn("a config value not acked; the bus hands it again", "subject", msg.Subject(), "err", err)
		}
	}()
	meta, err := msg.Metadata()
	if err != nil {
		l.cfg.Log.Error("a message that is none of the bus's is passed over", "err", err)
		return
	}
	key, ours := strings.CutPrefix(msg.Subject(), wire.ConfigSubject(l.cfg.Rig, ""))
	if !ours {
		l.cfg.Log.Error("a message of another subject is passed over", "subject", msg.Subject())
		return
	}
	l.mu.Lock()
	has, known := l.held.values[key]
	l.mu.Unlock()
	if known && (meta.Sequence.Stream < has.place || meta.Sequence.Stream == has.place && has.raw == hash(msg.Data())) {
		return // the watch began with it
	}
	l.take(key, meta.Sequence.Stream, msg.Data())
}

// take opens a value and holds it.
func (l *Loop) take(key string, place uint64, b []byte) {
	sealed, v, err := l.cfg.Opener.OpenConfig(l.cfg.Control.Key(), l.cfg.Rig, key, b)
	subject := wire.ConfigSubject(l.cfg.Rig, key)
	l.mu.Lock()
	if err != nil {
		l.held.refused(subject, err)
	} else {
		l.held.took(subject, key, value{place: place, raw: hash(b), revision: sealed.Revision, value: v})
	}
	l.mu.Unlock()
	if err != nil {
		l.cfg.Log.Warn("a config value not taken; this rig keeps the one it has", "key", key, "err", err)
		return
	}
	l.cfg.Log.Info("a config value was taken", "key", key, "revision", sealed.Revision)
	l.tell()
}

// tell tells whoever waits that a value changed.
func (l *Loop) tell() {
	l.mu.Lock()
	close(l.changed)
	l.changed = make(chan struct{})
	l.mu.Unlock()
	select {
	case l.due <- struct{}{}:
	default:
	}
}

// Changed gives what is closed at the next change: the advisors look then.
func (l *Loop) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}
