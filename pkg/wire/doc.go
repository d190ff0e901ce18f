// Package wire is what crosses between Thermite's parts: events and the
// pages that carry them, asks and their answers, the registration of a rig's
// keys, subjects, headers and limits. It holds plain types, their canonical
// JSON, and their signatures; it opens no connection, reads no clock and
// imports nothing else of Thermite's.
//
// One file is one channel, under the name the channel has everywhere:
//
//	reports.go   pages of a ledger's events, rig to control
//	asks.go      questions with one answer, rig to control and back
//	register.go  a rig's keys on the bus, by HTTPS
//	harness.go   a rig's harness, to its supervisor, on a Unix socket
//
// Every decoder here is strict: a field nobody knows, a field given twice,
// anything after the value or a byte that the signature does not cover is an
// error that names what and where. decode(encode(x)) is x. Events, pages and
// all that is signed have one form only, so that encode(decode(b)) is b.
package wire
