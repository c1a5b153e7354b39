package transcript

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/sessions"
	"patio/tui/panetest"
)

// nasty is Markdown that a terminal must not get as it is, or that takes long.
var nasty = []string{
	"&#27;[2J &#x9b;2J &rlm;&zwj;&#8238;&ZeroWidthSpace;&NewLine;x&Tab;y&shy;", "[a](\x1b]52;c;x\x07) ![b](http://x/&#27;\u202e) <http://a\u202eb>",
	"<script>\x1b[1m</script> <!-- \x1b --> <b\x1b>", "```\x1b[31m\ncode \x1b[2J\u202e\n```", "```go\nfunc \x1b[31m\u200b() {}\n", "- ```\x1b\n  a\x1bb\n", "| a\x1b | b\u202e |\n|---|---|\n| \x9b2J | \u200d |\n",
	strings.Repeat(">", 3000), strings.Repeat("> - ", 500), strings.Repeat("- ", 2000), strings.Repeat("[", 3000), strings.Repeat("*a ", 3000), strings.Repeat("`", 3000), strings.Repeat("_*", 2000),
	"# \x1b[31m\n===\n\x1b\n---\n", "\\\x1b \\\u202e", "    \x1b[2J indented\n", "term\n: \x1b[2J\n", "~~\x1b[2J~~ **\u200b**",
}

// bad are all hostile texts but for those of TestTenMegabytes.
func bad() map[string]string {
	all := panetest.Hostile(20_000)
	for n, s := range nasty {
		all[fmt.Sprint("Markdown ", n)] = s
	}
	return all
}

// hostile puts a text into every field there is.
func hostile(t testing.TB, s string) []journal.Record {
	p := &tape{t: t}
	msg := func(role string, content any, more ...any) object { return message(role, content, more...) }
	p.state(api.StateRecord{Phase: api.PhasePreparing, Reason: s})
	p.state(api.StateRecord{Phase: api.PhaseReady, Model: &api.Model{Provider: s, ID: s, Thinking: s}})
	p.state(api.StateRecord{Phase: api.PhaseReady, Model: &api.Model{Provider: "x" + s, ID: s, Thinking: s}})
	p.from(object{"type": "message_end", "message": msg("user", []any{text(s), object{"type": "image", "mimeType": s, "data": s}})})
	p.from(object{"type": "agent_start"}).from(object{"type": "message_start", "message": msg("assistant", []any{}, "provider", s, "model", s)})
	p.event(object{"type": "thinking_delta", "contentIndex": 0, "delta": s}).event(object{"type": "text_delta", "contentIndex": 1, "delta": s})
	p.event(object{"type": "toolcall_start", "contentIndex": 2}).event(object{"type": "toolcall_delta", "contentIndex": 2, "delta": s})
	p.event(object{"type": "toolcall_end", "contentIndex": 2, "toolCall": toolCall(s, s, object{s: s, "command": s})})
	p.from(object{"type": "tool_execution_start", "toolCallId": s, "toolName": s, "args": object{"command": s}})
	p.from(object{"type": "tool_execution_update", "toolCallId": s, "partialResult": object{"content": []any{text(s)}}})
	p.from(object{"type": "tool_execution_end", "toolCallId": s, "isError": true, "result": object{"content": []any{text(s), object{"type": "image", "mimeType": s}}}})
	for _, name := range []string{"edit", "write"} {
		args := object{"path": s, "content": s, "edits": []any{object{"oldText": s, "newText": s + "x"}}}
		p.run(name, name, args, s, false)
		p.from(object{"type": "tool_execution_end", "toolCallId": name + "2", "toolName": "edit", "result": object{"content": []any{}, "details": object{"diff": "-1 " + s + "\n+1 " + s + "\n ..."}}})
	}
	p.answer("stop", text(s), thinking(s), toolCall("z", s, s))
	p.from(object{"type": "message_end", "message": msg("assistant", []any{text(s)}, "stopReason", "error", "errorMessage", s, "provider", s, "model", s)})
	p.from(object{"type": "message_end", "message": msg("assistant", s, "stopReason", "aborted", "errorMessage", s)})
	p.from(object{"type": "message_end", "message": msg("custom", s, "customType", s, "display", true)})
	p.from(object{"type": "message_end", "message": msg("branchSummary", nil, "summary", s)})
	p.from(object{"type": "message_end", "message": msg("bashExecution", nil, "command", s, "output", s, "exitCode", 2)})
	p.from(object{"type": "auto_retry_start", "errorMessage": s}).from(object{"type": "auto_retry_end", "success": false, "finalError": s})
	p.from(object{"type": "compaction_start", "reason": s}).from(object{"type": "compaction_end", "result": object{"summary": s}})
	p.from(object{"type": "compaction_start", "reason": s}).from(object{"type": "compaction_end", "errorMessage": s})
	p.from(object{"type": "thinking_level_changed", "level": s}).from(object{"type": "session_info_changed", "name": s})
	p.from(object{"type": "extension_error", "extensionPath": s, "error": s})
	for _, kind := range []string{"info", "warning", "error"} {
		p.from(object{"type": "extension_ui_request", "method": "notify", "message": s, "notifyType": kind})
	}
	p.to(object{"type": "bash", "id": s, "command": s}).from(object{"type": "bash_execution_update", "id": s, "delta": s})
	p.from(object{"type": "response", "command": "bash", "id": s, "success": false, "error": s})
	p.from(object{"type": "response", "command": "x" + s, "success": false, "error": s})
	p.from(object{"type": "queue_update", "steering": []any{s}, "followUp": []any{s}})
	p.state(api.StateRecord{Phase: api.PhaseStopping, Reason: s})
	p.state(api.StateRecord{Phase: api.PhaseFailed, Reason: s, Error: &api.Error{Message: s, Hint: s}})
	return p.records
}

// look goes over all of a conversation, folded and unfolded.
func look(t testing.TB, tr *Transcript, width, height int) {
	t.Helper()
	tr.SetFocused(true)
	for _, open := range []bool{false, true} {
		tr.allOutput, tr.allThinking = open, open
		for _, i := range tr.items {
			i.fold = foldClosed
			if open {
				i.fold = foldOpen
			}
			i.changed()
		}
		panetest.Press(tr, "g")
		for range 30 {
			panetest.Screen(t, tr.View(), width, height)
			if tr.AtEnd() {
				break
			}
			panetest.Press(tr, "pgdown")
		}
		panetest.Press(tr, "G")
		panetest.Screen(t, tr.View(), width, height)
		for range 20 {
			panetest.Press(tr, "K")
			panetest.Screen(t, tr.View(), width, height)
		}
	}
}

func TestHostileTexts(t *testing.T) {
	for name, s := range bad() {
		t.Run(name, func(t *testing.T) {
			tr := made(t, "patio-dark", 60, 40, hostile(t, s))
			look(t, tr, 60, 40)
			old := made(t, "patio-light", 33, 20, nil)
			result := func() ([]sessions.Block, error) {
				return []sessions.Block{{Text: s}, {Kind: sessions.BlockImage, Title: s}}, nil
			}
			old.SetHistory([]sessions.Turn{{Role: sessions.RoleUser, Blocks: []sessions.Block{{Kind: sessions.BlockText, Text: s}, {Kind: sessions.BlockImage, Title: s, Text: s}}},
				{Role: sessions.RoleAssistant, Model: s, Blocks: []sessions.Block{{Kind: sessions.BlockText, Text: s}, {Kind: sessions.BlockThinking, Text: s}, {Kind: sessions.BlockCall, Title: s, Text: s, Result: result},
					{Kind: sessions.BlockOther, Title: s, Text: s}, {Kind: sessions.BlockSummary, Title: s, Text: s}, {Kind: sessions.BlockChange, Text: s}, {Kind: sessions.BlockError, Text: s}}},
				{Role: sessions.RoleCustom, Blocks: []sessions.Block{{Kind: sessions.BlockText, Text: s}}}})
			look(t, old, 33, 20)
		})
	}
}

func TestTenMegabytes(t *testing.T) {
	for _, s := range []string{strings.Repeat("x", 10<<20), strings.Repeat("word ", 100_000), strings.Repeat("line of words\n", 70_000), "```go\n" + strings.Repeat("x := 1 // a\n", 60_000)} {
		p := &tape{t: t}
		p.user(s)
		p.from(object{"type": "message_start", "message": message("assistant", []any{})})
		p.event(object{"type": "text_delta", "contentIndex": 0, "delta": s}).event(object{"type": "thinking_delta", "contentIndex": 1, "delta": s})
		p.run("w", "write", object{"path": "a.go", "content": s}, s, false)
		p.run("e", "edit", object{"path": s, "oldText": s, "newText": "x" + s}, s, true)
		p.run("b", "bash", object{"command": s}, s, false)
		p.answer("error", text(s))
		tr := made(t, "patio-dark", 80, 20, p.records)
		look(t, tr, 80, 20)
		total := 0
		for _, i := range tr.items {
			total += i.weight()
		}
		require.Less(t, total, 3<<20)
		panetest.Press(tr, "G")
		require.Contains(t, plainOf(tr), "◇")
		require.True(t, tr.Focus("b", 0))
		panetest.Press(tr, "G")
		all := false
		for range 300 {
			panetest.Press(tr, "pgup")
			all = all || strings.Contains(ansi.Strip(tr.View()), "more: open it in Traffic")
		}
		require.True(t, all)
	}
}

func TestBrokenRecords(t *testing.T) {
	tr := made(t, "patio-dark", 80, 20, nil)
	for n, data := range []string{``, `{`, `null`, `[]`, `{"direction":"from_pi"}`, `{"direction":"from_pi","text":"no JSON"}`, `{"direction":"from_pi","line":{"type":"message_end"}}`,
		`{"direction":"from_pi","line":{"type":"message_end","message":{"role":"assistant","content":7}}}`, `{"direction":"from_pi","line":{"type":"message_update"}}`,
		`{"direction":"from_pi","line":{"type":"tool_execution_end"}}`, `{"direction":"from_pi","line":{"type":"compaction_end"}}`, `{"direction":"from_pi","line":{"type":"auto_retry_end"}}`,
		`{"direction":"from_pi","line":{"type":"response","command":"get_messages","success":true,"data":{"messages":{}}}}`, `{"direction":"from_pi","line":{"type":"response","command":"get_messages","success":true,"data":{"messages":[1,null,{}]}}}`,
		`{"direction":"from_pi","line":{"type":"queue_update","steering":{},"followUp":"x"}}`, `{"direction":"from_pi","line":{"type":[]}}`} {
		for _, typ := range []string{api.RecordRPC, api.RecordState, "other"} {
			tr.Apply([]journal.Record{{Seq: uint64(n + 1), Type: typ, Data: json.RawMessage(data)}})
			panetest.Screen(t, tr.View(), 80, 20)
		}
	}
}

func FuzzView(f *testing.F) {
	for _, s := range bad() {
		f.Add(s, uint8(60), uint8(10))
	}
	f.Add(prose, uint8(80), uint8(3))
	tr := New(clock)
	tr.SetStyles(panetest.Styles(f, "patio-dark"))
	f.Fuzz(func(t *testing.T, s string, width, cut uint8) {
		w := int(width)%180 + 1
		from := time.Now()
		defer func() {
			if d := time.Since(from); d > 3*time.Second {
				t.Errorf("%d bytes took %s", len(s), d)
			}
		}()
		tr.Clear()
		tr.SetSize(w, 24)
		p := &tape{t: t}
		at := len(s) * int(cut) / 256
		p.event(object{"type": "text_delta", "contentIndex": 0, "delta": s[:at]})
		tr.Apply(p.records)
		panetest.Screen(t, tr.View(), w, 24)
		p.event(object{"type": "text_delta", "contentIndex": 0, "delta": s[at:]})
		p.run("c", "bash", object{"command": s}, s, false)
		tr.Apply(p.records[1:])
		panetest.Screen(t, tr.View(), w, 24)
		panetest.Press(tr, "g", "o")
		panetest.Screen(t, tr.View(), w, 24)
	})
}
