package service

import (
	"errors"
	"fmt"
	"time"
)

// Code names a problem for a program. A code never changes its meaning.
type Code string

// Kind is what sort of problem a code is; a surface says it in its own way,
// as REST does with a status.
type Kind int

// The kinds.
const (
	KindInternal    Kind = iota // a mistake or a failure of control's own
	KindInvalid                 // the request says something it can't say
	KindMalformed               // the request can not be read
	KindSlow                    // the request did not come in time
	KindNotSignedIn             // no token, or none that is good
	KindNotAllowed              // the caller may not
	KindNotFound                // there is no such thing
	KindConflict                // the thing is not in a state for this
	KindTooLarge                // the request is too large
	KindMediaType               // the request is in a form that is not taken
	KindMethod                  // the thing is there but can't be asked so
	KindTooMany                 // too many requests: wait
	KindUnavailable             // control can't now: try again
)

// The codes.
const (
	CodeInternal        Code = "internal"
	CodeInvalid         Code = "invalid"
	CodeMalformed       Code = "malformed"
	CodeNotJSON         Code = "not_json"
	CodeBodyTooLarge    Code = "body_too_large"
	CodeBodySlow        Code = "body_too_slow"
	CodeContentType     Code = "content_type"
	CodeNotSignedIn     Code = "not_signed_in"
	CodeBadToken        Code = "bad_token"
	CodeTooManyFailures Code = "too_many_failures"
	CodeTooManyCalls    Code = "too_many_calls"
	CodeBusy            Code = "busy"
	CodeNotAllowed      Code = "not_allowed"
	CodeNoRoute         Code = "no_route"
	CodeMethod          Code = "method"
	CodeNoRig           Code = "no_rig"
	CodeRigExists       Code = "rig_exists"
	CodeRigRetired      Code = "rig_retired"
	CodeRigNotRetired   Code = "rig_not_retired"
	CodeNoLedger        Code = "no_ledger"
	CodeNoNeed          Code = "no_need"
	CodeNeedStays       Code = "need_stays"
	CodeNoToken         Code = "no_token"
	CodeLastOwner       Code = "last_owner_token"
	CodeNotWaiting      Code = "no_key_waiting"
	CodeKeysMissing     Code = "keys_missing"
	CodeBusKeyRefused   Code = "bus_key_refused"
	CodeSealKeyRefused  Code = "seal_key_refused"
	CodeOvertaken       Code = "overtaken"
	CodeBusAway         Code = "bus_away"
	CodeKeyReused       Code = "idempotency_key_reused"
	CodeSignInLink      Code = "sign_in_link"
	CodeCancelled       Code = "cancelled"
)

// kinds is the catalogue: every code and its kind.
var kinds = map[Code]Kind{
	CodeInternal: KindInternal, CodeInvalid: KindInvalid, CodeMalformed: KindMalformed, CodeNotJSON: KindMalformed, CodeBodyTooLarge: KindTooLarge,
	CodeBodySlow: KindSlow, CodeContentType: KindMediaType, CodeNotSignedIn: KindNotSignedIn, CodeBadToken: KindNotSignedIn,
	CodeTooManyFailures: KindTooMany, CodeTooManyCalls: KindTooMany, CodeBusy: KindUnavailable, CodeNotAllowed: KindNotAllowed,
	CodeNoRoute: KindNotFound, CodeMethod: KindMethod, CodeNoRig: KindNotFound, CodeRigExists: KindConflict,
	CodeRigRetired: KindConflict, CodeRigNotRetired: KindConflict, CodeNoLedger: KindNotFound, CodeNoNeed: KindNotFound,
	CodeNeedStays: KindConflict, CodeNoToken: KindNotFound, CodeLastOwner: KindConflict, CodeNotWaiting: KindConflict,
	CodeKeysMissing: KindConflict, CodeBusKeyRefused: KindConflict, CodeSealKeyRefused: KindConflict, CodeOvertaken: KindConflict,
	CodeBusAway: KindUnavailable, CodeKeyReused: KindConflict, CodeSignInLink: KindNotSignedIn, CodeCancelled: KindUnavailable,
}

// Kind gives the code's kind.
func (c Code) Kind() Kind { return kinds[c] }

// FieldError names one thing in a request that is wrong.
type FieldError struct {
	// Location is where: body.name, query.limit, path.rig.
	Location string `json:"location" doc:"Where in the request: body.name, query.limit, path.rig" example:"body.name"`
	// Message is what is wrong with it.
	Message string `json:"message" doc:"What is wrong there" example:"use 1 to 40 of a-z, 0-9 and -, not starting with -"`
}

// Error is a problem in words that whoever calls may be shown.
type Error struct {
	Code Code
	// Text is what a person reads, without a full stop.
	Text string
	// Fields name what in the request was wrong.
	Fields []FieldError
	// RetryAfter is how long to wait before trying again; 0 says nothing.
	RetryAfter time.Duration
	// Cause is for control's log only.
	Cause error
}

// Error gives the text.
func (e *Error) Error() string { return e.Text }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Kind gives the code's kind.
func (e *Error) Kind() Kind { return e.Code.Kind() }

func newError(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Text: fmt.Sprintf(format, args...)}
}

// invalid says what is wrong at one place of the request.
func invalid(location string, err error) *Error {
	return &Error{Code: CodeInvalid, Text: err.Error(), Fields: []FieldError{{Location: location, Message: err.Error()}}}
}

// ErrorOf gives err as an *Error. What is none is internal: its own words
// are the cause alone.
func ErrorOf(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: CodeInternal, Text: "control failed at this; its log says why", Cause: err}
}
