package wire

import (
	"fmt"
	"strconv"
)

// The bus's streams.
const (
	StreamReports  = "REPORTS"
	StreamEvents   = "EVENTS"
	StreamCommands = "COMMANDS"
	StreamLive     = "LIVE"
	StreamConfig   = "CONFIG"
	StreamKBFiles  = "KB_FILES"
)

// Headers of a message in EVENTS: the rig, its ledger, and the report the
// event came in (the page's message id).
const (
	HeaderRig    = "Thermite-Rig"
	HeaderLedger = "Thermite-Ledger"
	HeaderReport = "Thermite-Report"
)

// AskKinds are the asks of a rig's supervisor.
var AskKinds = []string{"figures", "screens", "daily", "renew", "space", "kb-files"}

// Subjects are functions of the names in them; "*" stands for every rig or
// run. The literal is in each one's comment.

// ReportSubject: thermite.rig.<rig>.report
func ReportSubject(rig string) string { return "thermite.rig." + rig + ".report" }

// RigEventSubject: thermite.rig.<rig>.ev.<kind>
func RigEventSubject(rig, kind string) string { return "thermite.rig." + rig + ".ev." + kind }

// RunEventSubject: thermite.run.<run>.ev.<kind>
func RunEventSubject(run, kind string) string { return "thermite.run." + run + ".ev." + kind }

// RunQueueSubject: thermite.run.<run>.queue.<op>
func RunQueueSubject(run, op string) string { return "thermite.run." + run + ".queue." + op }

// A source is in a subject as LiveToken gives it.

// RigLiveSubject: thermite.rig.<rig>.live.<source>
func RigLiveSubject(rig, source string) string { return "thermite.rig." + rig + ".live." + source }

// RunLiveSubject: thermite.run.<run>.live.<source>
func RunLiveSubject(run, source string) string { return "thermite.run." + run + ".live." + source }

// CommandSubject: thermite.rig.<rig>.cmd
func CommandSubject(rig string) string { return "thermite.rig." + rig + ".cmd" }

// ConfigSubject: thermite.rig.<rig>.config.<key>
func ConfigSubject(rig, key string) string { return "thermite.rig." + rig + ".config." + key }

// KBFileSubject: thermite.rig.<rig>.kbfile
func KBFileSubject(rig string) string { return "thermite.rig." + rig + ".kbfile" }

// KBSearchSubject: thermite.kb.search.<rig>
func KBSearchSubject(rig string) string { return "thermite.kb.search." + rig }

// KBReadSubject: thermite.kb.read.<rig>
func KBReadSubject(rig string) string { return "thermite.kb.read." + rig }

// AskSubject: thermite.rig.<rig>.ask.<kind>
func AskSubject(rig, kind string) string { return "thermite.rig." + rig + ".ask." + kind }

// RigInbox is the prefix of a rig's replies: _INBOX.rig.<rig>
func RigInbox(rig string) string { return "_INBOX.rig." + rig }

// BackupInbox is the prefix of the backup's replies.
const BackupInbox = "_INBOX.backup"

// CommandsConsumer is a rig's consumer of COMMANDS: rig-<rig>-commands
func CommandsConsumer(rig string) string { return "rig-" + rig + "-commands" }

// ConfigConsumer is a rig's consumer of CONFIG: rig-<rig>-config
func ConfigConsumer(rig string) string { return "rig-" + rig + "-config" }

// EventSubject is where an event goes in EVENTS: its run's subject if the run
// is the rig's, by control's run registry; else the rig's own.
func EventSubject(rig string, runIsRigs bool, e Event) (string, error) {
	if e.Run == "" || !runIsRigs {
		return RigEventSubject(rig, e.Kind), nil
	}
	if e.Kind != KindQueue {
		return RunEventSubject(e.Run, e.Kind), nil
	}
	op, err := QueueOp(e)
	if err != nil {
		return "", fmt.Errorf("event %d (%s) %w: %w", e.ID, e.Kind, ErrNotForBus, err)
	}
	return RunQueueSubject(e.Run, op), nil
}

// EventID is the message id of an event in EVENTS: <rig>:<ledger>:<id>
func EventID(rig, ledger string, id uint64) string {
	return rig + ":" + ledger + ":" + strconv.FormatUint(id, 10)
}
