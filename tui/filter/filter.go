// Package filter is the line in which a view takes the text that its rows have to match.
package filter

import (
	"strings"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"patio/tui/safe"
	"patio/tui/style"
)

// Filter is the text that rows have to match.
type Filter struct {
	input  textinput.Model
	typing bool
}

// New returns a filter that everything matches.
func New() Filter {
	in := textinput.New()
	in.CharLimit = 200
	return Filter{input: in}
}

// Open takes keys from now on.
func (f *Filter) Open() { f.typing = true; f.input.CursorEnd(); f.input.Focus() }

// Typing reports whether it takes keys.
func (f *Filter) Typing() bool { return f.typing }

func (f *Filter) close() { f.typing = false; f.input.Blur() }

// Clear empties it, and takes no more keys.
func (f *Filter) Clear() { f.input.Reset(); f.close() }

// Set replaces the text.
func (f *Filter) Set(text string) { f.input.SetValue(text) }

// Text is what is searched for.
func (f *Filter) Text() string { return f.input.Value() }

// Shown reports whether the line is there: while text is taken, and as long as there is some.
func (f *Filter) Shown() bool { return f.typing || f.Text() != "" }

// Terms are the words of the text, in lower case.
func (f *Filter) Terms() []string { return strings.Fields(strings.ToLower(f.Text())) }

// Update gives a key or a paste to a filter that takes text, and reports whether the text
// is another one: enter keeps it, esc clears it. What couldn't be drawn isn't kept.
func (f *Filter) Update(msg tea.Msg) (changed bool) {
	if !f.typing {
		return false
	}
	before := f.Text()
	if k, ok := msg.(tea.KeyPressMsg); ok {
		switch k.String() {
		case "enter":
			f.close()
			return false
		case "esc":
			f.Clear()
			return true
		}
	}
	f.input, _ = f.input.Update(msg)
	if clean := safe.Line(f.Text()); clean != f.Text() {
		f.input.SetValue(clean)
	}
	return f.Text() != before
}

// View is the line, with a count at its right.
func (f *Filter) View(s *style.Styles, width int, count string) string {
	room := max(width-3-safe.Width(count), 0)
	text := safe.Fit(f.Text(), room)
	return " " + s.Key.Render("/") + " " + s.Match.Render(text) + strings.Repeat(" ", max(room-safe.Width(text), 0)) + s.Muted.Render(count)
}

// Cursor is where text is taken, on the line y; nil when none is.
func (f *Filter) Cursor(width, y int) *tea.Cursor {
	if !f.typing {
		return nil
	}
	r := []rune(f.Text())
	left := string(r[:min(f.input.Position(), len(r))])
	return tea.NewCursor(min(3+safe.Width(left), max(width-1, 0)), y)
}
