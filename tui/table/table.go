// Package table draws long lists in columns, at a cost that is bounded by the screen.
package table

import (
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"patio/tui/safe"
	"patio/tui/style"
)

// Column is one column.
type Column struct {
	Title string
	Width int  // the least
	Flex  int  // its share of the room that is left; 0 keeps Width
	Right bool // figures
	// Rank says which columns stay when the table is narrow: those of a higher rank go first.
	Rank int
}

// Cell is the text of one cell, foreign or not, with its style. Styled text is our own
// and safe already, such as a sparkline; it is drawn instead of Text.
type Cell struct {
	Text   string
	Style  *lipgloss.Style
	Styled string
}

// Source has the rows. Only those that are visible are asked for.
type Source interface {
	Len() int
	Row(i int) []Cell
}

// Table is a list with a cursor. The zero value isn't usable: see New.
type Table struct {
	columns []Column
	source  Source
	styles  *style.Styles
	width   int
	height  int
	cursor  int
	top     int
	focused bool
	header  bool
	// follow keeps the cursor at the last row as rows come.
	follow bool
	empty  string
	keys   Keys
}

// Keys move the cursor.
type Keys struct{ Up, Down, PageUp, PageDown, Top, Bottom key.Binding }

// DefaultKeys are those of vi, and the arrows.
func DefaultKeys() Keys {
	return Keys{
		Up:       key.NewBinding(key.WithKeys("up", "k"), key.WithHelp("k/↑", "up")),
		Down:     key.NewBinding(key.WithKeys("down", "j"), key.WithHelp("j/↓", "down")),
		PageUp:   key.NewBinding(key.WithKeys("pgup", "ctrl+b", "ctrl+u"), key.WithHelp("pgup", "page up")),
		PageDown: key.NewBinding(key.WithKeys("pgdown", "ctrl+f"), key.WithHelp("pgdn", "page down")),
		Top:      key.NewBinding(key.WithKeys("g", "home"), key.WithHelp("g", "first")),
		Bottom:   key.NewBinding(key.WithKeys("G", "end"), key.WithHelp("G", "last")),
	}
}

// New returns a table of these columns.
func New(source Source, columns ...Column) *Table {
	return &Table{columns: columns, source: source, focused: true, header: true, keys: DefaultKeys(), empty: "nothing yet"}
}

// SetSize sets the room in cells, the header included.
func (t *Table) SetSize(width, height int) { t.width, t.height = width, height; t.clamp() }

// SetStyles sets what it is drawn with.
func (t *Table) SetStyles(s *style.Styles) { t.styles = s }

// SetFocused says whether the cursor is the one that keys move.
func (t *Table) SetFocused(on bool) { t.focused = on }

// SetHeader shows or hides the titles of the columns.
func (t *Table) SetHeader(on bool) { t.header = on; t.clamp() }

// SetEmpty sets what is said when there are no rows: one or more lines.
func (t *Table) SetEmpty(text string) { t.empty = text }

// SetFollow moves the cursor to the last row now and as rows come, until it is moved up.
func (t *Table) SetFollow(on bool) { t.follow = on; t.Changed() }

// Following reports whether the cursor follows the last row.
func (t *Table) Following() bool { return t.follow }

// Changed tells the table that the source has other rows than before.
func (t *Table) Changed() {
	if t.follow {
		t.cursor = t.source.Len() - 1
	}
	t.clamp()
}

// Cursor is the row that is selected, -1 when there are none.
func (t *Table) Cursor() int {
	if t.source.Len() == 0 {
		return -1
	}
	return t.cursor
}

// SetCursor selects a row and brings it into view. It ends following, unless the row is the last.
func (t *Table) SetCursor(i int) {
	t.cursor = i
	t.follow = t.follow && i >= t.source.Len()-1
	t.clamp()
}

// Shift tells that n rows before the first were dropped, so that the cursor stays on its row.
func (t *Table) Shift(n int) { t.cursor -= n; t.top -= n; t.clamp() }

func (t *Table) rows() int {
	if t.header {
		return max(t.height-1, 0)
	}
	return max(t.height, 0)
}

func (t *Table) clamp() {
	n := t.source.Len()
	t.cursor = max(min(t.cursor, n-1), 0)
	rows := max(t.rows(), 1)
	t.top = min(t.top, t.cursor)
	t.top = max(t.top, t.cursor-rows+1)
	t.top = max(min(t.top, n-rows), 0)
}

// Update moves the cursor by a key, the wheel or a click, and reports whether it was for
// the table. Mouse coordinates are relative to the table's corner.
func (t *Table) Update(msg tea.Msg) bool {
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		page := max(t.rows()-1, 1)
		switch {
		case key.Matches(msg, t.keys.Up):
			t.move(-1)
		case key.Matches(msg, t.keys.Down):
			t.move(1)
		case key.Matches(msg, t.keys.PageUp):
			t.move(-page)
		case key.Matches(msg, t.keys.PageDown):
			t.move(page)
		case key.Matches(msg, t.keys.Top):
			t.move(-t.source.Len())
		case key.Matches(msg, t.keys.Bottom):
			t.move(t.source.Len())
		default:
			return false
		}
		return true
	case tea.MouseWheelMsg:
		switch msg.Button {
		case tea.MouseWheelUp:
			t.move(-3)
		case tea.MouseWheelDown:
			t.move(3)
		default:
			return false
		}
		return true
	case tea.MouseClickMsg:
		i, ok := t.RowAt(msg.Y)
		if ok {
			t.SetCursor(i)
		}
		return ok
	}
	return false
}

// RowAt is the row at a line of the table.
func (t *Table) RowAt(y int) (int, bool) {
	if t.header {
		y--
	}
	i := t.top + y
	return i, y >= 0 && y < t.rows() && i < t.source.Len()
}

func (t *Table) move(n int) {
	t.cursor += n
	if n < 0 {
		t.follow = false
	}
	t.clamp()
}

// widths are the columns' widths; 0 for one that has no room.
func (t *Table) widths() []int {
	w := make([]int, len(t.columns))
	total, flex, rank := 0, 0, 0
	for _, c := range t.columns {
		rank = max(rank, c.Rank)
	}
	for ; ; rank-- {
		total, flex = 0, 0
		for i, c := range t.columns {
			w[i] = 0
			if c.Rank <= rank {
				w[i] = c.Width
				total += c.Width + 1
				flex += c.Flex
			}
		}
		if total <= t.width-2 || rank <= 0 {
			break
		}
	}
	left := t.width - 2 - total
	for i, c := range t.columns {
		if w[i] > 0 && c.Flex > 0 && left > 0 {
			share := left * c.Flex / flex
			w[i] += share
			left -= share
			flex -= c.Flex
		}
	}
	return w
}

// View draws the table, exactly as wide and high as its size.
func (t *Table) View() string {
	if t.width <= 0 || t.height <= 0 {
		return ""
	}
	lines := make([]string, 0, t.height)
	widths := t.widths()
	if t.header {
		var b strings.Builder
		b.WriteString("  ")
		for i, c := range t.columns {
			if widths[i] > 0 {
				b.WriteString(fit(c.Title, widths[i], c.Right))
				b.WriteByte(' ')
			}
		}
		lines = append(lines, t.styles.Header.Render(safe.Pad(b.String(), t.width)))
	}
	n := t.source.Len()
	if n == 0 {
		for _, line := range strings.Split(t.empty, "\n") {
			lines = append(lines, t.styles.Muted.Render(safe.Cut("  "+line, t.width)))
		}
		return safe.Block(strings.Join(lines, "\n"), t.width, t.height)
	}
	for i := t.top; i < n && len(lines) < t.height; i++ {
		lines = append(lines, t.row(i, widths))
	}
	return safe.Block(strings.Join(lines, "\n"), t.width, t.height)
}

func (t *Table) row(i int, widths []int) string {
	cells := t.source.Row(i)
	selected := i == t.cursor
	var whole *lipgloss.Style
	mark := "  "
	if selected {
		// A sign beside the colour, for those who have none.
		mark, whole = "▌ ", &t.styles.Marked
		if t.focused {
			mark, whole = "▶ ", &t.styles.Selected
		}
	}
	var b strings.Builder
	write := func(text string, s *lipgloss.Style) {
		switch {
		case whole != nil && s != nil:
			b.WriteString(whole.Foreground(s.GetForeground()).Render(text))
		case whole != nil:
			b.WriteString(whole.Render(text))
		case s != nil:
			b.WriteString(s.Render(text))
		default:
			b.WriteString(t.styles.Text.Render(text))
		}
	}
	write(mark, nil)
	used := 2
	for c, cell := range cells {
		if c >= len(widths) || widths[c] <= 0 {
			continue
		}
		if cell.Styled != "" {
			b.WriteString(safe.Pad(cell.Styled, widths[c]))
		} else {
			write(fit(cell.Text, widths[c], t.columns[c].Right), cell.Style)
		}
		write(" ", nil)
		used += widths[c] + 1
	}
	if used < t.width {
		write(strings.Repeat(" ", t.width-used), nil)
	}
	return safe.Cut(b.String(), t.width)
}

func fit(text string, width int, right bool) string {
	text = safe.Fit(text, width)
	if right {
		return safe.PadLeft(text, width)
	}
	return safe.Pad(text, width)
}
