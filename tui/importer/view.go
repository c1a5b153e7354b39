package importer

import (
	"fmt"
	"strings"

	"patio/engine/api"
	"patio/sessions/catalog"
	"patio/tui/figure"
	"patio/tui/safe"
)

const (
	filterLabel = " /"
	searchLabel = " find"
	// wide is from where on the preview has room beside the list.
	wide = 120
)

var spinner = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

func (m *Importer) spin() string { return spinner[m.ticks%len(spinner)] }

func (m *Importer) beside() bool { return m.width >= wide }

// listed says that the list is seen.
func (m *Importer) listed() bool { return m.beside() || !m.reader.open }

func (m *Importer) listWidth() int {
	if m.beside() {
		return m.width - m.readerWidth()
	}
	return m.width
}

func (m *Importer) readerWidth() int {
	if m.beside() {
		return max(46, min(m.width*40/100, 90))
	}
	return m.width
}

// readerRoom is the room of the conversation: inside the box, below what it is of.
func (m *Importer) readerRoom() (width, height int) {
	return max(m.readerWidth()-4, 1), max(m.height-m.top()-2-readerHead, 0)
}

// readerHead is the lines that tell what the conversation is of.
const readerHead = 3

// top is the first line of the list.
func (m *Importer) top() int {
	if m.second() {
		return 2
	}
	return 1
}

// second says that there is a second line above the list.
func (m *Importer) second() bool {
	return m.Typing() || m.hits.shown() || m.filter.Value() != "" || m.batch.running()
}

// arrange gives each part its room.
func (m *Importer) arrange() {
	height := max(m.height-m.top()-m.bottom(), 0)
	m.rows.arrange(m.listWidth(), height)
	m.hits.arrange(m.listWidth(), height)
	m.filter.SetWidth(max(m.width-26, 8))
	m.query.SetWidth(max(m.width-26, 8))
}

// bottom is the lines below the list.
func (m *Importer) bottom() int {
	if len(m.update.Problems) > 0 && m.height >= 10 {
		return 1
	}
	return 0
}

// View implements pane.Pane.
func (m *Importer) View() string {
	if m.width <= 0 || m.height <= 0 || m.styles == nil {
		return ""
	}
	lines := []string{m.summary()}
	if m.second() {
		lines = append(lines, m.secondLine())
	}
	room := m.height - len(lines) - m.bottom()
	if room <= 0 {
		return safe.Block(strings.Join(lines, "\n"), m.width, m.height)
	}
	var body string
	switch {
	case !m.listed():
		body = m.readerBox(m.width, room)
	case m.beside() && len(m.update.Sessions) > 0:
		body = beside(m.list(room), m.readerBox(m.readerWidth(), room))
	default:
		body = m.list(room)
	}
	lines = append(lines, safe.Block(body, m.width, room))
	if m.bottom() > 0 {
		lines = append(lines, m.problems())
	}
	return safe.Block(strings.Join(lines, "\n"), m.width, m.height)
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

func (m *Importer) list(room int) string {
	width := m.listWidth()
	if m.hits.shown() && (m.hits.running || m.hits.err != nil || len(m.hits.found.Matches) == 0) || m.length() == 0 {
		return safe.Block(m.empty(width), width, room)
	}
	t := m.table()
	return safe.Block(t.View(), width, room)
}

// length is how many rows there are.
func (m *Importer) length() int {
	if m.hits.shown() {
		return m.hits.Len()
	}
	return m.rows.Len()
}

// empty says why there is no row.
func (m *Importer) empty(width int) string {
	st := m.styles
	text := func(lines ...string) string {
		var out []string
		for i, line := range lines {
			render := st.Muted.Render
			if i == 0 {
				render = st.Text.Render
			}
			for _, row := range safe.Wrap(line, max(min(width-4, 72), 1)) {
				out = append(out, "  "+render(row))
			}
		}
		return "\n" + strings.Join(out, "\n")
	}
	switch {
	case m.hits.shown() && m.hits.running:
		return text(m.spin()+" Searching all conversations for “"+safe.Fit(m.hits.query, 40)+"”…", "Esc stops.")
	case m.hits.shown() && m.hits.err != nil:
		e := api.AsError(m.hits.err)
		return text("✗ "+safe.Fit(e.Message, 300), safe.Fit(e.Hint, 300))
	case m.hits.shown():
		return text(fmt.Sprintf("“%s” is in none of %s.", safe.Fit(m.hits.query, 40), plural(m.hits.found.Files, "conversation")), "Esc shows the list again.")
	case m.err != nil && !m.loaded:
		e := api.AsError(m.err)
		return text("✗ "+safe.Fit(e.Message, 300), safe.Fit(e.Hint, 300))
	case !m.loaded:
		return text(m.spin() + " Looking for session files of Pi's…")
	case m.rows.query != "":
		return text("Nothing fits “"+safe.Fit(m.rows.query, 40)+"”.", "Esc shows all again.")
	}
	return text("There are no session files of Pi's.",
		"Pi keeps each conversation in one, below ~/.pi/agent/sessions or where PI_CODING_AGENT_SESSION_DIR says. They appear here as Pi writes them, also those of patio's own sessions.",
		"", "More directories: session_dirs in the configuration.")
}

// summary counts files, and says how the list is kept.
func (m *Importer) summary() string {
	st := m.styles
	left := " " + st.Strong.Render(plural(len(m.update.Sessions), "conversation"))
	if !m.loaded {
		left = " " + st.Strong.Render("Conversations of Pi's")
	}
	if n := len(m.marks); n > 0 {
		left += "   " + st.Accent.Render("■ "+count(n)+" marked")
	}
	if m.broken > 0 {
		left += "   " + st.Bad.Render("✗ "+count(m.broken)+" broken")
	}
	live, style := "", st.Muted
	switch {
	case m.err != nil:
		live, style = "✗ not up to date: "+api.AsError(m.err).Message, st.Bad
	case !m.loaded:
	case m.update.Live:
		live, style = "● live", st.Good
	default:
		live, style = "◌ rescanned every "+m.update.Every.String()+": "+m.update.Why, st.Warning
	}
	room := m.width - safe.Width(left) - 3
	if room < 8 {
		return safe.Pad(left, m.width)
	}
	live = safe.Fit(live, room)
	return left + strings.Repeat(" ", m.width-safe.Width(left)-safe.Width(live)-1) + style.Render(live) + " "
}

// secondLine is what is typed, or goes on.
func (m *Importer) secondLine() string {
	st := m.styles
	line := func(label, text, right string) string {
		return safe.Pad(st.Key.Render(label)+" "+text, max(m.width-safe.Width(right)-2, 0)) + " " + st.Muted.Render(right) + " "
	}
	switch {
	case m.taking == takingFilter:
		return line(filterLabel, m.filter.View(), fmt.Sprintf("%s of %s", count(m.rows.Len()), count(len(m.update.Sessions))))
	case m.taking == takingSearch:
		return line(searchLabel, m.query.View(), "enter searches")
	case m.batch.running():
		return m.progress()
	case m.hits.shown():
		f := m.hits.found
		text := count(len(f.Matches)) + " found"
		if f.More {
			text = "the first " + text
		}
		if f.Unread > 0 {
			text += fmt.Sprintf(", %s unread", plural(f.Unread, "file"))
		}
		if m.hits.running {
			text = "…"
		}
		return line(searchLabel, st.Match.Render(safe.Fit(m.hits.query, max(m.width-40, 8))), text)
	}
	return line(filterLabel, st.Match.Render(safe.Fit(m.filter.Value(), max(m.width-26, 8))), fmt.Sprintf("%s of %s", count(m.rows.Len()), count(len(m.update.Sessions))))
}

// progress is how far an import is.
func (m *Importer) progress() string {
	st, b := m.styles, m.batch
	const width = 16
	full := b.next * width / len(b.paths)
	text := fmt.Sprintf(" %s importing %s of %s ", m.spin(), count(b.next+1), count(len(b.paths)))
	if b.stopped {
		text = fmt.Sprintf(" %s stopping after %s of %s ", m.spin(), count(b.next+1), count(len(b.paths)))
	}
	line := st.Info.Render(text) + st.Accent.Render(strings.Repeat("█", full)) + st.Border.Render(strings.Repeat("░", width-full))
	if n := b.counts[Refused]; n > 0 {
		line += st.Bad.Render("  ✗ " + count(n) + " refused")
	}
	return line + st.Muted.Render("  esc stops")
}

// problems are of places that couldn't be looked at.
func (m *Importer) problems() string {
	all := m.update.Problems
	text := " ! " + all[0].Error()
	if len(all) > 1 {
		text = fmt.Sprintf(" ! %s couldn't be looked at: %s", plural(len(all), "place"), all[0].Error())
	}
	return m.styles.Warning.Render(safe.Fit(text, m.width))
}

// readerBox shows the selected file.
func (m *Importer) readerBox(width, height int) string {
	st := m.styles
	about, s, ok := m.subject()
	if !ok || width < 8 || height < 3 {
		return st.Box("Preview", "", width, height)
	}
	w, r := width-4, &m.reader
	lines := m.head(&s, w)
	room := max(height-2-len(lines), 0)
	switch {
	case about.path != r.shown.path || about.entry != r.shown.entry:
		lines = append(lines, st.Muted.Render(safe.Cut(m.spin()+" reading…", w)))
	default:
		m.draw()
		from := min(r.from(), max(len(r.lines.all)-room, 0))
		lines = append(lines, r.lines.all[from:min(from+room, len(r.lines.all))]...)
	}
	for i := range lines {
		lines[i] = " " + lines[i]
	}
	name := safe.Fit(title(&s), w-2)
	if r.open {
		// A sign beside the colour, for those who have none.
		name = "▶ " + safe.Fit(title(&s), w-4)
	}
	return st.Box(name, strings.Join(lines, "\n"), width, height)
}

// head is what the file is, in readerHead lines.
func (m *Importer) head(s *catalog.Summary, w int) []string {
	st := m.styles
	facts := []string{}
	if s.Model != "" {
		facts = append(facts, safe.Fit(s.Model, 60))
	}
	if s.Thinking != "" {
		facts = append(facts, "thinking "+safe.Fit(s.Thinking, 12))
	}
	facts = append(facts, messages(s)+" messages", figure.Size(s.Size))
	if total := m.reader.preview.Usage.Total(); total > 0 && m.reader.shown.path == s.Path {
		facts = append(facts, compact(total)+" tokens")
	}
	if n := m.reader.preview.Branches; n > 1 && m.reader.shown.path == s.Path {
		facts = append(facts, plural(n, "branch"))
	}
	where := shorten(s.Cwd, m.home, w)
	if where == "" {
		where = "of no project"
	}
	third := st.Border.Render(strings.Repeat("─", max(w, 0)))
	sign, style := m.state(s)
	if id := m.session(s.Path); id != "" && sign == "✓ imported" {
		sign += " as " + safe.Fit(id, 20)
	}
	if sign != "" {
		third = style.Render(sign) + " " + st.Border.Render(strings.Repeat("─", max(w-safe.Width(sign)-1, 0)))
	}
	return []string{st.Text.Render(where), st.Muted.Render(safe.Fit(strings.Join(facts, " · "), w)), safe.Cut(third, w)}
}
