package wire

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// The config on the harness's API: the supervisor hands it the values that its
// agents need, which it keeps in memory only.
//
//	PUT /v1/config/{key}  ConfigHand in, ConfigHeld out
//	GET /v1/config/{key}  ConfigHeld: never the value
const HarnessConfigPath = "/v1/config/"

// HarnessConfigKeys are the keys that the harness takes. What the advisors and
// the staging use stays with the supervisor.
var HarnessConfigKeys = []string{ConfigModelRoute, ConfigMCPServers}

// ConfigHand hands the harness a value.
type ConfigHand struct {
	// Revision names the value; empty is the one of a rig that control wrote
	// none for.
	Revision string `json:"revision,omitzero"`
	// Value is the key's value, as DecodeConfigValue reads it.
	Value jsontext.Value `json:"value"`
}

// ConfigHeld says which value the harness has.
type ConfigHeld struct {
	Key string `json:"key"`
	// Held says that it was handed one since it started, and Revision which.
	Held     bool   `json:"held"`
	Revision string `json:"revision,omitzero"`
}

// EncodeConfigHand gives the value as it is handed.
func EncodeConfigHand(revision string, v ConfigValue) ([]byte, error) {
	raw, err := Canonical(v)
	if err != nil {
		return nil, err
	}
	return Canonical(ConfigHand{Revision: revision, Value: raw})
}

// DecodeConfigHand reads what is handed for the key. Its errors say nothing of
// the value.
func DecodeConfigHand(key string, b []byte) (revision string, v ConfigValue, err error) {
	fail := func(err error) (string, ConfigValue, error) {
		return "", nil, fmt.Errorf("reading the config for %s: %w", clip(key), err)
	}
	if !slices.Contains(HarnessConfigKeys, key) {
		return fail(fmt.Errorf("the harness takes none of that key: %w", ErrNoConfig))
	}
	if len(b) > MaxConfigBytes {
		return fail(fmt.Errorf("it has %d bytes, at most %d: %w", len(b), MaxConfigBytes, ErrNoConfig))
	}
	var h ConfigHand
	if err := DecodeStrict(b, &h); err != nil {
		return fail(fmt.Errorf("it is of another form: %w", ErrNoConfig))
	}
	if h.Revision != "" && !IsRevision(h.Revision) {
		return fail(errors.New("its revision is none"))
	}
	if v, err = DecodeConfigValue(key, h.Value); err != nil {
		return fail(err)
	}
	return h.Revision, v, nil
}

// EncodeConfigHeld gives h as JSON.
func EncodeConfigHeld(h ConfigHeld) ([]byte, error) { return Canonical(h) }

// DecodeConfigHeld reads a ConfigHeld.
func DecodeConfigHeld(b []byte) (ConfigHeld, error) {
	var h ConfigHeld
	if err := decodeHarness(b, &h); err != nil {
		return ConfigHeld{}, fmt.Errorf("reading which config the harness has: %w", err)
	}
	if !slices.Contains(HarnessConfigKeys, h.Key) || h.Revision != "" && !IsRevision(h.Revision) {
		return ConfigHeld{}, fmt.Errorf("reading which config the harness has: key %q or its revision is none", clip(h.Key))
	}
	return h, nil
}

// ConfigFigures count what a supervisor took of its rig's config since it
// started.
type ConfigFigures struct {
	// Taken counts the values it took, and Refused the messages it could not.
	Taken   uint64 `json:"taken"`
	Refused uint64 `json:"refused"`
	// Subjects count them by the subject they came on.
	Subjects map[string]ConfigCount `json:"subjects,omitempty"`
	// LastRefused is why it refused the last; empty: it refused none.
	LastRefused string `json:"last_refused,omitzero"`
}

// ConfigCount counts a subject's.
type ConfigCount struct {
	Taken   uint64 `json:"taken"`
	Refused uint64 `json:"refused"`
}

// maxConfigSubjects bounds the subjects of the figures: the keys, and some of a
// newer control.
const maxConfigSubjects = 20

func (f ConfigFigures) check() error {
	if len(f.Subjects) > maxConfigSubjects {
		return fmt.Errorf("figures.config.subjects has %d entries, at most %d", len(f.Subjects), maxConfigSubjects)
	}
	for subject, n := range f.Subjects {
		if err := first(atMost("figures.config.subjects' name", subject, maxName), count("figures.config.subjects.taken", n.Taken),
			count("figures.config.subjects.refused", n.Refused)); err != nil {
			return err
		}
	}
	return first(count("figures.config.taken", f.Taken), count("figures.config.refused", f.Refused),
		atMost("figures.config.last_refused", f.LastRefused, maxFigureText))
}
