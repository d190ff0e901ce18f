package rigconfig

import (
	"crypto/sha256"

	"thermite/pkg/wire"
)

// held is what a supervisor knows of its rig's config. It is in memory alone.
type held struct {
	values map[string]value
	counts wire.ConfigFigures
}

// value is one that the rig holds.
type value struct {
	// place is where it is in CONFIG, and raw what it was there.
	place    uint64
	raw      [sha256.Size]byte
	revision string
	value    wire.ConfigValue
}

func newHeld() held {
	return held{values: map[string]value{}, counts: wire.ConfigFigures{Subjects: map[string]wire.ConfigCount{}}}
}

func hash(b []byte) [sha256.Size]byte { return sha256.Sum256(b) }

// maxSubjects bounds the subjects that are counted apart.
const maxSubjects = 16

// took holds a value that came on the subject.
func (h *held) took(subject, key string, v value) {
	h.values[key] = v
	h.counts.Taken++
	h.count(subject, func(n *wire.ConfigCount) { n.Taken++ })
}

// refused counts a message that can't be taken. What is held stays.
func (h *held) refused(subject string, why error) {
	h.counts.Refused++
	h.counts.LastRefused = why.Error()
	h.count(subject, func(n *wire.ConfigCount) { n.Refused++ })
}

func (h *held) count(subject string, add func(*wire.ConfigCount)) {
	n, known := h.counts.Subjects[subject]
	if !known && len(h.counts.Subjects) >= maxSubjects {
		return
	}
	add(&n)
	h.counts.Subjects[subject] = n
}

// none notes that control wrote no value for the key: where none is held, it
// is the empty one. It says whether that is new.
func (h *held) none(key string) bool {
	if _, known := h.values[key]; known {
		return false
	}
	empty, err := wire.DecodeConfigValue(key, []byte("{}"))
	if err != nil {
		return false
	}
	h.values[key] = value{value: empty}
	return true
}

// figures are the counts as they are now.
func (h *held) figures() wire.ConfigFigures {
	f := h.counts
	f.Subjects = make(map[string]wire.ConfigCount, len(h.counts.Subjects))
	for subject, n := range h.counts.Subjects {
		f.Subjects[subject] = n
	}
	return f
}
