package timeline

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/tui/safe"
)

// kind is what an event is about, and the lane that it is drawn in.
type kind int

const (
	kindTurn kind = iota
	kindTool
	kindNetwork
	kindProgram
	kindState
	kinds
)

// kindWords are the lanes' names, with the sign of an event in the table.
var kindWords = [kinds]struct{ sign, word, key string }{
	kindTurn: {"◆", "turn", "u"}, kindTool: {"▪", "tool", "o"}, kindNetwork: {"↔", "network", "w"},
	kindProgram: {"$", "program", "p"}, kindState: {"–", "state", "c"},
}

// event is something that took time, or happened at one.
type event struct {
	kind    kind
	seq     uint64 // of the record that began it
	begin   time.Time
	end     time.Time // zero while it goes on; begin when it took no time
	what    string    // safe, one line
	id      string    // of the tool call or the connection
	host    string
	failed  bool // a tool that failed, a connection that was denied
	outcome string
	calls   []string // tool calls that ran then
}

func (e *event) open() bool { return e.end.IsZero() }

// textBytes bounds what is kept of a text.
const textBytes = 160

func short(s string) string { return safe.Fit(s, textBytes) }

// apply takes one record in.
func (t *Timeline) apply(r journal.Record) {
	switch r.Type {
	case api.RecordRPC:
		t.rpc(r)
	case api.RecordEgress:
		t.egress(r)
	case api.RecordExec:
		t.exec(r)
	case api.RecordState:
		t.state(r)
	}
}

func (t *Timeline) rpc(r journal.Record) {
	line := gjson.GetBytes(r.Data, "line")
	if gjson.GetBytes(r.Data, "direction").Str != string(api.FromPi) {
		return
	}
	switch line.Get("type").Str {
	case "agent_start":
		t.begin(event{kind: kindTurn, seq: r.Seq, begin: r.Time, what: "turn", id: turnID})
	case "message_end":
		m := line.Get("message")
		if i, ok := t.running[turnID]; ok && m.Get("role").Str == "user" && t.at(i) != nil {
			t.at(i).what = short("turn: " + firstText(m))
		}
		if m.Get("role").Str == "user" {
			t.prompt = short(firstText(m))
		}
	case "agent_end", "agent_settled":
		t.finish(turnID, r.Time, false, "")
	case "tool_execution_start":
		t.begin(event{kind: kindTool, seq: r.Seq, begin: r.Time, what: short(line.Get("toolName").Str + " " + argument(line.Get("args"))), id: line.Get("toolCallId").Str})
	case "tool_execution_end":
		t.finish(line.Get("toolCallId").Str, r.Time, line.Get("isError").Bool(), "failed")
	case "compaction_start":
		t.begin(event{kind: kindTurn, seq: r.Seq, begin: r.Time, what: "compaction", id: compactionID})
	case "compaction_end":
		t.finish(compactionID, r.Time, false, "")
	}
}

// Ids that no tool call has.
const (
	turnID       = "\x00turn"
	compactionID = "\x00compaction"
)

func firstText(m gjson.Result) string {
	content := m.Get("content")
	if content.Type == gjson.String {
		return content.Str
	}
	for _, b := range content.Array() {
		if b.Get("type").Str == "text" {
			return b.Get("text").Str
		}
	}
	return ""
}

// argument is the one that says most of a tool call.
func argument(args gjson.Result) string {
	for _, name := range []string{"command", "path", "file_path", "pattern", "url", "query"} {
		if v := args.Get(name); v.Type == gjson.String {
			return v.Str
		}
	}
	return ""
}

func (t *Timeline) egress(r journal.Record) {
	var e api.EgressRecord
	if e.UnmarshalJSON(r.Data) != nil {
		return // of another version
	}
	target := e.Host
	if e.Port != 0 {
		target += ":" + fmt.Sprint(e.Port)
	}
	id := "\x00connection " + e.ID
	switch {
	case string(e.Kind) == "end":
		t.finish(id, r.Time, false, fmt.Sprintf("%d B in, %d B out", e.BytesIn, e.BytesOut))
	case string(e.Kind) == "dropped":
		t.begin(event{kind: kindNetwork, seq: r.Seq, begin: r.Time, end: r.Time, what: fmt.Sprintf("%d decisions were too many to record", e.Count), failed: true})
	case e.Verdict.String() == "deny":
		t.begin(event{kind: kindNetwork, seq: r.Seq, begin: r.Time, end: r.Time, what: short(target), host: e.Host, failed: true, outcome: short("denied: " + string(e.Reason)), calls: e.ToolCalls})
	case string(e.Kind) == "connection":
		t.begin(event{kind: kindNetwork, seq: r.Seq, begin: r.Time, what: short(target), host: e.Host, id: id, outcome: "allowed", calls: e.ToolCalls})
	}
}

func (t *Timeline) exec(r journal.Record) {
	argv := gjson.GetBytes(r.Data, "argv")
	var words []string
	for _, a := range argv.Array() {
		words = append(words, a.Str)
	}
	what := short(strings.Join(words, " "))
	id := "\x00program " + what
	if !gjson.GetBytes(r.Data, "exited").Bool() {
		t.begin(event{kind: kindProgram, seq: r.Seq, begin: r.Time, what: what, id: id})
		return
	}
	code := gjson.GetBytes(r.Data, "exit_code").Int()
	t.finish(id, r.Time, code != 0, fmt.Sprintf("exit code %d", code))
}

func (t *Timeline) state(r journal.Record) {
	s := gjson.ParseBytes(r.Data)
	phase := s.Get("phase").Str
	what := phase
	switch {
	case s.Get("question").Exists():
		what = "asks: " + s.Get("question.title").Str
	case s.Get("answered").Exists():
		what = "answered"
	case s.Get("model").Exists() && phase == t.phase:
		what = "model " + s.Get("model.provider").Str + "/" + s.Get("model.id").Str
	case phase == t.phase:
		return // an activity: the turns show it
	}
	if reason := s.Get("end.reason").Str; reason != "" {
		what += ": " + reason
	}
	t.phase = phase
	final := api.Phase(phase).Final()
	if final {
		// Nothing goes on in a session that has ended.
		for id := range t.running {
			t.finish(id, r.Time, false, "cut off")
		}
	}
	t.begin(event{kind: kindState, seq: r.Seq, begin: r.Time, end: r.Time, what: short(what), failed: phase == string(api.PhaseFailed) || phase == string(api.PhaseCrashed)})
}

// maxEvents bounds what is kept; the oldest go first.
const maxEvents = 50_000

// begin adds an event.
func (t *Timeline) begin(e event) {
	if e.kind == kindTurn && e.id == turnID && t.prompt != "" {
		e.what = "turn: " + t.prompt
	}
	t.events = append(t.events, e)
	if e.id != "" && e.open() {
		t.running[e.id] = t.dropped + len(t.events) - 1
	}
	if len(t.events) > maxEvents+maxEvents/8 {
		n := len(t.events) - maxEvents
		t.events = append([]event(nil), t.events[n:]...)
		t.dropped += n
	}
	t.changed = true
}

// at is the event of a number that counts the dropped ones too, nil for one of those.
func (t *Timeline) at(n int) *event {
	if n -= t.dropped; n >= 0 && n < len(t.events) {
		return &t.events[n]
	}
	return nil
}

// finish ends what runs by this id.
func (t *Timeline) finish(id string, when time.Time, failed bool, outcome string) {
	n, ok := t.running[id]
	if !ok {
		return
	}
	delete(t.running, id)
	if e := t.at(n); e != nil {
		e.end, e.failed = when, failed
		if outcome != "" && (failed || e.kind != kindTool) {
			e.outcome = outcome
		}
	}
	t.changed = true
}
