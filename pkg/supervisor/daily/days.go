package daily

import (
	"fmt"
	"time"

	"thermite/pkg/wire"
)

// TimeOfDay is a time of the day in UTC, as the time since midnight, written
// as 18:30.
type TimeOfDay time.Duration

// String gives it as 18:30.
func (t TimeOfDay) String() string {
	d := time.Duration(t)
	return fmt.Sprintf("%02d:%02d", d/time.Hour, d%time.Hour/time.Minute)
}

// UnmarshalText reads it.
func (t *TimeOfDay) UnmarshalText(b []byte) error {
	at, err := time.Parse("15:04", string(b))
	if err != nil || len(b) != len("15:04") {
		return fmt.Errorf("%q must be a time of the day such as 00:00 or 18:30, in UTC", b)
	}
	*t = TimeOfDay(time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute)
	return nil
}

// Set reads it from a flag.
func (t *TimeOfDay) Set(text string) error { return t.UnmarshalText([]byte(text)) }

// Type names the form to a flag's reader.
func (*TimeOfDay) Type() string { return "time of day" }

const day = 24 * time.Hour

// A Day is what one report is of: the day's events, from From to before To.
type Day struct {
	// Name is the day as YYYY-MM-DD.
	Name     string
	From, To time.Time
}

// endingAt gives the day that ends at to.
func endingAt(to time.Time) Day {
	return Day{Name: to.Add(-time.Nanosecond).Format(time.DateOnly), From: to.Add(-day), To: to}
}

// lastOf gives the newest day that is over by now, where a day ends at at.
func lastOf(now time.Time, at TimeOfDay) Day {
	now = now.UTC()
	to := now.Truncate(day).Add(time.Duration(at)) // UTC's days are whole
	if to.After(now) {
		to = to.Add(-day)
	}
	return endingAt(to)
}

// mostMissed is how many days a supervisor that was away makes reports of.
const mostMissed = 7

// due gives the days whose reports are to be made now, oldest first: those
// that are over and come after last, the day whose report control has; with
// no last, the newest alone.
func due(now time.Time, at TimeOfDay, last string) []Day {
	newest := lastOf(now, at)
	if last == "" || !wire.IsDay(last) {
		return []Day{newest}
	}
	var days []Day
	for d := newest; d.Name > last && len(days) < mostMissed; d = endingAt(d.From) {
		days = append([]Day{d}, days...)
	}
	return days
}
