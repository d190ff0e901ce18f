package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	CodeNoKit           Code = "no_kit"
	CodeNoRun           Code = "no_run"
	CodeNoAttempt       Code = "no_attempt"
	CodeNoPatch         Code = "no_patch"
	CodeNoPrompt        Code = "no_prompt"
	CodeNoCampaign      Code = "no_campaign"
	CodeNoCommand       Code = "no_command"
	CodeNoDaily         Code = "no_daily_report"
	CodeNoItem          Code = "no_item"
	CodeNoFile          Code = "no_file"
	CodeFileNotThere    Code = "file_on_its_way"
	CodeNoCollection    Code = "no_collection"
	CodeRunExists       Code = "run_exists"
	CodeCommandOver     Code = "command_over"
	CodeTooManyPending  Code = "too_many_commands"
	CodeNoConfig        Code = "no_config"
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

// CodeInfo says what a code means.
type CodeInfo struct {
	Kind Kind
	// Means says it for a person who writes a program.
	Means string
}

// catalogue is every code.
var catalogue = map[Code]CodeInfo{
	CodeInternal:        {KindInternal, "Control failed; its log says why under the request's id"},
	CodeInvalid:         {KindInvalid, "Something in the request can't be: errors says what and where"},
	CodeMalformed:       {KindMalformed, "The request can't be read"},
	CodeNotJSON:         {KindMalformed, "The body is missing, or is not one JSON value in UTF-8 with no field twice"},
	CodeBodyTooLarge:    {KindTooLarge, "The body is over the limit"},
	CodeBodySlow:        {KindSlow, "The body did not come in time"},
	CodeContentType:     {KindMediaType, "Content-Type does not say application/json"},
	CodeNotSignedIn:     {KindNotSignedIn, "The call needs a token and had none"},
	CodeBadToken:        {KindNotSignedIn, "The token is not good: mistyped, revoked or replaced"},
	CodeSignInLink:      {KindNotSignedIn, "The sign-in link was used, or is too old"},
	CodeTooManyFailures: {KindTooMany, "Too many failed sign-ins from this address: wait as Retry-After says"},
	CodeTooManyCalls:    {KindTooMany, "Too many calls: wait as Retry-After says"},
	CodeBusy:            {KindUnavailable, "Control is busy: wait as Retry-After says"},
	CodeCancelled:       {KindUnavailable, "The call ended before its answer was ready"},
	CodeNotAllowed:      {KindNotAllowed, "The token is good, but may not do this"},
	CodeNoRoute:         {KindNotFound, "There is nothing at this path"},
	CodeMethod:          {KindMethod, "The path takes other methods: Allow says which"},
	CodeNoRig:           {KindNotFound, "There is no rig of that name"},
	CodeNoLedger:        {KindNotFound, "Control has no events of that ledger"},
	CodeNoKit:           {KindNotFound, "No kit of that name ships"},
	CodeNoRun:           {KindNotFound, "The rig has no run of that name"},
	CodeNoAttempt:       {KindNotFound, "The run has no attempt of that number"},
	CodeNoPatch:         {KindNotFound, "The attempt's event carries no patch"},
	CodeNoPrompt:        {KindNotFound, "The run has no prompt at that place"},
	CodeNoCampaign:      {KindNotFound, "No run is in a campaign of that name"},
	CodeNoCommand:       {KindNotFound, "There is no command with that id"},
	CodeNoDaily:         {KindNotFound, "Control has no daily report of the rig of that day"},
	CodeNoItem:          {KindNotFound, "The knowledge base has no item with that id"},
	CodeNoFile:          {KindNotFound, "The item has no file"},
	CodeFileNotThere:    {KindNotFound, "The item's file has not come from its rig yet"},
	CodeNoCollection:    {KindNotFound, "The knowledge base has no collection of that name"},
	CodeRunExists:       {KindConflict, "The rig has, or had, a run of that name"},
	CodeCommandOver:     {KindConflict, "The command has its outcome already"},
	CodeTooManyPending:  {KindTooMany, "Too many of the rig's commands have no outcome yet"},
	CodeNoConfig:        {KindNotFound, "There is no model route, MCP server or Git access of that name"},
	CodeNoNeed:          {KindNotFound, "Nothing with that id needs the owner"},
	CodeNoToken:         {KindNotFound, "There is no token with that id"},
	CodeRigExists:       {KindConflict, "The name is, or was, another rig's"},
	CodeRigRetired:      {KindConflict, "The rig is retired"},
	CodeRigNotRetired:   {KindConflict, "The rig is not retired"},
	CodeNeedStays:       {KindConflict, "The need ends with what it tells of, not by being seen"},
	CodeLastOwner:       {KindConflict, "It is the owner's last token"},
	CodeNotWaiting:      {KindConflict, "No report key with that fingerprint waits"},
	CodeKeysMissing:     {KindConflict, "The registration names no keys"},
	CodeBusKeyRefused:   {KindConflict, "Another holds the key for the message bus"},
	CodeSealKeyRefused:  {KindConflict, "Another holds the seal key"},
	CodeOvertaken:       {KindConflict, "Another registration of the rig came at the same time: call again"},
	CodeKeyReused:       {KindConflict, "The idempotency key was used for another request"},
	CodeBusAway:         {KindUnavailable, "The message bus is away, or has not taken the change yet: try again"},
}

// Codes gives every code with its meaning.
func Codes() map[Code]CodeInfo { return maps.Clone(catalogue) }

// Kind gives the code's kind.
func (c Code) Kind() Kind { return catalogue[c].Kind }

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

// ErrorOf gives err as an *Error. What is none is internal, unless the call
// was ended: its own words are the cause alone.
func ErrorOf(err error) *Error {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.Canceled):
		return cancelled(err)
	}
	return &Error{Code: CodeInternal, Text: "control failed at this; its log says why", Cause: err}
}
