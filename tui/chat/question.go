package chat

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/sahilm/fuzzy"
	"github.com/tidwall/gjson"

	"patio/engine/api"
	"patio/tui/pane"
	"patio/tui/safe"
)

// armTime is how long a question that took the keyboard by itself ignores keys: what was
// meant for the editor must not answer it.
const armTime = 500 * time.Millisecond

// filterOptions is from how many options on typing filters, rather than a digit choosing.
const filterOptions = 10

// ask is what this window does with a question of Pi's.
type ask struct {
	q       api.Question
	options []option
	cursor  int
	top     int
	ed      *editor // of input and editor
	filter  string
	shown   []int
	scroll  int  // of the message
	sent    bool // an answer is on its way
	armed   time.Time
	timeout time.Duration
	text    []string // the message, wrapped for wrapped columns
	wrapped int

	first, rows int // the lines of the options, as last drawn
}

// option is a choice as it is shown, and as it is sent.
type option struct{ label, value string }

// Bounds on what a question shows.
const (
	maxOptions = 1000
	maxMessage = 64 << 10
)

func (c *Chat) newAsk(q api.Question) *ask {
	raw := gjson.ParseBytes(q.Raw)
	a := &ask{q: q, timeout: time.Duration(raw.Get("timeout").Float() * float64(time.Millisecond))}
	switch q.Method {
	case "select":
		for _, o := range q.Options[:min(len(q.Options), maxOptions)] {
			a.options = append(a.options, option{safe.Fit(o, maxLabel), o})
		}
	case "confirm":
		a.options = []option{{"Yes", "yes"}, {"No", "no"}}
		a.cursor = 1
	default:
		a.ed = newEditor("› ")
		a.ed.single = q.Method == "input"
		a.ed.area.Placeholder = safe.Fit(raw.Get("placeholder").Str, maxLabel)
		if c.styles != nil {
			a.ed.setStyles(c.styles)
		}
		a.ed.set(raw.Get("prefill").Str)
	}
	a.find()
	return a
}

// find applies the filter to the options.
func (a *ask) find() {
	a.shown = a.shown[:0]
	if a.filter == "" {
		for i := range a.options {
			a.shown = append(a.shown, i)
		}
		return
	}
	labels := make([]string, len(a.options))
	for i, o := range a.options {
		labels[i] = o.label
	}
	for _, m := range fuzzy.Find(a.filter, labels) {
		a.shown = append(a.shown, m.Index)
	}
	a.cursor = 0
}

// message is the title and the text, wrapped.
func (a *ask) message(width int) []string {
	if a.wrapped != width {
		text := safe.Text(clip(a.q.Title, maxMessage))
		if m := safe.Text(clip(a.q.Message, maxMessage)); m != "" {
			text += "\n" + m
		}
		if n := len(a.q.Options); n > maxOptions {
			text += fmt.Sprintf("\n(the first %s of %s options)", thousand(maxOptions), thousand(n))
		}
		a.text, a.wrapped = safe.Wrap(strings.TrimSpace(text), width), width
	}
	return a.text
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// syncAsks makes the asks those of the session's questions. What was typed into one that
// is still open stays.
func (c *Chat) syncAsks(why string) {
	open := map[string]bool{}
	for _, q := range c.s.Questions {
		open[q.ID] = true
	}
	for id, a := range c.asks {
		if open[id] {
			continue
		}
		delete(c.asks, id)
		if !a.sent {
			c.tell(why)
		}
	}
	for _, q := range c.s.Questions {
		if c.asks[q.ID] == nil {
			c.asks[q.ID] = c.newAsk(q)
		}
	}
	if len(c.s.Questions) == 0 && c.focus == focusQuestion {
		c.toEditor()
	}
	c.turned = min(c.turned, max(len(c.s.Questions)-1, 0))
	// It takes the keyboard unless something is being written.
	if a := c.asked(); a != nil && c.focus == focusEditor && c.ed.empty() && c.picker == nil && !c.o.ReadOnly {
		c.focus = focusQuestion
	}
	if a := c.asked(); a != nil && a.armed.IsZero() {
		a.armed = c.o.Now().Add(armTime)
	}
	c.arrange()
}

// asked is the question that is shown.
func (c *Chat) asked() *ask {
	if c.turned >= len(c.s.Questions) || c.s.Phase != api.PhaseReady {
		return nil
	}
	return c.asks[c.s.Questions[c.turned].ID]
}

// questionKey handles a key for the question that is shown.
func (c *Chat) questionKey(msg tea.KeyPressMsg) tea.Cmd {
	a := c.asked()
	name := msg.String()
	if c.o.Now().Before(a.armed) {
		return nil
	}
	switch name {
	case "ctrl+g":
		c.toEditor()
		return nil
	case "ctrl+n":
		if n := len(c.s.Questions); n > 1 {
			c.turned = (c.turned + 1) % n
			if next := c.asked(); next != nil {
				next.armed = time.Time{}
			}
			c.arrange()
			return nil
		}
	case "pgup":
		a.scroll = max(a.scroll-3, 0)
		return nil
	case "pgdown":
		a.scroll += 3 // bounded where it is drawn
		return nil
	}
	if a.sent {
		return nil
	}
	switch name {
	case "esc":
		if a.filter != "" {
			a.filter = ""
			a.find()
			return nil
		}
		return c.answer(a, map[string]any{"cancelled": true})
	case "enter":
		return c.answerWith(a)
	case "ctrl+o":
		if a.ed != nil {
			return c.edit(a.ed, func() bool { return c.asks[a.q.ID] == a })
		}
	}
	if a.ed != nil {
		cmd := c.removed(a.ed.key(msg))
		c.arrange()
		return cmd
	}
	return c.optionKey(a, msg)
}

func (c *Chat) optionKey(a *ask, msg tea.KeyPressMsg) tea.Cmd {
	name := msg.String()
	long := len(a.options) >= filterOptions
	switch {
	case name == "up", !long && name == "k":
		a.cursor = max(a.cursor-1, 0)
	case name == "down", name == "tab", !long && name == "j":
		a.cursor = min(a.cursor+1, max(len(a.shown)-1, 0))
	case name == "home", name == "end":
		a.cursor = 0
		if name == "end" {
			a.cursor = max(len(a.shown)-1, 0)
		}
	case name == "backspace" && a.filter != "":
		runes := []rune(a.filter)
		a.filter = string(runes[:len(runes)-1])
		a.find()
	case a.q.Method == "confirm" && (name == "y" || name == "n"):
		return c.answer(a, map[string]any{"confirmed": name == "y"})
	case long && msg.Text != "":
		a.filter = safe.Fit(a.filter+safe.Line(msg.Text), 60)
		a.find()
	case !long:
		if n, err := strconv.Atoi(name); err == nil && n >= 1 && n <= len(a.shown) {
			a.cursor = n - 1
			return c.answerWith(a)
		}
	}
	c.arrange()
	return nil
}

// answerWith answers with what is chosen or typed.
func (c *Chat) answerWith(a *ask) tea.Cmd {
	switch {
	case a.ed != nil:
		return c.answer(a, map[string]any{"value": a.ed.text()})
	case a.cursor >= len(a.shown):
		return nil
	case a.q.Method == "confirm":
		return c.answer(a, map[string]any{"confirmed": a.shown[a.cursor] == 0})
	}
	return c.answer(a, map[string]any{"value": a.options[a.shown[a.cursor]].value})
}

// answer sends one. The question goes when the session says that it is answered: another
// window may have been faster.
func (c *Chat) answer(a *ask, with map[string]any) tea.Cmd {
	a.sent = true
	with["type"], with["id"] = "extension_ui_response", a.q.ID
	return c.host.Command(with, func(reply json.RawMessage, err error) tea.Msg {
		_, err = replied(reply, err)
		return didMsg{c, func() tea.Cmd {
			if err != nil {
				a.sent = false
				return pane.Failed(err)
			}
			return nil
		}}
	})
}

// left is how long a question is still open.
func (a *ask) left(now time.Time) (time.Duration, bool) {
	if a.timeout <= 0 {
		return 0, false
	}
	return max(a.q.Asked.Add(a.timeout).Sub(now), 0), true
}

// askHeight is how many lines a question would like to have of those that there are.
func (c *Chat) askHeight(a *ask, width, room int) int {
	n := 2 + len(a.message(width-4)) + 1
	if a.ed != nil {
		a.ed.setSize(width-4, max(min(6, room-4), 1))
		return n + a.ed.height()
	}
	if a.filter != "" {
		n++
	}
	return n + max(len(a.shown), 1)
}

// askView draws the question as a box.
func (c *Chat) askView(a *ask, width, height int) string {
	s, inner := c.styles, width-4
	focused := c.focus == focusQuestion
	title := "Pi asks"
	if n := len(c.s.Questions); n > 1 {
		title += fmt.Sprintf(" · %d of %d", c.turned+1, n)
	}
	if left, ok := a.left(c.o.Now()); ok {
		title += fmt.Sprintf(" · %s left", duration(left))
	}
	if height < 4 {
		return safe.Block(s.Warning.Render(safe.Fit("? "+title+": "+a.q.Title, width)), width, height)
	}
	footer := c.askFooter(a, focused)
	room := height - 3 // of the message and the answer
	var answer int
	if a.ed != nil {
		a.ed.setFocused(focused)
		answer = a.ed.height()
	} else {
		answer = max(len(a.shown), 1)
		if a.filter != "" {
			answer++
		}
	}
	text := a.message(inner)
	rows := min(len(text), max(room-answer, min(room/2, 3), 1))
	answer = max(room-rows, 0)
	a.scroll = max(min(a.scroll, len(text)-rows), 0)
	var lines []string
	for i, line := range text[a.scroll : a.scroll+rows] {
		st := s.Text
		if a.scroll+i == 0 {
			st = s.Strong
		}
		if i == rows-1 && a.scroll+rows < len(text) {
			line = ansi.Truncate(line, max(inner-18, 0), "") + " … pgdn shows more"
		}
		lines = append(lines, st.Render(safe.Cut(line, inner)))
	}
	a.first = 1 + len(lines)
	if a.ed != nil {
		lines = append(lines, strings.Split(a.ed.view(inner), "\n")...)
	} else {
		lines = append(lines, c.optionLines(a, inner, answer, focused)...)
	}
	lines = append(lines[:min(len(lines), height-3)], s.Muted.Render(safe.Cut(footer, inner)))
	for i := range lines {
		lines[i] = " " + safe.Pad(lines[i], inner) + " "
	}
	return safe.Block(s.Box(safe.Cut(title, width-6), strings.Join(lines, "\n"), width, height), width, height)
}

func (c *Chat) optionLines(a *ask, width, rows int, focused bool) []string {
	s := c.styles
	var lines []string
	if a.filter != "" {
		lines = append(lines, s.Accent.Render("› ")+s.Text.Render(a.filter))
		rows--
		a.first++
	}
	if len(a.shown) == 0 {
		return append(lines, s.Muted.Render("nothing fits"))
	}
	a.top = min(a.top, a.cursor)
	a.top = max(a.top, a.cursor-rows+1)
	a.top = max(min(a.top, len(a.shown)-rows), 0)
	a.rows = rows
	for i := a.top; i < min(a.top+rows, len(a.shown)); i++ {
		mark, st := "  ", s.Text
		switch {
		case i == a.cursor && focused:
			mark, st = "▶ ", s.Selected
		case i == a.cursor:
			mark, st = "▌ ", s.Marked
		}
		number := ""
		if len(a.options) < filterOptions {
			number = strconv.Itoa(i+1) + " "
		}
		lines = append(lines, st.Render(safe.Pad(mark+number+a.options[a.shown[i]].label, width)))
	}
	return lines
}

// askFooter says what to do.
func (c *Chat) askFooter(a *ask, focused bool) string {
	switch {
	case a.sent:
		return "… answering"
	case c.o.ReadOnly:
		return "read-only: it is answered elsewhere"
	case !focused:
		return "ctrl+g goes to it"
	case a.ed != nil && !a.ed.single:
		return "Enter answers · ctrl+j new line · ctrl+o your editor · Esc cancels"
	case a.ed != nil:
		return "Enter answers · Esc cancels"
	case a.q.Method == "confirm":
		return "y yes · n no · Esc cancels"
	case len(a.options) >= filterOptions:
		return "Enter answers · type to filter · Esc cancels"
	}
	return "Enter or a digit answers · Esc cancels"
}
