package service

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"thermite/pkg/wire"
)

// The bounds of a list's page.
const (
	// DefaultPage is how many entries a list's page has when nobody said.
	DefaultPage = 100
	// MaxPage is the most it has.
	MaxPage = 1000
	// MaxWait is the longest that a read of events waits for one.
	MaxWait = 30 * time.Second
)

// PageQuery says which page of a list.
type PageQuery struct {
	// Limit is the most entries; 0 is DefaultPage.
	Limit int
	// After is the page before's Next; empty for the first page.
	After string
}

// EventsQuery says which of a rig's events.
type EventsQuery struct {
	// After is the place in EVENTS after which to read.
	After uint64
	// Limit is the most events; 0 and more than wire.MaxEventsRead are that.
	Limit int
	// Wait is how long to wait for an event when there is none yet, at most
	// MaxWait.
	Wait time.Duration
	// Kinds and Run, if any, are the only ones to give.
	Kinds []string
	Run   string
}

// Event is an event with where control holds it.
type Event struct {
	Seq    uint64 `json:"seq" doc:"The event's place in the EVENTS stream" example:"20311"`
	Ledger string `json:"ledger" doc:"The rig's ledger it is of" example:"k5ybdcuhbbfvq2evrb3n2p7u4e"`
	// Event is the event in canonical JSON, as the ledger hashed it.
	Event jsontext.Value `json:"event" doc:"The event as the rig's ledger recorded and hashed it: id (its number in the ledger), time, kind, actor, run, subject, body"`
}

// Decode reads the event.
func (e Event) Decode() (wire.Event, error) {
	d, err := wire.DecodeEvent(e.Event)
	if err != nil {
		return wire.Event{}, fmt.Errorf("event at place %d: %w", e.Seq, err)
	}
	return d, nil
}

// EventsPage is a page of a rig's events, in the stream's order.
type EventsPage struct {
	Rig    string  `json:"rig" doc:"The rig" example:"workshop"`
	Events []Event `json:"events" nullable:"false" doc:"The events, in the stream's order"`
	Next   string  `json:"next" doc:"Give this as after to read on, at once or later: it is there on every page" example:"20311"`
	More   bool    `json:"more" doc:"Whether there may be more at once"`
}

// AuditQuery says which entries of the audit log.
type AuditQuery struct {
	PageQuery
	// Action and Subject, when not empty, must be the entry's.
	Action, Subject string
}

// AuditEntry is what was done or refused, by whom, when and from where.
type AuditEntry struct {
	ID      string         `json:"id" doc:"The entry's id" example:"311"`
	At      wire.Time      `json:"at" doc:"When"`
	Actor   string         `json:"actor" doc:"Who: owner, owner:<name of another token>, reader:<name>, rig:<name>, control or stranger" example:"owner"`
	Source  string         `json:"source" doc:"From where: an address, or the part of control" example:"127.0.0.1"`
	Action  string         `json:"action" doc:"What was done or refused" example:"rig_made"`
	Subject string         `json:"subject,omitzero" doc:"What it was done to, mostly a rig" example:"workshop"`
	Detail  map[string]any `json:"detail,omitempty" doc:"More, by name"`
}

// AuditPage is a page of the audit log, newest first.
type AuditPage struct {
	Entries []AuditEntry `json:"entries" nullable:"false" doc:"The entries, newest first"`
	Next    string       `json:"next,omitzero" doc:"Give this as after for the next page; absent on the last"`
}

// Need is something that waits for the owner.
type Need struct {
	ID        string    `json:"id" doc:"The need's id" example:"3"`
	Code      string    `json:"code" doc:"What kind of need" example:"report_key"`
	Title     string    `json:"title" doc:"What it is, in a few words"`
	Detail    string    `json:"detail" doc:"What happened, in words"`
	Do        string    `json:"do" doc:"What to do about it"`
	Subject   string    `json:"subject,omitzero" doc:"Whom it is about, mostly a rig" example:"workshop"`
	Since     wire.Time `json:"since" doc:"Since when"`
	CanBeSeen bool      `json:"can_be_seen" doc:"Whether pressing Seen answers it; otherwise it goes when what it tells of ends"`
}

// NeedList is everything that waits for the owner.
type NeedList struct {
	Needs []Need `json:"needs" nullable:"false" doc:"The needs, oldest first"`
}

// NewToken is what a token is made of.
type NewToken struct {
	Role string `json:"role" enum:"owner,reader" doc:"What it may: owner does everything, reader only reads" example:"reader"`
	Name string `json:"name" minLength:"1" maxLength:"100" doc:"Whose or what for" example:"wall display"`
}

// Token is a token, but not its secret.
type Token struct {
	ID        string    `json:"id" doc:"The token's id" example:"2"`
	Role      string    `json:"role" enum:"owner,reader" doc:"What it may" example:"reader"`
	Name      string    `json:"name" doc:"Whose or what for" example:"wall display"`
	CreatedAt wire.Time `json:"created_at" doc:"When it was made"`
	RevokedAt wire.Time `json:"revoked_at,omitzero" doc:"When it was revoked; absent while it is good"`
	Yours     bool      `json:"yours" doc:"Whether it is the one this call was made with"`
}

// MadeToken is a new token with its secret, shown this once.
type MadeToken struct {
	Token
	Secret string `json:"token" doc:"The token itself, shown this once: control keeps only its hash"`
}

// TokenList is every token.
type TokenList struct {
	Tokens []Token `json:"tokens" nullable:"false" doc:"The tokens, in the order they were made"`
}

// Session is a browser that signed in.
type Session struct {
	// Value is the cookie's; control keeps only its hash.
	Value string
	// Expires is when it ends.
	Expires time.Time
	Caller  Caller
}
