// Package timeline shows on one axis of time what a session did: turns, tool calls,
// connections, programs, changes of state.
package timeline

import (
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/tui/pane"
	"patio/tui/safe"
	"patio/tui/style"
	"patio/tui/table"
)

const tabName = "Timeline"

// kindWords are what the kinds are called: with their sign in the list, as a lane, and
// with the key that shows and hides them.
var kindWords = [kinds]struct{ sign, word, lane, key string }{
	kindTurn:    {"◆", "turn", "turns", "u"},
	kindTool:    {"■", "tool", "tools", "c"},
	kindNetwork: {"↔", "network", "network", "o"},
	kindProgram: {"$", "program", "programs", "p"},
	kindState:   {"○", "state", "state", "i"},
}

// Timeline is the tab. It keeps the newest events only: maxEvents.
type Timeline struct {
	now     func() time.Time
	styles  *style.Styles
	width   int
	height  int
	session api.Session

	events  []event
	dropped int            // events before the first
	running map[string]int // number of an event plus one, by what runs
	busy    [kinds][maxRows]int
	rows    [kinds]int // lines that a lane needs
	counts  [kinds]int
	turns   int
	phase   string
	last    int64 // when the last record was made
	seq     uint64

	shown  []int // numbers of the events in the list
	hidden [kinds]bool
	table  *table.Table

	span    int64 // of the axis; 0 is all there is
	from    int64 // its begin, unless it follows
	follows bool
	keys    keys
}

type keys struct {
	open, copy, in, out, whole, left, right, follow key.Binding
	kinds                                           [kinds]key.Binding
	move                                            table.Keys
}

// New returns the tab without events.
func New(now func() time.Time) *Timeline {
	bind := func(help, text string, names ...string) key.Binding {
		return key.NewBinding(key.WithKeys(names...), key.WithHelp(help, text))
	}
	t := &Timeline{now: now, running: map[string]int{}, follows: true, keys: keys{
		open:   bind("enter", "show it in its tab", "enter"),
		copy:   bind("y", "copy", "y"),
		in:     bind("+", "zoom in", "+", "="),
		out:    bind("-", "zoom out", "-"),
		whole:  bind("w", "all of the time", "w"),
		left:   bind("h/←", "earlier", "h", "left"),
		right:  bind("l/→", "later", "l", "right"),
		follow: bind("f", "follow the newest", "f"),
		move:   table.DefaultKeys(),
	}}
	for k, w := range kindWords {
		t.keys.kinds[k] = bind(w.key, w.lane+" on or off", w.key)
	}
	t.table = table.New(t,
		table.Column{Title: "time", Width: 12},
		table.Column{Title: "took", Width: 8, Right: true},
		table.Column{Title: "kind", Width: 10},
		table.Column{Title: "what", Width: 16, Flex: 3},
		table.Column{Title: "outcome", Width: 12, Flex: 1, Rank: 1},
	)
	t.table.SetFollow(true)
	t.empty()
	return t
}

// SetSize implements pane.Pane.
func (t *Timeline) SetSize(width, height int) {
	t.width, t.height = width, height
	t.layout()
}

func (t *Timeline) layout() {
	t.table.SetSize(t.width, max(t.height-t.axisHeight()-1, 0))
}

// SetStyles implements pane.Pane.
func (t *Timeline) SetStyles(s *style.Styles) {
	t.styles = s
	t.table.SetStyles(s)
}

// SetSession implements pane.Follower.
func (t *Timeline) SetSession(s api.Session) {
	t.session = s
	t.settle()
	t.empty()
}

// settle ends what goes on when a session that crashed told no end, once all of its
// journal is here.
func (t *Timeline) settle() {
	if t.session.Phase.Final() && t.session.Seq > 0 && t.seq >= t.session.Seq {
		t.cutOff(t.seq, t.last)
	}
}

func (t *Timeline) final() bool {
	return t.session.Phase.Final() || api.Phase(t.phase).Final()
}

// Apply implements pane.Follower.
func (t *Timeline) Apply(records []journal.Record) {
	for _, r := range records {
		t.apply(r)
	}
	t.settle()
	t.layout() // a lane may need another line
	t.table.Changed()
}

// Count implements pane.Counter.
func (t *Timeline) Count() int { return t.dropped + len(t.events) }

// Tick implements pane.Ticker: what goes on grows, for View asks what time it is.
func (t *Timeline) Tick() {}

func (t *Timeline) selected() *event {
	if i := t.table.Cursor(); i >= 0 && i < len(t.shown) {
		return t.at(t.shown[i])
	}
	return nil
}

// Keys implements pane.Pane.
func (t *Timeline) Keys() []key.Binding {
	k := &t.keys
	var all []key.Binding
	if len(t.shown) > 0 {
		all = append(all, k.open, k.in)
	}
	if t.span > 0 {
		all = append(all, k.out, k.left, k.right, k.whole)
	}
	if !t.table.Following() || !t.follows {
		all = append(all, k.follow)
	}
	if len(t.shown) > 0 {
		all = append(all, k.copy)
	}
	all = append(all, k.kinds[:]...)
	return append(all, k.move.Up, k.move.Down, k.move.PageUp, k.move.PageDown, k.move.Top, k.move.Bottom)
}

// Update implements pane.Pane.
func (t *Timeline) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case pane.FocusMsg:
		t.focus(msg)
	case tea.KeyPressMsg:
		return t.pressed(msg)
	case tea.MouseWheelMsg:
		if msg.Y > 0 && msg.Y <= t.axisHeight() {
			if msg.Button == tea.MouseWheelUp || msg.Button == tea.MouseWheelDown {
				t.zoom(msg.Button == tea.MouseWheelUp)
			}
			return nil
		}
		return t.move(msg)
	case tea.MouseClickMsg:
		return t.click(msg)
	}
	return nil
}

func (t *Timeline) pressed(msg tea.KeyPressMsg) tea.Cmd {
	k := &t.keys
	switch {
	case key.Matches(msg, k.in):
		t.zoom(true)
	case key.Matches(msg, k.out):
		t.zoom(false)
	case key.Matches(msg, k.whole):
		t.span = 0
	case key.Matches(msg, k.left):
		t.pan(-1)
	case key.Matches(msg, k.right):
		t.pan(1)
	case key.Matches(msg, k.follow):
		t.follows = true
		t.table.SetFollow(true)
	case key.Matches(msg, k.open):
		return t.tell(true)
	case key.Matches(msg, k.copy):
		return t.copy()
	default:
		for i := range kinds {
			if key.Matches(msg, k.kinds[i]) {
				t.toggle(i)
				return nil
			}
		}
		return t.move(msg)
	}
	return nil
}

// toggle shows or hides a kind, and keeps the cursor where it is or near it.
func (t *Timeline) toggle(k kind) {
	t.hidden[k] = !t.hidden[k]
	at := -1
	if i := t.table.Cursor(); i >= 0 && i < len(t.shown) {
		at = t.shown[i]
	}
	t.shown = t.shown[:0]
	cursor := 0
	for i := range t.events {
		if !t.hidden[t.events[i].kind] {
			if t.dropped+i <= at {
				cursor = len(t.shown)
			}
			t.shown = append(t.shown, t.dropped+i)
		}
	}
	t.table.Changed()
	if !t.table.Following() {
		t.table.SetCursor(cursor)
	}
	t.empty()
}

// move moves the cursor, and the axis and the other tabs with it.
func (t *Timeline) move(msg tea.Msg) tea.Cmd {
	was := t.table.Cursor()
	if !t.table.Update(msg) {
		return nil
	}
	if e := t.selected(); e != nil {
		t.reveal(e)
	}
	if t.table.Cursor() == was {
		return nil
	}
	return t.tell(false)
}

func (t *Timeline) click(msg tea.MouseClickMsg) tea.Cmd {
	switch axis := t.axisHeight(); {
	case msg.Y == 0:
		at := 0
		for k := range kinds {
			width := safe.Width(t.chipText(k, t.chipLevel()))
			if msg.X >= at && msg.X < at+width {
				t.toggle(k)
				return nil
			}
			at += width + 2
		}
		return nil
	case msg.Y <= axis:
		y := 1
		for k := range kinds {
			rows := t.laneRows(k)
			if msg.Y < y+rows {
				if i := t.near(k, msg.Y-y, rows, msg.X-laneLabel-1); i >= 0 {
					t.table.SetFollow(false)
					t.table.SetCursor(i)
					return t.tell(false)
				}
				return nil
			}
			y += rows
		}
		return nil
	default:
		msg.Y -= axis + 1
		return t.move(msg)
	}
}

// tell lets the other tabs follow, and changes to the one that tells most about it if open.
func (t *Timeline) tell(open bool) tea.Cmd {
	e := t.selected()
	if e == nil {
		return nil
	}
	m := pane.FocusMsg{From: tabName, Seq: e.seq, Host: e.host, ToolCall: e.call}
	if open {
		m.Tab = [kinds]string{kindTurn: "Chat", kindTool: "Chat", kindNetwork: "Egress", kindProgram: "Traffic", kindState: "Traffic"}[e.kind]
	}
	return pane.Focus(m)
}

func (t *Timeline) copy() tea.Cmd {
	e := t.selected()
	if e == nil {
		return nil
	}
	words := []string{t.clock(e.begin), kindWords[e.kind].word, e.what}
	if text := t.took(e); text != "" {
		words = append(words, text)
	}
	if e.outcome != "" {
		words = append(words, e.outcome)
	}
	return pane.Copy(strings.Join(words, "\t"), "the event")
}

// focus selects what another tab selected: the very event, or the call, or what there was
// at the time, or else the host.
func (t *Timeline) focus(m pane.FocusMsg) {
	if m.From == tabName {
		return
	}
	best, score := -1, 0
	take := func(i, n int) {
		if n > score {
			best, score = i, n
		}
	}
	for i := len(t.shown) - 1; i >= 0 && score < 5; i-- {
		e := t.at(t.shown[i])
		switch {
		case m.Seq != 0 && (e.seq == m.Seq || e.endSeq == m.Seq):
			take(i, 5)
		case m.ToolCall != "" && e.call == m.ToolCall && e.kind == kindTool:
			take(i, 4)
		case m.ToolCall != "" && e.call == m.ToolCall:
			take(i, 3)
		case m.Seq != 0 && e.seq < m.Seq:
			take(i, 2)
		case m.Seq == 0 && m.Host != "" && e.host == m.Host:
			take(i, 1)
		}
	}
	if best < 0 {
		return
	}
	t.table.SetFollow(false)
	t.table.SetCursor(best)
	t.reveal(t.at(t.shown[best]))
}
