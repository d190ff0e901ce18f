package supervisor

import (
	"context"

	"github.com/nats-io/nats.go"

	"thermite/pkg/lines"
	"thermite/pkg/supervisor/live"
	"thermite/pkg/supervisor/stage"
	"thermite/pkg/wire"
)

// startLive makes the loop that publishes live lines, from what control said
// of its place.
func (s *Supervisor) startLive(nc *nats.Conn, place wire.Place) (*live.Loop, error) {
	publisher, err := live.NewPublisher(nc, s.cfg.Rig, s.times.Publish, s.denials)
	if err != nil {
		return nil, err
	}
	showing := live.New(live.Config{Rig: s.cfg.Rig, Harness: s.harness, Own: ownLines{s.own}, Bus: liveOnLink{s.link, publisher},
		Now: s.cfg.Now, Log: s.cfg.Log, OnStep: s.stepped})
	showing.Held(place)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = showing
	return showing, nil
}

// heldBy takes control's place in the rig's reports.
func (s *Supervisor) heldBy(place wire.Place) {
	s.mu.Lock()
	showing := s.live
	s.mu.Unlock()
	if showing != nil {
		showing.Held(place)
	}
}

// onError takes an error of the bus that is no matter of the connection.
func (s *Supervisor) onError(sub *nats.Subscription, err error) {
	if !s.denials.Take(err) {
		s.link.deny(sub, err)
	}
}

// liveOnLink publishes while the bus is there.
type liveOnLink struct {
	link *link
	bus  live.Bus
}

// Publish implements live.Bus.
func (o liveOnLink) Publish(ctx context.Context, subject, id string, batch []byte) error {
	if err := o.link.check(); err != nil {
		return err
	}
	ctx, cancel := o.link.while(ctx)
	defer cancel()
	return o.bus.Publish(ctx, subject, id, batch)
}

// ownLines are the supervisor's own.
type ownLines struct{ log *lines.Log }

// Lines implements live.Lines.
func (o ownLines) Lines(_ context.Context, start string, after uint64) (wire.LiveLines, error) {
	return o.log.Read(start, after)
}

// toldStager says live what it fetches. Where from, and with what access, is
// not said.
type toldStager struct {
	*stage.Stager
	own *lines.Log
}

// Stage implements commands.Stager.
func (t toldStager) Stage(ctx context.Context, id string, source wire.KitSource, access string) (string, error) {
	t.own.Say("", wire.LiveSupervisor, "fetching the kit of command "+id)
	folder, err := t.Stager.Stage(ctx, id, source, access)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		t.own.Say("", wire.LiveSupervisor, "the kit of command "+id+" could not be fetched: the command's outcome says why")
	default:
		t.own.Say("", wire.LiveSupervisor, "the kit of command "+id+" is here")
	}
	return folder, err
}
