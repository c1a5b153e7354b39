package changes

import (
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"patio/engine/api"
	"patio/tui/pane"
	"patio/tui/panetest"
	"patio/tui/style"
)

func session(phase api.Phase) api.Session {
	return api.Session{ID: "k3v9xq", Workspace: "/work/tour", Phase: phase}
}

func of(phase api.Phase) *Pane { p := New(); p.SetSession(session(phase)); return p }

func TestGolden(t *testing.T) {
	for name, make := range map[string]func() *Pane{
		"nothing": New,
		"running": func() *Pane { return of(api.PhaseReady) },
		"ended":   func() *Pane { return of(api.PhaseEnded) },
	} {
		panetest.Golden(t, name, "", func(w, h int, s *style.Styles) string { return panetest.Draw(make(), w, h, s) })
	}
}

func TestCopiesTheCommand(t *testing.T) {
	p := of(api.PhaseReady)
	p.SetStyles(panetest.Styles(t, "patio-dark"))
	p.SetSize(80, 60)
	require.Equal(t, pane.CopyMsg{Text: "patio exec k3v9xq -- git diff", What: "the command"}, panetest.Press(p, "y")())
	require.Contains(t, panetest.Plain(p.View()), "patio exec k3v9xq -- git diff")
	require.Len(t, p.Keys(), 1)
	p.SetSession(session(api.PhaseEnded))
	require.Nil(t, panetest.Press(p, "y"), "a session that has ended runs nothing")
	require.NotContains(t, panetest.Plain(p.View()), "patio exec")
	p.SetSession(api.Session{ID: "a; rm -rf ~", Phase: api.PhaseReady})
	require.Equal(t, pane.CopyMsg{Text: "patio exec arm-rf -- git diff", What: "the command"}, panetest.Press(p, "y")())
	p.Apply(nil)
}

func TestScroll(t *testing.T) {
	p := of(api.PhaseReady)
	p.SetStyles(panetest.Styles(t, "patio-dark"))
	p.SetSize(60, 12)
	panetest.OwnKeys(t, p)
	top := panetest.Plain(p.View())
	panetest.Press(p, "j", "pgdown")
	p.Update(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	require.NotEqual(t, top, panetest.Plain(p.View()))
	panetest.Press(p, "G", "k", "g")
	require.Equal(t, top, panetest.Plain(p.View()))
}

func TestHostile(t *testing.T) {
	for _, text := range panetest.Hostile(panetest.Endless) {
		p := New()
		p.SetStyles(panetest.Styles(t, "patio-dark"))
		p.SetSession(api.Session{ID: text, Workspace: text, Phase: api.PhaseReady})
		for _, size := range [][2]int{{60, 12}, {160, 60}} {
			p.SetSize(size[0], size[1])
			panetest.Screen(t, p.View(), size[0], size[1])
		}
	}
}

func TestSizes(t *testing.T) {
	p := of(api.PhaseReady)
	p.SetStyles(panetest.Styles(t, "patio-light"))
	panetest.EverySize(t, p)
}

func BenchmarkView(b *testing.B) {
	p := of(api.PhaseReady)
	p.SetStyles(panetest.Styles(b, "patio-dark"))
	p.SetSize(160, 46)
	for b.Loop() {
		panetest.Press(p, "j")
		p.View()
	}
}
