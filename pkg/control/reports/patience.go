package reports

import "time"

// Bounds of what control reads of one rig's pages that are no good: to say
// what is wrong with a large one takes seconds, and every rig waits. No harness
// makes such a page.
const (
	badBytes       = 32 << 20
	badBytesSecond = 64 << 10
)

// patience is how many bytes of bad pages control still reads of each rig. It
// has no clock, and one goroutine uses it.
type patience struct{ rigs map[string]*allowance }

// reads says whether control reads a page of so many bytes of the rig.
func (p *patience) reads(rig string, bytes int, now time.Time) bool {
	of := p.rigs[rig]
	if of == nil {
		return true // it never sent a bad page
	}
	of.fill(now, badBytes, time.Second/badBytesSecond)
	return of.left >= float64(bytes)
}

// bad takes that a page of so many bytes was no good.
func (p *patience) bad(rig string, bytes int, now time.Time) {
	of := p.rigs[rig]
	if of == nil {
		if p.rigs == nil {
			p.rigs = map[string]*allowance{}
		}
		of = &allowance{}
		p.rigs[rig] = of
	}
	of.fill(now, badBytes, time.Second/badBytesSecond)
	of.left -= float64(bytes)
}
