package home

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	"patio/engine/api"
	"patio/tui/pane"
	"patio/tui/safe"
)

// View implements pane.Pane.
func (h *Home) View() string {
	if h.width <= 0 || h.height <= 0 || h.styles == nil {
		return ""
	}
	if len(h.sessions) == 0 {
		return safe.Block(h.welcome(), h.width, h.height)
	}
	lines := []string{h.summary()}
	if h.filtering() {
		lines = append(lines, h.filterLine())
	}
	room := h.height - len(lines)
	if room <= 0 {
		return safe.Block(strings.Join(lines, "\n"), h.width, h.height)
	}
	list := h.table.View()
	if len(h.shown) == 0 {
		list = safe.Block(h.nothing(), h.listWidth(), room)
	}
	if h.beside() {
		list = beside(list, h.previewBox(h.previewWidth(), room))
	}
	return safe.Block(strings.Join(lines, "\n")+"\n"+list, h.width, h.height)
}

// beside joins two blocks of the same height.
func beside(left, right string) string {
	l, r := strings.Split(left, "\n"), strings.Split(right, "\n")
	for i := range l {
		if i < len(r) {
			l[i] += r[i]
		}
	}
	return strings.Join(l, "\n")
}

// summary counts what there is by what it does.
func (h *Home) summary() string {
	if h.err != nil {
		e := api.AsError(h.err)
		return h.styles.Bad.Render(safe.Fit(" ✗ not up to date: "+e.Message, h.width))
	}
	type group struct {
		sign, word string
		style      *lipgloss.Style
		n          int
	}
	var groups [6]group
	spent := 0.0
	for i := range h.sessions {
		s := &h.sessions[i]
		g := &groups[rank(s)]
		g.n++
		if g.n == 1 {
			g.sign, g.word = pane.State(s)
			g.style = stateStyle(s, h.styles)
		} else if _, word := pane.State(s); word != g.word {
			// Those that went wrong are one group, as are those that come and go.
			g.word = map[string]string{"!": "crashed or failed", "✗": "crashed or failed", "◌": "starting or stopping"}[g.sign]
		}
		spent += s.CostUSD
	}
	if groups[0].n > 1 {
		groups[0].word = "need an answer"
	}
	var parts []string
	used := 1
	right := h.arrangement(spent)
	for _, g := range groups {
		if g.n == 0 {
			continue
		}
		text := fmt.Sprintf("%s %d %s", g.sign, g.n, g.word)
		if used += safe.Width(text) + 3; used > h.width {
			break
		}
		parts = append(parts, g.style.Render(text))
	}
	left := " " + strings.Join(parts, "   ")
	gap := h.width - safe.Width(left) - safe.Width(right) - 1
	if gap < 2 {
		if right = "sort: " + h.order.String(); h.width-safe.Width(left)-safe.Width(right) < 3 {
			return safe.Pad(left, h.width)
		}
		gap = h.width - safe.Width(left) - safe.Width(right) - 1
	}
	return left + strings.Repeat(" ", gap) + h.styles.Muted.Render(right) + " "
}

// arrangement says how the list is made.
func (h *Home) arrangement(spent float64) string {
	text := "sort: " + h.order.String()
	if h.liveOnly {
		text = "only live · " + text
	}
	if spent > 0 {
		text = cost(spent) + " in all · " + text
	}
	return text
}

func (h *Home) filterLine() string {
	st := h.styles
	text := h.filter.View()
	if !h.typing {
		text = st.Match.Render(safe.Fit(h.filter.Value(), max(h.width-20, 8)))
	}
	found := fmt.Sprintf("%d of %d ", len(h.shown), len(h.sessions))
	left := st.Key.Render(filterLabel) + " " + text
	return safe.Pad(left, max(h.width-len(found)-1, 0)) + " " + st.Muted.Render(found)
}

// nothing says why no row is shown though there are sessions.
func (h *Home) nothing() string {
	st := h.styles
	if h.filter.Value() != "" {
		return "\n" + st.Text.Render("  Nothing fits ") + st.Match.Render(safe.Fit(h.filter.Value(), 40)) + st.Text.Render(".") +
			"\n" + st.Muted.Render("  Esc shows all again.")
	}
	return "\n" + st.Text.Render(fmt.Sprintf("  No session is live; %d ended.", len(h.sessions))) +
		"\n" + st.Muted.Render("  A shows them too, n starts a new one.")
}

// welcome is the screen before there is any session.
func (h *Home) welcome() string {
	st := h.styles
	if h.err != nil {
		e := api.AsError(h.err)
		lines := []string{"", "  " + st.Bad.Render("✗ The sessions can't be listed")}
		for _, line := range safe.Wrap(safe.Text(clip(e.Message)), max(h.width-6, 10)) {
			lines = append(lines, "    "+st.Text.Render(line))
		}
		for _, line := range safe.Wrap(safe.Text(clip(e.Hint)), max(h.width-6, 10)) {
			lines = append(lines, "    "+st.Muted.Render(line))
		}
		return strings.Join(lines, "\n")
	}
	if !h.loaded {
		return "\n" + st.Muted.Render("  Looking for sessions…")
	}
	entry := func(k, text string) string { return "    " + st.Key.Render(safe.Pad(k, 12)) + st.Text.Render(text) }
	lines := []string{
		st.Title.Render("  Welcome to patio"),
		"",
		st.Text.Render("  patio runs Pi, the coding agent, each in a sandbox of its own:"),
		st.Text.Render("  it sees one directory, and reaches the hosts that you allow."),
		"",
		entry("n", "start a new session"),
		entry("I", "import conversations that Pi has had before"),
		entry("?", "help: every key there is"),
		"",
		"    " + st.Code.Render(" patio demo ") + st.Muted.Render("  shows it all, and needs no key of a model"),
	}
	// In the upper middle, where there is room.
	above := max(min((h.height-len(lines))/3, 8), 0)
	indent := strings.Repeat(" ", max(min((h.width-70)/2, 60), 0))
	for i := range lines {
		lines[i] = indent + lines[i]
	}
	return strings.Repeat("\n", above) + strings.Join(lines, "\n")
}

// clip bounds a text that is about to be wrapped.
func clip(s string) string {
	const most = 4 << 10
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
