package wire

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	nameRE   = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)
	kindRE   = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)
	ledgerRE = regexp.MustCompile(`^[a-z0-9]{8,40}$`)
	indexRE  = regexp.MustCompile(`^(0|[1-9][0-9]{0,14})$`)
)

// CheckName says whether s can name a rig, run, campaign, kit or lane: such
// a name is a subject's token, a file's name and a URL's segment as it is.
// what names the thing in the error.
func CheckName(what, s string) error {
	if !nameRE.MatchString(s) {
		return fmt.Errorf("%s name %q: use 1 to 40 of a-z, 0-9 and -, not starting with -", what, clip(s))
	}
	return nil
}

// CheckKind says whether s can be an event's kind.
func CheckKind(s string) error {
	if !kindRE.MatchString(s) {
		return fmt.Errorf("kind %q: use 1 to 40 of a-z, 0-9 and _, starting with a letter", clip(s))
	}
	return nil
}

// CheckLedger says whether s can be a ledger's id.
func CheckLedger(s string) error {
	if !ledgerRE.MatchString(s) {
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
			if indexRE.MatchString(which) {
				return nil
			}
		case "advisor", "city":
			if nameRE.MatchString(which) {
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
