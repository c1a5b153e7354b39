package timeline

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/themes"
	"patio/tui/pane"
	"patio/tui/panetest"
	"patio/tui/style"
)

var (
	_ pane.Pane     = (*Timeline)(nil)
	_ pane.Follower = (*Timeline)(nil)
	_ pane.Counter  = (*Timeline)(nil)
	_ pane.Ticker   = (*Timeline)(nil)
)

var start = time.Date(2026, 12, 7, 12, 0, 0, 0, time.UTC)

func now() time.Time { return start.Add(time.Minute) }

func newTimeline(t testing.TB, records []journal.Record, width, height int) *Timeline {
	t.Helper()
	tl := New(now)
	tl.SetStyles(panetest.Styles(t, themes.DefaultDark))
	tl.SetSize(width, height)
	tl.SetSession(api.Session{ID: "tour", Phase: api.PhaseReady})
	tl.Apply(records)
	return tl
}

// record is one of a time in milliseconds after the start.
func record(seq, ms int, typ, data string) journal.Record {
	return journal.Record{Version: 1, Seq: uint64(seq), Session: "s", Type: typ, Time: start.Add(time.Duration(ms) * time.Millisecond), Data: json.RawMessage(data)}
}

func rpc(seq, ms int, line string) journal.Record {
	return record(seq, ms, api.RecordRPC, `{"direction":"from_pi","line":`+line+`}`)
}

func press(t *Timeline, keys ...string) tea.Msg {
	cmd := panetest.Press(t, keys...)
	if cmd == nil {
		return nil
	}
	return cmd()
}

// rows are the list's cells, joined.
func rows(t *Timeline) []string {
	var all []string
	for i := range t.Len() {
		var cells []string
		for _, c := range t.Row(i)[1:] {
			if c.Text != "" {
				cells = append(cells, c.Text)
			}
		}
		all = append(all, strings.Join(cells, " | "))
	}
	return all
}

func TestGolden(t *testing.T) {
	records := panetest.Records(t, "testdata/tour.journal.jsonl")
	cases := map[string]func(*Timeline){
		"empty": nil,
		"tour":  func(tl *Timeline) { press(tl, "G", "k", "k", "k", "k", "k", "k", "k", "k") },
		"zoom":  func(tl *Timeline) { press(tl, "g", "j", "j", "j", "j", "j", "j", "j", "+", "+", "+") },
		"chips": func(tl *Timeline) { press(tl, "u", "i", "c") },
		"live":  nil,
	}
	for name, prepare := range cases {
		panetest.Golden(t, name, "\n", func(w, h int, s *style.Styles) string {
			tl := New(now)
			tl.SetStyles(s)
			tl.SetSize(w, h)
			if prepare != nil {
				tl.Apply(records)
				prepare(tl)
			}
			if name == "live" {
				tl.Apply(live())
			}
			return tl.View()
		})
	}
}

// live is a session in which much goes on at the same time.
func live() []journal.Record {
	return []journal.Record{
		record(1, 0, "state", `{"phase":"preparing"}`), record(2, 400, "state", `{"phase":"starting"}`),
		record(3, 2000, "state", `{"phase":"ready","activity":"idle","model":{"provider":"demo","id":"tour"}}`),
		rpc(4, 5000, `{"type":"message_end","message":{"role":"user","content":[{"type":"text","text":"Build it,\nand test it"}]}}`),
		rpc(5, 5010, `{"type":"turn_start"}`),
		record(6, 5200, "egress", `{"kind":"connection","id":"c1","verdict":"allow","host":"api.example.com","port":443}`),
		rpc(7, 12000, `{"type":"turn_end","message":{"content":[{"type":"thinking","thinking":"x"},{"type":"toolCall","name":"bash"},{"type":"toolCall","name":"read"}]}}`),
		rpc(8, 12010, `{"type":"tool_execution_start","toolCallId":"t1","toolName":"bash","args":{"command":"make"}}`),
		rpc(9, 12020, `{"type":"tool_execution_start","toolCallId":"t2","toolName":"read","args":{"path":"README.md"}}`),
		rpc(10, 12030, `{"type":"tool_execution_start","toolCallId":"t3","toolName":"web","args":{"x":1}}`),
		record(11, 14000, "egress", `{"kind":"dns","verdict":"deny","host":"registry.example.com","port":53,"reason":"no_rule","count":3,"tool_calls":["t1"]}`),
		rpc(12, 15000, `{"type":"tool_execution_end","toolCallId":"t2","toolName":"read","result":{},"isError":false}`),
		rpc(13, 22000, `{"type":"tool_execution_end","toolCallId":"t3","toolName":"web","result":{},"isError":true}`),
		record(14, 25000, "exec", `{"argv":["top","-b"]}`),
		record(15, 30000, "state", `{"phase":"ready","question":{"id":"q1","title":"Overwrite?"}}`),
		record(16, 36000, "state", `{"phase":"ready","answered":"q1"}`),
		record(17, 40000, "exec", `{"argv":["sh"]}`), record(18, 41000, "exec", `{"argv":["sh"]}`),
		record(19, 45000, "exec", `{"argv":["sh"],"exited":true,"exit_code":3}`),
		rpc(20, 46000, `{"type":"compaction_start"}`), rpc(21, 50000, `{"type":"compaction_end"}`),
		rpc(22, 51000, `{"type":"turn_start"}`),
	}
}

func TestEvents(t *testing.T) {
	tl := newTimeline(t, live(), 120, 30)
	require.Equal(t, []string{
		"○ state | preparing", "○ state | starting", "○ state | ready",
		"❯ prompt | Build it,\nand test it",
		"7.0 s | ◆ turn | turn 1: calls bash, read",
		"54.8 s | ↔ network | api.example.com:443 | goes on",
		"48.0 s | ■ tool | bash make | goes on",
		"3.0 s | ■ tool | read README.md",
		`10.0 s | ✗ tool | web {"x":1} | failed`,
		"✗ denied | registry.example.com:53 | 3× denied: no rule",
		"35.0 s | $ program | top -b | goes on",
		"6.0 s | ○ state | asks: Overwrite? | answered",
		"5.0 s | ✗ program | sh | exit code 3",
		"19.0 s | $ program | sh | goes on",
		"4.0 s | ◆ turn | compaction",
		"9.0 s | ◆ turn | turn 2 | goes on",
	}, rows(tl))
	require.Equal(t, 16, tl.Count())
	require.Equal(t, 3, tl.rows[kindTool])

	tl.Apply([]journal.Record{
		record(30, 52000, "egress", `{"kind":"end","id":"c1","verdict":"allow","host":"api.example.com","port":443,"bytes_in":2048,"bytes_out":10}`),
		record(31, 52100, "egress", `{"kind":"end","id":"c0","verdict":"allow","host":"old","port":443,"duration_ms":1000}`),
		record(32, 52200, "egress", `{"kind":"dropped","count":9,"verdict":"deny"}`),
		record(33, 52300, "egress", `{"kind":"dns","verdict":"allow","host":"api.example.com"}`),
		record(34, 52400, "egress", `no JSON`),
		rpc(35, 52500, `{"type":"turn_end","message":{"content":"half","stopReason":"error","errorMessage":"overloaded"}}`),
		rpc(36, 52600, `{"type":"turn_start"}`),
		rpc(37, 52700, `{"type":"agent_end","messages":[]}`),
		record(38, 52800, "state", `{"phase":"ready","model":{"provider":"p","id":"m"}}`),
		record(39, 53000, "state", `{"phase":"failed","error":{"message":"no memory"}}`),
	})
	all := rows(tl)
	require.Equal(t, "46.8 s | ↔ network | api.example.com:443 | 2.0 KiB in, 10 B out", all[5])
	require.Equal(t, "41.0 s | ■ tool | bash make | cut off", all[6])
	require.Equal(t, []string{
		"1.5 s | ✗ turn | turn 2: half | error overloaded",
		"1.0 s | ↔ network | old:443 | 0 B in, 0 B out",
		"✗ denied | 9 decisions were too many to record",
		"100 ms | ◆ turn | turn 3 | cut off",
		"○ state | model p/m",
		"✗ state | failed | no memory",
	}, all[15:])
	require.Empty(t, tl.running)
	require.Equal(t, [kinds][maxRows]int{}, tl.busy)
}

func TestTour(t *testing.T) {
	tl := newTimeline(t, panetest.Records(t, "testdata/tour.journal.jsonl"), 120, 40)
	text := strings.Join(rows(tl), "\n")
	require.Contains(t, text, "❯ prompt | Have a look around")
	require.Contains(t, text, "turn 8: ")
	require.Contains(t, text, "✗ tool | bash curl -sS -m 5 https://example.com | failed")
	require.Contains(t, text, "✗ denied | example.com:53 | denied: empty policy")
	require.Contains(t, text, "model.patio.internal:80")
	require.Contains(t, text, "○ state | ended | patio run is done")
}

func TestCrashEndsWhatGoesOn(t *testing.T) {
	tl := newTimeline(t, live(), 120, 30)
	tl.SetSession(api.Session{Phase: api.PhaseCrashed, Seq: 30})
	require.NotEmpty(t, tl.running) // not all of the journal is here
	tl.Apply([]journal.Record{record(30, 55000, "stats", `{}`)})
	require.Empty(t, tl.running)
	require.Contains(t, strings.Join(rows(tl), "\n"), "bash make | cut off")
	require.Equal(t, start.Add(55*time.Second).UnixNano(), tl.end())
}

func TestSelectionIsTold(t *testing.T) {
	tl := newTimeline(t, live(), 120, 30)
	require.Equal(t, pane.FocusMsg{From: "Timeline", Seq: 1}, press(tl, "g"))
	require.Nil(t, press(tl, "g")) // it is there already
	press(tl, "j", "j", "j", "j", "j", "j")
	require.Equal(t, pane.FocusMsg{From: "Timeline", Seq: 9, ToolCall: "t2"}, press(tl, "j"))
	require.Equal(t, pane.FocusMsg{From: "Timeline", Tab: "Chat", Seq: 9, ToolCall: "t2"}, press(tl, "enter"))
	require.Equal(t, pane.FocusMsg{From: "Timeline", Seq: 11, Host: "registry.example.com", ToolCall: "t1"}, press(tl, "j", "j"))
	require.Equal(t, "Egress", press(tl, "enter").(pane.FocusMsg).Tab)
	require.Equal(t, "Traffic", press(tl, "j", "enter").(pane.FocusMsg).Tab)
	require.Equal(t, "12:00:25.000\tprogram\ttop -b\t35.0 s", press(tl, "y").(pane.CopyMsg).Text)
}

func TestFocus(t *testing.T) {
	tl := newTimeline(t, live(), 120, 30)
	focus := func(m pane.FocusMsg) string {
		require.Nil(t, tl.Update(m))
		return rows(tl)[tl.table.Cursor()]
	}
	require.Contains(t, focus(pane.FocusMsg{From: "Chat", ToolCall: "t1"}), "bash make")
	require.Contains(t, focus(pane.FocusMsg{From: "Egress", Seq: 11, ToolCall: "t1"}), "registry")
	require.Contains(t, focus(pane.FocusMsg{From: "Traffic", Seq: 12}), "README") // the record that ended it
	require.Contains(t, focus(pane.FocusMsg{From: "Traffic", Seq: 29}), "turn 2")
	require.Contains(t, focus(pane.FocusMsg{From: "Egress", Host: "api.example.com"}), "api.example.com")
	require.Contains(t, focus(pane.FocusMsg{From: "Timeline", Seq: 1}), "api.example.com")
	require.Contains(t, focus(pane.FocusMsg{From: "Chat", ToolCall: "none"}), "api.example.com")
	require.False(t, tl.table.Following())
	// The axis goes with it.
	press(tl, "+", "+", "+", "+")
	focus(pane.FocusMsg{From: "Traffic", Seq: 22})
	from, to := tl.window()
	require.Less(t, from, tl.selected().begin)
	require.Greater(t, to, tl.selected().begin)
}

func TestAxis(t *testing.T) {
	tl := newTimeline(t, live(), 120, 30)
	tl.Update(pane.FocusMsg{From: "Chat", ToolCall: "t1"})
	lines := strings.Split(panetest.Plain(tl.View()), "\n")
	require.Contains(t, lines[0], "✓c tools 3")
	require.Contains(t, lines[1], "turns")
	require.Contains(t, lines[1], "╺━")
	require.Contains(t, lines[2], "tools")
	require.Contains(t, lines[2], "█") // selected
	require.Contains(t, lines[3], "━✗")
	require.Contains(t, lines[4], "network")
	require.Contains(t, lines[4], "✗")
	require.Contains(t, panetest.Plain(tl.View()), "processes and files appear here when the sandbox's trace is on")
	ruler := lines[9]
	require.Contains(t, ruler, "┴12:00:20")
	// To scale: 20 s are a third of the minute and its margin.
	at := len([]rune(ruler[:strings.Index(ruler, "┴12:00:20")])) - laneLabel - 1
	require.InDelta(t, 108*20/61.2, at, 1)
	require.Equal(t, 1, strings.Count(ruler, "▲"))
	require.Equal(t, "all 1m 01s", regexp.MustCompile(`all \S+ \S+`).FindString(lines[0]))
}

func TestZoomAndPan(t *testing.T) {
	tl := newTimeline(t, live(), 120, 30)
	tl.Update(pane.FocusMsg{From: "Chat", ToolCall: "t2"})
	require.Zero(t, tl.span)
	press(tl, "h", "l")
	require.Zero(t, tl.span) // all of it can't move
	press(tl, "+", "+", "+")
	from, to := tl.window()
	e := tl.selected()
	require.InDelta(t, 61.2/8, time.Duration(to-from).Seconds(), 0.1)
	require.LessOrEqual(t, from, e.begin)
	require.GreaterOrEqual(t, to, e.end)
	press(tl, "h")
	left, _ := tl.window()
	require.Equal(t, from-(to-from)/4, left)
	for range 100 {
		press(tl, "h")
	}
	left, _ = tl.window()
	require.Equal(t, start.UnixNano(), left)
	for range 100 {
		press(tl, "l")
	}
	_, end := tl.whole()
	_, right := tl.window()
	require.Equal(t, end, right)
	require.True(t, tl.follows)
	press(tl, "w")
	require.Zero(t, tl.span)
	for range 40 {
		press(tl, "+")
		panetest.Screen(t, tl.View(), 120, 30)
	}
	require.Equal(t, int64(minSpan), tl.span)
	for range 40 {
		press(tl, "-")
		panetest.Screen(t, tl.View(), 120, 30)
	}
	require.Zero(t, tl.span)
	press(tl, "+", "g")
	require.False(t, tl.follows)
	press(tl, "f")
	require.True(t, tl.follows)
	require.Equal(t, tl.Len()-1, tl.table.Cursor())
}

func TestChips(t *testing.T) {
	tl := newTimeline(t, live(), 120, 30)
	all := tl.Len()
	tl.Update(pane.FocusMsg{From: "Egress", Seq: 11})
	press(tl, "u")
	require.Equal(t, all-4, tl.Len())
	require.Contains(t, rows(tl)[tl.table.Cursor()], "registry")
	require.Contains(t, panetest.Plain(tl.View()), "·u turns 4")
	tl.Apply([]journal.Record{rpc(60, 55000, `{"type":"compaction_start"}`)})
	require.Equal(t, all-4, tl.Len())
	press(tl, "c", "o", "p", "i")
	require.Zero(t, tl.Len())
	require.Contains(t, panetest.Plain(tl.View()), "kinds that are hidden")
	require.Nil(t, press(tl, "enter"))
	require.Nil(t, press(tl, "y"))
	press(tl, "u", "c", "o", "p", "i")
	require.Equal(t, all+1, tl.Len())
	tl.Update(tea.MouseClickMsg{X: 1, Y: 0, Button: tea.MouseLeft})
	require.True(t, tl.hidden[kindTurn])
	tl.Update(tea.MouseClickMsg{X: 15, Y: 0, Button: tea.MouseLeft})
	require.True(t, tl.hidden[kindTool])
	tl.Update(tea.MouseClickMsg{X: 119, Y: 0, Button: tea.MouseLeft})
}

func TestMouse(t *testing.T) {
	tl := newTimeline(t, live(), 120, 30)
	cmd := tl.Update(tea.MouseClickMsg{X: 5, Y: tl.axisHeight() + 3, Button: tea.MouseLeft})
	require.Equal(t, uint64(2), cmd().(pane.FocusMsg).Seq)
	tl.Update(tea.MouseWheelMsg{Y: tl.axisHeight() + 3, Button: tea.MouseWheelDown})
	require.Equal(t, 4, tl.table.Cursor())
	// A bar in the second line of the tools.
	s := tl.scale()
	x := s.column(start.Add(13*time.Second).UnixNano()) + laneLabel + 1
	cmd = tl.Update(tea.MouseClickMsg{X: x, Y: 3, Button: tea.MouseLeft})
	require.Equal(t, "t2", cmd().(pane.FocusMsg).ToolCall)
	require.Nil(t, tl.Update(tea.MouseClickMsg{X: 100, Y: 3, Button: tea.MouseLeft})) // nothing near
	require.Nil(t, tl.Update(tea.MouseClickMsg{X: 100, Y: tl.axisHeight(), Button: tea.MouseLeft}))
	tl.Update(tea.MouseWheelMsg{Y: 2, Button: tea.MouseWheelUp})
	require.Positive(t, tl.span)
	tl.Update(tea.MouseWheelMsg{Y: 2, Button: tea.MouseWheelDown})
	require.Zero(t, tl.span)
}

func TestMemoryIsBounded(t *testing.T) {
	tl := newTimeline(t, nil, 120, 30)
	tl.SetSession(api.Session{})
	var batch []journal.Record
	for i := range 140_000 {
		batch = append(batch, rpc(i+1, i, fmt.Sprintf(`{"type":"tool_execution_start","toolCallId":"t%d","toolName":"bash","args":{"command":"x"}}`, i)))
		if i > 0 && i%2 == 0 {
			batch = append(batch, rpc(i+1, i, fmt.Sprintf(`{"type":"tool_execution_end","toolCallId":"t%d","isError":false}`, i)))
		}
		if len(batch) > 1000 {
			tl.Apply(batch)
			batch = batch[:0]
			require.LessOrEqual(t, len(tl.events), maxEvents+maxEvents/8)
			require.LessOrEqual(t, len(tl.running), maxRunning)
		}
	}
	require.Positive(t, tl.dropped)
	require.Equal(t, len(tl.events), tl.Len())
	require.Equal(t, len(tl.events), tl.counts[kindTool])
	panetest.Screen(t, tl.View(), 120, 30)
	require.Contains(t, panetest.Plain(tl.View()), "older were dropped")
	press(tl, "g")
	require.Equal(t, tl.dropped, tl.shown[tl.table.Cursor()])
	at := tl.selected().seq
	for tl.dropped == tl.shown[tl.table.Cursor()] && len(tl.events) > maxEvents+1 {
		tl.add(event{kind: kindState, point: true, begin: 1})
	}
	panetest.Screen(t, tl.View(), 120, 30)
	require.GreaterOrEqual(t, tl.selected().seq, at)
}

func TestHostile(t *testing.T) {
	for name, h := range panetest.Hostile(panetest.Endless) {
		t.Run(name, func(t *testing.T) {
			quoted, err := json.Marshal(h)
			require.NoError(t, err)
			var records []journal.Record
			for _, s := range []string{string(quoted), `"` + strings.NewReplacer(`"`, "", `\`, "").Replace(h) + `"`} {
				n := len(records)
				records = append(records,
					rpc(n+1, 1, `{"type":`+s+`}`), rpc(n+2, 2, `{"type":"turn_start"}`), rpc(n+3, 3, `{"type":"turn_end","message":{"content":`+s+`,"stopReason":"error","errorMessage":`+s+`}}`),
					rpc(n+4, 4, `{"type":"message_end","message":{"role":"user","content":`+s+`}}`), rpc(n+5, 5, `{"type":"tool_execution_start","toolCallId":`+s+`,"toolName":`+s+`,"args":`+s+`}`),
					rpc(n+6, 6, `{"type":"tool_execution_end","toolCallId":`+s+`,"isError":true}`), record(n+7, 7, "exec", `{"argv":[`+s+`]}`), record(n+8, 8, "state", `{"phase":`+s+`,"reason":`+s+`,"question":{"id":`+s+`,"title":`+s+`}}`),
					record(n+9, 9, "egress", `{"kind":"dns","verdict":"deny","host":`+s+`,"reason":`+s+`,"tool_calls":[`+s+`]}`), record(n+10, 10, "state", `{"phase":"x","model":{"provider":`+s+`,"id":`+s+`}}`),
				)
			}
			for _, width := range []int{60, 160} {
				tl := newTimeline(t, records, width, 24)
				require.Greater(t, tl.Len(), 10)
				press(tl, "g")
				for range tl.Len() {
					panetest.Screen(t, tl.View(), width, 24)
					press(tl, "j")
				}
			}
		})
	}
}

func TestSizes(t *testing.T) {
	for name, records := range map[string][]journal.Record{"live": live(), "tour": panetest.Records(t, "testdata/tour.journal.jsonl"), "none": nil} {
		t.Run(name, func(t *testing.T) {
			tl := newTimeline(t, records, 80, 20)
			for w, h := range panetest.Sizes(12, 4) {
				tl.SetSize(w, h)
				panetest.Screen(t, tl.View(), w, h)
			}
			for h := 1; h < 4; h++ {
				tl.SetSize(20, h)
				panetest.Screen(t, tl.View(), 20, h)
			}
			tl.SetSize(0, 0)
			require.Empty(t, tl.View())
		})
	}
}

func TestEmptyStates(t *testing.T) {
	tl := newTimeline(t, nil, 80, 20)
	require.Contains(t, panetest.Plain(tl.View()), "Nothing has happened yet")
	press(tl, "+", "-", "h", "l", "w", "f", "enter", "y", "j", "k")
	panetest.Screen(t, tl.View(), 80, 20)
	tl.SetSession(api.Session{Phase: api.PhaseEnded})
	require.Contains(t, panetest.Plain(tl.View()), "ended before anything happened")
	tl.Tick()
}

func TestNoKeyOfTheRoots(t *testing.T) {
	tl := newTimeline(t, live(), 80, 20)
	press(tl, "g", "+")
	does := panetest.OwnKeys(t, tl)
	require.Contains(t, does, "f")
	require.Contains(t, does, "w")
}

func TestTimesFarApart(t *testing.T) {
	tl := newTimeline(t, []journal.Record{
		{Seq: 1, Type: "state", Time: time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC), Data: json.RawMessage(`{"phase":"new"}`)},
		record(2, 0, "state", `{"phase":"ready"}`),
		{Seq: 3, Type: "state", Time: time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC), Data: json.RawMessage(`{"phase":"ended"}`)},
	}, 80, 20)
	for range 60 {
		panetest.Screen(t, tl.View(), 80, 20)
		press(tl, "+", "k")
	}
}

func BenchmarkView50k(b *testing.B) {
	tl := New(now)
	tl.SetStyles(panetest.Styles(b, themes.DefaultDark))
	tl.SetSize(160, 46)
	var batch []journal.Record
	for i := range maxEvents {
		batch = append(batch, rpc(2*i+1, i, fmt.Sprintf(`{"type":"tool_execution_start","toolCallId":"t%d","toolName":"bash","args":{"command":"x"}}`, i)),
			rpc(2*i+2, i+1, fmt.Sprintf(`{"type":"tool_execution_end","toolCallId":"t%d","isError":false}`, i)))
	}
	tl.Apply(batch)
	for b.Loop() {
		tl.Update(panetest.Key("k"))
		_ = tl.View()
	}
}

func BenchmarkApply1000Deltas(b *testing.B) {
	tl := New(now)
	tl.SetStyles(panetest.Styles(b, themes.DefaultDark))
	tl.SetSize(160, 46)
	var batch []journal.Record
	for i := range 1000 {
		batch = append(batch, rpc(i+1, i, `{"type":"message_update","usage":{"input":102,"output":7,"totalTokens":109},"assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":" some words"}}`))
	}
	for b.Loop() {
		tl.Apply(batch)
	}
}
