package live

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"thermite/pkg/control/rigs"
	"thermite/pkg/wire"
)

// Why says in a word why a message was refused.
type Why string

// The reasons.
const (
	// WhyUnreadable: it is no batch of live lines, or its signature is not by
	// the key that it names.
	WhyUnreadable Why = "unreadable"
	// WhySubject: the rig, the run or the source that it names is not its
	// subject's.
	WhySubject Why = "subject"
	// WhyRig: control has no such rig, or it is retired.
	WhyRig Why = "rig"
	// WhyKey: it is signed with another key than the rig's accepted one.
	WhyKey Why = "key"
	// WhyUnsigned: it is of a source of the harness's and not signed.
	WhyUnsigned Why = "unsigned"
	// WhySource: it is signed, and of a source of the supervisor's own.
	WhySource Why = "source"
	// WhyRun: the run registry does not give the run to the rig.
	WhyRun Why = "run"
)

// Whys are all reasons.
var Whys = []Why{WhyUnreadable, WhySubject, WhyRig, WhyKey, WhyUnsigned, WhySource, WhyRun}

// refusedError says why a message was refused.
type refusedError struct {
	why   Why
	words string
}

func (e *refusedError) Error() string { return e.words }

func refuse(why Why, format string, args ...any) error {
	return &refusedError{why, fmt.Sprintf(format, args...)}
}

// check reads a message of LIVE. An error that is a *refusedError refuses it
// for good.
func (v *View) check(ctx context.Context, subject, rig string, data []byte) (wire.LiveBatch, error) {
	b, key, err := wire.DecodeLiveBatch(data)
	if err != nil {
		return b, refuse(WhyUnreadable, "%v", err)
	}
	if err := checkSubject(subject, rig, b); err != nil {
		return b, err
	}
	has, err := v.cfg.Rigs.ReportKeys(ctx, b.Rig)
	if err != nil {
		return b, err
	}
	if err := checkKey(has, b, key); err != nil {
		return b, err
	}
	if b.Run != "" && !v.cfg.Runs.Holds(b.Run, b.Rig) {
		return b, refuse(WhyRun, "the run registry does not give run %s to rig %s", b.Run, b.Rig)
	}
	return b, nil
}

// checkSubject says whether the batch is its subject's: of that rig or run,
// and source.
func checkSubject(subject, rig string, b wire.LiveBatch) error {
	switch subject {
	case wire.LiveSubject(b, false):
	case wire.LiveSubject(b, true):
		// The subject names the run, and the header the rig.
		if rig != b.Rig {
			return refuse(WhySubject, "it is of rig %s, and came as rig %s's", b.Rig, clip(rig))
		}
	default:
		return refuse(WhySubject, "it is of rig %s, run %s and source %s, and came on %s", b.Rig, orNone(b.Run), b.Source, clip(subject))
	}
	return nil
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// checkKey says whether who signed the batch may say its lines: the rig's
// harness all but the supervisor's own, which are not signed.
func checkKey(has rigs.KeyState, b wire.LiveBatch, key wire.PublicKey) error {
	own := wire.SupervisorsOwn(b.Source)
	switch {
	case !has.Known:
		return refuse(WhyRig, "control knows no rig %s", b.Rig)
	case has.Retired:
		return refuse(WhyRig, "rig %s is retired", b.Rig)
	case key.IsZero() && !own:
		return refuse(WhyUnsigned, "lines of %s must be signed by the harness", b.Source)
	case key.IsZero():
		return nil
	case own:
		return refuse(WhySource, "lines of %s are the supervisor's own, and are signed by key %s", b.Source, key.Fingerprint())
	case has.Accepted.IsZero():
		return refuse(WhyKey, "control holds no report of rig %s yet, and so no key", b.Rig)
	case key != has.Accepted:
		return refuse(WhyKey, "key %s signed it, not rig %s's accepted one, %s", key.Fingerprint(), b.Rig, has.Accepted.Fingerprint())
	}
	return nil
}

// refused counts a message that was refused, and says so seldom.
func (v *View) refused(subject, rig string, err error) {
	var r *refusedError
	if !errors.As(err, &r) {
		return
	}
	v.mu.Lock()
	v.state.Refused[r.why]++
	v.state.Last, v.state.LastAt = r.words, v.cfg.Clock()
	v.mu.Unlock()
	v.seldom.Do(func() {
		v.cfg.Log.Warn("live lines from the bus refused", "rig", rig, "subject", subject, "reason", string(r.why), "err", r.words)
	})
}

// rigOf gives the rig that a message came from: its subject says, or the
// header.
func rigOf(subject, header string) string {
	if rest, ok := strings.CutPrefix(subject, "thermite.rig."); ok {
		rig, _, _ := strings.Cut(rest, ".")
		return rig
	}
	return header
}
