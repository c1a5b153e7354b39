package timeline

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"patio/tui/safe"
	"patio/tui/table"
)

// View implements pane.Pane.
func (t *Timeline) View() string {
	if t.width <= 0 || t.height <= 0 || t.styles == nil {
		return ""
	}
	lines := []string{t.chips()}
	if t.axisHeight() > 0 {
		lines = append(lines, t.axis()...)
	}
	if rest := t.height - len(lines); rest > 0 {
		lines = append(lines, t.table.View())
	}
	return safe.Block(strings.Join(lines, "\n"), t.width, t.height)
}

// chipText is a kind's chip: with its count, or without when there is no room.
func (t *Timeline) chipText(k kind, level int) string {
	sign := "✓"
	if t.hidden[k] {
		sign = "·"
	}
	text := sign + kindWords[k].key
	if level < 2 {
		text += " " + kindWords[k].lane
	}
	if level != 1 {
		text += fmt.Sprintf(" %d", t.counts[k])
	}
	return text
}

// chipLevel is how little the chips have to say to fit.
func (t *Timeline) chipLevel() int {
	for level := range 2 {
		total := 0
		for k := range kinds {
			total += safe.Width(t.chipText(k, level)) + 2
		}
		if total <= t.width {
			return level
		}
	}
	return 2
}

// chips say which kinds are shown, and how much time the axis has.
func (t *Timeline) chips() string {
	var b strings.Builder
	level := t.chipLevel()
	for k := range kinds {
		style := t.styles.ChipOn
		if t.hidden[k] {
			style = t.styles.ChipOff
		}
		text := t.chipText(k, level)
		sign := len("✓")
		if t.hidden[k] {
			sign = len("·")
		}
		b.WriteString(style.Render(text[:sign]) + t.styles.Key.Render(text[sign:sign+1]) + style.Render(text[sign+1:]) + "  ")
	}
	left := b.String()
	from, to := t.window()
	note := took(time.Duration(to - from))
	if t.span == 0 {
		note = "all " + note
	}
	if t.follows && t.table.Following() {
		note += " · following"
	}
	if t.dropped > 0 {
		note = fmt.Sprintf("%d older were dropped · %s", t.dropped, note)
	}
	if gap := t.width - safe.Width(left) - safe.Width(note); gap >= 0 {
		left += strings.Repeat(" ", gap) + t.styles.Muted.Render(note)
	}
	return safe.Pad(left, t.width)
}

func (t *Timeline) empty() {
	switch {
	case len(t.events) > 0:
		t.table.SetEmpty("All events are of kinds that are hidden. The keys above show them.")
	case t.final():
		t.table.SetEmpty("The session ended before anything happened.")
	default:
		t.table.SetEmpty("Nothing has happened yet.\nTurns, tool calls, connections, programs and changes\nof state come here as they happen.")
	}
}

// Len implements table.Source.
func (t *Timeline) Len() int { return len(t.shown) }

// Row implements table.Source.
func (t *Timeline) Row(i int) []table.Cell {
	e := t.at(t.shown[i])
	sign, word, st, text := kindWords[e.kind].sign, kindWords[e.kind].word, t.kindStyle(e.kind), &t.styles.Text
	outcome, muted := e.outcome, &t.styles.Muted
	if e.open() {
		outcome = "goes on"
	}
	if e.failed {
		sign, st, text, muted = "✗", &t.styles.Bad, &t.styles.Bad, &t.styles.Bad
		if e.kind == kindNetwork && e.point {
			word = "denied" // without its own column too
		}
	}
	if e.kind == kindTurn && e.point {
		sign, word = "❯", "prompt"
		if rest, ok := strings.CutPrefix(e.what, "prompt: "); ok {
			return []table.Cell{{Text: t.clock(e.begin), Style: muted}, {}, {Text: sign + " " + word, Style: &t.styles.User}, {Text: rest, Style: &t.styles.User}, {}}
		}
	}
	return []table.Cell{
		{Text: t.clock(e.begin), Style: &t.styles.Muted}, {Text: t.took(e), Style: &t.styles.Muted}, {Text: sign + " " + word, Style: st},
		{Text: e.what, Style: text}, {Text: outcome, Style: muted},
	}
}

func (t *Timeline) kindStyle(k kind) *lipgloss.Style {
	switch k {
	case kindTurn:
		return &t.styles.Agent
	case kindTool:
		return &t.styles.Tool
	case kindNetwork:
		return &t.styles.Good
	case kindProgram:
		return &t.styles.Warning
	default:
		return &t.styles.Accent
	}
}

func (t *Timeline) took(e *event) string {
	switch {
	case e.point:
		return ""
	case e.open():
		return took(time.Duration(t.end() - e.begin))
	}
	return took(time.Duration(e.end - e.begin))
}

func (t *Timeline) clock(at int64) string {
	return time.Unix(0, at).In(t.now().Location()).Format("15:04:05.000")
}
