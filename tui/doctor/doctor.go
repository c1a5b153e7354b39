// Package doctor is the screen that shows what this machine lacks.
package doctor

import (
	"fmt"
	"io"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"patio/engine/api"
	"patio/tui/pane"
	"patio/tui/safe"
	"patio/tui/style"
	"patio/tui/table"
)

// Status is how a check went.
type Status string

// The states. A session can't run while one is Bad.
const (
	OK      Status = "ok"
	Warning Status = "warning"
	Bad     Status = "bad"
)

// Finding is what one check found.
type Finding struct {
	Name    string
	Status  Status
	Found   string
	Meaning string // what it is for, or what is lost without it
	Fix     string // the commands that mend it, one a line
}

// Checker looks at this machine.
type Checker interface {
	// Check runs every check, in the order in which they are shown.
	Check(done func([]Finding, error) tea.Msg) tea.Cmd
}

type checked struct {
	doctor   *Doctor
	run      int
	findings []Finding
	err      error
}

// Doctor lists what was found.
type Doctor struct {
	checker Checker
	styles  *style.Styles
	width   int
	height  int

	findings []Finding
	err      error
	running  bool
	run      int // the number of the run that counts
	ticks    int
	table    *table.Table
	keys     struct{ again, copy, export key.Binding }
}

// New returns the screen. Open runs the checks.
func New(c Checker) *Doctor {
	d := &Doctor{checker: c}
	d.table = table.New(d,
		table.Column{Title: "Status", Width: 9},
		table.Column{Title: "Check", Width: 16},
		table.Column{Title: "Found", Width: 14, Flex: 1, Rank: 1},
	)
	d.table.SetEmpty("")
	d.keys.again = key.NewBinding(key.WithKeys("r"), key.WithHelp("r", "check again"))
	d.keys.copy = key.NewBinding(key.WithKeys("y"), key.WithHelp("y", "copy the fix"))
	d.keys.export = key.NewBinding(key.WithKeys("e"), key.WithHelp("e", "export"))
	return d
}

// Open runs the checks, for what was found before may be mended by now.
func (d *Doctor) Open() tea.Cmd {
	if d.running {
		return nil
	}
	d.running = true
	d.run++
	run := d.run
	return d.checker.Check(func(f []Finding, err error) tea.Msg { return checked{d, run, f, err} })
}

// SetSize implements pane.Pane.
func (d *Doctor) SetSize(width, height int) {
	d.width, d.height = width, height
	d.arrange()
}

// SetStyles implements pane.Pane.
func (d *Doctor) SetStyles(s *style.Styles) {
	d.styles = s
	d.table.SetStyles(s)
}

// Tick implements pane.Ticker.
func (d *Doctor) Tick() { d.ticks++ }

// Count implements pane.Counter: what has to be mended.
func (d *Doctor) Count() int {
	n := 0
	for _, f := range d.findings {
		if f.Status == Bad {
			n++
		}
	}
	return n
}

// Keys implements pane.Pane.
func (d *Doctor) Keys() []key.Binding {
	var k []key.Binding
	if f, ok := d.selected(); ok && f.Fix != "" {
		k = append(k, d.keys.copy)
	}
	if !d.running {
		k = append(k, d.keys.again)
	}
	if len(d.findings) > 0 {
		move := table.DefaultKeys()
		k = append(k, d.keys.export, move.Down, move.Up, move.Top, move.Bottom)
	}
	return k
}

// Update implements pane.Pane.
func (d *Doctor) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case checked:
		if msg.doctor == d && msg.run == d.run {
			d.take(msg)
		}
	case tea.KeyPressMsg:
		f, ok := d.selected()
		switch {
		case key.Matches(msg, d.keys.again):
			return d.Open()
		case key.Matches(msg, d.keys.copy) && ok:
			if f.Fix == "" {
				return pane.Notice(pane.Info, "there is no command for that")
			}
			return pane.Copy(f.Fix, "the fix")
		case key.Matches(msg, d.keys.export) && ok:
			findings := d.findings
			return pane.Export("patio-doctor.txt", func(w io.Writer) error { return write(w, findings) })
		default:
			d.table.Update(msg)
			d.arrange()
		}
	case tea.MouseClickMsg:
		if msg.X < d.listWidth() {
			msg.Y -= listTop
			d.table.Update(msg)
			d.arrange()
		}
	case tea.MouseWheelMsg:
		d.table.Update(msg)
		d.arrange()
	}
	return nil
}

// take keeps the cursor on its check, or moves it to the first that isn't well.
func (d *Doctor) take(msg checked) {
	before, had := d.selected()
	d.running, d.err = false, msg.err
	if msg.err != nil {
		return
	}
	d.findings = msg.findings
	d.table.Changed()
	cursor, worst := 0, 0
	for i, f := range d.findings {
		if had && f.Name == before.Name {
			cursor, worst = i, 3
		}
		if n := gravity(f.Status); n > worst {
			cursor, worst = i, n
		}
	}
	d.table.SetCursor(cursor)
	d.arrange()
}

func gravity(s Status) int {
	switch s {
	case OK:
		return 0
	case Warning:
		return 1
	case Bad:
	}
	return 2
}

func (d *Doctor) selected() (Finding, bool) {
	if i := d.table.Cursor(); i >= 0 && i < len(d.findings) {
		return d.findings[i], true
	}
	return Finding{}, false
}

// Len implements table.Source.
func (d *Doctor) Len() int { return len(d.findings) }

// Row implements table.Source.
func (d *Doctor) Row(i int) []table.Cell {
	f, st := d.findings[i], d.styles
	text := &st.Text
	if f.Status == OK {
		text = &st.Muted
	}
	return []table.Cell{{Text: sign(f.Status) + " " + word(f.Status), Style: d.style(f.Status)}, {Text: f.Name, Style: &st.Strong}, {Text: f.Found, Style: text}}
}

func sign(s Status) string {
	switch s {
	case OK:
		return "✓"
	case Warning:
		return "!"
	case Bad:
	}
	return "✗"
}

func word(s Status) string {
	switch s {
	case OK:
		return "ok"
	case Warning:
		return "warning"
	case Bad:
	}
	return "bad"
}

func (d *Doctor) style(s Status) *lipgloss.Style {
	switch s {
	case OK:
		return &d.styles.Good
	case Warning:
		return &d.styles.Warning
	case Bad:
	}
	return &d.styles.Bad
}

// write is the report as text, for someone else to read.
func write(w io.Writer, findings []Finding) error {
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "%-8s %-16s %s\n", word(f.Status), safe.Line(f.Name), safe.Line(f.Found))
		if f.Meaning != "" {
			fmt.Fprintf(&b, "%26s%s\n", "", safe.Line(f.Meaning))
		}
		for line := range strings.Lines(f.Fix) {
			fmt.Fprintf(&b, "%26s$ %s\n", "", safe.Line(strings.TrimSpace(line)))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// failure is an error as it is shown.
func failure(err error) (message, hint string) {
	e := api.AsError(err)
	return clip(e.Message), clip(e.Hint)
}

// clip bounds a text that is about to be wrapped.
func clip(s string) string {
	const most = 4 << 10
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
