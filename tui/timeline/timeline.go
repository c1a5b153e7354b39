// Package timeline shows on one axis of time what a session did: turns, tool calls,
// connections, programs.
package timeline

import (
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/tui/pane"
	"patio/tui/style"
	"patio/tui/table"
)

// Timeline is the tab. It keeps the newest events only: maxEvents.
type Timeline struct {
	now    func() time.Time
	styles *style.Styles
	width  int
	height int

	session api.Session
	events  []event
	dropped int
	running map[string]int // id to number, the dropped ones counted
	prompt  string         // the last one
	phase   string
	changed bool

	shown  []int // events that pass the filter
	hidden [kinds]bool
	table  *table.Table

	zoom int       // index into zooms
	from time.Time // left end of the axis when it doesn't follow
	keys keys
}

type keys struct{ in, out, left, right, follow, open key.Binding }

// New returns the tab without events.
func New(now func() time.Time) *Timeline {
	t := &Timeline{now: now, running: map[string]int{}, zoom: len(zooms) - 1}
	bind := func(help, desc string, names ...string) key.Binding {
		return key.NewBinding(key.WithKeys(names...), key.WithHelp(help, desc))
	}
	t.keys = keys{
		in: bind("+", "zoom in", "+", "="), out: bind("-", "zoom out", "-"), left: bind("h/←", "earlier", "h", "left"),
		right: bind("l/→", "later", "l", "right"), follow: bind("f", "follow", "f"), open: bind("enter", "show it in the other tabs", "enter"),
	}
	t.table = table.New(t, table.Column{Title: "Time", Width: 8}, table.Column{Title: "Took", Width: 8, Right: true},
		table.Column{Title: "Kind", Width: 9}, table.Column{Title: "What", Width: 18, Flex: 3}, table.Column{Title: "Outcome", Width: 14, Flex: 1, Rank: 1})
	t.table.SetEmpty("Nothing has happened yet.\nTurns, tool calls, connections and programs come here as they happen.")
	t.table.SetFollow(true)
	return t
}

// SetSize implements pane.Pane.
func (t *Timeline) SetSize(width, height int) {
	t.width, t.height = width, height
	t.table.SetSize(width, max(height-t.axisHeight()-1, 2))
}

// SetStyles implements pane.Pane.
func (t *Timeline) SetStyles(s *style.Styles) { t.styles = s; t.table.SetStyles(s) }

// SetSession implements pane.Follower.
func (t *Timeline) SetSession(s api.Session) { t.session = s }

// Apply implements pane.Follower.
func (t *Timeline) Apply(records []journal.Record) {
	for _, r := range records {
		t.apply(r)
	}
	if t.changed {
		t.filter()
	}
}

// Count implements pane.Counter.
func (t *Timeline) Count() int { return len(t.events) }

// Tick implements pane.Ticker: what goes on grows.
func (t *Timeline) Tick() {}

func (t *Timeline) filter() {
	cursor := -1
	if i := t.table.Cursor(); i >= 0 && i < len(t.shown) {
		cursor = int(t.seqAt(i))
	}
	t.shown = t.shown[:0]
	for i := range t.events {
		if !t.hidden[t.events[i].kind] {
			t.shown = append(t.shown, i)
		}
	}
	t.changed = false
	t.table.Changed()
	if !t.table.Following() && cursor >= 0 {
		t.selectSeq(uint64(cursor))
	}
}

func (t *Timeline) seqAt(i int) uint64 {
	if n := t.shown[i]; n < len(t.events) {
		return t.events[n].seq
	}
	return 0
}

// selectSeq moves to the last event that began at or before a record.
func (t *Timeline) selectSeq(seq uint64) {
	best := -1
	for i := range t.shown {
		if t.seqAt(i) > seq {
			break
		}
		best = i
	}
	if best >= 0 {
		t.table.SetCursor(best)
	}
}

func (t *Timeline) selected() *event {
	if i := t.table.Cursor(); i >= 0 && i < len(t.shown) {
		return &t.events[t.shown[i]]
	}
	return nil
}

// Keys implements pane.Pane.
func (t *Timeline) Keys() []key.Binding {
	all := []key.Binding{t.keys.in, t.keys.out, t.keys.left, t.keys.right}
	if len(t.shown) > 0 {
		all = append([]key.Binding{t.keys.open}, all...)
	}
	if !t.table.Following() || !t.from.IsZero() {
		all = append(all, t.keys.follow)
	}
	for _, k := range kindWords {
		all = append(all, key.NewBinding(key.WithKeys(k.key), key.WithHelp(k.key, "show or hide "+k.word)))
	}
	return all
}

// Update implements pane.Pane.
func (t *Timeline) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case pane.FocusMsg:
		t.focus(msg)
		return nil
	case tea.KeyPressMsg:
		switch {
		case key.Matches(msg, t.keys.in):
			t.zoom = max(t.zoom-1, 0)
			return nil
		case key.Matches(msg, t.keys.out):
			t.zoom = min(t.zoom+1, len(zooms)-1)
			return nil
		case key.Matches(msg, t.keys.left):
			t.pan(-1)
			return nil
		case key.Matches(msg, t.keys.right):
			t.pan(1)
			return nil
		case key.Matches(msg, t.keys.follow):
			t.from = time.Time{}
			t.table.SetFollow(true)
			return nil
		case key.Matches(msg, t.keys.open):
			return t.tell()
		}
		for k, w := range kindWords {
			if msg.String() == w.key {
				t.hidden[k] = !t.hidden[k]
				t.filter()
				return nil
			}
		}
		t.move(msg)
	case tea.MouseWheelMsg:
		t.move(msg)
	case tea.MouseClickMsg:
		msg.Y -= t.axisHeight() + 1
		t.move(msg)
	}
	return nil
}

// move moves the cursor, and the axis to what is under it.
func (t *Timeline) move(msg tea.Msg) {
	if !t.table.Update(msg) {
		return
	}
	if t.table.Cursor() == len(t.shown)-1 {
		t.table.SetFollow(true)
		t.from = time.Time{}
		return
	}
	if e := t.selected(); e != nil {
		from, to := t.span()
		if e.begin.Before(from) || e.begin.After(to) {
			t.from = e.begin.Add(-to.Sub(from) / 2)
		}
	}
}

// tell lets the other tabs follow.
func (t *Timeline) tell() tea.Cmd {
	e := t.selected()
	if e == nil {
		return nil
	}
	m := pane.FocusMsg{From: "Timeline", Seq: e.seq, Host: e.host}
	switch e.kind {
	case kindTool:
		m.ToolCall, m.Tab = e.id, "Chat"
	case kindNetwork:
		m.Tab = "Egress"
	case kindTurn:
		m.Tab = "Chat"
	default:
		m.Tab = "Traffic"
	}
	return pane.Focus(m)
}

// focus selects what another tab selected.
func (t *Timeline) focus(m pane.FocusMsg) {
	if m.From == "Timeline" {
		return
	}
	for i := len(t.shown) - 1; i >= 0; i-- {
		e := &t.events[t.shown[i]]
		if m.ToolCall != "" && e.id == m.ToolCall || m.ToolCall == "" && m.Seq != 0 && e.seq <= m.Seq {
			t.table.SetCursor(i)
			return
		}
	}
}
