package chart

import (
	"math"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"patio/tui/safe"
)

// Line is one series of a plot.
type Line struct {
	Values []float64 // from the oldest to the newest; Missing is a gap
	Style  lipgloss.Style
	// Area fills what is below. A line that runs through the area of another cuts it out,
	// so that both are seen without colours.
	Area bool
}

// Plot is the frame of a chart: its axes, and the limit.
type Plot struct {
	Width, Height int     // of all, axes included
	Max           float64 // of the vertical axis
	Limit         float64 // 0 for none
	LimitLabel    string  // our own text
	Format        func(float64) string
	Span          time.Duration // of the horizontal axis, which ends now or at the End
	End           string        // what the right end of the axis is called, such as now

	Axis, Bound lipgloss.Style
	// Hot is for what is drawn in the uppermost tenth below the limit, and above.
	Hot lipgloss.Style
}

// axisWidth is the room for the vertical axis' labels.
const axisWidth = 10

// Columns is how many values a plot of a width can draw.
func Columns(width int) int { return max(2*(width-axisWidth-1), 0) }

// bits of the dots of a braille character, by column and by row from below.
var bits = [2][4]byte{{0x40, 0x04, 0x02, 0x01}, {0x80, 0x20, 0x10, 0x08}}

// cell is one character of the plot.
type cell struct {
	dots byte
	line int // 1 and up; 0 is empty
}

// Lines draws the plot: exactly Height lines of exactly Width columns.
func (p Plot) Lines(series ...Line) []string {
	w, h := p.Width-axisWidth-1, p.Height-1
	if w < 4 || h < 1 {
		blank := make([]string, max(p.Height, 0))
		for i := range blank {
			blank[i] = strings.Repeat(" ", max(p.Width, 0))
		}
		return blank
	}
	if !known(p.Max) || p.Max <= 0 {
		p.Max = 1
	}
	cells := make([][]cell, h) // from below
	for i := range cells {
		cells[i] = make([]cell, w)
	}
	for i, s := range series {
		draw(cells, s, i+1, p.Max)
	}
	limitRow := -1
	if p.Limit > 0 {
		limitRow = min(int(p.Limit/p.Max*float64(h)), h-1)
	}
	lines := make([]string, 0, p.Height)
	for row := h - 1; row >= 0; row-- {
		lines = append(lines, p.Axis.Render(p.label(row, h))+p.row(cells[row], series, row, h, row == limitRow))
	}
	return append(lines, p.Axis.Render(p.timeAxis(w)))
}

// draw puts a series' dots into the cells.
func draw(cells [][]cell, s Line, line int, top float64) {
	h, w := len(cells), len(cells[0])
	values := fold(s.Values, 2*w)
	first := 2*w - len(values)
	previous := -1
	for i, v := range values {
		x := first + i
		if !known(v) {
			previous = -1
			continue
		}
		level := min(int(math.Round(clamp(v/top)*float64(4*h-1))), 4*h-1)
		low, high := level, level
		switch {
		case s.Area:
			low = 0
		case previous >= 0:
			// The line joins what would be apart.
			low, high = min(level, previous+1), max(level, previous-1)
		}
		previous = level
		if !s.Area {
			cut(cells, x/2, low/4, high/4, line)
		}
		for y := low; y <= high; y++ {
			c := &cells[y/4][x/2]
			c.dots |= bits[x%2][y%4]
			c.line = line
		}
	}
}

// cut takes what other series have out of the cells of a column that a line goes through.
func cut(cells [][]cell, x, low, high, line int) {
	for y := low; y <= high; y++ {
		if c := &cells[y][x]; c.line != line {
			*c = cell{}
		}
	}
}

// label is what stands left of a row: the top, the half and zero.
func (p Plot) label(row, h int) string {
	text, tick := "", "│"
	switch {
	case row == h-1:
		text, tick = p.format(p.Max), "┤"
	case row == 0:
		text, tick = p.format(0), "┤"
	case h >= 7 && row == (h-1)/2:
		text, tick = p.format(p.Max*float64(2*row+1)/float64(2*h)), "┤"
	}
	return safe.PadLeft(text, axisWidth-1) + " " + tick
}

func (p Plot) format(v float64) string {
	if p.Format == nil {
		return ""
	}
	return p.Format(v)
}

// run collects characters of one style.
type run struct {
	b     strings.Builder
	text  strings.Builder
	style *lipgloss.Style
}

func (r *run) put(c rune, s *lipgloss.Style) {
	if s != r.style {
		r.flush()
		r.style = s
	}
	r.text.WriteRune(c)
}

func (r *run) flush() {
	if r.text.Len() == 0 {
		return
	}
	if r.style == nil {
		r.b.WriteString(r.text.String())
	} else {
		r.b.WriteString(r.style.Render(r.text.String()))
	}
	r.text.Reset()
}

func (p Plot) row(cells []cell, series []Line, row, h int, limit bool) string {
	hot := p.Limit > 0 && float64(row)/float64(h)*p.Max >= 0.9*p.Limit
	label := []rune(nil)
	if limit {
		label = []rune(" " + safe.Cut(p.LimitLabel, max(len(cells)-4, 0)) + " ")
	}
	var r run
	for x, c := range cells {
		switch at := x - 2; {
		case limit && p.LimitLabel != "" && at >= 0 && at < len(label) && len(label) <= len(cells)-2:
			r.put(label[at], &p.Bound)
		case c.line > 0 && hot:
			r.put(rune(0x2800)+rune(c.dots), &p.Hot)
		case c.line > 0:
			r.put(rune(0x2800)+rune(c.dots), &series[c.line-1].Style)
		case limit:
			r.put('╌', &p.Bound)
		default:
			r.put(' ', nil)
		}
	}
	r.flush()
	return r.b.String()
}

// timeAxis is the line below: how long ago the left end and the middle are, and the end.
func (p Plot) timeAxis(w int) string {
	axis := []rune(strings.Repeat(" ", axisWidth) + "└" + strings.Repeat("─", w))
	put := func(at int, text string) {
		for i, c := range []rune(text) {
			if at+i > axisWidth && at+i < len(axis) {
				axis[at+i] = c
			}
		}
	}
	left, right := "−"+Ago(p.Span)+" ", " "+p.End
	put(axisWidth+1, left)
	if w >= 40 {
		middle := " −" + Ago(p.Span/2) + " "
		put(axisWidth+1+w/2-safe.Width(middle)/2, middle)
	}
	put(len(axis)-safe.Width(right), right)
	return string(axis)
}

// Ago is a span of time in its two largest units: 5m, 2m30s, 1h20m, 3d4h.
func Ago(d time.Duration) string {
	s := int64(d.Round(time.Second) / time.Second)
	units := []struct {
		name string
		of   int64
	}{{"d", 86400}, {"h", 3600}, {"m", 60}, {"s", 1}}
	for i, u := range units {
		if s < u.of && u.of > 1 {
			continue
		}
		text := itoa(s/u.of) + u.name
		if rest := s % u.of; i+1 < len(units) && rest/units[i+1].of > 0 {
			text += itoa(rest/units[i+1].of) + units[i+1].name
		}
		return text
	}
	return "0s"
}
