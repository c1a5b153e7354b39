package processes

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/sessions"
	"patio/tui/pane"
	"patio/tui/panetest"
	"patio/tui/style"
)

// fakeHost answers with what a test sets, and counts.
type fakeHost struct {
	processes []api.Process
	err       error
	asked     int
	killed    []string
	killErr   error
}

var _ pane.Host = (*fakeHost)(nil)

func (h *fakeHost) Processes(done func([]api.Process, error) tea.Msg) tea.Cmd {
	h.asked++
	return func() tea.Msg { return done(h.processes, h.err) }
}

func (h *fakeHost) Kill(pid int, signal string, done func(error) tea.Msg) tea.Cmd {
	return func() tea.Msg {
		h.killed = append(h.killed, fmt.Sprint(pid, signal))
		return done(h.killErr)
	}
}

func (h *fakeHost) Prompt(api.PromptRequest, func(api.PromptResponse, error) tea.Msg) tea.Cmd {
	return nil
}
func (h *fakeHost) Command(any, func(json.RawMessage, error) tea.Msg) tea.Cmd { return nil }
func (h *fakeHost) Records(uint64, int, []string, func([]journal.Record, error) tea.Msg) tea.Cmd {
	return nil
}
func (h *fakeHost) History(time.Time, func([]sessions.Turn, error) tea.Msg) tea.Cmd { return nil }

// desk is a pane with its host and a clock that a test moves.
type desk struct {
	*Pane
	h   *fakeHost
	now time.Time
}

func newDesk(ps ...api.Process) *desk {
	d := &desk{h: &fakeHost{processes: ps}, now: panetest.Noon}
	d.Pane = New(d.h, func() time.Time { return d.now })
	d.SetSession(api.Session{ID: "k3v9xq", Phase: api.PhaseReady})
	return d
}

// beat is what the root does ten times a second.
func (d *desk) beat() tea.Cmd {
	d.Tick()
	return d.Update(pane.TickMsg{})
}

// poll lets the pane ask and have its answer.
func (d *desk) poll() *desk {
	d.now = d.now.Add(every)
	if cmd := d.beat(); cmd != nil {
		d.Update(cmd())
	}
	return d
}

var build = []api.Process{
	{PID: 1, UID: 1000, CPUPercent: 2.1, RSS: 226 << 20, Elapsed: 1070, Command: "pi"},
	{PID: 40, PPID: 1, UID: 1000, CPUPercent: 0, RSS: 3 << 20, Elapsed: 61, Command: "/bin/bash -c npm test -- --coverage"},
	{PID: 41, PPID: 40, UID: 1000, CPUPercent: 12.5, RSS: 88 << 20, Elapsed: 61, Command: "npm test"},
	{PID: 55, PPID: 41, UID: 1000, CPUPercent: 96.8, RSS: 412 << 20, Elapsed: 58, Command: "node /work/tour/node_modules/.bin/vitest run --coverage --reporter verbose"},
	{PID: 56, PPID: 55, UID: 1000, CPUPercent: 71, RSS: 301 << 20, Elapsed: 57, Command: "node worker 1"},
	{PID: 57, PPID: 55, UID: 1000, CPUPercent: 66, RSS: 288 << 20, Elapsed: 57, Command: "node worker 2"},
	{PID: 60, PPID: 1, UID: 1000, CPUPercent: 0, RSS: 1 << 20, Elapsed: 3, Command: "sleep 600"},
}

func TestGolden(t *testing.T) {
	for name, make := range map[string]func() *desk{
		"loading":  func() *desk { return newDesk() },
		"starting": func() *desk { d := newDesk(); d.SetSession(api.Session{Phase: api.PhaseStarting}); return d },
		"ended": func() *desk {
			d := newDesk(build...).poll()
			d.SetSession(api.Session{Phase: api.PhaseEnded})
			return d
		},
		"error": func() *desk {
			d := newDesk()
			d.h.err = errors.New("list processes: the sandbox doesn't answer")
			return d.poll()
		},
		"stale": func() *desk {
			d := newDesk(build...).poll()
			d.h.err = errors.New("list processes: timeout")
			return d.poll()
		},
		"tree":   func() *desk { return newDesk(build...).poll() },
		"folded": func() *desk { d := newDesk(build...).poll(); panetest.Press(d, "j", "j", "space"); return d },
		"by-cpu": func() *desk { d := newDesk(build...).poll(); panetest.Press(d, "o"); return d },
		"filter": func() *desk {
			d := newDesk(build...).poll()
			panetest.Press(d, "/", "w", "o", "r", "k", "e", "r")
			return d
		},
		"details": func() *desk { d := newDesk(build...).poll(); panetest.Press(d, "j", "j", "j", "enter"); return d },
		"one":     func() *desk { return newDesk(build[:1]...).poll() },
	} {
		panetest.Golden(t, name, "", func(w, h int, s *style.Styles) string { return panetest.Draw(make().Pane, w, h, s) })
	}
}

func TestPollsOneAtATime(t *testing.T) {
	d := newDesk(build...)
	cmd := d.beat()
	require.NotNil(t, cmd, "the first time at once")
	d.now = d.now.Add(5 * time.Second)
	require.Nil(t, d.beat(), "not while an answer is on its way")
	d.Update(cmd())
	require.Equal(t, 7, d.Count())
	require.Nil(t, d.beat(), "not before a second is over")
	d.now = d.now.Add(every)
	cmd = d.beat()
	require.NotNil(t, cmd)
	require.Nil(t, d.beat())
	d.now = d.now.Add(askAgain)
	require.NotNil(t, d.beat(), "an answer that never comes is given up")
	require.Equal(t, 3, d.h.asked)
	other := newDesk()
	other.Update(cmd())
	require.Zero(t, other.Count(), "an answer for another pane")
	d.SetSession(api.Session{Phase: api.PhaseEnded})
	d.now = d.now.Add(time.Hour)
	require.Nil(t, d.beat(), "nothing of an ended session is asked")
	require.Zero(t, d.Count())
	d.Update(cmd())
	require.Zero(t, d.Count(), "an answer that comes after the end")
}

func commands(rows []row) []string {
	var out []string
	for _, r := range rows {
		out = append(out, r.prefix+fmt.Sprint(r.PID))
	}
	return out
}

func TestTree(t *testing.T) {
	p := func(pid, parent int) api.Process { return api.Process{PID: pid, PPID: parent, Command: "c"} }
	for name, c := range map[string]struct {
		ps     []api.Process
		folded []int
		want   string
	}{
		"a tree":               {[]api.Process{p(1, 0), p(4, 2), p(2, 1), p(3, 1), p(5, 2)}, nil, "1 ├ 2 │ ├ 4 │ └ 5 └ 3"},
		"folded":               {[]api.Process{p(1, 0), p(4, 2), p(2, 1), p(3, 1)}, []int{2}, "1 ├ 2 └ 3"},
		"a parent that's gone": {[]api.Process{p(9, 7), p(1, 0)}, nil, "1 9"},
		"its own parent":       {[]api.Process{p(3, 3)}, nil, "3"},
		"a ring":               {[]api.Process{p(3, 4), p(4, 3), p(5, 4)}, nil, "3 └ 4   └ 5"},
		"a pid twice":          {[]api.Process{p(3, 0), p(3, 0), p(4, 3)}, nil, "3 └ 4"},
		"negative":             {[]api.Process{p(-1, -1), p(0, 0)}, nil, "-1 0"},
		"none":                 {nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			folded := map[int]bool{}
			for _, f := range c.folded {
				folded[f] = true
			}
			require.Equal(t, c.want, strings.Join(commands(arrange(c.ps, byTree, folded, nil)), " "))
		})
	}
	var deep []api.Process
	for i := range 10_000 {
		deep = append(deep, p(i+1, i))
	}
	rows := arrange(deep, byTree, nil, nil)
	require.Len(t, rows, 10_000)
	require.Equal(t, 9_999, rows[0].children)
	require.Len(t, []rune(rows[9_999].prefix), 2*maxDepth)
}

func TestFoldSortFilter(t *testing.T) {
	d := newDesk(build...).poll()
	d.SetStyles(panetest.Styles(t, "patio-dark"))
	d.SetSize(80, 20)
	panetest.Press(d, "j", "h")
	require.Len(t, d.rows, 3)
	require.Contains(t, panetest.Plain(d.View()), "▸ +4 /bin/bash")
	panetest.Press(d, "h")
	require.Equal(t, 1, d.selected().PID, "left of what is folded is its parent")
	panetest.Press(d, "j", "l")
	require.Len(t, d.rows, 7)
	panetest.Press(d, "space", "space", "left", "right")
	require.Len(t, d.rows, 7)
	panetest.Press(d, "o")
	require.Equal(t, []string{"55", "56", "57", "41", "1", "40", "60"}, commands(d.rows))
	require.Equal(t, 40, d.selected().PID, "the cursor stays on its process")
	panetest.Press(d, "h", "l", "space")
	require.Len(t, d.rows, 7, "there is nothing to fold without a tree")
	panetest.Press(d, "o")
	require.Equal(t, "55", commands(d.rows)[0])
	require.Contains(t, panetest.Plain(d.View()), "[by memory]")
	panetest.Press(d, "o", "/", "W", "o", "r", "k", "e", "r")
	require.True(t, d.Typing())
	require.Equal(t, 9, d.Cursor().X)
	require.Contains(t, panetest.Plain(d.View()), "2 of 7", "parents are shown, and don't count")
	require.Len(t, d.rows, 6)
	panetest.Press(d, "enter", "o")
	require.Len(t, d.rows, 2)
	require.True(t, d.Escapes())
	panetest.Press(d, "esc")
	require.Len(t, d.rows, 7)
	require.False(t, d.Escapes())
	panetest.Press(d, "/", "5", "5", "esc")
	require.False(t, d.Typing())

	panetest.Press(d, "o", "o", "g", "j", "space")
	d.h.processes = build[:1]
	d.poll()
	require.Empty(t, d.folded, "what is gone isn't remembered")
}

func TestKill(t *testing.T) {
	d := newDesk(build...).poll()
	panetest.Press(d, "G")
	ask, ok := panetest.Press(d, "K")().(pane.ConfirmMsg)
	require.True(t, ok)
	require.Equal(t, "Send TERM to process 60 (sleep 600)?", ask.Question)
	require.Empty(t, d.h.killed, "not before a yes")
	sent := ask.Then()
	require.Equal(t, []string{"60TERM"}, d.h.killed)
	require.Equal(t, pane.NoticeMsg{Level: pane.Good, Text: "sent TERM to process 60"}, d.Update(sent)())
	other := newDesk(build...).poll()
	require.Nil(t, other.Update(sent))
	require.NotNil(t, d.beat(), "what runs is asked at once")
	d.asked = time.Time{}
	d.SetStyles(panetest.Styles(t, "patio-dark"))
	d.SetSize(80, 20)
	require.Contains(t, panetest.Plain(d.View()), "(asked to end) sleep 600")
	panetest.OwnKeys(t, d)

	ask, ok = panetest.Press(d, "K")().(pane.ConfirmMsg)
	require.True(t, ok)
	require.Contains(t, ask.Question, "Send KILL")
	require.Contains(t, ask.Lost, "lost")
	d.h.killErr = errors.New("no such process")
	require.Equal(t, pane.ErrorMsg{Err: d.h.killErr}, d.Update(ask.Then())())

	d.h.processes = append([]api.Process{}, build...)
	d.h.processes[6].Command = "another program"
	d.poll()
	ask, ok = panetest.Press(d, "K")().(pane.ConfirmMsg)
	require.True(t, ok)
	require.Contains(t, ask.Question, "Send TERM", "another one that got the pid")
	panetest.Press(d, "g")
	ask, ok = panetest.Press(d, "K")().(pane.ConfirmMsg)
	require.True(t, ok)
	require.Contains(t, ask.Lost, "the session ends with it")
	require.Equal(t, pane.CopyMsg{Text: "pi", What: "the command line"}, panetest.Press(d, "y")())
}

func TestKeysAndMouse(t *testing.T) {
	d := newDesk(build...)
	require.Empty(t, d.Keys())
	require.Nil(t, panetest.Press(d, "/", "K", "y", "enter", "space", "h"))
	require.False(t, d.Typing(), "there is nothing to filter")
	d.poll()
	d.SetStyles(panetest.Styles(t, "patio-dark"))
	d.SetSize(80, 20)
	for _, k := range []string{"j", "enter", "esc", "space", "o", "/", "n", "enter", "esc"} {
		panetest.Press(d, k)
		panetest.OwnKeys(t, d)
	}
	d.Update(tea.MouseClickMsg{X: 4, Y: 2, Button: tea.MouseLeft})
	require.Equal(t, 0, d.table.Cursor())
	d.Update(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	require.Equal(t, 3, d.table.Cursor())
	d.Apply(nil)
}

func TestSaysThatTheListIsOld(t *testing.T) {
	d := newDesk(build...).poll()
	d.SetStyles(panetest.Styles(t, "patio-dark"))
	d.SetSize(80, 20)
	d.now = d.now.Add(20 * time.Second)
	require.Contains(t, panetest.Plain(d.View()), "as of 20s ago")
}

func TestHostile(t *testing.T) {
	texts := slices.Sorted(maps.Values(panetest.Hostile(panetest.Endless)))
	var ps []api.Process
	for i, text := range texts {
		ps = append(ps, api.Process{PID: i + 1, PPID: i, Command: text, CPUPercent: math.NaN(), RSS: -5, Elapsed: -1})
	}
	ps = append(ps, api.Process{PID: math.MaxInt, PPID: math.MinInt, UID: math.MinInt, CPUPercent: 1e300, RSS: math.MaxInt64, Elapsed: math.MaxInt64})
	d := newDesk(ps...).poll()
	d.SetStyles(panetest.Styles(t, "patio-dark"))
	panetest.Press(d, "enter")
	for range 3 {
		panetest.Press(d, "g")
		for range ps {
			panetest.Press(d, "j")
			for _, size := range [][2]int{{60, 12}, {80, 30}, {160, 46}} {
				d.SetSize(size[0], size[1])
				panetest.Screen(t, d.View(), size[0], size[1])
			}
			panetest.Press(d, "K")
		}
		panetest.Press(d, "o")
	}
	panetest.Press(d, "esc")
	for _, text := range texts {
		panetest.Press(d, "esc", "/")
		d.Update(tea.PasteMsg{Content: text})
		panetest.Screen(t, d.View(), 160, 46)
	}
	for _, text := range texts {
		e := newDesk()
		e.SetStyles(panetest.Styles(t, "patio-dark"))
		e.SetSize(60, 12)
		e.h.err = errors.New(text)
		e.poll()
		panetest.Screen(t, e.View(), 60, 12)
		e.take(build)
		panetest.Screen(t, e.View(), 60, 12)
	}
}

func TestSizes(t *testing.T) {
	for _, keys := range [][]string{{}, {"enter"}, {"/", "n"}} {
		d := newDesk(build...).poll()
		d.SetStyles(panetest.Styles(t, "patio-light"))
		panetest.Press(d, keys...)
		panetest.EverySize(t, d)
	}
	d := newDesk()
	d.SetStyles(panetest.Styles(t, "patio-light"))
	panetest.EverySize(t, d)
}

func BenchmarkListed(b *testing.B) {
	var ps []api.Process
	for i := range 10_000 {
		ps = append(ps, api.Process{PID: i + 1, PPID: i / 3, CPUPercent: float64(i % 90), RSS: int64(i) << 12, Command: fmt.Sprintf("node worker %d", i)})
	}
	for o := range orders {
		b.Run(strings.ReplaceAll(o.String(), " ", "-"), func(b *testing.B) {
			d := newDesk(ps...).poll()
			d.SetStyles(panetest.Styles(b, "patio-dark"))
			d.SetSize(160, 46)
			d.order = o
			for b.Loop() {
				d.listed(listedMsg{d.Pane, ps, nil})
				d.View()
			}
		})
	}
}

func BenchmarkView(b *testing.B) {
	var ps []api.Process
	for i := range 10_000 {
		ps = append(ps, api.Process{PID: i + 1, PPID: i / 3, Command: fmt.Sprintf("node worker %d", i)})
	}
	d := newDesk(ps...).poll()
	d.SetStyles(panetest.Styles(b, "patio-dark"))
	d.SetSize(160, 46)
	panetest.Press(d, "enter")
	for b.Loop() {
		panetest.Press(d, "j")
		d.View()
	}
}
