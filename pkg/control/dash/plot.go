package dash

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// The charts are written here and not by a library: the ones there are put a
// style attribute on each shape, which a strict Content-Security-Policy
// forbids and which no stylesheet can turn dark. Here a shape has a class.
//
// A chart's SVG is stretched to the room it has, with strokes that stay as
// thick as they are; its words are HTML beside it, so they keep their size on
// a narrow screen. A dot is a line of no length with a round end, since a
// circle would be stretched too.

// The size of a chart's own coordinates.
const (
	plotWidth  = 1000
	plotHeight = 240
)

// plot is a chart as the template "plot" draws it.
type plot struct {
	ID, Title, Desc string
	// YUnit and XUnit say what the axes count.
	YUnit, XUnit string
	// YTicks are from the top down, and XTicks from the left; both are evenly
	// apart.
	YTicks, XTicks []string
	// Grid are the heights of the lines across.
	Grid   []string
	Bars   []bar
	Paths  []stroke
	Labels []label
	Legend []legend
	// Note says what the chart leaves out.
	Note string
	// Data is the address of the same data as CSV.
	Data string
	// Empty says why there is nothing to draw.
	Empty string
}

type bar struct{ X, Y, W, H, Title string }

type stroke struct{ Class, D, Title string }

type legend struct{ Class, Text string }

// Line says that it stands for a line, not for a dot.
func (l legend) Line() bool { return l.Class == "best" || strings.HasPrefix(l.Class, "lines ") }

// label is a word in a chart, at a place in percent of its room: it is not
// stretched with the rest. Dy moves it off the place.
type label struct{ Class, X, Y, Dy, Anchor, Text string }

// labelAt gives a label at a place in a chart's own coordinates.
func labelAt(class string, x, y float64, dy, anchor, text string) label {
	return label{Class: class, X: percent(x / plotWidth), Y: percent(y / plotHeight), Dy: dy, Anchor: anchor, Text: text}
}

// percent writes a fraction as a length that CSS and SVG know.
func percent(f float64) string { return coord(100*f) + "%" }

// scale are evenly spaced ticks around the values.
type scale struct {
	low, high, step float64
}

// mostTicks is far more than a scale has.
const mostTicks = 100

// newScale gives a scale of about n steps that holds low to high.
func newScale(low, high float64, n int) scale {
	if !(high > low) {
		pad := math.Abs(low) * 0.05
		if pad == 0 {
			pad = 1
		}
		low, high = low-pad, high+pad
	}
	raw := (high - low) / float64(n)
	mag := math.Pow(10, math.Floor(math.Log10(raw)))
	step := 10 * mag
	for _, m := range []float64{1, 2, 2.5, 5} {
		if m*mag >= raw {
			step = m * mag
			break
		}
	}
	return scale{low: math.Floor(low/step) * step, high: math.Ceil(high/step) * step, step: step}
}

// y gives a value's height in the plot.
func (s scale) y(v float64) float64 {
	return plotHeight * (1 - (v-s.low)/(s.high-s.low))
}

// ticks gives the labels from the top down and the heights of their lines.
func (s scale) ticks() (labels, grid []string) {
	n := math.Round((s.high - s.low) / s.step)
	if !(n >= 0 && n <= mostTicks) {
		return nil, nil // the values are past what a float64 tells apart
	}
	for i := int(n); i >= 0; i-- {
		v := s.low + float64(i)*s.step
		labels, grid = append(labels, s.label(v)), append(grid, coord(s.y(v)))
	}
	return labels, grid
}

// label writes a tick's value with as many digits as tell it from the next.
func (s scale) label(v float64) string {
	most := max(math.Abs(s.low), math.Abs(s.high))
	if math.Abs(v) < s.step/1e6 {
		return "0"
	}
	if most >= 1e9 || s.step < 1e-6 {
		return strconv.FormatFloat(v, 'g', int(math.Ceil(math.Log10(most/s.step)))+2, 64)
	}
	label := strconv.FormatFloat(v, 'f', max(0, int(-math.Floor(math.Log10(s.step)))+1), 64)
	if strings.Contains(label, ".") {
		label = strings.TrimRight(strings.TrimRight(label, "0"), ".")
	}
	if !strings.Contains(label, ".") {
		return count(int64(math.Round(v)))
	}
	return label
}

// coord writes a coordinate with one digit behind the point.
func coord(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// dot is the path of a dot.
func dot(x, y float64) string { return "M" + coord(x) + " " + coord(y) + "h0" }

// lineThrough is the path through the points.
func lineThrough(points [][2]float64) string {
	var b strings.Builder
	for i, p := range points {
		if i == 0 {
			b.WriteByte('M')
		} else {
			b.WriteByte('L')
		}
		fmt.Fprintf(&b, "%s %s", coord(p[0]), coord(p[1]))
	}
	return b.String()
}
