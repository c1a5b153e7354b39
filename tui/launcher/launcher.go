// Package launcher is the screen that starts a session, and shows before what it would get.
package launcher

import (
	"context"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"patio/engine/api"
	"patio/tui/pane"
	"patio/tui/safe"
	"patio/tui/style"
)

// Request is a session to be. Empty fields have their defaults.
type Request struct {
	Workspace string
	Name      string
	Model     string // as --model takes it
	Thinking  string
	Profile   string
	Allow     []string // as --allow takes them
	Limits    []string // as --limit takes them
	Prompt    string   // what is said first, if anything
}

// Planner plans and starts sessions. Each method returns at once with a command that does
// the work outside of Update.
type Planner interface {
	// Plan says what a session would get, and touches nothing.
	Plan(r Request, done func(api.Session, error) tea.Msg) tea.Cmd
	// Start starts a session, and is done when it is ready.
	Start(r Request, done func(api.Session, error) tea.Msg) tea.Cmd
	// Models lists the models that there are keys for.
	Models(done func([]string, error) tea.Msg) tea.Cmd
}

// Options are what the form begins with.
type Options struct {
	Now       func() time.Time
	Workspace string
	Profile   string
	Profiles  []string
	// Directories completes a directory's path; nil reads the disk.
	Directories func(ctx context.Context, typed string) []string
}

// settle is how long the form rests before it is planned.
const settle = 250 * time.Millisecond

type (
	settled struct {
		launcher *Launcher
		change   int
	}
	planned struct {
		launcher *Launcher
		change   int
		session  api.Session
		err      error
	}
	started struct {
		launcher *Launcher
		start    int
		session  api.Session
		err      error
	}
	modelled struct {
		launcher *Launcher
		models   []string
		err      error
	}
	completed struct {
		launcher *Launcher
		typed    string
		found    []string
	}
)

// Launcher is a form with the plan beside it.
type Launcher struct {
	planner Planner
	options Options
	home    string // of the user, for ~
	styles  *style.Styles
	width   int
	height  int
	ticks   int

	fields     []*field
	focus      int
	candidates candidates
	eager      bool // tab completes, for something was typed into the field
	models     []string
	modelsErr  error
	asked      bool // models were asked for

	change   int    // generation of what is planned
	asPlan   string // what of the form the plan is of
	planning bool
	plan     *api.Session
	planErr  error

	start    int // generation of the start
	starting bool
	left     bool // the screen was left while it starts
	since    time.Time
	phase    api.Phase
	startErr error

	whole bool // the plan has all the room, where that is narrow
	top   int  // first line of the plan
	lines planLines
	keys  keys
}

type keys struct{ start, next, previous, up, down, complete, back, whole, pageUp, pageDown key.Binding }

// New returns the screen. Open begins to plan.
func New(p Planner, o Options) *Launcher {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Directories == nil {
		o.Directories = directories
	}
	l := &Launcher{planner: p, options: o, home: homeDir(), fields: newFields()}
	bind := func(help, desc string, names ...string) key.Binding {
		return key.NewBinding(key.WithKeys(names...), key.WithHelp(help, desc))
	}
	l.keys = keys{
		start: bind("enter", "start", "enter", "ctrl+s"), next: bind("tab", "next", "tab"), previous: bind("shift+tab", "previous", "shift+tab"),
		up: bind("↑", "up", "up"), down: bind("↓", "down", "down"), complete: bind("tab", "complete", "tab"), back: bind("esc", "back", "esc"),
		whole: bind("ctrl+o", "whole plan", "ctrl+o"), pageUp: bind("pgup", "plan up", "pgup"), pageDown: bind("pgdn", "plan down", "pgdown"),
	}
	l.fields[fieldWorkspace].set(o.Workspace)
	l.fields[fieldProfile].set(o.Profile)
	l.fields[0].input.Focus()
	return l
}

// Open plans what the form says, for the machine may have changed since.
func (l *Launcher) Open() tea.Cmd {
	l.left = false
	if l.starting {
		return nil
	}
	l.startErr = nil
	cmds := []tea.Cmd{l.replan()}
	if !l.asked || l.modelsErr != nil {
		l.asked = true
		cmds = append(cmds, l.planner.Models(func(models []string, err error) tea.Msg { return modelled{l, models, err} }))
	}
	return tea.Batch(cmds...)
}

// SetSessions tells of the sessions there are: one that is being started is among them,
// in the phase that it is in.
func (l *Launcher) SetSessions(all []api.Session) {
	if !l.starting {
		return
	}
	var newest *api.Session
	for i := range all {
		s := &all[i]
		// The clocks that made both times are one, but the session's has whole milliseconds.
		if s.Phase.Final() || s.Created.Before(l.since.Add(-time.Second)) || l.plan != nil && s.Workspace != l.plan.Workspace {
			continue
		}
		if newest == nil || s.Created.After(newest.Created) {
			newest = s
		}
	}
	if newest != nil {
		l.phase = newest.Phase
	}
}

// SetSize implements pane.Pane.
func (l *Launcher) SetSize(width, height int) {
	l.width, l.height = width, height
	for _, f := range l.fields {
		f.input.SetWidth(max(l.formWidth()-labelWidth-4, 4))
	}
}

// SetStyles implements pane.Pane.
func (l *Launcher) SetStyles(s *style.Styles) {
	l.styles = s
	for _, f := range l.fields {
		f.setStyles(s)
	}
}

// Tick implements pane.Ticker.
func (l *Launcher) Tick() { l.ticks++ }

// Typing implements pane.Typist: the form takes text as long as it is shown.
func (l *Launcher) Typing() bool { return true }

// Escapes implements pane.Escaper.
func (l *Launcher) Escapes() bool { return true }

// Cursor implements pane.Cursored.
func (l *Launcher) Cursor() *tea.Cursor {
	if l.starting || l.whole {
		return nil
	}
	c := l.fields[l.focus].input.Cursor()
	y, ok := l.fieldLine(l.focus)
	if c == nil || !ok {
		return nil
	}
	c.X = min(c.X+inputLeft, max(l.formWidth()-1, 0))
	c.Y = y
	return c
}

// Keys implements pane.Pane.
func (l *Launcher) Keys() []key.Binding {
	k := l.keys
	if l.starting {
		return []key.Binding{k.back}
	}
	b := []key.Binding{k.start}
	if l.completes() {
		b = append(b, k.complete)
	} else {
		b = append(b, k.next)
	}
	b = append(b, k.previous, k.up, k.down)
	if !l.beside() {
		b = append(b, k.whole)
	}
	return append(b, k.pageDown, k.pageUp, k.back)
}

// Update implements pane.Pane.
func (l *Launcher) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case settled:
		if msg.launcher == l && msg.change == l.change {
			return l.askPlan()
		}
	case planned:
		if msg.launcher == l && msg.change == l.change {
			l.planning, l.planErr = false, msg.err
			if msg.err == nil {
				l.plan = &msg.session
			}
			l.lines.stale()
		}
	case started:
		if msg.launcher == l && msg.start == l.start {
			return l.takeStart(msg)
		}
	case modelled:
		if msg.launcher == l {
			l.models, l.modelsErr = msg.models, msg.err
			if l.focus == fieldModel {
				return l.suggest()
			}
		}
	case completed:
		if msg.launcher == l && l.focus == fieldWorkspace && msg.typed == l.fields[fieldWorkspace].value() {
			l.candidates.offer(msg.typed, msg.found)
		}
	case tea.PasteMsg:
		return l.typed(tea.PasteMsg{Content: safe.Line(clip(msg.Content, maxText))})
	case tea.KeyPressMsg:
		return l.pressed(msg)
	case tea.MouseClickMsg:
		for i := range l.fields {
			if y, ok := l.fieldLine(i); ok && y == msg.Y && msg.X < l.formWidth() && !l.whole {
				return l.to(i)
			}
		}
	case tea.MouseWheelMsg:
		if msg.Button == tea.MouseWheelUp {
			l.scroll(-3)
		}
		if msg.Button == tea.MouseWheelDown {
			l.scroll(3)
		}
	}
	return nil
}

func (l *Launcher) pressed(msg tea.KeyPressMsg) tea.Cmd {
	k := l.keys
	switch {
	case key.Matches(msg, k.back):
		switch {
		case l.whole:
			l.whole = false
		case l.candidates.open():
			l.candidates.close()
		default:
			l.left = true
			return pane.Back
		}
		return nil
	case key.Matches(msg, k.pageDown):
		l.scroll(max(l.planHeight()-1, 1))
		return nil
	case key.Matches(msg, k.pageUp):
		l.scroll(-max(l.planHeight()-1, 1))
		return nil
	case key.Matches(msg, k.whole) && !l.beside():
		l.whole = !l.whole
		l.top = 0
		return nil
	case l.starting:
		return nil
	case l.whole:
		switch {
		case key.Matches(msg, k.down):
			l.scroll(1)
		case key.Matches(msg, k.up):
			l.scroll(-1)
		case key.Matches(msg, k.start):
			return l.begin()
		}
		return nil
	case key.Matches(msg, k.start):
		// One that was chosen from the list is meant; the first press takes it.
		if msg.Code == tea.KeyEnter && l.candidates.chosen() {
			return l.complete()
		}
		return l.begin()
	case key.Matches(msg, k.complete) && l.completes():
		return l.complete()
	case key.Matches(msg, k.next):
		return l.to((l.focus + 1) % len(l.fields))
	case key.Matches(msg, k.previous):
		return l.to((l.focus + len(l.fields) - 1) % len(l.fields))
	case key.Matches(msg, k.down):
		if l.candidates.open() {
			l.candidates.move(1)
			return nil
		}
		return l.to(min(l.focus+1, len(l.fields)-1))
	case key.Matches(msg, k.up):
		if l.candidates.chosen() {
			l.candidates.move(-1)
			return nil
		}
		return l.to(max(l.focus-1, 0))
	}
	msg.Text = safe.Line(msg.Text)
	return l.typed(msg)
}

// typed gives text to the field that has the focus.
func (l *Launcher) typed(msg tea.Msg) tea.Cmd {
	if l.starting || l.whole {
		return nil
	}
	f := l.fields[l.focus]
	before := f.input.Value()
	var cmd tea.Cmd
	f.input, cmd = f.input.Update(msg)
	if f.input.Value() == before {
		return cmd
	}
	l.startErr = nil
	l.eager = true
	return tea.Batch(cmd, l.changed(), l.suggest())
}

// to moves the focus.
func (l *Launcher) to(i int) tea.Cmd {
	l.fields[l.focus].input.Blur()
	l.focus, l.eager = i, false
	l.candidates.close()
	return tea.Batch(l.fields[i].input.Focus(), l.suggest())
}

// completes says that tab completes. Who only goes through the form doesn't fill it in.
func (l *Launcher) completes() bool {
	return l.candidates.open() && (l.eager || l.candidates.chosen())
}

// complete takes a candidate into its field.
func (l *Launcher) complete() tea.Cmd {
	l.eager = false
	l.fields[l.focus].set(l.candidates.take())
	return tea.Batch(l.changed(), l.suggest())
}

// suggest offers what fits what is typed.
func (l *Launcher) suggest() tea.Cmd {
	typed := l.fields[l.focus].value()
	switch l.focus {
	case fieldWorkspace:
		find := l.options.Directories
		return func() tea.Msg {
			ctx, cancel := context.WithTimeout(context.Background(), completeTimeout)
			defer cancel()
			return completed{l, typed, find(ctx, typed)}
		}
	case fieldModel:
		l.candidates.offer(typed, matching(typed, l.models))
	case fieldThinking:
		l.candidates.offer(typed, matching(typed, thinkingLevels))
	case fieldProfile:
		l.candidates.offer(typed, matching(typed, l.options.Profiles))
	case fieldLimits:
		l.candidates.offer(typed, limitKeys(typed))
	default:
		l.candidates.close()
	}
	return nil
}

// Request is what the form says.
func (l *Launcher) Request() Request {
	value := func(i int) string { return strings.TrimSpace(l.fields[i].value()) }
	return Request{
		Workspace: expand(value(fieldWorkspace), l.home), Name: value(fieldName), Model: value(fieldModel), Thinking: value(fieldThinking),
		Profile: value(fieldProfile), Allow: words(value(fieldAllow)), Limits: words(value(fieldLimits)), Prompt: value(fieldPrompt),
	}
}

// changed plans anew when the form has rested, if the plan depends on what was changed.
func (l *Launcher) changed() tea.Cmd {
	if l.relevant() == l.asPlan {
		return nil
	}
	l.change++
	l.planning = true
	change := l.change
	return tea.Tick(settle, func(time.Time) tea.Msg { return settled{l, change} })
}

// relevant is what of the form makes a plan.
func (l *Launcher) relevant() string {
	var b strings.Builder
	for _, i := range []int{fieldWorkspace, fieldModel, fieldThinking, fieldProfile, fieldAllow, fieldLimits} {
		b.WriteString(strings.TrimSpace(l.fields[i].value()) + "\x00")
	}
	return b.String()
}

func (l *Launcher) replan() tea.Cmd {
	l.change++
	return l.askPlan()
}

func (l *Launcher) askPlan() tea.Cmd {
	l.planning, l.asPlan = true, l.relevant()
	change := l.change
	return l.planner.Plan(l.Request(), func(s api.Session, err error) tea.Msg { return planned{l, change, s, err} })
}

// begin starts the session.
func (l *Launcher) begin() tea.Cmd {
	l.candidates.close()
	l.start++
	l.starting, l.startErr, l.since, l.phase = true, nil, l.options.Now(), ""
	start := l.start
	return l.planner.Start(l.Request(), func(s api.Session, err error) tea.Msg { return started{l, start, s, err} })
}

func (l *Launcher) takeStart(msg started) tea.Cmd {
	l.starting = false
	if msg.err != nil {
		l.startErr = msg.err
		if l.left {
			return pane.Failed(msg.err)
		}
		return nil
	}
	// The next one may be like it, but has another name and another task.
	l.fields[fieldName].set("")
	l.fields[fieldPrompt].set("")
	id := msg.session.ID
	if l.left {
		// Whoever went on to something else isn't torn away from it.
		return pane.Notice(pane.Good, "session "+id+" is ready")
	}
	return tea.Sequence(pane.Back, func() tea.Msg { return pane.OpenMsg{Session: id} })
}
