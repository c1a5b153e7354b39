package supervisor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"patio/engine/api"
	"patio/engine/pi"
)

// replay gives a transcript to a tracker and returns the activities it went through.
func replay(t *testing.T, tr *tracker, file string) []api.Activity {
	t.Helper()
	var activities []api.Activity
	for _, line := range recorded(t, file) {
		if r, changed := tr.observe(pi.ParseMessage(line), time.Unix(0, 0)); changed {
			activities = append(activities, r.Activity)
		}
	}
	return activities
}

func TestTrackerOnTranscripts(t *testing.T) {
	work := func(n int) (a []api.Activity) {
		for range n {
			a = append(a, api.ActivityWorking, api.ActivityIdle)
		}
		return a
	}
	for _, tc := range []struct {
		file       string
		activities []api.Activity
		turns      int
	}{
		{"01-basic.stdout.jsonl", work(3), 5},
		{"02-resume.stdout.jsonl", work(1), 1},
		{"07-mcp.stdout.jsonl", work(4), 8},
	} {
		t.Run(tc.file, func(t *testing.T) {
			tr := &tracker{s: api.Session{Activity: api.ActivityIdle}}
			require.Equal(t, tc.activities, replay(t, tr, tc.file))
			s := tr.snapshot()
			require.Equal(t, tc.turns, s.Turns)
			require.Empty(t, s.Questions)
			require.Empty(t, tr.tools())
			var want api.Tokens
			var cost float64
			name := ""
			for _, line := range recorded(t, tc.file) {
				e := gjson.ParseBytes(line)
				switch {
				case e.Get("type").Str == "session_info_changed":
					name = e.Get("name").Str
				case e.Get("type").Str == "message_end" && e.Get("message.role").Str == "assistant":
					u := e.Get("message.usage")
					want.Input += int(u.Get("input").Int())
					want.Output += int(u.Get("output").Int())
					want.CacheRead += int(u.Get("cacheRead").Int())
					want.CacheWrite += int(u.Get("cacheWrite").Int())
					want.Context = int(u.Get("totalTokens").Int())
					cost += u.Get("cost.total").Float()
				}
			}
			require.Equal(t, want, s.Tokens)
			require.Positive(t, s.Tokens.Output)
			require.InDelta(t, cost, s.CostUSD, 1e-9)
			require.Equal(t, name, s.Name)
		})
	}
}

func TestTrackerUsage(t *testing.T) {
	tr := &tracker{}
	for _, line := range []string{
		`{"type":"message_end","message":{"role":"assistant","usage":{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"totalTokens":10,"cost":{"total":0.5}}}}`,
		`{"type":"message_end","message":{"role":"user","usage":{"input":100}}}`,
		`{"type":"message_end","message":{"role":"assistant","usage":"none"}}`,
		`{"type":"message_end","message":{"role":"assistant"}}`,
		`{"type":"message_end","message":{"role":"assistant","usage":{"input":10,"output":20,"cacheRead":30,"cacheWrite":40,"totalTokens":90,"cost":{"total":1}}}}`,
	} {
		tr.observe(pi.ParseMessage([]byte(line)), time.Unix(0, 0))
	}
	s := tr.snapshot()
	require.Equal(t, api.Tokens{Input: 11, Output: 22, CacheRead: 33, CacheWrite: 44, Context: 90}, s.Tokens)
	require.InDelta(t, 1.5, s.CostUSD, 1e-9)
}

func TestTrackerToolCalls(t *testing.T) {
	tr := &tracker{}
	see := func(line string) { tr.observe(pi.ParseMessage([]byte(line)), time.Unix(0, 0)) }
	see(`{"type":"agent_start"}`)
	see(`{"type":"tool_execution_start","toolCallId":"a"}`)
	see(`{"type":"tool_execution_start","toolCallId":"b"}`)
	require.Equal(t, []string{"a", "b"}, tr.tools())
	see(`{"type":"tool_execution_end","toolCallId":"a"}`)
	require.Equal(t, []string{"b"}, tr.tools())
	see(`{"type":"tool_execution_end","toolCallId":"unknown"}`)
	require.Equal(t, []string{"b"}, tr.tools())
	see(`{"type":"agent_settled"}`)
	require.Empty(t, tr.tools(), "what a settled agent has left open runs no more")
	see(`{"type":"thinking_level_changed","level":"xhigh"}`)
	require.Equal(t, "xhigh", tr.snapshot().Model.Thinking)
}

func TestTrackerQuestions(t *testing.T) {
	tr := &tracker{s: api.Session{Phase: api.PhaseReady, Activity: api.ActivityIdle}}
	require.Equal(t, []api.Activity{
		api.ActivityBlocked, api.ActivityBlocked, api.ActivityBlocked, api.ActivityBlocked, api.ActivityBlocked, api.ActivityBlocked,
	}, replay(t, tr, "05-extension-ui.stdout.jsonl"), "each of the six dialogs is news, no notice is")
	questions := tr.snapshot().Questions
	require.Len(t, questions, 6)
	require.Equal(t, []string{"select", "confirm", "input", "editor", "select", "input"}, methods(questions))
	require.Equal(t, "Pick", questions[0].Title)
	require.Equal(t, []string{"a", "b"}, questions[0].Options)
	require.Equal(t, "really", questions[1].Message)
	require.Equal(t, "prefill", gjson.GetBytes(questions[3].Raw, "prefill").Str)

	_, ok := tr.answered("unknown")
	require.False(t, ok)
	for i, q := range questions {
		r, ok := tr.answered(q.ID)
		require.True(t, ok)
		require.Equal(t, q.ID, r.Answered)
		want := api.ActivityBlocked
		if i == len(questions)-1 {
			want = api.ActivityIdle // the extension asked outside of an agent's run
		}
		require.Equal(t, want, r.Activity)
		_, ok = tr.answered(q.ID)
		require.False(t, ok, "the second answer is none")
	}
	require.Equal(t, api.ActivityIdle, tr.snapshot().Activity)
}

func methods(questions []api.Question) (m []string) {
	for _, q := range questions {
		m = append(m, q.Method)
	}
	return m
}

func TestTrackerQuestionInARun(t *testing.T) {
	tr := &tracker{s: api.Session{Activity: api.ActivityIdle}}
	ask := func(id string) (api.StateRecord, bool) {
		return tr.observe(pi.ParseMessage([]byte(`{"type":"extension_ui_request","id":"`+id+`","method":"confirm"}`)), time.Unix(0, 0))
	}
	see := func(line string) (api.StateRecord, bool) {
		return tr.observe(pi.ParseMessage([]byte(line)), time.Unix(0, 0))
	}
	_, changed := see(`{"type":"agent_start"}`)
	require.True(t, changed)
	r, changed := ask("q1")
	require.True(t, changed)
	require.Equal(t, api.ActivityBlocked, r.Activity)
	_, changed = see(`{"type":"agent_start"}`)
	require.False(t, changed, "a question still waits")
	r, _ = tr.answered("q1")
	require.Equal(t, api.ActivityWorking, r.Activity)
	_, changed = ask("q2")
	require.True(t, changed)
	r, changed = see(`{"type":"agent_settled"}`)
	require.True(t, changed)
	require.Equal(t, api.ActivityIdle, r.Activity)
	require.Empty(t, tr.snapshot().Questions, "a settled agent asks nothing")
}

// A question may come before Pi's first reply.
func TestTrackerQuestionBeforeReady(t *testing.T) {
	tr := &tracker{s: api.Session{Phase: api.PhaseStarting}}
	tr.observe(pi.ParseMessage([]byte(`{"type":"extension_ui_request","id":"q","method":"input"}`)), time.Unix(0, 0))
	tr.ready(time.Unix(1, 0), "/file")
	require.Equal(t, api.ActivityBlocked, tr.snapshot().Activity)
	tr = &tracker{s: api.Session{Phase: api.PhaseStarting}}
	tr.ready(time.Unix(1, 0), "/file")
	s := tr.snapshot()
	require.Equal(t, api.ActivityIdle, s.Activity)
	require.Equal(t, time.Unix(1, 0), *s.Ready)
	require.Equal(t, "/file", s.SessionFile)
}

func TestSnapshotIsACopy(t *testing.T) {
	tr := &tracker{s: api.Session{Questions: []api.Question{{ID: "q"}}, Usage: &api.Usage{Pids: 1}}}
	s := tr.snapshot()
	s.Questions[0].ID, s.Usage.Pids = "changed", 2
	require.Equal(t, "q", tr.s.Questions[0].ID)
	require.EqualValues(t, 1, tr.s.Usage.Pids)
}

// Pi gives a question with a time limit up without a word.
func TestQuestionTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, done := newQuiet(t)
		defer done()
		see := func(line string) { s.observe(pi.ParseMessage([]byte(line))) }
		see(`{"type":"extension_ui_request","id":"q","method":"select","title":"Times out","options":["x"],"timeout":300}`)
		see(`{"type":"extension_ui_request","id":"stays","method":"input"}`)
		see(`{"type":"extension_ui_request","id":"soon","method":"input","timeout":1e12}`)
		time.Sleep(299 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, []string{"q", "stays"}, ids(s.Session().Questions), "Node waits 1 ms when the time is too long for it")
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, []string{"stays"}, ids(s.Session().Questions))
		last := states(t, s)[len(states(t, s))-1]
		require.Equal(t, "q", last.Answered)
		require.Equal(t, "the question timed out", last.Reason)
		require.Equal(t, api.ActivityBlocked, last.Activity)

		see(`{"type":"extension_ui_request","id":"answered","method":"input","timeout":50}`)
		cmd, err := pi.ParseCommand([]byte(`{"type":"extension_ui_response","id":"answered","value":"x"}`))
		require.NoError(t, err)
		s.commandSent(cmd)
		n := len(states(t, s))
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, states(t, s), n, "an answered question doesn't time out")

		see(`{"type":"extension_ui_request","id":"late","method":"input","timeout":1000000}`)
		// done ends the session: nobody waits for the rest of the time.
	})
}

func ids(questions []api.Question) (ids []string) {
	for _, q := range questions {
		ids = append(ids, q.ID)
	}
	return ids
}
