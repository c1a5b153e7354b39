package importer

import (
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"patio/sessions/catalog"
	"patio/tui/safe"
	"patio/tui/table"
)

// hits is the list of what a search found.
type hits struct {
	importer *Importer
	query    string // "" when no search is shown
	running  bool
	number   int // generation of the search
	found    Hits
	err      error
	table    *table.Table
}

type searched struct {
	importer *Importer
	number   int
	hits     Hits
	err      error
}

func (h *hits) shown() bool { return h.query != "" }

func (h *hits) clear() {
	h.number++
	h.query, h.running, h.err, h.found = "", false, nil, Hits{}
	if h.table != nil {
		h.table.Changed()
	}
}

const snippetLeast = 20

func (h *hits) arrange(width, height int) {
	cursor := 0
	if h.table != nil {
		cursor = max(h.table.Cursor(), 0)
	}
	h.table = table.New(h,
		table.Column{Title: " ", Width: 1},
		table.Column{Title: "Title", Width: 14, Flex: 1},
		table.Column{Title: "Line", Width: 5, Right: true},
		table.Column{Title: "Who", Width: 6, Rank: 2},
		table.Column{Title: "Text", Width: snippetLeast, Flex: 3},
		table.Column{Title: "Age", Width: 5, Right: true, Rank: 1},
	)
	h.table.SetEmpty("")
	h.table.SetStyles(h.importer.styles)
	h.table.SetSize(width, height)
	h.table.SetCursor(cursor)
}

// Len implements table.Source.
func (h *hits) Len() int { return len(h.found.Matches) }

func (h *hits) match() (catalog.Match, bool) {
	if i := h.table.Cursor(); i >= 0 && i < len(h.found.Matches) {
		return h.found.Matches[i], true
	}
	return catalog.Match{}, false
}

func (h *hits) selected() (catalog.Summary, bool) {
	m, ok := h.match()
	return m.Session, ok
}

// Row implements table.Source.
func (h *hits) Row(i int) []table.Cell {
	m := &h.found.Matches[i]
	st := h.importer.styles
	mark, name := "", title(&m.Session)
	if h.importer.marks[m.Session.Path] {
		mark = "■"
	}
	if i > 0 && h.found.Matches[i-1].Session.Path == m.Session.Path && i != h.table.Cursor() {
		name = "  ″" // of the same conversation
	}
	at := m.Time
	if at.IsZero() {
		at = m.Session.LastActivity
	}
	return []table.Cell{
		{Text: mark, Style: &st.Accent},
		{Text: name, Style: &st.Text},
		{Text: strconv.Itoa(m.Line), Style: &st.Muted},
		{Text: who(m.Role, m.Type), Style: &st.Muted},
		{Styled: h.snippet(m, i == h.table.Cursor())},
		{Text: age(h.importer.now().Sub(at)), Style: &st.Muted},
	}
}

// snippet is the text around the hit, which stands out.
func (h *hits) snippet(m *catalog.Match, selected bool) string {
	st := h.importer.styles
	text, match := st.Text, st.Match
	if selected {
		text, match = st.Selected, match.Background(st.Selected.GetBackground())
	}
	start := max(0, min(m.Start, len(m.Snippet)))
	end := max(start, min(m.End, len(m.Snippet)))
	const most = 1000 // of each part, in bytes
	before, hit, after := m.Snippet[:start], safe.Line(clip(m.Snippet[start:end], most)), safe.Line(clip(m.Snippet[end:], most))
	before = safe.Line(strings.ToValidUTF8(before[max(0, len(before)-most):], ""))
	// Where the column is narrow, what comes before the hit gives way.
	if room := max(h.snippetWidth()-min(safe.Width(hit)+8, 30), 6); safe.Width(before) > room {
		before = safe.Line(ansi.TruncateLeft(before, safe.Width(before)-room+1, "…"))
	}
	line := safe.Cut(text.Render(before)+match.Render(hit)+text.Render(after), h.snippetWidth())
	return line + text.Render(strings.Repeat(" ", max(h.snippetWidth()-safe.Width(line), 0)))
}

func (h *hits) snippetWidth() int {
	w := h.importer.listWidth() - 2 - 2 - 15 - 6
	if w-snippetLeast-1 > 6+7 {
		w -= 6 + 7
	}
	return snippetLeast + max(w-snippetLeast-1, 0)*3/4
}

// who names a role in few letters.
func who(role, typ string) string {
	switch role {
	case "user":
		return "you"
	case "assistant":
		return "pi"
	case "toolResult", "bashExecution":
		return "tool"
	case "":
		return strings.ReplaceAll(typ, "_", " ")
	}
	return role
}

// search looks for the query in the files that are listed.
func (m *Importer) search() tea.Cmd {
	query := strings.TrimSpace(m.query.Value())
	m.hits.clear()
	m.hits.table.SetCursor(0)
	if query == "" {
		m.arrange()
		return m.source.Search("", nil, nil)
	}
	m.hits.query, m.hits.running = query, true
	number := m.hits.number
	var in []catalog.Summary
	if m.rows.query == "" {
		in = m.rows.list
	} else {
		for _, i := range m.rows.found {
			in = append(in, m.rows.list[i])
		}
	}
	m.arrange()
	return m.source.Search(query, in, func(found Hits, err error) tea.Msg { return searched{m, number, found, err} })
}

func (m *Importer) takeHits(msg searched) tea.Cmd {
	if msg.number != m.hits.number {
		return nil
	}
	m.hits.running, m.hits.found, m.hits.err = false, msg.hits, msg.err
	m.hits.table.Changed()
	m.hits.table.SetCursor(0)
	return m.moved()
}
