package timeline

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"patio/tui/safe"
	"patio/tui/table"
)

// zooms are how much time the axis shows; the last is all there is.
var zooms = []time.Duration{10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 6 * time.Hour, 0}

// laneLabel is the room of a lane's name.
const laneLabel = 10

// axisHeight is the lines of the axis: a lane for each kind, and the scale.
func (t *Timeline) axisHeight() int {
	if t.height < 14 {
		return 0 // the list says it all
	}
	return int(kinds) + 1
}

// Len implements table.Source.
func (t *Timeline) Len() int { return len(t.shown) }

// Row implements table.Source.
func (t *Timeline) Row(i int) []table.Cell {
	e := &t.events[t.shown[i]]
	w := kindWords[e.kind]
	sign, st := w.sign, t.kindStyle(e.kind)
	if e.failed {
		sign, st = "✗", t.styles.Bad
	}
	outcome := e.outcome
	if outcome == "" && e.open() {
		outcome = "goes on"
	}
	outcomeStyle := &t.styles.Muted
	if e.failed {
		outcomeStyle = &t.styles.Bad
	}
	return []table.Cell{
		{Text: e.begin.Format("15:04:05"), Style: &t.styles.Muted}, {Text: t.took(e)}, {Text: sign + " " + w.word, Style: &st},
		{Text: e.what}, {Text: outcome, Style: outcomeStyle},
	}
}

func (t *Timeline) kindStyle(k kind) lipgloss.Style {
	if n := len(t.styles.Chart); n > 0 && k != kindState {
		return t.styles.Chart[int(k)%n]
	}
	return t.styles.Muted
}

func (t *Timeline) took(e *event) string {
	if e.end.Equal(e.begin) {
		return ""
	}
	end := e.end
	if e.open() {
		end = t.now()
	}
	return span(end.Sub(e.begin))
}

// span is a duration in at most seven columns.
func span(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm %02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh %02dm", int(d.Hours()), int(d.Minutes())%60)
}

// end is the right end of the axis while it follows: now, or the last thing that happened
// in a session that has ended.
func (t *Timeline) end() time.Time {
	if !t.session.Phase.Final() {
		return t.now()
	}
	var last time.Time
	for i := range t.events {
		for _, at := range []time.Time{t.events[i].begin, t.events[i].end} {
			if at.After(last) {
				last = at
			}
		}
	}
	return last
}

// span is the time that the axis shows.
func (t *Timeline) span() (from, to time.Time) {
	end := t.end()
	length := zooms[t.zoom]
	if t.zoomAll() {
		if len(t.events) == 0 {
			return end.Add(-time.Minute), end
		}
		from = t.events[0].begin
		if end.Sub(from) < time.Second {
			end = from.Add(time.Second)
		}
		return from, end
	}
	if t.from.IsZero() {
		return end.Add(-length), end
	}
	return t.from, t.from.Add(length)
}

func (t *Timeline) zoomAll() bool { return zooms[t.zoom] == 0 }

// pan moves the axis by a quarter of what it shows.
func (t *Timeline) pan(direction int) {
	if t.zoomAll() {
		return
	}
	from, to := t.span()
	step := to.Sub(from) / 4
	t.from = from.Add(time.Duration(direction) * step)
	if !t.from.Add(zooms[t.zoom]).Before(t.end()) {
		t.from = time.Time{} // at the end it follows
	}
}

// View implements pane.Pane.
func (t *Timeline) View() string {
	lines := make([]string, 0, t.height)
	if t.axisHeight() > 0 {
		lines = append(lines, t.axis()...)
	}
	lines = append(lines, t.chips())
	return safe.Block(strings.Join(lines, "\n")+"\n"+t.table.View(), t.width, t.height)
}

// chips say which kinds are shown, and how much time the axis has.
func (t *Timeline) chips() string {
	var b strings.Builder
	b.WriteByte(' ')
	for k, w := range kindWords {
		sign, st := "✓", t.styles.ChipOn
		if t.hidden[k] {
			sign, st = "·", t.styles.ChipOff
		}
		b.WriteString(st.Render(sign+w.key+" "+w.word) + "  ")
	}
	note := "axis: all"
	if !t.zoomAll() {
		note = "axis: " + span(zooms[t.zoom])
	}
	if t.dropped > 0 {
		note += fmt.Sprintf(" · %d older ones were dropped", t.dropped)
	}
	left := b.String()
	if gap := t.width - safe.Width(left) - safe.Width(note) - 1; gap > 0 {
		left += strings.Repeat(" ", gap) + t.styles.Muted.Render(note)
	}
	return safe.Pad(left, t.width)
}

// axis draws a lane for each kind, to scale, and the times below.
func (t *Timeline) axis() []string {
	from, to := t.span()
	width := max(t.width-laneLabel-2, 10)
	cell := func(at time.Time) int {
		return int(float64(at.Sub(from)) / float64(to.Sub(from)) * float64(width-1))
	}
	// A cell's rank: the selected event over a failure over a bar over nothing.
	const (
		bar = iota + 1
		point
		failure
		chosen
	)
	var lanes [kinds][]int
	for k := range lanes {
		lanes[k] = make([]int, width)
	}
	selected := t.selected()
	for i := range t.events {
		e := &t.events[i]
		end := e.end
		if e.open() {
			end = t.end()
		}
		if e.begin.After(to) || end.Before(from) {
			continue
		}
		a, b := max(cell(e.begin), 0), min(max(cell(end), 0), width-1)
		rank := bar
		if e.end.Equal(e.begin) {
			rank = point
		}
		if e.failed {
			rank = failure
		}
		if e == selected {
			rank = chosen
		}
		for x := min(a, width-1); x <= b; x++ {
			lanes[e.kind][x] = max(lanes[e.kind][x], rank)
		}
	}
	lines := make([]string, 0, int(kinds)+1)
	for k, lane := range lanes {
		st := t.kindStyle(kind(k))
		var b strings.Builder
		b.WriteString(" " + t.styles.Muted.Render(safe.Pad(kindWords[k].word, laneLabel)))
		for x := 0; x < width; {
			n := x
			for n < width && lane[n] == lane[x] {
				n++
			}
			s, glyph := t.styles.Border, "·"
			switch lane[x] {
			case bar:
				s, glyph = st, "━"
			case point:
				s, glyph = st, "●"
			case failure:
				s, glyph = t.styles.Bad, "✗"
			case chosen:
				s, glyph = t.styles.Selected, "█"
			}
			b.WriteString(s.Render(strings.Repeat(glyph, n-x)))
			x = n
		}
		lines = append(lines, b.String())
	}
	left, right := from.Format("15:04:05"), to.Format("15:04:05")
	if t.from.IsZero() && !t.session.Phase.Final() {
		right = "now"
	}
	middle := from.Add(to.Sub(from) / 2).Format("15:04:05")
	room := max(width-len(left)-len(middle)-len(right), 2)
	scale := left + strings.Repeat(" ", room/2) + middle + strings.Repeat(" ", room-room/2) + right
	return append(lines, " "+strings.Repeat(" ", laneLabel)+t.styles.Muted.Render(safe.Cut(scale, width)))
}
