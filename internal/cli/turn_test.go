package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"patio/engine/api"
	"patio/engine/journal"
)

// readRecords reads a journal of testdata.
func readRecords(t *testing.T, name string) []journal.Record {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	var records []journal.Record
	for line := range bytes.Lines(b) {
		r, err := journal.Decode(bytes.TrimSuffix(line, []byte("\n")))
		require.NoError(t, err)
		records = append(records, r)
	}
	return records
}

func TestTurnsOfARecordedSession(t *testing.T) {
	records := readRecords(t, "basic.journal.jsonl")
	for message, want := range map[string]struct {
		lastEvent string // the event at which the turn is over
		text      string
		stop      string
	}{
		"TOOL:env | grep -E '^(PI_|AI_AGENT)' | sort; pwd": {"agent_settled", "Tool said: AI_AGENT=pi", "stop"},
		// Aborted with a steer queued: that one runs to its end first.
		"SLOW please": {"agent_settled", "tick1 ", "stop"},
		"hi":          {"agent_settled", "Hello from fakemodel.\n", "stop"},
	} {
		t.Run(message, func(t *testing.T) {
			turn := &turn{client: clientRun, message: message}
			var text, side bytes.Buffer
			show := &answer{text: &text, side: &side, refused: map[string]bool{}}
			over := -1
			for i, r := range records {
				turn.observe(r)
				if turn.id != "" {
					require.NoError(t, show.record(nil, r))
				}
				if turn.over() {
					over = i
					break
				}
			}
			require.Positive(t, over, "the turn never ended")
			require.Equal(t, want.lastEvent, rpcEvent(records[over].Data).line.Get("type").Str)
			require.True(t, strings.HasPrefix(text.String(), want.text), text.String())
			require.True(t, strings.HasSuffix(text.String(), "\n"), text.String())
			require.Equal(t, want.stop, turn.stop)
			require.NoError(t, turn.err())
		})
	}
}

func TestTurnOfAnotherClientIsNotOurs(t *testing.T) {
	turn := &turn{client: clientCLI, message: "hi"}
	for _, r := range readRecords(t, "basic.journal.jsonl") {
		turn.observe(r)
	}
	require.False(t, turn.over())
	require.Empty(t, turn.stop)
}

func TestRefusedPromptIsNeverOver(t *testing.T) {
	turn := &turn{client: clientRun, message: "no behaviour given"}
	accepted := false
	for _, r := range readRecords(t, "basic.journal.jsonl") {
		turn.observe(r)
		accepted = accepted || turn.accepted
	}
	require.False(t, accepted)
	require.False(t, turn.over())
}

func TestSlashCommand(t *testing.T) {
	turn := &turn{client: clientRun, message: "/uitest"}
	var asked []string
	for _, r := range readRecords(t, "questions.journal.jsonl") {
		turn.observe(r)
		if q := turn.question; q != nil && (len(asked) == 0 || asked[len(asked)-1] != q.Title) {
			asked = append(asked, q.Title)
		}
	}
	// The one with a time limit answers itself.
	require.Equal(t, []string{"Pick", "Sure?", "Name", "Edit", "Cancel me"}, asked)
	require.Nil(t, turn.question)
	require.True(t, turn.accepted)
	require.True(t, turn.probe, "no agent ran: only Pi's state tells that it is over")
	require.False(t, turn.over())

	idle := rpcRecord(`{"direction":"from_pi","line":{"id":"patio-9/9","type":"response","command":"get_state","success":true,"data":{"isStreaming":false}}}`)
	turn.observe(idle)
	require.True(t, turn.over())
	require.NoError(t, turn.err())
}

func rpcRecord(data string) journal.Record {
	return journal.Record{Type: api.RecordRPC, Data: []byte(data)}
}

func TestStateBeforeAnAgentStartsIsNoEnd(t *testing.T) {
	turn := &turn{client: clientRun, message: "/skill:x go"}
	for _, data := range []string{
		`{"direction":"to_pi","client":"run-1","line":{"type":"prompt","message":"/skill:x go","id":"run-1/1"}}`,
		`{"direction":"from_pi","line":{"type":"response","command":"prompt","success":true,"id":"run-1/1"}}`,
		`{"direction":"from_pi","line":{"type":"agent_start"}}`,
		`{"direction":"from_pi","line":{"type":"response","command":"get_state","success":true,"data":{"isStreaming":false}}}`,
	} {
		turn.observe(rpcRecord(data))
		require.False(t, turn.over(), data)
	}
	turn.observe(rpcRecord(`{"direction":"from_pi","line":{"type":"agent_settled"}}`))
	require.True(t, turn.over())
}

func TestSettleOfTheRunBeforeIsNotOurs(t *testing.T) {
	turn := &turn{client: clientRun, message: "next"}
	steps := []struct {
		data string
		over bool
	}{
		{`{"direction":"to_pi","client":"run-1","line":{"type":"prompt","message":"next","id":"run-1/1"}}`, false},
		{`{"direction":"from_pi","line":{"type":"agent_settled"}}`, false},
		{`{"direction":"from_pi","line":{"type":"response","command":"prompt","success":true,"id":"run-1/1"}}`, false},
		{`{"direction":"from_pi","line":{"type":"agent_start"}}`, false},
		{`{"direction":"from_pi","line":{"type":"agent_settled"}}`, true},
	}
	for _, s := range steps {
		turn.observe(rpcRecord(s.data))
		require.Equal(t, s.over, turn.over(), s.data)
	}
}

func TestTurnErrors(t *testing.T) {
	sent := `{"direction":"to_pi","client":"run-1","line":{"type":"prompt","message":"m","id":"run-1/1"}}`
	accepted := `{"direction":"from_pi","line":{"type":"response","command":"prompt","success":true,"id":"run-1/1"}}`
	settled := `{"direction":"from_pi","line":{"type":"agent_settled"}}`
	for name, c := range map[string]struct {
		records []journal.Record
		code    api.Code
		message string
	}{
		"the model failed": {
			[]journal.Record{rpcRecord(sent), rpcRecord(accepted),
				rpcRecord(`{"direction":"from_pi","line":{"type":"message_end","message":{"role":"assistant","content":[],"stopReason":"error","errorMessage":"401 no such key"}}}`),
				rpcRecord(settled)},
			api.CodeInternal, "the model failed: 401 no such key",
		},
		"a retry that worked": {
			[]journal.Record{rpcRecord(sent), rpcRecord(accepted),
				rpcRecord(`{"direction":"from_pi","line":{"type":"message_end","message":{"role":"assistant","content":[],"stopReason":"error","errorMessage":"529"}}}`),
				rpcRecord(`{"direction":"from_pi","line":{"type":"message_end","message":{"role":"assistant","content":[],"stopReason":"stop"}}}`),
				rpcRecord(settled)},
			"", "",
		},
		"aborted": {
			[]journal.Record{rpcRecord(sent), rpcRecord(accepted),
				rpcRecord(`{"direction":"from_pi","line":{"type":"message_end","message":{"role":"assistant","content":[],"stopReason":"aborted"}}}`),
				rpcRecord(settled)},
			api.CodeInternal, "the turn was aborted",
		},
		"the session ended": {
			[]journal.Record{rpcRecord(sent), rpcRecord(accepted),
				{Type: api.RecordState, Data: []byte(`{"phase":"ended","reason":"out of memory","end":{"reason":"out of memory","exit_code":137}}`)}},
			api.CodeInternal, "the session ended before the answer was complete: out of memory",
		},
		"the session failed": {
			[]journal.Record{rpcRecord(sent),
				{Type: api.RecordState, Data: []byte(`{"phase":"failed","error":{"code":"disk","message":"no space"}}`)}},
			api.CodeDisk, "no space",
		},
	} {
		t.Run(name, func(t *testing.T) {
			turn := &turn{client: clientRun, message: "m"}
			for _, r := range c.records {
				turn.observe(r)
			}
			require.True(t, turn.over())
			err := turn.err()
			if c.code == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, c.message)
			require.Equal(t, c.code, api.AsError(err).Code)
		})
	}
}
