package traffic

import (
	"fmt"
	"regexp"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"patio/tui/pane"
	"patio/tui/table"
)

type keys struct {
	Open, Close, Unfold, Fold           key.Binding
	Filter, Clear, Follow, Pause        key.Binding
	Copy, Export, Way, After, Before    key.Binding
	SearchAll, LeaveFilter, CancelQuest key.Binding
	chips                               [classes]key.Binding
	move                                table.Keys
}

// chips are the classes' keys and names.
var chips = [classes]struct{ key, name, short string }{
	classCommand:  {"c", "commands", "cmd"},
	classResponse: {"r", "responses", "resp"},
	classEvent:    {"v", "events", "event"},
	classUI:       {"u", "ui", "ui"},
	classStderr:   {"w", "stderr", "err"},
	classEgress:   {"o", "egress", "net"},
	classState:    {"i", "state", "state"},
	classStats:    {"d", "stats", "stats"},
}

func newKeys() keys {
	k := keys{
		Open:        binding("enter", "open the line"),
		Close:       binding("esc", "close the line"),
		Unfold:      key.NewBinding(key.WithKeys("l", "right"), key.WithHelp("l/→", "unfold the deltas")),
		Fold:        key.NewBinding(key.WithKeys("h", "left"), key.WithHelp("h/←", "fold them")),
		Filter:      key.NewBinding(key.WithKeys("/"), key.WithHelp("/", "filter (! inverts)")),
		Clear:       binding("esc", "clear the filter"),
		Follow:      binding("f", "follow the newest"),
		Pause:       key.NewBinding(key.WithKeys("p", "space"), key.WithHelp("p", "pause")),
		Copy:        binding("y", "copy the line"),
		Export:      binding("e", "export what is shown"),
		Way:         binding("b", "to Pi, from Pi, both"),
		After:       binding("J", "next line"),
		Before:      binding("K", "line before"),
		SearchAll:   binding("enter", "search whole lines"),
		LeaveFilter: binding("esc", "clear the filter"),
		CancelQuest: binding("esc", "end the search"),
		move:        table.DefaultKeys(),
	}
	for c, chip := range chips {
		k.chips[c] = binding(chip.key, chip.name+" on or off")
	}
	return k
}

// Keys implements pane.Pane.
func (t *Traffic) Keys() []key.Binding {
	k := &t.keys
	if t.typing {
		return []key.Binding{k.SearchAll, k.LeaveFilter}
	}
	if t.detail != nil {
		tree := t.detail.tree.Keys()
		if t.detail.tree.Typing() {
			return tree
		}
		return append([]key.Binding{k.Close, k.After, k.Before}, tree...)
	}
	var all []key.Binding
	if i := t.table.Cursor(); i >= 0 && i < len(t.list.entries) {
		switch t.list.entries[i].kind {
		case folded:
			all = append(all, k.Unfold)
		case opened, child:
			all = append(all, k.Open, k.Fold)
		default:
			all = append(all, k.Open)
		}
	}
	all = append(all, k.Filter)
	switch {
	case t.deep.running:
		all = append(all, k.CancelQuest)
	case t.filter.text != "":
		all = append(all, k.Clear)
	}
	pause := k.Pause
	if t.paused >= 0 {
		pause.SetHelp("p", "go on")
	}
	all = append(all, k.Follow, pause, k.Way)
	if len(t.list.entries) > 0 {
		all = append(all, k.Copy, k.Export)
	}
	all = append(all, k.chips[:]...)
	return append(all, k.move.Up, k.move.Down, k.move.PageUp, k.move.PageDown, k.move.Top, k.move.Bottom)
}

// typed takes a key while the filter is written.
func (t *Traffic) typed(msg tea.KeyPressMsg) tea.Cmd {
	switch msg.String() {
	case "esc":
		return t.clear()
	case "enter":
		t.typing = false
		t.input.Blur()
		return t.search()
	}
	t.input, _ = t.input.Update(msg)
	return t.written()
}

// written filters by what stands in the input now.
func (t *Traffic) written() tea.Cmd {
	f := t.filter
	f.parse(t.input.Value())
	f.deep = f.deep && f.text == t.deep.text
	if !f.deep {
		t.deep.stop()
	}
	return t.setFilter(f)
}

// clear leaves the filter's text, and a search with it.
func (t *Traffic) clear() tea.Cmd {
	t.typing = false
	t.input.Blur()
	t.input.Reset()
	t.deep.stop()
	f := t.filter
	f.text, f.invert, f.deep = "", false, false
	return t.setFilter(f)
}

func (t *Traffic) pasted(msg tea.PasteMsg) tea.Cmd {
	if t.typing {
		t.input, _ = t.input.Update(msg)
		return t.written()
	}
	if t.detail != nil {
		return t.detail.tree.Update(msg)
	}
	return nil
}

func (t *Traffic) pressed(msg tea.KeyPressMsg) tea.Cmd {
	k := &t.keys
	if t.detail != nil {
		tree := t.detail.tree
		switch {
		case tree.Typing():
			return tree.Update(msg)
		case key.Matches(msg, k.Close):
			if !tree.Back() {
				t.close()
			}
			return nil
		case key.Matches(msg, k.After):
			return t.beside(1)
		case key.Matches(msg, k.Before):
			return t.beside(-1)
		case !t.hidden(msg):
			return tree.Update(msg)
		}
	}
	if t.table.Update(msg) {
		return nil
	}
	switch {
	case key.Matches(msg, k.Open):
		if i := t.table.Cursor(); i >= 0 && t.list.entries[i].kind != single && t.list.entries[i].kind != child {
			t.turn(i)
			return nil
		}
		return t.open()
	case key.Matches(msg, k.Unfold):
		if i := t.table.Cursor(); i >= 0 && t.list.entries[i].kind == folded {
			t.turn(i)
		}
	case key.Matches(msg, k.Fold):
		if i := t.table.Cursor(); i >= 0 {
			t.table.SetCursor(t.list.fold(i))
			t.table.Changed()
		}
	case key.Matches(msg, k.Filter):
		t.typing = true
		t.input.CursorEnd()
		t.input.Focus()
	case key.Matches(msg, k.Clear):
		if t.deep.running {
			return t.leaveSearch()
		}
		if t.filter.text != "" {
			return t.clear()
		}
	case key.Matches(msg, k.Follow):
		t.table.SetFollow(!t.table.Following())
	case key.Matches(msg, k.Pause):
		return t.pause()
	case key.Matches(msg, k.Copy):
		return t.copy()
	case key.Matches(msg, k.Export):
		return t.export()
	case key.Matches(msg, k.Way):
		f := t.filter
		f.way = (f.way + 1) % (fromPi + 1)
		return t.setFilter(f)
	}
	for c := range classes {
		if key.Matches(msg, k.chips[c]) {
			return t.toggle(c)
		}
	}
	return nil
}

// hidden says that a key is the list's even while a line is open.
func (t *Traffic) hidden(msg tea.KeyPressMsg) bool {
	k := &t.keys
	own := append([]key.Binding{k.Follow, k.Way, k.Export}, k.chips[:]...)
	return key.Matches(msg, own...) || msg.String() == "p"
}

func (t *Traffic) toggle(c class) tea.Cmd {
	f := t.filter
	f.classes ^= 1 << c
	return t.setFilter(f)
}

func (t *Traffic) pause() tea.Cmd {
	if t.paused >= 0 {
		t.paused = -1
		return t.advance()
	}
	t.paused = t.index.end
	return nil
}

// turn unfolds a run, or folds it.
func (t *Traffic) turn(i int) {
	// Unfolded lines push what follows down: the cursor stays.
	t.table.SetFollow(false)
	if t.list.entries[i].kind == folded {
		t.list.unfold(t.index, &t.deep, i)
		t.table.Changed()
		// Some of what was unfolded is to be seen.
		t.table.SetCursor(min(i+int(t.list.entries[i].n), i+max(t.height/3, 1)))
		t.table.SetCursor(i)
	} else {
		t.table.SetCursor(t.list.fold(i))
	}
	t.table.Changed()
}

// beside opens the next line, or the one before.
func (t *Traffic) beside(n int) tea.Cmd {
	i := t.table.Cursor() + n
	if t.table.Cursor() < 0 || i < 0 || i >= len(t.list.entries) {
		return nil
	}
	t.table.SetFollow(false)
	t.table.SetCursor(i)
	return t.open()
}

func (t *Traffic) mouse(msg tea.Msg) tea.Cmd {
	listWidth, wide := t.split()
	switch m := msg.(type) {
	case tea.MouseClickMsg:
		if m.Y == 0 {
			return t.chipAt(m.X)
		}
		if t.detail != nil && (!wide || m.X > listWidth) {
			return t.detail.mouse(m, wide, listWidth)
		}
		m.Y--
		if t.table.Update(m) && t.detail != nil {
			return t.open()
		}
	case tea.MouseWheelMsg:
		if t.detail != nil && (!wide || m.X > listWidth) {
			return t.detail.tree.Update(m)
		}
		t.table.Update(m)
	}
	return nil
}

var unsafeInName = regexp.MustCompile(`[^A-Za-z0-9-]`)

// export writes the records whose lines are shown now, as the journal has them.
func (t *Traffic) export() tea.Cmd {
	end := t.limit()
	if t.filter.deep && t.deep.running {
		end = t.index.end
		if t.paused >= 0 {
			end = t.paused
		}
	}
	if len(t.list.entries) == 0 {
		return pane.Notice(pane.Info, "nothing is shown, so there is nothing to export")
	}
	file := "traffic.ndjson"
	if id := unsafeInName.ReplaceAllString(t.session, ""); id != "" {
		file = fmt.Sprintf("traffic-%s.ndjson", id)
	}
	return pane.Export(file, t.writer(t.filter, t.index.first, end))
}
