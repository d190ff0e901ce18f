package wire

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Event is one entry of a ledger. Its canonical JSON is what the ledger
// keeps, what the chain hashes and what EVENTS holds.
type Event struct {
	// ID is the event's number in its ledger, from 1 without a gap.
	ID uint64 `json:"id"`
	// Time is when the harness recorded it.
	Time Time `json:"time"`
	// Kind says what happened: see the Kind constants; others may come.
	Kind string `json:"kind"`
	// Actor says who did it: see CheckActor.
	Actor string `json:"actor"`
	// Run names the run it belongs to; empty for an event of the rig.
	Run string `json:"run,omitzero"`
	// Subject names what it is about, such as attempt:7; may be empty.
	Subject string `json:"subject,omitzero"`
	// Body is a JSON object; its fields depend on Kind.
	Body jsontext.Value `json:"body"`
}

// The kinds that parts of Thermite read. A ledger takes any kind that
// CheckKind takes.
const (
	KindLedgerOpened = "ledger_opened"
	KindRunCreated   = "run_created"
	KindRunSettings  = "run_settings"
	KindRunPaused    = "run_paused"
	KindRunResumed   = "run_resumed"
	KindRunEnded     = "run_ended"
	KindQueue        = "queue"
	KindTrialStarted = "trial_started"
	KindTrialEnded   = "trial_ended"
	KindAgentPrompt  = "agent_prompt"
	KindModelCall    = "model_call"
	KindAttempt      = "attempt"
	KindBuild        = "build"
	KindCheck        = "check"
	KindMeasure      = "measure"
	KindVerdict      = "verdict"
	KindChampion     = "champion"
	KindDisqualified = "disqualified"
	KindAdvice       = "advice"
	KindSource       = "source"
	KindDocument     = "document"
	KindRigCheck     = "rig_check"
	// KindCommand and KindCommandRejected are what came of a command.
	KindCommand         = "command"
	KindCommandRejected = "command_rejected"
	// KindOwnerMessage is what the owner told a trial.
	KindOwnerMessage = "owner_message"
	// KindRejudged has an attempt judged again.
	KindRejudged = "rejudged"
	// KindKBItem is an item for the knowledge base.
	KindKBItem = "kb_item"
	// KindSpaceRemoved is what a command removed of what the rig kept.
	KindSpaceRemoved = "space_removed"
)

// kinds are all of them.
var kinds = []string{
	KindLedgerOpened, KindRunCreated, KindRunSettings, KindRunPaused, KindRunResumed, KindRunEnded, KindQueue, KindTrialStarted,
	KindTrialEnded, KindAgentPrompt, KindModelCall, KindAttempt, KindBuild, KindCheck, KindMeasure, KindVerdict, KindChampion,
	KindDisqualified, KindAdvice, KindSource, KindDocument, KindRigCheck, KindCommand, KindCommandRejected,
	KindOwnerMessage, KindRejudged, KindSpaceRemoved, KindKBItem,
}

// KnownKind says that kind is one of the Kind constants.
func KnownKind(kind string) bool { return slices.Contains(kinds, kind) }

// QueueOps are the changes a queue event makes: its body's op.
var QueueOps = []string{"added", "accepted", "moved", "edited", "dropped", "assigned", "finished", "returned"}

// maxSubjectField bounds Event.Subject.
const maxSubjectField = 200

// ErrNotForBus is wrapped by errors about an event that can't go on the bus,
// whatever is tried again.
var ErrNotForBus = errors.New("can't go on the message bus")

// errTooDeep says that an event's body nests too deep.
var errTooDeep = fmt.Errorf("its body has a depth over %d", maxDepth)

// EncodeEvent gives e as canonical JSON, after its checks.
func EncodeEvent(e Event) ([]byte, error) {
	if len(e.Body) == 0 {
		e.Body = jsontext.Value("{}")
	}
	wrong := func(err error) error { return fmt.Errorf("encoding event %d (%s): %w", e.ID, clip(e.Kind), err) }
	if quickValue(e.Body, 0, 0) != len(e.Body) {
		if depth(e.Body) > maxDepth {
			return nil, wrong(errTooDeep)
		}
		e.Body = bytes.Clone(e.Body)
		if err := e.Body.Canonicalize(); err != nil {
			return nil, wrong(fmt.Errorf("its body: %w", err))
		}
	}
	if err := e.Time.check(); err != nil {
		return nil, wrong(err)
	}
	if !utf8.ValidString(e.Subject) {
		return nil, wrong(errors.New("its subject is not UTF-8"))
	}
	b := appendEvent(make([]byte, 0, len(e.Body)+len(e.Subject)+eventRoom), e)
	if err := checkEvent(e, len(b)); err != nil {
		return nil, err
	}
	return b, nil
}

// eventRoom is about what an event takes beside its body and subject.
const eventRoom = 200

// DecodeEvent reads one event in canonical JSON. Its Body aliases b.
func DecodeEvent(b []byte) (Event, error) {
	e, end, ok := quickEvent(b, 0)
	if ok && end == len(b) {
		return checkedEvent(e, end)
	}
	e = Event{}
	if depth(b) > maxDepth+1 {
		return Event{}, fmt.Errorf("reading an event: %w", errTooDeep)
	}
	if err := decodeCanonical(b, &e); err != nil {
		return Event{}, fmt.Errorf("reading an event: %w", err)
	}
	if err := checkEvent(e, len(b)); err != nil {
		return Event{}, err
	}
	// A field given as null or empty is a second form of an event without it.
	if again := appendEvent(nil, e); !bytes.Equal(b, again) {
		return Event{}, fmt.Errorf("reading event %d: %w: it differs from its canonical form at byte %d",
			e.ID, ErrNotCanonical, firstDifference(b, again))
	}
	return e, nil
}

// ReadEvent reads an event from EVENTS. Control checked there, before it
// published the event, that it is canonical, and this doesn't again. Its Body
// aliases b.
func ReadEvent(b []byte) (Event, error) {
	e, end, ok := quickEvent(b, 0)
	if ok && end == len(b) {
		return checkedEvent(e, end)
	}
	e = Event{}
	if err := DecodeStrict(b, &e); err != nil {
		return Event{}, fmt.Errorf("reading an event: %w", err)
	}
	return checkedEvent(e, len(b))
}

func checkedEvent(e Event, size int) (Event, error) {
	if err := checkEvent(e, size); err != nil {
		return Event{}, err
	}
	return e, nil
}

// checkEvent says what is wrong with e, which takes size bytes.
func checkEvent(e Event, size int) error {
	wrong := func(err error) error { return fmt.Errorf("event %d (%s): %w", e.ID, clip(e.Kind), err) }
	if err := CheckKind(e.Kind); err != nil {
		return fmt.Errorf("event %d (%s) %w: %w", e.ID, clip(e.Kind), ErrNotForBus, err)
	}
	switch {
	case e.ID == 0 || e.ID > MaxInteger:
		return wrong(fmt.Errorf("id must be 1 to %d", uint64(MaxInteger)))
	case e.Time.IsZero():
		return wrong(errors.New("it has no time"))
	case len(e.Subject) > maxSubjectField:
		return wrong(fmt.Errorf("subject has %d bytes, at most %d", len(e.Subject), maxSubjectField))
	case e.Body.Kind() != '{':
		return wrong(errors.New("body must be a JSON object"))
	}
	if err := CheckActor(e.Actor); err != nil {
		return wrong(err)
	}
	if e.Run != "" {
		if err := CheckName("run", e.Run); err != nil {
			return wrong(err)
		}
	}
	if e.Kind == KindQueue && e.Run != "" {
		if op, err := QueueOp(e); err != nil {
			return fmt.Errorf("event %d (%s) %w: %w", e.ID, e.Kind, ErrNotForBus, err)
		} else if !slices.Contains(QueueOps, op) {
			return fmt.Errorf("event %d (%s) %w: its op %q is none of %v", e.ID, e.Kind, ErrNotForBus, clip(op), QueueOps)
		}
	}
	if size > MaxEventBytes {
		return fmt.Errorf("event %d (%s) is too large for the message bus: it has %d bytes, at most %d: %w",
			e.ID, e.Kind, size, MaxEventBytes, ErrNotForBus)
	}
	return nil
}

// QueueOp gives the op of a queue event's body.
func QueueOp(e Event) (string, error) {
	var body struct {
		Op string `json:"op"`
	}
	// Other fields of the body are the queue's own business.
	if err := decodeLoose(e.Body, &body); err != nil {
		return "", fmt.Errorf("reading its op: %w", err)
	}
	return body.Op, nil
}
