package tui

import (
	"context"
	"slices"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"patio/engine/api"
	"patio/themes"
	"patio/tui/chat"
	"patio/tui/home"
	"patio/tui/pane"
)

// listEvery is how often the sessions are asked for their state; their figures are made
// once a second.
const listEvery = time.Second

// tickEvery is the beat of spinners and of what is polled by visible views.
const tickEvery = 100 * time.Millisecond

type (
	listedMsg struct {
		sessions []api.Session
		err      error
	}
	listNowMsg struct{ turn int }
	tickMsg    struct{}
	frameMsg   struct{}
	doneMsg    struct{ text string }

	previewedMsg struct {
		session string
		lines   []string
	}
)

// list asks for the sessions.
func (m *model) list() tea.Cmd {
	return call(m.ctx, callTimeout, m.o.Backend.Sessions.List, func(all []api.Session, err error) tea.Msg { return listedMsg{all, err} })
}

func (m *model) tick() tea.Cmd {
	return tea.Tick(tickEvery, func(time.Time) tea.Msg { return tickMsg{} })
}

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case fed:
		return m, m.fed(msg)
	case frameMsg:
		m.ticking = false
		m.stale = true
		return m, nil
	case tickMsg:
		return m, tea.Batch(m.tick(), m.beat())
	}
	m.stale = true
	return m, m.handle(msg)
}

// beat animates what is visible. It redraws only when something can have changed.
func (m *model) beat() tea.Cmd {
	if t, ok := m.pane().(pane.Ticker); ok {
		t.Tick()
		m.stale = true
		return m.pane().Update(pane.TickMsg{})
	}
	if m.notice.text != "" && !m.notice.visible(m.o.Now()) {
		m.notice.text = ""
		m.stale = true
	}
	return nil
}

// fed applies a batch of a journal. A batch that comes within a frame of the last redraw
// is drawn with those that follow it.
func (m *model) fed(msg fed) tea.Cmd {
	v := m.views[msg.feed.session]
	if v == nil || v.feed != msg.feed {
		return nil
	}
	v.apply(msg.records)
	var cmds []tea.Cmd
	if msg.ended {
		v.ended, v.err = true, msg.err
		cmds = append(cmds, m.list())
	} else {
		cmds = append(cmds, msg.feed.wait())
	}
	if v == m.shown && m.screen() == screenSession {
		if since := m.o.Now().Sub(m.drawn); since >= frame {
			m.stale = true
		} else if !m.ticking {
			m.ticking = true
			cmds = append(cmds, tea.Tick(frame-since, func(time.Time) tea.Msg { return frameMsg{} }))
		}
	}
	return tea.Batch(cmds...)
}

func (m *model) handle(msg tea.Msg) tea.Cmd {
	now := m.o.Now()
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.resize()
		return nil
	case tea.BackgroundColorMsg:
		if !m.chosen && !msg.IsDark() {
			m.setTheme(themes.DefaultLight)
		}
		return nil
	case listedMsg:
		return m.takeList(msg)
	case listNowMsg:
		if msg.turn != m.lists {
			return nil
		}
		return m.list()
	case pane.NoticeMsg:
		m.notice.show(now, msg.Level, msg.Text)
		return nil
	case pane.ErrorMsg:
		m.notice.fail(now, msg.Err)
		return nil
	case doneMsg:
		m.notice.show(now, pane.Good, msg.text)
		return m.list()
	case pane.CopyMsg:
		m.notice.show(now, pane.Good, "copied "+msg.What)
		return tea.SetClipboard(msg.Text)
	case pane.ConfirmMsg:
		m.overlay = &confirmation{msg}
		return nil
	case pane.ExportMsg:
		return export(m.o.Workspace, msg)
	case pane.EditMsg:
		return m.edit(msg)
	case editMsg:
		return runEditor(msg)
	case pane.OpenMsg:
		return m.open(msg.Session)
	case pane.BackMsg:
		return m.back()
	case pane.FocusMsg:
		if m.shown == nil {
			return nil
		}
		if msg.Tab != "" {
			m.shown.toTab(msg.Tab)
		}
		return m.shown.deliver(msg)
	case chat.ResumeMsg:
		return m.resume(msg.Session)
	case home.ResumeMsg:
		return m.resume(msg.Session)
	case home.PreviewMsg:
		return m.preview(msg.Session)
	case previewedMsg:
		m.home.SetPreview(msg.session, msg.lines)
		return nil
	case tea.KeyPressMsg:
		return m.key(msg)
	case tea.MouseMsg:
		return m.mouseEvent(msg)
	case tea.PasteMsg:
		if m.overlay != nil {
			cmd, _ := m.overlay.update(msg)
			return cmd
		}
		return m.pane().Update(msg)
	}
	// A message of some view's own: the view knows it, the others don't.
	var cmds []tea.Cmd
	if m.overlay != nil {
		cmd, done := m.overlay.update(msg)
		if done {
			m.overlay = nil
		}
		cmds = append(cmds, cmd)
	}
	for _, p := range m.panes() {
		cmds = append(cmds, p.Update(msg))
	}
	for _, v := range m.views {
		cmds = append(cmds, v.deliver(msg))
	}
	return tea.Batch(cmds...)
}

// takeList takes the newest list, and asks for the next.
func (m *model) takeList(msg listedMsg) tea.Cmd {
	// Lists that were asked for in between don't make the polls more.
	m.lists++
	turn := m.lists
	again := tea.Tick(listEvery, func(time.Time) tea.Msg { return listNowMsg{turn} })
	m.listErr = msg.err
	if msg.err != nil {
		m.home.SetError(msg.err)
		return again
	}
	first := !m.listed
	m.sessions, m.listed = msg.sessions, true
	m.importer.SetSessions(msg.sessions)
	m.launcher.SetSessions(msg.sessions)
	cmds := []tea.Cmd{again, m.home.SetSessions(msg.sessions)}
	for _, s := range msg.sessions {
		v := m.views[s.ID]
		if v == nil {
			continue
		}
		v.setSession(s)
		// It goes on again, or its journal couldn't be read to the end.
		if v.ended && !s.Phase.Final() {
			cmds = append(cmds, v.start(m.ctx, &m.o.Backend))
		}
	}
	for id, v := range m.views {
		if !slices.ContainsFunc(msg.sessions, func(s api.Session) bool { return s.ID == id }) && v != m.shown {
			v.feed.close()
			delete(m.views, id)
		}
	}
	opening := m.opening
	if first && m.o.Session != "" {
		opening = m.o.Session
	}
	if opening != "" {
		if !slices.ContainsFunc(msg.sessions, func(s api.Session) bool { return s.ID == opening }) {
			m.opening = ""
			return tea.Batch(append(cmds, pane.Notice(pane.Warning, "session "+opening+" isn't there any more"))...)
		}
		cmds = append(cmds, m.open(opening))
	}
	return tea.Batch(cmds...)
}

// key gives a key to the overlay, the view, or the root: in that order where a view takes
// text, and the root before the view where it doesn't.
func (m *model) key(msg tea.KeyPressMsg) tea.Cmd {
	k := m.keys
	if m.width < minWidth || m.height < minHeight {
		if key.Matches(msg, k.Interrupt, k.Quit, k.Detach) {
			return tea.Quit
		}
		return nil
	}
	if m.overlay != nil {
		box := m.overlay
		cmd, done := box.update(msg)
		if done && m.overlay == box {
			m.overlay = nil
		}
		return cmd
	}
	m.notice.text = ""
	if m.typing() {
		switch {
		case key.Matches(msg, k.Interrupt), key.Matches(msg, k.Detach):
			return m.quit()
		case key.Matches(msg, k.Suspend):
			return tea.Suspend
		case msg.String() == "ctrl+p":
			m.palette()
			return nil
		}
		return m.pane().Update(msg)
	}
	for _, a := range actions {
		if key.Matches(msg, *a.at(k)) && a.name != "back" {
			if cmd, ok := m.do(a.name); ok {
				return cmd
			}
		}
	}
	if m.screen() == screenSession {
		if s := msg.String(); len(s) == 1 && s[0] >= '1' && int(s[0]-'1') < len(m.shown.tabs) {
			m.shown.current = int(s[0] - '1')
			return nil
		}
	}
	if key.Matches(msg, k.Back) && !m.escapes() {
		return m.back()
	}
	return m.pane().Update(msg)
}

// escapes says that esc closes something in the view first.
func (m *model) escapes() bool {
	e, ok := m.pane().(pane.Escaper)
	return ok && e.Escapes()
}

// do does an action, and reports whether it means anything here.
func (m *model) do(name string) (tea.Cmd, bool) {
	switch name {
	case "interrupt", "detach", "quit":
		return m.quit(), true
	case "suspend":
		return tea.Suspend, true
	case "palette":
		m.palette()
		return nil, true
	case "help":
		m.overlay = &helpBox{groups: []helpGroup{{screenNames[m.screen()], m.pane().Keys()}, {"Everywhere", m.rootKeys()}}}
		return nil, true
	case "themes":
		m.themePicker()
		return nil, true
	case "mouse":
		return m.toggleMouse(), true
	case "back":
		return m.back(), true
	case "new":
		m.to(screenNew)
		return m.launcher.Open(), true
	case "import":
		m.to(screenImport)
		return m.importer.Open(), true
	case "doctor":
		m.to(screenDoctor)
		return m.doctor.Open(), true
	case "next-tab", "previous-tab":
		if m.screen() != screenSession {
			return nil, false
		}
		n := len(m.shown.tabs)
		step := map[string]int{"next-tab": 1, "previous-tab": n - 1}[name]
		m.shown.current = (m.shown.current + step) % n
		return nil, true
	}
	return m.doSession(name)
}

// doSession does an action about the selected session.
func (m *model) doSession(name string) (tea.Cmd, bool) {
	s, ok := m.selected()
	if !ok {
		return nil, false
	}
	switch name {
	case "attach":
		if m.screen() == screenHome {
			return m.open(s.ID), true
		}
	case "shell":
		return m.shell(s), true
	case "stop":
		return m.stop(s), true
	case "delete":
		return m.remove(s), true
	}
	return nil, false
}

func (m *model) toggleMouse() tea.Cmd {
	m.mouse = !m.mouse
	if m.mouse {
		return pane.Notice(pane.Info, "the mouse is patio's: click, wheel")
	}
	return pane.Notice(pane.Info, "the mouse is the terminal's: drag to select")
}

func (m *model) quit() tea.Cmd {
	m.live = 0
	for _, s := range m.sessions {
		if !s.Phase.Final() {
			m.live++
		}
	}
	return tea.Quit
}

// mouseEvent gives the mouse to what is under it, with coordinates of its own.
func (m *model) mouseEvent(msg tea.MouseMsg) tea.Cmd {
	if m.overlay != nil {
		cmd, done := m.overlay.update(msg)
		if done {
			m.overlay = nil
		}
		return cmd
	}
	width, height, top := m.bodySize()
	at := msg.Mouse()
	if m.screen() == screenSession && at.Y == 1 {
		if _, ok := msg.(tea.MouseClickMsg); ok {
			for i, span := range m.tabSpans {
				if at.X >= span[0] && at.X < span[1] {
					m.shown.current = i
				}
			}
		}
		return nil
	}
	if at.Y < top || at.Y >= top+height || at.X >= width {
		return nil
	}
	at.Y -= top
	var inner tea.Msg
	switch msg.(type) {
	case tea.MouseClickMsg:
		inner = tea.MouseClickMsg(at)
	case tea.MouseWheelMsg:
		inner = tea.MouseWheelMsg(at)
	case tea.MouseMotionMsg:
		inner = tea.MouseMotionMsg(at)
	case tea.MouseReleaseMsg:
		inner = tea.MouseReleaseMsg(at)
	}
	return m.pane().Update(inner)
}

// act runs something that is done to a session, and says what came of it.
func (m *model) act(f func(context.Context, string) error, session, done string) tea.Cmd {
	return call(m.ctx, 0, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx, session) },
		func(_ struct{}, err error) tea.Msg {
			if err != nil {
				return pane.ErrorMsg{Err: err}
			}
			return doneMsg{done}
		})
}
