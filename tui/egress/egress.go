// Package egress shows what the gateway of a session allowed and refused.
package egress

import (
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/tui/details"
	"patio/tui/filter"
	"patio/tui/pane"
	"patio/tui/style"
	"patio/tui/table"
)

// tabName is what this pane is called in messages between tabs.
const tabName = "Egress"

// Pane is the tab. It keeps the newest decisions up to a bound, and sums over all.
type Pane struct {
	host    pane.Host
	now     func() time.Time
	styles  *style.Styles
	session api.Session
	width   int
	height  int

	ledger     *ledger
	shown      []int // rows of the ledger that match, in order
	hosts      []*host
	list       *table.Table
	groups     *table.Table
	grouped    bool
	deniedOnly bool
	filter     filter.Filter
	details    *details.Details

	keys keys
}

type keys struct{ filter, denied, group, open, close, scroll, copy, export, call, clear, apply key.Binding }

func bind(help string, label string, names ...string) key.Binding {
	return key.NewBinding(key.WithKeys(names...), key.WithHelp(label, help))
}

// New makes the tab.
func New(h pane.Host, now func() time.Time) *Pane {
	p := &Pane{host: h, now: now, ledger: newLedger(), filter: filter.New(), keys: keys{
		filter: bind("filter", "/", "/"),
		denied: bind("denied only", "d", "d"),
		group:  bind("by host", "o", "o"),
		open:   bind("details", "enter", "enter"),
		close:  bind("close", "esc", "esc"),
		scroll: bind("scroll details", "J/K", "J", "K", "shift+down", "shift+up"),
		copy:   bind("copy host:port", "y", "y"),
		export: bind("export", "e", "e"),
		call:   bind("show the tool call", "c", "c"),
		clear:  bind("clear filter", "esc", "esc"),
		apply:  bind("keep filter", "enter", "enter"),
	}}
	p.details = details.New(p.sheet)
	p.list = table.New(decisionRows{p},
		table.Column{Title: "time", Width: 8},
		table.Column{Title: "verdict", Width: 14},
		table.Column{Title: "host", Width: 16, Flex: 4},
		table.Column{Title: "proto", Width: 5, Rank: 2},
		table.Column{Title: "for", Width: 7, Right: true, Rank: 2},
		table.Column{Title: "in", Width: 8, Right: true, Rank: 3},
		table.Column{Title: "out", Width: 8, Right: true, Rank: 3},
		table.Column{Title: "reason", Width: 16, Flex: 5, Rank: 1},
		table.Column{Title: "rule", Width: 14, Flex: 3, Rank: 4},
		table.Column{Title: "tool call", Width: 12, Flex: 2, Rank: 5},
	)
	p.groups = table.New(hostRows{p},
		table.Column{Title: "host", Width: 18, Flex: 4},
		table.Column{Title: "hits", Width: 6, Right: true},
		table.Column{Title: "denied", Width: 8, Right: true},
		table.Column{Title: "open", Width: 5, Right: true, Rank: 2},
		table.Column{Title: "in", Width: 8, Right: true, Rank: 1},
		table.Column{Title: "out", Width: 8, Right: true, Rank: 1},
		table.Column{Title: "last", Width: 8, Rank: 3},
		table.Column{Title: "ports", Width: 10, Flex: 1, Rank: 4},
		table.Column{Title: "why the last was refused", Width: 24, Flex: 3, Rank: 5},
	)
	p.list.SetFollow(true)
	p.say()
	return p
}

// SetSize implements pane.Pane.
func (p *Pane) SetSize(width, height int) { p.width, p.height = width, height; p.layout() }

// SetStyles implements pane.Pane.
func (p *Pane) SetStyles(s *style.Styles) {
	p.styles = s
	p.list.SetStyles(s)
	p.groups.SetStyles(s)
}

// SetSession implements pane.Follower.
func (p *Pane) SetSession(s api.Session) {
	p.session = s
	if s.Phase.Final() {
		p.ledger.close()
	}
	p.say()
}

// Apply implements pane.Follower.
func (p *Pane) Apply(records []journal.Record) {
	terms := p.filter.Terms()
	touched := false
	for _, r := range records {
		switch r.Type {
		case api.RecordEgress:
			touched = true
			had := p.ledger.dropped
			c := p.ledger.add(r)
			if c.dropped > 0 {
				p.forget(had)
			}
			if i := p.ledger.end() - 1; c.added && p.shows(p.ledger.at(i), terms) {
				p.shown = append(p.shown, i)
			}
		case api.RecordState:
			var s api.StateRecord
			if json.Unmarshal(r.Data, &s) == nil && (s.Phase.Final() || s.Phase == api.PhaseNew) {
				p.ledger.close()
				touched = true
			}
		}
	}
	if touched {
		p.changed()
	}
}

// forget takes rows that the ledger dropped out of the list. The first drop makes the row
// that tells of it.
func (p *Pane) forget(had int) {
	n, _ := slices.BinarySearch(p.shown, p.ledger.dropped)
	p.shown = slices.Delete(p.shown, 0, n)
	if had == 0 {
		n--
	}
	p.list.Shift(n)
}

// changed tells the tables that there are other rows.
func (p *Pane) changed() {
	if p.grouped {
		selected := p.selectedHost()
		p.hosts = p.ledger.byHost(p.filter.Terms(), p.deniedOnly)
		p.groups.Changed()
		if i := slices.Index(p.hosts, selected); i >= 0 {
			p.groups.SetCursor(i)
		}
	}
	p.list.Changed()
	p.say()
}

// shows reports whether a row passes the chips and the filter.
func (p *Pane) shows(d *decision, terms []string) bool {
	if d.kind == kindDropped {
		return true // what wasn't recorded could be anything
	}
	return (!p.deniedOnly || !d.allowed) && d.matches(terms)
}

// refilter looks at all rows anew, and keeps the cursor on its row, or near it.
func (p *Pane) refilter() {
	selected := p.selectedRow()
	terms := p.filter.Terms()
	p.shown = p.shown[:0]
	for i := p.ledger.dropped; i < p.ledger.end(); i++ {
		if p.shows(p.ledger.at(i), terms) {
			p.shown = append(p.shown, i)
		}
	}
	p.changed()
	if !p.list.Following() && selected >= 0 {
		i, _ := slices.BinarySearch(p.shown, selected)
		p.list.SetCursor(i + p.head())
	}
}

// head is 1 when the list begins with the row that tells of dropped ones.
func (p *Pane) head() int {
	if p.ledger.dropped > 0 {
		return 1
	}
	return 0
}

// selectedRow is the selected row of the ledger, -1 for none.
func (p *Pane) selectedRow() int {
	i := p.list.Cursor() - p.head()
	if i < 0 || i >= len(p.shown) {
		return -1
	}
	return p.shown[i]
}

func (p *Pane) selected() *decision {
	if p.grouped {
		return nil
	}
	if i := p.selectedRow(); i >= 0 {
		return p.ledger.at(i)
	}
	return nil
}

func (p *Pane) selectedHost() *host {
	if i := p.groups.Cursor(); i >= 0 && i < len(p.hosts) {
		return p.hosts[i]
	}
	return nil
}

// Count implements pane.Counter: every decision, each repeat too.
func (p *Pane) Count() int { return int(p.ledger.allowed + p.ledger.denied) }

// Typing implements pane.Typist.
func (p *Pane) Typing() bool { return p.filter.Typing() }

// Escapes implements pane.Escaper.
func (p *Pane) Escapes() bool { return p.details.Opened() || p.filter.Shown() }

// Keys implements pane.Pane.
func (p *Pane) Keys() []key.Binding {
	if p.filter.Typing() {
		return []key.Binding{p.keys.apply, p.keys.clear}
	}
	k := p.keys
	var out []key.Binding
	if p.details.Opened() {
		out = append(out, k.close)
		if p.details.Scrolls() {
			out = append(out, k.scroll)
		}
	} else if p.selected() != nil || p.grouped && p.selectedHost() != nil {
		if p.grouped {
			k.open.SetHelp("enter", "its decisions")
		}
		out = append(out, k.open)
	}
	if d := p.selected(); d != nil && len(d.calls) > 0 {
		out = append(out, k.call)
	}
	if p.deniedOnly {
		k.denied.SetHelp("d", "all verdicts")
	}
	if p.grouped {
		k.group.SetHelp("o", "by time")
		k.copy.SetHelp("y", "copy host")
	}
	out = append(out, k.filter, k.denied, k.group)
	if p.selected() != nil || p.grouped && p.selectedHost() != nil {
		out = append(out, k.copy)
	}
	if len(p.shown) > 0 {
		out = append(out, k.export)
	}
	if !p.details.Opened() && p.filter.Text() != "" {
		out = append(out, k.clear)
	}
	return out
}

// Update implements pane.Pane.
func (p *Pane) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case pane.FocusMsg:
		p.focus(msg)
	case tea.KeyPressMsg:
		if p.filter.Typing() {
			p.typed(msg)
			return nil
		}
		return p.press(msg)
	case tea.PasteMsg:
		p.typed(msg)
	case tea.MouseClickMsg, tea.MouseWheelMsg:
		p.mouse(msg)
	}
	return nil
}

// typed gives a key or a paste to the filter.
func (p *Pane) typed(msg tea.Msg) {
	if p.filter.Update(msg) {
		p.refilter()
	}
	p.layout()
}

func (p *Pane) press(msg tea.KeyPressMsg) tea.Cmd {
	switch {
	case key.Matches(msg, p.keys.filter):
		p.filter.Open()
		p.layout()
	case key.Matches(msg, p.keys.denied):
		p.deniedOnly = !p.deniedOnly
		p.refilter()
	case key.Matches(msg, p.keys.group):
		p.grouped = !p.grouped
		p.details.Close()
		p.changed()
		p.layout()
	case key.Matches(msg, p.keys.open):
		return p.open()
	case key.Matches(msg, p.keys.close):
		p.leave()
	case key.Matches(msg, p.keys.scroll):
		if s := msg.String(); s == "J" || s == "shift+down" {
			p.details.Scroll(1)
		} else {
			p.details.Scroll(-1)
		}
	case key.Matches(msg, p.keys.copy):
		if h := p.selectedHost(); p.grouped && h != nil {
			return pane.Copy(h.name, "the host")
		}
		if d := p.selected(); d != nil {
			return pane.Copy(d.target(), "host:port")
		}
	case key.Matches(msg, p.keys.export):
		return p.export()
	case key.Matches(msg, p.keys.call):
		if d := p.selected(); d != nil && len(d.calls) > 0 {
			return pane.Focus(pane.FocusMsg{From: tabName, Tab: "Chat", ToolCall: d.calls[0], Seq: d.seq, Host: d.host})
		}
	default:
		p.move(msg)
	}
	return nil
}

// move gives a key to what moves by it: the details when they have the whole room.
func (p *Pane) move(msg tea.Msg) {
	if k, ok := msg.(tea.KeyPressMsg); ok && p.details.Key(k) {
		return
	}
	t, before := p.table(), p.table().Cursor()
	if !t.Update(msg) {
		return
	}
	if t.Cursor() != before {
		p.details.Restart()
	}
	// Down at the last row, and the list follows again.
	if t == p.list && t.Cursor() >= before && t.Cursor() == p.head()+len(p.shown)-1 {
		t.SetFollow(true)
	}
}

func (p *Pane) table() *table.Table {
	if p.grouped {
		return p.groups
	}
	return p.list
}

// open shows the details of a decision, or the decisions of a host.
func (p *Pane) open() tea.Cmd {
	if p.grouped {
		if h := p.selectedHost(); h != nil && h != &p.ledger.otherHosts {
			p.grouped = false
			p.filter.Set(h.name)
			p.refilter()
			p.list.SetFollow(true)
			p.layout()
		}
		return nil
	}
	d := p.selected()
	if d == nil {
		return nil
	}
	p.details.Open()
	p.layout()
	m := pane.FocusMsg{From: tabName, Seq: d.seq, Host: d.host}
	if len(d.calls) > 0 {
		m.ToolCall = d.calls[0]
	}
	return pane.Focus(m)
}

// leave closes what is open: the details, then the filter, then the screen.
func (p *Pane) leave() {
	switch {
	case p.details.Opened():
		p.details.Close()
	case p.filter.Text() != "":
		p.filter.Clear()
		p.refilter()
	}
	p.layout()
}

// focus moves to what another tab selected, if it is among what is shown.
func (p *Pane) focus(m pane.FocusMsg) {
	if m.From == tabName {
		return
	}
	fits := func(d *decision) bool {
		switch {
		case m.ToolCall != "" && slices.Contains(d.calls, m.ToolCall):
			return true
		case m.Seq != 0 && d.seq == m.Seq:
			return true
		}
		return m.ToolCall == "" && m.Seq == 0 && m.Host != "" && d.host == m.Host
	}
	for i, row := range slices.Backward(p.shown) {
		if d := p.ledger.at(row); d != nil && fits(d) {
			p.list.SetFollow(false)
			p.list.SetCursor(i + p.head())
			p.details.Restart()
			return
		}
	}
}

// export writes the rows that are shown, one JSON a line.
func (p *Pane) export() tea.Cmd {
	if len(p.shown) == 0 {
		return nil
	}
	records := make([]map[string]any, 0, len(p.shown))
	for _, i := range p.shown {
		records = append(records, p.ledger.at(i).record())
	}
	name := "egress-" + cmp.Or(base(p.session.ID), "session") + ".jsonl"
	return pane.Export(name, func(w io.Writer) error {
		e := json.NewEncoder(w)
		for _, r := range records {
			if err := e.Encode(r); err != nil {
				return err
			}
		}
		return nil
	})
}

// base is an id as a part of a file's name.
func base(id string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return -1
	}, id)
}

// ports of a host, sorted.
func (h *host) portList() []uint16 {
	return slices.Sorted(maps.Values(maps.Collect(slices.All(h.ports))))
}
