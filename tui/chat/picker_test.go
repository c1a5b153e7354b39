package chat

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"patio/engine/api"
	"patio/tui/pane"
	"patio/tui/panetest"
)

func TestModelPicker(t *testing.T) {
	d := newDesk(t)
	d.h.replies["get_available_models"] = someModels
	d.press("ctrl+l")
	require.True(t, d.c.Typing())
	require.Contains(t, d.view(), "▶ ● anthropic/claude-sonnet-4-5")
	d.typed("echo")
	require.Contains(t, d.view(), "1 of 4")
	d.press("enter")
	require.Equal(t, `{"modelId":"echo","provider":"demo","type":"set_model"}`, d.h.last())
	require.Nil(t, d.c.picker)
	require.Contains(t, d.view(), "the model is demo/echo")

	d.press("ctrl+l")
	d.h.replies["set_model"] = `{"type":"response","command":"set_model","success":false,"error":"no \u001b[31mkey"}`
	d.press("up", "enter")
	require.Contains(t, d.view(), "✗ Pi refused set_model: no [31mkey")
	d.typed("x")
	require.NotContains(t, d.view(), "✗")
	d.press("esc")
	require.NotNil(t, d.c.picker)
	d.press("esc")
	require.Nil(t, d.c.picker)

	d.h.replies["get_available_models"] = "gone"
	d.press("ctrl+l")
	require.Contains(t, d.view(), "✗ the supervisor is gone")
	d.press("enter", "esc")

	d.h.replies["get_available_models"] = `{"success":true,"data":{"models":[]}}`
	d.press("ctrl+l")
	require.Contains(t, d.view(), "no model with a key")
}

func TestPickerClosedBeforeTheReply(t *testing.T) {
	d := newDesk(t)
	d.h.replies["get_available_models"] = someModels
	cmd := d.c.Update(panetest.Key("ctrl+l"))
	require.Contains(t, d.view(), "asking Pi")
	d.press("enter", "esc")
	d.run(cmd)
	require.Nil(t, d.c.picker)

	d.press("ctrl+l")
	d.h.replies["set_model"] = "gone"
	cmd = d.c.Update(panetest.Key("enter"))
	require.Contains(t, d.view(), "changing to")
	d.press("enter") // not twice
	require.Len(t, d.h.commands, 2)
	d.press("esc")
	d.run(cmd)
	require.Equal(t, "the supervisor is gone", d.notice())
}

func TestThinkingPicker(t *testing.T) {
	d := newDesk(t)
	d.h.replies["get_available_thinking_levels"] = `{"success":true,"data":{"levels":["off","low","medium","high"]}}`
	d.press("ctrl+t")
	require.Contains(t, d.view(), "▶ ● medium")
	d.press("down", "enter")
	require.Equal(t, `{"level":"high","type":"set_thinking_level"}`, d.h.last())
	d.typed("/thinking lo")
	d.press("enter")
	require.Contains(t, d.view(), "1 of 4")
	d.press("enter")
	require.Equal(t, `{"level":"low","type":"set_thinking_level"}`, d.h.last())
}

func TestTree(t *testing.T) {
	open := func(t *testing.T) *desk {
		d := newDesk(t)
		d.h.replies["get_entries"] = someEntries
		d.h.replies["fork"] = `{"type":"response","command":"fork","success":true,"data":{"text":"Keep bufio, test the edge","cancelled":false}}`
		d.press("ctrl+r")
		return d
	}
	t.Run("a message of the user's is said again", func(t *testing.T) {
		d := open(t)
		d.press("up", "enter")
		require.Equal(t, []string{`{"type":"get_entries"}`, `{"entryId":"u3","type":"fork"}`, `{"type":"get_messages"}`}, d.h.commands)
		require.Equal(t, "Keep bufio, test the edge", d.c.ed.text())
		require.Nil(t, d.c.picker)
	})
	t.Run("the end is copied", func(t *testing.T) {
		d := open(t)
		d.press("enter")
		require.Equal(t, []string{`{"type":"get_entries"}`, `{"type":"clone"}`, `{"type":"get_messages"}`}, d.h.commands)
	})
	t.Run("an answer goes on where the user spoke next", func(t *testing.T) {
		d := open(t)
		d.press("home", "down", "down", "enter")
		require.Equal(t, `{"entryId":"u2","type":"fork"}`, d.h.commands[1])
		require.True(t, d.c.ed.empty())
	})
	t.Run("the end of another branch can't be gone to", func(t *testing.T) {
		d := open(t)
		d.typed("slower")
		d.press("enter")
		require.Len(t, d.h.commands, 1)
		require.Contains(t, d.view(), "✗ Pi can go on from before a message")
	})
	t.Run("an extension keeps the conversation", func(t *testing.T) {
		d := open(t)
		d.h.replies["fork"] = `{"success":true,"data":{"cancelled":true}}`
		d.press("up", "enter")
		require.Len(t, d.h.commands, 2)
		require.Contains(t, d.view(), "an extension kept")
	})
	t.Run("refused", func(t *testing.T) {
		d := open(t)
		d.h.replies["fork"] = `{"success":false,"command":"fork","error":"Invalid entry ID for forking"}`
		d.press("up", "enter")
		require.Contains(t, d.view(), "✗ Pi refused fork")
	})
	t.Run("asks while Pi works", func(t *testing.T) {
		d := open(t)
		d.work()
		d.press("up", "enter")
		require.Len(t, d.h.commands, 1)
		confirm := d.msgs[0].(pane.ConfirmMsg)
		require.Contains(t, confirm.Lost, "aborted")
		d.run(confirm.Then)
		require.Contains(t, d.h.commands[1], "fork")
	})
	t.Run("a draft stays", func(t *testing.T) {
		d := newDesk(t)
		d.h.replies["get_fork_messages"] = `{"success":true,"data":{"messages":[{"entryId":"e1","text":"old"},{"entryId":"e2","text":"new"}]}}`
		d.h.replies["fork"] = `{"success":true,"data":{"text":"new"}}`
		d.typed("/fork")
		d.press("enter")
		d.c.ed.set("a draft")
		d.press("enter")
		require.Contains(t, d.h.commands, `{"entryId":"e2","type":"fork"}`)
		require.Equal(t, "a draft", d.c.ed.text())
	})
}

func TestTreeOfOddEntries(t *testing.T) {
	read := func(s string) []item {
		tr := readTree(gjson.Parse(s))
		items, _ := tr.items(start)
		return items
	}
	require.Empty(t, read(`{}`))
	require.Empty(t, read(`{"entries":"no","leafId":5}`))
	// Parents that don't exist, a parent that is its own, an id twice.
	require.Len(t, read(`{"leafId":"a","entries":[
		{"type":"message","id":"a","parentId":"a","message":{"role":"user","content":"1"}},
		{"type":"message","id":"b","parentId":"zz","message":{"role":"user","content":[{"type":"image"}]}},
		{"type":"message","id":"a","parentId":"b","message":{"role":"assistant","content":[]}},
		{"type":"compaction","id":"c","parentId":"a","summary":"so far"},
		{"type":"branch_summary","id":"d","parentId":"c","summary":"the other way"},5,null]}`), 5)

	var b strings.Builder
	b.WriteString(`{"leafId":"e9999","entries":[`)
	for i := range 10_000 {
		if i > 0 {
			b.WriteByte(',')
		}
		parent := fmt.Sprintf("e%d", i-1-i%2) // each second one is a branch
		fmt.Fprintf(&b, `{"type":"message","id":"e%d","parentId":%q,"message":{"role":"user","content":"m %d"}}`, i, parent, i)
	}
	b.WriteString(`]}`)
	items := read(b.String())
	require.Len(t, items, maxTree+1)
	require.Contains(t, items[0].label, "5,000 older ones")
}

func TestName(t *testing.T) {
	d := newDesk(t)
	d.typed("/name")
	d.press("enter")
	require.Contains(t, d.view(), "› fix the parser")
	d.typed(" \u202eand more")
	d.press("enter")
	require.Equal(t, `{"name":"fix the parser and more","type":"set_session_name"}`, d.h.last())
	d.typed("/name other")
	d.press("enter")
	require.Equal(t, `{"name":"other","type":"set_session_name"}`, d.h.last())
	d.typed("/name")
	d.press("enter", "ctrl+u", "enter")
	require.Contains(t, d.view(), "✗ a name isn't empty")
	d.press("esc")
	require.Nil(t, d.c.picker)
}

func TestPickerMouse(t *testing.T) {
	d := newDesk(t)
	d.h.replies["get_available_models"] = someModels
	d.press("ctrl+l")
	y := -1
	for i, line := range strings.Split(d.view(), "\n") {
		if strings.Contains(line, "demo/echo") {
			y = i
		}
	}
	d.send(tea.MouseClickMsg{X: 10, Y: y, Button: tea.MouseLeft})
	require.Len(t, d.h.commands, 1)
	d.send(tea.MouseWheelMsg{X: 10, Y: y, Button: tea.MouseWheelUp})
	require.Equal(t, 0, d.c.picker.cursor)
	d.send(tea.MouseWheelMsg{X: 10, Y: y, Button: tea.MouseWheelDown})
	d.send(tea.MouseClickMsg{X: 10, Y: y, Button: tea.MouseLeft})
	require.Contains(t, d.h.last(), "set_model")
	d.press("ctrl+l")
	d.send(tea.MouseClickMsg{X: 10, Y: 0, Button: tea.MouseLeft})
	require.Nil(t, d.c.picker)
}

func TestCommands(t *testing.T) {
	open := func(t *testing.T) *desk {
		d := newDesk(t)
		d.h.replies["get_commands"] = someCommands
		return d
	}
	t.Run("asked for once", func(t *testing.T) {
		d := open(t)
		d.typed("/re")
		require.Contains(t, d.view(), "/review")
		require.Contains(t, d.view(), "Review the working tree (prompt)")
		d.press("ctrl+u")
		d.typed("/x")
		require.Equal(t, []string{`{"type":"get_commands"}`}, d.h.commands)
		// Another window forked: Pi loaded its extensions anew.
		d.says(`{"id":"w/1","type":"response","command":"fork","success":true,"data":{}}`)
		d.typed("y")
		require.Len(t, d.h.commands, 2)
	})
	t.Run("asked for again after a failure", func(t *testing.T) {
		d := open(t)
		d.h.replies["get_commands"] = "gone"
		d.typed("/")
		require.Contains(t, d.view(), "doesn't tell its own")
		d.typed("r")
		require.Len(t, d.h.commands, 2)
	})
	t.Run("Tab completes", func(t *testing.T) {
		for _, key := range []string{"tab", "right", "ctrl+space"} {
			d := open(t)
			d.typed("/rev")
			d.press(key)
			require.Equal(t, "/review ", d.c.ed.text())
			require.False(t, d.c.completion.open())
			d.typed("main")
			d.press("enter")
			require.Equal(t, "/review main", d.h.prompts[0].Message)
		}
	})
	t.Run("Enter completes Pi's, then sends", func(t *testing.T) {
		d := open(t)
		d.typed("/revi")
		d.press("enter")
		require.Equal(t, "/review ", d.c.ed.text())
		d.press("enter")
		require.Equal(t, "/review ", d.h.prompts[0].Message)
	})
	t.Run("Enter on all of it sends", func(t *testing.T) {
		d := open(t)
		d.typed("/review")
		d.press("enter")
		require.Equal(t, "/review", d.h.prompts[0].Message)
	})
	t.Run("Enter runs ours", func(t *testing.T) {
		d := open(t)
		d.typed("/compa")
		d.press("enter")
		require.Equal(t, `{"type":"compact"}`, d.h.last())
		require.Contains(t, d.view(), "is compacted")
		d.typed("/compact keep the plan")
		d.press("enter")
		require.Equal(t, `{"customInstructions":"keep the plan","type":"compact"}`, d.h.last())
	})
	t.Run("ours come before Pi's of the same name", func(t *testing.T) {
		d := open(t)
		d.typed("/model")
		require.Equal(t, 1, strings.Count(d.view(), "  /model  "))
		require.NotContains(t, d.view(), "not ours")
	})
	t.Run("up and down", func(t *testing.T) {
		d := open(t)
		d.typed("/")
		require.Contains(t, d.view(), "▶   /model")
		d.press("down")
		require.Contains(t, d.view(), "▶   /thinking")
		d.press("up", "up")
		require.Contains(t, d.view(), "▶   /mcp")
	})
	t.Run("Esc closes the list for this word", func(t *testing.T) {
		d := open(t)
		d.typed("/mo")
		d.press("esc")
		require.False(t, d.c.completion.open())
		require.True(t, d.c.Typing())
		d.typed("d")
		require.True(t, d.c.completion.open())
	})
	t.Run("a click completes", func(t *testing.T) {
		d := open(t)
		d.typed("/rev")
		d.send(tea.MouseClickMsg{X: 6, Y: 16, Button: tea.MouseLeft})
		require.Equal(t, "/review ", d.c.ed.text())
	})
	t.Run("copy", func(t *testing.T) {
		d := open(t)
		d.h.replies["get_last_assistant_text"] = `{"success":true,"data":{"text":"the answer"}}`
		d.typed("/copy")
		d.press("enter")
		require.Equal(t, pane.CopyMsg{Text: "the answer", What: "the last answer"}, d.msgs[0])
		d.h.replies["get_last_assistant_text"] = `{"success":true,"data":{"text":null}}`
		d.typed("/copy")
		d.press("enter")
		require.Contains(t, d.notice(), "no answer yet")
	})
	t.Run("export", func(t *testing.T) {
		d := open(t)
		d.h.replies["get_messages"] = `{"success":true,"data":{"messages":[{"role":"user","content":"hi"}]}}`
		d.typed("/export")
		d.press("enter")
		export := d.msgs[0].(pane.ExportMsg)
		require.Equal(t, "patio-k3v9x2m1pq.md", export.Name)
		var b bytes.Buffer
		require.NoError(t, export.Write(&b))
		require.Equal(t, "## You\n\nhi\n\n", b.String())
	})
	t.Run("new", func(t *testing.T) {
		d := open(t)
		d.typed("/new")
		d.press("enter")
		require.Equal(t, []string{`{"type":"get_commands"}`, `{"type":"new_session"}`, `{"type":"get_messages"}`}, d.h.commands)
		d.h.replies["new_session"] = `{"success":true,"data":{"cancelled":true}}`
		d.typed("/new")
		d.press("enter")
		require.Equal(t, `{"type":"new_session"}`, d.h.last())
		d.h.replies["new_session"] = `{"success":false,"command":"new_session"}`
		d.typed("/new")
		d.press("enter")
		require.Contains(t, d.notice(), "no reason given")
	})
	t.Run("abort", func(t *testing.T) {
		d := open(t)
		d.work()
		d.typed("/abort")
		d.press("enter")
		require.Equal(t, `{"type":"abort"}`, d.h.last())
	})
	t.Run("not before the session is ready", func(t *testing.T) {
		d := newDesk(t, func(s *api.Session, _ *Options) { s.Phase = api.PhaseStarting })
		for _, name := range []string{"model", "thinking", "tree", "fork", "new", "name", "compact", "copy", "export", "abort"} {
			d.typed("/" + name)
			d.press("enter")
			require.Contains(t, d.notice(), "isn't ready", name)
			d.msgs = nil
		}
		require.Empty(t, d.h.commands)
	})
	t.Run("names that can't be typed are left out", func(t *testing.T) {
		d := newDesk(t)
		d.h.replies["get_commands"] = `{"success":true,"data":{"commands":[{"name":"a b"},{"name":"evil\u001b[31m"},{"name":""},{"name":"good","description":"x\u0007"}]}}`
		d.typed("/")
		require.Len(t, d.c.theirs, 1)
	})
}
