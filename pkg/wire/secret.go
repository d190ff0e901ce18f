package wire

// Secret is a text that is shown to nobody: a key, a token, a password. Its
// JSON is the text itself, as it goes sealed to a rig; in words, a log or an
// error it is a mark instead.
type Secret string

const secretMark = "(secret)"

// String gives a mark.
func (s Secret) String() string { return secretMark }

// GoString gives a mark.
func (s Secret) GoString() string { return secretMark }

// Reveal gives the text.
func (s Secret) Reveal() string { return string(s) }
