package chat

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"patio/engine/api"
	"patio/tui/panetest"
)

const (
	someModels = `{"type":"response","command":"get_available_models","success":true,"data":{"models":[
		{"id":"claude-opus-4-5","name":"Claude Opus 4.5","provider":"anthropic","reasoning":true,"input":["text","image"],"contextWindow":200000},
		{"id":"claude-sonnet-4-5","name":"Claude Sonnet 4.5","provider":"anthropic","reasoning":true,"input":["text","image"],"contextWindow":200000},
		{"id":"gpt-5.2","name":"GPT-5.2","provider":"openai","reasoning":true,"input":["text","image"],"contextWindow":400000},
		{"id":"echo","name":"Demo: echo (scripted, no AI)","provider":"demo","reasoning":false,"input":["text"],"contextWindow":1000000}]}}`
	someCommands = `{"type":"response","command":"get_commands","success":true,"data":{"commands":[
		{"name":"review","description":"Review the working tree","source":"prompt"},
		{"name":"mcp","description":"Show MCP server status","source":"extension"},
		{"name":"model","description":"not ours","source":"extension"}]}}`
	someEntries = `{"type":"response","command":"get_entries","success":true,"data":{"leafId":"a4","entries":[
		{"type":"model_change","id":"m0","parentId":null,"timestamp":"2026-05-04T09:00:00Z"},
		{"type":"message","id":"u1","parentId":"m0","timestamp":"2026-05-04T09:00:01Z","message":{"role":"user","content":[{"type":"text","text":"The parser drops the last line of a file. Fix it."}]}},
		{"type":"message","id":"a1","parentId":"u1","timestamp":"2026-05-04T09:00:09Z","message":{"role":"assistant","content":[{"type":"toolCall","name":"bash"}]}},
		{"type":"message","id":"r1","parentId":"a1","timestamp":"2026-05-04T09:00:10Z","message":{"role":"toolResult","content":[]}},
		{"type":"message","id":"a2","parentId":"r1","timestamp":"2026-05-04T09:00:12Z","message":{"role":"assistant","content":[{"type":"text","text":"The reader is at fault."}]}},
		{"type":"message","id":"u2","parentId":"a2","timestamp":"2026-05-04T09:10:00Z","message":{"role":"user","content":"Rewrite it without bufio"}},
		{"type":"message","id":"a3","parentId":"u2","timestamp":"2026-05-04T09:11:00Z","message":{"role":"assistant","content":[{"type":"text","text":"That makes it slower."}]}},
		{"type":"message","id":"u3","parentId":"a2","timestamp":"2026-05-03T09:20:00Z","message":{"role":"user","content":[{"type":"text","text":"Keep bufio, test the edge"}]}},
		{"type":"message","id":"a4","parentId":"u3","timestamp":"2026-05-04T09:21:00Z","message":{"role":"assistant","content":[{"type":"text","text":"Done, with three cases."}]}}]}}`
)

func TestGolden(t *testing.T) {
	for name, make := range map[string]func(d *desk){
		"idle": func(*desk) {},
		"typing": func(d *desk) {
			d.typed("Now do the same for the writer, and add a test")
			d.press("ctrl+j")
			d.typed("with a file of 0, 1 and 2 lines.")
		},
		"working": func(d *desk) {
			d.work()
			d.now = d.now.Add(83 * time.Second)
			d.tr.steering, d.tr.followUp = []string{"leave the old tests alone\nreally"}, []string{"then commit it"}
			d.typed("and say")
		},
		"aborting": func(d *desk) {
			d.h.replies["abort"] = "gone"
			d.work()
			d.c.Update(panetest.Key("ctrl+x"))
		},
		"paste": func(d *desk) {
			d.typed("Why does this fail? ")
			d.send(tea.PasteMsg{Content: strings.Repeat("panic: oh\n", 240)})
			d.typed(" and\tthis\u202e")
		},
		"commands": func(d *desk) {
			d.h.replies["get_commands"] = someCommands
			d.typed("/m")
		},
		"model": func(d *desk) {
			d.h.replies["get_available_models"] = someModels
			d.press("ctrl+l")
		},
		"model-filtered": func(d *desk) {
			d.h.replies["get_available_models"] = someModels
			d.h.replies["set_model"] = `{"type":"response","command":"set_model","success":false,"error":"Model not found: openai/gpt-5.2"}`
			d.press("ctrl+l")
			d.typed("gpt")
			d.press("enter")
		},
		"tree": func(d *desk) {
			d.h.replies["get_entries"] = someEntries
			d.press("ctrl+r")
		},
		"name":    func(d *desk) { d.typed("/name"); d.press("enter") },
		"loading": func(d *desk) { d.c.Update(panetest.Key("ctrl+t")) },
		"select": func(d *desk) {
			d.work()
			d.ask(api.Question{ID: "q1", Method: "select", Title: "Which database?", Options: []string{"PostgreSQL", "SQLite", "none"}, Raw: json.RawMessage(`{"timeout":60000}`)})
			d.ask(api.Question{ID: "q2", Method: "confirm", Title: "Sure?"})
			d.now = d.now.Add(12 * time.Second)
		},
		"confirm": func(d *desk) {
			d.ask(api.Question{ID: "q1", Method: "confirm", Title: "Delete the build directory?", Message: "It has 1,204 files. They can be made again, but that takes some minutes on this machine, for the cache is in there too."})
			d.ready()
		},
		"confirm-unfocused": func(d *desk) {
			d.typed("wait")
			d.ask(api.Question{ID: "q1", Method: "confirm", Title: "Delete the build directory?"})
		},
		"input": func(d *desk) {
			d.ask(api.Question{ID: "q1", Method: "input", Title: "Name of the branch", Raw: json.RawMessage(`{"placeholder":"feature/…"}`)})
		},
		"editor": func(d *desk) {
			d.ask(api.Question{ID: "q1", Method: "editor", Title: "Commit message", Raw: json.RawMessage(`{"prefill":"parser: keep the last line\n\nThe reader threw it away."}`)})
		},
		"answered": func(d *desk) {
			d.ask(api.Question{ID: "q1", Method: "input", Title: "Name"})
			d.state(api.StateRecord{Phase: api.PhaseReady, Activity: api.ActivityWorking, Answered: "q1"})
		},
		"starting": func(d *desk) { d.state(api.StateRecord{Phase: api.PhaseStarting}) },
		"ended": func(d *desk) {
			d.typed("one more thing")
			d.state(api.StateRecord{Phase: api.PhaseEnded, End: &api.End{Reason: "stopped by the user"}})
		},
		"crashed": func(d *desk) {
			d.state(api.StateRecord{Phase: api.PhaseCrashed, Error: &api.Error{Code: api.CodeInternal, Message: "its supervisor was killed", Hint: "`patio logs` has its journal"}})
		},
		"failed": func(d *desk) {
			d.state(api.StateRecord{
				Phase: api.PhaseFailed, Error: &api.Error{Code: api.CodeCredentials, Message: "Pi has no key for anthropic", Hint: "set ANTHROPIC_API_KEY, or run `patio new --model demo/tour`"},
				End: &api.End{Reason: "Pi exited", ExitCode: 1, Stderr: "Error: No API key for provider: anthropic\n  at resolve (auth.js:62)\n"},
			})
		},
		"scrolled": func(d *desk) { d.tr.end = false; d.press("esc") },
		"extension": func(d *desk) {
			d.says(`{"type":"extension_ui_request","id":"1","method":"setStatus","statusKey":"k","statusText":"plan mode"}`)
			d.says(`{"type":"extension_ui_request","id":"2","method":"setWidget","widgetKey":"w","widgetLines":["☐ read the parser","☐ write a test"]}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			make(d)
			d.golden(name)
		})
	}
	t.Run("read-only", func(t *testing.T) {
		d := newDesk(t, func(_ *api.Session, o *Options) { o.ReadOnly = true })
		d.ask(api.Question{ID: "q1", Method: "confirm", Title: "Sure?"})
		d.golden("read-only")
	})
}
