package supervisor

import "github.com/nats-io/nats.go"

// Deny is for a test that stands in for the bus, which denies a rig nothing
// that it asks for as long as control writes the bus's users.
func (s *Supervisor) Deny(err error) { s.link.deny(nil, err) }

// ErrDenied is such an error of the bus.
var ErrDenied = nats.ErrPermissionViolation
