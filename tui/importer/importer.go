// Package importer is the screen that lists Pi's session files and imports them.
package importer

import (
	"io"
	"os"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"patio/engine/api"
	"patio/sessions/catalog"
	"patio/tui/pane"
	"patio/tui/safe"
	"patio/tui/style"
	"patio/tui/table"
)

// updatedMsg has the newest list, or why there is none.
type updatedMsg struct {
	importer *Importer
	update   catalog.Update
	err      error
}

// taking is what text is typed for.
type taking int

const (
	takingNothing taking = iota
	takingFilter
	takingSearch
)

// Importer lists session files.
type Importer struct {
	source Source
	now    func() time.Time
	tick   func(time.Duration, func(time.Time) tea.Msg) tea.Cmd
	home   string // of the user, for ~
	styles *style.Styles
	width  int
	height int
	ticks  int

	update   catalog.Update
	watching bool
	loaded   bool
	err      error // why there is no newer list
	broken   int

	rows     rows
	hits     hits
	reader   reader
	selected string // path that the cursor stays on as lists come

	imported map[string]string  // path: the session that it is, as the root's list has it
	outcomes map[string]outcome // path: what became of it here
	marks    map[string]bool
	batch    *batch

	taking taking
	filter textinput.Model
	query  textinput.Model
	keys   keys
}

type keys struct {
	open, filter, search, mark, project, unmark, take, copy, path, session, close, stop, accept key.Binding
}

// New returns the screen. Open begins to look for files.
func New(s Source, now func() time.Time) *Importer {
	m := &Importer{
		source: s, now: now, tick: tea.Tick, imported: map[string]string{}, outcomes: map[string]outcome{}, marks: map[string]bool{},
		filter: newInput(), query: newInput(),
	}
	m.home, _ = os.UserHomeDir() // without one, paths stay as they are
	m.rows.importer, m.hits.importer = m, m
	bind := func(help, desc string, names ...string) key.Binding {
		return key.NewBinding(key.WithKeys(names...), key.WithHelp(help, desc))
	}
	m.keys = keys{
		open: bind("enter", "read it", "enter"), filter: bind("/", "filter", "/"), search: bind("f", "find in texts", "f"),
		mark: bind("space", "mark", "space"), project: bind("*", "mark its project", "*"), unmark: bind("u", "unmark all", "u"),
		take: bind("i", "import", "i"), copy: bind("c", "import a copy", "c"), path: bind("y", "copy path", "y"),
		session: bind("o", "open its session", "o"), close: bind("esc", "close", "esc"), stop: bind("esc", "stop importing", "esc"),
		accept: bind("enter", "take it", "enter"),
	}
	m.arrange()
	return m
}

func newInput() textinput.Model {
	in := textinput.New()
	in.Prompt = ""
	in.CharLimit = 200
	in.SetVirtualCursor(false)
	in.KeyMap.Paste.SetEnabled(false) // a terminal pastes by itself
	return in
}

// Open begins to watch the files, unless they are watched.
func (m *Importer) Open() tea.Cmd {
	if m.watching {
		return nil
	}
	m.watching = true
	return m.watch()
}

func (m *Importer) watch() tea.Cmd {
	return m.source.Watch(func(u catalog.Update, err error) tea.Msg { return updatedMsg{m, u, err} })
}

// Close ends the source, if it is one that has an end.
func (m *Importer) Close() error {
	if c, ok := m.source.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// SetSessions tells which sessions there are: their files are imported already.
func (m *Importer) SetSessions(all []api.Session) {
	clear(m.imported)
	for _, s := range all {
		if s.ImportedFrom != "" {
			m.imported[s.ImportedFrom] = s.ID
		}
		if s.SessionFile != "" {
			m.imported[s.SessionFile] = s.ID
		}
	}
}

// SetSize implements pane.Pane.
func (m *Importer) SetSize(width, height int) {
	m.width, m.height = width, height
	m.arrange()
}

// SetStyles implements pane.Pane.
func (m *Importer) SetStyles(s *style.Styles) {
	m.styles = s
	in := textinput.Styles{
		Focused: textinput.StyleState{Text: s.Text, Placeholder: s.Muted, Suggestion: s.Muted, Prompt: s.Key},
		Blurred: textinput.StyleState{Text: s.Muted, Placeholder: s.Muted, Suggestion: s.Muted, Prompt: s.Muted},
	}
	m.filter.SetStyles(in)
	m.query.SetStyles(in)
	m.arrange()
}

// Tick implements pane.Ticker.
func (m *Importer) Tick() { m.ticks++ }

// Count implements pane.Counter.
func (m *Importer) Count() int { return len(m.update.Sessions) }

// Typing implements pane.Typist.
func (m *Importer) Typing() bool { return m.taking != takingNothing }

// Escapes implements pane.Escaper.
func (m *Importer) Escapes() bool {
	return m.Typing() || m.reader.open || m.hits.shown() || m.filter.Value() != "" || m.batch.running()
}

// Cursor implements pane.Cursored.
func (m *Importer) Cursor() *tea.Cursor {
	in, label := &m.filter, filterLabel
	switch m.taking {
	case takingNothing:
		return nil
	case takingSearch:
		in, label = &m.query, searchLabel
	case takingFilter:
	}
	c := in.Cursor()
	if c == nil {
		return nil
	}
	c.X = min(c.X+safe.Width(label)+1, max(m.width-1, 0))
	c.Y = 1
	return c
}

// Keys implements pane.Pane.
func (m *Importer) Keys() []key.Binding {
	k, move := m.keys, table.DefaultKeys()
	if m.Typing() {
		return []key.Binding{k.accept, k.close}
	}
	var b []key.Binding
	if m.batch.running() {
		b = append(b, k.stop)
	}
	s, ok := m.Selected()
	if m.reader.open {
		b = append(b, k.close, move.Down, move.Up, move.PageDown, move.PageUp)
	}
	if ok {
		if !m.batch.running() {
			b = append(b, k.take, k.copy)
		}
		if !m.reader.open {
			b = append(b, k.open, k.mark, k.project)
		}
		if len(m.marks) > 0 {
			b = append(b, k.unmark)
		}
		if m.session(s.Path) != "" {
			b = append(b, k.session)
		}
		b = append(b, k.path)
	}
	if len(m.update.Sessions) > 0 && !m.reader.open {
		b = append(b, k.filter, k.search)
	}
	if !m.reader.open && (m.hits.shown() || m.filter.Value() != "") {
		b = append(b, k.close)
	}
	if ok && !m.reader.open {
		b = append(b, move.Down, move.Up, move.Top, move.Bottom, move.PageDown, move.PageUp)
	}
	return b
}

// Selected is the file under the cursor.
func (m *Importer) Selected() (catalog.Summary, bool) {
	if m.hits.shown() {
		return m.hits.selected()
	}
	return m.rows.selected()
}

// session is the session that a file is, "" for none.
func (m *Importer) session(path string) string {
	if id := m.imported[path]; id != "" {
		return id
	}
	return m.outcomes[path].result.Session
}

// Update implements pane.Pane.
func (m *Importer) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case updatedMsg:
		if msg.importer == m {
			return m.takeList(msg)
		}
	case filtered:
		if msg.importer == m {
			return m.takeFiltered(msg)
		}
	case searched:
		if msg.importer == m {
			return m.takeHits(msg)
		}
	case settled:
		if msg.importer == m && msg.move == m.reader.moved {
			return m.read()
		}
	case readMsg:
		if msg.importer == m {
			m.takePreview(msg)
		}
	case checkedMsg:
		if msg.importer == m {
			return m.takeReport(msg)
		}
	case beginMsg:
		if msg.importer == m {
			return m.begin(msg)
		}
	case importedMsg:
		if msg.importer == m && msg.batch == m.batch {
			return m.takeResult(msg)
		}
	case tea.PasteMsg:
		if m.Typing() {
			return m.typed(tea.PasteMsg{Content: safe.Line(clip(msg.Content, 4<<10))})
		}
	case tea.KeyPressMsg:
		if m.Typing() {
			return m.typedKey(msg)
		}
		if m.reader.open {
			return m.readerKey(msg)
		}
		return m.pressed(msg)
	case tea.MouseClickMsg, tea.MouseWheelMsg:
		return m.mouse(msg)
	}
	return nil
}

func (m *Importer) takeList(msg updatedMsg) tea.Cmd {
	if msg.err != nil {
		m.err, m.watching = msg.err, false
		return nil
	}
	m.update, m.err, m.loaded = msg.update, nil, true
	m.broken = 0
	for i := range m.update.Sessions {
		if m.update.Sessions[i].Broken != "" {
			m.broken++
		}
	}
	if len(m.marks) > 0 {
		// Files that are gone aren't imported.
		there := make(map[string]bool, len(m.marks))
		for i := range m.update.Sessions {
			if path := m.update.Sessions[i].Path; m.marks[path] {
				there[path] = true
			}
		}
		m.marks = there
	}
	return tea.Batch(m.watch(), m.refilter())
}

func (m *Importer) table() *table.Table {
	if m.hits.shown() {
		return m.hits.table
	}
	return m.rows.table
}

func (m *Importer) pressed(msg tea.KeyPressMsg) tea.Cmd {
	s, ok := m.Selected()
	k := m.keys
	switch {
	case key.Matches(msg, k.close):
		return m.escape()
	case key.Matches(msg, k.filter) && len(m.update.Sessions) > 0:
		m.hits.clear()
		return m.startTyping(takingFilter, &m.filter)
	case key.Matches(msg, k.search) && len(m.update.Sessions) > 0:
		return m.startTyping(takingSearch, &m.query)
	case m.act(msg):
		return m.do(msg, s)
	case !ok:
		return nil
	case key.Matches(msg, k.open):
		m.reader.open = true
		m.arrange()
		return m.readNow()
	case key.Matches(msg, k.mark):
		m.mark(s.Path)
		m.table().Update(tea.KeyPressMsg{Code: tea.KeyDown})
	case key.Matches(msg, k.project):
		return m.markProject(s.Cwd)
	case m.table().Update(msg):
	default:
		return nil
	}
	return m.moved()
}

// act says that a key is for what can be done with a file, in the list and in the reader.
func (m *Importer) act(msg tea.KeyPressMsg) bool {
	_, ok := m.Selected()
	k := m.keys
	return ok && key.Matches(msg, k.take, k.copy, k.path, k.session, k.unmark)
}

func (m *Importer) do(msg tea.KeyPressMsg, s catalog.Summary) tea.Cmd {
	k := m.keys
	switch {
	case key.Matches(msg, k.take):
		return m.confirm(false)
	case key.Matches(msg, k.copy):
		return m.confirm(true)
	case key.Matches(msg, k.path):
		return pane.Copy(s.Path, "the path")
	case key.Matches(msg, k.unmark):
		clear(m.marks)
	case key.Matches(msg, k.session):
		if id := m.session(s.Path); id != "" {
			return func() tea.Msg { return pane.OpenMsg{Session: id} }
		}
		return pane.Notice(pane.Info, "it isn't imported: i does that")
	}
	return nil
}

// escape closes what was opened last.
func (m *Importer) escape() tea.Cmd {
	switch {
	case m.reader.open:
		m.reader.open = false
	case m.batch.running():
		m.batch.stopped = true
		return nil
	case m.hits.shown():
		m.hits.clear()
		m.query.Reset()
		_ = m.source.Search("", nil, nil) // ends one that is under way
	case m.filter.Value() != "":
		m.filter.Reset()
		m.arrange()
		return m.refilter()
	default:
		return nil
	}
	m.arrange()
	return m.moved()
}

func (m *Importer) startTyping(what taking, in *textinput.Model) tea.Cmd {
	m.taking = what
	in.CursorEnd()
	m.arrange()
	return in.Focus()
}

func (m *Importer) typedKey(msg tea.KeyPressMsg) tea.Cmd {
	k := m.keys
	switch {
	case key.Matches(msg, k.close):
		what := m.taking
		m.untype()
		if what == takingFilter {
			m.filter.Reset()
			m.arrange()
			return m.refilter()
		}
		m.arrange()
		return nil
	case key.Matches(msg, k.accept):
		what := m.taking
		m.untype()
		m.arrange()
		if what == takingSearch {
			return m.search()
		}
		return m.moved()
	case msg.Code == tea.KeyUp, msg.Code == tea.KeyDown, msg.Code == tea.KeyPgUp, msg.Code == tea.KeyPgDown:
		m.table().Update(msg)
		return m.moved()
	}
	msg.Text = safe.Line(msg.Text)
	return m.typed(msg)
}

func (m *Importer) untype() {
	m.taking = takingNothing
	m.filter.Blur()
	m.query.Blur()
}

func (m *Importer) typed(msg tea.Msg) tea.Cmd {
	var cmd tea.Cmd
	if m.taking == takingSearch {
		m.query, cmd = m.query.Update(msg)
		return cmd
	}
	before := m.filter.Value()
	m.filter, cmd = m.filter.Update(msg)
	if m.filter.Value() == before {
		return cmd
	}
	// What fits best is on top, and is what one looks for.
	m.selected = ""
	return tea.Batch(cmd, m.refilter())
}

func (m *Importer) mouse(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.MouseClickMsg:
		if m.listed() && msg.X < m.listWidth() {
			msg.Y -= m.top()
			m.table().Update(msg)
			return m.moved()
		}
	case tea.MouseWheelMsg:
		if !m.listed() || msg.X >= m.listWidth() {
			m.reader.wheel(msg)
			return nil
		}
		m.table().Update(msg)
		return m.moved()
	}
	return nil
}

// project is what files are marked by together.
func project(cwd string) string { return strings.TrimRight(cwd, "/") }
