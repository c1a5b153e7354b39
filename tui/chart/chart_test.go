package chart

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"patio/themes"
	"patio/tui/panetest"
	"patio/tui/style"
)

func TestSpark(t *testing.T) {
	for name, c := range map[string]struct {
		values []float64
		width  int
		max    float64
		want   string
	}{
		"all levels":        {[]float64{0, 1, 2, 3, 4, 5, 6, 7}, 8, 7, "▁▂▃▄▅▆▇█"},
		"few":               {[]float64{7}, 3, 7, "  █"},
		"its own top":       {[]float64{1, 2}, 2, 0, "▅█"},
		"above the top":     {[]float64{9, -4}, 2, 3, "█▁"},
		"gaps":              {[]float64{1, Missing, math.Inf(1), 1}, 4, 1, "█  █"},
		"nothing but zeros": {[]float64{0, 0}, 2, 0, "▁▁"},
		"a peak stays":      {[]float64{0, 0, 9, 0, 0, 0}, 2, 9, "█▁"},
		"none":              {nil, 3, 1, "   "},
		"no room":           {[]float64{1}, 0, 1, ""},
		"no top":            {[]float64{1}, 1, Missing, "█"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, Spark(c.values, c.width, c.max)) })
	}
}

func TestSeriesWindow(t *testing.T) {
	var s Series
	require.Equal(t, 0, s.Len())
	require.True(t, math.IsNaN(s.Peak()))
	last, _ := s.Last()
	require.True(t, math.IsNaN(last))
	require.Zero(t, s.Life(panetest.Noon))
	require.Len(t, s.Window(panetest.Noon, time.Minute, 5), 5)
	for i := range 10 {
		s.Add(panetest.Noon.Add(time.Duration(i)*time.Second), float64(i))
	}
	s.Add(panetest.Noon.Add(-time.Hour), 99)
	s.Add(panetest.Noon.Add(9*time.Second), 4)
	s.Add(panetest.Noon.Add(9*time.Second), Missing)
	require.Equal(t, 10, s.Len())
	require.EqualValues(t, 9, s.Peak())
	last, at := s.Last()
	require.EqualValues(t, 4, last)
	require.True(t, at.Equal(panetest.Noon.Add(9*time.Second)))
	require.Equal(t, []float64{1, 3, 5, 7, 9}, s.Window(panetest.Noon.Add(10*time.Second), 10*time.Second, 5))
	require.Equal(t, []float64{8, 8, 9, 9}, s.Window(panetest.Noon.Add(10*time.Second), 2*time.Second, 4), "more columns than seconds")
	later := s.Window(panetest.Noon.Add(20*time.Second), 20*time.Second, 20)
	require.EqualValues(t, 9, later[11], "a value stands for a while")
	require.True(t, math.IsNaN(later[12]), "and not for long")
	early := s.Window(panetest.Noon.Add(10*time.Second), 20*time.Second, 20)
	require.True(t, math.IsNaN(early[9]))
	require.EqualValues(t, 0, early[10])
	require.Nil(t, s.Window(panetest.Noon, 0, 5))
	require.Nil(t, s.Window(panetest.Noon, time.Minute, 0))
}

func TestSeriesIsBounded(t *testing.T) {
	var s Series
	const seconds = 50_000
	for i := range seconds {
		v := 1.0
		if i == 7 {
			v = 50
		}
		s.Add(panetest.Noon.Add(time.Duration(i)*time.Second), v)
	}
	end := panetest.Noon.Add(seconds * time.Second)
	require.Equal(t, fine, s.Len())
	require.LessOrEqual(t, len(s.all), coarse)
	require.EqualValues(t, 50, s.Peak())
	all := s.Window(end, s.Life(end), 100)
	require.EqualValues(t, 50, all[0], "the oldest peak is in the whole history")
	for i, v := range all[1:] {
		require.EqualValues(t, 1, v, i)
	}
	require.EqualValues(t, 1, s.Window(end, time.Minute, 10)[0])
	s.Add(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), 2)
	require.LessOrEqual(t, len(s.all), coarse)
}

func TestScale(t *testing.T) {
	for v, want := range map[float64]float64{0: 1, -3: 1, 1: 1, 1.2: 2, 3: 5, 7: 10, 10: 10, 130: 200, 0.03: 0.05, 2e9: 2e9} {
		require.InEpsilon(t, want, Ceil(v), 1e-9, v)
	}
	require.EqualValues(t, 1, Ceil(Missing))
	require.EqualValues(t, 1024, CeilBytes(3))
	require.EqualValues(t, 4096, CeilBytes(2049))
	require.EqualValues(t, 4096, CeilBytes(4096))
	for d, want := range map[time.Duration]string{
		0: "0s", 59 * time.Second: "59s", 150 * time.Second: "2m30s", time.Hour: "1h", 80 * time.Minute: "1h20m", 76 * time.Hour: "3d4h", time.Hour + time.Second: "1h",
	} {
		require.Equal(t, want, Ago(d))
	}
}

func wave(n int, f func(x float64) float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = f(float64(i) / float64(n))
	}
	return out
}

func plot(s *style.Styles, width, height int) Plot {
	return Plot{
		Width: width, Height: height, Max: 100, Limit: 80, LimitLabel: "limit 80", Span: 5 * time.Minute, End: "now",
		Format: func(v float64) string { return fmt.Sprintf("%.0f", v) }, Axis: s.Muted, Bound: s.Warning, Hot: s.Bad,
	}
}

func lines(s *style.Styles, width int) []Line {
	n := Columns(width)
	area := wave(n, func(x float64) float64 { return 50 + 48*math.Sin(9*x) })
	if n > 20 {
		for i := range n / 10 {
			area[n/2+i] = Missing
		}
	}
	return []Line{
		{Values: area, Area: true, Style: s.Chart[0]},
		{Values: wave(n, func(x float64) float64 { return 30 + 20*math.Cos(17*x) }), Style: s.Chart[2]},
	}
}

func TestGolden(t *testing.T) {
	panetest.Golden(t, "plot", "", func(w, h int, s *style.Styles) string {
		return strings.Join(plot(s, w, h).Lines(lines(s, w)...), "\n")
	})
}

func TestPlotKeepsItsSize(t *testing.T) {
	s := panetest.Styles(t, themes.DefaultDark)
	for w := 0; w <= 120; w += 3 {
		for h := 0; h <= 30; h++ {
			p := plot(s, w, h)
			p.LimitLabel = "a limit with a name that is long"
			got := p.Lines(lines(s, w)...)
			require.Len(t, got, h)
			for _, line := range got {
				require.Equal(t, w, ansi.StringWidth(line), "%dx%d: %q", w, h, line)
			}
		}
	}
}

func TestPlotOfOddFigures(t *testing.T) {
	for name, p := range map[string]Plot{
		"nothing":         {Width: 40, Height: 6},
		"no top":          {Width: 40, Height: 6, Max: math.NaN()},
		"a limit far off": {Width: 40, Height: 6, Max: 1, Limit: 1e12, LimitLabel: "x"},
		"a negative top":  {Width: 40, Height: 6, Max: -5, Limit: -1},
	} {
		t.Run(name, func(t *testing.T) {
			p.Axis = lipgloss.NewStyle()
			got := p.Lines(Line{Values: []float64{math.Inf(1), math.NaN(), -1, 5, 1e300}}, Line{Values: nil, Area: true})
			require.Len(t, got, 6)
		})
	}
	// A line through an area is seen without colours.
	got := Plot{Width: 40, Height: 5, Max: 4}.Lines(Line{Values: wave(58, func(float64) float64 { return 4 }), Area: true}, Line{Values: wave(58, func(float64) float64 { return 2 })})
	require.NotContains(t, ansi.Strip(got[1]), "⣿")
	require.Contains(t, ansi.Strip(got[2]), "⣿")
}

func BenchmarkPlot(b *testing.B) {
	s := panetest.Styles(b, themes.DefaultDark)
	p, l := plot(s, 80, 20), lines(s, 80)
	for b.Loop() {
		p.Lines(l...)
	}
}

func BenchmarkWindow(b *testing.B) {
	var s Series
	for i := range 10_000 {
		s.Add(panetest.Noon.Add(time.Duration(i)*time.Second), float64(i%97))
	}
	end := panetest.Noon.Add(10_000 * time.Second)
	for _, span := range []time.Duration{time.Minute, time.Hour, 10_000 * time.Second} {
		b.Run(Ago(span), func(b *testing.B) {
			for b.Loop() {
				s.Window(end, span, 140)
			}
		})
	}
}
