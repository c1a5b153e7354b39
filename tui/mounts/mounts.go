// Package mounts shows what of the machine a session was given, and what not.
package mounts

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/tui/details"
	"patio/tui/pane"
	"patio/tui/safe"
	"patio/tui/style"
	"patio/tui/table"
)

// Pane is the tab.
type Pane struct {
	styles *style.Styles
	plan   *api.Plan // what the sections were made of; nil before the first
	phase  api.Phase
	width  int
	height int

	sections []section
	folded   map[string]bool // by title
	rows     []line
	table    *table.Table

	details *details.Details

	keys keys
}

// line is a row of the table: a section's heading, or an item when item is 0 or more. A
// section without items has one row that says so: item none.
type line struct{ section, item int }

const (
	heading = -1
	none    = -2
)

type keys struct{ open, close, fold, scroll, copy key.Binding }

func bind(help, label string, names ...string) key.Binding {
	return key.NewBinding(key.WithKeys(names...), key.WithHelp(label, help))
}

// New makes the tab.
func New() *Pane {
	p := &Pane{folded: map[string]bool{}, keys: keys{
		open:   bind("details", "enter", "enter"),
		close:  bind("close", "esc", "esc"),
		fold:   bind("fold or unfold", "space", "space", "h", "l", "left", "right"),
		scroll: bind("scroll details", "J/K", "J", "K", "shift+down", "shift+up"),
		copy:   bind("copy", "y", "y"),
	}}
	p.details = details.New(p.sheet)
	p.table = table.New(source{p},
		table.Column{Title: "what", Width: 22, Flex: 5},
		table.Column{Title: "", Width: 10},
		table.Column{Title: "why", Width: 16, Flex: 4, Rank: 1},
	)
	p.table.SetHeader(false)
	p.table.SetEmpty("\nThe plan of this session isn't known yet.\n\nWhat of this machine it is given is shown here\nbefore it starts.")
	return p
}

// SetSize implements pane.Pane.
func (p *Pane) SetSize(width, height int) { p.width, p.height = width, height; p.layout() }

// SetStyles implements pane.Pane.
func (p *Pane) SetStyles(s *style.Styles) { p.styles = s; p.table.SetStyles(s) }

// Apply implements pane.Follower: the plan doesn't change while a session runs.
func (p *Pane) Apply([]journal.Record) {}

// SetSession implements pane.Follower. Snapshots come each second; the plan stays.
func (p *Pane) SetSession(s api.Session) {
	p.phase = s.Phase
	if reflect.DeepEqual(s.Plan, api.Plan{}) || p.plan != nil && reflect.DeepEqual(*p.plan, s.Plan) {
		return
	}
	plan := s.Plan
	p.plan = &plan
	p.sections = sections(s)
	p.arrange()
}

// Count implements pane.Counter: the mounts.
func (p *Pane) Count() int {
	if p.plan == nil {
		return 0
	}
	return len(p.plan.Mounts)
}

// Escapes implements pane.Escaper.
func (p *Pane) Escapes() bool { return p.details.Opened() }

// arrange makes the rows of what isn't folded.
func (p *Pane) arrange() {
	p.rows = p.rows[:0]
	for i, s := range p.sections {
		p.rows = append(p.rows, line{i, heading})
		if p.folded[s.title] {
			continue
		}
		if len(s.items) == 0 {
			p.rows = append(p.rows, line{i, none})
		}
		for j := range s.items {
			p.rows = append(p.rows, line{i, j})
		}
	}
	p.table.Changed()
}

func (p *Pane) selected() (section, *item, bool) {
	i := p.table.Cursor()
	if i < 0 || i >= len(p.rows) {
		return section{}, nil, false
	}
	l := p.rows[i]
	s := p.sections[l.section]
	if l.item < 0 {
		return s, nil, true
	}
	return s, &s.items[l.item], true
}

// Keys implements pane.Pane.
func (p *Pane) Keys() []key.Binding {
	_, it, ok := p.selected()
	if !ok {
		return nil
	}
	var out []key.Binding
	switch {
	case p.details.Opened():
		out = append(out, p.keys.close)
		if p.details.Scrolls() {
			out = append(out, p.keys.scroll)
		}
	default:
		out = append(out, p.keys.open)
	}
	out = append(out, p.keys.fold)
	if it != nil && it.copies != "" {
		k := p.keys.copy
		k.SetHelp("y", "copy it")
		out = append(out, k)
	}
	return out
}

// Update implements pane.Pane.
func (p *Pane) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		return p.press(msg)
	case tea.MouseClickMsg:
		if !p.details.Over(msg.X, msg.Y) {
			p.move(tea.MouseClickMsg{X: msg.X, Y: msg.Y, Button: msg.Button})
		}
	case tea.MouseWheelMsg:
		if p.details.Over(msg.X, msg.Y) {
			p.details.Wheel(msg.Button)
		} else {
			p.move(msg)
		}
	}
	return nil
}

func (p *Pane) press(msg tea.KeyPressMsg) tea.Cmd {
	_, it, ok := p.selected()
	switch {
	case !ok:
	case key.Matches(msg, p.keys.open):
		p.details.Open()
		p.layout()
	case key.Matches(msg, p.keys.close):
		p.details.Close()
		p.layout()
	case key.Matches(msg, p.keys.fold):
		p.fold(msg.String())
	case key.Matches(msg, p.keys.scroll):
		if s := msg.String(); s == "J" || s == "shift+down" {
			p.details.Scroll(1)
		} else {
			p.details.Scroll(-1)
		}
	case key.Matches(msg, p.keys.copy):
		if it != nil && it.copies != "" {
			return pane.Copy(it.copies, "it")
		}
	default:
		p.move(msg)
	}
	return nil
}

// fold folds the section that the cursor is in: h and left fold, l and right unfold.
func (p *Pane) fold(name string) {
	i := p.rows[p.table.Cursor()].section
	title := p.sections[i].title
	on := !p.folded[title]
	switch name {
	case "h", "left":
		on = true
	case "l", "right":
		on = false
	}
	if on == p.folded[title] {
		return
	}
	p.folded[title] = on
	p.arrange()
	for r, l := range p.rows {
		if l.section == i && l.item == heading {
			p.table.SetCursor(r)
		}
	}
}

// move gives a message to what moves by it: the details when they have the whole room.
func (p *Pane) move(msg tea.Msg) {
	if k, ok := msg.(tea.KeyPressMsg); ok && p.details.Key(k) {
		return
	}
	before := p.table.Cursor()
	if p.table.Update(msg) && p.table.Cursor() != before {
		p.details.Restart()
	}
}

// View implements pane.Pane.
func (p *Pane) View() string {
	if p.width <= 0 || p.height <= 0 {
		return ""
	}
	return safe.Block(p.details.View(p.styles, p.table.View, p.title()), p.width, p.height)
}

// source has the rows of the table.
type source struct{ p *Pane }

// Len implements table.Source.
func (t source) Len() int { return len(t.p.rows) }

// Row implements table.Source.
func (t source) Row(i int) []table.Cell {
	p, l := t.p, t.p.rows[i]
	s, sec := p.styles, &p.sections[l.section]
	switch l.item {
	case heading:
		sign := "▾ "
		if p.folded[sec.title] {
			sign = "▸ "
		}
		count := strconv.Itoa(len(sec.items))
		if w := sec.warnings(); w > 0 {
			count += fmt.Sprintf("  ✗ %d", w)
		}
		return []table.Cell{{Text: sign + sec.title + "  " + count, Style: &s.Title}, {}, {}}
	case none:
		return []table.Cell{{Text: "  – " + sec.empty, Style: &s.Muted}, {}, {}}
	}
	it := &sec.items[l.item]
	why := &s.Muted
	if strings.HasPrefix(it.why, "✗") {
		why = &s.Bad
	}
	return []table.Cell{{Text: "  " + it.name}, {Text: it.mode, Style: p.tone(it.tone)}, {Text: it.why, Style: why}}
}

func (p *Pane) tone(t tone) *lipgloss.Style {
	switch t {
	case open:
		return &p.styles.Warning
	case closed:
		return &p.styles.Good
	case missing:
		return &p.styles.Bad
	case neutral:
	}
	return &p.styles.Muted
}

// warnings are the items that aren't as they were asked for.
func (s *section) warnings() int {
	n := 0
	for _, it := range s.items {
		if it.tone == missing && strings.HasPrefix(it.why, "✗") {
			n++
		}
	}
	return n
}
