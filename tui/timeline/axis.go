package timeline

import (
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"patio/tui/safe"
)

// laneLabel is the room of a lane's name.
const laneLabel = 10

// minSpan is as far as the axis zooms in: the journal's times are no finer in what they
// tell.
const minSpan = 5 * time.Millisecond

// end is now, or the last thing that happened in a session that has ended.
func (t *Timeline) end() int64 {
	if t.final() {
		return t.last
	}
	return max(t.now().UnixNano(), t.last)
}

// whole is all the time there is.
func (t *Timeline) whole() (from, to int64) {
	to = t.end()
	if len(t.events) == 0 {
		return to - int64(time.Minute), to
	}
	from = t.events[0].begin
	// A margin, so that what happened last isn't drawn on the edge.
	to += (to - from) / 50
	return from, max(to, from+int64(minSpan))
}

// window is the time that the axis shows.
func (t *Timeline) window() (from, to int64) {
	if t.span == 0 {
		return t.whole()
	}
	if t.follows {
		_, to = t.whole()
		return to - t.span, to
	}
	return t.from, t.from + t.span
}

// zoom shows half of the time, or twice as much, around what is selected.
func (t *Timeline) zoom(in bool) {
	from, to := t.window()
	begin, end := t.whole()
	span := (to - from) * 2
	if in {
		span = max((to-from)/2, int64(minSpan))
	}
	if span >= end-begin {
		t.span = 0
		return
	}
	middle := from + (to-from)/2
	if e := t.selected(); e != nil && e.begin >= from && e.begin <= to {
		middle = e.begin
		if e.end > e.begin && e.end-e.begin < span {
			middle += (e.end - e.begin) / 2
		}
	}
	t.span = span
	t.from = max(min(middle-span/2, end-span), begin)
	t.follows = t.follows && t.table.Following()
}

// pan moves the axis by a quarter of what it shows.
func (t *Timeline) pan(direction int64) {
	if t.span == 0 {
		return
	}
	from, _ := t.window()
	begin, end := t.whole()
	t.from = max(min(from+direction*t.span/4, end-t.span), begin)
	t.follows = direction > 0 && t.from >= end-t.span && !t.final()
}

// reveal moves the axis to where an event is.
func (t *Timeline) reveal(e *event) {
	if from, to := t.window(); t.span == 0 || e.begin >= from && e.begin <= to {
		return
	}
	begin, end := t.whole()
	t.follows = false
	t.from = max(min(e.begin-t.span/2, end-t.span), begin)
}

// scale maps times to columns.
type scale struct {
	from, to int64
	width    int
}

func (t *Timeline) scale() scale {
	from, to := t.window()
	return scale{from, to, max(t.width-laneLabel-2, 1)}
}

func (s scale) column(at int64) int {
	return int(float64(at-s.from) / float64(max(s.to-s.from, 1)) * float64(s.width))
}

// steps are the distances of the marks on the scale.
var steps = []time.Duration{
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second,
	10 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute,
	15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour,
}

// tickRoom is the least distance of two marks: their times stand between.
const tickRoom = 15

// ticks are the columns of the marks, and what is written at each.
func (t *Timeline) ticks(s scale) (columns []int, labels []string) {
	step := steps[len(steps)-1]
	for _, d := range steps {
		if float64(d)/float64(max(s.to-s.from, 1))*float64(s.width) >= tickRoom {
			step = d
			break
		}
	}
	layout := "15:04:05"
	switch {
	case step < 10*time.Millisecond:
		layout = "15:04:05.000"
	case step < 100*time.Millisecond:
		layout = "15:04:05.00"
	case step < time.Second:
		layout = "15:04:05.0"
	case step >= 24*time.Hour:
		layout = "Jan 2"
	}
	zone := t.now().Location()
	first := time.Unix(0, s.from).In(zone).Truncate(step)
	for at := first; at.UnixNano() < s.to && len(columns) < s.width; at = at.Add(step) {
		if x := s.column(at.UnixNano()); at.UnixNano() >= s.from && x >= 0 && x < s.width {
			columns = append(columns, x)
			labels = append(labels, at.Format(layout))
		}
	}
	return columns, labels
}

// cell is one place of a lane. What ranks higher is drawn over the rest.
type cell struct {
	glyph rune
	style *lipgloss.Style
	rank  uint8
}

const (
	rankGrid uint8 = iota + 1
	rankBar
	rankPoint
	rankFailed
	rankSelected
)

// laneRows is how many lines a lane has.
func (t *Timeline) laneRows(k kind) int {
	if t.height < 16 && t.counts[k] == 0 {
		return 0 // no room for what isn't there
	}
	most := 1
	switch {
	case t.height >= 36:
		most = maxRows
	case t.height >= 24:
		most = 2
	}
	return max(min(t.rows[k], most), 1)
}

// noted says that there is a lane for what isn't recorded yet.
func (t *Timeline) noted() bool { return t.height >= 18 }

// axisHeight is the lines of the axis: the lanes and the scale.
func (t *Timeline) axisHeight() int {
	if t.height < 9 {
		return 0 // the list says it all
	}
	n := 1
	for k := range kinds {
		n += t.laneRows(k)
	}
	if t.noted() {
		n++
	}
	return n
}

// axis draws the lanes, to scale, and the times below.
func (t *Timeline) axis() []string {
	s := t.scale()
	columns, labels := t.ticks(s)
	var lanes [kinds][][]cell
	for k := range kinds {
		lanes[k] = make([][]cell, t.laneRows(k))
		for r := range lanes[k] {
			lanes[k][r] = make([]cell, s.width)
			for _, x := range columns {
				lanes[k][r][x] = cell{'┊', &t.styles.Border, rankGrid}
			}
		}
	}
	selected, end := t.selected(), t.end()
	for i := range t.events {
		if e := &t.events[i]; len(lanes[e.kind]) > 0 {
			t.draw(lanes[e.kind][min(int(e.row), len(lanes[e.kind])-1)], s, e, end, e == selected)
		}
	}
	lines := make([]string, 0, 8)
	for k := range kinds {
		name := kindWords[k].lane
		for _, row := range lanes[k] {
			lines = append(lines, t.label(name)+render(row))
			name = ""
		}
	}
	if t.noted() {
		text := "processes and files appear here when the sandbox's trace is on"
		lines = append(lines, t.label("inside")+t.styles.Muted.Render(safe.Pad(text, s.width)))
	}
	return append(lines, t.ruler(s, columns, labels, selected))
}

func (t *Timeline) label(name string) string {
	return " " + t.styles.Muted.Render(safe.Pad(name, laneLabel))
}

func (t *Timeline) draw(row []cell, s scale, e *event, now int64, selected bool) {
	end := e.end
	switch {
	case e.point:
		end = e.begin
	case e.open():
		end = now
	}
	if end < s.from || e.begin >= s.to {
		return
	}
	set := func(x int, glyph rune, style *lipgloss.Style, rank uint8) {
		if x >= 0 && x < len(row) && rank >= row[x].rank {
			row[x] = cell{glyph, style, rank}
		}
	}
	style := t.kindStyle(e.kind)
	rank := rankBar
	if e.failed {
		style = &t.styles.Bad
	}
	if selected {
		rank = rankSelected // a glyph of its own, in its colour
	}
	a, b := s.column(e.begin), s.column(end)
	if e.point {
		glyph := '●'
		switch {
		case e.failed:
			glyph, rank = '✗', max(rank, rankFailed)
		case selected:
			glyph = '◉'
		default:
			rank = max(rank, rankPoint)
		}
		set(a, glyph, style, rank)
		return
	}
	switch {
	case selected:
		for x := max(a, 0); x <= min(b, len(row)-1); x++ {
			set(x, '█', style, rank)
		}
	case a == b:
		set(a, '▪', style, rank)
	default:
		for x := max(a, 0); x <= min(b, len(row)-1); x++ {
			glyph := '━'
			switch {
			case x == a:
				glyph = '╺' // so that what follows at once is seen as another
			case x == b && !e.open():
				glyph = '╸'
			case x == b:
				glyph = '┅'
			}
			set(x, glyph, style, rank)
		}
	}
	if e.failed {
		set(min(b, len(row)-1), '✗', style, max(rank, rankFailed))
	}
}

// render draws a lane with as few changes of style as it has.
func render(row []cell) string {
	var b, part strings.Builder
	for x := 0; x < len(row); {
		style := row[x].style
		part.Reset()
		for ; x < len(row) && row[x].style == style; x++ {
			if row[x].rank == 0 {
				part.WriteByte(' ')
			} else {
				part.WriteRune(row[x].glyph)
			}
		}
		if style == nil {
			b.WriteString(part.String())
		} else {
			b.WriteString(style.Render(part.String()))
		}
	}
	return b.String()
}

// ruler is the scale's line, with a sign below what is selected.
func (t *Timeline) ruler(s scale, columns []int, labels []string, selected *event) string {
	row := make([]cell, s.width)
	for x := range row {
		row[x] = cell{'─', &t.styles.Border, rankGrid}
	}
	for i, x := range columns {
		row[x] = cell{'┴', &t.styles.Border, rankGrid}
		if x+1+len(labels[i]) > s.width {
			continue
		}
		for j, c := range labels[i] {
			row[x+1+j] = cell{c, &t.styles.Muted, rankGrid}
		}
	}
	if selected != nil {
		at := selected.begin
		if selected.end > at {
			// The middle of what can be seen of it.
			at = max(at, s.from)
			at += (min(selected.end, s.to) - at) / 2
		}
		if x := s.column(at); x >= 0 && x < s.width {
			row[x] = cell{'▲', &t.styles.Accent, rankSelected}
		}
	}
	return t.label("") + render(row)
}

// near is the shown event of a lane's line that is nearest to a column, or -1.
func (t *Timeline) near(k kind, row, rows, column int) int {
	s := t.scale()
	end := t.end()
	best, distance := -1, 3 // columns beside are close enough
	for i, n := range t.shown {
		e := t.at(n)
		if e.kind != k || min(int(e.row), rows-1) != row {
			continue
		}
		a, b := s.column(e.begin), s.column(max(e.end, e.begin))
		if e.open() {
			b = s.column(end)
		}
		d := max(a-column, column-b, 0)
		if d < distance || d == distance && best >= 0 && e.point {
			best, distance = i, d
		}
	}
	return best
}
