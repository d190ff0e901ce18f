// Package optimise packs circles into a square so that the sum of their radii
// is large. It is all that a candidate may change.
package optimise

import (
	"math"
	"math/rand/v2"
)

// What the search is. Each may be turned.
const (
	restarts = 1     // how many starts are tried
	steps    = 60    // how many steps each start takes
	rate     = 0.004 // how far the first step goes, of the square's side
	push     = 2.0   // how much an overlap weighs at first
	growth   = 30.0  // how many times as much it weighs at the end
	hops     = 0     // how often the best is shaken and tried again
	shake    = 0.1   // how far a shake goes
	start    = "grid"
)

// Circles is how many there are.
const Circles = 26

// Square is where the circles go: its lower left corner and its side. Seed
// seeds the search.
type Square struct {
	X, Y, Side float64
	Seed       uint64
}

// Circle is a centre and a radius.
type Circle struct{ X, Y, R float64 }

// Optimise gives the best packing that the search found.
func Optimise(square Square) []Circle {
	rng := rand.New(rand.NewPCG(square.Seed, 26))
	var best []Circle
	for range restarts {
		best = better(best, settle(begin(rng)))
	}
	for range hops {
		best = better(best, settle(shaken(best, rng)))
	}
	return placed(best, square)
}

func better(a, b []Circle) []Circle {
	if a == nil || sum(b) > sum(a) {
		return b
	}
	return a
}

func sum(circles []Circle) (s float64) {
	for _, c := range circles {
		s += c.R
	}
	return s
}

// begin gives circles in the unit square.
func begin(rng *rand.Rand) []Circle {
	circles := make([]Circle, Circles)
	for i := range circles {
		switch start {
		case "grid":
			circles[i].X, circles[i].Y = (float64(i%6)+0.5)/6, (float64(i/6)+0.5)/5
		case "rows":
			row, at := i/5, float64(i%5)
			circles[i].X, circles[i].Y = math.Mod(at/5+0.1+float64(row%2)*0.1, 1), (float64(row)+0.5)/6
		default:
			circles[i].X, circles[i].Y = rng.Float64(), rng.Float64()
		}
		circles[i].X += rng.NormFloat64() * 0.01
		circles[i].Y += rng.NormFloat64() * 0.01
		circles[i].R = 0.08
	}
	return circles
}

// shaken moves some of the circles at random.
func shaken(circles []Circle, rng *rand.Rand) []Circle {
	moved := append([]Circle(nil), circles...)
	for range 1 + rng.IntN(4) {
		i := rng.IntN(len(moved))
		if rng.IntN(3) == 0 {
			moved[i].X, moved[i].Y = rng.Float64(), rng.Float64()
			continue
		}
		moved[i].X += rng.NormFloat64() * shake
		moved[i].Y += rng.NormFloat64() * shake
	}
	return moved
}

// settle walks downhill on what the overlaps cost less the radii, with a
// cost that grows, and gives a packing without overlaps.
func settle(circles []Circle) []Circle {
	c := append([]Circle(nil), circles...)
	var first, second [Circles]Circle
	grads := make([]Circle, Circles)
	old, older := 1.0, 1.0 // how much the means still hold of their first 0
	for step := range steps {
		done := float64(step) / steps
		weight := push * math.Pow(growth, done)
		slope(c, grads, weight)
		pace := rate * (1 - done)
		old, older = old*0.9, older*0.99
		for i := range c {
			adam(&c[i].X, grads[i].X, &first[i].X, &second[i].X, pace, old, older)
			adam(&c[i].Y, grads[i].Y, &first[i].Y, &second[i].Y, pace, old, older)
			adam(&c[i].R, grads[i].R, &first[i].R, &second[i].R, pace, old, older)
		}
	}
	return legal(c)
}

// slope gives the cost's slope at c.
func slope(c, grads []Circle, weight float64) {
	for i := range grads {
		grads[i] = Circle{R: -1}
		over := func(amount, x, y float64) {
			if amount > 0 {
				grads[i].X += 2 * weight * amount * x
				grads[i].Y += 2 * weight * amount * y
				grads[i].R += 2 * weight * amount
			}
		}
		over(c[i].R-c[i].X, -1, 0)
		over(c[i].X+c[i].R-1, 1, 0)
		over(c[i].R-c[i].Y, 0, -1)
		over(c[i].Y+c[i].R-1, 0, 1)
	}
	for i := range c {
		for j := range i {
			dx, dy := c[i].X-c[j].X, c[i].Y-c[j].Y
			reach := c[i].R + c[j].R
			square := dx*dx + dy*dy
			if square >= reach*reach {
				continue
			}
			d := math.Sqrt(square) + 1e-12
			amount := 2 * weight * (reach - d)
			grads[i].X -= amount * dx / d
			grads[i].Y -= amount * dy / d
			grads[j].X += amount * dx / d
			grads[j].Y += amount * dy / d
			grads[i].R += amount
			grads[j].R += amount
		}
	}
}

func adam(at *float64, slope float64, first, second *float64, pace, old, older float64) {
	*first = 0.9**first + 0.1*slope
	*second = 0.99**second + 0.01*slope*slope
	m := *first / (1 - old)
	v := *second / (1 - older)
	*at -= pace * m / (math.Sqrt(v) + 1e-9)
}

// legal keeps the centres and gives the radii that the borders and the
// neighbours leave: first cut down in pairs, then grown again in turn.
func legal(c []Circle) []Circle {
	for i := range c {
		c[i].X, c[i].Y = min(max(c[i].X, 0.001), 0.999), min(max(c[i].Y, 0.001), 0.999)
		c[i].R = min(max(c[i].R, 1e-6), c[i].X, 1-c[i].X, c[i].Y, 1-c[i].Y)
	}
	for i := range c {
		for j := range i {
			if d := math.Hypot(c[i].X-c[j].X, c[i].Y-c[j].Y); c[i].R+c[j].R > d {
				part := d / (c[i].R + c[j].R)
				c[i].R, c[j].R = c[i].R*part, c[j].R*part
			}
		}
	}
	for i := range c {
		room := min(c[i].X, 1-c[i].X, c[i].Y, 1-c[i].Y)
		for j := range c {
			if i != j {
				room = min(room, math.Hypot(c[i].X-c[j].X, c[i].Y-c[j].Y)-c[j].R)
			}
		}
		c[i].R = max(room, 1e-9)
	}
	return c
}

// placed moves the packing from the unit square into the case's, a hair
// smaller: the check allows no overlap at all, and a float is rounded.
func placed(c []Circle, square Square) []Circle {
	const hair = 1 - 1e-11
	for i := range c {
		c[i].X = square.X + c[i].X*square.Side
		c[i].Y = square.Y + c[i].Y*square.Side
		c[i].R = c[i].R * square.Side * hair
	}
	return c
}
