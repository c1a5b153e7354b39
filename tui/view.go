package tui

import (
	"fmt"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"patio/engine/api"
	"patio/tui/pane"
	"patio/tui/safe"
)

// View implements tea.Model. Between two frames it returns the same one: a thousand events
// cost one redraw.
func (m *model) View() tea.View {
	if m.stale {
		m.frame = m.draw()
		m.drawn = m.o.Now()
		m.stale = false
	}
	return m.frame
}

func (m *model) draw() tea.View {
	v := tea.View{AltScreen: true, WindowTitle: "patio"}
	if m.mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	if bg := m.styles.Palette.Background; bg != "" {
		v.BackgroundColor = lipgloss.Color(bg)
		v.ForegroundColor = lipgloss.Color(m.styles.Palette.Text)
	}
	if m.width < minWidth || m.height < minHeight {
		v.Content = tooSmall(m.width, m.height)
		return v
	}
	if m.screen() == screenSession {
		v.WindowTitle = "patio · " + safe.Fit(title(m.shown.session), 40)
	}
	width, height, top := m.bodySize()
	lines := []string{m.header()}
	if m.screen() == screenSession {
		var line string
		line, m.tabSpans = m.shown.tabLine(m.styles, width)
		lines = append(lines, line)
	}
	body := m.pane().View()
	if c, ok := m.pane().(pane.Cursored); ok && m.overlay == nil {
		if cursor := c.Cursor(); cursor != nil {
			shifted := *cursor
			shifted.Y += top
			v.Cursor = &shifted
		}
	}
	lines = append(lines, safe.Block(body, width, height), m.footer())
	v.Content = strings.Join(lines, "\n")
	if m.overlay != nil {
		v.Content = over(v.Content, m.overlay.view(m.styles, m.width, m.height), m.width, m.height)
	}
	return v
}

func tooSmall(width, height int) string {
	text := fmt.Sprintf("patio needs %d×%d; this terminal has %d×%d", minWidth, minHeight, width, height)
	var lines []string
	for range max((height-1)/2, 0) {
		lines = append(lines, "")
	}
	return strings.Join(append(lines, safe.Wrap(text, max(width, 1))...), "\n")
}

// header says where one is: the session with its state, or how many there are.
func (m *model) header() string {
	s := m.styles
	left := s.Title.Render(" patio ") + s.Muted.Render("│ ")
	right := ""
	if m.screen() == screenSession {
		session := m.shown.session
		sign, words := pane.State(&session)
		left += s.Strong.Render(safe.Fit(title(session), m.width/3)) + s.Muted.Render(" · ") + m.stateStyle(session).Render(sign+" "+words)
		right = safe.Fit(session.Workspace, m.width/3)
		if model := session.Model.String(); model != "" {
			right = safe.Fit(model, m.width/3) + " · " + right
		}
		if m.shown.err != nil {
			left += s.Bad.Render(" · journal: " + safe.Fit(m.shown.err.Error(), m.width/3))
		}
		if m.o.ReadOnly {
			left += s.Warning.Render(" · read only")
		}
	} else {
		left += s.Strong.Render(screenNames[m.screen()])
		right = m.counts()
	}
	gap := m.width - safe.Width(left) - safe.Width(right) - 1
	if gap < 1 {
		return safe.Pad(left, m.width)
	}
	return left + strings.Repeat(" ", gap) + s.Muted.Render(right) + " "
}

func (m *model) stateStyle(s api.Session) lipgloss.Style {
	switch {
	case s.Phase == api.PhaseFailed || s.Phase == api.PhaseCrashed:
		return m.styles.Bad
	case s.Activity == api.ActivityBlocked && s.Phase == api.PhaseReady:
		return m.styles.Warning
	case s.Phase.Final():
		return m.styles.Muted
	case s.Activity == api.ActivityWorking:
		return m.styles.Good
	}
	return m.styles.Info
}

func (m *model) counts() string {
	if m.listErr != nil {
		return "sessions can't be listed: " + safe.Fit(m.listErr.Error(), m.width/2)
	}
	live, blocked := 0, 0
	for _, s := range m.sessions {
		if !s.Phase.Final() {
			live++
		}
		if s.Phase == api.PhaseReady && s.Activity == api.ActivityBlocked {
			blocked++
		}
	}
	text := fmt.Sprintf("%d live, %d ended", live, len(m.sessions)-live)
	if blocked > 0 {
		text = fmt.Sprintf("%d need an answer · %s", blocked, text)
	}
	return text
}

var moves = map[string]bool{"up": true, "down": true, "first": true, "last": true, "page up": true, "page down": true}

// footer shows a notice, or the keys of what has the focus.
func (m *model) footer() string {
	if m.notice.visible(m.o.Now()) {
		return m.notice.view(m.styles, m.width)
	}
	var bindings []key.Binding
	if m.overlay != nil {
		bindings = m.overlay.keys()
	} else {
		// The view's first two, then the root's, then what else there is room for.
		own := m.pane().Keys()
		lead := min(2, len(own))
		if m.typing() {
			lead = len(own)
		}
		bindings = append(append(append(bindings, own[:lead]...), m.rootKeys()...), own[lead:]...)
		if m.o.Session != "" {
			bindings = append([]key.Binding{m.keys.Detach}, bindings...)
		}
	}
	var b strings.Builder
	used := 0
	help := m.keys.Help.Help()
	room := m.width - 1 - safe.Width(help.Key+" "+help.Desc) - 3
	seen := map[string]bool{}
	for _, k := range bindings {
		h := k.Help()
		// Keys that move are where everybody looks for them; the help has them.
		if !k.Enabled() || h.Key == "" || seen[h.Key] || h.Key == help.Key || moves[h.Desc] {
			continue
		}
		seen[h.Key] = true
		w := safe.Width(h.Key) + 1 + safe.Width(h.Desc) + 2
		if used+w > room {
			continue
		}
		used += w
		b.WriteString(m.styles.Key.Render(" "+h.Key) + m.styles.Muted.Render(" "+h.Desc+" "))
	}
	if m.overlay == nil && !m.typing() {
		b.WriteString(m.styles.Key.Render(" "+help.Key) + m.styles.Muted.Render(" "+help.Desc))
	}
	return safe.Pad(b.String(), m.width)
}
