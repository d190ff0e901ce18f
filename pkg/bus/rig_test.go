package bus_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/wire"
)

// ways are the two ways a rig is on the bus: with a connection of its own, or
// through a leaf node.
func ways(t *testing.T, f func(t *testing.T, b *bustest.Bus, alpha *nats.Conn)) {
	for name, leaf := range map[string]bool{"client": false, "leaf": true} {
		t.Run(name, func(t *testing.T) {
			b := bustest.Start(t, bustest.Options{Leaf: leaf})
			b.AddRig("alpha", "run-of-alpha")
			b.AddRig("beta", "run-of-beta")
			b.EveryStream()
			if !leaf {
				f(t, b, b.Rig("alpha"))
				return
			}
			l := b.Leaf("alpha")
			l.AwaitJoined()
			nc := l.Client()
			awaitAnswer(t, nc, "thermite.jsapi.CONSUMER.INFO.COMMANDS.rig-alpha-commands")
			f(t, b, nc)
		})
	}
}

// answerAsks has control answer every ask of the rigs, as it does.
func answerAsks(t testing.TB, nc *nats.Conn) {
	t.Helper()
	for _, subject := range []string{wire.AskSubject("*", "*"), wire.KBSearchSubject("*"), wire.KBReadSubject("*")} {
		_, err := nc.Subscribe(subject, func(m *nats.Msg) { _ = m.Respond([]byte("answer to " + m.Subject)) })
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.FlushTimeout(bustest.Wait); err != nil {
		t.Fatal(err)
	}
}

// A rig can do all of its part, whichever way it is on the bus.
func TestRigDoesItsPart(t *testing.T) {
	ways(t, func(t *testing.T, b *bustest.Bus, alpha *nats.Conn) {
		ctx := within(t, bustest.Wait)
		control := b.JS()
		answerAsks(t, control.Conn())

		for stream, subject := range map[string]string{
			wire.StreamReports: wire.ReportSubject("alpha"), wire.StreamKBFiles: wire.KBFileSubject("alpha"),
		} {
			ack := publish(t, ctx, alpha, subject, "a page", "id-1")
			if !strings.Contains(ack, `"stream":"`+stream+`"`) || strings.Contains(ack, "duplicate") {
				t.Errorf("%s: %s", subject, ack)
			}
			if ack := publish(t, ctx, alpha, subject, "a page", "id-1"); !strings.Contains(ack, `"duplicate": true`) {
				t.Errorf("%s again: %s", subject, ack)
			}
		}
		for _, subject := range []string{wire.RigLiveSubject("alpha", "planner"), wire.RunLiveSubject("run-of-alpha", "trial-1")} {
			if ack := publish(t, ctx, alpha, subject, "lines", ""); !strings.Contains(ack, `"stream":"LIVE"`) {
				t.Errorf("%s: %s", subject, ack)
			}
		}
		asks := []string{wire.KBSearchSubject("alpha"), wire.KBReadSubject("alpha")}
		for _, kind := range wire.AskKinds {
			asks = append(asks, wire.AskSubject("alpha", kind))
		}
		for _, subject := range asks {
			answer, err := alpha.RequestWithContext(ctx, subject, []byte("ask"))
			if err != nil || string(answer.Data) != "answer to "+subject {
				t.Errorf("%s: %v, %v", subject, answer, err)
			}
		}
		takesCommands(t, ctx, control, alpha)
		readsConfig(t, ctx, control, alpha)
	})
}

func publish(t testing.TB, ctx context.Context, nc *nats.Conn, subject, data, id string) string {
	t.Helper()
	m := nats.NewMsg(subject)
	m.Data = []byte(data)
	if id != "" {
		m.Header.Set(jetstream.MsgIDHeader, id)
	}
	ack, err := nc.RequestMsgWithContext(ctx, m)
	if err != nil {
		t.Fatalf("%s: %v", subject, err)
	}
	return string(ack.Data)
}

// takesCommands takes three commands with the rig's consumer: one by Next,
// two by Consume, each acked.
func takesCommands(t *testing.T, ctx context.Context, control jetstream.JetStream, alpha *nats.Conn) {
	t.Helper()
	for i := range 3 {
		for _, rig := range []string{"alpha", "beta"} {
			if _, err := control.Publish(ctx, wire.CommandSubject(rig), fmt.Appendf(nil, "%s %d", rig, i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	js, err := jetstream.NewWithAPIPrefix(alpha, bus.JSAPIPrefix)
	if err != nil {
		t.Fatal(err)
	}
	cons, err := js.Consumer(ctx, wire.StreamCommands, wire.CommandsConsumer("alpha"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := cons.Next(jetstream.FetchMaxWait(bustest.Wait))
	if err != nil || string(m.Data()) != "alpha 0" {
		t.Fatalf("next: %v, %v", m, err)
	}
	if err := m.DoubleAck(ctx); err != nil {
		t.Error(err)
	}
	got := make(chan string, 10)
	c, err := cons.Consume(func(m jetstream.Msg) {
		if err := m.DoubleAck(ctx); err != nil {
			t.Error(err)
		}
		got <- string(m.Data())
	}, jetstream.PullExpiry(5*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop()
	for i := 1; i < 3; i++ {
		select {
		case data := <-got:
			if want := fmt.Sprintf("alpha %d", i); data != want {
				t.Errorf("took %q, not %q", data, want)
			}
		case <-ctx.Done():
			t.Fatal("no command came")
		}
	}
	s, err := control.Stream(ctx, wire.StreamCommands)
	if err != nil {
		t.Fatal(err)
	}
	if left := s.CachedInfo().State.Msgs; left != 3 {
		t.Errorf("%d commands are left, where beta's 3 should be", left)
	}
}

// readsConfig reads the latest value of a key, and takes the next one from
// the rig's consumer.
func readsConfig(t *testing.T, ctx context.Context, control jetstream.JetStream, alpha *nats.Conn) {
	t.Helper()
	for _, value := range []string{"one", "two"} {
		for _, rig := range []string{"alpha", "beta"} {
			if _, err := control.Publish(ctx, wire.ConfigSubject(rig, "model-route"), []byte(rig+" "+value)); err != nil {
				t.Fatal(err)
			}
		}
	}
	subject := "thermite.jsapi.DIRECT.GET.CONFIG." + wire.ConfigSubject("alpha", "model-route")
	m, err := alpha.RequestWithContext(ctx, subject, nil)
	if err != nil || string(m.Data) != "alpha two" {
		t.Fatalf("the latest value: %v, %v", m, err)
	}
	for _, ask := range []string{
		`{"last_by_subj":"thermite.rig.beta.config.model-route"}`, `{"next_by_subj":"thermite.rig.beta.config.model-route"}`, `{"seq":1}`, `{"seq":4}`,
		`{"multi_last":["thermite.rig.*.config.*"]}`, `{"batch":10,"next_by_subj":"thermite.>"}`, `{"batch":10}`,
	} {
		m, err := alpha.RequestWithContext(ctx, subject, []byte(ask))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(m.Data), "beta") {
			t.Errorf("asking for %s gives another rig's config", ask)
		}
	}
	js, err := jetstream.NewWithAPIPrefix(alpha, bus.JSAPIPrefix)
	if err != nil {
		t.Fatal(err)
	}
	cons, err := js.Consumer(ctx, wire.StreamConfig, wire.ConfigConsumer("alpha"))
	if err != nil {
		t.Fatal(err)
	}
	next, err := cons.Next(jetstream.FetchMaxWait(bustest.Wait))
	if err != nil || string(next.Data()) != "alpha two" {
		t.Fatalf("the consumer: %v, %v", next, err)
	}
	if err := next.DoubleAck(ctx); err != nil {
		t.Error(err)
	}
}

// watch counts the messages on some subjects of control's account. It
// subscribes to each alone: a subscription to everything would see a stream's
// messages on their way to an inbox, under the subject they are stored on.
type watch struct {
	mu   sync.Mutex
	seen map[string]int
}

func watchAll(t testing.TB, nc *nats.Conn, subjects []string) *watch {
	t.Helper()
	w := &watch{seen: make(map[string]int)}
	for _, subject := range append([]string{"fence"}, subjects...) {
		_, err := nc.Subscribe(subject, func(*nats.Msg) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.seen[subject]++
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.FlushTimeout(bustest.Wait); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *watch) count(subject string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[subject]
}

// Whatever reply a rig names, on whatever it may publish, no answer of the
// server's or of control's gets to another rig's subject or to any other of
// control's: it stays in the rig's account.
func TestRepliesStayInside(t *testing.T) {
	ways(t, func(t *testing.T, b *bustest.Bus, alpha *nats.Conn) {
		ctx := within(t, bustest.Wait)
		control := b.JS()
		answerAsks(t, control.Conn())
		beta := b.Rig("beta")
		betas := make(chan string, 1000)
		if _, err := beta.Subscribe(wire.RigInbox("beta")+".>", func(m *nats.Msg) { betas <- m.Subject }); err != nil {
			t.Fatal(err)
		}
		if err := beta.FlushTimeout(bustest.Wait); err != nil {
			t.Fatal(err)
		}
		targets := []string{
			wire.ReportSubject("beta"), wire.RigLiveSubject("beta", "planner"), wire.RunLiveSubject("run-of-beta", "trial-1"), wire.KBFileSubject("beta"),
			wire.AskSubject("beta", "figures"), wire.CommandSubject("alpha"), wire.CommandSubject("beta"), wire.ConfigSubject("alpha", "model-route"),
			wire.ConfigSubject("beta", "model-route"), wire.RigEventSubject("alpha", "verdict"), wire.RigEventSubject("beta", "verdict"),
			wire.RunEventSubject("run-of-alpha", "verdict"), wire.RunEventSubject("run-of-beta", "verdict"), wire.RunQueueSubject("run-of-beta", "added"),
			"$JS.API.STREAM.PURGE.EVENTS", "$JS.API.STREAM.DELETE.REPORTS", "$JS.API.STREAM.DELETE.COMMANDS", "$KV.x.y",
			"_INBOX.rig.beta.forged", "_INBOX.control.forged", "_INBOX.backup.forged", "_INBOX.system.forged",
		}
		all := watchAll(t, b.Control(), targets)
		subjects := append(rigMay("alpha", "run-of-alpha"), "thermite.jsapi.CONSUMER.MSG.NEXT.COMMANDS.rig-alpha-commands")
		for range 50 {
			if _, err := control.Publish(ctx, wire.CommandSubject("alpha"), []byte("command")); err != nil {
				t.Fatal(err)
			}
		}
		for _, key := range wire.ConfigKeys {
			if _, err := control.Publish(ctx, wire.ConfigSubject("alpha", key), []byte("value")); err != nil {
				t.Fatal(err)
			}
		}
		until(t, "the watcher has seen what control wrote", func() bool {
			return all.count(wire.CommandSubject("alpha")) == 50 && all.count(wire.ConfigSubject("alpha", "model-route")) == 1
		})
		before := make(map[string]int)
		for _, target := range targets {
			before[target] = all.count(target)
		}
		sizes := streamSizes(t, ctx, control)

		for _, target := range targets {
			for _, subject := range subjects {
				if err := alpha.PublishRequest(subject, target, []byte("")); err != nil {
					t.Fatal(err)
				}
			}
		}
		// Each service answers in order: once it answers this, it answered
		// all of those.
		for _, subject := range subjects {
			if strings.HasPrefix(subject, "$JS.ACK.") {
				continue
			}
			if _, err := alpha.RequestWithContext(ctx, subject, []byte(`{"no_wait":true}`)); err != nil {
				t.Errorf("%s does not answer any more: %v", subject, err)
			}
		}
		if err := control.Conn().FlushTimeout(bustest.Wait); err != nil {
			t.Fatal(err)
		}
		fence(t, ctx, control.Conn(), all)
		for _, target := range targets {
			if n := all.count(target) - before[target]; n != 0 {
				t.Errorf("%d answers got to %s", n, target)
			}
		}
		select {
		case subject := <-betas:
			t.Errorf("an answer got to beta, on %s", subject)
		default:
		}
		now := streamSizes(t, ctx, control)
		for stream := range sizes {
			if stream == wire.StreamEvents || stream == wire.StreamCommands || stream == wire.StreamConfig {
				if now[stream] != sizes[stream] {
					t.Errorf("%s went from %d to %d messages", stream, sizes[stream], now[stream])
				}
			}
		}
		for _, stream := range []string{wire.StreamReports, wire.StreamLive, wire.StreamKBFiles} {
			for _, subject := range streamSubjects(t, ctx, control, stream) {
				if !slices.Contains(subjects, subject) {
					t.Errorf("%s holds messages on %s", stream, subject)
				}
			}
		}
	})
}

// fence returns once the watcher has seen all that was sent before.
func fence(t testing.TB, ctx context.Context, nc *nats.Conn, w *watch) {
	t.Helper()
	if err := nc.Publish("fence", nil); err != nil {
		t.Fatal(err)
	}
	until(t, "the watcher sees the fence", func() bool { return w.count("fence") > 0 })
}

func streamSizes(t testing.TB, ctx context.Context, js jetstream.JetStream) map[string]uint64 {
	t.Helper()
	out := make(map[string]uint64)
	list := js.ListStreams(ctx)
	for info := range list.Info() {
		out[info.Config.Name] = info.State.LastSeq
	}
	if err := list.Err(); err != nil {
		t.Fatal(err)
	}
	if len(out) != 6 {
		t.Fatalf("there are %d streams", len(out))
	}
	return out
}

func streamSubjects(t testing.TB, ctx context.Context, js jetstream.JetStream, stream string) []string {
	t.Helper()
	s, err := js.Stream(ctx, stream)
	if err != nil {
		t.Fatal(err)
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(">"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for subject := range info.State.Subjects {
		out = append(out, subject)
	}
	return out
}

// A rig's acks reach its own consumer and no other's: no other command is
// handed to it or lost, whatever form an ack is given.
func TestAcksStayOwn(t *testing.T) {
	ways(t, func(t *testing.T, b *bustest.Bus, alpha *nats.Conn) {
		ctx := within(t, bustest.Wait)
		control := b.JS()
		if _, err := control.Publish(ctx, wire.CommandSubject("beta"), []byte("beta's secret")); err != nil {
			t.Fatal(err)
		}
		inbox, err := alpha.SubscribeSync(alpha.NewInbox())
		if err != nil {
			t.Fatal(err)
		}
		for _, subject := range []string{
			"$JS.ACK.COMMANDS.rig-beta-commands.1.1.1.1.1",
			"$JS.ACK.COMMANDS.rig-beta-commands.COMMANDS.rig-alpha-commands.1.1.1",
			"$JS.ACK._." + hash + ".COMMANDS.rig-beta-commands.1.1.1.1.1",
			"$JS.ACK.COMMANDS.rig-alpha-commands.1.1.1.1.1",
		} {
			for _, what := range []string{"+NXT", `+NXT {"batch":1}`, "+ACK", "+TERM"} {
				if err := alpha.PublishRequest(subject, inbox.Subject, []byte(what)); err != nil {
					t.Fatal(err)
				}
			}
		}
		js, err := jetstream.NewWithAPIPrefix(b.Rig("beta"), bus.JSAPIPrefix)
		if err != nil {
			t.Fatal(err)
		}
		cons, err := js.Consumer(ctx, wire.StreamCommands, wire.CommandsConsumer("beta"))
		if err != nil {
			t.Fatal(err)
		}
		m, err := cons.Next(jetstream.FetchMaxWait(bustest.Wait))
		if err != nil {
			t.Fatalf("beta's command is gone: %v", err)
		}
		meta, err := m.Metadata()
		if err != nil || string(m.Data()) != "beta's secret" || meta.NumDelivered != 1 || meta.Sequence.Consumer != 1 {
			t.Errorf("beta got %q, %+v, %v", m.Data(), meta, err)
		}
		// What came for alpha before this answer is there with it.
		request(t, alpha, "thermite.jsapi.CONSUMER.INFO.COMMANDS.rig-alpha-commands")
		for n, _, _ := inbox.Pending(); n > 0; n-- {
			m, err := inbox.NextMsgWithContext(ctx)
			if err != nil && !errors.Is(err, nats.ErrNoResponders) {
				t.Fatal(err)
			}
			if m != nil && strings.Contains(string(m.Data), "beta") {
				t.Errorf("alpha got %q", m.Data)
			}
		}
	})
}

// ackedInForm holds that the server hands alpha a command whose ack begins
// so, and that alpha's ack of it counts.
func ackedInForm(t *testing.T, control, alpha *nats.Conn, form string) {
	t.Helper()
	ctx := within(t, bustest.Wait)
	js, err := jetstream.New(control)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.CreateStream(ctx, jetstream.StreamConfig{
		Name: wire.StreamCommands, Subjects: []string{wire.CommandSubject("*")}, Retention: jetstream.WorkQueuePolicy,
	})
	if err != nil {
		t.Fatal(err)
	}
	consumer := jetstream.ConsumerConfig{Durable: wire.CommandsConsumer("alpha"), AckPolicy: jetstream.AckExplicitPolicy}
	if _, err := s.CreateConsumer(ctx, consumer); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(ctx, wire.CommandSubject("alpha"), nil); err != nil {
		t.Fatal(err)
	}
	rig, err := jetstream.NewWithAPIPrefix(alpha, bus.JSAPIPrefix)
	if err != nil {
		t.Fatal(err)
	}
	cons, err := rig.Consumer(ctx, wire.StreamCommands, wire.CommandsConsumer("alpha"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := cons.Next(jetstream.FetchMaxWait(bustest.Wait))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(m.Reply(), form) {
		t.Errorf("its ack is %s, not %s…", m.Reply(), form)
	}
	if err := m.DoubleAck(ctx); err != nil {
		t.Error(err)
	}
	if info, err := s.Info(ctx); err != nil || info.State.Msgs != 0 {
		t.Errorf("the stream holds %v, %v", info, err)
	}
}
