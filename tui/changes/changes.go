// Package changes is the tab for what a session changed in its workspace.
package changes

import (
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/tui/page"
	"patio/tui/pane"
	"patio/tui/safe"
	"patio/tui/style"
)

// Pane is the tab. Patio doesn't record the state of a workspace at a session's start yet,
// so it has no diff to show; it says so, and how to get one.
type Pane struct {
	styles    *style.Styles
	id        string
	workspace string
	ended     bool
	page      page.Page
	copy      key.Binding
}

// New makes the tab.
func New() *Pane {
	return &Pane{page: page.New(), copy: key.NewBinding(key.WithKeys("y"), key.WithHelp("y", "copy the command"))}
}

// SetSize implements pane.Pane.
func (p *Pane) SetSize(width, height int) {
	p.page.SetSize(width, height)
	p.write()
}

// SetStyles implements pane.Pane.
func (p *Pane) SetStyles(s *style.Styles) { p.styles = s; p.write() }

// Apply implements pane.Follower. No record is about the workspace.
func (p *Pane) Apply([]journal.Record) {}

// SetSession implements pane.Follower.
func (p *Pane) SetSession(s api.Session) {
	id, workspace, ended := word(s.ID), s.Workspace, s.Phase.Final()
	if id == p.id && workspace == p.workspace && ended == p.ended {
		return
	}
	p.id, p.workspace, p.ended = id, workspace, ended
	p.write()
}

// word is an id as a part of a command: nothing in it needs quoting.
func word(id string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return -1
	}, id)
}

// command shows the changes inside the sandbox; empty when there is none any more.
func (p *Pane) command() string {
	if p.ended || p.id == "" {
		return ""
	}
	return "patio exec " + p.id + " -- git diff"
}

// longest bounds what is shown of the workspace's path.
const longest = 1 << 10

// write makes the lines anew.
func (p *Pane) write() {
	if p.styles == nil || p.page.Width() <= 0 {
		return
	}
	s, width := p.styles, min(p.page.Width()-4, 90)
	lines := []string{""}
	head := func(text string) { lines = append(lines, "  "+s.Title.Render(safe.Cut(text, width))) }
	say := func(text string) {
		for _, line := range safe.Wrap(text, max(width, 8)) {
			lines = append(lines, "  "+s.Text.Render(line))
		}
		lines = append(lines, "")
	}
	command := func(text string) {
		for _, line := range safe.Wrap(text, max(width-4, 8)) {
			lines = append(lines, "    "+s.Accent.Render(line))
		}
		lines = append(lines, "")
	}
	head("Changes")
	say("What the session changed in its workspace since it started, as a diff, and which branches moved. This version of patio doesn't record the start, so there is nothing to compare with yet.")
	if p.workspace != "" {
		lines = append(lines, "  "+s.Muted.Render("The workspace:"))
		for _, line := range safe.Wrap(safe.Fit(p.workspace, longest), max(width-4, 8)) {
			lines = append(lines, "    "+s.Strong.Render(line))
		}
		lines = append(lines, "")
	}
	head("Until then")
	if c := p.command(); c != "" {
		say("In a workspace that is a git repository, ask git inside the sandbox. What is not committed:")
		command(c)
		say("Inside is the safe place for it: what the session wrote can make git run programs, and there they are held.")
	} else {
		say("The session has ended, so git in the workspace is yours to run: git diff, git log. The files are as it left them.")
	}
	head("Before git on the host")
	say("Git runs what a repository's configuration names: hooks, filters, pagers, file system monitors. A session can write that configuration. Look at .git/config and .git/hooks before you run git in a workspace whose session you don't trust.")
	p.page.SetLines(lines)
}

// Keys implements pane.Pane.
func (p *Pane) Keys() []key.Binding {
	if p.command() == "" {
		return p.page.Keys()
	}
	return append([]key.Binding{p.copy}, p.page.Keys()...)
}

// Update implements pane.Pane.
func (p *Pane) Update(msg tea.Msg) tea.Cmd {
	if k, ok := msg.(tea.KeyPressMsg); ok && key.Matches(k, p.copy) {
		if c := p.command(); c != "" {
			return pane.Copy(c, "the command")
		}
		return nil
	}
	p.page.Update(msg)
	return nil
}

// View implements pane.Pane.
func (p *Pane) View() string { return p.page.View() }
