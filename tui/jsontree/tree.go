// Package jsontree shows one JSON value, or text that is none, as a tree that folds.
package jsontree

import (
	"bytes"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"patio/tui/pane"
	"patio/tui/safe"
	"patio/tui/style"
	"patio/tui/table"
)

// row is one line of the view: a value, or a line of an unfolded string.
type row struct {
	n     *node
	depth int
	text  int // of the excerpt's lines; header, before and after aren't among them
}

const (
	header = -1
	before = -2 // what the excerpt leaves out at its begin
	after  = -3
)

// Tree is the viewer. The zero value isn't usable: see New.
type Tree struct {
	doc     *Document
	rows    []row
	cursor  int
	top     int
	width   int
	height  int
	styles  *style.Styles
	what    string
	note    string
	typing  bool
	input   textinput.Model
	query   string
	search  int // which search the tree waits for
	waiting bool
	hits    []int // offsets in the source
	hit     int
	more    bool // there were more hits than are kept
	folded  bool // z folded everything
	move    table.Keys
	keys    keys
}

type keys struct {
	Toggle, Fold, Unfold, All, Find, Next, Previous, Copy, CopyAll key.Binding
}

// New returns a tree that shows nothing yet.
func New() *Tree {
	t := &Tree{move: table.DefaultKeys(), input: textinput.New(), what: "the value"}
	t.input.CharLimit = 400
	t.input.SetVirtualCursor(false)
	t.input.KeyMap.Paste.SetEnabled(false) // the system's clipboard is the terminal's to read
	t.keys = keys{
		Toggle:   key.NewBinding(key.WithKeys("enter", "space"), key.WithHelp("enter", "fold/unfold")),
		Fold:     key.NewBinding(key.WithKeys("h", "left"), key.WithHelp("h/←", "fold")),
		Unfold:   key.NewBinding(key.WithKeys("l", "right"), key.WithHelp("l/→", "unfold")),
		All:      key.NewBinding(key.WithKeys("z"), key.WithHelp("z", "fold/unfold all")),
		Find:     key.NewBinding(key.WithKeys("/"), key.WithHelp("/", "search")),
		Next:     key.NewBinding(key.WithKeys("."), key.WithHelp(".", "next match")),
		Previous: key.NewBinding(key.WithKeys(","), key.WithHelp(",", "match before")),
		Copy:     key.NewBinding(key.WithKeys("y"), key.WithHelp("y", "copy the value")),
		CopyAll:  key.NewBinding(key.WithKeys("Y"), key.WithHelp("Y", "copy all of it")),
	}
	t.Set(nil)
	return t
}

// Set shows a value, of which nothing is known yet.
func (t *Tree) Set(raw []byte) { t.Show(Load(raw)) }

// Show shows a document.
func (t *Tree) Show(d *Document) {
	t.doc = d
	t.cursor, t.top, t.note = 0, 0, ""
	t.folded = false
	t.leaveSearch()
	t.layout()
}

// SetSize gives the tree its room, in cells.
func (t *Tree) SetSize(width, height int) {
	changed := width != t.width
	t.width, t.height = width, height
	if changed {
		t.layout()
	}
	t.clamp()
}

// SetStyles sets what it is drawn with.
func (t *Tree) SetStyles(s *style.Styles) { t.styles = s }

// Typing reports whether the tree takes text.
func (t *Tree) Typing() bool { return t.typing }

// Cursor is where text is typed, relative to the tree's corner; nil when none is.
func (t *Tree) Cursor() *tea.Cursor {
	if !t.typing || t.height <= 0 {
		return nil
	}
	_, x := t.inputLine()
	return tea.NewCursor(x, t.height-1)
}

// Back leaves the search, and reports whether there was one to leave.
func (t *Tree) Back() bool {
	if !t.typing && t.query == "" {
		return false
	}
	t.leaveSearch()
	return true
}

func (t *Tree) leaveSearch() {
	t.search++
	t.typing, t.waiting, t.query, t.hits, t.hit, t.more = false, false, "", nil, 0, false
	t.input.Reset()
	t.input.Blur()
}

// Keys are the bindings that do something now.
func (t *Tree) Keys() []key.Binding {
	if t.typing {
		return []key.Binding{
			key.NewBinding(key.WithKeys("enter"), key.WithHelp("enter", "search")),
			key.NewBinding(key.WithKeys("esc"), key.WithHelp("esc", "leave the search")),
		}
	}
	var all []key.Binding
	if len(t.rows) > 0 {
		if n := t.rows[t.cursor].n; n.container() || n.openable(t.doc.raw) {
			all = append(all, t.keys.Toggle)
		}
	}
	if len(t.hits) > 0 {
		all = append(all, t.keys.Next, t.keys.Previous)
	}
	all = append(all, t.keys.Find, t.keys.Copy, t.keys.CopyAll)
	if t.doc.root.container() {
		all = append(all, t.keys.Fold, t.keys.Unfold, t.keys.All)
	}
	return append(all, t.move.Up, t.move.Down, t.move.PageUp, t.move.PageDown, t.move.Top, t.move.Bottom)
}

// Update handles a key, the mouse, a paste, or a message of the tree's own.
func (t *Tree) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case foundMsg:
		return t.found(msg)
	case scannedMsg:
		return t.scanned(msg)
	case tea.MouseWheelMsg:
		switch msg.Button {
		case tea.MouseWheelUp:
			t.step(-3)
		case tea.MouseWheelDown:
			t.step(3)
		default:
		}
		return nil
	case tea.MouseClickMsg:
		if i := t.top + msg.Y; msg.Y >= 0 && msg.Y < t.body() && i < len(t.rows) {
			again := i == t.cursor
			t.cursor = i
			if again {
				return t.toggle()
			}
		}
		return nil
	case tea.PasteMsg:
		if t.typing {
			t.input, _ = t.input.Update(msg)
		}
		return nil
	case tea.KeyPressMsg:
		if t.typing {
			return t.typed(msg)
		}
		return t.pressed(msg)
	}
	return nil
}

func (t *Tree) pressed(msg tea.KeyPressMsg) tea.Cmd {
	t.note = ""
	page := max(t.body()-1, 1)
	switch {
	case key.Matches(msg, t.move.Up):
		t.step(-1)
	case key.Matches(msg, t.move.Down):
		t.step(1)
	case key.Matches(msg, t.move.PageUp):
		t.step(-page)
	case key.Matches(msg, t.move.PageDown):
		t.step(page)
	case key.Matches(msg, t.move.Top):
		t.step(-len(t.rows))
	case key.Matches(msg, t.move.Bottom):
		t.step(len(t.rows))
	case key.Matches(msg, t.keys.Toggle):
		return t.toggle()
	case key.Matches(msg, t.keys.Fold):
		t.fold()
	case key.Matches(msg, t.keys.Unfold):
		if r := t.rows[t.cursor]; r.n.open && r.text == header && t.cursor+1 < len(t.rows) && t.rows[t.cursor+1].depth > r.depth {
			t.step(1)
		} else if !r.n.open {
			return t.toggle()
		}
	case key.Matches(msg, t.keys.All):
		t.all()
	case key.Matches(msg, t.keys.Find):
		t.typing = true
		t.input.SetValue(t.query)
		t.input.CursorEnd()
		t.input.Focus()
	case key.Matches(msg, t.keys.Next):
		return t.jump(1)
	case key.Matches(msg, t.keys.Previous):
		return t.jump(-1)
	case key.Matches(msg, t.keys.Copy):
		return t.copy(t.rows[t.cursor].n)
	case key.Matches(msg, t.keys.CopyAll):
		return pane.Copy(string(t.doc.raw), t.what)
	}
	return nil
}

// SetName says what the whole document is, for the notice when it is copied.
func (t *Tree) SetName(what string) { t.what = what }

func (t *Tree) copy(n *node) tea.Cmd {
	switch {
	case n == t.doc.root && n.kind != kindString:
		return pane.Copy(string(t.doc.raw), t.what)
	case n.stringLike():
		from, to := n.text(t.doc.raw)
		return pane.Copy(n.decode(t.doc.raw, from, to), n.path(t.doc.raw))
	}
	src := bytes.TrimRight(t.doc.raw[n.from:n.to], ", \t\r\n")
	return pane.Copy(string(src), n.path(t.doc.raw))
}

func (t *Tree) body() int { return max(t.height-1, 0) }

func (t *Tree) step(n int) {
	t.cursor += n
	t.clamp()
}

func (t *Tree) clamp() {
	t.cursor = max(min(t.cursor, len(t.rows)-1), 0)
	body := max(t.body(), 1)
	t.top = min(t.top, t.cursor)
	t.top = max(t.top, t.cursor-body+1)
	t.top = max(min(t.top, len(t.rows)-body), 0)
}

func (t *Tree) inputLine() (line string, x int) {
	value := []rune(t.input.Value())
	head := safe.Line(string(value[:min(t.input.Position(), len(value))]))
	tail := safe.Line(string(value[min(t.input.Position(), len(value)):]))
	room := max(t.width-2, 1)
	for safe.Width(head) >= room && head != "" {
		head = string([]rune(head)[1:])
	}
	return "/" + head + safe.Cut(tail, max(room-safe.Width(head), 0)), 1 + safe.Width(head)
}
