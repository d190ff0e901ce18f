package wire

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// The harness's API for its rig's supervisor: HTTP on a Unix socket.
//
//	GET  /v1/ledger                         LedgerState
//	GET  /v1/page?ledger=L&after=N&limit=M  a signed page: see DecodePage
//	GET  /v1/health                         HarnessHealth
//	POST /v1/reset                          ResetAsk in, LedgerState out
//	GET  /v1/screen?run=R&trial=N           Screen
//	GET  /v1/space                          SpaceReport
//	POST /v1/commands                       CommandDelivery in, CommandAnswer out
//	GET  /v1/live?start=S&after=N           LiveLines
//
// What it can't answer is a HarnessProblem, application/problem+json.
const (
	HarnessLedgerPath = "/v1/ledger"
	HarnessPagePath   = "/v1/page"
	HarnessHealthPath = "/v1/health"
	HarnessResetPath  = "/v1/reset"
	// HarnessScreenPath gives a trial's screen.
	HarnessScreenPath = "/v1/screen"
	// HarnessSpacePath says what the rig keeps.
	HarnessSpacePath = "/v1/space"
	// HarnessCommandsPath takes commands.
	HarnessCommandsPath = "/v1/commands"
	// HarnessLivePath gives live lines.
	HarnessLivePath = "/v1/live"
)

// The values of HarnessProblem.Code that a caller decides by.
const (
	// CodeOtherLedger: the asked ledger is not the current one, which the
	// problem's Ledger and Last name.
	CodeOtherLedger = "other_ledger"
	// CodePastEnd: the asked place is after the ledger's end, which the
	// problem's Ledger and Last name.
	CodePastEnd = "past_end"
	// CodeLedgerDamaged: the ledger is torn or altered, and the harness
	// neither writes nor reports until its owner looked; Event is the first
	// event that does not fit.
	CodeLedgerDamaged = "ledger_damaged"
	// CodeBadQuery and CodeBadBody: the caller's mistake; Detail says which.
	CodeBadQuery = "bad_query"
	CodeBadBody  = "bad_body"
	// CodeNotFound, CodeMethod and CodeForbidden are about the call itself.
	CodeNotFound  = "not_found"
	CodeMethod    = "method_not_allowed"
	CodeForbidden = "forbidden"
	// CodeFailed: the harness could not, and the call may be made again.
	CodeFailed = "failed"
)

// LedgerState is where a harness's ledger stands, and how it signs.
type LedgerState struct {
	Rig    string `json:"rig"`
	Ledger string `json:"ledger"`
	// Last is the id of the ledger's last event, and Chain the chain after it.
	Last  uint64 `json:"last"`
	Chain Chain  `json:"chain"`
	// Key is the report key that pages are signed with.
	Key PublicKey `json:"key"`
	// Build is the harness's version.
	Build string `json:"build"`
}

// HarnessHealth says how a harness is.
type HarnessHealth struct {
	OK bool `json:"ok"`
	// Why says what is wrong when it is not OK.
	Why string `json:"why,omitzero"`
	// Notices are what its owner may want to know, though the work goes on.
	Notices []string `json:"notices,omitzero"`
	Rig     string   `json:"rig"`
	Build   string   `json:"build"`
	// StartedAt is when this harness started.
	StartedAt Time `json:"started_at"`
	// Ledger and Last are where its ledger stands; empty when it can't say.
	Ledger string `json:"ledger,omitzero"`
	Last   uint64 `json:"last,omitzero"`
	// CheckMS is how long the check of the whole ledger took at the start.
	CheckMS uint64 `json:"check_ms"`
}

// ResetAsk is the body of POST /v1/reset: a full reset to a new ledger.
type ResetAsk struct {
	// Ledger is the current ledger, which the reset ends: a reset asked twice
	// resets once.
	Ledger string `json:"ledger"`
	Why    string `json:"why"`
}

// CommandDelivery hands the harness a command, with what it brings. The same
// command may be handed again: it is taken once.
type CommandDelivery struct {
	// Command is the command as control signed it.
	Command jsontext.Value `json:"command"`
	// Staged is the folder in the harness's inbox with what was staged for
	// it, if it brings something: kit and project, each a tree.
	Staged string `json:"staged,omitzero"`
	// Failed is why it could not be staged: the command is then recorded as
	// not applied.
	Failed string `json:"failed,omitzero"`
}

// CommandAnswer is what came of a command.
type CommandAnswer struct {
	ID string `json:"id"`
	// State is applying while there is no outcome yet; else applied,
	// not_applied or rejected, as the ledger has it.
	State string `json:"state"`
	Why   string `json:"why,omitzero"`
}

// The further values of CommandAnswer.State.
const (
	CommandApplying   = "applying"
	CommandIsRejected = "rejected"
)

// HarnessProblem is an answer of the harness that is an error, as RFC 9457
// has it.
type HarnessProblem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	// Code is one of the Code constants.
	Code string `json:"code"`
	// Ledger and Last are the current ledger and its last event, where the
	// code says so.
	Ledger string `json:"ledger,omitzero"`
	Last   uint64 `json:"last,omitzero"`
	// Event is the first damaged event, with CodeLedgerDamaged.
	Event uint64 `json:"event,omitzero"`
}

// Error implements error, so that a client can give the problem to its
// caller, who looks for it with errors.As.
func (p *HarnessProblem) Error() string {
	return fmt.Sprintf("the harness answers %s (%d): %s", clip(p.Code), p.Status, p.Detail)
}

// EncodeLedgerState gives s as JSON.
func EncodeLedgerState(s LedgerState) ([]byte, error) { return Canonical(s) }

// DecodeLedgerState reads a LedgerState and checks it.
func DecodeLedgerState(b []byte) (LedgerState, error) {
	var s LedgerState
	if err := decodeHarness(b, &s); err != nil {
		return LedgerState{}, fmt.Errorf("reading the ledger's state: %w", err)
	}
	if err := first(CheckName("rig", s.Rig), CheckLedger(s.Ledger), count("last", s.Last), atMost("build", s.Build, maxBuild)); err != nil {
		return LedgerState{}, fmt.Errorf("reading the ledger's state: %w", err)
	}
	if s.Key.IsZero() {
		return LedgerState{}, errors.New("reading the ledger's state: key is missing")
	}
	return s, nil
}

// EncodeHarnessHealth gives h as JSON.
func EncodeHarnessHealth(h HarnessHealth) ([]byte, error) { return Canonical(h) }

// DecodeHarnessHealth reads a HarnessHealth.
func DecodeHarnessHealth(b []byte) (HarnessHealth, error) {
	var h HarnessHealth
	if err := decodeHarness(b, &h); err != nil {
		return HarnessHealth{}, fmt.Errorf("reading the harness's health: %w", err)
	}
	return h, nil
}

// EncodeResetAsk gives a as JSON.
func EncodeResetAsk(a ResetAsk) ([]byte, error) { return Canonical(a) }

// DecodeResetAsk reads a ResetAsk and checks it.
func DecodeResetAsk(b []byte) (ResetAsk, error) {
	var a ResetAsk
	if err := decodeHarness(b, &a); err != nil {
		return ResetAsk{}, fmt.Errorf("reading what to reset: %w", err)
	}
	if err := first(CheckLedger(a.Ledger), atMost("why", a.Why, maxWhy)); err != nil {
		return ResetAsk{}, fmt.Errorf("reading what to reset: %w", err)
	}
	return a, nil
}

// EncodeCommandDelivery gives d as JSON.
func EncodeCommandDelivery(d CommandDelivery) ([]byte, error) { return Canonical(d) }

// DecodeCommandDelivery reads a CommandDelivery; its command is not read.
func DecodeCommandDelivery(b []byte) (CommandDelivery, error) {
	var d CommandDelivery
	if err := DecodeStrict(b, &d); err != nil {
		return CommandDelivery{}, fmt.Errorf("reading a command's delivery: %w", err)
	}
	if err := first(atMost("staged", d.Staged, maxName), atMost("failed", d.Failed, MaxBodyBytes)); err != nil {
		return CommandDelivery{}, fmt.Errorf("reading a command's delivery: %w", err)
	}
	if d.Staged != "" && d.Failed != "" {
		return CommandDelivery{}, errors.New("reading a command's delivery: staged and failed: one of them")
	}
	return d, nil
}

// EncodeCommandAnswer gives a as JSON.
func EncodeCommandAnswer(a CommandAnswer) ([]byte, error) { return Canonical(a) }

// DecodeCommandAnswer reads a CommandAnswer.
func DecodeCommandAnswer(b []byte) (CommandAnswer, error) {
	var a CommandAnswer
	if err := decodeHarness(b, &a); err != nil {
		return CommandAnswer{}, fmt.Errorf("reading what came of a command: %w", err)
	}
	if err := oneOf("state", a.State, []string{CommandApplying, CommandApplied, CommandNotApplied, CommandIsRejected}); err != nil {
		return CommandAnswer{}, fmt.Errorf("reading what came of a command: %w", err)
	}
	return a, nil
}

// EncodeHarnessProblem gives p as JSON.
func EncodeHarnessProblem(p HarnessProblem) ([]byte, error) { return Canonical(p) }

// DecodeHarnessProblem reads a HarnessProblem.
func DecodeHarnessProblem(b []byte) (*HarnessProblem, error) {
	var p HarnessProblem
	if err := decodeHarness(b, &p); err != nil {
		return nil, fmt.Errorf("reading the harness's problem: %w", err)
	}
	if p.Code == "" || p.Status < 400 || p.Status > 599 {
		return nil, fmt.Errorf("reading the harness's problem: code %q with status %d is none", clip(p.Code), p.Status)
	}
	return &p, nil
}

// decodeHarness reads a small answer of the harness, strictly.
func decodeHarness(b []byte, v any) error {
	if len(b) > MaxBodyBytes {
		return fmt.Errorf("it has %d bytes, at most %d", len(b), MaxBodyBytes)
	}
	return DecodeStrict(b, v)
}
