package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// figure is one measured value beside what it is compared with, both from the same run.
type figure struct {
	name  string
	value float64
	unit  string
	to    string // what the reference is
	ref   float64
}

// String is the figure as one line.
func (f figure) String() string {
	return fmt.Sprintf("%s: %s %s, %s times %s (%s %s)", f.name, number(f.value), f.unit, number(f.value/f.ref), f.to, number(f.ref), f.unit)
}

// number writes three significant digits, without an exponent.
func number(v float64) string {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	// Rounded first: 9.996 has two decimals only as long as it isn't 10.0.
	magnitude := int(math.Floor(math.Log10(math.Abs(v))))
	scale := math.Pow10(2 - magnitude)
	rounded := math.Round(v*scale) / scale
	decimals := 2 - int(math.Floor(math.Log10(math.Abs(rounded))))
	return strconv.FormatFloat(rounded, 'f', max(decimals, 0), 64)
}

// quantile is the smallest of the durations that at least the share q of them don't exceed (nearest rank), 0 without any.
func quantile(durations []time.Duration, q float64) time.Duration {
	if len(durations) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(durations))
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// median is the middle of the durations, the mean of the two middle ones when their number is even.
func median(durations []time.Duration) time.Duration {
	n := len(durations)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(durations))
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}
