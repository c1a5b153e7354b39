// Package style turns a palette into the styles that views draw with.
package style

import (
	"strings"

	"charm.land/lipgloss/v2"

	"patio/themes"
)

// Styles are what views draw with, made once for a theme. They are never changed, so
// views may share them.
type Styles struct {
	Palette themes.Palette

	Text, Muted, Strong, Accent lipgloss.Style
	Good, Warning, Bad, Info    lipgloss.Style
	User, Agent, Tool, Thinking lipgloss.Style
	Added, Removed              lipgloss.Style
	Selected                    lipgloss.Style // the row under the cursor of the focused view
	Marked                      lipgloss.Style // the row under the cursor of another view
	Header                      lipgloss.Style // of a table's columns
	Title                       lipgloss.Style // of a view or a box
	Border                      lipgloss.Style
	Bar                         lipgloss.Style // header and footer of the screen
	Key                         lipgloss.Style // a key in the footer and in the help
	Match                       lipgloss.Style // what was searched for
	Tab, TabActive              lipgloss.Style
	Code                        lipgloss.Style // text set apart by its background
	ChipOn, ChipOff             lipgloss.Style // filters that are on, and off
	Chart                       []lipgloss.Style
	Cursor                      lipgloss.Style
}

// New makes the styles of a palette. Whether the terminal has colours at all is for the
// program's renderer, which takes away what it can't show; so nothing may be told apart
// by colour alone: selection is reversed or marked, states have signs and words.
func New(p themes.Palette) *Styles {
	base := lipgloss.NewStyle()
	fg := func(c string) lipgloss.Style {
		if c == "" {
			return base
		}
		return base.Foreground(lipgloss.Color(c))
	}
	on := func(s lipgloss.Style, c string) lipgloss.Style {
		if c == "" {
			return s
		}
		return s.Background(lipgloss.Color(c))
	}
	s := &Styles{
		Palette: p,
		Text:    fg(p.Text), Muted: fg(p.Muted), Strong: fg(p.Text).Bold(true), Accent: fg(p.Accent),
		Good: fg(p.Good), Warning: fg(p.Warning), Bad: fg(p.Bad), Info: fg(p.Info),
		User: fg(p.User), Agent: fg(p.Agent), Tool: fg(p.Tool), Thinking: fg(p.Thinking).Italic(true),
		Added: fg(p.Added), Removed: fg(p.Removed),
		Selected: on(fg(p.Text), p.Selection).Bold(true), Marked: on(fg(p.Text), p.Surface),
		Header: fg(p.Muted).Bold(true), Title: fg(p.Accent).Bold(true), Border: fg(p.Border),
		Bar: on(fg(p.Text), p.Surface), Key: fg(p.Accent).Bold(true), Match: fg(p.Warning).Bold(true).Underline(true),
		Tab: fg(p.Muted), TabActive: fg(p.Accent).Bold(true).Underline(true),
		Code: on(fg(p.Text), p.Surface), ChipOn: fg(p.Accent).Bold(true), ChipOff: fg(p.Muted),
		Cursor: fg(p.Accent).Reverse(true),
	}
	for _, c := range p.Chart {
		s.Chart = append(s.Chart, fg(c))
	}
	return s
}

// Box draws a frame with a title around content of width-2 by height-2.
func (s *Styles) Box(title, content string, width, height int) string {
	if width < 4 || height < 3 {
		return content
	}
	lines := strings.Split(content, "\n")
	if title != "" {
		title = " " + title + " "
	}
	room := width - 3 - lipgloss.Width(title)
	if room < 0 {
		title, room = "", width-3
	}
	var b strings.Builder
	b.WriteString(s.Border.Render("╭─") + s.Title.Render(title) + s.Border.Render(strings.Repeat("─", room)+"╮"))
	for i := range height - 2 {
		line := ""
		if i < len(lines) {
			line = lines[i]
		}
		if gap := width - 2 - lipgloss.Width(line); gap > 0 {
			line += strings.Repeat(" ", gap)
		}
		b.WriteString("\n" + s.Border.Render("│") + line + s.Border.Render("│"))
	}
	b.WriteString("\n" + s.Border.Render("╰"+strings.Repeat("─", width-2)+"╯"))
	return b.String()
}
