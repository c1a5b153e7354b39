// Package contract shows what a sandbox has to keep, and what is known of it for a session.
package contract

import (
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/viewport"
	tea "charm.land/bubbletea/v2"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/tui/safe"
	"patio/tui/style"
)

// Pane is the tab. It tells what the session's launch says about each clause; checks from
// inside are no part of this version, and none is claimed.
type Pane struct {
	styles  *style.Styles
	session api.Session
	said    string // what the launch says, to see a change
	view    viewport.Model
	up      key.Binding
	down    key.Binding
	first   key.Binding
	last    key.Binding
}

func bind(help, label string, names ...string) key.Binding {
	return key.NewBinding(key.WithKeys(names...), key.WithHelp(label, help))
}

// New makes the tab.
func New() *Pane {
	p := &Pane{
		view: viewport.New(), up: bind("up", "k/↑", "up", "k"), down: bind("down", "j/↓", "down", "j"),
		first: bind("top", "g", "g", "home"), last: bind("bottom", "G", "G", "end"),
	}
	p.view.KeyMap = viewport.KeyMap{
		Up: p.up, Down: p.down,
		PageUp: bind("page up", "pgup", "pgup", "ctrl+b", "ctrl+u"), PageDown: bind("page down", "pgdn", "pgdown", "ctrl+f"),
	}
	return p
}

// SetSize implements pane.Pane.
func (p *Pane) SetSize(width, height int) {
	p.view.SetWidth(max(width, 0))
	p.view.SetHeight(max(height, 0))
	p.write()
}

// SetStyles implements pane.Pane.
func (p *Pane) SetStyles(s *style.Styles) { p.styles = s; p.write() }

// Apply implements pane.Follower. No record is about the contract.
func (p *Pane) Apply([]journal.Record) {}

// SetSession implements pane.Follower.
func (p *Pane) SetSession(s api.Session) {
	p.session = s
	var b strings.Builder
	for _, c := range clauses {
		b.WriteString(c.says(s) + "\n")
	}
	if said := b.String() + s.ID + s.Workspace; said != p.said {
		p.said = said
		p.write()
	}
}

// longest bounds what is shown of one text of the launch.
const longest = 1 << 10

func (c clause) says(s api.Session) string {
	if c.launch == nil {
		return ""
	}
	return safe.Fit(c.launch(s), longest)
}

// write makes the lines anew.
func (p *Pane) write() {
	if p.styles == nil || p.view.Width() <= 0 {
		return
	}
	s, width := p.styles, min(p.view.Width()-4, 100)
	lines := []string{""}
	say := func(st func(...string) string, indent int, text string) {
		for _, line := range safe.Wrap(text, max(width-indent, 8)) {
			lines = append(lines, "  "+strings.Repeat(" ", indent)+st(line))
		}
	}
	lines = append(lines, "  "+s.Title.Render("The sandbox contract"))
	say(s.Text.Render, 0, "What a sandbox has to keep. This version of patio doesn't yet check the clauses from inside a running session: the evidence will be here, clause by clause. Until then each clause says what this session's launch set up, which is no proof.")
	lines = append(lines, "")
	command := func(name, what string) {
		if room := width - 14; room >= 24 {
			for i, line := range safe.Wrap(what, room) {
				if i > 0 {
					name = ""
				}
				lines = append(lines, "  "+s.Accent.Render(safe.Pad(name, 14))+s.Muted.Render(line))
			}
		}
	}
	command("patio doctor", "what this machine can keep today, and how to mend what it can't")
	command("patio plan", "the launch that would be made, touching nothing")
	for _, c := range clauses {
		lines = append(lines, "", "  "+s.Strong.Render(safe.Pad(c.id, 4))+s.Strong.Render(c.title)+s.Muted.Render("  ○ not checked"))
		say(s.Text.Render, 4, c.promise)
		if said := c.says(p.session); said != "" {
			say(s.Info.Render, 4, "launch: "+said)
		}
	}
	lines = append(lines, "")
	p.view.SetContentLines(lines)
}

// Keys implements pane.Pane.
func (p *Pane) Keys() []key.Binding {
	if p.view.AtTop() && p.view.AtBottom() {
		return nil
	}
	return []key.Binding{p.down, p.up, p.view.KeyMap.PageDown, p.view.KeyMap.PageUp, p.first, p.last}
}

// Update implements pane.Pane.
func (p *Pane) Update(msg tea.Msg) tea.Cmd {
	if k, ok := msg.(tea.KeyPressMsg); ok {
		switch {
		case key.Matches(k, p.first):
			p.view.GotoTop()
			return nil
		case key.Matches(k, p.last):
			p.view.GotoBottom()
			return nil
		}
	}
	p.view, _ = p.view.Update(msg)
	return nil
}

// View implements pane.Pane.
func (p *Pane) View() string { return safe.Block(p.view.View(), p.view.Width(), p.view.Height()) }
