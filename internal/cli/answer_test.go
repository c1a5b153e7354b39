package cli

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"patio/engine/api"
	"patio/engine/journal"
)

var update = flag.Bool("update", false, "write the golden files anew")

// requireGolden compares with a file of testdata/golden.
func requireGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, got, 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

// One terminal for both streams: text and side lines must not run into each other.
func TestAnswerOnATerminal(t *testing.T) {
	var screen bytes.Buffer
	show := &answer{text: newCleaner(&screen, dropHazards), side: &screen, same: true, refused: map[string]bool{}}
	for _, r := range readRecords(t, "basic.journal.jsonl") {
		require.NoError(t, show.record(nil, r))
	}
	requireGolden(t, "answer.txt", screen.Bytes())
}

func TestAnswerSideLines(t *testing.T) {
	from := func(line string) journal.Record { return rpcRecord(`{"direction":"from_pi","line":` + line + `}`) }
	denied := journal.Record{Type: api.RecordEgress, Data: []byte(`{"kind":"dns","verdict":"deny","host":"evil.example.com","port":443,"reason":"no_rule","message":"no rule allows this host","bytes_in":0,"bytes_out":0}`)}
	var text, side bytes.Buffer
	show := &answer{text: &text, side: &side, refused: map[string]bool{}}
	for _, r := range []journal.Record{
		from(`{"type":"message_start","message":{"role":"assistant"}}`),
		from(`{"type":"message_update","assistantMessageEvent":{"type":"text_delta","delta":"Looking"}}`),
		from(`{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"Looking"}]}}`),
		from(`{"type":"tool_execution_start","toolName":"bash","args":{"command":"curl evil.example.com\n\u001b]52;c;eA==\u0007; true"}}`),
		denied, denied,
		from(`{"type":"tool_execution_end","toolName":"bash","isError":true,"result":{"content":[{"type":"text","text":"curl: (6)\nexit 6\n"}]}}`),
		from(`{"type":"auto_retry_start","attempt":1,"maxAttempts":3,"delayMs":2000,"errorMessage":"529 overloaded"}`),
		from(`{"type":"extension_ui_request","method":"notify","message":"look \u202e here"}`),
		// A model that doesn't stream.
		from(`{"type":"message_start","message":{"role":"assistant"}}`),
		from(`{"type":"message_end","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"Done."}]}}`),
		// Not an answer.
		from(`{"type":"message_end","message":{"role":"toolResult","content":[{"type":"text","text":"secret"}]}}`),
	} {
		require.NoError(t, show.record(nil, r))
	}
	require.Equal(t, "Looking\nDone.\n", text.String())
	require.Equal(t, `> bash curl evil.example.com ]52;c;eA==; true
! refused: evil.example.com:443 (no rule allows this host)
  bash failed: exit 6
  retry 1 of 3 in 2.0 s: 529 overloaded
  note: look  here
`, side.String())
	requireSafe(t, side.String())
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestAnswerStopsAtABrokenStream(t *testing.T) {
	broken := errors.New("gone")
	show := &answer{text: failing{broken}, side: &bytes.Buffer{}, refused: map[string]bool{}}
	err := show.record(nil, rpcRecord(`{"direction":"from_pi","line":{"type":"message_update","assistantMessageEvent":{"type":"text_delta","delta":"x"}}}`))
	require.ErrorIs(t, err, broken)
}

func TestLogLines(t *testing.T) {
	for _, name := range []string{"basic", "questions"} {
		var b bytes.Buffer
		lines := &logLines{w: &b, zone: time.UTC}
		for _, r := range readRecords(t, name+".journal.jsonl") {
			require.NoError(t, lines.show(r))
		}
		requireSafe(t, b.String())
		require.NotContains(t, b.String(), "message_update")
		requireGolden(t, "logs-"+name+".txt", b.Bytes())
	}
}

func TestLogLinesFit(t *testing.T) {
	var b bytes.Buffer
	lines := &logLines{w: &b, width: 60, deltas: true, zone: time.UTC}
	for _, r := range readRecords(t, "basic.journal.jsonl") {
		require.NoError(t, lines.show(r))
	}
	for line := range bytes.Lines(b.Bytes()) {
		require.LessOrEqual(t, len([]rune(string(line)))-1, 60, "%s", line)
	}
	require.Contains(t, b.String(), "message_update")
}
