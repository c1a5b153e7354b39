package home

import (
	"errors"
	"fmt"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"patio/engine/api"
	"patio/themes"
	"patio/tui/pane"
	"patio/tui/panetest"
	"patio/tui/style"
)

func at(d time.Duration) *time.Time {
	t := panetest.Noon.Add(d)
	return &t
}

// some are sessions in every state there is.
func some(step int) []api.Session {
	plan := api.Plan{
		Limits: api.Limits{Memory: 2 << 30, CPUs: 2},
		Mounts: []api.Mount{
			panetest.Mount("/work/shop", api.ReadWrite, "workspace"), panetest.Mount("/work/shop/.git", api.ReadOnly, "repository"),
			panetest.Mount("/srv/pi/skills", api.ReadOnly, "skills"),
		},
		Egress: []api.Rule{
			{Host: "api.anthropic.com", Port: 443, Action: api.ActionAllow},
			{Host: "registry.npmjs.org", Port: 443, Action: api.ActionAllow},
		},
	}
	sonnet := api.Model{Provider: "anthropic", ID: "claude-sonnet-4-5", Thinking: "medium", ContextWindow: 200_000}
	used := func(cpu float64, memory int64) *api.Usage {
		wave := float64(step%7) / 7
		return &api.Usage{
			Time: panetest.Noon.Add(time.Duration(step) * time.Second), CPUPercent: cpu * (0.4 + 0.6*wave), Memory: int64(float64(memory) * (0.6 + 0.05*float64(step%9))),
			MemoryLimit: 2 << 30, Pids: 14, PidsLimit: 512, NetworkIn: 3 << 20, NetworkOut: 410 << 10,
		}
	}
	all := []api.Session{
		{
			ID: "k3v9qa2d", Name: "checkout", Phase: api.PhaseReady, Activity: api.ActivityWorking, Created: panetest.Noon.Add(-42 * time.Minute),
			Ready: at(-41 * time.Minute), Workspace: "/work/shop", Model: sonnet, Turns: 12,
			Tokens:  api.Tokens{Input: 18_000, Output: 9400, CacheRead: 402_000, CacheWrite: 31_000, Context: 88_000},
			CostUSD: 1.2834, Usage: used(170, 1<<30), Plan: plan, Seq: 900,
		},
		{
			ID: "p8m2xz7c", Phase: api.PhaseReady, Activity: api.ActivityBlocked, Created: panetest.Noon.Add(-3 * time.Hour), Ready: at(-3 * time.Hour),
			Workspace: "/work/customers/north/reports/quarterly", Model: sonnet, Turns: 3, Tokens: api.Tokens{Input: 5000, Output: 800},
			CostUSD: 0.0312, Denied: 4, Usage: used(4, 300<<20), Plan: plan,
			Questions: []api.Question{{ID: "q", Method: "select", Title: "Delete the 14 old reports?", Options: []string{"yes", "no", "show them first"}}},
		},
		{
			ID: "t5h1nn0b", Name: "docs", Phase: api.PhaseReady, Activity: api.ActivityIdle, Created: panetest.Noon.Add(-20 * time.Second), Ready: at(-18 * time.Second),
			Workspace: "/work/docs", Model: api.Model{Provider: "openai", ID: "gpt-5.2"}, Usage: used(1, 210<<20), Plan: plan,
		},
		{
			ID: "w0e4rr6y", Phase: api.PhasePreparing, Created: panetest.Noon.Add(-2 * time.Second), Workspace: "/work/shop",
			Model: api.Model{Provider: "demo", ID: "tour"}, Plan: plan,
		},
		{
			ID: "a1b2c3d4", Name: "release notes", Phase: api.PhaseEnded, Created: panetest.Noon.Add(-26 * time.Hour), Ended: at(-25 * time.Hour),
			Workspace: "/work/shop", Model: sonnet, Turns: 31, Tokens: api.Tokens{Input: 90_000, Output: 20_000, CacheRead: 1_400_000},
			CostUSD: 4.5, Plan: plan, End: &api.End{Reason: "stopped by you"},
		},
		{
			ID: "c9c9c9c9", Phase: api.PhaseCrashed, Created: panetest.Noon.Add(-72 * time.Hour), Ended: at(-71 * time.Hour), Workspace: "/work/db",
			Model: sonnet, Turns: 2, Tokens: api.Tokens{Input: 3000, Output: 10}, CostUSD: 0.01, Plan: plan,
			End: &api.End{Reason: "its supervisor was killed", Signal: "killed"},
		},
		{
			ID: "f0f0f0f0", Phase: api.PhaseFailed, Created: panetest.Noon.Add(-5 * time.Hour), Ended: at(-5 * time.Hour), Workspace: "/work/db",
			Error: api.Errorf(api.CodeMissing, "patio image build makes one", "there is no image"), Plan: plan,
		},
	}
	for i := range all {
		if all[i].Turns > 0 {
			all[i].SessionFile = "/work/state/pi/" + all[i].ID + ".jsonl"
		}
	}
	return all
}

var said = []string{
	"user: The totals are off by one cent when a discount applies. Find out why.",
	"assistant: I'll look at how the totals are made.",
	"call: bash go test ./cart/...",
	"assistant: The discount is rounded for each line, and the sum is rounded once more. I'll round the sum alone, and add a test with three lines.",
	"call: edit cart/total.go",
}

func opened(w, h int, s *style.Styles) *Home {
	p := New(panetest.Clock)
	p.SetStyles(s)
	p.SetSize(w, h)
	return p
}

func filled(w, h int, s *style.Styles) *Home {
	p := opened(w, h, s)
	for step := range 30 {
		p.SetSessions(some(step))
	}
	return p
}

func TestGolden(t *testing.T) {
	for name, open := range map[string]func(w, h int, s *style.Styles) *Home{
		"loading": opened,
		"welcome": func(w, h int, s *style.Styles) *Home {
			p := opened(w, h, s)
			p.SetSessions(nil)
			return p
		},
		"failed": func(w, h int, s *style.Styles) *Home {
			p := opened(w, h, s)
			p.SetError(api.Errorf(api.CodeInternal, "`patio doctor` looks at the directories", "open /work/state/sessions: permission denied"))
			return p
		},
		"list": func(w, h int, s *style.Styles) *Home {
			p := filled(w, h, s)
			panetest.Press(p, "down", "down")
			p.SetPreview("k3v9qa2d", said)
			return p
		},
		"question": func(w, h int, s *style.Styles) *Home {
			p := filled(w, h, s)
			panetest.Press(p, "o")
			p.SetPreview("p8m2xz7c", said[:2])
			panetest.Press(p, "g")
			return p
		},
		"ended": func(w, h int, s *style.Styles) *Home {
			p := filled(w, h, s)
			panetest.Press(p, "G")
			return p
		},
		"filter": func(w, h int, s *style.Styles) *Home {
			p := filled(w, h, s)
			panetest.Press(p, "/", "shop")
			return p
		},
		"filter-nothing": func(w, h int, s *style.Styles) *Home {
			p := filled(w, h, s)
			panetest.Press(p, "/", "zzz", "enter")
			return p
		},
		"none-live": func(w, h int, s *style.Styles) *Home {
			p := opened(w, h, s)
			p.SetSessions(some(1)[4:])
			panetest.Press(p, "A")
			return p
		},
	} {
		panetest.Golden(t, name, "\n", func(w, h int, s *style.Styles) string { return open(w, h, s).View() })
	}
}

func TestLiveSessionsComeFirst(t *testing.T) {
	p := filled(80, 20, panetest.Styles(t, themes.DefaultDark))
	for range orders {
		panetest.Press(p, "o")
		ended := false
		for _, i := range p.shown {
			final := p.sessions[i].Phase.Final()
			require.False(t, ended && !final, "sorted by %s", p.order)
			ended = ended || final
		}
		require.Len(t, p.shown, len(p.sessions))
	}
	panetest.Press(p, "A")
	require.Len(t, p.shown, 4)
	require.Equal(t, 4, p.Count())
}

func TestCursorStaysOnItsSession(t *testing.T) {
	p := filled(80, 20, panetest.Styles(t, themes.DefaultDark))
	panetest.Press(p, "down", "down", "down")
	before, ok := p.Selected()
	require.True(t, ok)
	next := some(31)
	next = append([]api.Session{{ID: "new00000", Phase: api.PhaseReady, Created: panetest.Noon}}, next[:len(next)-1]...)
	p.SetSessions(next)
	after, ok := p.Selected()
	require.True(t, ok)
	require.Equal(t, before.ID, after.ID)
	p.SetSessions(next[:1])
	only, ok := p.Selected()
	require.True(t, ok)
	require.Equal(t, "new00000", only.ID)
	p.SetSessions(nil)
	_, ok = p.Selected()
	require.False(t, ok)
}

func TestKeys(t *testing.T) {
	p := filled(80, 20, panetest.Styles(t, themes.DefaultDark))
	s, _ := p.Selected()
	require.Equal(t, []tea.Msg{pane.OpenMsg{Session: s.ID}}, panetest.Run(panetest.Press(p, "enter")))
	require.IsType(t, pane.NoticeMsg{}, panetest.Run(panetest.Press(p, "R"))[0], "a live one isn't resumed")
	require.Equal(t, []tea.Msg{pane.CopyMsg{Text: s.ID, What: "the session's id"}}, panetest.Run(panetest.Press(p, "y")))
	panetest.Press(p, "G")
	s, _ = p.Selected()
	require.Equal(t, []tea.Msg{ResumeMsg{s.ID}}, panetest.Run(panetest.Press(p, "R")))
	panetest.Helped(t, p)
	empty := opened(80, 20, panetest.Styles(t, themes.DefaultDark))
	for _, k := range []string{"enter", "R", "y", "/", "o", "A", "esc", "down"} {
		require.Nil(t, panetest.Press(empty, k), k)
	}
	require.Empty(t, empty.Keys())
}

func TestFilterTakesText(t *testing.T) {
	p := filled(80, 20, panetest.Styles(t, themes.DefaultDark))
	require.Nil(t, p.Cursor())
	panetest.Press(p, "/", "qARy")
	require.True(t, p.Typing())
	require.NotNil(t, p.Cursor())
	require.Equal(t, "qARy", p.filter.Value(), "letters are text")
	p.Update(tea.PasteMsg{Content: "\x1b[31m\u202e!"})
	require.Equal(t, "qARy[31m!", p.filter.Value())
	panetest.Press(p, "esc")
	require.False(t, p.Typing())
	require.Empty(t, p.filter.Value())
	panetest.Press(p, "/", "docs", "enter")
	require.False(t, p.Typing())
	s, ok := p.Selected()
	require.True(t, ok)
	require.Equal(t, "docs", s.Name, "what fits best is selected")
	panetest.Press(p, "esc")
	require.Len(t, p.shown, len(p.sessions))
}

func TestPreviewIsAskedFor(t *testing.T) {
	narrow := opened(100, 20, panetest.Styles(t, themes.DefaultDark))
	require.Nil(t, narrow.SetSessions(some(0)), "there is no room for it")

	p := opened(160, 40, panetest.Styles(t, themes.DefaultDark))
	first := panetest.Run(p.SetSessions(some(0)))
	require.Equal(t, []tea.Msg{PreviewMsg{"w0e4rr6y"}}, first)
	require.Nil(t, p.SetSessions(some(1)), "nothing is new")
	all := some(2)
	all[3].Seq = 8
	require.Equal(t, first, panetest.Run(p.SetSessions(all)), "it went on")

	panetest.Press(p, "down")
	late := settled{p, p.moved}
	panetest.Press(p, "down")
	require.Nil(t, p.Update(late), "the selection moved on")
	require.Nil(t, p.Update(settled{New(panetest.Clock), p.moved}), "another screen's")
	require.Equal(t, []tea.Msg{PreviewMsg{"k3v9qa2d"}}, panetest.Run(p.Update(settled{p, p.moved})))
	require.Contains(t, panetest.Plain(p.View()), "reading…")
	p.SetPreview("k3v9qa2d", []string{"hello there"})
	require.Contains(t, panetest.Plain(p.View()), "hello there")
	p.SetPreview("k3v9qa2d", nil)
	require.Contains(t, panetest.Plain(p.View()), "nothing yet")
}

func TestMouse(t *testing.T) {
	p := filled(80, 20, panetest.Styles(t, themes.DefaultDark))
	p.Update(tea.MouseClickMsg{X: 4, Y: 1 + 1 + 3, Button: tea.MouseLeft})
	require.Equal(t, 3, p.table.Cursor())
	p.Update(tea.MouseWheelMsg{X: 4, Y: 5, Button: tea.MouseWheelUp})
	require.Equal(t, 0, p.table.Cursor())
}

func TestHistoryIsBounded(t *testing.T) {
	p := opened(80, 20, panetest.Styles(t, themes.DefaultDark))
	for step := range 3 * samples {
		p.SetSessions(some(step))
		p.SetSessions(some(step)) // the same sample once more
	}
	require.Len(t, p.history["k3v9qa2d"].cpu, samples)
	require.Empty(t, p.history["a1b2c3d4"].cpu, "it has ended")
	p.SetSessions(some(0)[4:])
	require.NotContains(t, p.history, "k3v9qa2d")
}

func TestOutdatedListSaysSo(t *testing.T) {
	p := filled(80, 20, panetest.Styles(t, themes.DefaultDark))
	p.SetError(errors.New("read\x1b[2J sessions"))
	require.Contains(t, panetest.Plain(p.View()), "not up to date: read[2J sessions")
	p.SetSessions(some(1))
	require.NotContains(t, panetest.Plain(p.View()), "not up to date")
}

func TestHostileTexts(t *testing.T) {
	for name, text := range panetest.Hostile(panetest.Endless) {
		t.Run(name, func(t *testing.T) {
			all := some(3)
			for i := range all {
				s := &all[i]
				s.Name, s.Workspace = text, "/work/"+text
				s.Model = api.Model{Provider: text, ID: text, Thinking: text, ContextWindow: 10}
				s.Tokens.Context = 1000
				s.Questions = []api.Question{{Title: text, Options: []string{text}}, {Message: text}}
				s.End, s.Error = &api.End{Reason: text}, &api.Error{Message: text, Hint: text}
				s.Plan.Mounts = []api.Mount{panetest.Mount(text, api.ReadOnly, text), panetest.Mount(text, api.ReadWrite, text)}
				s.Plan.Egress = []api.Rule{{Host: text, Port: 1, Action: api.ActionAllow}}
			}
			for _, size := range panetest.Screens {
				p := opened(size[0], size[1], panetest.Styles(t, themes.DefaultDark))
				p.SetSessions(all)
				for range all {
					s, _ := p.Selected()
					p.SetPreview(s.ID, []string{text, text})
					panetest.Screen(t, p.View(), size[0], size[1])
					panetest.Press(p, "down")
				}
			}
			p := opened(80, 20, panetest.Styles(t, themes.DefaultDark))
			p.SetError(&api.Error{Message: text, Hint: text})
			panetest.Screen(t, p.View(), 80, 20)
		})
	}
}

func TestEverySize(t *testing.T) {
	p := filled(80, 20, panetest.Styles(t, themes.DefaultDark))
	p.SetPreview("w0e4rr6y", said)
	panetest.EverySize(t, p)
	panetest.Press(p, "/", "shop")
	panetest.EverySize(t, p)
	welcome := opened(80, 20, panetest.Styles(t, themes.DefaultDark))
	welcome.SetSessions(nil)
	panetest.EverySize(t, welcome)
}

func TestShorten(t *testing.T) {
	for _, c := range []struct {
		path  string
		width int
		want  string
	}{
		{"/home/ada", 10, "~"},
		{"/home/ada/src", 10, "~/src"},
		{"/home/adam", 10, "/home/adam"},
		{"/srv/one/two/three/four", 20, "/srv/…/three/four"},
		{"/srv/one/two/three/four", 12, "/srv/…/four"},
		{"/home/ada/one/two/three/four", 14, "~/…/three/four"},
		{"/srv/averylongname", 10, "averylong…"},
		{"", 5, ""},
	} {
		require.Equal(t, c.want, shorten(c.path, "/home/ada", c.width), c.path)
	}
}

func many(n, step int) []api.Session {
	base := some(step)
	all := make([]api.Session, n)
	for i := range all {
		all[i] = base[i%len(base)]
		all[i].ID = fmt.Sprintf("s%07d", i)
		all[i].Created = panetest.Noon.Add(-time.Duration(i) * time.Minute)
	}
	return all
}

// What a second costs with 100 sessions: one list, and frames.
func BenchmarkListOf100(b *testing.B) {
	p := opened(160, 46, panetest.Styles(b, themes.DefaultDark))
	lists := [][]api.Session{many(100, 1), many(100, 2), many(100, 3)}
	p.SetPreview("s0000003", said)
	for i := 0; b.Loop(); i++ {
		p.SetSessions(lists[i%3])
		_ = p.View()
	}
}

func BenchmarkFilterOf100(b *testing.B) {
	p := opened(160, 46, panetest.Styles(b, themes.DefaultDark))
	p.SetSessions(many(100, 1))
	for b.Loop() {
		panetest.Press(p, "/", "shop")
		_ = p.View()
		panetest.Press(p, "esc")
	}
}

func TestFigures(t *testing.T) {
	require.Equal(t, "9999", count(9999))
	require.Equal(t, "12k", count(12_345))
	require.Equal(t, "1.2M", count(1_234_567))
	require.Equal(t, "512B", short(512))
	require.Equal(t, "1.0K", short(1023))
	require.Equal(t, "412M", short(412<<20))
	require.Equal(t, "2.0G", short(2<<30))
	require.Equal(t, "-", cost(0))
	require.Equal(t, "$1.2000", cost(1.2))
	require.Equal(t, "0s", age(-time.Second))
	require.Equal(t, "47h", age(47*time.Hour))
	for _, n := range []int64{0, 9, 999, 1 << 12, 9 << 20, 999 << 20, 1 << 40, 1 << 62} {
		require.LessOrEqual(t, len(short(n)), 4, n)
	}
}
