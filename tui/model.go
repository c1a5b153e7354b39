package tui

import (
	"context"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"patio/engine/api"
	"patio/themes"
	"patio/tui/chat"
	"patio/tui/doctor"
	"patio/tui/home"
	"patio/tui/importer"
	"patio/tui/launcher"
	"patio/tui/pane"
	"patio/tui/style"
)

// The least room in which the screens can be used.
const (
	minWidth  = 60
	minHeight = 16
)

// screen is what fills the terminal.
type screen int

const (
	screenHome screen = iota
	screenSession
	screenImport
	screenNew
	screenDoctor
)

var screenNames = map[screen]string{
	screenHome: "Sessions", screenSession: "Session", screenImport: "Import", screenNew: "New session", screenDoctor: "Doctor",
}

// model is the one tea.Model. Everything below it are plain structs that it tells what to
// do.
type model struct {
	ctx     context.Context
	o       Options
	keys    *keyMap
	styles  *style.Styles
	themes  []themes.Palette
	chosen  bool // the theme was chosen, not found out
	width   int
	height  int
	mouse   bool
	stack   []screen // those to go back to; the last is shown
	overlay overlay
	notice  notice

	home     *home.Home
	files    *importer.Files
	importer *importer.Importer
	launcher *launcher.Launcher
	doctor   *doctor.Doctor

	sessions []api.Session
	listed   bool
	listErr  error
	// views are the opened sessions. They are kept, so that going back to one is at once.
	views map[string]*sessionView
	shown *sessionView

	tabSpans [][2]int
	frame    tea.View
	drawn    time.Time
	stale    bool   // the frame isn't what there is
	ticking  bool   // a redraw is on its way
	lists    int    // that came
	opening  string // a session to be opened when the next list has it
	live     int    // sessions that go on when the UI is left

}

// maxViews bounds the sessions whose tabs are kept; the ones not looked at longest go.
const maxViews = 12

func newModel(ctx context.Context, o Options) (*model, error) {
	keys, err := newKeyMap(o.Keys)
	if err != nil {
		return nil, err
	}
	palettes, problems := themes.All(o.ThemesDir)
	m := &model{
		ctx: ctx, o: o, keys: keys, themes: palettes, mouse: o.Mouse, stack: []screen{screenHome}, stale: true,
		views: map[string]*sessionView{}, width: minWidth, height: minHeight,
	}
	if problems != nil {
		m.notice.show(o.Now(), pane.Warning, problems.Error())
	}
	m.home = home.New(o.Now)
	m.files = importer.NewFiles(ctx, o.Backend.Files, o.Backend.Import)
	m.importer = importer.New(m.files, o.Now)
	m.launcher = launcher.New(&planner{ctx: ctx, backend: o.Backend}, launcher.Options{Workspace: o.Workspace, Profile: o.Profile, Profiles: o.Profiles, Now: o.Now})
	m.doctor = doctor.New(&checker{ctx: ctx, backend: o.Backend})
	name := themes.DefaultDark
	if o.Theme != "" {
		name, m.chosen = o.Theme, true
	}
	if !m.setTheme(name) {
		m.setTheme(themes.DefaultDark)
		m.notice.show(o.Now(), pane.Warning, "no theme "+o.Theme+": t lists them")
	}
	return m, nil
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd {
	cmds := []tea.Cmd{m.list(), m.tick()}
	if !m.chosen {
		cmds = append(cmds, tea.RequestBackgroundColor)
	}
	return tea.Batch(cmds...)
}

func (m *model) panes() []pane.Pane {
	return []pane.Pane{m.home, m.importer, m.launcher, m.doctor}
}

// setTheme changes the colours of everything, and reports whether there is such a theme.
func (m *model) setTheme(name string) bool {
	for _, p := range m.themes {
		if p.Name != name {
			continue
		}
		m.styles = style.New(p)
		for _, v := range m.panes() {
			v.SetStyles(m.styles)
		}
		for _, v := range m.views {
			v.setStyles(m.styles)
		}
		m.stale = true
		return true
	}
	return false
}

func (m *model) screen() screen { return m.stack[len(m.stack)-1] }

// pane is the view that has the keys.
func (m *model) pane() pane.Pane {
	switch m.screen() {
	case screenSession:
		return m.shown.shown()
	case screenImport:
		return m.importer
	case screenNew:
		return m.launcher
	case screenDoctor:
		return m.doctor
	case screenHome:
	}
	return m.home
}

func (m *model) typing() bool {
	t, ok := m.pane().(pane.Typist)
	return ok && t.Typing()
}

// bodySize is the room of the views, and where it begins.
func (m *model) bodySize() (width, height, top int) {
	top = 1
	if m.screen() == screenSession {
		top = 2
	}
	return m.width, m.height - top - 1, top
}

func (m *model) resize() {
	for _, p := range m.panes() {
		p.SetSize(m.width, m.height-2)
	}
	for _, v := range m.views {
		v.setSize(m.width, m.height-3)
	}
	m.stale = true
}

// to shows a screen.
func (m *model) to(s screen) {
	if m.screen() != s {
		m.stack = append(m.stack, s)
	}
	m.stale = true
}

// back leaves a screen; the first one stays.
func (m *model) back() tea.Cmd {
	if m.o.Session != "" && len(m.stack) == 2 && m.screen() == screenSession {
		return nil // attached: the way out is ctrl-]
	}
	if len(m.stack) > 1 {
		m.stack = m.stack[:len(m.stack)-1]
	}
	m.stale = true
	return nil
}

// open shows a session, and reads its journal from the start when it wasn't open. One that
// isn't known yet may have been made since the last list.
func (m *model) open(id string) tea.Cmd {
	var s api.Session
	for _, known := range m.sessions {
		if known.ID == id {
			s = known
		}
	}
	if s.ID == "" {
		m.opening = id
		return m.list()
	}
	m.opening = ""
	v := m.views[id]
	var cmd tea.Cmd
	if v == nil {
		m.evict()
		v = newSessionView(m.ctx, &m.o.Backend, s, chat.Options{Now: m.o.Now, ReadOnly: m.o.ReadOnly, Inputs: m.o.inputs})
		v.setStyles(m.styles)
		m.views[id] = v
		cmd = v.start(m.ctx, &m.o.Backend)
	}
	v.used = m.o.Now()
	m.shown = v
	v.setSize(m.width, m.height-3)
	m.to(screenSession)
	return cmd
}

// evict closes the view that wasn't looked at longest when there are too many.
func (m *model) evict() {
	if len(m.views) < maxViews {
		return
	}
	var oldest *sessionView
	for _, v := range m.views {
		if v != m.shown && (oldest == nil || v.used.Before(oldest.used)) {
			oldest = v
		}
	}
	if oldest != nil {
		oldest.feed.close()
		delete(m.views, oldest.session.ID)
	}
}

// close ends what the model started.
func (m *model) close() {
	for _, v := range m.views {
		v.feed.close()
	}
	if err := m.importer.Close(); err != nil {
		// An index that couldn't be written is made again.
		m.notice.fail(m.o.Now(), err)
	}
}

// selected is the session that keys such as stop are about.
func (m *model) selected() (api.Session, bool) {
	switch m.screen() {
	case screenHome:
		return m.home.Selected()
	case screenSession:
		return m.shown.session, true
	case screenImport, screenNew, screenDoctor:
	}
	return api.Session{}, false
}

// rootKeys are the root's bindings that do something now.
func (m *model) rootKeys() []key.Binding {
	k := m.keys
	if m.typing() {
		return []key.Binding{k.Palette, k.Detach, k.Interrupt}
	}
	switch m.screen() {
	case screenHome:
		b := []key.Binding{k.New, k.Import, k.Palette, k.Help, k.Themes, k.Doctor, k.Mouse, k.Quit}
		if s, ok := m.home.Selected(); ok {
			own := []key.Binding{k.Attach}
			if s.Phase.Final() {
				own = append(own, k.Delete)
			} else {
				own = append(own, k.Shell, k.Stop)
			}
			b = append(own, b...)
		}
		return b
	case screenSession:
		b := []key.Binding{k.NextTab, k.PreviousTab, k.Back, k.Help, k.Palette}
		if m.shown.session.Phase.Final() {
			b = append(b, k.Delete)
		} else {
			b = append(b, k.Shell, k.Stop)
		}
		return append(b, k.Themes, k.Mouse, k.Detach, k.Quit)
	case screenImport, screenNew, screenDoctor:
	}
	return []key.Binding{k.Back, k.Help, k.Palette, k.Themes, k.Mouse, k.Quit}
}
