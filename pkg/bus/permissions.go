package bus

import (
	"crypto/sha256"

	"thermite/pkg/wire"
)

// JSAPIPrefix is the name that a rig calls the JetStream API by. The server
// lets no $JS.API subject across a leaf node's connection, so every rig's
// account takes the API's services under this one.
const JSAPIPrefix = "thermite.jsapi"

// The accounts beside the rigs', each of which has its rig's name. A rig's
// name is lower case, so none can be these.
const (
	AccountControl = "CONTROL"
	AccountSystem  = "SYS"
)

// The inboxes of control's own users.
const (
	ControlInbox = "_INBOX.control"
	SystemInbox  = "_INBOX.system"
)

const jsAPI = "$JS.API"

// service is one subject that control's account gives the rigs' accounts.
type service struct {
	// subject is the export, with a wildcard where each rig's differs: the
	// cost of an export for each rig would grow with the square of the rigs.
	subject string
	// rigToken is the subject's token that is the rig's name, from 1: the
	// server refuses an import of another's. 0 where the name is only a part
	// of a token; there the imports below are all that holds.
	rigToken int
	// stream says that one request may have many answers.
	stream bool
}

// services are the exports of control's account.
var services = []service{
	{subject: wire.ReportSubject("*"), rigToken: 3},
	{subject: wire.RigLiveSubject("*", "*"), rigToken: 3},
	{subject: wire.RunLiveSubject("*", "*")},
	{subject: wire.KBFileSubject("*"), rigToken: 3},
	{subject: wire.KBSearchSubject("*"), rigToken: 4},
	{subject: wire.KBReadSubject("*"), rigToken: 4},
	{subject: wire.AskSubject("*", "*"), rigToken: 3},
	{subject: infoSubject(jsAPI, wire.StreamCommands, "*")},
	{subject: infoSubject(jsAPI, wire.StreamConfig, "*")},
	{subject: nextSubject(jsAPI, wire.StreamCommands, "*"), stream: true},
	{subject: nextSubject(jsAPI, wire.StreamConfig, "*"), stream: true},
	{subject: latestSubject(jsAPI, wire.ConfigSubject("*", "*")), rigToken: 8},
	{subject: ackSubject(wire.StreamCommands, "*")},
	{subject: ackSubject(wire.StreamConfig, "*")},
	{subject: ackSubjectV2(wire.StreamCommands, "*")},
	{subject: ackSubjectV2(wire.StreamConfig, "*")},
}

// grant is one subject that a rig may publish: as, under the rig's own name
// for it, and subject in control's account.
type grant struct{ subject, as string }

// rigGrants are all that a rig may publish.
func rigGrants(u RigUser) []grant {
	same := func(subject string) grant { return grant{subject, subject} }
	commands, config := wire.CommandsConsumer(u.Rig), wire.ConfigConsumer(u.Rig)
	gs := []grant{
		same(wire.ReportSubject(u.Rig)),
		same(wire.RigLiveSubject(u.Rig, "*")),
		same(wire.KBFileSubject(u.Rig)),
		same(wire.KBSearchSubject(u.Rig)),
		same(wire.KBReadSubject(u.Rig)),
		{infoSubject(jsAPI, wire.StreamCommands, commands), infoSubject(JSAPIPrefix, wire.StreamCommands, commands)},
		{infoSubject(jsAPI, wire.StreamConfig, config), infoSubject(JSAPIPrefix, wire.StreamConfig, config)},
		{nextSubject(jsAPI, wire.StreamCommands, commands), nextSubject(JSAPIPrefix, wire.StreamCommands, commands)},
		{nextSubject(jsAPI, wire.StreamConfig, config), nextSubject(JSAPIPrefix, wire.StreamConfig, config)},
		same(ackSubject(wire.StreamCommands, commands)),
		same(ackSubject(wire.StreamConfig, config)),
		same(ackSubjectV2(wire.StreamCommands, commands)),
		same(ackSubjectV2(wire.StreamConfig, config)),
	}
	for _, kind := range wire.AskKinds {
		gs = append(gs, same(wire.AskSubject(u.Rig, kind)))
	}
	for _, key := range wire.ConfigKeys {
		subject := wire.ConfigSubject(u.Rig, key)
		gs = append(gs, grant{latestSubject(jsAPI, subject), latestSubject(JSAPIPrefix, subject)})
	}
	for _, run := range u.Runs {
		gs = append(gs, same(wire.RunLiveSubject(run, "*")))
	}
	return gs
}

// backupGrants are all that the backup's user may publish. It is a user of
// control's account, so the server does not check where it lets its answers
// go; its key never leaves control's own folder.
var backupGrants = []string{
	jsAPI + ".STREAM.INFO." + wire.StreamEvents,
	jsAPI + ".STREAM.MSG.GET." + wire.StreamEvents,
	jsAPI + ".STREAM.SNAPSHOT." + wire.StreamEvents,
	jsAPI + ".STREAM.RESTORE." + wire.StreamEvents,
	"$JS.SNAPSHOT.ACK." + wire.StreamEvents + ".>",
	"$JS.SNAPSHOT.RESTORE." + wire.StreamEvents + ".>",
}

// systemGrants are all that control's system user may publish. KICK is there
// because a reload does not look at the leaf nodes that are connected: a rig
// whose key is taken away would keep its leaf node's connection.
var systemGrants = []string{
	systemSubject("*", "RELOAD"),
	systemSubject("*", "JSZ"),
	systemSubject("*", "VARZ"),
	systemSubject("*", "CONNZ"),
	systemSubject("*", "LEAFZ"),
	systemSubject("*", "KICK"),
}

// controlDenied is what control may not publish: it may do everything else.
var controlDenied = []string{jsAPI + ".STREAM.DELETE." + wire.StreamEvents}

// systemSubject: $SYS.REQ.SERVER.<id>.<what>
func systemSubject(id, what string) string { return "$SYS.REQ.SERVER." + id + "." + what }

// infoSubject: <api>.CONSUMER.INFO.<stream>.<consumer>
func infoSubject(api, stream, consumer string) string {
	return api + ".CONSUMER.INFO." + stream + "." + consumer
}

// nextSubject: <api>.CONSUMER.MSG.NEXT.<stream>.<consumer>
func nextSubject(api, stream, consumer string) string {
	return api + ".CONSUMER.MSG.NEXT." + stream + "." + consumer
}

// latestSubject: <api>.DIRECT.GET.CONFIG.<subject>
func latestSubject(api, subject string) string {
	return api + ".DIRECT.GET." + wire.StreamConfig + "." + subject
}

// ackSubject: $JS.ACK.<stream>.<consumer>.>
func ackSubject(stream, consumer string) string { return "$JS.ACK." + stream + "." + consumer + ".>" }

// ackSubjectV2: $JS.ACK._.<hash of CONTROL>.<stream>.<consumer>.>
//
// It is the second form of an ack, which the server may change to. The two
// tokens before the stream are given, never wildcards: with those,
// $JS.ACK.COMMANDS.rig-b-commands.COMMANDS.rig-a-commands.1.2.3 would be
// rig-a's to publish, and rig-b's consumer takes it for an ack of the first
// form, which can ask for rig-b's next command.
func ackSubjectV2(stream, consumer string) string {
	return "$JS.ACK._." + accountHash(AccountControl) + "." + stream + "." + consumer + ".>"
}

// accountHash is how the server names an account in an ack's subject.
func accountHash(account string) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	sum := sha256.Sum256([]byte(account))
	hash := make([]byte, 8)
	for i := range hash {
		hash[i] = digits[int(sum[i])%len(digits)]
	}
	return string(hash)
}
