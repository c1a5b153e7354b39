package importer

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/sahilm/fuzzy"

	"patio/sessions/catalog"
	"patio/tui/figure"
	"patio/tui/safe"
	"patio/tui/table"
)

// rows is the list of files, or of those that pass the filter.
type rows struct {
	importer *Importer
	list     []catalog.Summary
	found    []int // indexes into list; not used without a query
	query    string
	finding  int // generation of the filter
	table    *table.Table
}

// filtered is the outcome of a filter over a list.
type filtered struct {
	importer *Importer
	finding  int
	query    string
	list     []catalog.Summary
	found    []int
}

const (
	stateWidth   = 10
	projectWidth = 11
)

func (r *rows) arrange(width, height int) {
	cursor := 0
	if r.table != nil {
		cursor = max(r.table.Cursor(), 0)
	}
	r.table = table.New(r,
		table.Column{Title: " ", Width: 1},
		table.Column{Title: "Title", Width: 16, Flex: 5},
		table.Column{Title: "Project", Width: projectWidth, Flex: 2},
		table.Column{Title: "Model", Width: 14, Flex: 1, Rank: 4},
		table.Column{Title: "Msgs", Width: 6, Right: true, Rank: 1},
		table.Column{Title: "Size", Width: 8, Right: true, Rank: 3},
		table.Column{Title: "Age", Width: 5, Right: true},
		table.Column{Title: "State", Width: stateWidth, Rank: 0},
	)
	r.table.SetEmpty("")
	r.table.SetStyles(r.importer.styles)
	r.table.SetSize(width, height)
	r.table.SetCursor(cursor)
}

// Len implements table.Source.
func (r *rows) Len() int {
	if r.query == "" {
		return len(r.list)
	}
	return len(r.found)
}

func (r *rows) at(i int) *catalog.Summary {
	if r.query == "" {
		return &r.list[i]
	}
	return &r.list[r.found[i]]
}

func (r *rows) selected() (catalog.Summary, bool) {
	if i := r.table.Cursor(); i >= 0 && i < r.Len() {
		return *r.at(i), true
	}
	return catalog.Summary{}, false
}

// Row implements table.Source.
func (r *rows) Row(i int) []table.Cell {
	s, m := r.at(i), r.importer
	st := m.styles
	text, mark := &st.Text, ""
	if m.marks[s.Path] {
		mark = "■"
	}
	name := title(s)
	if s.Broken != "" {
		text = &st.Muted
	}
	sign, how := m.state(s)
	return []table.Cell{
		{Text: mark, Style: &st.Accent},
		{Text: name, Style: text},
		{Text: shorten(s.Cwd, m.home, r.projectWidth()), Style: &st.Muted},
		{Text: model(s), Style: &st.Muted},
		{Text: messages(s), Style: text},
		{Text: figure.Size(s.Size), Style: &st.Muted},
		{Text: age(m.now().Sub(s.LastActivity)), Style: text},
		{Text: sign, Style: how},
	}
}

// projectWidth is the room of the column, of which the rest is known only to the table:
// the least of what it can be.
func (r *rows) projectWidth() int {
	w := r.importer.listWidth()
	fixed := 2 + 2 + 17 + projectWidth + 1 + 6 + stateWidth + 1
	flex := 7
	for _, c := range []struct{ width, flex int }{{7, 0}, {9, 0}, {15, 1}} {
		if fixed+c.width > w {
			break
		}
		fixed += c.width
		flex += c.flex
	}
	return projectWidth + max(w-fixed, 0)*2/flex
}

// title is what a file is called: a broken one may have but its name.
func title(s *catalog.Summary) string {
	if s.Title != "" {
		return s.Title
	}
	if s.Broken == "" && s.Messages == 0 {
		return "(nothing was said)"
	}
	return s.Path[strings.LastIndexByte(s.Path, '/')+1:]
}

// model is without the provider.
func model(s *catalog.Summary) string {
	if _, id, ok := strings.Cut(s.Model, "/"); ok {
		return id
	}
	return s.Model
}

// messages are marked where they are an estimate.
func messages(s *catalog.Summary) string {
	switch {
	case s.Broken != "" && s.Messages == 0:
		return "-"
	case s.Exact:
		return count(s.Messages)
	}
	return "~" + count(s.Messages)
}

// state is what a list says of a file beside what it holds.
func (m *Importer) state(s *catalog.Summary) (string, *lipgloss.Style) {
	st := m.styles
	if m.batch.running() {
		if at, ok := m.batch.place[s.Path]; ok && at == m.batch.next {
			return "◌ now", &st.Info
		} else if ok && at > m.batch.next {
			return "◌ waits", &st.Muted
		}
	}
	if o, ok := m.outcomes[s.Path]; ok && o.result.Status == Refused {
		return "✗ refused", &st.Bad
	}
	switch {
	case m.session(s.Path) != "":
		return "✓ imported", &st.Good
	case s.Broken != "":
		return "✗ broken", &st.Bad
	case s.Torn:
		return "~ torn", &st.Warning
	}
	return "", &st.Muted
}

// refilter makes the rows of the newest list. The filter runs outside of Update: ten
// thousand files take longer than a frame.
func (m *Importer) refilter() tea.Cmd {
	r := &m.rows
	r.finding++
	query := strings.TrimSpace(m.filter.Value())
	list := m.update.Sessions
	if query == "" {
		return m.takeFiltered(filtered{importer: m, finding: r.finding, list: list})
	}
	finding := r.finding
	return func() tea.Msg {
		texts := make([]string, len(list))
		for i := range list {
			s := &list[i]
			texts[i] = safe.Fit(title(s), 240) + " " + safe.Fit(s.Cwd, 300) + " " + safe.Fit(s.Model, 80)
		}
		found := []int{}
		for _, match := range fuzzy.Find(query, texts) {
			found = append(found, match.Index)
		}
		return filtered{m, finding, query, list, found}
	}
}

func (m *Importer) takeFiltered(msg filtered) tea.Cmd {
	r := &m.rows
	if msg.finding != r.finding {
		return nil
	}
	r.list, r.found, r.query = msg.list, msg.found, msg.query
	r.table.Changed()
	cursor := r.table.Cursor()
	if m.selected == "" {
		cursor = 0
	}
	for i := range r.Len() {
		if r.at(i).Path == m.selected {
			cursor = i
			break
		}
	}
	r.table.SetCursor(max(cursor, 0))
	return m.moved()
}
