package traffic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/themes"
	"patio/tui/figure"
	"patio/tui/pane"
	"patio/tui/panetest"
	"patio/tui/style"
)

var (
	_ pane.Pane     = (*Traffic)(nil)
	_ pane.Follower = (*Traffic)(nil)
	_ pane.Counter  = (*Traffic)(nil)
	_ pane.Typist   = (*Traffic)(nil)
	_ pane.Cursored = (*Traffic)(nil)
	_ pane.Escaper  = (*Traffic)(nil)
)

func TestGolden(t *testing.T) {
	records := panetest.Records(t, "testdata/tour.journal.jsonl")
	cases := map[string]func(*Traffic){
		"empty":   nil,
		"list":    func(tr *Traffic) { press(tr, "G", "k", "k", "k") },
		"deltas":  func(tr *Traffic) { press(tr, "g"); run(tr, tr.Update(pane.FocusMsg{Seq: 22})); press(tr, "l") },
		"filter":  func(tr *Traffic) { press(tr, "/"); write(tr, "example.com") },
		"open":    func(tr *Traffic) { run(tr, tr.Update(pane.FocusMsg{Seq: 160})); press(tr, "enter") },
		"paused":  func(tr *Traffic) { press(tr, "d", "b", "p"); tr.Apply([]journal.Record{rpc(500, `{"type":"new"}`)}) },
		"nothing": func(tr *Traffic) { press(tr, "/"); write(tr, "nothing says this"); press(tr, "enter") },
	}
	for name, prepare := range cases {
		panetest.Golden(t, name, "\n", func(w, h int, s *style.Styles) string {
			tr := New(&fakeHost{records: records}, now)
			tr.SetStyles(s)
			tr.SetSize(w, h)
			if prepare != nil {
				tr.Apply(records)
				prepare(tr)
			}
			return tr.View()
		})
	}
}

func TestSummaries(t *testing.T) {
	cases := map[string]struct {
		record  journal.Record
		typ     string
		class   class
		way     way
		failed  bool
		summary string
	}{
		"prompt":        {rpcBy(1, api.ToPi, `{"type":"prompt","message":"hello","streamingBehavior":"steer"}`), "prompt", classCommand, toPi, false, "hello · steer"},
		"bash":          {rpcBy(1, api.ToPi, `{"type":"bash","command":"ls"}`), "bash", classCommand, toPi, false, "ls"},
		"model":         {rpcBy(1, api.ToPi, `{"type":"set_model","provider":"p","modelId":"m"}`), "set_model", classCommand, toPi, false, "p/m"},
		"name":          {rpcBy(1, api.ToPi, `{"type":"set_session_name","name":"x"}`), "set_session_name", classCommand, toPi, false, "x"},
		"other command": {rpcBy(1, api.ToPi, `{"type":"cycle","id":"1","by":2}`), "cycle", classCommand, toPi, false, "by 2"},
		"response":      {rpc(1, `{"id":"1","type":"response","command":"get_state","success":true,"data":{"a":1}}`), "response get_state", classResponse, fromPi, false, `ok · {"a":1}`},
		"failure":       {rpc(1, `{"type":"response","command":"fork","success":false,"error":"no"}`), "response fork", classResponse, fromPi, true, "failed: no"},
		"question":      {rpc(1, `{"type":"extension_ui_request","method":"select","title":"Which?"}`), "extension_ui_request", classUI, fromPi, false, "select · Which?"},
		"answer":        {rpcBy(1, api.ToPi, `{"type":"extension_ui_response","value":"b"}`), "extension_ui_response", classUI, toPi, false, "b"},
		"no":            {rpcBy(1, api.ToPi, `{"type":"extension_ui_response","cancelled":true}`), "extension_ui_response", classUI, toPi, false, "cancelled"},
		"yes":           {rpcBy(1, api.ToPi, `{"type":"extension_ui_response","confirmed":true}`), "extension_ui_response", classUI, toPi, false, "confirmed: true"},
		"delta":         {rpc(1, `{"type":"message_update","assistantMessageEvent":{"type":"text_delta","delta":"hi"}}`), "message_update", classEvent, fromPi, false, "text_delta hi"},
		"delta's end":   {rpc(1, `{"type":"message_update","assistantMessageEvent":{"type":"toolcall_end","toolCall":{"name":"bash"}}}`), "message_update", classEvent, fromPi, false, "toolcall_end · bash"},
		"message":       {rpc(1, `{"type":"message_end","message":{"role":"user","content":"plain"}}`), "message_end", classEvent, fromPi, false, "user · plain"},
		"model failed":  {rpc(1, `{"type":"message_end","message":{"role":"assistant","content":[],"stopReason":"error","errorMessage":"401"}}`), "message_end", classEvent, fromPi, true, "assistant · 401"},
		"tool":          {rpc(1, `{"type":"tool_execution_start","toolCallId":"c","toolName":"read","args":{"path":"a.go"}}`), "tool_execution_start", classEvent, fromPi, false, "read · a.go"},
		"tool failed":   {rpc(1, `{"type":"tool_execution_end","toolName":"x","args":{"q":1},"result":{"content":[{"text":"bad"}]},"isError":true}`), "tool_execution_end", classEvent, fromPi, true, `x · {"q":1} · bad`},
		"extension":     {rpc(1, `{"type":"extension_error","extensionPath":"e","event":"command","error":"boom"}`), "extension_error", classEvent, fromPi, true, "e · command · boom"},
		"no object":     {rpc(1, `[1]`), "no type", classEvent, fromPi, false, "1"},
		"no JSON":       {record(1, "rpc", `{"direction":"from_pi","text":"Segmentation \"fault\""}`), "no JSON", classEvent, fromPi, true, `Segmentation "fault"`},
		"stderr":        {record(1, "stderr", `{"text":"warn\n"}`), "stderr", classStderr, noWay, false, "warn"},
		"denied":        {record(1, "egress", `{"kind":"dns","verdict":"deny","host":"h","port":53,"reason":"no_rule"}`), "egress dns", classEgress, noWay, true, "denied h:53 no_rule"},
		"allowed":       {record(1, "egress", `{"kind":"connection","verdict":"allow","host":"h","port":443}`), "egress connection", classEgress, noWay, false, "allowed h:443"},
		"program":       {record(1, "exec", `{"argv":["sh","-c"],"exited":true,"exit_code":2}`), "exec", classState, noWay, true, "sh -c exited with 2"},
		"crash":         {record(1, "state", `{"phase":"crashed","error":{"message":"gone"}}`), "state", classState, noWay, true, "crashed · gone"},
		"stats":         {record(1, "stats", `{"cpu_percent":12.4,"memory_bytes":1048576,"pids":3}`), "stats", classStats, noWay, false, "CPU 12%, memory 1.0 MiB, 3 processes"},
		"another":       {record(1, "later", `{"a":1}`), "later", classState, noWay, false, `{"a":1}`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := describe(c.record)
			require.Equal(t, c.typ, d.typ)
			require.Equal(t, c.class, d.class)
			require.Equal(t, c.way, d.way)
			require.Equal(t, c.failed, d.failed)
			require.Equal(t, c.summary, d.summary)
		})
	}
	require.Equal(t, 2, describe(rpc(1, `{}`)).size)
	require.LessOrEqual(t, len(describe(rpcBy(1, api.ToPi, `{"type":"prompt","message":"`+strings.Repeat("é", 900)+`"}`)).summary), maxSummary)
}

func updates(from, n int) []journal.Record {
	var all []journal.Record
	for i := range n {
		all = append(all, rpc(from+i, fmt.Sprintf(`{"type":"message_update","assistantMessageEvent":{"type":"text_delta","delta":"d%d"}}`, i)))
	}
	return all
}

func TestDeltasFold(t *testing.T) {
	start := func(seq int) journal.Record { return rpc(seq, `{"type":"message_start","message":{}}`) }
	records := append([]journal.Record{start(1)}, updates(2, 3)...)
	records = append(records, record(5, "stats", `{}`))
	records = append(records, updates(6, 2)...)
	records = append(records, start(8))
	records = append(records, updates(9, 2)...)
	tr, _ := newTraffic(t, records, 100, 20)
	require.Equal(t, []string{"message_start", "▸ message_update ×5", "message_start", "▸ message_update ×2"}, shown(tr))
	// What is shown between them parts them.
	press(tr, "d")
	require.Equal(t, []string{"message_start", "▸ message_update ×3", "stats", "▸ message_update ×2", "message_start", "▸ message_update ×2"}, shown(tr))
	press(tr, "d")
	// Without what begins a message, two messages are still two.
	press(tr, "/")
	write(tr, "update")
	require.Equal(t, []string{"▸ message_update ×5", "▸ message_update ×2"}, shown(tr))
	press(tr, "esc")

	tr.table.SetCursor(1)
	press(tr, "enter")
	require.Equal(t, []string{"message_start", "▾ message_update ×5", "│ message_update", "│ message_update", "│ message_update", "│ message_update", "│ message_update", "message_start", "▸ message_update ×2"}, shown(tr))
	press(tr, "j", "j", "h")
	require.Equal(t, 1, tr.table.Cursor())
	require.Len(t, shown(tr), 4)

	// An open run at the end grows.
	press(tr, "G", "l")
	tr.Apply(updates(11, 2))
	require.Equal(t, []string{"message_start", "▸ message_update ×5", "message_start", "▾ message_update ×4", "│ message_update", "│ message_update", "│ message_update", "│ message_update"}, shown(tr))
	// Runs before it move it.
	tr.table.SetCursor(1)
	press(tr, "l")
	tr.Apply(updates(13, 1))
	require.Len(t, shown(tr), 14)
	press(tr, "h")
	tr.Apply(updates(14, 1))
	require.Len(t, shown(tr), 10)
	require.Equal(t, "▾ message_update ×6", shown(tr)[3])
	tr.table.SetCursor(9)
	press(tr, "h")
	tr.Apply(updates(15, 1))
	require.Equal(t, []string{"message_start", "▸ message_update ×5", "message_start", "▸ message_update ×7"}, shown(tr))
}

func TestChips(t *testing.T) {
	records := []journal.Record{
		rpcBy(1, api.ToPi, `{"type":"prompt"}`), rpc(2, `{"type":"response","command":"prompt","success":true}`), rpc(3, `{"type":"agent_start"}`),
		rpc(4, `{"type":"extension_ui_request"}`), record(5, "stderr", `{"text":"x"}`), record(6, "egress", `{"kind":"dns"}`), record(7, "state", `{"phase":"ready"}`), record(8, "stats", `{}`),
	}
	tr, _ := newTraffic(t, records, 160, 20)
	all := []string{"prompt", "response prompt", "agent_start", "extension_ui_request", "stderr", "egress dns", "state", "stats"}
	require.Equal(t, all[:7], shown(tr)) // stats are off
	for i, k := range []string{"c", "r", "v", "u", "w", "o", "i"} {
		press(tr, k)
		require.NotContains(t, shown(tr), all[i])
		require.Contains(t, panetest.Plain(tr.View()), "·"+k)
	}
	require.Empty(t, shown(tr))
	require.Contains(t, panetest.Plain(tr.View()), "kinds that are off")
	press(tr, "d")
	require.Equal(t, all[7:], shown(tr))
	for _, k := range []string{"c", "r", "v", "u", "w", "o", "i"} {
		press(tr, k)
	}
	require.Equal(t, all, shown(tr))
	press(tr, "b")
	require.Equal(t, all[:1], shown(tr))
	require.Contains(t, panetest.Plain(tr.View()), "→ to Pi")
	press(tr, "b")
	require.Equal(t, all[1:4], shown(tr))
	press(tr, "b")
	require.Equal(t, all, shown(tr))
	// The mouse does it too.
	line := strings.Split(panetest.Plain(tr.View()), "\n")[0]
	click := func(text string) {
		at := strings.Index(line, text)
		require.GreaterOrEqual(t, at, 0)
		run(tr, tr.Update(tea.MouseClickMsg{X: len([]rune(line[:at])) + 1, Button: tea.MouseLeft}))
	}
	click("✓w")
	require.NotContains(t, shown(tr), "stderr")
	click("b ↔")
	require.Equal(t, all[:1], shown(tr))
}

func TestFilter(t *testing.T) {
	tr, _ := newTraffic(t, panetest.Records(t, "testdata/tour.journal.jsonl"), 100, 20)
	total := tr.list.matched
	press(tr, "/")
	require.True(t, tr.Typing())
	require.NotNil(t, tr.Cursor())
	write(tr, "TOOL_execution_end")
	require.Len(t, shown(tr), 7)
	require.Contains(t, panetest.Plain(tr.View()), "7 of 229")
	press(tr, "enter")
	require.False(t, tr.Typing())
	require.True(t, tr.Escapes())
	press(tr, "esc")
	require.False(t, tr.Escapes())
	require.Equal(t, total, tr.list.matched)
	press(tr, "/")
	write(tr, "!message_")
	require.NotContains(t, strings.Join(shown(tr), " "), "message_")
	require.Equal(t, total-168, tr.list.matched)
	require.Len(t, tr.cached, 1) // of the one without a text
	press(tr, "backspace", "esc")
	require.Nil(t, tr.Cursor())
}

func TestDeepSearch(t *testing.T) {
	records := panetest.Records(t, "testdata/tour.journal.jsonl")
	tr, h := newTraffic(t, records, 100, 20)
	press(tr, "/")
	write(tr, "sandbox 4.19.0-gvisor") // in a tool's output, beyond what a summary has
	few := tr.list.matched
	press(tr, "enter")
	require.Greater(t, tr.list.matched, few)
	require.False(t, tr.deep.running)
	require.Contains(t, panetest.Plain(tr.View()), "by whole lines")
	want := 0
	for _, r := range records {
		if strings.Contains(string(r.Data), "sandbox 4.19.0-gvisor") && r.Type != "stats" {
			want++
		}
	}
	require.Equal(t, want, tr.list.matched)

	// What comes later is looked at as a whole too.
	late := rpc(900, `{"type":"message_end","x":"`+strings.Repeat("y", 20_000)+`sandbox 4.19.0-gvisor"}`)
	h.records = append(h.records, late)
	tr.Apply([]journal.Record{late, rpc(901, `{"type":"other"}`)})
	require.Equal(t, want+1, tr.list.matched)
	// Chips go with it, and inverting does.
	press(tr, "v", "v")
	require.Equal(t, want+1, tr.list.matched)
	press(tr, "/")
	tr.input.SetValue("!sandbox 4.19.0-gvisor")
	run(tr, tr.written())
	press(tr, "enter")
	require.Equal(t, 231-3-want-1, tr.list.matched)
	press(tr, "esc")
	require.Equal(t, 231-3, tr.list.matched)
}

func TestDeepSearchIsBoundedAndCancelled(t *testing.T) {
	var records []journal.Record
	for i := range 5000 {
		records = append(records, rpc(i+1, fmt.Sprintf(`{"type":"t","n":"%d","pad":"%s"}`, i, strings.Repeat("x", 300))))
	}
	records[4000] = rpc(4001, `{"type":"t","pad":"`+strings.Repeat("x", 10<<20)+`needle"}`)
	tr, h := newTraffic(t, records, 100, 20)
	press(tr, "/")
	write(tr, "needle")
	cmd := tr.Update(panetest.Key("enter"))
	require.True(t, tr.deep.running)
	require.Contains(t, panetest.Plain(tr.View()), "searching whole lines 0%")
	// One chunk, and then it is ended: what comes after that is for nobody.
	rest := []tea.Cmd{tr.Update(cmd().(deepMsg))}
	require.Regexp(t, `searching whole lines [1-9]\d%`, panetest.Plain(tr.View()))
	press(tr, "esc")
	require.False(t, tr.deep.running)
	require.True(t, tr.Escapes()) // the text is still there
	for _, c := range rest {
		run(tr, c)
	}
	require.False(t, tr.deep.running)
	require.Zero(t, tr.list.matched)
	press(tr, "/", "enter")
	require.Equal(t, 1, tr.list.matched)
	require.LessOrEqual(t, h.largest, chunkRows)
	require.Greater(t, h.reads, 3)
	// The end of a chunk is where it has enough bytes.
	c := tr.index.chunk(3999, 5000)
	require.Equal(t, 2, c.limit)

	press(tr, "esc")
	h.err = errors.New("disk gone")
	press(tr, "/")
	write(tr, "other")
	out := press(tr, "enter")
	require.ErrorContains(t, out[0].(pane.ErrorMsg).Err, "disk gone")
	require.False(t, tr.deep.running)
}

func TestPauseAndFollow(t *testing.T) {
	tr, _ := newTraffic(t, panetest.Records(t, "testdata/tour.journal.jsonl"), 100, 20)
	require.True(t, tr.table.Following())
	n := tr.Len()
	require.Equal(t, n-1, tr.table.Cursor())
	press(tr, "p")
	tr.Apply([]journal.Record{rpc(500, `{"type":"new"}`), rpc(501, `{"type":"new"}`)})
	require.Equal(t, n, tr.Len())
	require.Contains(t, panetest.Plain(tr.View()), "paused · 2 new")
	require.Equal(t, 231, tr.Count())
	press(tr, "c", "c") // another filter doesn't show them either
	require.Equal(t, n, tr.Len())
	press(tr, "space")
	require.Equal(t, n+2, tr.Len())
	require.NotContains(t, panetest.Plain(tr.View()), "paused")
	press(tr, "k")
	require.Contains(t, panetest.Plain(tr.View()), "not following")
	at := tr.table.Cursor()
	tr.Apply([]journal.Record{rpc(502, `{"type":"new"}`)})
	require.Equal(t, at, tr.table.Cursor())
	press(tr, "f")
	require.Equal(t, tr.Len()-1, tr.table.Cursor())
}

func TestOpen(t *testing.T) {
	for _, width := range []int{80, 160} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			tr, h := newTraffic(t, panetest.Records(t, "testdata/tour.journal.jsonl"), width, 20)
			run(tr, tr.Update(pane.FocusMsg{From: "chat", Seq: 8}))
			cmd := tr.Update(panetest.Key("enter"))
			require.Contains(t, panetest.Plain(tr.View()), "reading the line")
			out := run(tr, cmd)
			require.Equal(t, []tea.Msg{pane.FocusMsg{From: "Traffic", Seq: 8}}, out)
			require.Contains(t, panetest.Plain(tr.View()), `message: "Have a look around"`)
			require.Contains(t, panetest.Plain(tr.View()), "prompt → to Pi")
			require.NotEmpty(t, tr.Keys())
			require.Equal(t, `{"message":"Have a look around","type":"prompt","id":"run-1/2"}`, press(tr, "y")[0].(pane.CopyMsg).Text)
			press(tr, "J")
			require.Contains(t, panetest.Plain(tr.View()), `command: "prompt"`)
			press(tr, "K")
			require.Contains(t, panetest.Plain(tr.View()), "Have a look")
			press(tr, "/")
			require.True(t, tr.Typing())
			require.NotNil(t, tr.Cursor())
			write(tr, "zzz")
			press(tr, "enter")
			require.Contains(t, panetest.Plain(tr.View()), "no match")
			press(tr, "esc")
			require.NotNil(t, tr.detail)
			press(tr, "p")
			require.GreaterOrEqual(t, tr.paused, 0)
			press(tr, "esc")
			require.Nil(t, tr.detail)
			require.Nil(t, tr.Cursor())

			h.err = errors.New("no such\x1b[31m file")
			press(tr, "enter")
			require.Contains(t, panetest.Plain(tr.View()), "✗ The line can't be read: no such")
			panetest.Screen(t, tr.View(), width, 20)
			press(tr, "esc")
			h.err, h.records = nil, nil
			press(tr, "enter")
			require.Contains(t, panetest.Plain(tr.View()), "doesn't have this record any more")
			require.ErrorIs(t, func() error { press(tr, "esc"); return press(tr, "y")[0].(pane.ErrorMsg).Err }(), errGone)
		})
	}
}

func TestOpenText(t *testing.T) {
	tr, _ := newTraffic(t, []journal.Record{record(1, "rpc", `{"direction":"from_pi","text":"not \"JSON\""}`), record(2, "stderr", `{"text":"oh no\nagain"}`)}, 80, 20)
	press(tr, "enter")
	require.Contains(t, panetest.Plain(tr.View()), "again")
	require.Contains(t, panetest.Plain(tr.View()), "text, no JSON")
	press(tr, "esc")
	require.Equal(t, "oh no\nagain", press(tr, "y")[0].(pane.CopyMsg).Text)
	require.Equal(t, `not "JSON"`, press(tr, "k", "y")[0].(pane.CopyMsg).Text)
}

func TestCopyOfARun(t *testing.T) {
	records := append([]journal.Record{rpc(1, `{"type":"message_start"}`)}, updates(2, 3)...)
	records = append(records, record(5, "stats", `{}`))
	records = append(records, updates(6, 1)...)
	tr, _ := newTraffic(t, records, 80, 20)
	copied := press(tr, "y")[0].(pane.CopyMsg)
	require.Equal(t, 4, strings.Count(copied.Text, "\n"))
	require.Equal(t, 4, strings.Count(copied.Text, `{"type":"message_update"`))
	require.Equal(t, "4 lines", copied.What)
	tr.list.entries[1].size = maxCopy + 1
	require.Contains(t, press(tr, "y")[0].(pane.NoticeMsg).Text, "too much")
}

func TestExport(t *testing.T) {
	records := panetest.Records(t, "testdata/tour.journal.jsonl")
	records = append(records, record(230, "stderr", `{"text":"a <b> & c"}`))
	tr, h := newTraffic(t, records, 100, 20)
	exported := func() []journal.Record {
		m := press(tr, "e")[0].(pane.ExportMsg)
		require.Equal(t, "traffic-tour.ndjson", m.Name)
		var b bytes.Buffer
		require.NoError(t, m.Write(&b))
		var all []journal.Record
		for l := range strings.Lines(b.String()) {
			var r journal.Record
			require.NoError(t, json.Unmarshal([]byte(l), &r))
			all = append(all, r)
		}
		return all
	}
	var want []journal.Record
	for _, r := range records {
		if r.Type != "stats" {
			want = append(want, r)
		}
	}
	require.Equal(t, want, exported())
	press(tr, "/")
	write(tr, "!message_update")
	press(tr, "b", "enter") // typed: it is text
	press(tr, "backspace")
	got := exported()
	require.Len(t, got, tr.list.matched)
	press(tr, "esc", "/")
	write(tr, "<b> &")
	press(tr, "enter")
	require.Len(t, exported(), 1)
	press(tr, "esc", "w")
	h.err = errors.New("gone")
	require.ErrorContains(t, press(tr, "e")[0].(pane.ExportMsg).Write(&bytes.Buffer{}), "gone")
	press(tr, "/")
	write(tr, "nothing like this")
	press(tr, "enter")
	press(tr, "esc", "/")
	write(tr, "nothing like this")
	tr.typing = false
	require.Contains(t, press(tr, "e")[0].(pane.NoticeMsg).Text, "nothing to export")
}

func TestFocus(t *testing.T) {
	tr, _ := newTraffic(t, panetest.Records(t, "testdata/tour.journal.jsonl"), 160, 20)
	row := func() string { return strings.TrimSpace(tr.Row(tr.table.Cursor())[2].Text) }
	run(tr, tr.Update(pane.FocusMsg{From: "chat", ToolCall: "call_562f836f1db15ad1c1182527"}))
	require.Equal(t, "tool_execution_start", row())
	require.Contains(t, tr.Row(tr.table.Cursor())[4].Text, "https://example.com")
	run(tr, tr.Update(pane.FocusMsg{From: "egress", Seq: 161}))
	require.Equal(t, "egress dns", row())
	require.False(t, tr.table.Following())
	at := tr.table.Cursor()
	run(tr, tr.Update(pane.FocusMsg{From: "Traffic", Seq: 1}))
	run(tr, tr.Update(pane.FocusMsg{From: "chat", ToolCall: "unknown"}))
	require.Equal(t, at, tr.table.Cursor())
	press(tr, "enter")
	run(tr, tr.Update(pane.FocusMsg{From: "chat", Seq: 8})) // an open line follows
	require.Contains(t, panetest.Plain(tr.View()), "Have a look around")
	press(tr, "esc", "o")
	run(tr, tr.Update(pane.FocusMsg{From: "egress", Seq: 161})) // hidden: the nearest
	require.NotEqual(t, "egress dns", row())
}

func TestCursorStaysOnItsLine(t *testing.T) {
	tr, _ := newTraffic(t, panetest.Records(t, "testdata/tour.journal.jsonl"), 100, 20)
	run(tr, tr.Update(pane.FocusMsg{From: "chat", Seq: 161}))
	press(tr, "/")
	write(tr, "egress")
	require.Equal(t, "egress dns", strings.TrimSpace(tr.Row(tr.table.Cursor())[2].Text))
	require.Equal(t, uint64(161), tr.index.row(tr.selected()).seq)
	press(tr, "esc")
	require.Equal(t, uint64(161), tr.index.row(tr.selected()).seq)
}

// many is a journal like a long session's: mostly deltas.
func many(n int) []journal.Record {
	all := make([]journal.Record, 0, n)
	for i := range n {
		switch {
		case i%400 == 0:
			all = append(all, rpc(i+1, `{"type":"message_start","message":{"role":"assistant","content":[]}}`))
		case i%50 == 0:
			all = append(all, rpc(i+1, fmt.Sprintf(`{"type":"tool_execution_update","toolCallId":"call_%d","toolName":"bash","args":{"command":"go test ./... number %d"},"partialResult":{"content":[{"type":"text","text":"ok  	patio/tui	0.1s"}]}}`, i, i)))
		default:
			all = append(all, rpc(i+1, fmt.Sprintf(`{"type":"message_update","usage":{"input":102,"output":7,"cacheRead":0,"cacheWrite":0,"reasoning":0,"totalTokens":109,"cost":{"input":0.000102,"output":0.000014,"cacheRead":0,"cacheWrite":0,"total":0.000116}},"assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":" some words %d"}}`, i)))
		}
	}
	return all
}

func TestMemoryIsBounded(t *testing.T) {
	batch := many(1000)
	tr := New(&fakeHost{}, now)
	tr.SetStyles(panetest.Styles(t, themes.DefaultDark))
	tr.SetSize(160, 46)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	seq := uint64(0)
	feed := func(n int) {
		for range n {
			for i := range batch {
				seq++
				batch[i].Seq = seq
			}
			tr.Apply(batch)
		}
	}
	feed(600)
	used := heap() - before
	t.Logf("600,000 lines of %s take %s, %d bytes each", figure.Bytes(tr.index.bytes), figure.Bytes(int64(used)), used/600_000)
	require.Less(t, used, uint64(90<<20))
	press(tr, "/")
	write(tr, "!absent") // every line is an entry or in one
	require.Less(t, heap()-before, uint64(90<<20))
	press(tr, "esc")

	feed(300) // more than are kept
	require.Positive(t, tr.index.first)
	require.LessOrEqual(t, tr.index.end-tr.index.first, maxPages*perPage)
	require.Equal(t, 900_000, tr.Count())
	panetest.Screen(t, tr.View(), 160, 46)
	require.Contains(t, panetest.Plain(tr.View()), "older ones were dropped")
	press(tr, "g")
	panetest.Screen(t, tr.View(), 160, 46)
	press(tr, "enter")
	panetest.Screen(t, tr.View(), 160, 46)
	press(tr, "l")
	feed(20)
	panetest.Screen(t, tr.View(), 160, 46)
	matched := 0
	for _, e := range tr.list.entries {
		if e.kind != child {
			matched += int(e.n)
		}
	}
	require.Equal(t, matched, tr.list.matched)
	require.Equal(t, tr.index.end-tr.index.first, tr.list.matched)
}

func TestDropOfAnOpenLine(t *testing.T) {
	tr, _ := newTraffic(t, many(2*perPage), 160, 20)
	press(tr, "g", "j", "enter", "j", "enter")
	require.NotNil(t, tr.detail)
	tr.index.pages = tr.index.pages[1:]
	tr.index.first = perPage
	tr.dropped()
	panetest.Screen(t, tr.View(), 160, 20)
	require.Contains(t, panetest.Plain(tr.View()), "a line that was dropped")
}

func TestFilteringTakesSteps(t *testing.T) {
	tr, _ := newTraffic(t, many(5*stepRows), 100, 20)
	press(tr, "/")
	cmd := tr.Update(panetest.Key("w"))
	require.NotNil(t, cmd)
	require.Contains(t, panetest.Plain(tr.View()), "filtering 20%")
	// Another key makes the first filtering's message one for nobody.
	stale := cmd()
	cmd = tr.Update(panetest.Key("o"))
	require.Nil(t, tr.Update(stale))
	tr.Apply([]journal.Record{rpc(5*stepRows+1, `{"type":"wo"}`)})
	run(tr, cmd)
	require.False(t, tr.filtering())
	require.Equal(t, "wo", shown(tr)[tr.Len()-1])
}

func TestHostile(t *testing.T) {
	for name, h := range panetest.Hostile(panetest.Endless) {
		t.Run(name, func(t *testing.T) {
			quoted, err := json.Marshal(h)
			require.NoError(t, err)
			q := string(quoted)
			raw := `"` + strings.NewReplacer(`"`, "", `\`, "").Replace(h) + `"`
			var records []journal.Record
			for _, s := range []string{q, raw} {
				for _, line := range []string{
					`{"type":` + s + `,` + s + `:` + s + `}`, `{"type":"message_end","message":{"role":` + s + `,"content":[{"type":"text","text":` + s + `}]}}`,
					`{"type":"response","command":` + s + `,"success":false,"error":` + s + `}`, `{"type":"tool_execution_start","toolName":` + s + `,"args":` + s + `}`,
					`{"type":"message_update","assistantMessageEvent":{"type":` + s + `,"delta":` + s + `}}`, `{"type":"extension_ui_request","method":` + s + `,"title":` + s + `}`, s,
				} {
					records = append(records, rpc(len(records)+1, line), rpcBy(len(records)+2, api.ToPi, line))
				}
				records = append(records, record(len(records)+1, "stderr", `{"text":`+s+`}`), record(len(records)+2, "egress", `{"kind":`+s+`,"verdict":"deny","host":`+s+`,"message":`+s+`}`),
					record(len(records)+3, "exec", `{"argv":[`+s+`]}`), record(len(records)+4, "state", `{"phase":`+s+`,"reason":`+s+`}`),
					record(len(records)+5, h[:min(len(h), 60)], `{"x":`+s+`}`), record(len(records)+6, "rpc", `{"direction":"from_pi","text":`+s+`}`))
			}
			for _, width := range []int{60, 160} {
				tr, _ := newTraffic(t, records, width, 12)
				press(tr, "g")
				for range min(len(records), 12) {
					press(tr, "enter")
					panetest.Screen(t, tr.View(), width, 12)
					press(tr, "esc", "l", "j")
					panetest.Screen(t, tr.View(), width, 12)
				}
				press(tr, "/")
				run(tr, tr.Update(tea.PasteMsg{Content: h[:min(len(h), 300)]}))
				panetest.Screen(t, tr.View(), width, 12)
				press(tr, "enter")
				panetest.Screen(t, tr.View(), width, 12)
			}
		})
	}
}

func TestManyTypes(t *testing.T) {
	var records []journal.Record
	for i := range 2 * maxTypes {
		records = append(records, rpc(i+1, fmt.Sprintf(`{"type":"type %d"}`, i)))
	}
	tr, _ := newTraffic(t, records, 100, 20)
	require.Len(t, tr.index.types, maxTypes)
	require.Equal(t, "other types", shown(tr)[2*maxTypes-1])
}

func TestSizes(t *testing.T) {
	tr, _ := newTraffic(t, panetest.Records(t, "testdata/tour.journal.jsonl"), 80, 20)
	walk := func() {
		for w, h := range panetest.Sizes(12, 8) {
			tr.SetSize(w, h)
			panetest.Screen(t, tr.View(), w, h)
		}
	}
	walk()
	press(tr, "g", "enter")
	walk()
	press(tr, "esc", "/")
	write(tr, "a long filter that has more words than there is room for")
	walk()
	tr.SetSize(0, 0)
	require.Empty(t, tr.View())
}

func TestNoKeyOfTheRoots(t *testing.T) {
	tr, _ := newTraffic(t, panetest.Records(t, "testdata/tour.journal.jsonl"), 80, 20)
	panetest.OwnKeys(t, tr)
	press(tr, "g", "enter")
	panetest.OwnKeys(t, tr)
	press(tr, "esc", "/", "w")
	panetest.OwnKeys(t, tr)
	press(tr, "enter")
	panetest.OwnKeys(t, tr)
}

func TestMouse(t *testing.T) {
	tr, _ := newTraffic(t, panetest.Records(t, "testdata/tour.journal.jsonl"), 160, 20)
	run(tr, tr.Update(tea.MouseClickMsg{X: 5, Y: 3, Button: tea.MouseLeft}))
	at := tr.table.Cursor()
	require.False(t, tr.table.Following())
	run(tr, tr.Update(tea.MouseWheelMsg{Y: 3, Button: tea.MouseWheelUp}))
	require.Equal(t, at-3, tr.table.Cursor())
	press(tr, "enter")
	require.NotNil(t, tr.detail)
	view := panetest.Plain(tr.View())
	run(tr, tr.Update(tea.MouseWheelMsg{X: 120, Y: 5, Button: tea.MouseWheelDown}))
	require.Equal(t, at-3, tr.table.Cursor())
	require.NotEqual(t, view, panetest.Plain(tr.View()))
	run(tr, tr.Update(tea.MouseClickMsg{X: 120, Y: 3, Button: tea.MouseLeft}))
	require.Contains(t, strings.Split(panetest.Plain(tr.View()), "\n")[3], "▌")
	run(tr, tr.Update(tea.MouseClickMsg{X: 5, Y: 4, Button: tea.MouseLeft})) // the list follows
	require.NotNil(t, tr.detail)
}

func TestEmptyStates(t *testing.T) {
	tr, _ := newTraffic(t, nil, 80, 20)
	require.Contains(t, panetest.Plain(tr.View()), "Nothing was said yet")
	tr.SetSession(api.Session{ID: "x", Phase: api.PhaseEnded})
	require.Contains(t, panetest.Plain(tr.View()), "ended before anything was said")
	require.Empty(t, press(tr, "enter", "y", "l", "h", "f", "p", "p"))
	run(tr, tr.Update(pane.FocusMsg{From: "chat", Seq: 3}))
	require.Zero(t, tr.Count())
	press(tr, "/")
	write(tr, "x")
	press(tr, "enter")
	require.False(t, tr.deep.running)
}

func BenchmarkApply1000(b *testing.B) {
	batch := many(1000)
	tr := New(&fakeHost{}, now)
	tr.SetStyles(panetest.Styles(b, themes.DefaultDark))
	tr.SetSize(160, 46)
	seq := uint64(0)
	for b.Loop() {
		for i := range batch {
			seq++
			batch[i].Seq = seq
		}
		tr.Apply(batch)
		_ = tr.View()
	}
}

func BenchmarkFilter600k(b *testing.B) {
	tr := New(&fakeHost{}, now)
	tr.SetStyles(panetest.Styles(b, themes.DefaultDark))
	tr.SetSize(160, 46)
	tr.Apply(many(600_000))
	b.Run("frame", func(b *testing.B) {
		worst := time.Duration(0)
		for b.Loop() {
			press := tr.Update(panetest.Key("/"))
			_ = press
			began := time.Now()
			cmd := tr.Update(panetest.Key("z"))
			_ = tr.View()
			worst = max(worst, time.Since(began))
			for cmd != nil {
				msg := cmd()
				began := time.Now()
				cmd = tr.Update(msg)
				_ = tr.View()
				worst = max(worst, time.Since(began))
			}
			run(tr, tr.Update(panetest.Key("esc")))
			tr.cached = nil
		}
		b.ReportMetric(float64(worst.Microseconds()), "µs-worst-frame")
	})
	b.Run("view", func(b *testing.B) {
		for b.Loop() {
			run(tr, tr.Update(panetest.Key("k")))
			_ = tr.View()
		}
	})
}
