package resources

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/tui/panetest"
	"patio/tui/style"
)

const someLimits = `{"limits":{"cpus":1.5},"limits_enforced":[
	{"name":"memory","requested":"4608M","effective":"4608M","enforced":true,"by":"cgroup v1 memory"},
	{"name":"cpus","requested":"1.5","effective":"none","enforced":false,"by":"none","why":"the cgroup controller cpu isn't delegated to this user"},
	{"name":"pids","requested":"1024","effective":"unknown","enforced":true,"by":"rlimit inside (gVisor)","why":"set through the launch; read it back from inside"},
	{"name":"tmp","requested":"1G","effective":"unknown","enforced":true,"by":"tmpfs (gVisor)"},
	{"name":"fsize","requested":"none","effective":"none","enforced":false,"by":"none","why":"no limit was asked for"}]}`

func session(t testing.TB, phase api.Phase) api.Session {
	t.Helper()
	s := api.Session{ID: "k3v9xq", Phase: phase}
	require.NoError(t, json.Unmarshal([]byte(someLimits), &s.Plan))
	return s
}

func stats(t testing.TB, u api.Usage) journal.Record {
	t.Helper()
	b, err := json.Marshal(u)
	require.NoError(t, err)
	return journal.Record{Type: api.RecordStats, Time: u.Time, Data: b}
}

// usage is what a session uses some seconds before noon.
func usage(ago int, busy float64) api.Usage {
	x := float64(ago)
	return api.Usage{
		Time: panetest.Noon.Add(-time.Duration(ago) * time.Second), CPUPercent: max(60+55*math.Sin(x/20), 0) * busy, CPUSeconds: 400 - x/2,
		Memory: int64((900 + 300*math.Sin(x/45)) * busy * (1 << 20)), MemoryLimit: 4608 << 20, SandboxMemory: int64((600 + 280*math.Sin(x/45)) * busy * (1 << 20)),
		Pids: int64(30 + 9*math.Cos(x/9)), PidsLimit: 1024, NetworkIn: uint64(4e6 - x*6000 - 30000*math.Sin(x/7)), NetworkOut: uint64(2e6 - x*3000), Source: "cgroup+gvisor",
	}
}

func filled(t testing.TB, phase api.Phase, busy float64) *Pane {
	p := New(panetest.Clock)
	p.SetSession(session(t, phase))
	var records []journal.Record
	for ago := 400; ago >= 0; ago-- {
		records = append(records, stats(t, usage(ago, busy)))
	}
	p.Apply(records)
	return p
}

func TestGolden(t *testing.T) {
	for name, make := range map[string]func() *Pane{
		"empty":       func() *Pane { p := New(panetest.Clock); p.SetSession(session(t, api.PhaseStarting)); return p },
		"ended-empty": func() *Pane { p := New(panetest.Clock); p.SetSession(session(t, api.PhaseEnded)); return p },
		"minute":      func() *Pane { return filled(t, api.PhaseReady, 1) },
		"ten-minutes": func() *Pane { p := filled(t, api.PhaseReady, 1); panetest.Press(p, "r"); return p },
		"near":        func() *Pane { p := filled(t, api.PhaseReady, 3.9); panetest.Press(p, "r"); return p },
		"to-limits":   func() *Pane { p := filled(t, api.PhaseReady, 1); panetest.Press(p, "r", "z"); return p },
		"ended":       func() *Pane { p := filled(t, api.PhaseEnded, 1); panetest.Press(p, "-", "+", "+", "+", "+"); return p },
	} {
		panetest.Golden(t, name, "", func(w, h int, s *style.Styles) string { return panetest.Draw(make(), w, h, s) })
	}
	panetest.Golden(t, "limits", "", func(w, h int, s *style.Styles) string {
		return panetest.Draw(scrolled{filled(t, api.PhaseReady, 1)}, w, h, s)
	})
}

// scrolled is a pane at its bottom, whatever its size.
type scrolled struct{ *Pane }

func (p scrolled) SetSize(width, height int) {
	p.Pane.SetSize(width, height)
	panetest.Press(p.Pane, "G")
}

func TestRates(t *testing.T) {
	p := New(panetest.Clock)
	at := func(s int, in, out uint64) journal.Record {
		return stats(t, api.Usage{Time: panetest.Noon.Add(time.Duration(s) * time.Second), NetworkIn: in, NetworkOut: out})
	}
	p.Apply([]journal.Record{at(0, 100, 50), at(2, 300, 50), at(2, 999, 999), at(1, 0, 0), {Type: api.RecordStats, Data: json.RawMessage(`[]`)}, {Type: "other"}})
	in, _ := p.meters.in.Last()
	require.EqualValues(t, 100, in, "a reading of the same or an older time counts for nothing")
	require.Equal(t, 1, p.meters.unreadable)
	p.Apply([]journal.Record{at(3, 40, 60)})
	in, _ = p.meters.in.Last()
	require.EqualValues(t, 40, in, "a counter that begins anew")
	u := api.Usage{Time: panetest.Noon.Add(4 * time.Second), NetworkIn: 50, NetworkOut: 60}
	p.SetSession(api.Session{Usage: &u})
	in, _ = p.meters.in.Last()
	require.EqualValues(t, 10, in, "a snapshot counts too")
}

func TestRangeAndScroll(t *testing.T) {
	p := filled(t, api.PhaseReady, 1)
	p.SetStyles(panetest.Styles(t, "patio-dark"))
	p.SetSize(60, 12)
	panetest.OwnKeys(t, p)
	require.Contains(t, panetest.Plain(p.View()), "[1 m]")
	for _, want := range []string{"[10 m]", "[1 h]", "[all]", "[1 m]"} {
		panetest.Press(p, "r")
		require.Contains(t, panetest.Plain(p.View()), want)
	}
	panetest.Press(p, "-")
	require.Contains(t, panetest.Plain(p.View()), "[1 m]")
	top := panetest.Plain(p.View())
	panetest.Press(p, "j", "pgdown")
	p.Update(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	require.NotEqual(t, top, panetest.Plain(p.View()))
	panetest.Press(p, "G")
	require.Contains(t, panetest.Plain(p.View()), "fsize")
	panetest.Press(p, "pgup", "k")
	p.Update(tea.MouseWheelMsg{Button: tea.MouseWheelUp})
	panetest.Press(p, "g")
	require.Equal(t, top, panetest.Plain(p.View()))
	panetest.Press(p, "G")
	p.SetSize(160, 46)
	require.Zero(t, p.top, "with room for all nothing is scrolled")
	require.Len(t, p.Keys(), 3)
	p.SetSession(session(t, api.PhaseEnded))
	require.Contains(t, panetest.Plain(p.View()), "ended; until 12:00:00")
	require.Empty(t, New(panetest.Clock).Keys())
}

func TestSaysWhatIsMissing(t *testing.T) {
	p := filled(t, api.PhaseReady, 1)
	p.SetStyles(panetest.Styles(t, "patio-dark"))
	p.SetSize(160, 46)
	view := panetest.Plain(p.View())
	require.Contains(t, view, "3 of 5 are kept")
	require.Contains(t, view, "✗ NOT KEPT: the cgroup controller cpu")
	require.Contains(t, view, "each second from cgroup+gvisor")
	p.now = func() time.Time { return panetest.Noon.Add(time.Minute) }
	require.Contains(t, panetest.Plain(p.View()), "no figures for 1m")
	bare := New(panetest.Clock)
	bare.SetStyles(panetest.Styles(t, "patio-dark"))
	bare.SetSize(160, 46)
	bare.Apply([]journal.Record{stats(t, api.Usage{Time: panetest.Noon, Source: "processes"})})
	require.Contains(t, panetest.Plain(bare.View()), "no limit is known")
	require.Contains(t, panetest.Plain(bare.View()), "the session has not said so")
}

func TestDrawsOnlyWhatChanged(t *testing.T) {
	p := filled(t, api.PhaseReady, 1)
	p.SetStyles(panetest.Styles(t, "patio-dark"))
	p.SetSize(160, 46)
	before := p.lines()
	require.Same(t, &before[0], &p.lines()[0])
	p.Apply([]journal.Record{{Type: api.RecordStats, Data: json.RawMessage(`{}`)}})
	require.Same(t, &before[0], &p.lines()[0])
	p.Apply([]journal.Record{stats(t, usage(-1, 1))})
	require.NotSame(t, &before[0], &p.lines()[0])
}

func TestHostile(t *testing.T) {
	for _, text := range panetest.Hostile(panetest.Endless) {
		p := New(panetest.Clock)
		p.SetStyles(panetest.Styles(t, "patio-dark"))
		s := session(t, api.PhaseReady)
		for i := range s.Plan.Enforced {
			e := &s.Plan.Enforced[i]
			e.Name, e.Requested, e.Effective, e.By, e.Why = text, text, text, text, text
		}
		u := usage(0, 1)
		u.Source = text
		s.Usage = &u
		p.SetSession(s)
		for _, size := range [][2]int{{60, 12}, {80, 30}, {160, 60}} {
			p.SetSize(size[0], size[1])
			panetest.Screen(t, p.View(), size[0], size[1])
			panetest.Press(p, "G")
			panetest.Screen(t, p.View(), size[0], size[1])
			panetest.Press(p, "g")
		}
	}
}

func TestOddFigures(t *testing.T) {
	for name, u := range map[string]api.Usage{
		"negative": {Time: panetest.Noon, CPUPercent: -1, Memory: -5, MemoryLimit: -1, Pids: -9, PidsLimit: -1, CPUSeconds: -4},
		"huge":     {Time: panetest.Noon, CPUPercent: 1e300, CPUSeconds: 1e300, Memory: math.MaxInt64, MemoryLimit: 1, Pids: math.MaxInt64, PidsLimit: 1, NetworkIn: math.MaxUint64, NetworkOut: math.MaxUint64},
		"far away": {Time: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), CPUPercent: 1},
		"long ago": {Time: time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC), CPUPercent: 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := New(panetest.Clock)
			p.SetStyles(panetest.Styles(t, "patio-dark"))
			p.SetSession(session(t, api.PhaseReady))
			p.Apply([]journal.Record{stats(t, u)})
			for range spans {
				panetest.Press(p, "r", "z")
				for _, size := range [][2]int{{60, 12}, {160, 60}} {
					p.SetSize(size[0], size[1])
					panetest.Screen(t, p.View(), size[0], size[1])
				}
			}
		})
	}
}

func TestSizes(t *testing.T) {
	p := filled(t, api.PhaseReady, 1)
	p.SetStyles(panetest.Styles(t, "patio-light"))
	panetest.EverySize(t, p)
}

func BenchmarkView(b *testing.B) {
	p := New(panetest.Clock)
	p.SetSession(session(b, api.PhaseReady))
	p.SetStyles(panetest.Styles(b, "patio-dark"))
	p.SetSize(160, 46)
	for ago := 10_000; ago > 0; ago-- {
		p.Apply([]journal.Record{stats(b, usage(ago, 1))})
	}
	for i, s := range spans {
		b.Run(strings.ReplaceAll(s.name, " ", ""), func(b *testing.B) {
			p.span = i
			for b.Loop() {
				p.changed()
				p.View()
			}
		})
	}
	b.Run("nothing new", func(b *testing.B) {
		for b.Loop() {
			p.View()
		}
	})
}
