package changes

import (
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"patio/engine/api"
	"patio/tui/pane"
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
		t.Run(name, func(t *testing.T) { golden(t, name, func() pane.Pane { return make() }) })
	}
}

func TestCopiesTheCommand(t *testing.T) {
	p := of(api.PhaseReady)
	p.SetStyles(theme(t, "patio-dark"))
	p.SetSize(80, 60)
	require.Equal(t, pane.CopyMsg{Text: "patio exec k3v9xq -- git diff", What: "the command"}, press(p, "y")())
	require.Contains(t, plain(p), "patio exec k3v9xq -- git diff")
	require.Len(t, p.Keys(), 1)
	p.SetSession(session(api.PhaseEnded))
	require.Nil(t, press(p, "y"), "a session that has ended runs nothing")
	require.NotContains(t, plain(p), "patio exec")
	p.SetSession(api.Session{ID: "a; rm -rf ~", Phase: api.PhaseReady})
	require.Equal(t, pane.CopyMsg{Text: "patio exec arm-rf -- git diff", What: "the command"}, press(p, "y")())
	p.Apply(nil)
}

func TestScroll(t *testing.T) {
	p := of(api.PhaseReady)
	p.SetStyles(theme(t, "patio-dark"))
	p.SetSize(60, 12)
	keysAreOurs(t, p)
	top := plain(p)
	press(p, "j", "pgdown")
	p.Update(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	require.NotEqual(t, top, plain(p))
	press(p, "G", "k", "g")
	require.Equal(t, top, plain(p))
}

func TestHostile(t *testing.T) {
	for _, text := range evil {
		p := New()
		p.SetStyles(theme(t, "patio-dark"))
		p.SetSession(api.Session{ID: text, Workspace: text, Phase: api.PhaseReady})
		for _, size := range [][2]int{{60, 12}, {160, 60}} {
			p.SetSize(size[0], size[1])
			clean(t, p.View(), size[0], size[1])
		}
	}
}

func TestSizes(t *testing.T) {
	p := of(api.PhaseReady)
	p.SetStyles(theme(t, "patio-light"))
	sweep(t, p)
}

func BenchmarkView(b *testing.B) {
	p := of(api.PhaseReady)
	p.SetStyles(theme(b, "patio-dark"))
	p.SetSize(160, 46)
	for b.Loop() {
		press(p, "j")
		p.View()
	}
}
