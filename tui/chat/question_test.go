package chat

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"patio/engine/api"
	"patio/tui/pane"
)

func TestQuestions(t *testing.T) {
	options := make([]string, 30)
	for i := range options {
		options[i] = fmt.Sprintf("option %d", i)
	}
	cases := map[string]struct {
		q    api.Question
		keys []string
		want string
	}{
		"select the first":  {api.Question{Method: "select", Options: []string{"a", "b", "c"}}, []string{"enter"}, `"value":"a"`},
		"select with j":     {api.Question{Method: "select", Options: []string{"a", "b", "c"}}, []string{"j", "down", "k", "enter"}, `"value":"b"`},
		"select by digit":   {api.Question{Method: "select", Options: []string{"a", "b", "c"}}, []string{"3"}, `"value":"c"`},
		"select what isn't": {api.Question{Method: "select", Options: []string{"a"}}, []string{"7"}, ""},
		"select from none":  {api.Question{Method: "select"}, []string{"enter"}, ""},
		"select the odd":    {api.Question{Method: "select", Options: []string{"a\x1b[31m\u202e"}}, []string{"enter"}, `"value":"a\u001b[31m` + "\u202e\""},
		"select from many":  {api.Question{Method: "select", Options: options}, []string{"end", "enter"}, `"value":"option 29"`},
		"select by filter":  {api.Question{Method: "select", Options: options}, []string{"1", "7", "enter"}, `"value":"option 17"`},
		"filter taken back": {api.Question{Method: "select", Options: options}, []string{"1", "backspace", "enter"}, `"value":"option 0"`},
		"filter left":       {api.Question{Method: "select", Options: options}, []string{"1", "esc", "enter"}, `"value":"option 0"`},
		"nothing fits":      {api.Question{Method: "select", Options: options}, []string{"z", "z", "enter"}, ""},
		"confirm is no":     {api.Question{Method: "confirm"}, []string{"enter"}, `"confirmed":false`},
		"confirm with y":    {api.Question{Method: "confirm"}, []string{"y"}, `"confirmed":true`},
		"confirm with n":    {api.Question{Method: "confirm"}, []string{"n"}, `"confirmed":false`},
		"confirm with up":   {api.Question{Method: "confirm"}, []string{"up", "enter"}, `"confirmed":true`},
		"confirm by digit":  {api.Question{Method: "confirm"}, []string{"1"}, `"confirmed":true`},
		"cancel":            {api.Question{Method: "confirm"}, []string{"esc"}, `"cancelled":true`},
		"input":             {api.Question{Method: "input"}, []string{"b", "o", "b", "ctrl+j", "enter"}, `"value":"bob"`},
		"input, empty":      {api.Question{Method: "input"}, []string{"enter"}, `"value":""`},
		"input, prefilled":  {api.Question{Method: "input", Raw: json.RawMessage(`{"prefill":"a"}`)}, []string{"b", "enter"}, `"value":"ab"`},
		"editor":            {api.Question{Method: "editor", Raw: json.RawMessage(`{"prefill":"a\tb"}`)}, []string{"ctrl+j", "c", "enter"}, `"value":"a\tb\nc"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			c.q.ID, c.q.Title = "q1", "Well?"
			d.ask(c.q)
			require.Contains(t, d.view(), "Well?")
			d.ready()
			d.press(c.keys...)
			d.safe()
			if c.want == "" {
				require.Empty(t, d.h.commands)
				return
			}
			require.Len(t, d.h.commands, 1)
			require.Contains(t, strings.ReplaceAll(d.h.last(), `\u202e`, "\u202e"), c.want)
			require.Contains(t, d.h.last(), `"id":"q1"`)
			require.Contains(t, d.h.last(), `"type":"extension_ui_response"`)
			// It stays until the session says that it is answered, and takes no other answer.
			require.Contains(t, d.view(), "answering")
			d.press("enter", "esc", "y")
			require.Len(t, d.h.commands, 1)
			d.state(api.StateRecord{Phase: api.PhaseReady, Activity: api.ActivityWorking, Answered: "q1"})
			require.NotContains(t, d.view(), "Well?")
			require.NotContains(t, d.view(), "another window")
			require.True(t, d.c.focus == focusEditor)
		})
	}
}

func TestQuestionIsNotAnsweredByAccident(t *testing.T) {
	t.Run("keys on their way", func(t *testing.T) {
		d := newDesk(t)
		d.ask(api.Question{ID: "q1", Method: "confirm", Title: "Sure?"})
		d.press("y", "enter", "esc")
		require.Empty(t, d.h.commands)
		d.ready()
		d.press("y")
		require.Len(t, d.h.commands, 1)
	})
	t.Run("while something is written", func(t *testing.T) {
		d := newDesk(t)
		d.work()
		d.typed("a te")
		d.ask(api.Question{ID: "q1", Method: "confirm", Title: "Sure?"})
		d.typed("xt")
		d.press("enter")
		require.Equal(t, "a text", d.h.prompts[0].Message)
		require.Empty(t, d.h.commands)
		d.press("ctrl+g")
		d.press("y")
		require.Contains(t, d.h.last(), `"confirmed":true`)
	})
	t.Run("left for the editor", func(t *testing.T) {
		d := newDesk(t)
		d.ask(api.Question{ID: "q1", Method: "confirm", Title: "Sure?"})
		d.ready()
		d.press("ctrl+g")
		d.typed("y")
		require.Empty(t, d.h.commands)
		require.Equal(t, "y", d.c.ed.text())
	})
	t.Run("by a click", func(t *testing.T) {
		d := newDesk(t)
		d.typed("x")
		d.ask(api.Question{ID: "q1", Method: "confirm", Title: "Sure?"})
		y := -1
		for i, line := range strings.Split(d.view(), "\n") {
			if strings.Contains(line, "1 Yes") {
				y = i
			}
		}
		d.send(tea.MouseClickMsg{X: 8, Y: y, Button: tea.MouseLeft})
		require.Empty(t, d.h.commands)
		require.Equal(t, 0, d.c.asked().cursor)
		d.ready()
		d.press("enter")
		require.Contains(t, d.h.last(), `"confirmed":true`)
	})
}

func TestQuestionElsewhere(t *testing.T) {
	ask := func(t *testing.T) *desk {
		d := newDesk(t)
		d.ask(api.Question{ID: "q1", Method: "input", Title: "Name?", Raw: json.RawMessage(`{"timeout":30000}`)})
		d.ready()
		require.Contains(t, d.view(), "29 s left")
		return d
	}
	t.Run("answered in another window", func(t *testing.T) {
		d := ask(t)
		d.state(api.StateRecord{Phase: api.PhaseReady, Activity: api.ActivityWorking, Answered: "q1"})
		require.Contains(t, d.view(), "answered in another window")
		require.NotContains(t, d.view(), "Name?")
	})
	t.Run("timed out", func(t *testing.T) {
		d := ask(t)
		d.state(api.StateRecord{Phase: api.PhaseReady, Activity: api.ActivityWorking, Answered: "q1", Reason: "the question timed out"})
		require.Contains(t, d.view(), "the question timed out")
	})
	t.Run("taken back", func(t *testing.T) {
		d := ask(t)
		d.idle()
		require.Contains(t, d.view(), "took its question back")
	})
	t.Run("gone from the snapshot", func(t *testing.T) {
		d := ask(t)
		s := session()
		s.Seq = 900
		d.c.SetSession(s)
		require.Contains(t, d.view(), "another window")
	})
	t.Run("asked before this was opened", func(t *testing.T) {
		d := newDesk(t, func(s *api.Session, _ *Options) {
			s.Activity, s.Questions = api.ActivityBlocked, []api.Question{{ID: "q0", Method: "confirm", Title: "Old?", Asked: start}}
		})
		require.Contains(t, d.view(), "Old?")
		// The journal says it again.
		d.seq = 10
		d.ask(api.Question{ID: "q0", Method: "confirm", Title: "Old?"})
		require.Len(t, d.c.s.Questions, 1)
	})
	t.Run("the answer fails", func(t *testing.T) {
		d := ask(t)
		d.h.replies["extension_ui_response"] = "gone"
		d.press("enter")
		require.Equal(t, "the supervisor is gone", d.notice())
		delete(d.h.replies, "extension_ui_response")
		d.press("enter")
		require.Len(t, d.h.commands, 2)
	})
}

func TestSeveralQuestions(t *testing.T) {
	d := newDesk(t)
	d.ask(api.Question{ID: "q1", Method: "input", Title: "First?"})
	d.ask(api.Question{ID: "q2", Method: "input", Title: "Second?"})
	d.ask(api.Question{ID: "q3", Method: "confirm", Title: "Third?"})
	d.ready()
	require.Contains(t, d.view(), "1 of 3")
	d.typed("half")
	d.press("ctrl+n")
	require.Contains(t, d.view(), "2 of 3")
	require.Contains(t, d.view(), "Second?")
	d.press("ctrl+n", "ctrl+n")
	require.Contains(t, d.view(), "half")
	d.press("ctrl+n", "ctrl+n", "y")
	require.Contains(t, d.h.last(), `"id":"q3"`)
	d.state(api.StateRecord{Phase: api.PhaseReady, Activity: api.ActivityBlocked, Answered: "q3"})
	require.Contains(t, d.view(), "2 of 2")
}

func TestQuestionWithExternalEditor(t *testing.T) {
	d := newDesk(t)
	d.ask(api.Question{ID: "q1", Method: "editor", Title: "Text?"})
	d.ready()
	d.send(tea.PasteMsg{Content: strings.Repeat("x\n", 20)})
	d.press("ctrl+o")
	edit := d.msgs[0].(pane.EditMsg)
	require.Equal(t, strings.Repeat("x\n", 20), edit.Text)
	d.send(edit.Done("mine", nil))
	d.press("enter")
	require.Contains(t, d.h.last(), `"value":"mine"`)
	d.state(api.StateRecord{Phase: api.PhaseReady, Activity: api.ActivityWorking, Answered: "q1"})
	d.send(edit.Done("late", nil))
	require.Contains(t, d.notice(), "too late")
	require.True(t, d.c.ed.empty())
}

func TestLongQuestion(t *testing.T) {
	d := newDesk(t)
	var b strings.Builder
	for i := range 100 {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	d.ask(api.Question{ID: "q1", Method: "confirm", Title: "Sure?", Message: b.String()})
	d.ready()
	require.Contains(t, d.view(), "pgdn shows more")
	require.Contains(t, d.view(), "2 No")
	for range 60 {
		d.press("pgdown")
		d.c.View()
	}
	require.Contains(t, d.view(), "line 99")
	d.press("pgup")
	require.NotContains(t, d.view(), "line 99")
	d.c.SetSize(60, 12)
	d.safe()
	require.Contains(t, d.view(), "2 No")
}

func TestQuestionTimeLeftIsNeverNegative(t *testing.T) {
	a := ask{q: api.Question{Asked: start}, timeout: time.Second}
	left, ok := a.left(start.Add(time.Minute))
	require.True(t, ok)
	require.Zero(t, left)
}
