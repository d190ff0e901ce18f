package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// Error is why a call failed, for a person and for a program.
type Error struct {
	// Exit is the exit code that fits: 1 failed, 3 refused, 4 not reachable.
	Exit int
	// Status is the HTTP answer's; 0 if there was none.
	Status int
	// Code is control's stable name of the problem; empty if it gave none.
	Code string
	// Words say what went wrong.
	Words string
	// Fields name what in the request was wrong.
	Fields []Field
	// Next says what to do.
	Next string
	// Err is the cause, if there is one.
	Err error
}

// Field is one entry of a problem's errors.
type Field struct {
	Location string `json:"location"`
	Message  string `json:"message"`
}

// The exit codes of an Error.
const (
	ExitFailed      = 1
	ExitRefused     = 3
	ExitUnreachable = 4
)

// Error gives what went wrong and what to do.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Words)
	for _, f := range e.Fields {
		fmt.Fprintf(&b, "\n  %s: %s", f.Location, f.Message)
	}
	if e.Next != "" {
		b.WriteString("\n" + e.Next)
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// unreachable says why no answer came from control at base.
func unreachable(base string, err error) *Error {
	e := &Error{Exit: ExitUnreachable, Err: err}
	var (
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		invalid  x509.CertificateInvalidError
		record   tls.RecordHeaderError
		lookup   *net.DNSError
		asURL    *url.Error
	)
	cause := err
	if errors.As(err, &asURL) {
		cause = asURL.Err // without the method and the URL once more
	}
	switch {
	case errors.As(err, &unknown):
		e.Words = fmt.Sprintf("control at %s has a certificate of an authority that is not trusted here", base)
		e.Next = "Give its authority.pem, from control's state folder, with --authority or THERMITE_AUTHORITY."
	case errors.As(err, &hostname):
		e.Words = fmt.Sprintf("control at %s has a certificate for another name: %v", base, hostname)
		e.Next = "Use the name that control knows itself by, or add this one to its THERMITE_CONTROL_NAMES."
	case errors.As(err, &invalid):
		e.Words = fmt.Sprintf("control at %s has a certificate that is not good: %v", base, invalid)
		e.Next = "Compare this machine's clock with control's, and see control's log."
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		e.Words = fmt.Sprintf("what answers at %s does not speak TLS", base)
		e.Next = "Check the address, port too: thermite settings shows where it came from."
	case errors.As(err, &lookup):
		e.Words = fmt.Sprintf("no machine is known by the name in %s: %v", base, lookup)
		e.Next = "Check the address: thermite settings shows where it came from."
	default:
		e.Words = fmt.Sprintf("control at %s does not answer: %v", base, cause)
		e.Next = "Is it running? thermite up starts one here; thermite settings shows where the address came from."
	}
	return e
}

// problem is RFC 9457's, with what control adds.
type problem struct {
	Title   string  `json:"title"`
	Detail  string  `json:"detail"`
	Code    string  `json:"code"`
	Errors  []Field `json:"errors"`
	Request string  `json:"request_id"`
}

// next says what to do after a refusal, by its code.
var next = map[string]string{
	"no_rig":      "thermite rig list shows the rigs there are.",
	"no_run":      "thermite run list shows the runs there are.",
	"no_attempt":  "thermite attempt list shows a run's attempts.",
	"no_campaign": "thermite campaign list shows the campaigns there are.",
	"no_kit":      "thermite kit list shows the kits that ship.",
	"no_command":  "thermite command list shows the commands that were given.",
	"rig_retired": "thermite rig restore brings a rig back.",
}

// refused says why control refused a call or failed at it, by its answer.
func refused(status int, p problem) *Error {
	e := &Error{Exit: ExitRefused, Status: status, Code: p.Code, Words: p.Detail}
	if e.Words == "" {
		e.Words = strings.ToLower(p.Title)
	}
	if e.Words == "" {
		e.Words = strings.ToLower(http.StatusText(status))
	}
	for _, f := range p.Errors {
		if !strings.Contains(e.Words, f.Message) {
			e.Fields = append(e.Fields, f)
		}
	}
	if status >= 500 {
		e.failed(p.Request)
		return e
	}
	e.Words = "control refused: " + e.Words
	switch {
	case status == http.StatusUnauthorized:
		e.Next = "Give the owner's token, or a reader's, with THERMITE_TOKEN; the owner's is in owner.token in control's state folder."
	case status == http.StatusForbidden:
		e.Next = "This token may not do that; the owner's may."
	case status == http.StatusTooManyRequests:
		e.Next = "Wait a while, then try again."
	default:
		e.Next = next[p.Code]
	}
	return e
}

// failed says that control failed, or can't now.
func (e *Error) failed(request string) {
	if e.Status == http.StatusServiceUnavailable || e.Status == http.StatusBadGateway || e.Status == http.StatusGatewayTimeout {
		e.Exit = ExitUnreachable
		e.Words = "control can't now: " + e.Words
		e.Next = "Try again in a while: thermite health says how control is."
		return
	}
	e.Exit = ExitFailed
	if !strings.HasPrefix(e.Words, "control failed") {
		e.Words = "control failed: " + e.Words
	}
	e.Next = "Control's log says more; try again."
	if request != "" {
		e.Next = fmt.Sprintf("Control's log says more, at request %s; try again.", request)
	}
}

// notControl says that what answered is not control.
func notControl(base string, status int, why string) *Error {
	return &Error{Exit: ExitFailed, Status: status,
		Words: fmt.Sprintf("what answers at %s is not Thermite's control: %s", base, why),
		Next:  "Check the address: thermite settings shows where it came from."}
}
