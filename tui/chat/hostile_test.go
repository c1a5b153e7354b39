package chat

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/themes"
	"patio/tui/panetest"
)

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func TestHostileStrings(t *testing.T) {
	places := map[string]func(d *desk, s string){
		"question": func(d *desk, s string) {
			d.ask(api.Question{ID: "q1", Method: "select", Title: s, Message: s, Options: []string{s, "b"}, Raw: json.RawMessage(`{}`)})
		},
		"many options": func(d *desk, s string) {
			d.ask(api.Question{ID: "q1", Method: "select", Title: s, Options: strings.Split(strings.Repeat(clip(s, 1000)+"\x00\n\x00", 12), "\x00\n\x00")})
			d.ready()
			d.typed("a")
			d.press("backspace")
		},
		"input": func(d *desk, s string) {
			d.ask(api.Question{ID: "q1", Method: "input", Title: s, Raw: json.RawMessage(`{"placeholder":` + quote(s) + `}`)})
		},
		"prefill": func(d *desk, s string) {
			d.ask(api.Question{ID: "q1", Method: "editor", Title: "t", Raw: json.RawMessage(`{"prefill":` + quote(s) + `}`)})
		},
		"model":   func(d *desk, s string) { d.c.s.Model = api.Model{Provider: s, ID: s, Thinking: s, ContextWindow: 1} },
		"session": func(d *desk, s string) { d.c.s.Name = s; d.typed("/name"); d.press("enter") },
		"models": func(d *desk, s string) {
			d.h.replies["get_available_models"] = `{"success":true,"data":{"models":[{"id":` + quote(s) + `,"provider":` + quote(s) + `,"name":` + quote(s) + `,"contextWindow":-5}]}}`
			d.press("ctrl+l")
			d.typed("a")
			d.press("enter")
		},
		"levels": func(d *desk, s string) {
			d.h.replies["get_available_thinking_levels"] = `{"success":true,"data":{"levels":[` + quote(s) + `]}}`
			d.press("ctrl+t")
		},
		"refusal": func(d *desk, s string) {
			d.h.replies["get_available_thinking_levels"] = `{"success":false,"command":` + quote(s) + `,"error":` + quote(s) + `}`
			d.press("ctrl+t")
		},
		"commands": func(d *desk, s string) {
			d.h.replies["get_commands"] = `{"success":true,"data":{"commands":[{"name":"good","description":` + quote(s) + `,"source":` + quote(s) + `},{"name":` + quote(s) + `}]}}`
			d.typed("/go")
		},
		"tree": func(d *desk, s string) {
			d.h.replies["get_entries"] = `{"success":true,"data":{"leafId":"a","entries":[{"type":"message","id":"a","timestamp":` + quote(s) + `,"message":{"role":"user","content":` + quote(s) +
				`}},{"type":"message","id":"b","parentId":"a","message":{"role":"assistant","content":[{"type":"toolCall","name":` + quote(s) + `}]}}]}}`
			d.press("ctrl+r")
		},
		"recall": func(d *desk, s string) { d.tr.prompts = []string{s}; d.press("up") },
		"queue":  func(d *desk, s string) { d.tr.steering, d.tr.followUp = []string{s}, []string{s, s, s}; d.work() },
		"reason": func(d *desk, s string) {
			d.ask(api.Question{ID: "q1", Method: "input", Title: "t"})
			d.state(api.StateRecord{Phase: api.PhaseReady, Activity: api.ActivityWorking, Answered: "q1", Reason: s})
		},
		"end": func(d *desk, s string) {
			d.state(api.StateRecord{Phase: api.PhaseEnded, End: &api.End{Reason: s, ExitCode: 1, Signal: s, Stderr: s}, Error: &api.Error{Message: s, Hint: s}})
		},
		"failure": func(d *desk, s string) {
			d.state(api.StateRecord{Phase: api.PhaseFailed, End: &api.End{Reason: s, ExitCode: 1, Stderr: s}, Error: &api.Error{Message: s, Hint: s}})
		},
		"paste": func(d *desk, s string) { d.send(tea.PasteMsg{Content: s}); d.press("left", "left"); d.typed("z") },
		"paste, opened": func(d *desk, s string) {
			d.send(tea.PasteMsg{Content: strings.Repeat("\n", pasteLines) + clip(s, 4000)})
			d.press("alt+o", "home", "ctrl+k", "ctrl+w")
		},
		"typed":   func(d *desk, s string) { d.typed(clip(s, 400)) },
		"filter":  func(d *desk, s string) { d.press("ctrl+l"); d.typed(clip(s, 400)); d.send(tea.PasteMsg{Content: s}) },
		"picture": func(d *desk, s string) { d.c.ed.addChip(&chip{label: (&picture{name: clip(s, 255)}).label()}) },
		"editor text": func(d *desk, s string) {
			d.says(`{"type":"extension_ui_request","method":"set_editor_text","text":` + quote(s) + `}`)
		},
		"status text": func(d *desk, s string) {
			d.says(`{"type":"extension_ui_request","method":"setStatus","statusKey":` + quote(s) + `,"statusText":` + quote(s) + `}`)
		},
		"widget lines": func(d *desk, s string) {
			d.says(`{"type":"extension_ui_request","method":"setWidget","widgetKey":"k","widgetLines":[` + quote(s) + `,5]}`)
		},
	}
	for place, put := range places {
		t.Run(place, func(t *testing.T) {
			for name, s := range panetest.Hostile(1 << 20) {
				d := newDesk(t)
				put(d, s)
				for _, size := range [][2]int{{80, 20}, {60, 12}, {160, 46}} {
					d.c.SetSize(size[0], size[1])
					require.NotPanics(t, d.safe, name)
				}
			}
		})
	}
}

// A line of 10 MB costs no more than its beginning where it is drawn.
func TestHugeStrings(t *testing.T) {
	huge := strings.Repeat("x\x1b[31m", 10<<20/6)
	d := newDesk(t)
	d.tr.prompts = []string{huge}
	d.send(tea.PasteMsg{Content: huge})
	d.safe()
	d.press("up")
	d.safe()
	d.c.ed.reset()
	d.c.s.Questions = []api.Question{{ID: "q", Method: "select", Title: huge, Message: huge, Options: []string{huge}}}
	d.c.s.Model.ID, d.c.s.Name, d.c.note = huge, huge, huge
	d.c.changed("")
	d.ready()
	d.safe()
	d.c.s.Phase, d.c.s.End = api.PhaseFailed, &api.End{Reason: huge, Stderr: huge, ExitCode: 1}
	d.c.s.Error = &api.Error{Message: huge, Hint: huge}
	d.c.changed("")
	d.safe()
	start := time.Now()
	for range 10 {
		d.c.arrange()
		d.c.View()
	}
	require.Less(t, time.Since(start), 2*time.Second)
}

func TestEverySize(t *testing.T) {
	states := map[string]func(d *desk){
		"idle": func(*desk) {},
		"much": func(d *desk) {
			d.work()
			d.tr.steering = []string{"a", "b", "c", "d"}
			d.tr.end = false
			d.c.tell("a note")
			d.send(tea.PasteMsg{Content: strings.Repeat("word ", 300)})
			d.typed(strings.Repeat("long text 漢字 ", 40))
		},
		"select": func(d *desk) {
			d.ask(api.Question{ID: "1", Method: "select", Title: strings.Repeat("why ", 100), Options: []string{"a", "b"}})
		},
		"editor": func(d *desk) {
			d.ask(api.Question{ID: "1", Method: "editor", Title: "t", Raw: json.RawMessage(`{"prefill":"a\nb\nc\nd\ne\nf\ng\nh"}`)})
		},
		"picker": func(d *desk) { d.h.replies["get_available_models"] = someModels; d.press("ctrl+l") },
		"tree":   func(d *desk) { d.h.replies["get_entries"] = someEntries; d.press("ctrl+r") },
		"name":   func(d *desk) { d.typed("/name"); d.press("enter") },
		"slash":  func(d *desk) { d.typed("/") },
		"crashed": func(d *desk) {
			d.state(api.StateRecord{Phase: api.PhaseCrashed, Error: &api.Error{Message: strings.Repeat("m ", 300), Hint: strings.Repeat("h ", 300)}})
		},
	}
	for name, put := range states {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			put(d)
			for w, h := range panetest.Sizes(9, 7) {
				d.c.SetSize(w, h)
				d.safe()
				if cur := d.c.Cursor(); cur != nil {
					require.True(t, cur.X >= 0 && cur.X < w && cur.Y >= 0 && cur.Y < h, "%dx%d %v", w, h, cur)
				}
			}
			for _, size := range [][2]int{{1, 1}, {3, 2}, {2, 60}, {200, 1}, {0, 0}} {
				d.c.SetSize(size[0], size[1])
				require.NotPanics(t, func() { d.c.View() })
			}
		})
	}
}

// Keys that the root keeps must not be needed while letters aren't text.
func TestKeys(t *testing.T) {
	reserved := []string{"ctrl+c", "ctrl+p", ":", "?", "q", "[", "]", "shift+tab", "t", "m", "n", "N", "D", "I", "x", "s", "a", "ctrl+d", "ctrl+]"}
	check := func(d *desk) {
		t.Helper()
		panetest.Helped(t, d.c)
		if d.c.Typing() {
			return
		}
		for _, k := range d.c.Keys() {
			for _, name := range k.Keys() {
				require.NotContains(t, reserved, name)
			}
		}
	}
	help := func(d *desk) string {
		var b strings.Builder
		for _, k := range d.c.Keys() {
			b.WriteString(k.Help().Key + " " + k.Help().Desc + ", ")
		}
		return b.String()
	}
	d := newDesk(t)
	check(d)
	require.Contains(t, help(d), "enter send, ")
	d.work()
	require.Contains(t, help(d), "enter steer, ctrl+f say it next, ctrl+x abort, ")
	check(d)
	d.send(tea.PasteMsg{Content: strings.Repeat("x\n", 20)})
	require.Contains(t, help(d), "alt+o open")
	d.press("esc")
	require.Contains(t, help(d), "i write, ctrl+x abort, ")
	check(d)
	d.press("ctrl+l")
	require.Contains(t, help(d), "enter choose, esc close, ")
	check(d)
	d.press("esc", "i")
	d.c.ed.reset()
	d.typed("/")
	require.Contains(t, help(d), "tab complete")
	check(d)
	d.press("backspace")
	for _, method := range []string{"select", "confirm", "input", "editor"} {
		d.ask(api.Question{ID: method, Method: method, Title: "t", Options: []string{"a"}})
		d.c.turned = len(d.c.s.Questions) - 1
		require.Contains(t, help(d), "esc cancel the question", method)
		check(d)
	}
	require.Contains(t, help(d), "ctrl+n next question")
	d.state(api.StateRecord{Phase: api.PhaseEnded})
	require.Contains(t, help(d), "R resume, ")
	check(d)
	free := newDesk(t)
	free.typed("/name")
	free.press("enter")
	require.Equal(t, "enter choose, esc close, ", help(free))
	many := newDesk(t)
	many.ask(api.Question{ID: "q", Method: "select", Options: strings.Split("abcdefghijkl", "")})
	require.Contains(t, help(many), "filter")
	starting := newDesk(t, func(s *api.Session, _ *Options) { s.Phase = api.PhaseStarting })
	require.NotContains(t, help(starting), "send")
}

func FuzzEditor(f *testing.F) {
	for _, s := range panetest.Hostile(1 << 20) {
		f.Add(clip(s, 3000), "x", 3)
	}
	f.Add("a\tb", "\r\n", 1)
	f.Fuzz(func(t *testing.T, text, more string, moves int) {
		e := newEditor("> ")
		e.setStyles(panetest.Styles(t, themes.DefaultDark))
		e.setSize(30, 5)
		clean := func(s string) string {
			var b strings.Builder
			for _, r := range s {
				b.WriteRune(r) // U+FFFD for each byte that is none
			}
			return strings.NewReplacer("\x00", "", "\x1b", "", "\r\n", "\n", "\r", "\n").Replace(b.String())
		}
		e.insert(text)
		require.Equal(t, clean(text), e.text())
		e.paste(strings.Repeat("p\n", 12))
		e.insert(more)
		for range moves % 20 {
			e.key(panetest.Key("left"))
		}
		e.key(panetest.Key("backspace"))
		e.insert(more)
		e.key(panetest.Key("ctrl+w"))
		panetest.Screen(t, e.view(30), 30, e.height())
		require.NotContains(t, strings.Map(func(r rune) rune {
			if isStand(r) {
				return '#'
			}
			return 'x'
		}, e.view(30)), "#")
		require.True(t, utf8.ValidString(e.text()))
		for _, r := range e.area.Value() {
			if s, ok := e.stands.of(r); ok && s.chip != nil {
				require.Contains(t, e.text(), s.chip.text)
			}
		}
	})
}

func FuzzReplies(f *testing.F) {
	f.Add(someModels)
	f.Add(someCommands)
	f.Add(someEntries)
	f.Add(`{"success":true,"data":{"messages":[{"entryId":5}]}}`)
	f.Fuzz(func(t *testing.T, reply string) {
		d := newDesk(t)
		for _, kind := range []string{"get_available_models", "get_available_thinking_levels", "get_entries", "get_fork_messages", "get_commands"} {
			d.h.replies[kind] = reply
		}
		for _, keys := range [][]string{{"ctrl+l", "enter", "esc"}, {"ctrl+t", "enter", "esc"}, {"ctrl+r", "up", "enter", "esc", "esc"}} {
			d.press(keys...)
			d.safe()
		}
		d.c.picker = nil
		d.c.toEditor()
		d.c.ed.reset()
		d.typed("/fork")
		d.safe()
		d.press("enter")
		d.safe()
	})
}

func FuzzRecords(f *testing.F) {
	f.Add(`{"phase":"ready","activity":"blocked","question":{"id":"q","method":"select","options":["a"],"raw":{"timeout":5}}}`, `{"type":"extension_ui_request","method":"setWidget","widgetLines":[1,"a"]}`)
	f.Fuzz(func(t *testing.T, state, line string) {
		d := newDesk(t)
		d.c.Apply([]journal.Record{
			{Seq: 101, Time: start, Type: api.RecordState, Data: json.RawMessage(state)},
			{Seq: 102, Time: start, Type: api.RecordRPC, Data: json.RawMessage(`{"direction":"from_pi","line":` + line + `}`)},
		})
		d.ready()
		d.safe()
		d.press("down", "enter")
		d.safe()
	})
}

// A flood of deltas, and a draft of the largest size that is edited here.
func BenchmarkFrame(b *testing.B) {
	d := newDesk(&testing.T{})
	d.c.SetSize(160, 46)
	line := `{"direction":"from_pi","line":{"type":"message_update","usage":{},"assistantMessageEvent":{"type":"text_delta","delta":"word"}}}`
	var records []journal.Record
	for i := range 330 { // of one frame, at 10,000 a second
		records = append(records, journal.Record{Seq: uint64(200 + i), Type: api.RecordRPC, Data: json.RawMessage(line)})
	}
	d.tr.records = nil
	for b.Loop() {
		d.c.Apply(records)
		d.tr.records = d.tr.records[:0]
		_ = d.c.View()
	}
}

func BenchmarkTyping(b *testing.B) {
	d := newDesk(&testing.T{})
	d.c.SetSize(160, 46)
	d.c.ed.set(strings.Repeat("a line of the longest draft\n", inlineBytes/28))
	key := tea.KeyPressMsg{Code: 'x', Text: "x"}
	for b.Loop() {
		d.c.Update(key)
		_ = d.c.View()
		d.c.Update(panetest.Key("backspace"))
	}
}

func BenchmarkTree(b *testing.B) {
	var s strings.Builder
	s.WriteString(`{"leafId":"e9999","entries":[`)
	for i := range 10_000 {
		if i > 0 {
			s.WriteByte(',')
		}
		fmt.Fprintf(&s, `{"type":"message","id":"e%d","parentId":"e%d","message":{"role":"user","content":"%s"}}`, i, i-1, strings.Repeat("x", 1000))
	}
	s.WriteString(`]}`)
	data := gjson.Parse(s.String())
	for b.Loop() {
		readTree(data).items(start)
	}
}
