package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/sessions"
	"patio/themes"
	"patio/tui/pane"
	"patio/tui/panetest"
	"patio/tui/safe"
	"patio/tui/style"
)

var start = time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)

// fakeHistory is a conversation that is drawn as numbered lines.
type fakeHistory struct {
	width, height      int
	styles             *style.Styles
	lines              []string
	prompts            []string
	steering, followUp []string
	end                bool
	focused            bool
	typing             bool
	needs              bool
	history            []sessions.Turn
	focusedOn          string
	got                []tea.Msg
	records            []journal.Record
}

func (h *fakeHistory) SetSize(w, he int)         { h.width, h.height = w, he }
func (h *fakeHistory) SetStyles(s *style.Styles) { h.styles = s }
func (h *fakeHistory) Update(msg tea.Msg) tea.Cmd {
	h.got = append(h.got, msg)
	return nil
}

func (h *fakeHistory) View() string {
	return safe.Block(strings.Join(h.lines[max(len(h.lines)-h.height, 0):], "\n"), h.width, h.height)
}
func (h *fakeHistory) Keys() []key.Binding             { return nil }
func (h *fakeHistory) Apply(r []journal.Record)        { h.records = append(h.records, r...) }
func (h *fakeHistory) SetSession(api.Session)          {}
func (h *fakeHistory) Tick()                           {}
func (h *fakeHistory) Count() int                      { return len(h.lines) }
func (h *fakeHistory) SetHistory(t []sessions.Turn)    { h.history, h.needs = t, false }
func (h *fakeHistory) NeedsHistory() (time.Time, bool) { return start, h.needs }
func (h *fakeHistory) Prompts() []string               { return h.prompts }
func (h *fakeHistory) Queue() ([]string, []string)     { return h.steering, h.followUp }
func (h *fakeHistory) ScrollToEnd()                    { h.end = true }
func (h *fakeHistory) AtEnd() bool                     { return h.end }
func (h *fakeHistory) SetFocused(on bool)              { h.focused = on }
func (h *fakeHistory) Typing() bool                    { return h.typing }
func (h *fakeHistory) Focus(call string, _ uint64) bool {
	h.focusedOn = call
	return call == "call_1"
}

// fakeHost answers commands as it was told.
type fakeHost struct {
	replies  map[string]string
	commands []string
	prompts  []api.PromptRequest
	err      error // of the next prompt
	asked    int   // for history
}

func (h *fakeHost) Prompt(r api.PromptRequest, done func(api.PromptResponse, error) tea.Msg) tea.Cmd {
	return func() tea.Msg {
		err := h.err
		h.err = nil
		if err == nil {
			h.prompts = append(h.prompts, r)
		}
		return done(api.PromptResponse{}, err)
	}
}

func (h *fakeHost) Command(command any, done func(json.RawMessage, error) tea.Msg) tea.Cmd {
	return func() tea.Msg {
		b, err := json.Marshal(command)
		if err != nil {
			return done(nil, err)
		}
		h.commands = append(h.commands, string(b))
		kind := gjson.GetBytes(b, "type").Str
		reply, ok := h.replies[kind]
		if !ok {
			reply = fmt.Sprintf(`{"type":"response","command":%q,"success":true}`, kind)
		}
		if reply == "gone" {
			return done(nil, errors.New("the supervisor is gone"))
		}
		return done(json.RawMessage(reply), nil)
	}
}

func (h *fakeHost) Records(uint64, int, []string, func([]journal.Record, error) tea.Msg) tea.Cmd {
	return nil
}

func (h *fakeHost) History(_ time.Time, done func([]sessions.Turn, error) tea.Msg) tea.Cmd {
	return func() tea.Msg {
		h.asked++
		return done([]sessions.Turn{{Role: "user"}}, nil)
	}
}
func (h *fakeHost) Processes(func([]api.Process, error) tea.Msg) tea.Cmd { return nil }
func (h *fakeHost) Kill(int, string, func(error) tea.Msg) tea.Cmd        { return nil }

func (h *fakeHost) last() string {
	if len(h.commands) == 0 {
		return ""
	}
	return h.commands[len(h.commands)-1]
}

// bench is a chat with everything around it.
type desk struct {
	t    *testing.T
	c    *Chat
	h    *fakeHost
	tr   *fakeHistory
	now  time.Time
	seq  uint64
	msgs []tea.Msg // that went to the root
}

func session() api.Session {
	return api.Session{
		V: 1, ID: "k3v9x2m1pq", Name: "fix the parser", Phase: api.PhaseReady, Activity: api.ActivityIdle, Created: start, Workspace: "/work/tour",
		Model: api.Model{Provider: "anthropic", ID: "claude-sonnet-4-5", Thinking: "medium", ContextWindow: 200_000},
		Turns: 12, Tokens: api.Tokens{Context: 86_000}, CostUSD: 0.4242, Seq: 100, SessionFile: "/state/pi-sessions/a.jsonl",
	}
}

func newDesk(t *testing.T, o ...func(*api.Session, *Options)) *desk {
	d := &desk{t: t, h: &fakeHost{replies: map[string]string{}}, tr: &fakeHistory{end: true}, now: start, seq: 100}
	d.tr.lines = []string{
		"❯ you", "  The parser drops the last line of a file. Fix it.", "",
		"π Pi", "  I'll look at the reader first.", "  ▸ bash  go test ./parser  ✓ 1.2 s", "  ▸ edit  parser/reader.go  +3 −1", "",
		"  The reader returned io.EOF together with the last bytes, and the caller", "  threw both away. It keeps the bytes now.",
	}
	s := session()
	opts := Options{Now: func() time.Time { return d.now }, Workspace: "/work/tour"}
	for _, f := range o {
		f(&s, &opts)
	}
	d.c = New(d.h, d.tr, opts)
	d.c.SetStyles(panetest.Styles(t, themes.DefaultDark))
	d.c.SetSize(80, 20)
	d.c.SetSession(s)
	return d
}

// run carries commands out as the root would, and gives their messages back.
func (d *desk) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	msg := cmd()
	switch m := msg.(type) {
	case nil:
	case tea.BatchMsg:
		for _, c := range m {
			d.run(c)
		}
	case didMsg, InputsMsg:
		d.run(d.c.Update(m))
	default:
		d.msgs = append(d.msgs, msg)
	}
}

func (d *desk) send(msg tea.Msg) { d.run(d.c.Update(msg)) }

// press presses keys by their names; a text of several letters is typed.
func (d *desk) press(names ...string) {
	d.t.Helper()
	for _, name := range names {
		d.send(panetest.Key(name))
	}
}

func (d *desk) typed(text string) {
	for _, r := range text {
		d.send(panetest.Key(string(r)))
	}
}

// state applies a state record.
func (d *desk) state(st api.StateRecord) {
	d.apply(api.RecordState, st)
}

// says applies a line of Pi's.
func (d *desk) says(line string) {
	d.apply(api.RecordRPC, api.RPCRecord{Direction: api.FromPi, Line: json.RawMessage(line)})
}

func (d *desk) apply(kind string, data any) {
	b, err := json.Marshal(data)
	require.NoError(d.t, err)
	d.seq++
	d.c.Apply([]journal.Record{{Version: 1, Seq: d.seq, Time: d.now, Session: "k3v9x2m1pq", Type: kind, Data: b}})
	d.run(d.c.Wake())
}

func (d *desk) work() {
	d.state(api.StateRecord{Phase: api.PhaseReady, Activity: api.ActivityWorking})
}

func (d *desk) idle() { d.state(api.StateRecord{Phase: api.PhaseReady, Activity: api.ActivityIdle}) }

func (d *desk) ask(q api.Question) {
	q.Asked = d.now
	d.state(api.StateRecord{Phase: api.PhaseReady, Activity: api.ActivityBlocked, Question: &q})
}

// ready lets the time pass in which a question ignores keys.
func (d *desk) ready() { d.now = d.now.Add(time.Second) }

// view is what is drawn, without styling.
func (d *desk) view() string { return panetest.Plain(d.c.View()) }

func (d *desk) safe() {
	d.t.Helper()
	panetest.Screen(d.t, d.c.View(), d.c.width, d.c.height)
}

// golden compares the view at all sizes and themes with files.
func (d *desk) golden(name string) {
	d.t.Helper()
	panetest.Golden(d.t, name, "", func(w, h int, s *style.Styles) string { return panetest.Draw(d.c, w, h, s) })
}

func (d *desk) notice() string {
	for i := len(d.msgs) - 1; i >= 0; i-- {
		switch m := d.msgs[i].(type) {
		case pane.NoticeMsg:
			return m.Text
		case pane.ErrorMsg:
			return m.Err.Error()
		}
	}
	return ""
}

var (
	_ History       = (*fakeHistory)(nil)
	_ pane.Pane     = (*Chat)(nil)
	_ pane.Follower = (*Chat)(nil)
	_ pane.Ticker   = (*Chat)(nil)
	_ pane.Counter  = (*Chat)(nil)
	_ pane.Typist   = (*Chat)(nil)
	_ pane.Cursored = (*Chat)(nil)
	_ pane.Escaper  = (*Chat)(nil)
)
