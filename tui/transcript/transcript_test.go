package transcript

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/tui/pane"
	"patio/tui/panetest"
	"patio/tui/style"
)

var (
	_ pane.Pane     = (*Transcript)(nil)
	_ pane.Follower = (*Transcript)(nil)
	_ pane.Ticker   = (*Transcript)(nil)
	_ pane.Counter  = (*Transcript)(nil)
)

var (
	began = time.Date(2026, 12, 1, 9, 30, 0, 0, time.UTC)
	clock = func() time.Time { return began.Add(time.Hour) }
)

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
	tr.SetStyles(panetest.Styles(t, theme))
	tr.SetSize(width, height)
	tr.SetSession(api.Session{ID: "s1"})
	tr.Apply(records)
	return tr
}

// drawn draws until all code has its colours.
func drawn(tr *Transcript) string {
	for range 50 {
		tr.View()
	}
	return tr.View()
}

// sized compares a conversation with its golden files. How it is made is asked for each size.
func sized(t *testing.T, name string, show func(tr func(records []journal.Record) *Transcript) *Transcript) {
	t.Helper()
	panetest.Golden(t, name, "\n", func(w, h int, s *style.Styles) string {
		return drawn(show(func(records []journal.Record) *Transcript { return made(t, s.Palette.Name, w, h, records) }))
	})
}

func TestTour(t *testing.T) {
	sized(t, "tour", func(tr func([]journal.Record) *Transcript) *Transcript {
		r := panetest.Records(t, "testdata/tour.journal.jsonl")
		end := 0
		for k := range r {
			if strings.Contains(string(r[k].Data), `"agent_settled"`) {
				end = k + 1
				break
			}
		}
		return tr(r[:end])
	})
}
