// Package traffic shows every line between clients and Pi, with what else the session's
// journal has, and keeps no more of them than an index.
package traffic

import (
	"time"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/tui/pane"
	"patio/tui/style"
	"patio/tui/table"
)

const (
	// stepRows is how many lines are filtered at a time: a few milliseconds.
	stepRows = 10_000
	// maxTools bounds the tool calls that can be found by their id.
	maxTools = 10_000
	// maxCached and maxCachedEntries bound the results that are kept of other filters.
	maxCached, maxCachedEntries = 4, 50_000
	name                        = "Traffic" // of the tab
)

// Traffic is the pane. See New.
type Traffic struct {
	host    pane.Host
	now     func() time.Time
	session string
	phase   api.Phase
	styles  *style.Styles
	width   int
	height  int

	index  *index
	filter filter
	list   *list
	cached []*list // of other filters, the latest last
	step   int     // which filtering a message must be of
	going  bool    // a message is under way
	want   int     // the line to select when the filtering is done, or -1
	deep   deep

	paused int // number after the last line that is shown, or -1
	table  *table.Table
	detail *detail
	typing bool
	input  textinput.Model

	tools     map[string]uint64 // seq by tool call
	toolOrder []string
	keys      keys
}

// stepMsg goes on with filtering.
type stepMsg struct {
	t    *Traffic
	step int
}

// New returns the pane of a session.
func New(h pane.Host, now func() time.Time) *Traffic {
	t := &Traffic{
		host: h, now: now, index: newIndex(), filter: filter{classes: usual}, want: -1, paused: -1,
		tools: map[string]uint64{}, input: textinput.New(), keys: newKeys(),
	}
	t.input.CharLimit = 400
	t.input.SetVirtualCursor(false)
	t.input.KeyMap.Paste.SetEnabled(false) // the system's clipboard is the terminal's to read
	t.list = newList(t.filter, 0)
	t.table = table.New(t,
		table.Column{Title: "time", Width: 12},
		table.Column{Title: "Pi", Width: 6, Rank: 1},
		table.Column{Title: "type", Width: 20, Flex: 1},
		table.Column{Title: "size", Width: 9, Right: true, Rank: 2},
		table.Column{Title: "summary", Width: 14, Flex: 5},
	)
	t.table.SetFollow(true)
	t.empty()
	return t
}

// SetStyles implements pane.Pane.
func (t *Traffic) SetStyles(s *style.Styles) {
	t.styles = s
	t.table.SetStyles(s)
	if t.detail != nil {
		t.detail.tree.SetStyles(s)
	}
}

// SetSize implements pane.Pane.
func (t *Traffic) SetSize(width, height int) {
	t.width, t.height = width, height
	t.layout()
}

// Count implements pane.Counter.
func (t *Traffic) Count() int { return t.index.end }

// Typing implements pane.Typist.
func (t *Traffic) Typing() bool {
	return t.typing || t.detail != nil && t.detail.tree.Typing()
}

// Escapes implements pane.Escaper.
func (t *Traffic) Escapes() bool { return t.detail != nil || t.typing || t.filter.text != "" }

// SetSession implements pane.Follower.
func (t *Traffic) SetSession(s api.Session) {
	t.session, t.phase = s.ID, s.Phase
	t.empty()
}

// Apply implements pane.Follower.
func (t *Traffic) Apply(records []journal.Record) {
	end := t.index.end
	caught := t.list.next >= t.limit()
	dropped := false
	for _, r := range records {
		d := describe(r)
		dropped = t.index.add(row{
			seq: r.Seq, at: r.Time.UnixNano(), size: uint32(min(d.size, 1<<32-1)), typ: t.index.intern(d.typ),
			bits: pack(d.class, d.way, d.failed),
		}, []byte(d.summary)) || dropped
		t.deep.see(r)
		if d.toolCall != "" {
			t.remember(d.toolCall, r.Seq)
		}
	}
	if dropped {
		t.dropped()
	}
	// A filtering that is under way comes to these lines by itself.
	if caught && (t.paused < 0 || t.paused > end) {
		t.list.step(t.index, &t.deep, t.limit(), 1<<30)
		t.table.Changed()
	}
}

func (t *Traffic) remember(call string, seq uint64) {
	if _, ok := t.tools[call]; !ok {
		t.toolOrder = append(t.toolOrder, call)
	}
	t.tools[call] = seq
	if len(t.toolOrder) > maxTools {
		delete(t.tools, t.toolOrder[0])
		t.toolOrder = append(t.toolOrder[:0], t.toolOrder[1:]...)
	}
}

// dropped forgets what is kept about lines that the index has no more.
func (t *Traffic) dropped() {
	t.cached = nil
	if t.paused >= 0 {
		t.paused = max(t.paused, t.index.first)
	}
	t.table.Shift(t.list.drop(t.index, &t.deep, t.index.first))
}

// limit is the number of the line up to before which lines can be filtered now.
func (t *Traffic) limit() int {
	to := t.index.end
	if t.paused >= 0 {
		to = t.paused
	}
	if t.filter.deep && t.deep.running {
		to = min(to, t.index.find(t.deep.done+1))
	}
	return to
}

// setFilter shows what another filter lets through, as far as is known at once, and goes
// on with the rest bit by bit.
func (t *Traffic) setFilter(f filter) tea.Cmd {
	if f == t.filter {
		return t.advance()
	}
	t.want = t.selected()
	// What a text finds isn't kept: each letter typed is a filter.
	if len(t.list.entries) <= maxCachedEntries && t.filter.text == "" {
		t.cached = append(t.cached, t.list)
		if len(t.cached) > maxCached {
			t.cached = append(t.cached[:0], t.cached[1:]...)
		}
	}
	t.filter = f
	t.list = nil
	for i, l := range t.cached {
		// While paused, what was found after the pause isn't to be seen.
		if l.filter == f && l.next <= t.limit() {
			t.list = l
			t.cached = append(t.cached[:i:i], t.cached[i+1:]...)
			break
		}
	}
	if t.list == nil {
		t.list = newList(f, t.index.first)
	}
	t.step++
	t.going = false
	return t.advance()
}

// selected is the number of the line under the cursor, or -1.
func (t *Traffic) selected() int {
	i := t.table.Cursor()
	if i < 0 || i >= len(t.list.entries) {
		return t.want
	}
	return int(t.list.entries[i].first)
}

// advance filters a bounded number of lines.
func (t *Traffic) advance() tea.Cmd {
	if t.going {
		return nil
	}
	done := t.list.step(t.index, &t.deep, t.limit(), stepRows)
	if t.want >= 0 && !t.table.Following() && len(t.list.entries) > 0 {
		t.table.SetCursor(t.list.at(t.want))
	}
	t.table.Changed()
	t.empty()
	if done {
		if !t.deep.running {
			t.want = -1
		}
		return nil
	}
	t.going = true
	msg := stepMsg{t, t.step}
	return func() tea.Msg { return msg }
}

// filtering says that lines are still to be looked at.
func (t *Traffic) filtering() bool { return t.list.next < t.limit() }

// Update implements pane.Pane.
func (t *Traffic) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case stepMsg:
		if msg.t != t || msg.step != t.step {
			return nil
		}
		t.going = false
		return t.advance()
	case deepMsg:
		return t.searched(msg)
	case lineMsg:
		return t.lineRead(msg)
	case pane.FocusMsg:
		return t.focus(msg)
	case tea.KeyPressMsg:
		if t.typing {
			return t.typed(msg)
		}
		return t.pressed(msg)
	case tea.PasteMsg:
		return t.pasted(msg)
	case tea.MouseClickMsg, tea.MouseWheelMsg:
		return t.mouse(msg)
	}
	if t.detail != nil {
		return t.detail.tree.Update(msg)
	}
	return nil
}

// focus selects what another tab selected.
func (t *Traffic) focus(msg pane.FocusMsg) tea.Cmd {
	if msg.From == name || t.index.end == t.index.first {
		return nil
	}
	seq := msg.Seq
	if seq == 0 {
		seq = t.tools[msg.ToolCall]
	}
	if seq == 0 {
		return nil
	}
	number := min(t.index.find(seq), t.index.end-1)
	t.table.SetFollow(false)
	if t.filtering() {
		t.want = number
	}
	if len(t.list.entries) == 0 {
		return nil
	}
	t.table.SetCursor(t.list.at(number))
	if t.detail != nil {
		return t.read()
	}
	return nil
}

// binding is a key with its help.
func binding(name, help string) key.Binding {
	return key.NewBinding(key.WithKeys(name), key.WithHelp(name, help))
}
