package dash

import (
	"fmt"
	"time"

	"thermite/pkg/control/service"
)

// How many intervals the charts of events show.
const (
	minutesShown = 60
	hoursShown   = 48
)

// eventsPlot draws how many events fell in each of the last n intervals. It
// ends now, or where the last event is if that is longer ago.
func eventsPlot(id, what string, buckets []service.Bucket, width time.Duration, n int, now time.Time) plot {
	p := plot{ID: id, Title: "Events per " + what, YUnit: "events per " + what}
	if len(buckets) == 0 {
		p.Empty = "No event yet."
		return p
	}
	newest := buckets[len(buckets)-1].Start.Time()
	end := now.Truncate(width)
	old := newest.Before(end.Add(-time.Duration(n-1) * width))
	if old || newest.After(end) {
		end = newest
	}
	start := end.Add(-time.Duration(n-1) * width)
	counts := make([]uint64, n)
	var most, sum uint64
	for _, b := range buckets {
		i := int(b.Start.Time().Sub(start) / width)
		if b.Start.Time().Before(start) || i >= n {
			continue
		}
		counts[i] += b.Count
		most, sum = max(most, counts[i]), sum+b.Count
	}
	s := newScale(0, max(float64(most), 3), 3) // whole numbers
	p.YTicks, p.Grid = s.ticks()
	w := float64(plotWidth) / float64(n)
	for i, c := range counts {
		if c == 0 {
			continue
		}
		y := s.y(float64(c))
		at := start.Add(time.Duration(i) * width)
		p.Bars = append(p.Bars, bar{X: coord(float64(i)*w + w*0.1), Y: coord(y), W: coord(w * 0.8), H: coord(plotHeight - y),
			Title: fmt.Sprintf("%s UTC: %d events", at.UTC().Format("2006-01-02 15:04"), c)})
	}
	p.XTicks = timeTicks(start, end, width, n, what, old)
	p.XUnit = "by the events' own times"
	p.Desc = fmt.Sprintf("%d events in %d %ss, at most %d in one", sum, n, what, most)
	return p
}

// timeTicks labels the time axis: by how long ago, or, of events that are all
// long past, by the clock.
func timeTicks(start, end time.Time, width time.Duration, n int, what string, old bool) []string {
	if old {
		return []string{start.UTC().Format("01-02 15:04"), end.Add(width).UTC().Format("01-02 15:04 UTC")}
	}
	short := map[string]string{"minute": "min", "hour": "h"}[what]
	var labels []string
	for i := range 4 {
		labels = append(labels, fmt.Sprintf("−%d %s", n*(4-i)/4, short))
	}
	return append(labels, "now")
}

// bucketRows are the intervals as CSV.
func bucketRows(buckets []service.Bucket, what string) [][]string {
	rows := [][]string{{what, "events"}}
	for _, b := range buckets {
		rows = append(rows, []string{b.Start.Time().UTC().Format(time.RFC3339), fmt.Sprint(b.Count)})
	}
	return rows
}
