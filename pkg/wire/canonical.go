package wire

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ErrNotCanonical is wrapped by errors about JSON that is not in the one form
// RFC 8785 gives it.
var ErrNotCanonical = errors.New("not canonical JSON")

// Canonical gives v as RFC 8785 canonical JSON. Integers past MaxInteger lose
// digits there, as RFC 8785 says; keep them in strings.
func Canonical(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", v, err)
	}
	c := jsontext.Value(b)
	if err := c.Canonicalize(); err != nil {
		return nil, fmt.Errorf("encoding %T: %w", v, err)
	}
	return c, nil
}

// CheckCanonical says whether b is canonical JSON, byte for byte.
func CheckCanonical(b []byte) error {
	c := jsontext.Value(bytes.Clone(b))
	if err := c.Canonicalize(); err != nil {
		return fmt.Errorf("%w: %w", ErrNotCanonical, err)
	}
	if !bytes.Equal(b, c) {
		return fmt.Errorf("%w: it differs from its canonical form at byte %d", ErrNotCanonical, firstDifference(b, c))
	}
	return nil
}

// DecodeStrict reads b, JSON in any form, into v: a field v has not, a field
// given twice and anything after the value are errors.
func DecodeStrict(b []byte, v any) error {
	return short(json.Unmarshal(b, v, json.RejectUnknownMembers(true)))
}

// decodeLoose reads b into v and passes over fields v has not.
func decodeLoose(b []byte, v any) error { return short(json.Unmarshal(b, v)) }

// maxErrorWords is about how long the words of an error about JSON may be.
const maxErrorWords = 400

// short cuts the words of an error that quotes what was read: a field's name
// may have megabytes, and words go to logs and into the audit log.
func short(err error) error {
	if err == nil || len(err.Error()) <= maxErrorWords {
		return err
	}
	return &shortError{err}
}

type shortError struct{ err error }

// Error implements error.
func (e *shortError) Error() string {
	words := e.err.Error()
	return strings.ToValidUTF8(words[:maxErrorWords/2], "") + "…" + strings.ToValidUTF8(words[len(words)-maxErrorWords/2:], "")
}

// Unwrap gives the whole error.
func (e *shortError) Unwrap() error { return e.err }

// decodeCanonical is DecodeStrict for what must also be in canonical form.
func decodeCanonical(b []byte, v any) error {
	if err := DecodeStrict(b, v); err != nil {
		return err
	}
	return CheckCanonical(b)
}

func firstDifference(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
