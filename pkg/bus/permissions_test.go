package bus_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/wire"
)

// user is a connection and what the server refused it.
type user struct {
	nc      *nats.Conn
	refused chan string
}

func connect(b *bustest.Bus, d bus.Dial) *user {
	u := &user{refused: make(chan string, 10)}
	d.OnError = func(_ *nats.Subscription, err error) { u.refused <- err.Error() }
	u.nc = b.Connect(d)
	return u
}

// mayPublish publishes on the subject and says whether the server lets it.
func (u *user) mayPublish(t testing.TB, subject string) bool {
	t.Helper()
	if err := u.nc.PublishRequest(subject, u.nc.NewRespInbox(), []byte("{}")); err != nil {
		t.Fatalf("publishing on %s: %v", subject, err)
	}
	return !u.wasRefused(t, "publish", subject)
}

// maySubscribe subscribes to the subject and says whether the server lets it.
func (u *user) maySubscribe(t testing.TB, subject string) bool {
	t.Helper()
	sub, err := u.nc.SubscribeSync(subject)
	if err != nil {
		t.Fatalf("subscribing to %s: %v", subject, err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	return !u.wasRefused(t, "subscription", subject)
}

// wasRefused says whether the server refused what was sent before. The
// server answers in order, and the client hands a refusal on in the order it
// came, so once a second, surely refused, publish is handed on too, the
// first one would have been.
func (u *user) wasRefused(t testing.TB, what, subject string) bool {
	t.Helper()
	const fence = "fence.that.nobody.may"
	if err := u.nc.Publish(fence, nil); err != nil {
		t.Fatal(err)
	}
	was := false
	for end := time.After(bustest.Wait); ; {
		select {
		case err := <-u.refused:
			if strings.Contains(err, fence) {
				return was
			}
			was = was || strings.Contains(strings.ToLower(err), "permissions violation for "+what+` to "`+strings.ToLower(subject)+`"`)
		case <-end:
			t.Fatal("the server does not refuse the fence")
		}
	}
}

// hash is how the server names control's account in the second form of an
// ack.
var hash = bus.AccountHash(bus.AccountControl)

// rigMay is all that a rig may publish.
func rigMay(rig, run string) []string {
	may := []string{
		wire.ReportSubject(rig),
		wire.RigLiveSubject(rig, "planner"),
		wire.RunLiveSubject(run, "trial-1"),
		wire.KBFileSubject(rig),
		wire.KBSearchSubject(rig),
		wire.KBReadSubject(rig),
	}
	for _, kind := range wire.AskKinds {
		may = append(may, wire.AskSubject(rig, kind))
	}
	for _, c := range []struct{ stream, consumer string }{
		{"COMMANDS", "rig-" + rig + "-commands"}, {"CONFIG", "rig-" + rig + "-config"},
	} {
		may = append(may,
			"thermite.jsapi.CONSUMER.INFO."+c.stream+"."+c.consumer,
			"thermite.jsapi.CONSUMER.MSG.NEXT."+c.stream+"."+c.consumer,
			"$JS.ACK."+c.stream+"."+c.consumer+".1.1.1.1.1",
			"$JS.ACK._."+hash+"."+c.stream+"."+c.consumer+".1.1.1.1.1",
		)
	}
	for _, key := range wire.ConfigKeys {
		may = append(may, "thermite.jsapi.DIRECT.GET.CONFIG.thermite.rig."+rig+".config."+key)
	}
	return may
}

// rigMayNot is what a rig may not publish, whosever it is.
func rigMayNot(rig, other string) []string {
	var not []string
	for _, api := range []string{"$JS.API", "thermite.jsapi"} {
		for _, stream := range []string{"REPORTS", "EVENTS", "COMMANDS", "LIVE", "CONFIG", "KB_FILES"} {
			for _, what := range []string{
				"STREAM.INFO.%s", "STREAM.CREATE.%s", "STREAM.UPDATE.%s", "STREAM.DELETE.%s", "STREAM.PURGE.%s",
				"STREAM.MSG.GET.%s", "STREAM.MSG.DELETE.%s", "STREAM.SNAPSHOT.%s", "STREAM.RESTORE.%s",
				"DIRECT.GET.%s", "CONSUMER.LIST.%s", "CONSUMER.NAMES.%s",
				"CONSUMER.CREATE.%s", "CONSUMER.CREATE.%s.mine", "CONSUMER.CREATE.%s.mine.thermite.rig." + rig + ".cmd", "CONSUMER.DURABLE.CREATE.%s.mine",
			} {
				not = append(not, api+"."+fmt.Sprintf(what, stream))
			}
			for _, consumer := range []string{"rig-" + rig + "-commands", "rig-" + rig + "-config", "rig-" + other + "-commands", "control-reports"} {
				for _, what := range []string{"DELETE", "CREATE", "DURABLE.CREATE", "PAUSE", "UNPIN", "RESET"} {
					not = append(not, api+".CONSUMER."+what+"."+stream+"."+consumer)
				}
			}
		}
		not = append(not, api+".INFO", api+".STREAM.LIST", api+".STREAM.NAMES", api+".ACCOUNT.PURGE.CONTROL",
			api+".CONSUMER.INFO.REPORTS.control-reports", api+".CONSUMER.MSG.NEXT.REPORTS.control-reports",
			api+".CONSUMER.MSG.NEXT.COMMANDS.rig-"+rig+"-config", api+".CONSUMER.MSG.NEXT.CONFIG.rig-"+rig+"-commands",
			api+".DIRECT.GET.CONFIG.thermite.rig."+rig+".config.other", api+".DIRECT.GET.CONFIG.thermite.rig."+rig+".config.*",
			api+".DIRECT.GET.CONFIG.thermite.rig."+rig+".config.>", api+".DIRECT.GET.COMMANDS.thermite.rig."+rig+".cmd")
	}
	for _, own := range []string{"CONSUMER.INFO.COMMANDS.rig-" + rig + "-commands", "CONSUMER.MSG.NEXT.COMMANDS.rig-" + rig + "-commands"} {
		not = append(not, "$JS.API."+own)
	}
	return append(not,
		// Its own subjects that only control writes.
		wire.CommandSubject(rig), wire.ConfigSubject(rig, "model-route"), "$KV.CONFIG."+rig+".model-route",
		wire.RigEventSubject(rig, "run_created"), wire.RunEventSubject("run-of-"+rig, "run_created"), wire.RunQueueSubject("run-of-"+rig, "added"),
		// Near its own.
		wire.ReportSubject(rig)+".more", wire.RigLiveSubject(rig, "a.b"), wire.AskSubject(rig, "other"), wire.KBFileSubject(rig)+".more",
		wire.ReportSubject("*"), wire.ReportSubject(">"), wire.RigLiveSubject("*", "planner"), wire.RunLiveSubject("*", "planner"),
		// Runs nobody gave it.
		wire.RunLiveSubject("run-of-"+other, "planner"), wire.RunLiveSubject("run-of-nobody", "planner"),
		// Acks of another rig's consumer, in both forms, and the second form
		// of its own dressed as the first form of another's.
		"$JS.ACK.COMMANDS.rig-"+other+"-commands.1.1.1.1.1", "$JS.ACK._."+hash+".COMMANDS.rig-"+other+"-commands.1.1.1.1.1",
		"$JS.ACK.COMMANDS.rig-"+other+"-commands.COMMANDS.rig-"+rig+"-commands.1.1.1",
		"$JS.ACK.REPORTS.control-reports.COMMANDS.rig-"+rig+"-commands.1.1.1",
		"$JS.ACK.REPORTS.control-reports.1.1.1.1.1", "$JS.FC.COMMANDS.rig-"+rig+"-commands.1", "$JS.SNAPSHOT.ACK.EVENTS.x",
		// Inboxes, the system's, and anything else.
		"_INBOX.rig."+other+".x.1", "_INBOX.rig."+rig+".x.1", "_INBOX.control.x.1", "_INBOX.backup.x.1", "_R_.x.1",
		"$SYS.REQ.SERVER.PING", "$SYS.REQ.SERVER.PING.CONNZ", "$SYS.REQ.ACCOUNT.CONTROL.CONNZ", "$SYS.REQ.ACCOUNT.PING.CONNZ", "$SYS.REQ.USER.INFO",
		"anything", "thermite", "thermite.rig."+rig, "thermite.jsapi",
	)
}

// Each row of the table of who may do what, against the real server: what a
// user may publish and subscribe to, and what it may not.
func TestPermissions(t *testing.T) {
	b := bustest.Start(t, bustest.Options{})
	b.AddRig("alpha", "run-of-alpha")
	b.AddRig("beta", "run-of-beta")
	b.AddRig("a", "r")
	b.AddRig("alpha-commands")
	b.EveryStream()

	alpha := connect(b, b.RigDial("alpha"))
	system := connect(b, b.Dial(b.Key("system"), "system", bus.SystemInbox))
	backup := connect(b, b.Dial(b.Key("backup"), "backup", wire.BackupInbox))

	rows := []struct {
		who            string
		user           *user
		may, mayNot    []string
		listen, deafTo []string
	}{
		{
			who: "a rig", user: alpha,
			may:    rigMay("alpha", "run-of-alpha"),
			mayNot: slices.Concat(rigMay("beta", "run-of-beta"), rigMay("a", "r"), rigMay("alpha-commands", "x"), rigMayNot("alpha", "beta")),
			listen: []string{"_INBOX.rig.alpha.x", "_INBOX.rig.alpha.x.*", "_INBOX.rig.alpha.>"},
			deafTo: []string{
				">", "*", "_INBOX.>", "_INBOX.rig.*.>", "_INBOX.rig.beta.>", "_INBOX.rig.beta.x", "_INBOX.rig.alpha", "_INBOX.control.>", "_INBOX.backup.>", "_R_.>",
				"thermite.>", "thermite.rig.alpha.cmd", "thermite.rig.alpha.>", "thermite.rig.alpha.config.*", "thermite.rig.alpha.report",
				"thermite.rig.beta.report", "thermite.rig.beta.>", "thermite.run.run-of-alpha.>", "thermite.run.*.live.*", "$JS.>", "$SYS.>", "$JS.EVENT.>",
			},
		},
		{
			who: "the backup", user: backup,
			may: []string{
				"$JS.API.STREAM.INFO.EVENTS", "$JS.API.STREAM.MSG.GET.EVENTS", "$JS.API.STREAM.SNAPSHOT.EVENTS", "$JS.API.STREAM.RESTORE.EVENTS",
				"$JS.SNAPSHOT.ACK.EVENTS.x", "$JS.SNAPSHOT.RESTORE.EVENTS.x",
			},
			mayNot: slices.Concat(rigMay("alpha", "run-of-alpha"), slices.DeleteFunc(rigMayNot("alpha", "beta"), func(s string) bool {
				return s == "$JS.API.STREAM.INFO.EVENTS" || s == "$JS.API.STREAM.MSG.GET.EVENTS" || s == "$JS.API.STREAM.SNAPSHOT.EVENTS" ||
					s == "$JS.API.STREAM.RESTORE.EVENTS" || s == "$JS.SNAPSHOT.ACK.EVENTS.x"
			}), []string{"$JS.SNAPSHOT.ACK.REPORTS.x", "$JS.SNAPSHOT.RESTORE.REPORTS.x"}),
			listen: []string{"_INBOX.backup.x", "_INBOX.backup.>"},
			deafTo: []string{">", "_INBOX.>", "_INBOX.control.>", "_INBOX.rig.alpha.>", "thermite.>", "thermite.run.*.ev.*", "$JS.>", "$SYS.>"},
		},
		{
			who: "control's system user", user: system,
			may: []string{
				"$SYS.REQ.SERVER." + b.Server().ID() + ".JSZ", "$SYS.REQ.SERVER." + b.Server().ID() + ".VARZ", "$SYS.REQ.SERVER." + b.Server().ID() + ".CONNZ",
				"$SYS.REQ.SERVER." + b.Server().ID() + ".LEAFZ", "$SYS.REQ.SERVER." + b.Server().ID() + ".RELOAD", "$SYS.REQ.SERVER." + b.Server().ID() + ".KICK",
			},
			// All servers' connections are this one's.
			mayNot: slices.Concat(rigMay("alpha", "run-of-alpha"), slices.DeleteFunc(rigMayNot("alpha", "beta"), func(s string) bool {
				return s == "$SYS.REQ.SERVER.PING.CONNZ"
			}), []string{
				"$SYS.REQ.SERVER." + b.Server().ID() + ".SUBSZ", "$SYS.REQ.SERVER." + b.Server().ID() + ".LDM", "$SYS.REQ.SERVER." + b.Server().ID() + ".PROFILEZ",
				"$SYS.REQ.CLAIMS.UPDATE", "$SYS.ACCOUNT.CONTROL.CONNECT", "$SYS.DEBUG.SUBSCRIBERS",
			}),
			listen: []string{"_INBOX.system.x", "_INBOX.system.>"},
			deafTo: []string{">", "_INBOX.>", "_INBOX.control.>", "$SYS.>", "$SYS.ACCOUNT.>", "thermite.>"},
		},
	}
	for _, row := range rows {
		for _, subject := range row.may {
			if !row.user.mayPublish(t, subject) {
				t.Errorf("%s may not publish on %s", row.who, subject)
			}
		}
		for _, subject := range row.mayNot {
			if row.user.mayPublish(t, subject) {
				t.Errorf("%s may publish on %s", row.who, subject)
			}
		}
		for _, subject := range row.listen {
			if !row.user.maySubscribe(t, subject) {
				t.Errorf("%s may not subscribe to %s", row.who, subject)
			}
		}
		for _, subject := range row.deafTo {
			if row.user.maySubscribe(t, subject) {
				t.Errorf("%s may subscribe to %s", row.who, subject)
			}
		}
	}
}

// Control may do everything but delete EVENTS.
func TestControlMay(t *testing.T) {
	b := bustest.Start(t, bustest.Options{Rigs: []string{"alpha"}})
	b.EveryStream()
	js := b.JS()
	ctx := within(t, bustest.Wait)
	if _, err := bus.PublishBatch(ctx, js, eventMsgs(10, 10, 1), 0); err != nil {
		t.Fatal(err)
	}
	short := within(t, 300*time.Millisecond)
	if err := js.DeleteStream(short, wire.StreamEvents); err == nil {
		t.Error("control deleted EVENTS")
	}
	s, err := js.Stream(ctx, wire.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteMsg(ctx, 5); err == nil {
		t.Error("control deleted a message of EVENTS")
	}
	if err := s.Purge(ctx); err != nil {
		t.Errorf("control may not purge EVENTS: %v", err)
	}
	for _, stream := range []string{wire.StreamReports, wire.StreamCommands, wire.StreamConfig, wire.StreamLive, wire.StreamKBFiles} {
		if err := js.DeleteStream(ctx, stream); err != nil {
			t.Errorf("control may not delete %s: %v", stream, err)
		}
	}
}

// A key that the server does not know, and another's certificate, are
// refused, and the connection keeps trying.
func TestUnknownKey(t *testing.T) {
	b := bustest.Start(t, bustest.Options{Rigs: []string{"alpha"}})
	failed := make(chan error, 100)
	d := b.Dial(b.RigKey("stranger"), "stranger", wire.RigInbox("alpha"))
	d.OnState = func(connected bool, err error) {
		if connected {
			err = errors.New("it is connected")
		}
		select {
		case failed <- err:
		default:
		}
	}
	nc, err := bus.Connect(within(t, bustest.Wait), d)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	select {
	case err := <-failed:
		if !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("got %v", err)
		}
	case <-time.After(bustest.Wait):
		t.Fatal("no word of the refusal")
	}
	tried := nc.Stats().Reconnects
	until(t, "it tries again and again", func() bool { return nc.Stats().Reconnects > tried+5 })
	if nc.IsClosed() {
		t.Error("the connection has given up")
	}
	b.SetUsers(bus.Users{
		Control: b.Key("control").Public(), System: b.Key("system").Public(),
		Rigs: []bus.RigUser{{Rig: "alpha", Key: b.RigKey("stranger").Public()}},
	})
	until(t, "the key is known and signs in", nc.IsConnected)

	other := bustest.Start(t, bustest.Options{})
	d = b.RigDial("alpha")
	d.Authority = other.Authority.Pool()
	nc, err = bus.Connect(within(t, bustest.Wait), d)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if nc.IsConnected() {
		t.Error("a server that another authority signed for is trusted")
	}
}
