package wire

import (
	"fmt"
	"time"
)

// timeLayout is UTC with microseconds, always six digits, so that a time has
// one form only.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// Time is a moment in UTC, to the microsecond. Its zero is no moment and
// does not encode.
type Time struct{ t time.Time }

// At gives the moment t, cut to the microsecond.
func At(t time.Time) Time { return Time{t.UTC().Truncate(time.Microsecond)} }

// Time gives the moment as the standard library has it.
func (t Time) Time() time.Time { return t.t }

// IsZero says that t is no moment.
func (t Time) IsZero() bool { return t.t.IsZero() }

// Equal says that t and u are the same moment.
func (t Time) Equal(u Time) bool { return t.t.Equal(u.t) }

// String gives the moment as it is on the wire.
func (t Time) String() string { return t.t.Format(timeLayout) }

// MarshalText implements encoding.TextMarshaler.
func (t Time) MarshalText() ([]byte, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	return t.t.AppendFormat(nil, timeLayout), nil
}

// check says whether t can be written.
func (t Time) check() error {
	if t.t.IsZero() || t.t.Year() < 1 || t.t.Year() > 9999 {
		return fmt.Errorf("time %v can't be written: its year must be 1 to 9999", t.t)
	}
	return nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *Time) UnmarshalText(b []byte) error {
	at, err := time.Parse(timeLayout, string(b))
	if err != nil || at.Format(timeLayout) != string(b) || (Time{at}).check() != nil {
		return fmt.Errorf("time %q: write it as %s", clip(string(b)), timeLayout)
	}
	t.t = at.UTC()
	return nil
}
