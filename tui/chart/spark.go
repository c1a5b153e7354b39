// Package chart draws series of figures in text: sparklines of blocks and plots of braille dots.
package chart

import (
	"math"
	"strings"
)

var blocks = []rune("▁▂▃▄▅▆▇█")

// Missing is a value that nobody measured: a gap in the drawing.
var Missing = math.NaN()

// known reports whether v is a figure that can be drawn.
func known(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Spark draws the newest values in one line of exactly width columns, the last at the
// right. When there are more values than columns, a column is the largest of its share:
// a short peak is what one looks for. A max of zero or less means the largest value.
func Spark(values []float64, width int, max float64) string {
	if width <= 0 {
		return ""
	}
	values = fold(values, width)
	if !known(max) || max <= 0 {
		max = Largest(values)
	}
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", width-len(values)))
	for _, v := range values {
		if !known(v) {
			b.WriteByte(' ')
			continue
		}
		level := 0
		if max > 0 {
			level = int(math.Round(clamp(v/max) * float64(len(blocks)-1)))
		}
		b.WriteRune(blocks[level])
	}
	return b.String()
}

// Largest is the largest known value, zero when there is none above.
func Largest(values []float64) float64 {
	top := 0.0
	for _, v := range values {
		if known(v) && v > top {
			top = v
		}
	}
	return top
}

// fold makes values at most n, each the largest of its share, missing when all are.
func fold(values []float64, n int) []float64 {
	if n <= 0 || len(values) <= n {
		return values
	}
	out := make([]float64, n)
	for i := range out {
		out[i] = Missing
		for _, v := range values[i*len(values)/n : (i+1)*len(values)/n] {
			out[i] = larger(out[i], v)
		}
	}
	return out
}

// larger is the larger of two values, of which each may be missing.
func larger(a, b float64) float64 {
	if !known(a) || known(b) && b > a {
		return b
	}
	return a
}

func clamp(f float64) float64 { return min(max(f, 0), 1) }
