package views

import (
	"slices"
	"sort"
	"time"

	"thermite/pkg/wire"
)

// How many minutes and hours with an event in them a view has.
const (
	mostMinutes = 180
	mostHours   = 24 * 14
)

// histogram counts events by the interval their own time falls in, and keeps
// the newest intervals that had one.
type histogram struct {
	seconds int64
	most    int
	// buckets are sorted by their interval.
	buckets []bucket
}

// bucket is one interval: number × seconds after the epoch.
type bucket struct {
	number int64
	count  uint64
}

// add counts an event. A rig's clock may go back, so the interval need not be
// the last; one before all that are kept is left out. So is one before 1970,
// which no clock shows that was ever set: the first interval of all would
// begin at a time that can't be written.
func (h *histogram) add(at wire.Time) {
	unix := at.Time().Unix()
	if unix < 0 {
		return
	}
	n := unix / h.seconds
	if last := len(h.buckets) - 1; last >= 0 && h.buckets[last].number == n {
		h.buckets[last].count++
		return
	}
	i := sort.Search(len(h.buckets), func(i int) bool { return h.buckets[i].number >= n })
	if i < len(h.buckets) && h.buckets[i].number == n {
		h.buckets[i].count++
		return
	}
	h.buckets = slices.Insert(h.buckets, i, bucket{n, 1})
	if len(h.buckets) > h.most {
		h.buckets = slices.Delete(h.buckets, 0, 1)
	}
}

func (h *histogram) snapshot() []Bucket {
	list := make([]Bucket, len(h.buckets))
	for i, b := range h.buckets {
		list[i] = Bucket{wire.At(time.Unix(b.number*h.seconds, 0)), b.count}
	}
	return list
}
