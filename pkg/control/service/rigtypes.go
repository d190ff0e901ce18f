package service

import (
	"thermite/pkg/wire"
)

// NewRig is what a rig is made of.
type NewRig struct {
	Name string `json:"name" doc:"The rig's name: 1 to 40 of a-z, 0-9 and -, not starting with -. It is never given to another rig." example:"workshop" pattern:"^[a-z0-9][a-z0-9-]{0,39}$" patternDescription:"1 to 40 of a-z, 0-9 and -, not starting with -" maxLength:"40"`
}

// Join is what a rig's machine must know to find control and the bus.
type Join struct {
	ControlURL string `json:"control_url" doc:"Control's address, THERMITE_CONTROL_URL on the rig" example:"https://control.example:8443"`
	BusURL     string `json:"bus_url" doc:"The message bus's address, THERMITE_NATS_URL on the rig" example:"tls://control.example:4222"`
	// Authority is the certificate in PEM, and Fingerprint its SHA-256.
	Authority   string `json:"authority" doc:"The certificate, in PEM, that signs control's and the bus's: authority.pem on the rig"`
	Fingerprint string `json:"fingerprint" doc:"SHA-256 of that certificate, to compare by eye"`
	// SigningKey is public: the rig's harness checks control's commands by it.
	SigningKey string `json:"signing_key" doc:"The public key that control signs its commands with: control.pub on the rig, THERMITE_CONTROL_KEY of its harness, which takes no command without it"`
}

// Authority is the authority that signs control's certificate and the bus's.
// None of it is a secret.
type Authority struct {
	Certificate string `json:"certificate" doc:"The certificate, in PEM"`
	Fingerprint string `json:"fingerprint" doc:"SHA-256 of that certificate. Who asked over a connection that it did not check compares this, made anew from the certificate, with one that it has from elsewhere"`
}

// RigToken is a rig's token with what else its machine needs. The token is
// shown this once.
type RigToken struct {
	Name  string `json:"name" doc:"The rig's name" example:"workshop"`
	Token string `json:"token" doc:"The rig's token, shown this once: control keeps only its hash"`
	Join  Join   `json:"join" doc:"What the rig's machine needs beside them"`
}

// The states of a rig's connection to the bus.
const (
	// ConnectionNew is a rig that never registered.
	ConnectionNew = "new"
	// ConnectionOn is a rig on the bus.
	ConnectionOn = "connected"
	// ConnectionBroken is a rig that should be on the bus and is not.
	ConnectionBroken = "broken"
	// ConnectionUnknown is a rig of which control can't tell: the bus is away.
	ConnectionUnknown = "unknown"
	// ConnectionRetired is a rig that may not sign in.
	ConnectionRetired = "retired"
)

// Connection is how a rig is on the bus.
type Connection struct {
	State string    `json:"state" enum:"new,connected,broken,unknown,retired" doc:"new: it never registered; connected: it is on the bus; broken: it should be and is not; unknown: control cannot tell, as the bus is away; retired: it may not sign in" example:"connected"`
	Since wire.Time `json:"since,omitzero" doc:"Since when, as far as control knows"`
	Why   string    `json:"why,omitzero" doc:"Why, in words, when it is not connected"`
}

// RigSummary is a rig in the list of rigs.
type RigSummary struct {
	Name       string     `json:"name" doc:"The rig's name" example:"workshop"`
	CreatedAt  wire.Time  `json:"created_at" doc:"When the owner made it"`
	RetiredAt  wire.Time  `json:"retired_at,omitzero" doc:"When the owner retired it; absent while it may work"`
	Connection Connection `json:"connection" doc:"How it is on the message bus"`
	Ledger     string     `json:"ledger,omitzero" doc:"The rig's current ledger, as far as control knows" example:"k5ybdcuhbbfvq2evrb3n2p7u4e"`
	LastCursor uint64     `json:"last_cursor" doc:"The last event of that ledger that control holds: the held cursor" example:"1042"`
	LastSeq    uint64     `json:"last_seq" doc:"The place of the rig's last event in the EVENTS stream" example:"20311"`
	LastEvent  wire.Time  `json:"last_event,omitzero" doc:"That event's own time"`
	Runs       int        `json:"runs" doc:"How many runs its current ledger has"`
	Behind     uint64     `json:"behind" doc:"How many events its ledger had at its last figures that control does not hold" example:"0"`
	Build      string     `json:"build,omitzero" doc:"Its supervisor's version, by its last figures"`
	FiguresAt  wire.Time  `json:"figures_at,omitzero" doc:"When it last sent its figures"`
	KeyWaiting bool       `json:"key_waiting" doc:"Whether a report key waits for the owner"`
}

// RigList is a page of rigs, by name.
type RigList struct {
	Rigs []RigSummary `json:"rigs" nullable:"false" doc:"The rigs, by name"`
	Next string       `json:"next,omitzero" doc:"Give this as after for the next page; absent on the last"`
}

// Key is a public key by its fingerprint.
type Key struct {
	Fingerprint string    `json:"fingerprint" doc:"The key's fingerprint: SHA-256 of it, base64url, 22 characters" example:"Qe3yPQ6mdX9_0mV0m3c1kA"`
	Since       wire.Time `json:"since,omitzero" doc:"Since when"`
}

// KeyFingerprint names a key that the owner accepts.
type KeyFingerprint struct {
	Fingerprint string `json:"fingerprint" minLength:"22" maxLength:"22" doc:"The fingerprint of the key that waits" example:"Qe3yPQ6mdX9_0mV0m3c1kA"`
}

// RigKeys are a rig's public keys; absent ones are not there yet.
type RigKeys struct {
	Report  *Key `json:"report,omitzero" doc:"What its harness signs its pages with"`
	Waiting *Key `json:"waiting,omitzero" doc:"A new report key that waits for the owner"`
	Bus     *Key `json:"bus,omitzero" doc:"What its supervisor signs in to the bus with"`
	Seal    *Key `json:"seal,omitzero" doc:"What its config is sealed to"`
}

// RigView is all that control shows of a rig.
type RigView struct {
	RigSummary
	Keys    RigKeys       `json:"keys" doc:"Its public keys"`
	Held    *HeldCommands `json:"commands_held,omitzero" doc:"Its commands that wait for the message bus; absent when none does"`
	Figures *wire.Figures `json:"figures,omitzero" doc:"Its supervisor's last figures"`
	Ledgers []LedgerMarks `json:"ledgers" nullable:"false" doc:"Its ledgers, in the order control learnt of them; the last is current"`
	View    LedgerView    `json:"view" doc:"What its events say"`
}

// HeldCommands are commands that the bus has not taken.
type HeldCommands struct {
	Count int       `json:"count" doc:"How many" example:"2"`
	Why   string    `json:"why" doc:"Why the oldest waits"`
	Since wire.Time `json:"since" doc:"Since when"`
}

// RigQuery says which of a rig's ledgers to view; none is the current one.
type RigQuery struct {
	Ledger string
}

// HistoryStep is a step in a rig's history.
type HistoryStep struct {
	ID     string         `json:"id" doc:"The step's id" example:"17"`
	At     wire.Time      `json:"at" doc:"When"`
	Step   string         `json:"step" doc:"What kind of step" example:"bus_key_changed"`
	Text   string         `json:"text" doc:"The step, for a person"`
	Detail map[string]any `json:"detail,omitempty" doc:"More, by name"`
}

// History is a page of a rig's history, newest first.
type History struct {
	Steps []HistoryStep `json:"steps" nullable:"false" doc:"The steps, newest first"`
	Next  string        `json:"next,omitzero" doc:"Give this as after for the next page; absent on the last"`
}
