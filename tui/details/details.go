// Package details shows more of a list's selected row: beside the list, below it, or in its
// place, as there is room.
package details

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"patio/tui/safe"
	"patio/tui/style"
)

// Details is a box that can be opened and scrolled.
type Details struct {
	lines  func(width int) []string
	open   bool
	top    int
	width  int // of the list and the details together
	height int
	above  int
}

// New returns details that are closed. Lines makes what they say of the row that is
// selected now, each line at most width wide.
func New(lines func(width int) []string) *Details { return &Details{lines: lines} }

// Opened reports whether they are shown.
func (d *Details) Opened() bool { return d.open }

// Open shows them from their beginning.
func (d *Details) Open() { d.open, d.top = true, 0 }

// Close hides them.
func (d *Details) Close() { d.open = false }

// Restart goes to their beginning: another row is selected.
func (d *Details) Restart() { d.top = 0 }

// Top is the first line that is seen.
func (d *Details) Top() int { return d.top }

// SetSize sets the room of the list and the details together, below some lines of the
// view's own.
func (d *Details) SetSize(width, height, above int) {
	d.width, d.height, d.above = width, height, above
}

// place is where the details are.
type place int

const (
	whole place = iota // instead of the list
	below
	beside
)

func (d *Details) place() place {
	switch {
	case d.width >= 110:
		return beside
	case d.height+d.above >= 24:
		return below
	}
	return whole
}

func (d *Details) size() (width, height int) {
	switch d.place() {
	case beside:
		return min(max(d.width*2/5, 46), 72), d.height
	case below:
		return d.width, max(d.height/2, 10)
	case whole:
	}
	return d.width, d.height
}

// List is the room of the list.
func (d *Details) List() (width, height int) {
	w, h := d.width, d.height
	if d.open {
		dw, dh := d.size()
		switch d.place() {
		case beside:
			w -= dw
		case below:
			h -= dh
		case whole:
		}
	}
	return w, h
}

// Over reports whether a cell of the room is of the details.
func (d *Details) Over(x, y int) bool {
	if !d.open {
		return false
	}
	w, h := d.size()
	switch d.place() {
	case beside:
		return x >= d.width-w
	case below:
		return y >= d.height-h
	case whole:
	}
	return true
}

// Wheel scrolls by a turn of the mouse's wheel.
func (d *Details) Wheel(button tea.MouseButton) {
	switch button {
	case tea.MouseWheelUp:
		d.Scroll(-3)
	case tea.MouseWheelDown:
		d.Scroll(3)
	default:
	}
}

// Key scrolls by a key when the details have the whole room, and reports whether they do:
// the list can't be seen then.
func (d *Details) Key(msg tea.KeyPressMsg) bool {
	if !d.open || d.place() != whole {
		return false
	}
	page := max(d.height+d.above-4, 1)
	by := map[string]int{
		"j": 1, "down": 1, "k": -1, "up": -1, "pgdown": page, "ctrl+f": page, "pgup": -page, "ctrl+b": -page, "ctrl+u": -page,
		"g": -d.top, "home": -d.top, "G": 1 << 20, "end": 1 << 20,
	}
	d.Scroll(by[msg.String()])
	return true
}

// inner is the room inside of the frame.
func (d *Details) inner() (width, height int) {
	w, h := d.size()
	return max(w-4, 1), max(h-2, 1)
}

// Scrolls reports whether they don't fit.
func (d *Details) Scrolls() bool {
	w, h := d.inner()
	return len(d.lines(w)) > h
}

// Scroll moves them by lines.
func (d *Details) Scroll(by int) {
	w, h := d.inner()
	d.top = min(max(d.top+by, 0), max(len(d.lines(w))-h, 0))
}

// View joins a list, of the size of List, with the details. The list is only asked for
// where it can be seen.
func (d *Details) View(s *style.Styles, list func() string, title string) string {
	if !d.open {
		return list()
	}
	box := d.box(s, title)
	switch d.place() {
	case beside:
		return lipgloss.JoinHorizontal(lipgloss.Top, list(), box)
	case below:
		return list() + "\n" + box
	case whole:
	}
	return box
}

func (d *Details) box(s *style.Styles, title string) string {
	width, height := d.size()
	w, room := d.inner()
	lines := d.lines(w)
	lines = lines[min(d.top, max(len(lines)-room, 0)):]
	if len(lines) > room {
		lines = append(lines[:room-1:room-1], s.Muted.Render("↓ more: J, or the wheel"))
	}
	for i := range lines {
		lines[i] = " " + safe.Cut(lines[i], w)
	}
	return safe.Block(s.Box(safe.Fit(title, max(width-8, 1)), strings.Join(lines, "\n"), width, height), width, height)
}
