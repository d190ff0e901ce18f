package reports

import "time"

// Bounds of what one rig can write to the audit log by pages that control
// refuses.
const (
	// sayAgain is how long the same refusal of a rig is only counted.
	sayAgain = time.Hour
	// sayBurst is how many different ones are said at once, and sayEvery how
	// often another after that.
	sayBurst = 20
	sayEvery = 5 * time.Minute
)

// refusals decide which refusals the audit log says: a rig that sends the
// same bad page again and again, or ever new ones, can't flood it. What is
// not said is counted, and the count said with the next. It has no clock and
// one goroutine uses it.
type refusals struct{ rigs map[string]*refusalsOf }

type refusalsOf struct {
	allowance
	last   string
	said   time.Time
	unsaid uint64
}

// note takes a refusal of the rig; what names it. It says whether to say it,
// and how many were not said since the last that was.
func (r *refusals) note(rig, what string, now time.Time) (say bool, unsaid uint64) {
	of := r.of(rig, now)
	if again := of.last == what && now.Before(of.said.Add(sayAgain)); again || of.left < 1 {
		of.unsaid++
		return false, 0
	}
	of.left--
	of.last, of.said = what, now
	unsaid, of.unsaid = of.unsaid, 0
	return true, unsaid
}

// good takes that a page of the rig was taken: the same refusal after it is
// another one. It gives how many were not said, if there is room to say that.
func (r *refusals) good(rig string, now time.Time) (unsaid uint64) {
	of := r.rigs[rig]
	if of == nil {
		return 0
	}
	of = r.of(rig, now)
	if of.unsaid > 0 && of.left < 1 {
		return 0
	}
	if of.unsaid > 0 {
		of.left--
	}
	unsaid, of.unsaid = of.unsaid, 0
	of.last = ""
	return unsaid
}

// of gives what is noted of the rig, with its allowance as it is now.
func (r *refusals) of(rig string, now time.Time) *refusalsOf {
	if r.rigs == nil {
		r.rigs = map[string]*refusalsOf{}
	}
	of := r.rigs[rig]
	if of == nil {
		of = &refusalsOf{}
		r.rigs[rig] = of
	}
	of.fill(now, sayBurst, sayEvery)
	return of
}

// unsay takes back that the rig's last refusal was said, with the count that
// was to be said with it.
func (r *refusals) unsay(rig string, unsaid uint64) {
	of := r.rigs[rig]
	of.left++
	of.last, of.unsaid = "", unsaid
}
