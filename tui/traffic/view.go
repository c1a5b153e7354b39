package traffic

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"patio/tui/figure"
	"patio/tui/safe"
	"patio/tui/table"
)

// wideFrom is the width from which an open line stands beside the list.
const wideFrom = 120

// split is the list's width, and whether an open line stands beside it.
func (t *Traffic) split() (list int, beside bool) {
	if t.detail == nil {
		return t.width, false
	}
	if t.width < wideFrom {
		return 0, false
	}
	return t.width / 2, true
}

func (t *Traffic) layout() {
	body := max(t.height-2, 0)
	list, beside := t.split()
	t.table.SetSize(list, body)
	t.table.SetFocused(t.detail == nil)
	if t.detail == nil {
		return
	}
	if beside {
		t.detail.tree.SetSize(max(t.width-list-2, 0), max(body-2, 0))
	} else {
		t.detail.tree.SetSize(t.width, max(body-1, 0))
	}
}

// View implements pane.Pane.
func (t *Traffic) View() string {
	if t.width <= 0 || t.height <= 0 || t.styles == nil {
		return ""
	}
	body := max(t.height-2, 0)
	lines := []string{t.chipLine()}
	switch list, beside := t.split(); {
	case t.detail == nil:
		lines = append(lines, t.table.View())
	case beside:
		width := t.width - list
		left := strings.Split(t.table.View(), "\n")
		right := strings.Split(safe.Block(t.styles.Box(t.detailTitle(width-6), t.detailBody(width-2, body-2), width, body), width, body), "\n")
		for i := range body {
			lines = append(lines, left[i]+right[i])
		}
	default:
		lines = append(lines, t.styles.Title.Render(safe.Pad(t.detailTitle(t.width), t.width)), t.detailBody(t.width, body-1))
	}
	lines = append(lines, t.status())
	return safe.Block(strings.Join(lines, "\n"), t.width, t.height)
}

func (t *Traffic) detailTitle(width int) string {
	if t.detail.number < t.index.first {
		return safe.Fit("a line that was dropped", width)
	}
	r := t.index.row(t.detail.number)
	parts := []string{t.index.types[r.typ], t.clock(r.at), figure.Bytes(int64(r.size))}
	parts[0] += [...]string{noWay: "", toPi: " → to Pi", fromPi: " ← from Pi"}[r.way()]
	return safe.Fit(strings.Join(parts, " · "), width)
}

func (t *Traffic) detailBody(width, height int) string {
	d := t.detail
	switch {
	case d.err != nil:
		return safe.Block(t.styles.Bad.Render(safe.Fit("✗ The line can't be read: "+d.err.Error(), width)), width, height)
	case d.loading:
		return safe.Block(t.styles.Muted.Render(safe.Fit("  reading the line from the journal …", width)), width, height)
	}
	return d.tree.View()
}

// Cursor implements pane.Cursored.
func (t *Traffic) Cursor() *tea.Cursor {
	if t.typing {
		_, x := t.inputLine()
		return tea.NewCursor(x, t.height-1)
	}
	if t.detail == nil {
		return nil
	}
	c := t.detail.tree.Cursor()
	if c == nil {
		return nil
	}
	c.Y += 2
	if list, beside := t.split(); beside {
		c.X += list + 1
	}
	return c
}

// chip is one part of the first line.
type chip struct {
	text   string
	styled string
	class  class
	way    bool
}

// How much the chips say, from the most to the least: whole names and counts, short
// names, short names with the counts that matter, letters and counts, letters.
const (
	chipsWhole = iota
	chipsShort
	chipsTight
	chipsCounts
	chipsLetters
)

// chipRow is the chips at their longest that fits.
func (t *Traffic) chipRow() (row []chip, gap int) {
	for level := chipsWhole; ; level++ {
		row, gap = row[:0], 2
		if level == chipsTight || level == chipsLetters {
			gap = 1
		}
		total := 0
		for c := range classes {
			on := t.filter.classes>>c&1 == 1
			sign, style := "✓", t.styles.ChipOn
			if !on {
				sign, style = "·", t.styles.ChipOff
			}
			rest, count := "", t.index.counts[c]
			switch {
			case level == chipsWhole:
				rest = " " + chips[c].name
			case level <= chipsTight:
				rest = " " + chips[c].short
			}
			if level < chipsTight || level == chipsCounts || level == chipsTight && on && count > 0 {
				rest += " " + compact(count)
			}
			text := sign + chips[c].key + rest
			row = append(row, chip{text: text, class: c, styled: style.Render(sign) + t.styles.Key.Render(chips[c].key) + style.Render(rest)})
			total += safe.Width(text) + gap
		}
		words := [...]string{noWay: "↔ both ways", toPi: "→ to Pi", fromPi: "← from Pi"}[t.filter.way]
		if level >= chipsTight {
			words = [...]string{noWay: "↔", toPi: "→ to", fromPi: "← from"}[t.filter.way]
		}
		row = append(row, chip{text: "b " + words, way: true, styled: t.styles.Key.Render("b") + t.styles.ChipOn.Render(" "+words)})
		total += safe.Width(words) + 2
		if total <= t.width || level == chipsLetters {
			return row, gap
		}
	}
}

func (t *Traffic) chipLine() string {
	var b strings.Builder
	row, gap := t.chipRow()
	for i, c := range row {
		if i > 0 {
			b.WriteString(strings.Repeat(" ", gap))
		}
		b.WriteString(c.styled)
	}
	return safe.Pad(b.String(), t.width)
}

// chipAt turns the chip at a column on or off.
func (t *Traffic) chipAt(x int) tea.Cmd {
	at := 0
	row, gap := t.chipRow()
	for _, c := range row {
		width := safe.Width(c.text)
		if x >= at && x < at+width {
			if c.way {
				f := t.filter
				f.way = (f.way + 1) % (fromPi + 1)
				return t.setFilter(f)
			}
			return t.toggle(c.class)
		}
		at += width + gap
	}
	return nil
}

func compact(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 10_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	case n < 1_000_000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}

func (t *Traffic) inputLine() (text string, x int) {
	value := []rune(t.input.Value())
	at := min(t.input.Position(), len(value))
	head, tail := safe.Line(string(value[:at])), safe.Line(string(value[at:]))
	room := max(t.width/2, 8)
	for safe.Width(head) >= room && head != "" {
		head = string([]rune(head)[1:])
	}
	return "/" + head + safe.Cut(tail, max(room-safe.Width(head), 0)), 1 + safe.Width(head)
}

// status is the last line: what is followed, what is filtered, and how far.
func (t *Traffic) status() string {
	s := t.styles
	var left, right string
	switch {
	case t.typing:
		text, _ := t.inputLine()
		left = s.Accent.Render("/") + s.Text.Render(text[1:])
	case t.filter.text != "":
		sign := "/"
		if t.filter.invert {
			sign = "/!"
		}
		left = s.Accent.Render(sign) + s.Match.Render(safe.Fit(t.filter.text, max(t.width/3, 8)))
	case t.table.Following():
		left = s.Good.Render("● following")
	default:
		left = s.Muted.Render("○ not following")
	}
	if t.paused >= 0 {
		left = s.Warning.Render(fmt.Sprintf("‖ paused · %d new", t.index.end-t.paused)) + "  " + left
	}
	lines := t.index.end - t.index.first
	switch {
	case t.deep.running:
		right = fmt.Sprintf("searching whole lines %d%% · %d found · esc ends it", t.progress(), t.list.matched)
	case t.filtering():
		right = fmt.Sprintf("filtering %d%% · %d of %d", 100*(t.list.next-t.index.first)/max(lines, 1), t.list.matched, lines)
	case t.filter.text != "":
		where := "by summary: enter searches whole lines"
		if t.filter.deep {
			where = "by whole lines"
		}
		right = fmt.Sprintf("%d of %d %s", t.list.matched, lines, where)
	default:
		right = fmt.Sprintf("%d of %d lines · %s", t.list.matched, lines, figure.Bytes(t.index.bytes))
		if t.index.first > 0 {
			right = fmt.Sprintf("%d older ones were dropped here · %s", t.index.first, right)
		}
	}
	room := t.width - safe.Width(left) - 2
	right = safe.Cut(right, max(room, 0))
	return left + strings.Repeat(" ", max(t.width-safe.Width(left)-safe.Width(right), 0)) + s.Muted.Render(right)
}

// empty says why there are no rows.
func (t *Traffic) empty() {
	switch {
	case t.index.end > t.index.first && t.filtering():
		t.table.SetEmpty("looking …")
	case t.index.end > t.index.first && t.filter.text != "":
		t.table.SetEmpty("No line fits the filter. Esc clears it, and the keys above turn kinds of lines on.")
	case t.index.end > t.index.first:
		t.table.SetEmpty("All lines are of kinds that are off. The keys above turn them on.")
	case t.phase.Final():
		t.table.SetEmpty("The session ended before anything was said.")
	default:
		t.table.SetEmpty("Nothing was said yet.\nEvery line between Pi and its clients appears here, both ways,\nas soon as Pi has started.")
	}
}

// Len implements table.Source.
func (t *Traffic) Len() int { return len(t.list.entries) }

// Row implements table.Source.
func (t *Traffic) Row(i int) []table.Cell {
	e := t.list.entries[i]
	number := int(e.first)
	if number < t.index.first {
		return nil
	}
	r := t.index.row(number)
	typ, summary := t.index.types[r.typ], string(t.index.summary(number))
	style := t.lineStyle(r, typ)
	text := &t.styles.Text
	bytes := int64(r.size)
	switch e.kind {
	case folded, opened:
		sign := "▸ "
		if e.kind == opened {
			sign = "▾ "
		}
		last := t.index.row(int(e.last))
		typ = fmt.Sprintf("%s%s ×%d", sign, typ, e.n)
		summary = fmt.Sprintf("%s … %s · %s", word(summary), word(string(t.index.summary(int(e.last)))), time.Duration(last.at-r.at).Round(time.Millisecond))
		bytes, text = int64(e.size), &t.styles.Muted
	case child:
		typ = "  │ " + typ
	default:
		if r.failed() {
			summary, text = "✗ "+summary, &t.styles.Bad
		}
	}
	direction := [...]string{noWay: "–", toPi: "→ to", fromPi: "← from"}[r.way()]
	return []table.Cell{
		{Text: t.clock(r.at), Style: &t.styles.Muted},
		{Text: direction, Style: style},
		{Text: typ, Style: style},
		{Text: figure.Bytes(bytes), Style: &t.styles.Muted},
		{Text: summary, Style: text},
	}
}

func word(s string) string {
	w, _, _ := strings.Cut(s, " ")
	return w
}

func (t *Traffic) clock(at int64) string {
	return time.Unix(0, at).In(t.now().Location()).Format("15:04:05.000")
}

func (t *Traffic) lineStyle(r *row, typ string) *lipgloss.Style {
	s := t.styles
	switch {
	case r.failed():
		return &s.Bad
	case r.typ == typeUpdate:
		return &s.Muted
	}
	switch r.class() {
	case classCommand:
		return &s.User
	case classResponse:
		return &s.Info
	case classUI, classStderr:
		return &s.Warning
	case classEgress:
		return &s.Good
	case classState:
		return &s.Accent
	case classStats:
		return &s.Muted
	default:
		return t.eventStyle(typ)
	}
}

func (t *Traffic) eventStyle(typ string) *lipgloss.Style {
	switch {
	case strings.HasPrefix(typ, "tool_"):
		return &t.styles.Tool
	case strings.HasPrefix(typ, "agent_"), strings.HasPrefix(typ, "turn_"), strings.HasPrefix(typ, "message_"):
		return &t.styles.Agent
	}
	return &t.styles.Text
}
