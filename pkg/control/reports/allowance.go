package reports

import "time"

// allowance is how much of something a rig may still have control do. It
// starts full, and fills up again with time; it may be overdrawn.
type allowance struct {
	left float64
	at   time.Time
}

// fill brings the allowance up to now: one more each time every passes, up to
// most.
func (a *allowance) fill(now time.Time, most float64, every time.Duration) {
	if a.at.IsZero() {
		a.left, a.at = most, now
	}
	if passed := now.Sub(a.at); passed > 0 {
		a.left = min(most, a.left+float64(passed)/float64(every))
		a.at = now
	}
}
