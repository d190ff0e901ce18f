package dash

import (
	"math"
	"testing"
)

// Promise: whatever scores a rig gives, a chart of them is drawn at once.
func TestTicksEnd(t *testing.T) {
	for _, c := range [][2]float64{{-math.MaxFloat64, math.MaxFloat64}, {-1e308, 7.9e307}, {0, 5e-324}, {5e-324, 5e-324}, {1e300, math.Nextafter(1e300, 2e300)}, {math.Copysign(0, -1), 0}} {
		labels, grid := newScale(c[0], c[1], 4).ticks()
		if len(labels) != len(grid) || len(labels) > mostTicks+1 {
			t.Errorf("from %g to %g there are %d ticks", c[0], c[1], len(labels))
		}
	}
}
