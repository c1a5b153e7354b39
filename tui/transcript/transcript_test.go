package transcript

import (
	"bufio"
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

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/themes"
	"patio/tui/pane"
	"patio/tui/safe"
	"patio/tui/style"
)

var (
	_ pane.Pane     = (*Transcript)(nil)
	_ pane.Follower = (*Transcript)(nil)
	_ pane.Ticker   = (*Transcript)(nil)
	_ pane.Counter  = (*Transcript)(nil)
)

var update = flag.Bool("update", false, "rewrite the golden files")

var (
	began = time.Date(2026, 12, 1, 9, 30, 0, 0, time.UTC)
	clock = func() time.Time { return began.Add(time.Hour) }
)

func stylesOf(t testing.TB, name string) *style.Styles {
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

func recording(t testing.TB) []journal.Record {
	f, err := os.Open("testdata/tour.journal.jsonl")
	require.NoError(t, err)
	defer f.Close()
	var out []journal.Record
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		r, err := journal.Decode([]byte(s.Text()))
		require.NoError(t, err)
		out = append(out, r)
	}
	require.NoError(t, s.Err())
	return out
}

// tape makes records, one 100 ms after the other.
type tape struct {
	t       testing.TB
	records []journal.Record
	seq     uint64
}

func (p *tape) add(typ string, data any) *tape {
	b, err := json.Marshal(data)
	require.NoError(p.t, err)
	p.seq++
	p.records = append(p.records, journal.Record{Version: 1, Seq: p.seq, Time: began.Add(time.Duration(p.seq) * 100 * time.Millisecond), Session: "s1", Type: typ, Data: b})
	return p
}

type object = map[string]any

func (p *tape) from(line object) *tape {
	return p.add(api.RecordRPC, object{"direction": "from_pi", "line": line})
}
func (p *tape) to(line object) *tape {
	return p.add(api.RecordRPC, object{"direction": "to_pi", "client": "c", "line": line})
}
func (p *tape) state(s api.StateRecord) *tape { return p.add(api.RecordState, s) }

func (p *tape) event(e object) *tape {
	return p.from(object{"type": "message_update", "assistantMessageEvent": e})
}

func message(role string, content any, more ...any) object {
	m := object{"role": role, "content": content, "timestamp": 1}
	for k := 0; k+1 < len(more); k += 2 {
		m[more[k].(string)] = more[k+1]
	}
	return m
}

func text(s string) object     { return object{"type": "text", "text": s} }
func thinking(s string) object { return object{"type": "thinking", "thinking": s} }
func toolCall(id, name string, args any) object {
	return object{"type": "toolCall", "id": id, "name": name, "arguments": args}
}

func (p *tape) user(s string) *tape {
	return p.from(object{"type": "message_end", "message": message("user", []any{text(s)}, "timestamp", int(p.seq)+1)})
}

func (p *tape) answer(stop string, content ...any) *tape {
	return p.from(object{"type": "message_end", "message": message("assistant", content, "provider", "demo", "model", "tour", "stopReason", stop, "timestamp", int(p.seq)+1,
		"usage", object{"input": 1200, "output": 340, "cacheRead": 900, "cost": object{"total": 0.0123}})})
}

func (p *tape) run(id, name string, args any, output string, failed bool) *tape {
	p.answer("toolUse", toolCall(id, name, args))
	p.from(object{"type": "tool_execution_start", "toolCallId": id, "toolName": name, "args": args})
	return p.from(object{"type": "tool_execution_end", "toolCallId": id, "toolName": name, "isError": failed, "result": object{"content": []any{text(output)}}})
}

func made(t testing.TB, theme string, width, height int, records []journal.Record) *Transcript {
	tr := New(clock)
	tr.SetStyles(stylesOf(t, theme))
	tr.SetSize(width, height)
	tr.SetSession(api.Session{ID: "s1"})
	tr.Apply(records)
	return tr
}

// settle draws until all code has its colours.
func drawn(tr *Transcript) string {
	for range 50 {
		tr.View()
	}
	return tr.View()
}

var sgr = regexp.MustCompile("\x1b\\[[0-9;:]*m")

// harmless requires that a view has its size, and holds nothing but text and styles.
func harmless(t testing.TB, view string, width, height int) {
	t.Helper()
	lines := strings.Split(view, "\n")
	require.Len(t, lines, height)
	for n, line := range lines {
		bare := sgr.ReplaceAllString(line, "")
		for _, r := range bare {
			if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == 0xfffe {
				t.Fatalf("line %d holds %U: %q", n, r, bare)
			}
		}
		if safe.Width(line) != width {
			t.Fatalf("line %d is %d wide, not %d: %q", n, safe.Width(line), width, bare)
		}
	}
}

func golden(t *testing.T, name, view string) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name+".txt")
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(view+"\n"), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, strings.TrimSuffix(string(want), "\n"), view)
}

func press(tr *Transcript, names ...string) tea.Cmd {
	var cmd tea.Cmd
	for _, n := range names {
		k := tea.Key{}
		switch n {
		case "enter":
			k.Code = tea.KeyEnter
		case "space":
			k.Code, k.Text = tea.KeySpace, " "
		case "pgup":
			k.Code = tea.KeyPgUp
		case "pgdown":
			k.Code = tea.KeyPgDown
		case "up":
			k.Code = tea.KeyUp
		case "down":
			k.Code = tea.KeyDown
		default:
			k.Code, k.Text = []rune(n)[0], n
		}
		cmd = tr.Update(tea.KeyPressMsg(k))
	}
	return cmd
}

func sized(t *testing.T, name string, do func(t *testing.T, tr func(records []journal.Record) *Transcript, golden func(view string))) {
	for _, size := range [][2]int{{60, 12}, {80, 20}, {160, 46}} {
		for _, theme := range []string{"patio-dark", "patio-light"} {
			t.Run(fmt.Sprintf("%dx%d-%s", size[0], size[1], theme), func(t *testing.T) {
				do(t, func(records []journal.Record) *Transcript {
					return made(t, theme, size[0], size[1], records)
				}, func(view string) {
					harmless(t, view, size[0], size[1])
					golden(t, fmt.Sprintf("%s-%dx%d-%s", name, size[0], size[1], theme), view)
				})
			})
		}
	}
}

func TestTour(t *testing.T) {
	sized(t, "tour", func(t *testing.T, tr func([]journal.Record) *Transcript, golden func(string)) {
		r := recording(t)
		end := 0
		for k := range r {
			if strings.Contains(string(r[k].Data), `"agent_settled"`) {
				end = k + 1
				break
			}
		}
		golden(drawn(tr(r[:end])))
	})
}
