package transcript

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"patio/engine/api"
	"patio/sessions"
	"patio/tui/panetest"
)

func turnsOf(n int) []sessions.Turn {
	var out []sessions.Turn
	for k := range n {
		out = append(out,
			sessions.Turn{Role: sessions.RoleUser, Blocks: []sessions.Block{{Kind: sessions.BlockText, Text: fmt.Sprintf("old question %d", k)}}, Entry: sessions.Entry{Time: began.Add(-time.Hour)}},
			sessions.Turn{Role: sessions.RoleAssistant, Model: "demo/tour", Blocks: []sessions.Block{
				{Kind: sessions.BlockThinking, Text: "hm"},
				{Kind: sessions.BlockText, Text: "old answer"},
				{Kind: sessions.BlockCall, Title: "bash", Text: "ls -la", Result: func() ([]sessions.Block, error) {
					return []sessions.Block{{Kind: sessions.BlockText, Text: "old output"}, {Kind: sessions.BlockImage, Title: "image/png", Text: "AAAA"}}, nil
				}},
				{Kind: sessions.BlockCall, Title: "edit", Text: `{"path":"a.go","edits":[{"oldText":"a","newText":"b"}]}`},
			}})
	}
	return out
}

func TestImportedSessionsLackTheirPast(t *testing.T) {
	p := (&tape{t: t}).state(api.StateRecord{Phase: api.PhaseEnded, Reason: "imported: it goes on with `patio resume s1`"})
	tr := made(t, "patio-dark", 80, 30, p.records)
	before, needed := tr.NeedsHistory()
	require.True(t, needed)
	require.Equal(t, p.records[0].Time, before)
	require.Contains(t, tr.View(), "Reading what was said before")
	tr.SetHistory(turnsOf(2))
	_, needed = tr.NeedsHistory()
	require.False(t, needed)
	view := plainOf(tr)
	for _, s := range []string{"old question 1", "old answer", "old output", "[image image/png, 3 B]", "a.go", "+1 −1", "what Pi's session file has", "imported"} {
		require.Contains(t, view, s)
	}
	require.Equal(t, []string{"old question 0", "old question 1"}, tr.Prompts())
	require.Equal(t, 4, tr.Count())
	tr.SetHistory(turnsOf(9))
	require.Equal(t, 4, tr.Count(), "it is shown once")
}

func TestAFilesPastIsToldByPisState(t *testing.T) {
	p := (&tape{t: t}).state(api.StateRecord{Phase: api.PhasePreparing})
	p.from(object{"type": "response", "command": "get_state", "success": true, "data": object{"messageCount": 8}})
	tr := made(t, "patio-dark", 80, 20, p.records)
	before, needed := tr.NeedsHistory()
	require.True(t, needed)
	require.Equal(t, p.records[0].Time, before)
	tr.SetHistory(nil)
	tr.Apply(p.from(object{"type": "response", "command": "get_state", "success": true, "data": object{"messageCount": 8}}).records[2:])
	_, needed = tr.NeedsHistory()
	require.False(t, needed)
}

func TestResumedSessionsHaveTheirPast(t *testing.T) {
	tr := made(t, "patio-dark", 120, 40, panetest.Records(t, "testdata/tour.journal.jsonl"))
	_, needed := tr.NeedsHistory()
	require.False(t, needed)
	require.Equal(t, "RUN: echo steered", tr.Prompts()[len(tr.Prompts())-3])
	require.False(t, tr.Working())
	panetest.Press(tr, "g")
	view := plainOf(tr)
	require.Contains(t, view, "the session is ready")
	found := false
	for range 40 {
		if view = plainOf(tr); !found {
			found = strings.Contains(view, "the session goes on")
		}
		panetest.Press(tr, "pgdown")
	}
	require.True(t, found)
}

func TestHistoryOfEveryKind(t *testing.T) {
	tr := made(t, "patio-dark", 100, 40, nil)
	tr.SetHistory([]sessions.Turn{
		{Role: sessions.RoleUser, Blocks: []sessions.Block{{Kind: sessions.BlockText, Text: "hi"}, {Kind: sessions.BlockImage, Title: "image/gif", Text: "AAAAAAAA"}}},
		{Role: sessions.RoleCustom, Blocks: []sessions.Block{{Kind: sessions.BlockText, Text: "from an extension"}}},
		{Role: sessions.RoleCustom, Hidden: true, Blocks: []sessions.Block{{Kind: sessions.BlockText, Text: "unseen"}}},
		{Role: sessions.RoleBash, Blocks: []sessions.Block{{Kind: sessions.BlockCall, Title: "bash, by the user", Text: "false", Failed: true, Result: func() ([]sessions.Block, error) {
			return nil, fmt.Errorf("torn")
		}}}},
		{Blocks: []sessions.Block{{Kind: sessions.BlockChange, Text: "model: a/b"}}},
		{Blocks: []sessions.Block{{Kind: sessions.BlockSummary, Title: "compaction of 9 tokens", Text: "the summary"}}},
		{Role: sessions.RoleAssistant, Blocks: []sessions.Block{{Kind: sessions.BlockError, Text: "429 too many"}, {Kind: sessions.BlockError, Text: "stopped"}, {Kind: sessions.BlockOther, Title: "odd", Text: "{}"}, {Kind: sessions.BlockImage, Title: "image/png", Text: "AAAA"}}},
	})
	view := plainOf(tr)
	for _, s := range []string{"[image image/gif, 6 B]", "from an extension", "the result can't be read: torn", "model: a/b", "compaction of 9 tokens", "429 too many", "Wait a while", "■ stopped", "odd", "[image image/png"} {
		require.Contains(t, view, s)
	}
	require.NotContains(t, view, "unseen")
}

func TestMessagesReplaceWhatIsShown(t *testing.T) {
	p := scene(t)
	tr := made(t, "patio-dark", 100, 40, p.records)
	forked := []any{
		message("user", []any{text("another way")}, "timestamp", 5),
		message("assistant", []any{text("indeed"), toolCall("f1", "bash", object{"command": "ls"})}, "stopReason", "toolUse", "timestamp", 6),
		message("toolResult", []any{text("a.go")}, "toolCallId", "f1", "toolName", "bash", "timestamp", 7),
		message("bashExecution", nil, "command", "false", "output", "no", "exitCode", 1, "timestamp", 8),
		message("compactionSummary", nil, "summary", "so far", "timestamp", 9),
		message("custom", "shown", "customType", "mine", "display", true, "timestamp", 10),
		message("custom", "hidden", "customType", "mine", "display", false, "timestamp", 11),
	}
	at := len(p.records)
	p.from(object{"type": "response", "command": "get_messages", "success": false, "error": "no"})
	p.from(object{"type": "response", "command": "get_messages", "success": true, "data": object{"messages": forked}})
	tr.Apply(p.records[at:])
	view := plainOf(tr)
	for _, s := range []string{"another way", "indeed", "✓ bash", "a.go", "exit code 1", "as a summary", "shown"} {
		require.Contains(t, view, s)
	}
	require.NotContains(t, view, "clock")
	require.NotContains(t, view, "hidden")
	require.Equal(t, []string{"another way"}, tr.Prompts())
	require.Equal(t, 2, tr.Count())

	// The same conversation again leaves what is folded and selected alone.
	tr.SetFocused(true)
	tr.Focus("f1", 0)
	at = len(p.records)
	p.from(object{"type": "response", "command": "get_messages", "success": true, "data": object{"messages": forked}})
	tr.Apply(p.records[at:])
	_, call, ok := tr.SelectedEntry()
	require.True(t, ok)
	require.Equal(t, "f1", call)
}

func TestMessagesWhileOneIsStreamed(t *testing.T) {
	p := (&tape{t: t}).user("old")
	p.from(object{"type": "agent_start"})
	p.from(object{"type": "message_start", "message": message("assistant", []any{})})
	p.event(object{"type": "text_delta", "contentIndex": 0, "delta": "half a sen"})
	p.from(object{"type": "response", "command": "get_messages", "success": true, "data": object{"messages": []any{message("user", "other", "timestamp", 77)}}})
	p.event(object{"type": "text_delta", "contentIndex": 0, "delta": "tence"})
	tr := made(t, "patio-dark", 80, 20, p.records)
	view := plainOf(tr)
	require.Contains(t, view, "other")
	require.Contains(t, view, "half a sentence")
	require.NotContains(t, view, "old")
}
