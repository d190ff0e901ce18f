package bus_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"thermite/pkg/bus/bustest"
	"thermite/pkg/wire"
)

// A leaf node may do what its rig may, never more, whatever it lets its own
// clients do: nothing that they publish elsewhere gets to the bus, and they
// see nothing of it.
func TestLeafMayNoMore(t *testing.T) {
	b := bustest.Start(t, bustest.Options{Leaf: true})
	b.AddRig("alpha", "run-of-alpha")
	b.AddRig("beta", "run-of-beta")
	b.EveryStream()
	leaf := b.Leaf("alpha")
	leaf.AwaitJoined()
	nc := leaf.Client()
	awaitAnswer(t, nc, wire.ReportSubject("alpha"))

	seen := make(chan string, 10_000)
	if _, err := nc.Subscribe(">", func(m *nats.Msg) { seen <- m.Subject }); err != nil {
		t.Fatal(err)
	}
	if err := nc.FlushTimeout(bustest.Wait); err != nil {
		t.Fatal(err)
	}
	control := b.Control()
	not := slices.Concat(rigMay("beta", "run-of-beta"), rigMayNot("alpha", "beta"))
	// A wildcard, published, is a subject of its own that no watcher can
	// subscribe to alone, and what the server itself listens to has its own
	// answers. Both are looked at below, by what they would have done.
	var watched []string
	for _, subject := range not {
		if !wildcard(subject) && !servers(subject) {
			watched = append(watched, subject)
		}
	}
	all := watchAll(t, control, watched)
	ours := make(map[string]bool)
	for _, subject := range not {
		ours[subject] = true
		if err := nc.PublishRequest(subject, "_INBOX.rig.alpha.answer", []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	request(t, nc, "thermite.jsapi.CONSUMER.INFO.COMMANDS.rig-alpha-commands")
	js := b.JS()
	ctx := within(t, bustest.Wait)
	sizes := streamSizes(t, ctx, js) // every stream is there
	if sizes[wire.StreamEvents]+sizes[wire.StreamLive]+sizes[wire.StreamCommands]+sizes[wire.StreamConfig]+sizes[wire.StreamKBFiles] != 0 {
		t.Errorf("messages got into the streams: %v", sizes)
	}
	for _, subject := range streamSubjects(t, ctx, js, wire.StreamReports) {
		if subject != wire.ReportSubject("alpha") {
			t.Errorf("REPORTS holds a page on %s", subject)
		}
	}
	// Something of control's own, which the leaf node must not see.
	if err := control.Publish("thermite.rig.alpha.secret", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(ctx, wire.CommandSubject("gamma"), []byte("command")); err != nil {
		t.Fatal(err)
	}
	fence(t, ctx, control, all)
	for _, subject := range watched {
		if n := all.count(subject); n != 0 {
			t.Errorf("%d messages got to %s", n, subject)
		}
	}
	request(t, nc, "thermite.jsapi.CONSUMER.INFO.COMMANDS.rig-alpha-commands")
	for len(seen) > 0 {
		subject := <-seen
		own := ours[subject] || subject == "thermite.jsapi.CONSUMER.INFO.COMMANDS.rig-alpha-commands" || strings.HasPrefix(subject, "_INBOX.rig.alpha.")
		if !own {
			t.Errorf("the leaf node sees %s", subject)
		}
	}
}

func wildcard(subject string) bool { return strings.ContainsAny(subject, "*>") }

// servers says that the server itself listens to such a subject.
func servers(subject string) bool {
	for _, prefix := range []string{"$JS.", "$SYS.", "_R_."} {
		if strings.HasPrefix(subject, prefix) {
			return true
		}
	}
	return false
}
