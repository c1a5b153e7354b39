package main

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestFigureIsOneLine(t *testing.T) {
	f := figure{name: "start, median of 10", value: 2.3129, unit: "s", to: "bare Pi", ref: 1.127}
	require.Equal(t, "start, median of 10: 2.31 s, 2.05 times bare Pi (1.13 s)", f.String())
}

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		v    float64
		want string
	}{
		{0, "0"}, {0.0431, "0.0431"}, {0.30249, "0.302"}, {1, "1.00"}, {2.3129, "2.31"}, {9.994, "9.99"}, {9.996, "10.0"},
		{99.96, "100"}, {1093.2, "1090"}, {88612, "88600"}, {-2.3129, "-2.31"}, {math.Inf(1), "+Inf"},
	} {
		require.Equal(t, c.want, number(c.v), "%v", c.v)
	}
}

func durations(ms ...int) []time.Duration {
	var d []time.Duration
	for _, m := range ms {
		d = append(d, time.Duration(m)*time.Millisecond)
	}
	return d
}

func TestMedian(t *testing.T) {
	for name, c := range map[string]struct {
		in   []time.Duration
		want time.Duration
	}{
		"none": {nil, 0},
		"one":  {durations(5), 5 * time.Millisecond},
		"odd":  {durations(9, 1, 5), 5 * time.Millisecond},
		"even": {durations(9, 1, 4, 6), 5 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, median(c.in)) })
	}
}

func TestQuantile(t *testing.T) {
	require.Zero(t, quantile(nil, 0.95))
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100 - i)
	}
	require.EqualValues(t, 95, quantile(hundred, 0.95))
	require.EqualValues(t, 1, quantile(hundred, 0))
	require.EqualValues(t, 100, quantile(hundred, 1))
	require.Equal(t, 9*time.Millisecond, quantile(durations(9, 1, 5), 0.95), "of a few, the longest")
}

func TestStatisticsLeaveTheirInputAlone(t *testing.T) {
	in := durations(9, 1, 5)
	median(in)
	quantile(in, 0.95)
	require.Equal(t, durations(9, 1, 5), in)
}

func TestQuantileCoversItsShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 1000), func(n int) time.Duration { return time.Duration(n) }), 1, 50).Draw(t, "durations")
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		got := quantile(in, q)
		below := 0
		for _, d := range in {
			if d <= got {
				below++
			}
		}
		require.GreaterOrEqual(t, float64(below), q*float64(len(in)))
		require.Contains(t, in, got)
	})
}
