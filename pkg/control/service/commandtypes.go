package service

import (
	"github.com/go-json-experiment/json/jsontext"

	"thermite/pkg/wire"
)

// The states of a command.
const (
	// CommandPending is a command whose outcome control has not heard.
	CommandPending = "pending"
	// CommandApplied and CommandNotApplied are what the harness made of it.
	CommandApplied    = "applied"
	CommandNotApplied = "not_applied"
	// CommandRejected is a command that the harness refused to take.
	CommandRejected = "rejected"
	// CommandExpired is a command whose time passed with no outcome.
	CommandExpired = "expired"
	// CommandCancelled is a command that the owner took back in time.
	CommandCancelled = "cancelled"
)

// Command is what control told a rig to do, and what came of it.
type Command struct {
	ID        string         `json:"id" doc:"The command's id" example:"k5ybdcuhbbfvq2evrb3n2p7u4e"`
	Rig       string         `json:"rig" doc:"The rig it is for" example:"workshop"`
	Kind      string         `json:"kind" doc:"What it says to do" example:"run.assign"`
	Run       string         `json:"run,omitzero" doc:"The run it is about" example:"pack26"`
	Args      jsontext.Value `json:"args" doc:"Its arguments, as control signed them"`
	Ledger    string         `json:"ledger,omitzero" doc:"The ledger it is for; absent when it is for whichever the rig has"`
	By        string         `json:"by" doc:"Who gave it" example:"owner"`
	IssuedAt  wire.Time      `json:"issued_at" doc:"When control signed it"`
	ExpiresAt wire.Time      `json:"expires_at" doc:"When it is good no more"`
	State     string         `json:"state" enum:"pending,applied,not_applied,rejected,expired,cancelled" doc:"pending: its outcome is not known yet; applied and not_applied: what the rig's harness made of it; rejected: the harness refused to take it; expired: its time passed first; cancelled: the owner took it back"`
	Held      string         `json:"held,omitzero" doc:"Why it is still with control and not on the message bus"`
	Why       string         `json:"why,omitzero" doc:"Why it ended so, or what came of it"`
	Number    uint64         `json:"number,omitzero" doc:"What it made: an experiment's number"`
	EndedAt   wire.Time      `json:"ended_at,omitzero" doc:"When it got its outcome"`
}

// Over says whether the command has its outcome.
func (c Command) Over() bool { return c.State != CommandPending }

// CommandList is a page of commands, the newest first.
type CommandList struct {
	Commands []Command `json:"commands" nullable:"false" doc:"The commands, the newest first"`
	Next     string    `json:"next,omitzero" doc:"Give this as after for the next page; absent on the last"`
}

// CommandQuery says which commands.
type CommandQuery struct {
	PageQuery
	// Rig and Run, when not empty, must be the command's.
	Rig, Run string
}
