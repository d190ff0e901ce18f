// Package bus is the message bus: the NATS server's settings and its users
// file, the server itself, the authority that signs its certificate, the
// clients' connections, the record's streams, and the atomic batch that
// writes to EVENTS. It is the only package that knows nats-server.
//
// Who may do what is written once, in permissions.go, as the users file that
// control generates. A rig has an account of its own and reaches control's
// account only through service imports, so the server itself says which rig
// sent a message, and a reply that a rig names never leaves its account.
package bus
