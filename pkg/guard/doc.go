// Package guard holds the house rules as tests: what may import what, where a
// clock may be read, how long a file may be, and what value each limit has.
// A rule that must bend has its exception listed in the test, with the
// reason.
package guard
