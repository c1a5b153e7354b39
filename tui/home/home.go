// Package home is the screen that lists all sessions.
package home

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"github.com/sahilm/fuzzy"

	"patio/engine/api"
	"patio/tui/pane"
	"patio/tui/safe"
	"patio/tui/style"
	"patio/tui/table"
)

// ResumeMsg asks the root to start a sandbox for a session that has ended.
type ResumeMsg struct{ Session string }

// PreviewMsg asks the root for the newest lines of a session's conversation, which
// SetPreview takes. It is sent when the selection has settled, and when the session that
// is selected went on.
type PreviewMsg struct{ Session string }

// settled says that the selection wasn't moved for a while since the generation.
type settled struct {
	home *Home
	move int
}

const (
	settle = 150 * time.Millisecond
	// wide is from where on the preview has room beside the list.
	wide = 120
	// previewLines bounds what is kept of a conversation.
	previewLines = 200
)

// order is what the list is sorted by, below the rule that live sessions come first.
type order int

const (
	byAge order = iota
	byState
	byCost
	byCPU
	byMemory
	byName
	orders
)

func (o order) String() string {
	return [...]string{"newest", "needs you", "cost", "CPU", "memory", "name"}[o]
}

// Home lists sessions.
type Home struct {
	now    func() time.Time
	home   string // of the user, for ~
	styles *style.Styles
	width  int
	height int

	loaded   bool
	err      error
	sessions []api.Session // the root's newest list, never changed
	shown    []int         // rows, as indexes into sessions
	names    []string      // what the filter looks at, of each session
	history  map[string]*history
	table    *table.Table
	selected string // id, which the cursor stays on as lists come

	order    order
	liveOnly bool
	filter   textinput.Model
	typing   bool

	moved   int    // generation of the selection
	asked   string // session that a preview was asked for
	askedAt uint64 // its seq then
	preview string // session that lines are of
	lines   []string

	keys keys
}

type keys struct{ open, resume, filter, sort, all, copy, clear, accept key.Binding }

// New returns the screen without sessions: it says that it looks for them until the first
// list comes.
func New(now func() time.Time) *Home {
	h := &Home{now: now, history: map[string]*history{}, filter: textinput.New()}
	h.home, _ = os.UserHomeDir() // without one, paths stay as they are
	h.filter.Prompt = ""
	h.filter.CharLimit = 200
	h.filter.SetVirtualCursor(false)
	h.filter.KeyMap.Paste.SetEnabled(false) // a terminal pastes by itself
	bind := func(help, desc string, names ...string) key.Binding {
		return key.NewBinding(key.WithKeys(names...), key.WithHelp(help, desc))
	}
	h.keys = keys{
		open: bind("enter", "open", "enter"), resume: bind("R", "resume", "R"), filter: bind("/", "filter", "/"),
		sort: bind("o", "sort", "o"), all: bind("A", "all or only live", "A"), copy: bind("y", "copy id", "y"),
		clear: bind("esc", "clear filter", "esc"), accept: bind("enter", "keep filter", "enter"),
	}
	h.arrange()
	return h
}

// SetSize implements pane.Pane.
func (h *Home) SetSize(width, height int) {
	h.width, h.height = width, height
	h.arrange()
}

// SetStyles implements pane.Pane.
func (h *Home) SetStyles(s *style.Styles) {
	h.styles = s
	h.table.SetStyles(s)
	h.filter.SetStyles(textinput.Styles{
		Focused: textinput.StyleState{Text: s.Text, Placeholder: s.Muted, Suggestion: s.Muted, Prompt: s.Key},
		Blurred: textinput.StyleState{Text: s.Muted, Placeholder: s.Muted, Suggestion: s.Muted, Prompt: s.Muted},
	})
}

// SetSessions takes the newest list of all sessions in, which must not be changed after.
// The command, if any, asks for a preview that fits it.
func (h *Home) SetSessions(all []api.Session) tea.Cmd {
	h.sessions, h.loaded, h.err = all, true, nil
	h.names = h.names[:0]
	seen := make(map[string]*history, len(all))
	for i := range all {
		s := &all[i]
		past := h.history[s.ID]
		if past == nil {
			past = &history{}
		}
		if !s.Phase.Final() {
			past.add(s.Usage)
		}
		seen[s.ID] = past
		_, word := pane.State(s)
		h.names = append(h.names, searchable(s, word))
	}
	h.history = seen // those of sessions that are gone go with them
	h.find()
	if s, ok := h.Selected(); ok && h.beside() && (h.asked != s.ID || h.askedAt != s.Seq) {
		return h.ask(&s)
	}
	return nil
}

// SetError says why there is no list, until the next one comes.
func (h *Home) SetError(err error) { h.err = err }

// SetPreview takes the newest lines of a session's conversation in.
func (h *Home) SetPreview(session string, lines []string) {
	h.preview, h.lines = session, slices.Clone(lines[max(0, len(lines)-previewLines):])
}

// Selected is the session under the cursor.
func (h *Home) Selected() (api.Session, bool) {
	if i := h.table.Cursor(); i >= 0 && i < len(h.shown) {
		return h.sessions[h.shown[i]], true
	}
	return api.Session{}, false
}

// Count implements pane.Counter: the live sessions.
func (h *Home) Count() int {
	n := 0
	for i := range h.sessions {
		if !h.sessions[i].Phase.Final() {
			n++
		}
	}
	return n
}

// Typing implements pane.Typist.
func (h *Home) Typing() bool { return h.typing }

// Escapes implements pane.Escaper: esc clears the filter first.
func (h *Home) Escapes() bool { return h.filtering() }

// Cursor implements pane.Cursored.
func (h *Home) Cursor() *tea.Cursor {
	if !h.typing {
		return nil
	}
	c := h.filter.Cursor()
	if c == nil {
		return nil
	}
	c.X = min(c.X+len(filterLabel)+1, max(h.width-1, 0))
	c.Y = 1
	return c
}

// Keys implements pane.Pane.
func (h *Home) Keys() []key.Binding {
	if h.typing {
		return []key.Binding{h.keys.accept, h.keys.clear}
	}
	if len(h.sessions) == 0 {
		return nil
	}
	var k []key.Binding
	if s, ok := h.Selected(); ok {
		k = append(k, h.keys.open)
		if s.Phase.Final() {
			k = append(k, h.keys.resume)
		}
		k = append(k, h.keys.copy)
	}
	k = append(k, h.keys.filter, h.keys.sort, h.keys.all)
	if h.filter.Value() != "" {
		k = append(k, h.keys.clear)
	}
	move := table.DefaultKeys()
	return append(k, move.Down, move.Up, move.Top, move.Bottom, move.PageDown, move.PageUp)
}

// Update implements pane.Pane.
func (h *Home) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case settled:
		if s, ok := h.Selected(); ok && msg.home == h && msg.move == h.moved && h.beside() {
			return h.ask(&s)
		}
	case tea.PasteMsg:
		if h.typing {
			return h.take(tea.PasteMsg{Content: safe.Line(msg.Content)})
		}
	case tea.KeyPressMsg:
		if h.typing {
			return h.typed(msg)
		}
		return h.pressed(msg)
	case tea.MouseClickMsg:
		if msg.X < h.listWidth() {
			msg.Y -= h.top()
			h.table.Update(msg)
			return h.followed()
		}
	case tea.MouseWheelMsg:
		h.table.Update(msg)
		return h.followed()
	}
	return nil
}

func (h *Home) pressed(msg tea.KeyPressMsg) tea.Cmd {
	s, ok := h.Selected()
	switch {
	case key.Matches(msg, h.keys.open) && ok:
		return func() tea.Msg { return pane.OpenMsg{Session: s.ID} }
	case key.Matches(msg, h.keys.resume) && ok:
		if !s.Phase.Final() {
			return pane.Notice(pane.Info, title(&s)+" is live: Enter opens it")
		}
		return func() tea.Msg { return ResumeMsg{s.ID} }
	case key.Matches(msg, h.keys.copy) && ok:
		return pane.Copy(s.ID, "the session's id")
	case len(h.sessions) == 0:
		return nil
	case key.Matches(msg, h.keys.filter):
		h.typing = true
		h.arrange()
		return h.filter.Focus()
	case key.Matches(msg, h.keys.sort):
		h.order = (h.order + 1) % orders
		h.find()
	case key.Matches(msg, h.keys.all):
		h.liveOnly = !h.liveOnly
		h.find()
	case key.Matches(msg, h.keys.clear) && h.filter.Value() != "":
		h.clear()
	case h.table.Update(msg):
	default:
		return nil
	}
	return h.followed()
}

// typed handles a key while the filter takes text.
func (h *Home) typed(msg tea.KeyPressMsg) tea.Cmd {
	switch {
	case key.Matches(msg, h.keys.clear):
		h.clear()
		return h.followed()
	case key.Matches(msg, h.keys.accept):
		h.typing = false
		h.filter.Blur()
		h.arrange()
		return h.followed()
	case msg.Code == tea.KeyUp, msg.Code == tea.KeyDown, msg.Code == tea.KeyPgUp, msg.Code == tea.KeyPgDown:
		h.table.Update(msg)
		return h.followed()
	}
	msg.Text = safe.Line(msg.Text)
	return h.take(msg)
}

func (h *Home) take(msg tea.Msg) tea.Cmd {
	before := h.filter.Value()
	var cmd tea.Cmd
	h.filter, cmd = h.filter.Update(msg)
	if h.filter.Value() != before {
		// What fits best is on top, and is what one looks for.
		h.selected = ""
		h.table.SetCursor(0)
		h.find()
	}
	return tea.Batch(cmd, h.followed())
}

func (h *Home) clear() {
	h.typing = false
	h.filter.Reset()
	h.filter.Blur()
	h.arrange()
	h.find()
}

// followed takes note of where the cursor is now; the command comes back when it stays there.
func (h *Home) followed() tea.Cmd {
	s, ok := h.Selected()
	if !ok || s.ID == h.selected && s.ID == h.asked {
		return nil
	}
	h.selected = s.ID
	if !h.beside() {
		return nil
	}
	h.moved++
	move := h.moved
	return tea.Tick(settle, func(time.Time) tea.Msg { return settled{h, move} })
}

func (h *Home) ask(s *api.Session) tea.Cmd {
	h.asked, h.askedAt = s.ID, s.Seq
	id := s.ID
	return func() tea.Msg { return PreviewMsg{id} }
}

// find makes the rows anew, and keeps the cursor on its session.
func (h *Home) find() {
	h.shown = h.shown[:0]
	keep := func(i int) {
		if !h.liveOnly || !h.sessions[i].Phase.Final() {
			h.shown = append(h.shown, i)
		}
	}
	if query := strings.TrimSpace(h.filter.Value()); query != "" {
		for _, m := range fuzzy.Find(query, h.names) {
			keep(m.Index)
		}
	} else {
		for i := range h.sessions {
			keep(i)
		}
		slices.SortStableFunc(h.shown, h.compare)
	}
	// Live ones first, in the order that they have.
	slices.SortStableFunc(h.shown, func(a, b int) int {
		return final(&h.sessions[a]) - final(&h.sessions[b])
	})
	h.table.Changed()
	for row, i := range h.shown {
		if h.sessions[i].ID == h.selected {
			h.table.SetCursor(row)
			return
		}
	}
	if s, ok := h.Selected(); ok {
		h.selected = s.ID
	}
}

func final(s *api.Session) int {
	if s.Phase.Final() {
		return 1
	}
	return 0
}

func (h *Home) compare(i, j int) int {
	a, b := &h.sessions[i], &h.sessions[j]
	by := 0
	switch h.order {
	case byState:
		by = rank(a) - rank(b)
	case byCost:
		by = cmp.Compare(b.CostUSD, a.CostUSD)
	case byCPU:
		by = cmp.Compare(usage(b).CPUPercent, usage(a).CPUPercent)
	case byMemory:
		by = cmp.Compare(usage(b).Memory, usage(a).Memory)
	case byName:
		by = strings.Compare(strings.ToLower(title(a)), strings.ToLower(title(b)))
	case byAge, orders:
	}
	return cmp.Or(by, b.Created.Compare(a.Created), strings.Compare(a.ID, b.ID))
}

// usage is what a live session uses now; one that has ended uses nothing.
func usage(s *api.Session) api.Usage {
	if s.Usage == nil || s.Phase.Final() {
		return api.Usage{}
	}
	return *s.Usage
}

// searchable is what the filter looks at. It is bounded: names come from outside.
func searchable(s *api.Session, word string) string {
	return safe.Fit(s.Name, 100) + " " + s.ID + " " + safe.Fit(s.Workspace, 300) + " " + safe.Fit(s.Model.String(), 100) + " " + word
}

// title is what a session is called.
func title(s *api.Session) string {
	if s.Name != "" {
		return s.Name
	}
	return s.ID
}
