package tune

import (
	"math"
	"slices"
	"strconv"

	"thermite/pkg/kit"
)

// A space is a kit's tunables as a cube: each has a coordinate from 0 to 1,
// on its scale. A choice's words divide its side evenly.
type space []kit.Tunable

// A point is one place in the cube.
type point []float64

// values gives the values at p, as the kit writes them.
func (s space) values(p point) (map[string]string, error) {
	values := map[string]string{}
	for i, t := range s {
		v, err := t.Value(valueAt(t, min(max(p[i], 0), 1)))
		if err != nil {
			return nil, err
		}
		values[t.Name] = v
	}
	return values, nil
}

// valueAt gives the value of t at u, from 0 to 1.
func valueAt(t kit.Tunable, u float64) string {
	if t.Kind == kit.KindChoice {
		words := t.Choices()
		return words[min(int(u*float64(len(words))), len(words)-1)]
	}
	low, high := t.Bounds()
	v := low*(1-u) + high*u
	if t.Scale == "log" {
		v = math.Exp(math.Log(low)*(1-u) + math.Log(high)*u)
	}
	v = min(max(v, low), high) // rounding may lead a hair out
	if t.Kind == kit.KindInt {
		return strconv.FormatFloat(math.Round(v), 'f', -1, 64)
	}
	return strconv.FormatFloat(round(v, low, high), 'g', -1, 64)
}

// round gives v with four digits, which a person can read, if that is in the
// range.
func round(v, low, high float64) float64 {
	short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	if err != nil || short < low || short > high {
		return v
	}
	return short
}

// point gives where the values are; ok is false if one lacks or is none of
// the tunable's.
func (s space) point(values map[string]string) (p point, ok bool) {
	p = make(point, len(s))
	for i, t := range s {
		v, err := t.Value(values[t.Name])
		if err != nil {
			return nil, false
		}
		p[i] = at(t, v)
	}
	return p, true
}

// at gives the coordinate of a value of t.
func at(t kit.Tunable, value string) float64 {
	if t.Kind == kit.KindChoice {
		words := t.Choices()
		return (float64(slices.Index(words, value)) + 0.5) / float64(len(words))
	}
	low, high := t.Bounds()
	v, _ := strconv.ParseFloat(value, 64) // t took it
	if t.Scale == "log" {
		low, high, v = math.Log(low), math.Log(high), math.Log(v)
	}
	if low == high { // as logarithms, which are not as fine
		return 0.5
	}
	// Halves, because a range may be as wide as floats are.
	return min(max((v/2-low/2)/(high/2-low/2), 0), 1)
}

// features are what the model sees of p: a number's coordinate, and a
// coordinate for each word of a choice, since words have no order. of says
// which tunable each is of.
func (s space) features(p point) (f []float64, of []int) {
	for i, t := range s {
		if t.Kind != kit.KindChoice {
			f, of = append(f, p[i]), append(of, i)
			continue
		}
		words := len(t.Choices())
		is := min(int(p[i]*float64(words)), words-1)
		for w := range words {
			f, of = append(f, 0), append(of, i)
			if w == is {
				f[len(f)-1] = 1
			}
		}
	}
	return f, of
}

// size is how many different places there are, or +Inf.
func (s space) size() float64 {
	n := 1.0
	for _, t := range s {
		switch t.Kind {
		case kit.KindChoice:
			n *= float64(len(t.Choices()))
		case kit.KindInt:
			low, high := t.Bounds()
			n *= high - low + 1
		default:
			return math.Inf(1)
		}
	}
	return n
}
