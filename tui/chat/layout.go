package chat

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"patio/engine/api"
	"patio/tui/pane"
	"patio/tui/safe"
)

// layout is where things are, from top to bottom.
type layout struct {
	transcript, ask, notes, status, editor int // heights
	overlay                                int // height of what lies over the end of the transcript
	x, w                                   int // of the overlay
}

// arrange gives everything its room.
func (c *Chat) arrange() {
	if c.styles == nil || c.width <= 0 || c.height <= 0 {
		return
	}
	l := layout{status: 1}
	rows := max(c.height/3, 1)
	if c.focus == focusQuestion && c.height < 24 {
		rows = 1
	}
	c.ed.setSize(c.width, rows)
	c.ed.setFocused(c.focus == focusEditor && c.picker == nil)
	switch {
	case c.s.Phase.Final():
		l.editor = len(c.endLines(c.width, max(c.height/2, 1)))
	case c.o.ReadOnly:
		l.editor = 1
	default:
		l.editor = c.ed.height()
	}
	left := max(c.height-l.status-l.editor, 0)
	least := min(3, left/3) // of the transcript
	if a := c.asked(); a != nil {
		l.ask = min(c.askHeight(a, c.width, left-least), left-least)
	}
	l.notes = len(c.notes(c.width, min(left-least-l.ask, max(c.height/6, 1), 5)))
	l.transcript = max(c.height-l.status-l.editor-l.ask-l.notes, 0)
	l.w = min(c.width, 100)
	l.x = (c.width - l.w) / 2
	over := l.transcript + l.ask + l.notes
	switch {
	case c.picker != nil:
		l.overlay = min(c.picker.height(), over)
	case c.focus == focusEditor && c.completion.open():
		l.overlay = min(len(c.completion.shown)+2, 12, over)
		l.x = 0
	}
	if l.overlay < 3 {
		l.overlay = 0
	}
	c.layout = l
	c.t.SetSize(c.width, max(l.transcript, 1))
}

// View implements pane.Pane.
func (c *Chat) View() string {
	if c.styles == nil || c.width <= 0 || c.height <= 0 {
		return ""
	}
	l := c.layout
	lines := make([]string, 0, c.height)
	add := func(text string, n int) {
		if n > 0 {
			lines = append(lines, strings.Split(safe.Block(text, c.width, n), "\n")...)
		}
	}
	add(c.t.View(), l.transcript)
	if a := c.asked(); a != nil && l.ask > 0 {
		add(c.askView(a, c.width, l.ask), l.ask)
	}
	add(strings.Join(c.notes(c.width, l.notes), "\n"), l.notes)
	if l.overlay > 0 {
		c.cover(lines)
	}
	add(c.status(c.width), l.status)
	add(c.bottom(), l.editor)
	return safe.Block(strings.Join(lines, "\n"), c.width, c.height)
}

// bottom is the editor, or what stands in its place.
func (c *Chat) bottom() string {
	switch {
	case c.s.Phase.Final():
		return strings.Join(c.endLines(c.width, c.layout.editor), "\n")
	case c.o.ReadOnly:
		return c.styles.Muted.Render(safe.Cut(" read-only: you look on; another window, or `patio send`, talks to Pi", c.width))
	}
	c.ed.setPlaceholder(c.placeholder())
	return c.ed.view(c.width)
}

func (c *Chat) placeholder() string {
	text := "Ask Pi to do something · / for commands"
	switch {
	case c.s.Phase != api.PhaseReady:
		text = c.waitText()
	case c.focus == focusTranscript:
		text = "i to write"
	case c.focus == focusQuestion:
		text = "Pi waits for your answer above"
	case c.working():
		text = "Enter steers Pi, ctrl+f says it next"
	}
	return safe.Cut(text, max(c.width-3, 1))
}

// cover draws the picker or the commands over the lines above the status.
func (c *Chat) cover(lines []string) {
	l := c.layout
	var box string
	if c.picker != nil {
		box = c.picker.view(c.styles, l.w, l.overlay)
	} else {
		box = c.completion.view(c.styles, l.w, l.overlay, c.known)
	}
	top := len(lines) - l.overlay
	for i, row := range strings.Split(box, "\n") {
		if top+i < 0 || top+i >= len(lines) {
			continue
		}
		under := lines[top+i]
		line := row
		if l.x > 0 {
			line = safe.Pad(ansi.Truncate(under, l.x, ""), l.x) + row
		}
		if right := c.width - l.x - l.w; right > 0 {
			line += safe.Pad(ansi.TruncateLeft(under, l.x+l.w, ""), right)
		}
		lines[top+i] = line
	}
}

// Cursor implements pane.Cursored.
func (c *Chat) Cursor() *tea.Cursor {
	l := c.layout
	top := l.transcript + l.ask + l.notes
	var cur *tea.Cursor
	x, y := 0, 0
	switch {
	case c.picker != nil:
		if l.overlay == 0 {
			return nil
		}
		cur, x, y = c.picker.filter.Cursor(), l.x+2, top-l.overlay+1
	case c.focus == focusQuestion:
		a := c.asked()
		if a == nil || a.ed == nil || l.ask < 4 {
			return nil
		}
		cur, x, y = a.ed.area.Cursor(), 2, l.transcript+a.first
	case c.focus == focusEditor && !c.o.ReadOnly && !c.s.Phase.Final():
		cur, y = c.ed.area.Cursor(), top+1
	}
	if cur == nil {
		t, ok := c.t.(pane.Cursored)
		if c.focus == focusTranscript && c.picker == nil && ok {
			return t.Cursor()
		}
		return nil
	}
	cur.X, cur.Y = min(cur.X+x, c.width-1), min(cur.Y+y, c.height-1)
	return cur
}
