package live

import (
	"slices"

	"thermite/pkg/wire"
)

// counts are what was published and dropped, in all and by the subjects that
// were used last.
type counts struct {
	all      wire.LiveCounts
	subjects map[string]wire.LiveCounts
	// used are the subjects, the one used last at the end.
	used []string
}

func (c *counts) add(subject string, published, dropped uint64) {
	if c.subjects == nil {
		c.subjects = map[string]wire.LiveCounts{}
	}
	c.all.Published, c.all.Dropped = c.all.Published+published, c.all.Dropped+dropped
	of := c.subjects[subject]
	of.Published, of.Dropped = of.Published+published, of.Dropped+dropped
	c.subjects[subject] = of
	if i := slices.Index(c.used, subject); i >= 0 {
		c.used = slices.Delete(c.used, i, i+1)
	}
	if c.used = append(c.used, subject); len(c.used) > wire.MaxLiveSubjects {
		delete(c.subjects, c.used[0])
		c.used = c.used[1:]
	}
}

func (c *counts) figures() *wire.LiveFigures {
	f := &wire.LiveFigures{Published: c.all.Published, Dropped: c.all.Dropped, Subjects: make(map[string]wire.LiveCounts, len(c.subjects))}
	for subject, of := range c.subjects {
		f.Subjects[subject] = of
	}
	return f
}
