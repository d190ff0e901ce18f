package wire

import (
	"fmt"
	"slices"
	"strings"
)

// Lengths of names.
const (
	maxNameLength   = 40
	minLedgerLength = 8
	maxIndexDigits  = 15
)

// made says whether s has least to most bytes and all are of the wanted ones.
func made(s string, least, most int, of func(byte) bool) bool {
	if len(s) < least || len(s) > most {
		return false
	}
	for i := range len(s) {
		if !of(s[i]) {
			return false
		}
	}
	return true
}

func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isLetter(c byte) bool { return 'a' <= c && c <= 'z' }

// isName is [a-z0-9][a-z0-9-]{0,39}.
func isName(s string) bool {
	return made(s, 1, maxNameLength, func(c byte) bool { return isLetter(c) || isDigit(c) || c == '-' }) && s[0] != '-'
}

// isKind is [a-z][a-z0-9_]{0,39}.
func isKind(s string) bool {
	return made(s, 1, maxNameLength, func(c byte) bool { return isLetter(c) || isDigit(c) || c == '_' }) && isLetter(s[0])
}

// isLedger is [a-z0-9]{8,40}.
func isLedger(s string) bool {
	return made(s, minLedgerLength, maxNameLength, func(c byte) bool { return isLetter(c) || isDigit(c) })
}

// isIndex is 0|[1-9][0-9]{0,14}.
func isIndex(s string) bool {
	return made(s, 1, maxIndexDigits, isDigit) && (s[0] != '0' || s == "0")
}

// CheckName says whether s can name a rig, run, campaign, kit or lane: such
// a name is a subject's token, a file's name and a URL's segment as it is.
// what names the thing in the error.
func CheckName(what, s string) error {
	if !isName(s) {
		return fmt.Errorf("%s name %q: use 1 to 40 of a-z, 0-9 and -, not starting with -", what, clip(s))
	}
	return nil
}

// CheckKind says whether s can be an event's kind.
func CheckKind(s string) error {
	if !isKind(s) {
		return fmt.Errorf("kind %q: use 1 to 40 of a-z, 0-9 and _, starting with a letter", clip(s))
	}
	return nil
}

// CheckLedger says whether s can be a ledger's id.
func CheckLedger(s string) error {
	if !isLedger(s) {
		return fmt.Errorf("ledger %q: an id is 8 to 40 of a-z and 0-9", clip(s))
	}
	return nil
}

// actors that take no suffix.
var plainActors = []string{"controller", "judge", "planner", "owner", "supervisor", "control"}

// CheckActor says whether s is one of the actors an event may name:
// controller, judge, planner, owner, supervisor, control, lane:<n>,
// trial:<n>, advisor:<name> or city:<name>.
func CheckActor(s string) error {
	if slices.Contains(plainActors, s) {
		return nil
	}
	who, which, ok := strings.Cut(s, ":")
	if ok {
		switch who {
		case "lane", "trial":
			if isIndex(which) {
				return nil
			}
		case "advisor", "city":
			if isName(which) {
				return nil
			}
		}
	}
	return fmt.Errorf("actor %q: one of %s, lane:<n>, trial:<n>, advisor:<name>, city:<name>",
		clip(s), strings.Join(plainActors, ", "))
}

// clip keeps what a stranger sent short enough for a message.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
