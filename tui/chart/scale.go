package chart

import (
	"math"
	"strconv"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// Ceil is a round figure at or above v for the top of an axis: 1, 2 or 5 times a power
// of ten, so that the axis doesn't change with every value.
func Ceil(v float64) float64 {
	if !known(v) || v <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 5, 10} {
		if f*power >= v*(1-1e-9) {
			return f * power
		}
	}
	return 10 * power
}

// CeilBytes is Ceil for bytes: a power of two, of at least a KiB.
func CeilBytes(v float64) float64 {
	if !known(v) || v <= 1024 {
		return 1024
	}
	return math.Pow(2, math.Ceil(math.Log2(v)-1e-9))
}
