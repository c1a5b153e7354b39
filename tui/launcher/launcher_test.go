package launcher

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"patio/engine/api"
	"patio/themes"
	"patio/tui/pane"
	"patio/tui/panetest"
	"patio/tui/style"
)

// desk is a Planner that answers what it is told.
type desk struct {
	plan     api.Session
	planErr  error
	startErr error
	planned  []Request
	started  []Request
	models   []string
	modelErr error
	now      time.Time
}

func (d *desk) Plan(r Request, done func(api.Session, error) tea.Msg) tea.Cmd {
	d.planned = append(d.planned, r)
	return func() tea.Msg { return done(d.plan, d.planErr) }
}

func (d *desk) Start(r Request, done func(api.Session, error) tea.Msg) tea.Cmd {
	d.started = append(d.started, r)
	return func() tea.Msg { return done(api.Session{ID: "k3v9qa2d"}, d.startErr) }
}

func (d *desk) Models(done func([]string, error) tea.Msg) tea.Cmd {
	return func() tea.Msg { return done(d.models, d.modelErr) }
}

func newDesk() *desk {
	return &desk{now: panetest.Noon, models: []string{"anthropic/claude-opus-4-5", "anthropic/claude-sonnet-4-5", "openai/gpt-5.2", "demo/tour"}, plan: api.Session{
		Workspace: "/work/shop", Model: api.Model{Provider: "anthropic", ID: "claude-sonnet-4-5", Thinking: "medium"},
		Plan: api.Plan{
			Image: api.ImageRef{Digest: "sha256:2c1f0d5e9a77", Pi: "0.84.2", Node: "22.12.0"},
			Mounts: []api.Mount{
				panetest.Mount("/work/shop", api.ReadWrite, "the workspace"), panetest.Mount("/work/shop/.git/hooks", api.ReadOnly, "git runs what is in it on the host"),
				{Source: "/work/state/pi", Destination: "/root/.pi", Mode: api.ReadWrite, Reason: "Pi's own session file"},
			},
			Egress: []api.Rule{
				{Host: "api.anthropic.com", Port: 443, Action: api.ActionAllow, Source: "model"},
				{Host: "registry.npmjs.org", Port: 443, Action: api.ActionAllow, Source: "flag"},
				{Host: "*.example.org", Port: 0, Action: api.ActionDeny, Source: "config"},
			},
			Env:    []api.EnvVar{{Name: "ANTHROPIC_API_KEY", Secret: true, Reason: "the model's key"}, {Name: "HOME", Value: "/root"}, {Name: "TERM", Value: "xterm"}, {Name: "LANG", Value: "C.UTF-8"}},
			Limits: api.Limits{Memory: 2 << 30, CPUs: 2, Pids: 512},
			Enforced: []api.LimitEntry{
				{Name: "memory", Requested: "2g", Enforced: true, By: "cgroup v2"}, {Name: "cpus", Requested: "2", By: "none", Why: "the cpu controller isn't delegated"},
			},
			LeftOut: []api.LeftOut{{Path: "/work/shop/.env.production", Reason: "it looks like a secret"}},
			Notes:   []string{"The workspace is no git repository: what Pi changes can't be shown as a diff."},
		},
	}}
}

func (d *desk) open(w, h int, s *style.Styles) *Launcher {
	l := New(d, Options{
		Now: func() time.Time { return d.now }, Workspace: "/work/shop", Profiles: []string{"work", "quick"},
		Directories: func(_ context.Context, typed string) []string { return []string{typed + "cart/", typed + "docs/"} },
	})
	l.home = "/home/ada"
	l.SetStyles(s)
	l.SetSize(w, h)
	do(l, l.Open())
	return l
}

// do gives a pane the messages that a command leads to. Those that wait are left out.
func do(l *Launcher, cmd tea.Cmd) {
	for _, msg := range run(cmd) {
		do(l, l.Update(msg))
	}
}

// run runs a command and gives its messages, but for those of a while that is over.
func run(cmd tea.Cmd) []tea.Msg {
	return slices.DeleteFunc(panetest.Run(cmd), func(msg tea.Msg) bool { _, ok := msg.(settled); return ok })
}

// rest is what happens when the form has rested.
func rest(l *Launcher) { do(l, l.Update(settled{l, l.change})) }

func TestGolden(t *testing.T) {
	for name, open := range map[string]func(d *desk, w, h int, s *style.Styles) *Launcher{
		"planned": func(d *desk, w, h int, s *style.Styles) *Launcher { return d.open(w, h, s) },
		"planning": func(d *desk, w, h int, s *style.Styles) *Launcher {
			l := New(d, Options{Now: func() time.Time { return panetest.Noon }, Workspace: "/work/shop"})
			l.SetStyles(s)
			l.SetSize(w, h)
			l.Open()
			return l
		},
		"whole": func(d *desk, w, h int, s *style.Styles) *Launcher {
			l := d.open(w, h, s)
			panetest.Press(l, "ctrl+o", "down", "down")
			return l
		},
		"completing": func(d *desk, w, h int, s *style.Styles) *Launcher {
			l := d.open(w, h, s)
			panetest.Press(l, "tab", "tab", "cl", "down", "down")
			return l
		},
		"refused": func(d *desk, w, h int, s *style.Styles) *Launcher {
			d.planErr = api.Errorf(api.CodeUsage, "name a directory in it, such as /home/ada/src", "/home/ada is a home directory: it is refused as a workspace")
			return d.open(w, h, s)
		},
		"starting": func(d *desk, w, h int, s *style.Styles) *Launcher {
			l := d.open(w, h, s)
			panetest.Press(l, "enter")
			d.now = panetest.Noon.Add(3 * time.Second)
			l.SetSessions([]api.Session{{ID: "k3v9qa2d", Phase: api.PhasePreparing, Workspace: "/work/shop", Created: panetest.Noon}})
			return l
		},
		"start-failed": func(d *desk, w, h int, s *style.Styles) *Launcher {
			d.startErr = api.Errorf(api.CodeMissing, "`patio image build` makes one", "there is no image")
			l := d.open(w, h, s)
			do(l, panetest.Press(l, "enter"))
			return l
		},
	} {
		panetest.Golden(t, name, "\n", func(w, h int, s *style.Styles) string { return open(newDesk(), w, h, s).View() })
	}
}

func TestPlanFollowsTheForm(t *testing.T) {
	d := newDesk()
	l := d.open(120, 40, panetest.Styles(t, themes.DefaultDark))
	require.Len(t, d.planned, 1)
	require.Equal(t, Request{Workspace: "/work/shop"}, d.planned[0])

	panetest.Press(l, "tab", "do it", "tab")
	require.False(t, l.planning, "a prompt changes no plan")
	panetest.Press(l, "gpt")
	require.True(t, l.planning)
	late := settled{l, l.change - 1}
	require.Nil(t, l.Update(late), "it was typed on")
	rest(l)
	require.Len(t, d.planned, 2)
	require.Equal(t, "gpt", d.planned[1].Model)
	require.False(t, l.planning)

	// An answer to what the form said before doesn't count.
	slow := l.replan()
	d.planErr = errors.New("late")
	panetest.Press(l, "x")
	l.Update(slow())
	require.NoError(t, l.planErr)
	require.True(t, l.planning)
	rest(l)
	require.Error(t, l.planErr)
	require.Contains(t, panetest.Plain(l.View()), "late")
	d.planErr = nil
	do(l, l.Open())
	require.NoError(t, l.planErr)
}

func TestRequest(t *testing.T) {
	d := newDesk()
	l := d.open(120, 40, panetest.Styles(t, themes.DefaultDark))
	l.fields[fieldWorkspace].set("~/src")
	l.fields[fieldAllow].set(" a.example.org, b.example.org:8443 ")
	l.fields[fieldLimits].set("memory=4G,pids=9")
	l.fields[fieldProfile].set("work")
	l.fields[fieldThinking].set("high")
	l.fields[fieldName].set(" docs ")
	l.fields[fieldPrompt].set("say hello")
	require.Equal(t, Request{
		Workspace: "/home/ada/src", Name: "docs", Thinking: "high", Profile: "work",
		Allow: []string{"a.example.org", "b.example.org:8443"}, Limits: []string{"memory=4G", "pids=9"}, Prompt: "say hello",
	}, l.Request())
}

func TestStart(t *testing.T) {
	d := newDesk()
	l := d.open(120, 40, panetest.Styles(t, themes.DefaultDark))
	panetest.Press(l, "tab", "do it")
	cmd := panetest.Press(l, "enter")
	require.True(t, l.starting)
	require.Nil(t, panetest.Press(l, "enter"), "once")
	require.Equal(t, "do it", d.started[0].Prompt)
	panetest.Press(l, "typed into nothing")
	require.Equal(t, "do it", l.fields[fieldPrompt].value())
	require.Nil(t, l.Cursor())

	l.SetSessions([]api.Session{
		{ID: "other", Phase: api.PhaseReady, Workspace: "/work/shop", Created: panetest.Noon.Add(-time.Hour)},
		{ID: "elsewhere", Phase: api.PhaseReady, Workspace: "/work/db", Created: panetest.Noon},
		{ID: "k3v9qa2d", Phase: api.PhaseStarting, Workspace: "/work/shop", Created: panetest.Noon},
	})
	require.Equal(t, api.PhaseStarting, l.phase)
	require.Contains(t, panetest.Plain(l.View()), "✓ mounts, network and limits are prepared")

	require.NotNil(t, l.Update(cmd()))
	require.False(t, l.starting)
	require.Empty(t, l.fields[fieldPrompt].value(), "the next one has another task")
	require.Equal(t, "/work/shop", l.fields[fieldWorkspace].value())
	require.Nil(t, l.Update(started{l, l.start - 1, api.Session{}, errors.New("late")}))
	require.NoError(t, l.startErr)
}

func TestStartThatWasLeftTellsOnly(t *testing.T) {
	d := newDesk()
	l := d.open(120, 40, panetest.Styles(t, themes.DefaultDark))
	cmd := panetest.Press(l, "enter")
	require.Equal(t, tea.Msg(pane.BackMsg{}), panetest.Press(l, "esc")())
	require.Equal(t, pane.NoticeMsg{Level: pane.Good, Text: "session k3v9qa2d is ready"}, l.Update(cmd())())

	d.startErr = errors.New("no image")
	do(l, l.Open())
	cmd = panetest.Press(l, "enter")
	panetest.Press(l, "esc")
	require.Equal(t, pane.ErrorMsg{Err: d.startErr}, l.Update(cmd())())

	cmd = panetest.Press(l, "enter")
	panetest.Press(l, "esc")
	require.Nil(t, l.Open(), "it starts still")
	require.Nil(t, l.Update(cmd()), "the screen itself tells")
	require.Contains(t, panetest.Plain(l.View()), "no image")
}

func TestFailedStartStays(t *testing.T) {
	d := newDesk()
	d.startErr = api.Errorf(api.CodeMissing, "build one", "there is no image")
	for _, width := range []int{80, 120} {
		l := d.open(width, 40, panetest.Styles(t, themes.DefaultDark))
		do(l, panetest.Press(l, "ctrl+s"))
		view := panetest.Plain(l.View())
		require.Contains(t, view, "there is no image")
		require.Contains(t, view, "→ build one")
		panetest.Press(l, "tab", "again")
		require.NotContains(t, panetest.Plain(l.View()), "there is no image", "it is about another form now")
	}
}

func TestCandidates(t *testing.T) {
	d := newDesk()
	l := d.open(120, 40, panetest.Styles(t, themes.DefaultDark))
	do(l, panetest.Press(l, "/"))
	require.Equal(t, []string{"/work/shop/cart/", "/work/shop/docs/"}, l.candidates.all)
	do(l, panetest.Press(l, "down", "down", "enter"))
	require.Equal(t, "/work/shop/docs/", l.fields[fieldWorkspace].value())
	require.False(t, l.starting, "the first enter takes what was chosen")

	panetest.Press(l, "tab", "tab")
	require.Equal(t, fieldModel, l.focus)
	require.True(t, l.candidates.open(), "there are four models")
	panetest.Press(l, "tab")
	require.Empty(t, l.fields[fieldModel].value(), "who goes through fills nothing in")
	panetest.Press(l, "shift+tab", "gpt", "tab")
	require.Equal(t, "openai/gpt-5.2", l.fields[fieldModel].value())
	require.False(t, l.candidates.open())
	panetest.Press(l, "tab", "down", "down", "down", "up", "enter")
	require.Equal(t, "minimal", l.fields[fieldThinking].value())
	panetest.Press(l, "tab", "tab", "mem", "tab")
	require.Equal(t, "memory=", l.fields[fieldLimits].value())
	panetest.Press(l, "4G pi", "tab")
	require.Equal(t, "memory=4G pids=", l.fields[fieldLimits].value())
	panetest.Press(l, "tab", "q", "tab")
	require.Equal(t, "quick", l.fields[fieldProfile].value())
	panetest.Press(l, "tab", "tab")
	require.Equal(t, fieldWorkspace, l.focus, "around")
	panetest.Press(l, "up")
	require.Equal(t, fieldWorkspace, l.focus)
	panetest.Press(l, "esc")

	require.Nil(t, l.Update(completed{l, "something else", []string{"/x/"}}))
	require.False(t, l.candidates.open(), "what comes late doesn't count")
	require.Equal(t, tea.Msg(pane.BackMsg{}), panetest.Press(l, "esc")())
}

func TestCandidatesThatCannotBeShownAreNotOffered(t *testing.T) {
	var c candidates
	c.offer("", []string{"/a\x1b[2J/", "/b\u202e/", "/c/", "/\xff/"})
	require.Equal(t, []string{"/c/"}, c.all)
	long := make([]string, 1000)
	for i := range long {
		long[i] = fmt.Sprint(i)
	}
	c.offer("", long)
	require.Len(t, c.all, maxCandidates)
}

func TestDirectories(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"alpha", "alps", "beta", ".hidden"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "alfile"), nil, 0o600))
	require.NoError(t, os.Symlink(filepath.Join(dir, "beta"), filepath.Join(dir, "allink")))
	ctx := t.Context()
	require.Equal(t, []string{dir + "/allink/", dir + "/alpha/", dir + "/alps/"}, directories(ctx, dir+"/al"))
	require.Len(t, directories(ctx, dir+"/"), 4)
	require.Equal(t, []string{dir + "/.hidden/"}, directories(ctx, dir+"/."))
	require.Empty(t, directories(ctx, dir+"/none/x"))
	require.Contains(t, directories(ctx, "/"), "/tmp/")
	t.Chdir(dir)
	require.Equal(t, []string{"beta/"}, directories(ctx, "b"))
	t.Setenv("HOME", dir)
	require.Equal(t, []string{"~/beta/"}, directories(ctx, "~/b"))
	require.Equal(t, []string{"~/"}, directories(ctx, "~"))
	ended, cancel := context.WithCancel(ctx)
	cancel()
	require.Empty(t, directories(ended, dir+"/"))
}

func TestPastedTextIsSafe(t *testing.T) {
	l := newDesk().open(80, 20, panetest.Styles(t, themes.DefaultDark))
	panetest.Press(l, "tab")
	l.Update(tea.PasteMsg{Content: "one\x1b[2J\ntwo\u202e"})
	require.Equal(t, "one[2J two", l.Request().Prompt)
}

func TestModelsThatCannotBeListed(t *testing.T) {
	d := newDesk()
	d.modelErr = errors.New("auth.json:\x1b[2J no JSON")
	d.plan.Model = api.Model{}
	l := d.open(120, 40, panetest.Styles(t, themes.DefaultDark))
	require.Contains(t, panetest.Plain(l.View()), "models can't be listed: auth.json")
	d.modelErr = nil
	do(l, l.Open())
	require.NotContains(t, panetest.Plain(l.View()), "can't be listed")
}

func TestMouse(t *testing.T) {
	l := newDesk().open(160, 20, panetest.Styles(t, themes.DefaultDark))
	l.Update(tea.MouseClickMsg{X: 20, Y: formTop + fieldAllow, Button: tea.MouseLeft})
	require.Equal(t, fieldAllow, l.focus)
	before := panetest.Plain(l.View())
	l.Update(tea.MouseWheelMsg{X: 100, Y: 5, Button: tea.MouseWheelDown})
	require.NotEqual(t, before, panetest.Plain(l.View()))
	l.Update(tea.MouseWheelMsg{X: 100, Y: 5, Button: tea.MouseWheelUp})
	require.Equal(t, before, panetest.Plain(l.View()))
	panetest.Press(l, "pgdown", "pgdown", "pgdown", "pgup", "pgup", "pgup")
	require.Equal(t, before, panetest.Plain(l.View()))
}

func TestCursorIsInTheFocusedField(t *testing.T) {
	for _, size := range append(panetest.Screens, [2]int{60, 8}, [2]int{20, 4}) {
		l := newDesk().open(size[0], size[1], panetest.Styles(t, themes.DefaultDark))
		for range l.fields {
			lines := strings.Split(panetest.Plain(l.View()), "\n")
			c := l.Cursor()
			require.NotNil(t, c)
			require.Less(t, c.Y, size[1])
			require.Contains(t, lines[c.Y], "▶ "+l.fields[l.focus].label, "at %v", size)
			panetest.Press(l, "tab")
		}
	}
}

func TestKeysSayWhatTheyDo(t *testing.T) {
	l := newDesk().open(80, 20, panetest.Styles(t, themes.DefaultDark))
	check := func() {
		panetest.Helped(t, l)
	}
	check()
	panetest.Press(l, "tab", "tab", "gpt")
	check()
	panetest.Press(l, "enter")
	check()
	require.True(t, l.Typing())
	require.True(t, l.Escapes())
}

func TestHostileTexts(t *testing.T) {
	for name, text := range panetest.Hostile(panetest.Endless) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // the form rests after each text
				d := newDesk()
				d.models = []string{text, "fine"}
				d.plan = api.Session{Workspace: text, Model: api.Model{Provider: text, ID: text, Thinking: text}, Plan: api.Plan{
					Image:  api.ImageRef{Digest: text, Pi: text, Node: text},
					Mounts: []api.Mount{panetest.Mount(text, api.ReadOnly, text), {Source: text, Destination: "/" + text, Mode: api.ReadWrite, Reason: text}},
					Egress: []api.Rule{{Host: text, Port: 1, Action: api.ActionAllow, Source: text}, {Host: text, Action: api.ActionDeny}},
					Env:    []api.EnvVar{{Name: text, Value: text, Reason: text}, {Name: text, Secret: true, Reason: text}}, LeftOut: []api.LeftOut{{Path: text, Reason: text}}, Notes: []string{text, text},
					Enforced: []api.LimitEntry{{Name: text, Requested: text, By: text, Enforced: true}, {Name: text, Requested: text, Why: text}},
				}}
				for _, size := range panetest.Screens {
					l := d.open(size[0], size[1], panetest.Styles(t, themes.DefaultDark))
					ok := func() { panetest.Screen(t, l.View(), size[0], size[1]) }
					ok()
					for i := range l.fields {
						l.fields[i].set(text)
						panetest.Press(l, "tab")
						ok()
					}
					do(l, l.Update(tea.PasteMsg{Content: text}))
					ok()
					panetest.Press(l, "ctrl+o")
					ok()
					panetest.Press(l, "ctrl+o")
					l.startErr = &api.Error{Message: text, Hint: text}
					ok()
					l.planErr, l.modelsErr = l.startErr, l.startErr
					ok()
				}
			})
		})
	}
}

func TestEverySize(t *testing.T) {
	l := newDesk().open(80, 20, panetest.Styles(t, themes.DefaultDark))
	panetest.EverySize(t, l)
	panetest.Press(l, "tab", "tab")
	panetest.EverySize(t, l)
	panetest.Press(l, "esc", "ctrl+o")
	panetest.EverySize(t, l)
	panetest.Press(l, "ctrl+o", "ctrl+s")
	panetest.EverySize(t, l)
}

func BenchmarkTyping(b *testing.B) {
	d := newDesk()
	for i := range 300 {
		d.plan.Plan.Mounts = append(d.plan.Plan.Mounts, panetest.Mount(fmt.Sprintf("/work/shop/%d", i), api.ReadOnly, "one of many"))
	}
	l := d.open(160, 46, panetest.Styles(b, themes.DefaultDark))
	panetest.Press(l, "tab")
	for b.Loop() {
		panetest.Press(l, "x", "backspace")
		_ = l.View()
	}
}
