package transcript

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/tui/pane"
	"patio/tui/panetest"
)

const prose = `## Why the test failed

The clock was read **twice**: once in ` + "`Start`" + `, and once more when the *first* record came. See [the docs](https://example.com/clock) or <https://example.com>.

1. Read it once, keep what it said in the struct, and give the struct to whoever asks for the time afterwards, as the tests do.
2. Compare with ` + "`<`" + `, not ` + "`<=`" + `:

   ` + "```go" + `
   if a.Before(b) { return -1 }
   ` + "```" + `

- [x] the clock
- [ ] the timer

> Time is what keeps everything from happening at once, said someone who was waiting for a build that never came to an end.

` + "```go" + `
// Start begins to count.
func (c *Counter) Start(now time.Time) error {
	if c.began.IsZero() {
		c.began = now // once
	}
	return fmt.Errorf("count: %w", errStarted)
}
` + "```" + `

| case | before | after |
|---|---:|---:|
| one reader | 12 ms | 3 ms |
| a hundred readers | 1.2 s | 40 ms |

A <div> & an &lt;entity&gt; are shown as they are.
`

// scene has one of everything.
func scene(t testing.TB) *tape {
	p := &tape{t: t}
	p.state(api.StateRecord{Phase: api.PhasePreparing}).state(api.StateRecord{Phase: api.PhaseStarting})
	p.state(api.StateRecord{Phase: api.PhaseReady, Activity: api.ActivityIdle, Model: &api.Model{Provider: "demo", ID: "tour", Thinking: "medium"}})
	p.from(object{"type": "message_end", "message": message("user", []any{text("Why does the test of the clock fail?\nThe picture shows it."), object{"type": "image", "mimeType": "image/png", "data": strings.Repeat("A", 16384)}}, "timestamp", 1)})
	p.from(object{"type": "agent_start"})
	p.from(object{"type": "message_start", "message": message("assistant", []any{}, "provider", "demo", "model", "tour")})
	for _, d := range []string{"The user wants to know ", "why the test fails. ", "I look at it, and then at the clock."} {
		p.event(object{"type": "thinking_delta", "contentIndex": 0, "delta": d})
	}
	p.event(object{"type": "text_delta", "contentIndex": 1, "delta": "I'll look "}).event(object{"type": "text_delta", "contentIndex": 1, "delta": "at the test."})
	p.from(object{"type": "message_end", "message": message("assistant", []any{thinking("The user wants to know why the test fails. I look at it, and then at the clock."), text("I'll look at the test."),
		toolCall("c1", "bash", object{"command": "go test ./clock -run TestCounter -count=1\ngit log --oneline | head"})}, "stopReason", "toolUse", "usage", object{"input": 900, "output": 80})})
	p.from(object{"type": "tool_execution_start", "toolCallId": "c1", "toolName": "bash", "args": object{"command": "go test ./clock -run TestCounter -count=1\ngit log --oneline | head"}})
	var out strings.Builder
	for n := range 132 {
		fmt.Fprintf(&out, "counter_test.go:%d: want %d, got %d\n", n, n, n+1)
	}
	p.from(object{"type": "tool_execution_end", "toolCallId": "c1", "toolName": "bash", "isError": false, "result": object{"content": []any{text(out.String())}}})
	p.answer("toolUse", toolCall("c2", "edit", object{"path": "clock/counter.go", "edits": []any{object{"oldText": "now := time.Now()\nc.began = now", "newText": "c.began = now // once"}}}))
	p.from(object{"type": "tool_execution_start", "toolCallId": "c2", "toolName": "edit", "args": object{"path": "clock/counter.go"}})
	p.from(object{"type": "tool_execution_end", "toolCallId": "c2", "toolName": "edit", "result": object{"content": []any{text("Successfully replaced 1 block(s) in clock/counter.go.")},
		"details": object{"diff": "   ...\n 11 func (c *Counter) Start(now time.Time) {\n-12 \tnow := time.Now()\n-13 \tc.began = now\n+12 \tc.began = now // once\n 14 }"}}})
	p.run("c3", "bash", object{"command": "curl -sS https://example.com"}, "curl: (6) Could not resolve host: example.com\n\nCommand exited with code 6", true)
	p.from(object{"type": "auto_retry_start", "attempt": 1, "maxAttempts": 3, "delayMs": 2000, "errorMessage": "529 overloaded"})
	p.from(object{"type": "auto_retry_end", "success": true, "attempt": 1})
	p.answer("stop", text(prose))
	p.from(object{"type": "agent_end"}).from(object{"type": "agent_settled"})
	return p
}

func ending(p *tape) *tape {
	p.from(object{"type": "thinking_level_changed", "level": "high"})
	p.from(object{"type": "extension_ui_request", "method": "notify", "message": "MCP: 1 server connected", "notifyType": "info"})
	p.to(object{"type": "bash", "id": "b1", "command": "seq 3"})
	p.from(object{"type": "bash_execution_update", "id": "b1", "delta": "1\n2\n"})
	p.from(object{"type": "response", "command": "bash", "id": "b1", "success": true, "data": object{"output": "1\n2\n3\n", "exitCode": 0}})
	p.from(object{"type": "compaction_start", "reason": "manual"})
	p.from(object{"type": "compaction_end", "reason": "manual", "result": object{"summary": "# So far\n\nThe clock was mended.", "tokensBefore": 152000}})
	p.user("And now?")
	p.answer("error")
	p.records[len(p.records)-1] = (&tape{t: p.t, seq: p.seq - 1}).from(object{"type": "message_end", "message": message("assistant", []any{}, "provider", "demo", "model", "tour", "stopReason", "error",
		"errorMessage", `400: {"message":"the model is on fire","type":"invalid_request_error"}`)}).records[0]
	p.from(object{"type": "response", "command": "prompt", "success": false, "error": "Agent is already processing."})
	p.state(api.StateRecord{Phase: api.PhaseStopping, Reason: "patio stop"})
	return p.state(api.StateRecord{Phase: api.PhaseCrashed, End: &api.End{Reason: "the session's supervisor was lost", ExitCode: 1}, Error: &api.Error{Message: "the supervisor's process is gone", Hint: "`patio resume s1` goes on"}})
}

func TestScene(t *testing.T) {
	sized(t, "scene", func(tr func([]journal.Record) *Transcript) *Transcript {
		return tr(scene(t).records)
	})
	sized(t, "top", func(tr func([]journal.Record) *Transcript) *Transcript {
		v := tr(scene(t).records)
		v.SetFocused(true)
		panetest.Press(v, "g", "J")
		v.Focus("c1", 0)
		panetest.Press(v, "enter", "g")
		return v
	})
	sized(t, "end", func(tr func([]journal.Record) *Transcript) *Transcript {
		return tr(ending(scene(t)).records)
	})
}

func TestEmpty(t *testing.T) {
	sized(t, "empty", func(tr func([]journal.Record) *Transcript) *Transcript {
		p := &tape{t: t}
		p.state(api.StateRecord{Phase: api.PhasePreparing}).state(api.StateRecord{Phase: api.PhaseReady})
		return tr(p.records)
	})
	tr := New(nil)
	tr.SetSize(60, 12)
	panetest.Screen(t, tr.View(), 60, 12) // before it has styles
	require.Nil(t, tr.Keys())
	tr.SetStyles(panetest.Styles(t, "patio-dark"))
	require.Contains(t, tr.View(), "The conversation is shown here.")
	tr.SetSession(api.Session{Phase: api.PhaseStarting})
	require.Contains(t, tr.View(), "begins when the sandbox is ready")
	tr.Apply((&tape{t: t}).state(api.StateRecord{Phase: api.PhaseFailed, Reason: "no runsc"}).records)
	require.Contains(t, tr.View(), "Nothing was said in this session.")
}

func TestRunning(t *testing.T) {
	sized(t, "running", func(tr func([]journal.Record) *Transcript) *Transcript {
		p := scene(t).user("Run the tests.")
		p.from(object{"type": "agent_start"})
		p.answer("toolUse", toolCall("r1", "bash", object{"command": "make test"}), toolCall("r2", "read", object{"path": "a.go"}))
		p.from(object{"type": "tool_execution_start", "toolCallId": "r1", "toolName": "bash", "args": object{"command": "make test"}})
		p.from(object{"type": "tool_execution_update", "toolCallId": "r1", "toolName": "bash", "partialResult": object{"content": []any{text("ok a\nok b\nok c\nok d\nok e\nok f\n")}}})
		v := tr(p.records)
		require.True(t, v.Working())
		return v
	})
}

func plainOf(tr *Transcript) string { return ansi.Strip(drawn(tr)) }

func numbered(t testing.TB, n int) *tape {
	p := &tape{t: t}
	for k := range n {
		p.user(fmt.Sprintf("question %d", k)).answer("stop", text(fmt.Sprintf("answer %d\n\nwith a second paragraph", k)))
	}
	return p
}

func TestFollowsTheEnd(t *testing.T) {
	p := numbered(t, 50)
	tr := made(t, "patio-dark", 80, 20, p.records)
	require.Contains(t, plainOf(tr), "answer 49")
	require.True(t, tr.AtEnd())

	panetest.Press(tr, "pgup")
	before := plainOf(tr)
	require.False(t, tr.AtEnd())
	require.Contains(t, before, "more lines, G")

	at := len(p.records)
	p.user("new one").answer("stop", text("new answer"))
	tr.Apply(p.records[at:])
	after := plainOf(tr)
	cut := func(s string) string { return s[:strings.LastIndexByte(s, '\n')] }
	require.Equal(t, cut(before), cut(after), "what one reads stays where it is")

	panetest.Press(tr, "G")
	require.Contains(t, plainOf(tr), "new answer")
	require.True(t, tr.AtEnd())

	panetest.Press(tr, "g")
	require.Contains(t, plainOf(tr), "question 0")
	for range 500 {
		tr.Update(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	}
	require.True(t, tr.AtEnd(), "scrolling to the end follows again")
	for range 500 {
		tr.Update(tea.MouseWheelMsg{Button: tea.MouseWheelUp})
	}
	require.Contains(t, plainOf(tr), "question 0")
	tr.ScrollToEnd()
	require.True(t, tr.AtEnd())
}

func TestScrollingByLinesMissesNone(t *testing.T) {
	tr := made(t, "patio-dark", 80, 20, scene(t).records)
	tr.Focus("c1", 0)
	panetest.Press(tr, "g")
	var all []string
	for range 2000 {
		lines := strings.Split(ansi.Strip(tr.View()), "\n")
		if tr.AtEnd() {
			all = append(all, lines...)
			break
		}
		all = append(all, lines[0])
		panetest.Press(tr, "down")
	}
	require.True(t, tr.AtEnd())
	tall := made(t, "patio-dark", 80, len(all), scene(t).records)
	tall.Focus("c1", 0)
	tall.ScrollToEnd()
	require.Equal(t, strings.Split(ansi.Strip(tall.View()), "\n"), all)
}

func TestAnchorHoldsWhenWhatIsAboveChanges(t *testing.T) {
	p := numbered(t, 30)
	tr := made(t, "patio-dark", 80, 20, p.records)
	panetest.Press(tr, "pgup", "pgup")
	before := plainOf(tr)
	// What is above the screen unfolds, history comes before all.
	tr.items[3].fold = foldClosed
	tr.items[3].changed()
	tr.allThinking = true
	tr.given = false
	tr.SetHistory(turnsOf(40))
	require.Equal(t, before, plainOf(tr))
	tr.SetSize(80, 18)
	require.Equal(t, strings.Split(before, "\n")[0], strings.Split(plainOf(tr), "\n")[0])
	tr.SetSize(60, 18)
	require.Equal(t, strings.TrimSpace(strings.Split(before, "\n")[0]), strings.TrimSpace(strings.Split(plainOf(tr), "\n")[0]))
}

func TestSelectingAndFolding(t *testing.T) {
	tr := made(t, "patio-dark", 100, 30, scene(t).records)
	_, _, ok := tr.SelectedEntry()
	require.False(t, ok)
	_, ok = tr.SelectedText()
	require.False(t, ok)
	require.NotContains(t, plainOf(tr), "▌")
	tr.SetFocused(true)
	text, ok := tr.SelectedText()
	require.True(t, ok)
	require.Contains(t, text, "## Why the test failed", "the source, not what is drawn")
	require.Contains(t, plainOf(tr), "▌")

	for range 20 {
		panetest.Press(tr, "K")
	}
	text, ok = tr.SelectedText()
	require.True(t, ok)
	require.Equal(t, "Why does the test of the clock fail?\nThe picture shows it.", text)
	require.Contains(t, plainOf(tr), "▶ you")

	panetest.Press(tr, "J") // the thinking
	require.NotContains(t, plainOf(tr), "I look at it")
	panetest.Press(tr, "enter")
	require.Contains(t, plainOf(tr), "I look at it")
	panetest.Press(tr, "space")
	require.NotContains(t, plainOf(tr), "I look at it")
	panetest.Press(tr, "z")
	require.Contains(t, plainOf(tr), "I look at it")

	require.True(t, tr.Focus("c1", 0))
	seq, call, ok := tr.SelectedEntry()
	require.True(t, ok)
	require.Equal(t, "c1", call)
	require.NotZero(t, seq)
	require.Contains(t, plainOf(tr), "counter_test.go:20:", "it is unfolded")
	panetest.Press(tr, "o", "o")
	require.NotContains(t, plainOf(tr), "counter_test.go:20:")

	require.True(t, tr.Focus("", seq))
	require.False(t, tr.Focus("none", 0))
	require.False(t, tr.Focus("", 0))

	msg := panetest.Press(tr, "y")()
	require.IsType(t, pane.CopyMsg{}, msg)
	require.Contains(t, msg.(pane.CopyMsg).Text, "go test ./clock")
	tr.SetFocused(false)
	require.NotContains(t, plainOf(tr), "▌")
	panetest.Helped(t, tr)
}

func TestClicking(t *testing.T) {
	tr := made(t, "patio-dark", 100, 30, scene(t).records)
	tr.SetFocused(true)
	panetest.Press(tr, "g")
	find := func(s string) int {
		return slices.IndexFunc(strings.Split(plainOf(tr), "\n"), func(l string) bool { return strings.Contains(l, s) })
	}
	y := find("thought for")
	require.Positive(t, y)
	tr.Update(tea.MouseClickMsg{X: 5, Y: y, Button: tea.MouseLeft})
	require.Equal(t, y, find("thought for"), "what was clicked stays in its place")
	require.Positive(t, find("I look at it"))
	y = find("Why does the test")
	tr.Update(tea.MouseClickMsg{X: 5, Y: y, Button: tea.MouseLeft})
	text, _ := tr.SelectedText()
	require.Contains(t, text, "Why does the test")
	tr.Update(tea.MouseClickMsg{X: 5, Y: 29, Button: tea.MouseLeft})
	require.True(t, tr.AtEnd(), "a click on the mark goes to the end")
	tr.Update(tea.MouseClickMsg{X: 5, Y: 99, Button: tea.MouseLeft})
	tr.Update(tea.MouseClickMsg{X: 5, Y: -1, Button: tea.MouseLeft})
}

func TestSpinnerTurns(t *testing.T) {
	p := (&tape{t: t}).user("go")
	p.from(object{"type": "agent_start"}).event(object{"type": "thinking_delta", "contentIndex": 0, "delta": "hm"})
	tr := made(t, "patio-dark", 80, 20, p.records)
	a := tr.View()
	require.Equal(t, a, tr.View())
	tr.Tick()
	require.NotEqual(t, a, tr.View())
}

func TestEverySize(t *testing.T) {
	r := ending(scene(t)).records
	tr := made(t, "patio-dark", 20, 4, r)
	tr.SetFocused(true)
	for _, open := range []bool{false, true} {
		tr.allOutput, tr.allThinking = open, open
		tr.foldAll(kindCall)
		for w, h := range panetest.Sizes(13, 7) {
			tr.SetSize(w, h)
			panetest.Screen(t, tr.View(), w, h)
			panetest.Press(tr, "pgup")
			panetest.Screen(t, tr.View(), w, h)
			panetest.Press(tr, "G")
		}
	}
	for w := range 12 {
		for h := range 5 {
			tr.SetSize(w, h)
			tr.View()
			panetest.Press(tr, "pgup", "K", "J", "enter", "down", "G", "g")
		}
	}
}

func TestOldestAreDropped(t *testing.T) {
	tr := made(t, "patio-dark", 80, 20, nil)
	p := &tape{t: t}
	for k := range maxItems + 3000 {
		p.records = p.records[:0]
		tr.Apply(p.user(fmt.Sprint("q", k)).records)
	}
	require.LessOrEqual(t, len(tr.items), maxItems)
	panetest.Press(tr, "g")
	require.Contains(t, plainOf(tr), "were dropped here: `patio sessions show`")
	require.Equal(t, maxItems+3000, tr.Count())
	require.Len(t, tr.Prompts(), maxPrompts)
	panetest.Press(tr, "G")
	require.Contains(t, plainOf(tr), fmt.Sprint("q", maxItems+2999))
	tr.Clear()
	require.Zero(t, tr.Count())
	require.Contains(t, tr.View(), "The conversation is shown here.")
}

func TestDrawnLinesAreBounded(t *testing.T) {
	p := &tape{t: t}
	for range 400 {
		p.user(strings.Repeat("a line\n", 20)).answer("stop", text(strings.Repeat("- an item\n", 120)))
	}
	tr := made(t, "patio-dark", 80, 20, p.records)
	for range 4000 {
		panetest.Press(tr, "pgup")
		tr.View()
	}
	require.Less(t, tr.cached, maxCached+3000)
	panetest.Press(tr, "G")
	require.Contains(t, plainOf(tr), "an item")
}

func TestTimesAreOfTheClocksZone(t *testing.T) {
	zone := time.FixedZone("east", 3*3600)
	tr := New(func() time.Time { return began.In(zone) })
	tr.SetStyles(panetest.Styles(t, "patio-dark"))
	tr.SetSize(80, 20)
	tr.Apply((&tape{t: t}).user("hi").records)
	require.Contains(t, tr.View(), "12:30:00")
}
