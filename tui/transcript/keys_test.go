package transcript

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"patio/engine/api"
	"patio/tui/pane"
	"patio/tui/panetest"
)

func TestSteppingToTheEnds(t *testing.T) {
	p := numbered(t, 40)
	tr := made(t, "patio-dark", 80, 20, p.records)
	panetest.Press(tr, "J")
	text, ok := tr.SelectedText()
	require.True(t, ok)
	require.Equal(t, "answer 39\n\nwith a second paragraph", text)
	panetest.Press(tr, "J")
	require.True(t, tr.AtEnd())
	for k := 39; k > 0; k-- {
		panetest.Press(tr, "K", "K")
		text, _ = tr.SelectedText()
		require.Equal(t, fmt.Sprint("answer ", k-1, "\n\nwith a second paragraph"), text)
		require.Contains(t, plainOf(tr), fmt.Sprint("answer ", k-1), "what is selected is on the screen")
	}
	panetest.Press(tr, "K", "K", "K")
	require.Contains(t, plainOf(tr), "question 0")
	for k := range 39 {
		panetest.Press(tr, "J", "J")
		require.Contains(t, plainOf(tr), fmt.Sprint("answer ", k+1-1))
	}
}

func TestSelectingWhatIsLongerThanTheScreen(t *testing.T) {
	p := (&tape{t: t}).user("first").answer("stop", text("# Head\n\n"+strings.Repeat("- item\n", 100))).user("last")
	tr := made(t, "patio-dark", 80, 20, p.records)
	tr.SetFocused(true)
	panetest.Press(tr, "K")
	require.Contains(t, plainOf(tr), "# Head", "its beginning is shown")
	panetest.Press(tr, "J")
	require.Contains(t, plainOf(tr), "last")
	panetest.Press(tr, "g", "J")
	require.Contains(t, plainOf(tr), "last")
}

func TestCopying(t *testing.T) {
	p := ending(scene(t))
	tr := made(t, "patio-dark", 80, 20, p.records)
	copied := func() pane.CopyMsg {
		cmd := panetest.Press(tr, "y")
		require.NotNil(t, cmd)
		return cmd().(pane.CopyMsg)
	}
	require.Equal(t, "the answer", copied().What, "without a selection it is the last answer")
	seen := map[string]string{}
	tr.SetFocused(true)
	for range 30 {
		m := copied()
		seen[m.What] = m.Text
		panetest.Press(tr, "K")
	}
	require.Contains(t, seen["the error"], "on fire")
	require.Contains(t, seen["the summary"], "The clock was mended.")
	require.Contains(t, seen["the thinking"], "I look at it")
	require.Contains(t, seen["your message"], "Why does the test")
	require.Contains(t, seen["the tool call"], "go test ./clock")
	require.Nil(t, panetest.Press(made(t, "patio-dark", 80, 20, nil), "y"))
	require.Nil(t, panetest.Press(made(t, "patio-dark", 80, 20, nil), "enter"))
}

func TestUnfoldingALongMessage(t *testing.T) {
	var b strings.Builder
	for k := range 60 {
		fmt.Fprintf(&b, "line %d\n", k)
	}
	tr := made(t, "patio-dark", 80, 100, (&tape{t: t}).user(b.String()).records)
	require.Contains(t, plainOf(tr), "▸ 49 more lines")
	require.NotContains(t, plainOf(tr), "line 40")
	tr.SetFocused(true)
	panetest.Press(tr, "enter")
	require.Contains(t, plainOf(tr), "line 59")
	require.Contains(t, plainOf(tr), "▴ less")
	panetest.Press(tr, "enter")
	require.NotContains(t, plainOf(tr), "line 40")
	one := made(t, "patio-dark", 80, 100, (&tape{t: t}).user(strings.Repeat("word ", 2000)).records)
	require.Contains(t, plainOf(one), "▸ all of it, 9.8 KiB")
}

func TestTheTopIsTrimmedAway(t *testing.T) {
	p := numbered(t, 100)
	tr := made(t, "patio-dark", 80, 20, p.records)
	panetest.Press(tr, "g", "pgdown")
	tr.trim(150)
	panetest.Screen(t, tr.View(), 80, 20)
	require.Contains(t, plainOf(tr), "older entries were dropped here")
	tr.trim(20)
	panetest.Press(tr, "g")
	require.Equal(t, 1, strings.Count(plainOf(tr), "older entries were dropped here"))
	tr.top = place{n: 1 << 30}
	panetest.Screen(t, tr.View(), 80, 20)
}

func TestQuietLines(t *testing.T) {
	p := &tape{t: t}
	p.state(api.StateRecord{Phase: api.PhaseReady, Model: &api.Model{Provider: "a", ID: "b", Thinking: "low"}})
	p.state(api.StateRecord{Phase: api.PhaseReady, Model: &api.Model{Provider: "a", ID: "c", Thinking: "low"}})
	p.state(api.StateRecord{Phase: api.PhaseReady, Model: &api.Model{Provider: "a", ID: "c", Thinking: "high"}})
	p.from(object{"type": "thinking_level_changed", "level": "high"})
	p.from(object{"type": "auto_retry_start", "attempt": 1, "maxAttempts": 3, "delayMs": 2000, "errorMessage": "529"})
	p.from(object{"type": "auto_retry_end", "success": false, "attempt": 3, "finalError": "529 still"})
	p.from(object{"type": "summarization_retry_scheduled", "attempt": 1, "maxAttempts": 3, "delayMs": 90000, "errorMessage": "x"})
	p.from(object{"type": "summarization_retry_finished"})
	p.from(object{"type": "compaction_start", "reason": "threshold"}).from(object{"type": "compaction_end", "aborted": true})
	p.from(object{"type": "compaction_start", "reason": "manual"}).from(object{"type": "compaction_end", "errorMessage": "too small"})
	p.from(object{"type": "response", "command": "compact", "success": false, "error": "too small"})
	p.from(object{"type": "response", "command": "get_tree", "success": false, "error": "unseen"})
	p.from(object{"type": "response", "command": "set_model", "success": false, "error": "no such model"})
	p.from(object{"type": "extension_ui_request", "method": "notify", "message": "PASEO_ENTRY_CAPTURE {}"})
	p.from(object{"type": "extension_ui_request", "method": "setStatus", "message": "unseen"})
	p.to(object{"type": "bash", "id": "1", "command": "sleep 9"}).from(object{"type": "response", "command": "bash", "id": "1", "success": true, "data": object{"cancelled": true}})
	p.to(object{"type": "bash", "id": "2", "command": "false"}).from(object{"type": "response", "command": "bash", "id": "2", "success": true, "data": object{"exitCode": 1}})
	p.answer("length", text("cut"))
	p.state(api.StateRecord{Phase: api.PhaseEnded, Reason: "Pi exited", End: &api.End{ExitCode: 3}})
	p.state(api.StateRecord{Phase: api.PhasePreparing}).state(api.StateRecord{Phase: api.PhaseReady})
	tr := made(t, "patio-dark", 100, 60, p.records)
	view := plainOf(tr)
	for _, s := range []string{"ready with a/b", "model: a/c, thinking: low", "gave up after 3 retries: 529 still", "retry of the summary 1 of 3 in 1 min 30 s: x (it worked)", "the compaction was stopped",
		"✗ too small", "set_model failed: no such model", "■ ! bash  sleep 9  stopped", "✗ ! bash  false  failed · exit code 1", "it reached the model's limit", "ended: Pi exited, exit code 3", "the session goes on"} {
		require.Contains(t, view, s)
	}
	for _, s := range []string{"unseen", "PASEO", "compact failed"} {
		require.NotContains(t, view, s)
	}
	require.Equal(t, 1, strings.Count(view, "thinking: high"))
}

func TestFigures(t *testing.T) {
	for d, want := range map[time.Duration]string{40 * time.Millisecond: "40 ms", 1500 * time.Millisecond: "1.5 s", 42 * time.Second: "42 s", 90 * time.Second: "1 min 30 s", 100 * time.Minute: "1 h 40 min"} {
		require.Equal(t, want, spanOf(d))
	}
	for n, want := range map[int64]string{7: "7", 1234: "1.2k", 2_500_000: "2.5M"} {
		require.Equal(t, want, tokensOf(n))
	}
	require.Equal(t, "$1.50", money(1.5))
	require.Equal(t, "$0.0120", money(0.012))
	require.Equal(t, "1 line", plural(1, "line", "lines"))
	require.Equal(t, "1,200 lines", plural(1200, "line", "lines"))
	require.Equal(t, "ab\x1b", clearOf("a\x1b[31mb\x1b]0;t\x07\x1b"))
}

func TestOnlyOurSequencesStay(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[1ma\x1b[m":                  "\x1b[1ma\x1b[m",
		"\x1b]8;;http://x\x07l\x1b]8;;\a": "l",
		"\x1b]8;;x\x1b\\l":                "l",
		"a\x1b[2Jb\x1b[1;2":               "ab",
		"\x1b[1\nm":                       "\nm",
		"\x1b]0;no end\nx":                "\nx",
		"\x1b":                            "",
		"\x1b]0;no end":                   "]0;no end",
		"\x1bcx\x1b[?25lm":                "cxm",
	} {
		require.Equal(t, want, styledOnly(in), "%q", in)
	}
}
