// Package chat is the tab in which one talks to Pi.
package chat

import (
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"patio/engine/api"
	"patio/sessions"
	"patio/tui/pane"
	"patio/tui/style"
)

// History shows the conversation; *transcript.Transcript is one.
type History interface {
	pane.Pane
	pane.Follower
	pane.Ticker
	pane.Counter
	SetHistory(turns []sessions.Turn)
	NeedsHistory() (before time.Time, needed bool)
	Prompts() []string
	Queue() (steering, followUp []string)
	ScrollToEnd()
	AtEnd() bool
	Focus(toolCall string, seq uint64) bool
	SetFocused(on bool)
}

// Options are what a chat is made with.
type Options struct {
	Now      func() time.Time
	ReadOnly bool // look on only
	// Workspace is the session's: what was typed in it before can be had again.
	Workspace string
	Inputs    InputStore // nil keeps nothing
}

// focus is where keys go.
type focus int

const (
	focusEditor focus = iota
	focusTranscript
	focusQuestion
)

const (
	// noteTime is how long a note stays.
	noteTime = 6 * time.Second
	// twiceTime is within which a second Esc aborts.
	twiceTime = 2 * time.Second
)

// Chat is the tab. What it shows of the session comes from snapshots and records alone:
// other windows talk to the same Pi.
type Chat struct {
	host   pane.Host
	t      History
	o      Options
	styles *style.Styles

	width, height int
	layout        layout
	frame         int

	s        api.Session
	seen     bool
	firstSeq uint64 // of the first snapshot: what is after it happened while this was open
	stateSeq uint64 // of the newest state record
	since    time.Time
	aborting bool
	escaped  time.Time // the last Esc while Pi works

	ed         *editor
	focus      focus
	recall     recall
	completion completion
	theirs     []command
	known      commandsState
	round      int // of Pi's runtimes: replies of one before are stale
	picker     *picker
	asks       map[string]*ask
	turned     int // which question is shown
	extension  extension

	note      string
	noteUntil time.Time

	loaded    bool // the inputs were asked for
	requested time.Time
	asking    bool // history is on its way
}

// didMsg is the end of something that was asked for.
type didMsg struct {
	chat *Chat
	do   func() tea.Cmd
}

// New returns the tab of one session.
func New(h pane.Host, t History, o Options) *Chat {
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Chat{host: h, t: t, o: o, ed: newEditor("❯ "), asks: map[string]*ask{}}
	if o.ReadOnly {
		c.focus = focusTranscript
	}
	t.SetFocused(o.ReadOnly)
	return c
}

// SetSize implements pane.Pane.
func (c *Chat) SetSize(width, height int) {
	c.width, c.height = width, height
	c.arrange()
}

// SetStyles implements pane.Pane.
func (c *Chat) SetStyles(s *style.Styles) {
	c.styles = s
	c.t.SetStyles(s)
	c.ed.setStyles(s)
	for _, a := range c.asks {
		if a.ed != nil {
			a.ed.setStyles(s)
		}
	}
	if c.picker != nil {
		old := c.picker.filter
		c.picker.filter = newFilter(s)
		c.picker.filter.SetValue(old.Value())
		c.picker.filter.SetCursor(old.Position())
	}
	c.arrange()
}

// Wake returns what has to be asked for since records or a snapshot came; Update does so
// too.
func (c *Chat) Wake() tea.Cmd {
	var cmds []tea.Cmd
	if !c.loaded && c.o.Inputs != nil && !c.o.ReadOnly {
		c.loaded = true
		cmds = append(cmds, c.o.Inputs.Load(c.o.Workspace))
	}
	if before, needed := c.t.NeedsHistory(); needed && !c.asking && (c.requested.IsZero() || !before.Equal(c.requested)) {
		c.asking, c.requested = true, before
		cmds = append(cmds, c.host.History(before, func(turns []sessions.Turn, err error) tea.Msg {
			return didMsg{c, func() tea.Cmd {
				c.asking = false
				if err != nil {
					return pane.Failed(err)
				}
				c.t.SetHistory(turns)
				return nil
			}}
		}))
	}
	return tea.Batch(cmds...)
}

// Count implements pane.Counter.
func (c *Chat) Count() int { return c.t.Count() }

// Typing implements pane.Typist.
func (c *Chat) Typing() bool {
	if c.picker != nil {
		return true
	}
	switch c.focus {
	case focusQuestion:
		return c.asked() != nil
	case focusEditor:
		return !c.o.ReadOnly && !c.s.Phase.Final()
	case focusTranscript:
	}
	t, ok := c.t.(pane.Typist)
	return ok && t.Typing()
}

// Tick implements pane.Ticker.
func (c *Chat) Tick() {
	c.frame++
	c.t.Tick()
	if c.note != "" && !c.o.Now().Before(c.noteUntil) {
		c.note = ""
		c.arrange()
	}
}

// Escapes implements pane.Escaper: besides what is open, a second Esc aborts.
func (c *Chat) Escapes() bool {
	return c.Typing() || c.working() && !c.o.ReadOnly && c.armed()
}

// armed says that an Esc now would be the second.
func (c *Chat) armed() bool {
	return !c.escaped.IsZero() && c.o.Now().Sub(c.escaped) < twiceTime
}

func (c *Chat) toEditor() {
	if c.o.ReadOnly || c.s.Phase.Final() {
		return
	}
	c.focus = focusEditor
	c.t.SetFocused(false)
	c.arrange()
}

func (c *Chat) toTranscript() {
	c.focus = focusTranscript
	c.t.SetFocused(true)
	c.completion = completion{}
	c.arrange()
}

// Update implements pane.Pane.
func (c *Chat) Update(msg tea.Msg) tea.Cmd {
	cmd := c.update(msg)
	return tea.Batch(cmd, c.Wake())
}

func (c *Chat) update(msg tea.Msg) tea.Cmd {
	switch m := msg.(type) {
	case didMsg:
		if m.chat != c {
			return nil
		}
		cmd := m.do()
		c.arrange()
		return cmd
	case InputsMsg:
		if m.Workspace == c.o.Workspace {
			c.recall.stored = m.Texts
		}
		return nil
	case pane.FocusMsg:
		if m.From != "Chat" && c.t.Focus(m.ToolCall, m.Seq) {
			c.toTranscript()
		}
		return nil
	case tea.KeyPressMsg:
		cmd := c.key(m)
		c.arrange()
		return cmd
	case tea.PasteMsg:
		cmd := c.paste(m)
		c.arrange()
		return cmd
	case tea.MouseMsg:
		cmd := c.mouse(m)
		c.arrange()
		return cmd
	}
	return c.t.Update(msg)
}

// edited follows a change of the editor's text.
func (c *Chat) edited() { c.complete() }

func (c *Chat) key(msg tea.KeyPressMsg) tea.Cmd {
	if c.picker != nil {
		p := c.picker
		cmd, closed := p.key(msg)
		if closed {
			c.closePicker(p)
		}
		return cmd
	}
	// While the transcript takes text, it has its keys.
	if t, ok := c.t.(pane.Typist); ok && c.focus == focusTranscript && t.Typing() {
		return c.t.Update(msg)
	}
	switch {
	case key.Matches(msg, keyAbort) && !c.s.Phase.Final():
		return c.abort()
	case key.Matches(msg, keyModel) && c.takesCommands():
		return c.pickModel("")
	case key.Matches(msg, keyThinking) && c.takesCommands():
		return c.pickThinking("")
	case key.Matches(msg, keyTree) && c.takesCommands():
		return c.pickTree("")
	case key.Matches(msg, keyGo) && c.focus != focusQuestion && c.asked() != nil && !c.o.ReadOnly:
		c.focus = focusQuestion
		c.t.SetFocused(false)
		c.asked().armed = c.o.Now()
		return nil
	}
	switch {
	case c.focus == focusQuestion && c.asked() != nil:
		return c.questionKey(msg)
	case c.focus == focusTranscript || c.o.ReadOnly || c.s.Phase.Final():
		return c.transcriptKey(msg)
	}
	return c.editorKey(msg)
}

// escape counts an Esc while Pi works. It reports whether that was the second.
func (c *Chat) escape() bool {
	if !c.working() || c.o.ReadOnly {
		return false
	}
	if c.armed() {
		c.escaped = time.Time{}
		return true
	}
	c.escaped = c.o.Now()
	c.tell("Esc again aborts what Pi does")
	return false
}

func (c *Chat) transcriptKey(msg tea.KeyPressMsg) tea.Cmd {
	switch {
	case msg.String() == "esc":
		if c.escape() {
			return c.abort()
		}
	case c.s.Phase.Final() && !c.o.ReadOnly && key.Matches(msg, keyResume):
		id := c.s.ID
		return func() tea.Msg { return ResumeMsg{id} }
	case c.s.Phase.Final() && key.Matches(msg, keyUnsent) && !c.ed.empty():
		return pane.Copy(c.ed.text(), "your unsent text")
	case key.Matches(msg, keyWrite) && !c.o.ReadOnly && !c.s.Phase.Final():
		c.toEditor()
		return nil
	}
	return c.t.Update(msg)
}

func (c *Chat) editorKey(msg tea.KeyPressMsg) tea.Cmd {
	if c.completion.open() {
		if cmd, handled := c.completionKey(msg); handled {
			return cmd
		}
	}
	switch {
	case key.Matches(msg, keySend):
		return c.send("")
	case key.Matches(msg, keyFollowUp):
		return c.send(followUp)
	case key.Matches(msg, keyRead):
		c.toTranscript()
		if c.escape() {
			return c.abort()
		}
		return nil
	case key.Matches(msg, keyEdit):
		return c.edit(c.ed, func() bool { return !c.s.Phase.Final() })
	case key.Matches(msg, keyOpen):
		if !c.ed.open() {
			return c.say("the paste is too long to be edited here; ctrl+o opens it in your editor")
		}
		c.edited()
		return nil
	case msg.String() == "up" && c.ed.atTop():
		if !c.ed.older(&c.recall, c.t.Prompts()) {
			return c.say("nothing older was typed here")
		}
		c.edited()
		return nil
	case msg.String() == "down" && c.ed.atBottom():
		c.ed.newer(&c.recall)
		c.edited()
		return nil
	case msg.String() == "tab", msg.String() == "shift+tab":
		return nil
	case msg.String() == "pgup" || msg.String() == "pgdown":
		return c.t.Update(msg) // the editor is short, the conversation is what one looks through
	}
	before := c.ed.area.Value()
	cmd := c.removed(c.ed.key(msg))
	if c.ed.area.Value() != before {
		c.completion.hidden = ""
		c.complete()
	}
	if strings.HasPrefix(c.ed.area.Value(), "/") {
		cmd = tea.Batch(cmd, c.askCommands())
	}
	return cmd
}

func (c *Chat) paste(msg tea.PasteMsg) tea.Cmd {
	switch {
	case c.picker != nil:
		c.picker.typed(msg)
		return nil
	case c.o.ReadOnly || c.s.Phase.Final():
		return nil
	}
	if a := c.asked(); a != nil && c.focus == focusQuestion {
		if a.ed == nil || a.sent {
			return nil
		}
		return c.removed(a.ed.paste(msg.Content))
	}
	if t, ok := c.t.(pane.Typist); ok && c.focus == focusTranscript && t.Typing() {
		return c.t.Update(msg)
	}
	c.toEditor()
	if path, ok := pastedPath(msg.Content); ok {
		return c.attach(path, msg.Content)
	}
	return c.removed(c.ed.paste(msg.Content))
}
