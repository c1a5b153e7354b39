// Package page is a text that is scrolled: a view that has something to say and no list.
package page

import (
	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/viewport"
	tea "charm.land/bubbletea/v2"

	"patio/tui/safe"
)

// Page is lines of our own styling, which are cut to its width.
type Page struct {
	view        viewport.Model
	first, last key.Binding
}

// New returns a page without lines.
func New() Page {
	bind := func(desc, help string, names ...string) key.Binding {
		return key.NewBinding(key.WithKeys(names...), key.WithHelp(help, desc))
	}
	p := Page{view: viewport.New(), first: bind("top", "g", "g", "home"), last: bind("bottom", "G", "G", "end")}
	p.view.KeyMap = viewport.KeyMap{
		Up: bind("up", "k/↑", "up", "k"), Down: bind("down", "j/↓", "down", "j"),
		PageUp: bind("page up", "pgup", "pgup", "ctrl+b", "ctrl+u"), PageDown: bind("page down", "pgdn", "pgdown", "ctrl+f"),
	}
	return p
}

// SetSize sets its room. Lines made for another width want to be made anew.
func (p *Page) SetSize(width, height int) {
	p.view.SetWidth(max(width, 0))
	p.view.SetHeight(max(height, 0))
}

// Width is the room of a line.
func (p *Page) Width() int { return p.view.Width() }

// SetLines replaces what it says.
func (p *Page) SetLines(lines []string) { p.view.SetContentLines(lines) }

// Keys are those that scroll, when there is more than is seen.
func (p *Page) Keys() []key.Binding {
	if p.view.AtTop() && p.view.AtBottom() {
		return nil
	}
	m := p.view.KeyMap
	return []key.Binding{m.Down, m.Up, m.PageDown, m.PageUp, p.first, p.last}
}

// Update scrolls by a key or the wheel.
func (p *Page) Update(msg tea.Msg) {
	if k, ok := msg.(tea.KeyPressMsg); ok {
		switch {
		case key.Matches(k, p.first):
			p.view.GotoTop()
			return
		case key.Matches(k, p.last):
			p.view.GotoBottom()
			return
		}
	}
	p.view, _ = p.view.Update(msg)
}

// View is what is seen of it.
func (p *Page) View() string { return safe.Block(p.view.View(), p.view.Width(), p.view.Height()) }
