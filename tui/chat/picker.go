package chat

import (
	"fmt"
	"strings"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/sahilm/fuzzy"

	"patio/tui/safe"
	"patio/tui/style"
)

// item is one row of a picker. Its texts are safe.
type item struct {
	id      string
	prefix  string // drawn before the label, not searched
	label   string
	detail  string
	current bool
	muted   bool
	off     string // why it can't be chosen
}

// maxLabel bounds the text of an item.
const maxLabel = 200

// picker is a list to choose from, or with free a line to type, over the conversation.
type picker struct {
	title   string
	hint    string
	empty   string
	items   []item
	free    bool
	loading bool
	busy    string // what is being done with the choice
	err     string
	choose  func(it item) tea.Cmd

	filter  textinput.Model
	shown   []int
	matched [][]int // parallel to shown
	cursor  int
	top     int
	rows    int // of the list, as last drawn
	from    int // the line of the list's first row, as last drawn
}

func newPicker(title string, s *style.Styles) *picker {
	p := &picker{title: title, filter: newFilter(s)}
	return p
}

func newFilter(s *style.Styles) textinput.Model {
	in := textinput.New()
	in.Prompt = "› "
	in.SetVirtualCursor(false)
	in.KeyMap.Paste.SetEnabled(false)
	state := textinput.StyleState{Text: s.Text, Placeholder: s.Muted, Prompt: s.Accent, Suggestion: s.Muted}
	st := textinput.Styles{Focused: state, Blurred: state}
	st.Cursor.Shape, st.Cursor.Blink = tea.CursorBar, true
	if s.Palette.Accent != "" {
		st.Cursor.Color = lipgloss.Color(s.Palette.Accent)
	}
	in.SetStyles(st)
	in.Focus()
	return in
}

// setItems shows the rows, with the cursor on the current one.
func (p *picker) setItems(items []item) {
	p.items, p.loading = items, false
	p.find()
}

// find applies the filter.
func (p *picker) find() {
	p.shown, p.matched = p.shown[:0], p.matched[:0]
	p.cursor, p.top = 0, 0
	pattern := strings.TrimSpace(p.filter.Value())
	if pattern == "" || p.free {
		for i := range p.items {
			if p.items[i].current {
				p.cursor = len(p.shown)
			}
			p.shown = append(p.shown, i)
			p.matched = append(p.matched, nil)
		}
		return
	}
	for _, m := range fuzzy.FindFrom(pattern, labels(p.items)) {
		p.shown = append(p.shown, m.Index)
		p.matched = append(p.matched, m.MatchedIndexes)
	}
}

// labels are what a filter looks at.
type labels []item

func (l labels) Len() int            { return len(l) }
func (l labels) String(i int) string { return l[i].label }

func (p *picker) move(n int) {
	p.cursor = max(min(p.cursor+n, len(p.shown)-1), 0)
}

func (p *picker) selected() (item, bool) {
	if p.free {
		return item{id: p.filter.Value()}, true
	}
	if p.cursor >= len(p.shown) {
		return item{}, false
	}
	return p.items[p.shown[p.cursor]], true
}

// key handles a key; closed says that the picker is to go.
func (p *picker) key(msg tea.KeyPressMsg) (cmd tea.Cmd, closed bool) {
	switch msg.String() {
	case "esc":
		if p.filter.Value() != "" && !p.free {
			p.filter.SetValue("")
			p.find()
			return nil, false
		}
		return nil, true
	case "up", "ctrl+k":
		p.move(-1)
	case "down", "ctrl+n", "tab":
		p.move(1)
	case "shift+tab":
		p.move(-1)
	case "pgup":
		p.move(-max(p.rows-1, 1))
	case "pgdown":
		p.move(max(p.rows-1, 1))
	case "home":
		p.move(-len(p.shown))
	case "end":
		p.move(len(p.shown))
	case "enter":
		return p.take(), false
	default:
		p.typed(msg)
	}
	return nil, false
}

func (p *picker) take() tea.Cmd {
	it, ok := p.selected()
	if !ok || p.busy != "" || p.loading {
		return nil
	}
	if it.off != "" {
		p.err = it.off
		return nil
	}
	p.err = ""
	return p.choose(it)
}

// typed changes the filter.
func (p *picker) typed(msg tea.Msg) {
	before := p.filter.Value()
	switch m := msg.(type) {
	case tea.KeyPressMsg:
		if m.Text != "" {
			if m.Text = safe.Line(m.Text); m.Text == "" {
				return
			}
		}
		p.filter, _ = p.filter.Update(m)
	case tea.PasteMsg:
		m.Content = safe.Fit(m.Content, maxLabel)
		p.filter, _ = p.filter.Update(m)
	}
	if p.filter.Value() != before {
		p.err = ""
		p.find()
	}
}

// mouse handles the wheel, and clicks at a line of the box.
func (p *picker) mouse(msg tea.Msg, y int) tea.Cmd {
	switch m := msg.(type) {
	case tea.MouseWheelMsg:
		switch m.Button {
		case tea.MouseWheelUp:
			p.move(-3)
		case tea.MouseWheelDown:
			p.move(3)
		default:
		}
	case tea.MouseClickMsg:
		i := p.top + y - p.from
		if y < p.from || y >= p.from+p.rows || i >= len(p.shown) {
			return nil
		}
		if i == p.cursor {
			return p.take()
		}
		p.cursor = i
	}
	return nil
}

// footer is the last line: what went wrong, what is done, or what the choice does.
func (p *picker) footer(s *style.Styles, width int) string {
	switch {
	case p.err != "":
		return s.Bad.Render(safe.Fit("✗ "+p.err, width))
	case p.busy != "":
		return s.Muted.Render(safe.Fit("… "+p.busy, width))
	case p.hint != "":
		return s.Muted.Render(safe.Fit(p.hint, width))
	}
	return ""
}

// height is how many lines it would like to have.
func (p *picker) height() int {
	n := 4 // the frame, the filter, the last line
	if !p.free {
		n += max(len(p.items), 1)
	}
	return min(n, 22)
}

// view draws it as a box.
func (p *picker) view(s *style.Styles, width, height int) string {
	inner := width - 4
	p.filter.SetWidth(max(inner-3, 1))
	lines := []string{safe.Pad(p.filter.View(), inner)}
	footer := p.footer(s, inner)
	room := height - 3
	if footer != "" {
		room--
	}
	p.rows, p.from = 0, 2
	if !p.free {
		p.rows = max(room, 0)
		lines = append(lines, p.list(s, inner)...)
	}
	for len(lines) < height-3 {
		lines = append(lines, "")
	}
	if footer != "" {
		lines = append(lines[:max(min(len(lines), height-3), 0)], footer)
	}
	for i := range lines {
		lines[i] = " " + safe.Pad(lines[i], inner) + " "
	}
	title := p.title
	if n := len(p.items); n > 0 && !p.free {
		title = fmt.Sprintf("%s · %d of %d", p.title, len(p.shown), n)
	}
	return safe.Block(s.Box(safe.Fit(title, width-6), strings.Join(lines, "\n"), width, height), width, height)
}

func (p *picker) list(s *style.Styles, width int) []string {
	switch {
	case p.loading:
		return []string{s.Muted.Render("asking Pi…")}
	case len(p.items) == 0:
		return []string{s.Muted.Render(safe.Cut(p.empty, width))}
	case len(p.shown) == 0:
		return []string{s.Muted.Render("nothing fits; Esc shows all")}
	}
	p.top = min(p.top, p.cursor)
	p.top = max(p.top, p.cursor-p.rows+1, 0)
	p.top = max(min(p.top, len(p.shown)-p.rows), 0)
	end := min(p.top+p.rows, len(p.shown))
	widest := 0
	for _, i := range p.shown[p.top:end] {
		widest = max(widest, safe.Width(p.items[i].prefix)+safe.Width(p.items[i].label))
	}
	details := 0
	for _, i := range p.shown[p.top:end] {
		details = max(details, safe.Width(p.items[i].detail))
	}
	label := width - 4
	if details > 0 {
		label = min(max(width-6-min(details, 16), 1), max(widest, 12))
	}
	var lines []string
	for n := p.top; n < end; n++ {
		lines = append(lines, row(s, p.items[p.shown[n]], p.matched[n], n == p.cursor, label, width))
	}
	return lines
}

// row draws an item: a cursor, a mark for the current one, its label and what is known.
func row(s *style.Styles, it item, matched []int, selected bool, label, width int) string {
	base, detail, mark := s.Text, s.Muted, "  "
	if it.muted || it.off != "" {
		base = s.Muted
	}
	if selected {
		base, detail, mark = s.Selected, s.Selected.Foreground(s.Muted.GetForeground()), "▶ "
	}
	sign := "  "
	if it.current {
		sign = "● "
	}
	room := label - safe.Width(it.prefix)
	text := safe.Pad(safe.Cut(it.label, room), room)
	var b strings.Builder
	b.WriteString(base.Render(mark + sign))
	b.WriteString(detail.Render(it.prefix))
	b.WriteString(highlight(text, matched, base, s.Match.Inherit(base)))
	rest := width - 4 - label
	if rest > 2 {
		b.WriteString(detail.Render(safe.Pad("  "+it.detail, rest)))
	} else if rest > 0 {
		b.WriteString(detail.Render(strings.Repeat(" ", rest)))
	}
	return safe.Pad(b.String(), width)
}

// highlight draws the bytes that the filter matched in a style of their own.
func highlight(text string, matched []int, base, match lipgloss.Style) string {
	if len(matched) == 0 {
		return base.Render(text)
	}
	at := map[int]bool{}
	for _, i := range matched {
		at[i] = true
	}
	var b, run strings.Builder
	on := false
	flush := func() {
		if run.Len() == 0 {
			return
		}
		if on {
			b.WriteString(match.Render(run.String()))
		} else {
			b.WriteString(base.Render(run.String()))
		}
		run.Reset()
	}
	for i, r := range text {
		if at[i] != on {
			flush()
			on = at[i]
		}
		run.WriteRune(r)
	}
	flush()
	return b.String()
}
