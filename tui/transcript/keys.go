package transcript

import (
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"patio/tui/pane"
)

// keys are those of the conversation.
type keys struct {
	up, down, pageUp, pageDown, top, bottom, previous, next, fold, thinking, output, copy key.Binding
}

func newKeys() keys {
	bind := func(help, text string, names ...string) key.Binding {
		return key.NewBinding(key.WithKeys(names...), key.WithHelp(help, text))
	}
	return keys{
		up:       bind("k/↑", "up", "k", "up"),
		down:     bind("j/↓", "down", "j", "down"),
		pageUp:   bind("pgup", "page up", "pgup", "ctrl+b", "ctrl+u"),
		pageDown: bind("pgdn", "page down", "pgdown", "ctrl+f"),
		top:      bind("g", "beginning", "g", "home"),
		bottom:   bind("G", "end", "G", "end"),
		previous: bind("K", "message before", "K", "shift+up", "ctrl+up"),
		next:     bind("J", "next message", "J", "shift+down", "ctrl+down"),
		fold:     bind("enter", "fold or unfold", "enter", "space"),
		thinking: bind("z", "all thinking", "z"),
		output:   bind("o", "all output", "o"),
		copy:     bind("y", "copy", "y"),
	}
}

// Keys implements pane.Pane.
func (t *Transcript) Keys() []key.Binding {
	if len(t.items) == 0 {
		return nil
	}
	k := t.keys
	var out []key.Binding
	add := func(on bool, b key.Binding) {
		if on {
			out = append(out, b)
		}
	}
	i := t.selection()
	add(i != nil && i.foldable(), k.fold)
	out = append(out, k.previous, k.next)
	_, _, ok := t.toCopy()
	add(ok, k.copy)
	out = append(out, k.output, k.thinking, k.up, k.down, k.pageUp, k.pageDown, k.top)
	add(!t.follow, k.bottom)
	return out
}

// Update implements pane.Pane.
func (t *Transcript) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		return t.press(msg)
	case tea.MouseWheelMsg:
		switch msg.Button {
		case tea.MouseWheelUp:
			t.scroll(-3)
		case tea.MouseWheelDown:
			t.scroll(3)
		default:
		}
	case tea.MouseClickMsg:
		if msg.Button == tea.MouseLeft {
			t.click(msg.Y)
		}
	}
	return nil
}

func (t *Transcript) press(msg tea.KeyPressMsg) tea.Cmd {
	page := max(t.height-2, 1)
	k := t.keys
	switch {
	case key.Matches(msg, k.up):
		t.scroll(-1)
	case key.Matches(msg, k.down):
		t.scroll(1)
	case key.Matches(msg, k.pageUp):
		t.scroll(-page)
	case key.Matches(msg, k.pageDown):
		t.scroll(page)
	case key.Matches(msg, k.top):
		t.toTop()
	case key.Matches(msg, k.bottom):
		t.ScrollToEnd()
	case key.Matches(msg, k.previous):
		t.step(-1)
	case key.Matches(msg, k.next):
		t.step(1)
	case key.Matches(msg, k.fold):
		if i := t.selection(); i != nil {
			t.toggle(t.selected)
		}
	case key.Matches(msg, k.thinking):
		t.allThinking = !t.allThinking
		t.foldAll(kindThinking)
	case key.Matches(msg, k.output):
		t.allOutput = !t.allOutput
		t.foldAll(kindCall)
	case key.Matches(msg, k.copy):
		if text, what, ok := t.toCopy(); ok {
			return pane.Copy(text, what)
		}
	}
	return nil
}

func (t *Transcript) toTop() {
	if len(t.items) == 0 || t.styles == nil {
		return
	}
	t.follow, t.top = false, place{n: t.base}
	t.coloured = colourBudget
	t.lookUp()
}

// selection is the selected item, nil for none.
func (t *Transcript) selection() *item {
	if !t.chosen || !t.has(t.selected) {
		return nil
	}
	return t.at(t.selected)
}

// selectVisible selects the last message on the screen.
func (t *Transcript) selectVisible() {
	for k := len(t.rows) - 1; k >= 0; k-- {
		if n := t.rows[k].n; t.has(n) && t.at(n).selectable() {
			t.selected, t.chosen = n, true
			return
		}
	}
	for n := t.base + len(t.items) - 1; n >= t.base; n-- {
		if t.at(n).selectable() {
			t.selected, t.chosen = n, true
			return
		}
	}
}

// step selects the message before the selected one, or the next.
func (t *Transcript) step(by int) {
	if t.selection() == nil {
		t.selectVisible()
		if t.chosen {
			t.reveal(t.selected)
		}
		return
	}
	for n := t.selected + by; t.has(n); n += by {
		if t.at(n).selectable() {
			t.selected = n
			t.reveal(n)
			return
		}
	}
	if by > 0 {
		t.ScrollToEnd()
	} else {
		t.toTop()
	}
}

// toggle folds an item or unfolds it. What is above it stays where it is, and its own
// first line does, if that is on the screen.
func (t *Transcript) toggle(n int) {
	i := t.at(n)
	if !i.foldable() {
		return
	}
	rows := t.rows
	if t.open(i) {
		i.fold = foldClosed
	} else {
		i.fold = foldOpen
	}
	i.changed()
	t.hold(rows, n)
}

// hold keeps the first row of the screen where it is, or the item if the row is in it.
func (t *Transcript) hold(rows []row, n int) {
	if len(rows) == 0 || len(rows) < t.height-1 && t.follow {
		return
	}
	top := rows[0].place
	if top.n == n && (top.segment > 0 || top.line > 0) {
		top = place{n: n}
	}
	t.follow, t.top = false, top
}

// foldAll gives all items of a kind the same state.
func (t *Transcript) foldAll(k kind) {
	rows := t.rows
	for _, i := range t.items {
		if i.kind == k {
			i.fold = foldDefault
			i.changed()
		}
	}
	if t.follow || len(rows) == 0 {
		return
	}
	t.hold(rows, rows[0].n)
}

// click selects what is at a line, and folds or unfolds it if the line is for that.
func (t *Transcript) click(y int) {
	if !t.follow && y == t.height-1 {
		t.ScrollToEnd()
		return
	}
	if y < 0 || y >= len(t.rows) || !t.has(t.rows[y].n) {
		return
	}
	r := t.rows[y]
	i := t.at(r.n)
	if i.selectable() {
		t.selected, t.chosen = r.n, true
	}
	if r.head && i.foldable() {
		t.toggle(r.n)
	}
}

// Focus selects a tool call, or the message that a record is of, and unfolds it.
func (t *Transcript) Focus(toolCall string, seq uint64) bool {
	found := -1
	for n := t.base + len(t.items) - 1; n >= t.base && found < 0; n-- {
		i := t.at(n)
		if toolCall != "" && i.call != nil && i.call.id == toolCall {
			found = n
		}
	}
	// What a record tells is in the last item that began before it, or with it.
	for n := t.base + len(t.items) - 1; n >= t.base && found < 0 && toolCall == "" && seq > 0; n-- {
		if i := t.at(n); i.selectable() && i.seq > 0 && i.seq <= seq {
			found = n
		}
	}
	if found < 0 {
		return false
	}
	t.selected, t.chosen = found, true
	if i := t.at(found); i.foldable() {
		i.fold = foldOpen
		i.changed()
	}
	t.reveal(found)
	return true
}

// SelectedText is the selected message as plain text.
func (t *Transcript) SelectedText() (text string, ok bool) {
	i := t.selection()
	if i == nil {
		return "", false
	}
	text, _ = plain(i)
	return text, text != ""
}

// SelectedEntry is where the selected message began, and the call if it is one.
func (t *Transcript) SelectedEntry() (seq uint64, toolCall string, ok bool) {
	i := t.selection()
	if i == nil {
		return 0, "", false
	}
	if i.call != nil {
		toolCall = i.call.id
	}
	return i.seq, toolCall, true
}

// toCopy is the selected message, or the last thing that Pi said.
func (t *Transcript) toCopy() (text, what string, ok bool) {
	i := t.selection()
	for n := t.base + len(t.items) - 1; n >= t.base && i == nil; n-- {
		if t.at(n).kind == kindText {
			i = t.at(n)
		}
	}
	if i == nil {
		return "", "", false
	}
	text, what = plain(i)
	return text, what, text != ""
}

// plain is an item as text, and what to call it.
func plain(i *item) (text, what string) {
	switch i.kind {
	case kindUser:
		what = "your message"
	case kindText:
		what = "the answer"
	case kindThinking:
		what = "the thinking"
	case kindProblem:
		what = "the error"
	case kindSummary:
		what = "the summary"
	case kindCall:
		i.call.readPartial()
		text = i.call.main
		if i.call.out != nil && i.call.out.size > 0 {
			text += "\n" + i.call.out.all()
		}
		return strings.TrimSpace(text), "the tool call"
	case kindNote, kindBreak, kindCost, kindImage:
		return i.title, "the line"
	}
	if i.body == nil {
		return i.title, what
	}
	return strings.TrimRight(i.body.all(), "\n"), what
}
