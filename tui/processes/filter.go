package processes

import (
	"strings"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"patio/tui/safe"
)

// filter is the text that rows have to match.
type filter struct {
	input  textinput.Model
	typing bool
}

func newFilter() filter {
	in := textinput.New()
	in.CharLimit = 200
	return filter{input: in}
}

func (f *filter) open() { f.typing = true; f.input.CursorEnd(); f.input.Focus() }

func (f *filter) close() { f.typing = false; f.input.Blur() }

func (f *filter) clear() { f.input.Reset(); f.close() }

// text is what is searched for.
func (f *filter) text() string { return f.input.Value() }

func (f *filter) terms() []string { return strings.Fields(strings.ToLower(f.text())) }

// update gives a message to the input, and reports whether the text is another one. What
// couldn't be drawn isn't kept.
func (f *filter) update(msg tea.Msg) bool {
	before := f.text()
	f.input, _ = f.input.Update(msg)
	if clean := safe.Line(f.text()); clean != f.text() {
		f.input.SetValue(clean)
	}
	return f.text() != before
}

// before is the text left of the cursor.
func (f *filter) before() string {
	r := []rune(f.text())
	return string(r[:min(f.input.Position(), len(r))])
}
