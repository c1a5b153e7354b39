package contract

import (
	"encoding/json"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"patio/engine/api"
	"patio/tui/panetest"
	"patio/tui/style"
)

const somePlan = `{
	"image":{"digest":"de6d303380a4c3dfeafd5c3c334a6aac6d9f822dd53d84c84756655289242ea1","pi":"0.84.2","node":"24.21.0"},
	"env":[{"name":"PI_CODING_AGENT_DIR","value":"/var/lib/patio/sessions/k3v9xq/agent"},{"name":"PI_CODING_AGENT_SESSION_DIR","value":"/var/lib/patio/pi-sessions"}],
	"cwd":"/work/tour",
	"mounts":[{"source":"/work/tour","destination":"/work/tour","mode":"rw","reason":"the workspace"},
		{"source":"/var/lib/patio/pi-sessions","destination":"/var/lib/patio/pi-sessions","mode":"ro","reason":"Pi's session files"}],
	"limits_enforced":[{"name":"memory","requested":"4608M","enforced":true},{"name":"cpus","requested":"1.5"},{"name":"fsize","requested":"none"}],
	"user":"uid 1000 inside is uid 1000 outside, without capabilities","platform":"systrap",
	"generated_files":[{"path":"/x","reason":"y"}]}`

func session(t testing.TB) api.Session {
	t.Helper()
	s := api.Session{ID: "k3v9xq", Phase: api.PhaseReady, Denied: 2}
	require.NoError(t, json.Unmarshal([]byte(somePlan), &s.Plan))
	return s
}

func filled(t testing.TB) *Pane {
	p := New()
	p.SetSession(session(t))
	return p
}

func TestGolden(t *testing.T) {
	for name, make := range map[string]func() *Pane{
		"nothing": New,
		"session": func() *Pane { return filled(t) },
	} {
		panetest.Golden(t, name, "", func(w, h int, s *style.Styles) string { return panetest.Draw(make(), w, h, s) })
	}
}

func TestSaysWhatTheLaunchSays(t *testing.T) {
	p := filled(t)
	p.SetStyles(panetest.Styles(t, "patio-dark"))
	p.SetSize(120, 90)
	view := panetest.Plain(p.View())
	for _, want := range []string{
		"launch: uid 1000 inside", "Pi 0.84.2 · Node 24.21.0 · sha256", "/work/tour, read-write: the workspace", "/var/lib/patio/pi-sessions, read-only", "no secret environment variables",
		"1 generated file,", "no rules: every host is denied; 2 attempts", "1 of 3 limits are kept; NOT kept: cpus", "C11",
	} {
		require.Contains(t, view, want)
	}
	require.NotContains(t, view, "✓", "nothing was checked")
	s := session(t)
	require.NoError(t, json.Unmarshal([]byte(`{"egress":[{"host":"example.com","port":443,"action":"allow"}]}`), &s.Plan))
	s.Phase, s.End = api.PhaseEnded, &api.End{Reason: "stopped by its user"}
	p.SetSession(s)
	require.Contains(t, panetest.Plain(p.View()), "1 rule; 2 attempts")
	require.Contains(t, panetest.Plain(p.View()), "ended: stopped by its user")
}

func TestScroll(t *testing.T) {
	p := filled(t)
	p.SetStyles(panetest.Styles(t, "patio-dark"))
	p.SetSize(60, 12)
	panetest.OwnKeys(t, p)
	top := panetest.Plain(p.View())
	panetest.Press(p, "j", "pgdown")
	p.Update(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	below := panetest.Plain(p.View())
	require.NotEqual(t, top, below)
	p.SetSession(session(t))
	require.Equal(t, below, panetest.Plain(p.View()), "a snapshot moves nothing")
	panetest.Press(p, "G")
	require.Contains(t, panetest.Plain(p.View()), "NOT kept: cpus")
	panetest.Press(p, "k", "g")
	require.Equal(t, top, panetest.Plain(p.View()))
	p.SetSize(120, 90)
	require.Empty(t, p.Keys())
	p.Apply(nil)
}

func TestHostile(t *testing.T) {
	for _, text := range panetest.Hostile(panetest.Endless) {
		s := session(t)
		s.Phase, s.End = api.PhaseEnded, &api.End{Reason: text}
		l := &s.Plan
		l.User, l.Image.Pi, l.Image.Node, l.Image.Digest, l.Cwd, l.Platform = text, text, text, text, text, text
		l.Mounts[0].Destination, l.Mounts[0].Reason = text, text
		l.Enforced[1].Name = text
		p := New()
		p.SetStyles(panetest.Styles(t, "patio-dark"))
		p.SetSession(s)
		for _, size := range [][2]int{{60, 12}, {160, 120}} {
			p.SetSize(size[0], size[1])
			panetest.Screen(t, p.View(), size[0], size[1])
			panetest.Press(p, "G")
			panetest.Screen(t, p.View(), size[0], size[1])
		}
	}
}

func TestSizes(t *testing.T) {
	p := filled(t)
	p.SetStyles(panetest.Styles(t, "patio-light"))
	panetest.EverySize(t, p)
}

func BenchmarkView(b *testing.B) {
	p := filled(b)
	p.SetStyles(panetest.Styles(b, "patio-dark"))
	p.SetSize(160, 46)
	for b.Loop() {
		panetest.Press(p, "j")
		p.View()
	}
}
