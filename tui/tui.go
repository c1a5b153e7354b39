package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	tea "charm.land/bubbletea/v2"

	"patio/engine/api"
	"patio/tui/chat"
	"patio/tui/doctor"
	"patio/tui/launcher"
)

// Options configure the UI.
type Options struct {
	Backend Backend
	// Session is opened at once when it isn't empty: patio attach.
	Session  string
	ReadOnly bool
	// Workspace is where patio was started: new sessions begin there, exports go there.
	Workspace string
	Profile   string // of the configuration file, for new sessions
	Profiles  []string
	Theme     string // empty: the one chosen last, else by the terminal's background
	ThemesDir string // of the user's own themes
	StateDir  string // for what the UI remembers
	Mouse     bool
	Keys      map[string][]string // action to keys, instead of the default ones
	Environ   []string
	Input     io.Reader
	Output    io.Writer
	Now       func() time.Time

	inputs chat.InputStore
}

// New returns the UI as a model for a program, and what ends all that it started.
func New(ctx context.Context, o Options) (tea.Model, func(), error) {
	m, err := build(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	return m, m.close, nil
}

func build(ctx context.Context, o Options) (*model, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Theme == "" {
		o.Theme = keptTheme(o.StateDir)
	}
	o.inputs = chat.NewInputFile(filepath.Join(o.StateDir, "inputs"))
	m, err := newModel(ctx, o)
	if err != nil {
		return nil, api.Errorf(api.CodeConfig, "`patio config edit` opens the file", "keys: %w", err)
	}
	return m, nil
}

// Run shows the UI until it is left, and returns how many sessions go on. Nothing that it
// started is left behind.
func Run(ctx context.Context, o Options) (live int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m, err := build(ctx, o)
	if err != nil {
		return 0, err
	}
	defer func() { cancel(); m.close() }()
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(o.Input), tea.WithOutput(o.Output), tea.WithEnvironment(o.Environ))
	if _, err := p.Run(); err != nil && !errors.Is(err, tea.ErrInterrupted) {
		return 0, fmt.Errorf("terminal UI: %w", err)
	}
	return m.live, nil
}

// planner gives the launcher what it asks for.
type planner struct {
	ctx     context.Context
	backend Backend
}

// Plan implements launcher.Planner.
func (p *planner) Plan(r launcher.Request, done func(api.Session, error) tea.Msg) tea.Cmd {
	return call(p.ctx, callTimeout, func(ctx context.Context) (api.Session, error) { return p.backend.Launches.Plan(ctx, r) }, done)
}

// Start implements launcher.Planner.
func (p *planner) Start(r launcher.Request, done func(api.Session, error) tea.Msg) tea.Cmd {
	return call(p.ctx, 0, func(ctx context.Context) (api.Session, error) { return p.backend.Launches.Start(ctx, r) }, done)
}

// Models implements launcher.Planner.
func (p *planner) Models(done func([]string, error) tea.Msg) tea.Cmd {
	return call(p.ctx, callTimeout, p.backend.Launches.Models, done)
}

// checker gives the doctor its findings.
type checker struct {
	ctx     context.Context
	backend Backend
}

// Check implements doctor.Checker.
func (c *checker) Check(done func([]doctor.Finding, error) tea.Msg) tea.Cmd {
	return call(c.ctx, 0, c.backend.Check, done)
}
