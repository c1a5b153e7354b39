package mounts

import (
	"encoding/json"
	"fmt"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"patio/engine/api"
	"patio/tui/pane"
	"patio/tui/panetest"
	"patio/tui/style"
)

const somePlan = `{
	"image":{"digest":"de6d303380a4c3dfeafd5c3c334a6aac6d9f822dd53d84c84756655289242ea1","path":"/var/lib/patio/images/de6d3033.erofs","pi":"0.84.2","node":"24.21.0"},
	"argv":["/usr/local/bin/node","/opt/pi/cli.js","--mode","rpc","--model","demo/tour"],
	"env":[{"name":"HOME","value":"/home/sandbox","reason":"a private home in memory"},{"name":"PI_OFFLINE","value":"1","reason":"no update check, no catalogue refresh, no downloads"},
		{"name":"ANTHROPIC_API_KEY","secret":true,"reason":"the provider's key"}],
	"cwd":"/work/tour",
	"mounts":[{"source":"/work/tour","destination":"/work/tour","mode":"rw","reason":"the workspace"},
		{"source":"/work/tour/.git/hooks","destination":"/work/tour/.git/hooks","mode":"ro","reason":"git runs what is here on the host too"},
		{"source":"/var/lib/patio/sessions/k3v9xq/agent","destination":"/home/sandbox/agent","mode":"rw","reason":"Pi's own state, of this session alone"}],
	"egress":[{"host":"registry.npmjs.org","port":443,"action":"allow","source":"flag","since":"2026-05-04T11:00:00Z"},{"host":"*.example.com","port":443,"action":"allow","source":"config","private":true},{"host":"bad.example.com","port":0,"action":"deny"}],
	"limits":{"memory":4294967296,"memoryHeadroom":536870912,"pids":1024,"cpus":1.5,"openFiles":4096,"fileSize":4294967296,"tmpSize":1073741824,"tmpInodes":262144},
	"limits_enforced":[{"name":"memory","requested":"4608M","effective":"4608M","enforced":true,"by":"cgroup v1 memory"},
		{"name":"cpus","requested":"1.5","effective":"none","enforced":false,"by":"none","why":"the cgroup controller cpu isn't delegated to this user"},
		{"name":"fsize","requested":"none","effective":"none","enforced":false,"by":"none","why":"no limit was asked for"},
		{"name":"tmp","requested":"1G","effective":"unknown","enforced":true,"by":"tmpfs (gVisor)"}],
	"left_out":[{"path":"/home/dev/.ssh","reason":"keys are never mounted"},{"path":"/work/shared","reason":"the workspace has a link to it; what links point to doesn't come along"}],
	"user":"uid 1000 inside is uid 1000 outside, without capabilities","platform":"systrap",
	"generated_files":[{"path":"/var/lib/patio/sessions/k3v9xq/agent/settings.json","reason":"Pi's settings"}],
	"notes":["the model is patio's own scripted one: no AI, no key, no network"]}`

func session(t testing.TB, plan string) api.Session {
	t.Helper()
	s := api.Session{ID: "k3v9xq", Phase: api.PhaseReady}
	require.NoError(t, json.Unmarshal([]byte(plan), &s.Plan))
	return s
}

func filled(t testing.TB) *Pane {
	p := New()
	p.SetSession(session(t, somePlan))
	return p
}

func TestGolden(t *testing.T) {
	for name, make := range map[string]func() *Pane{
		"empty":   New,
		"plan":    func() *Pane { return filled(t) },
		"details": func() *Pane { p := filled(t); panetest.Press(p, "j", "enter"); return p },
		"section": func() *Pane { p := filled(t); panetest.Press(p, "enter"); return p },
		"folded": func() *Pane {
			p := filled(t)
			for range sections(session(t, somePlan)) {
				panetest.Press(p, "space", "j")
			}
			return p
		},
		"bare": func() *Pane {
			p := New()
			p.SetSession(session(t, `{"cwd":"/work/tour","limits":{"memory":1073741824,"pids":64}}`))
			return p
		},
	} {
		panetest.Golden(t, name, "", func(w, h int, s *style.Styles) string { return panetest.Draw(make(), w, h, s) })
	}
	panetest.Golden(t, "secret", "", func(w, h int, s *style.Styles) string {
		p := filled(t)
		for i, l := range p.rows {
			if l.item >= 0 && p.sections[l.section].items[l.item].mode == "secret" {
				p.table.SetCursor(i)
			}
		}
		panetest.Press(p, "enter")
		return panetest.Draw(p, w, h, s)
	})
}

func TestNeverAValueOfASecret(t *testing.T) {
	s := session(t, `{"env":[{"name":"KEY","value":"hunter2","secret":true,"reason":"r"}]}`)
	require.NotContains(t, fmt.Sprint(sections(s)), "hunter2", "even if a plan had one")
}

func TestSections(t *testing.T) {
	p := filled(t)
	p.SetStyles(panetest.Styles(t, "patio-dark"))
	p.SetSize(160, 60)
	view := panetest.Plain(p.View())
	for _, want := range []string{
		"▾ Mounts  3", "/home/sandbox/agent ← /var/lib/patio/sessions/k3v9xq/agent", "read-write", "read-only", "▾ Left out  2", "not inside", "registry.npmjs.org", "set by flag",
		"*.example.com", "may be a private address", "bad.example.com", "▾ Limits  4  ✗ 1", "✗ NOT KEPT: the cgroup controller", "no limit was asked for", "ANTHROPIC_API_KEY", "secret",
	} {
		require.Contains(t, view, want)
	}
	require.Equal(t, 3, p.Count())
	require.Zero(t, New().Count())
	bare := New()
	bare.SetStyles(panetest.Styles(t, "patio-dark"))
	bare.SetSize(160, 60)
	bare.SetSession(session(t, `{"cwd":"/x","limits":{"memory":1073741824}}`))
	require.Contains(t, panetest.Plain(bare.View()), "1.0 GiB")
	require.Contains(t, panetest.Plain(bare.View()), "none: no host can be reached")
}

func TestMoveFoldCopy(t *testing.T) {
	p := filled(t)
	p.SetStyles(panetest.Styles(t, "patio-dark"))
	p.SetSize(60, 12)
	panetest.OwnKeys(t, p)
	require.Nil(t, panetest.Press(p, "y"), "a heading has nothing to copy")
	require.Equal(t, pane.CopyMsg{Text: "/var/lib/patio/sessions/k3v9xq/agent", What: "it"}, panetest.Press(p, "j", "j", "j", "y")())
	panetest.Press(p, "h")
	require.Equal(t, 0, p.table.Cursor(), "folding moves to the heading")
	require.Contains(t, panetest.Plain(p.View()), "▸ Mounts  3")
	panetest.Press(p, "h", "l", "l")
	require.Contains(t, panetest.Plain(p.View()), "▾ Mounts  3")
	panetest.Press(p, "j", "enter")
	require.True(t, p.Escapes())
	panetest.OwnKeys(t, p)
	before := panetest.Plain(p.View())
	panetest.Press(p, "j", "J", "pgdown", "G", "pgup", "g")
	require.Equal(t, before, panetest.Plain(p.View()))
	p.Update(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	p.Update(tea.MouseWheelMsg{Button: tea.MouseWheelUp})
	panetest.Press(p, "K", "esc")
	require.False(t, p.Escapes())
	p.Update(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	require.Equal(t, 4, p.table.Cursor())
	p.Update(tea.MouseClickMsg{Y: 0, Button: tea.MouseLeft})
	require.Equal(t, 0, p.table.Cursor())

	p.SetSize(160, 46)
	panetest.Press(p, "enter")
	p.Update(tea.MouseClickMsg{X: 150, Y: 6, Button: tea.MouseLeft})
	require.Equal(t, 0, p.table.Cursor(), "a click on the details selects nothing")
	panetest.Press(p, "j")
	require.Equal(t, 1, p.table.Cursor(), "beside the details the keys move the list")
	p.SetSize(80, 30)
	panetest.Screen(t, p.View(), 80, 30)
	p.Update(tea.MouseClickMsg{X: 3, Y: 25, Button: tea.MouseLeft})
	require.Equal(t, 1, p.table.Cursor())

	empty := New()
	require.Empty(t, empty.Keys())
	require.Nil(t, panetest.Press(empty, "enter", "space", "y", "j", "esc"))
	require.False(t, empty.details.Opened())
}

func TestTakesANewPlanOnly(t *testing.T) {
	p := filled(t)
	p.SetSize(80, 20)
	panetest.Press(p, "j", "j")
	first := &p.sections[0]
	p.SetSession(session(t, somePlan))
	require.Same(t, first, &p.sections[0])
	p.SetSession(api.Session{})
	require.Same(t, first, &p.sections[0], "a snapshot without a plan takes nothing away")
	p.Apply(nil)
	p.SetSession(session(t, `{"cwd":"/other"}`))
	require.Zero(t, p.Count())
}

func TestHostile(t *testing.T) {
	for _, text := range panetest.Hostile(panetest.Endless) {
		s := session(t, somePlan)
		l := &s.Plan
		l.Mounts[0].Source, l.Mounts[0].Destination, l.Mounts[0].Reason = text, text+"x", text
		l.LeftOut[0].Path, l.LeftOut[0].Reason = text, text
		l.Files[0].Path, l.Files[0].Reason = text, text
		l.Egress[0].Host, l.Egress[0].Source = text, text
		l.Enforced[0].Name, l.Enforced[0].Requested, l.Enforced[0].Effective, l.Enforced[0].By, l.Enforced[0].Why = text, text, text, text, text
		l.Enforced[1].Why = text
		l.Env[0].Name, l.Env[0].Value, l.Env[0].Reason = text, text, text
		l.Argv, l.Cwd, l.User, l.Platform, l.Notes = []string{text}, text, text, text, []string{text}
		l.Image.Digest, l.Image.Path, l.Image.Pi, l.Image.Node = text, text, text, text
		p := New()
		p.SetStyles(panetest.Styles(t, "patio-dark"))
		p.SetSession(s)
		panetest.Press(p, "enter")
		for i := range p.rows {
			p.table.SetCursor(i)
			for _, size := range [][2]int{{60, 12}, {160, 46}} {
				p.SetSize(size[0], size[1])
				panetest.Screen(t, p.View(), size[0], size[1])
			}
		}
	}
}

func TestSizes(t *testing.T) {
	p := filled(t)
	p.SetStyles(panetest.Styles(t, "patio-light"))
	panetest.EverySize(t, p)
	p.SetSize(0, 0)
	panetest.Press(p, "j", "enter")
	panetest.EverySize(t, p)
	empty := New()
	empty.SetStyles(panetest.Styles(t, "patio-light"))
	panetest.EverySize(t, empty)
}

func many(n int) api.Session {
	s := api.Session{}
	for i := range n {
		s.Plan.Env = append(s.Plan.Env, api.EnvVar{Name: fmt.Sprint("NAME", i), Reason: "why"})
	}
	return s
}

func BenchmarkView(b *testing.B) {
	p := New()
	p.SetStyles(panetest.Styles(b, "patio-dark"))
	p.SetSize(160, 46)
	p.SetSession(many(10_000))
	panetest.Press(p, "enter")
	for b.Loop() {
		panetest.Press(p, "j")
		p.View()
	}
}

func BenchmarkSameSession(b *testing.B) {
	p, s, again := New(), many(10_000), many(10_000)
	p.SetStyles(panetest.Styles(b, "patio-dark"))
	p.SetSize(160, 46)
	p.SetSession(s)
	for b.Loop() {
		p.SetSession(again)
	}
}
