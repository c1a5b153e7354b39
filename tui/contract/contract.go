// Package contract shows what a sandbox has to keep, and what is known of it for a session.
package contract

import (
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/tui/page"
	"patio/tui/safe"
	"patio/tui/style"
)

// Pane is the tab. It tells what the session's launch says about each clause; checks from
// inside are no part of this version, and none is claimed.
type Pane struct {
	styles  *style.Styles
	session api.Session
	said    string // what the launch says, to see a change
	page    page.Page
}

// New makes the tab.
func New() *Pane { return &Pane{page: page.New()} }

// SetSize implements pane.Pane.
func (p *Pane) SetSize(width, height int) {
	p.page.SetSize(width, height)
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
	if p.styles == nil || p.page.Width() <= 0 {
		return
	}
	s, width := p.styles, min(p.page.Width()-4, 100)
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
	p.page.SetLines(lines)
}

// Keys implements pane.Pane.
func (p *Pane) Keys() []key.Binding { return p.page.Keys() }

// Update implements pane.Pane.
func (p *Pane) Update(msg tea.Msg) tea.Cmd { p.page.Update(msg); return nil }

// View implements pane.Pane.
func (p *Pane) View() string { return p.page.View() }
