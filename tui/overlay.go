package tui

import (
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/sahilm/fuzzy"

	"patio/tui/pane"
	"patio/tui/safe"
	"patio/tui/style"
	"patio/tui/table"
)

// overlay is a box above the screen that takes all keys until it is closed.
type overlay interface {
	// update handles a message; done closes the overlay.
	update(msg tea.Msg) (cmd tea.Cmd, done bool)
	// view draws the box, at most as large as this.
	view(s *style.Styles, width, height int) string
	keys() []key.Binding
}

func binding(keys, help string) key.Binding {
	return key.NewBinding(key.WithKeys(strings.Split(keys, "/")...), key.WithHelp(keys, help))
}

// over draws a box in the middle of a screen.
func over(screen, box string, width, height int) string {
	w, h := lipgloss.Size(box)
	x, y := max((width-w)/2, 0), max((height-h)/2, 0)
	// The compositor leaves blanks at the ends of lines out.
	return safe.Block(lipgloss.NewCompositor(lipgloss.NewLayer(screen), lipgloss.NewLayer(box).X(x).Y(y).Z(1)).Render(), width, height)
}

// confirmation asks before something is lost. Its answer is no unless y is pressed.
type confirmation struct{ m pane.ConfirmMsg }

func (c *confirmation) update(msg tea.Msg) (tea.Cmd, bool) {
	k, ok := msg.(tea.KeyPressMsg)
	if !ok {
		return nil, false
	}
	switch k.String() {
	case "y", "Y":
		return c.m.Then, true
	case "n", "N", "esc", "enter", "q", "ctrl+c":
		return nil, true
	}
	return nil, false
}

func (c *confirmation) keys() []key.Binding {
	return []key.Binding{binding("y", safe.Line(c.m.Yes)), binding("n/esc", "leave it")}
}

func (c *confirmation) view(s *style.Styles, width, height int) string {
	w := min(width-4, 64)
	var lines []string
	for _, line := range safe.Wrap(safe.Text(c.m.Question), w-4) {
		lines = append(lines, " "+s.Strong.Render(line))
	}
	lines = append(lines, "")
	for _, line := range safe.Wrap(safe.Text(c.m.Lost), w-4) {
		lines = append(lines, " "+s.Text.Render(line))
	}
	lines = append(lines, "", " "+s.Key.Render("y")+s.Text.Render(" "+safe.Line(c.m.Yes))+"    "+s.Key.Render("n")+s.Text.Render(" leave it"))
	if room := height - 2; len(lines) > room {
		lines = append(lines[:max(room-2, 0)], lines[len(lines)-2:]...)
	}
	return s.Box("Are you sure?", strings.Join(lines, "\n"), w, len(lines)+2)
}

// helpBox lists every key that does something now.
type helpBox struct {
	groups []helpGroup
	top    int
	height int
	total  int
}

type helpGroup struct {
	title string
	keys  []key.Binding
}

func (h *helpBox) update(msg tea.Msg) (tea.Cmd, bool) {
	step := 0
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		switch msg.String() {
		case "esc", "q", "?", "enter", "ctrl+c":
			return nil, true
		case "j", "down":
			step = 1
		case "k", "up":
			step = -1
		case "pgdown", "space":
			step = h.height
		case "pgup":
			step = -h.height
		}
	case tea.MouseWheelMsg:
		step = map[tea.MouseButton]int{tea.MouseWheelUp: -3, tea.MouseWheelDown: 3}[msg.Button]
	}
	h.top = max(min(h.top+step, h.total-h.height), 0)
	return nil, false
}

func (h *helpBox) keys() []key.Binding {
	return []key.Binding{binding("j/k", "scroll"), binding("esc", "close")}
}

func (h *helpBox) view(s *style.Styles, width, height int) string {
	w := min(width-4, 72)
	var lines []string
	for _, g := range h.groups {
		if len(g.keys) == 0 {
			continue
		}
		if len(lines) > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, " "+s.Title.Render(g.title))
		for _, b := range g.keys {
			if !b.Enabled() || b.Help().Desc == "" {
				continue
			}
			lines = append(lines, "  "+s.Key.Render(safe.Pad(b.Help().Key, 16))+" "+s.Text.Render(safe.Cut(b.Help().Desc, w-22)))
		}
	}
	h.total, h.height = len(lines), min(height-4, len(lines))
	h.top = max(min(h.top, h.total-h.height), 0)
	title := "Help"
	if h.total > h.height {
		title += " · j/k scroll"
	}
	return s.Box(title, strings.Join(lines[h.top:h.top+max(h.height, 0)], "\n"), w, h.height+2)
}

// choice is one entry of a chooser.
type choice struct {
	name, detail string
	run          func() tea.Cmd
	// look is called when the cursor comes to it: a preview.
	look func() tea.Cmd
}

// chooser is a list with a fuzzy filter: the command palette, the themes.
type chooser struct {
	title string
	all   []choice
	found []int
	input textinput.Model
	table *table.Table
	leave func() tea.Cmd // when it is closed without a choice
}

func newChooser(title string, all []choice, leave func() tea.Cmd) *chooser {
	c := &chooser{title: title, all: all, leave: leave, input: textinput.New()}
	c.input.Prompt = "› "
	c.input.Placeholder = "type to find"
	c.input.CharLimit = 100
	c.input.Focus()
	c.table = table.New(c, table.Column{Title: "", Width: 14, Flex: 3}, table.Column{Width: 8, Flex: 4, Rank: 1})
	c.table.SetHeader(false)
	c.table.SetEmpty("nothing of this name")
	c.find()
	return c
}

func (c *chooser) find() {
	c.found = c.found[:0]
	if query := c.input.Value(); query != "" {
		names := make([]string, len(c.all))
		for i, o := range c.all {
			names[i] = o.name + " " + o.detail
		}
		for _, m := range fuzzy.Find(query, names) {
			c.found = append(c.found, m.Index)
		}
	} else {
		for i := range c.all {
			c.found = append(c.found, i)
		}
	}
	c.table.SetCursor(0)
}

// Len implements table.Source.
func (c *chooser) Len() int { return len(c.found) }

// Row implements table.Source.
func (c *chooser) Row(i int) []table.Cell {
	o := c.all[c.found[i]]
	return []table.Cell{{Text: o.name}, {Text: o.detail}}
}

// selectName moves the cursor to an entry.
func (c *chooser) selectName(name string) {
	for i, n := range c.found {
		if c.all[n].name == name {
			c.table.SetCursor(i)
		}
	}
}

func (c *chooser) selected() (choice, bool) {
	i := c.table.Cursor()
	if i < 0 || i >= len(c.found) {
		return choice{}, false
	}
	return c.all[c.found[i]], true
}

func (c *chooser) update(msg tea.Msg) (tea.Cmd, bool) {
	look := func() tea.Cmd {
		if o, ok := c.selected(); ok && o.look != nil {
			return o.look()
		}
		return nil
	}
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		switch msg.String() {
		case "esc", "ctrl+c":
			if c.leave != nil {
				return c.leave(), true
			}
			return nil, true
		case "enter":
			o, ok := c.selected()
			if !ok {
				return nil, false
			}
			return o.run(), true
		case "up", "down", "pgup", "pgdown":
			c.table.Update(msg)
			return look(), false
		case "ctrl+n":
			c.table.Update(tea.KeyPressMsg{Code: tea.KeyDown})
			return look(), false
		case "ctrl+p":
			c.table.Update(tea.KeyPressMsg{Code: tea.KeyUp})
			return look(), false
		}
	case tea.MouseWheelMsg:
		c.table.Update(msg)
		return look(), false
	}
	before := c.input.Value()
	var cmd tea.Cmd
	c.input, cmd = c.input.Update(msg)
	if c.input.Value() != before {
		c.find()
		return tea.Batch(cmd, look()), false
	}
	return cmd, false
}

func (c *chooser) keys() []key.Binding {
	return []key.Binding{binding("↑/↓", "choose"), binding("enter", "take it"), binding("esc", "close")}
}

func (c *chooser) view(s *style.Styles, width, height int) string {
	w := min(width-4, 64)
	rows := max(min(len(c.all), height-7, 16), 1)
	c.input.SetWidth(w - 8)
	c.table.SetStyles(s)
	c.table.SetSize(w-2, rows)
	content := " " + safe.Pad(c.input.View(), w-4) + "\n" + s.Border.Render(strings.Repeat("─", w-2)) + "\n" + c.table.View()
	return s.Box(c.title, content, w, rows+4)
}
