package service

import (
	"strconv"

	"thermite/pkg/control/identity"
	"thermite/pkg/control/rigs"
)

// Role is what a caller may do.
type Role string

// The roles. An owner may do everything; a reader may read all that is no
// secret; a rig may register itself. A stranger gave no token.
const (
	RoleOwner    Role = "owner"
	RoleReader   Role = "reader"
	RoleRig      Role = "rig"
	RoleStranger Role = "stranger"
)

// Caller is who calls.
type Caller struct {
	Role Role
	// Name is the token's name, or the rig's.
	Name string
	// Source is where the call comes from: an address, or the part of control.
	Source string
	// token is the id of the token that the caller signed in with.
	token int64
}

// actor is the caller in the audit log: owner with the token that control
// made at its first start, and with others their name too.
func (c Caller) actor() string {
	if c.Role == RoleOwner && (c.Name == "" || c.Name == identity.FirstToken) {
		return string(RoleOwner)
	}
	return string(c.Role) + ":" + c.Name
}

// id tells callers apart, for what is counted by caller.
func (c Caller) id() string {
	switch c.Role {
	case RoleOwner, RoleReader:
		return "token:" + strconv.FormatInt(c.token, 10)
	case RoleRig:
		return "rig:" + c.Name
	default:
		return "source:" + network(c.Source)
	}
}

func (c Caller) by() rigs.By { return rigs.By{Actor: c.actor(), Source: c.Source} }

// May says what a call needs of its caller.
type May int

// What a call may be.
const (
	// MayAnyone is a call without a token.
	MayAnyone May = iota
	// MayRead reads what is no secret: the owner and readers.
	MayRead
	// MayChange changes something, or reads a secret: the owner.
	MayChange
	// MayRegister is a rig's own registration.
	MayRegister
)

// Allowed says whether a caller of the role may make the call. This is the
// one place that says so.
func (m May) Allowed(r Role) bool {
	switch m {
	case MayAnyone:
		return true
	case MayRead:
		return r == RoleOwner || r == RoleReader
	case MayChange:
		return r == RoleOwner
	case MayRegister:
		return r == RoleRig
	default:
		return false
	}
}

// Check refuses a caller who may not. Every method checks; a surface may too,
// before it reads more of a call.
func (c Caller) Check(m May) error {
	if m.Allowed(c.Role) {
		return nil
	}
	if c.Role == RoleStranger || c.Role == "" {
		return newError(CodeNotSignedIn, "this needs a token")
	}
	switch m {
	case MayRegister:
		return newError(CodeNotAllowed, "only a rig's own token may register it")
	case MayChange:
		return newError(CodeNotAllowed, "only the owner may do this")
	default:
		return newError(CodeNotAllowed, "only the owner and readers may read this")
	}
}
