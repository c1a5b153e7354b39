package traffic

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/themes"
	"patio/tui/pane"
	"patio/tui/style"
)

var update = flag.Bool("update", false, "rewrite golden files")

// fakeHost reads records from memory. What a test doesn't use isn't implemented.
type fakeHost struct {
	pane.Host
	records []journal.Record
	err     error
	reads   int
	largest int // records in one read
}

func (h *fakeHost) Records(since uint64, limit int, types []string, done func([]journal.Record, error) tea.Msg) tea.Cmd {
	return func() tea.Msg {
		h.reads++
		if h.err != nil {
			return done(nil, h.err)
		}
		var found []journal.Record
		for _, r := range h.records {
			if r.Seq > since && len(found) < limit {
				found = append(found, r)
			}
		}
		h.largest = max(h.largest, len(found))
		return done(found, nil)
	}
}

func now() time.Time { return time.Date(2026, 12, 7, 12, 0, 0, 0, time.UTC) }

func tour(t testing.TB) []journal.Record {
	t.Helper()
	b, err := os.ReadFile("testdata/tour.journal.jsonl")
	require.NoError(t, err)
	var all []journal.Record
	for l := range strings.Lines(string(b)) {
		r, err := journal.Decode([]byte(strings.TrimSuffix(l, "\n")))
		require.NoError(t, err)
		all = append(all, r)
	}
	return all
}

func newTraffic(t testing.TB, records []journal.Record, width, height int) (*Traffic, *fakeHost) {
	t.Helper()
	h := &fakeHost{records: records}
	tr := New(h, now)
	tr.SetStyles(palette(t, themes.DefaultDark))
	tr.SetSize(width, height)
	tr.SetSession(api.Session{ID: "tour"})
	tr.Apply(records)
	return tr, h
}

func palette(t testing.TB, name string) *style.Styles {
	t.Helper()
	all, err := themes.All("")
	require.NoError(t, err)
	for _, p := range all {
		if p.Name == name {
			return style.New(p)
		}
	}
	t.Fatalf("no theme %s", name)
	return nil
}

// rpc is a record of a line of Pi's.
func rpc(seq int, line string) journal.Record { return rpcBy(seq, api.FromPi, line) }

func rpcBy(seq int, d api.Direction, line string) journal.Record {
	return journal.Record{
		Version: 1, Seq: uint64(seq), Session: "tour", Type: api.RecordRPC, Time: now().Add(time.Duration(seq) * time.Millisecond),
		Data: json.RawMessage(fmt.Sprintf(`{"direction":%q,"line":%s}`, d, line)),
	}
}

func record(seq int, typ, data string) journal.Record {
	return journal.Record{Version: 1, Seq: uint64(seq), Session: "tour", Type: typ, Time: now().Add(time.Duration(seq) * time.Millisecond), Data: json.RawMessage(data)}
}

// run gives the pane what its commands say, as the root does, and returns what was for
// the root itself.
func run(t *Traffic, cmd tea.Cmd) []tea.Msg {
	var out []tea.Msg
	queue := []tea.Cmd{cmd}
	for len(queue) > 0 {
		c := queue[0]
		queue = queue[1:]
		if c == nil {
			continue
		}
		switch msg := c().(type) {
		case nil:
		case tea.BatchMsg:
			queue = append(queue, msg...)
		case pane.CopyMsg, pane.ExportMsg, pane.NoticeMsg, pane.ErrorMsg:
			out = append(out, msg)
		case pane.FocusMsg:
			out = append(out, msg)
			queue = append(queue, t.Update(msg))
		default:
			queue = append(queue, t.Update(msg))
		}
	}
	return out
}

func press(t *Traffic, keys ...string) []tea.Msg {
	var out []tea.Msg
	for _, k := range keys {
		out = append(out, run(t, t.Update(keyOf(k)))...)
	}
	return out
}

func write(t *Traffic, text string) {
	for _, r := range text {
		press(t, string(r))
	}
}

func keyOf(k string) tea.KeyPressMsg {
	switch k {
	case "enter":
		return tea.KeyPressMsg{Code: tea.KeyEnter}
	case "esc":
		return tea.KeyPressMsg{Code: tea.KeyEscape}
	case "space":
		return tea.KeyPressMsg{Code: tea.KeySpace, Text: " "}
	case "backspace":
		return tea.KeyPressMsg{Code: tea.KeyBackspace}
	}
	r, _ := utf8.DecodeRuneInString(k)
	return tea.KeyPressMsg{Code: r, Text: k}
}

var sgr = regexp.MustCompile("\x1b\\[[0-9;:]*m")

func plain(t *Traffic) string { return sgr.ReplaceAllString(t.View(), "") }

// shown is the rows of the list, by type.
func shown(t *Traffic) []string {
	var all []string
	for i := range t.Len() {
		all = append(all, strings.TrimSpace(t.Row(i)[2].Text))
	}
	return all
}

// checkView requires exactly width by height columns, and no byte that isn't ours.
func checkView(t testing.TB, view string, width, height int) {
	t.Helper()
	lines := strings.Split(view, "\n")
	require.Len(t, lines, height)
	for i, line := range lines {
		plain := sgr.ReplaceAllString(line, "")
		require.True(t, utf8.ValidString(plain), "line %d: %q", i, plain)
		require.Equal(t, width, ansi.StringWidth(plain), "line %d: %q", i, plain)
		for _, r := range plain {
			require.False(t, unicode.IsControl(r) || unicode.Is(unicode.Cf, r), "line %d: %q", i, plain)
		}
	}
}

func golden(t *testing.T, id, view string) {
	t.Helper()
	file := filepath.Join("testdata", "golden", id+".txt")
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(view+"\n"), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "make golden writes it")
	require.Equal(t, string(want), view+"\n")
}
