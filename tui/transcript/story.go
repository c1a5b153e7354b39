package transcript

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"patio/engine/api"
	"patio/engine/journal"
)

// story is what the records told so far.
type story struct {
	first    time.Time // of the first record
	needs    bool      // the conversation began before it
	given    bool      // SetHistory was called, or Pi told all itself
	phase    api.Phase
	started  bool // the session was ready once
	provider string
	modelID  string
	thinking string

	working            bool
	steering, followUp []string

	messages  int
	known     []heard // of the conversation's messages
	calls     map[string]*item
	blocks    map[int64]*item // of the message that is being streamed
	answering bool            // Pi's name stands above what it says now
	life      *item           // the line about the session that changes still
	retry     *item
	compact   *item
	older     *item
	spent     spent
}

// heard tells a message from others.
type heard struct {
	role string
	at   int64
}

// spent is what an answer took so far.
type spent struct {
	began                          time.Time
	input, output, cached, written int64
	cost                           float64
	requests                       int
}

// reset forgets the conversation, not the session.
func (s *story) reset() {
	s.messages, s.known = 0, nil
	s.calls, s.blocks = map[string]*item{}, map[int64]*item{}
	s.answering, s.life, s.retry, s.compact, s.older = false, nil, nil, nil, nil
	s.spent = spent{}
}

// Apply implements pane.Follower.
func (t *Transcript) Apply(records []journal.Record) {
	for _, r := range records {
		if t.first.IsZero() {
			t.first = r.Time
		}
		switch r.Type {
		case api.RecordRPC:
			t.applyRPC(r)
		case api.RecordState:
			var s api.StateRecord
			if json.Unmarshal(r.Data, &s) == nil {
				t.applyState(r, s)
			}
		}
	}
}

// NeedsHistory says from before when the conversation lacks what Pi's session file has.
func (t *Transcript) NeedsHistory() (before time.Time, needed bool) {
	return t.first, t.needs && !t.given
}

func (t *Transcript) applyRPC(r journal.Record) {
	head := gjson.GetManyBytes(r.Data, "direction", "line.type")
	kind := head[1].Str
	if head[0].Str == string(api.ToPi) {
		if kind == "bash" {
			t.beginBash(r, gjson.GetBytes(r.Data, "line"))
		}
		return
	}
	switch kind {
	case "message_update":
		t.update(r, gjson.GetBytes(r.Data, "line.assistantMessageEvent"))
	case "tool_execution_update":
		if i := t.calls[gjson.GetBytes(r.Data, "line.toolCallId").Str]; i != nil && i.call.state == callRunning {
			i.call.partial = r.Data // it is read when someone looks
			i.changed()
		}
	case "turn_start", "turn_end", "entry_appended", "":
		// All that a turn's end has was told before.
	case "agent_start":
		t.working = true
		if t.spent.began.IsZero() {
			t.spent.began = r.Time
		}
	case "agent_end":
		if !gjson.GetBytes(r.Data, "line.willRetry").Bool() {
			t.idle(r.Time)
		}
	case "agent_settled":
		t.idle(r.Time)
	case "message_start":
		if gjson.GetBytes(r.Data, "line.message.role").Str == "assistant" {
			t.blocks = map[int64]*item{}
			if t.spent.began.IsZero() {
				t.spent.began = r.Time
			}
		}
	case "message_end":
		t.message(gjson.GetBytes(r.Data, "line.message"), r.Seq, r.Time)
	case "tool_execution_start", "tool_execution_end":
		t.tool(r, kind, gjson.GetBytes(r.Data, "line"))
	default:
		t.event(r, kind, gjson.GetBytes(r.Data, "line"))
	}
}

// idle says that Pi has nothing more to do.
func (t *Transcript) idle(at time.Time) {
	t.working = false
	t.settle(at)
	t.spent = spent{}
}

// settle ends what still grows: nothing more comes of it.
func (t *Transcript) settle(at time.Time) {
	for _, i := range t.blocks {
		t.grown(i, at)
	}
	t.blocks = map[int64]*item{}
	for id, i := range t.calls {
		if i.call.running() && !i.call.user {
			i.call.end(callStopped, at)
			i.changed()
		}
		if !i.call.running() {
			delete(t.calls, id) // Focus finds it in items
		}
	}
}

func (t *Transcript) grown(i *item, at time.Time) {
	if !i.growing {
		return
	}
	i.growing, i.until = false, at
	if i.body != nil {
		before := i.body.kept
		i.body.end()
		t.bytes += i.body.kept - before
		for _, p := range i.body.parts {
			if p.seg.rough || p == i.body.parts[len(i.body.parts)-1] {
				p.seg.stale()
			}
		}
	}
	i.changed()
}

// say appends what Pi says, below its name.
func (t *Transcript) say(i *item, model string) *item {
	if !t.answering {
		i.speaker = "Pi"
		if model != "" {
			i.speaker += "\n" + model
		}
		t.answering = true
	}
	return t.push(i)
}

// update takes a piece of the message that is being streamed.
func (t *Transcript) update(r journal.Record, e gjson.Result) {
	index := e.Get("contentIndex").Int()
	i := t.blocks[index]
	switch e.Get("type").Str {
	case "text_delta", "thinking_delta":
		delta := e.Get("delta").Str
		want := kindText
		if e.Get("type").Str == "thinking_delta" {
			want = kindThinking
		}
		if i == nil || i.kind != want {
			if delta == "" {
				return
			}
			i = t.say(&item{kind: want, seq: r.Seq, at: r.Time, growing: true, body: newFlow(want == kindText)}, t.modelName())
			t.blocks[index] = i
		}
		before := i.body.kept
		i.body.add(delta)
		t.bytes += i.body.kept - before
		i.changed()
	case "text_end", "thinking_end":
		if i != nil {
			t.grown(i, r.Time)
		}
	case "toolcall_start":
		i = t.say(&item{kind: kindCall, seq: r.Seq, at: r.Time, call: &call{}}, t.modelName())
		t.blocks[index] = i
	case "toolcall_delta":
		if i != nil && i.call != nil {
			i.call.written += len(e.Get("delta").Str)
		}
	case "toolcall_end":
		if i == nil || i.call == nil {
			return
		}
		t.fillCall(i, e.Get("toolCall"))
	}
}

func (t *Transcript) modelName() string {
	if t.modelID == "" {
		return ""
	}
	return strings.TrimPrefix(t.provider+"/"+t.modelID, "/")
}

// fillCall takes a call as the model wrote it.
func (t *Transcript) fillCall(i *item, c gjson.Result) {
	if i.call.state != callWritten {
		return
	}
	before := i.weight()
	i.call.id, i.call.name = bounded(c.Get("id").Str, 200), bounded(c.Get("name").Str, 200)
	i.call.setArgs(c.Get("arguments"))
	i.call.state = callWaiting
	if i.call.id != "" {
		t.calls[i.call.id] = i
	}
	t.bytes += i.weight() - before
	i.changed()
}

// tool takes the beginning or the end of a call.
func (t *Transcript) tool(r journal.Record, kind string, line gjson.Result) {
	id := bounded(line.Get("toolCallId").Str, 200)
	i := t.calls[id]
	if i == nil {
		i = t.say(&item{kind: kindCall, seq: r.Seq, at: r.Time, call: &call{id: id, name: bounded(line.Get("toolName").Str, 200)}}, t.modelName())
		t.calls[id] = i
	}
	before := i.weight()
	if kind == "tool_execution_start" {
		i.seq = r.Seq
		i.call.setArgs(line.Get("args"))
		i.call.state, i.call.began = callRunning, r.Time
	} else {
		i.call.partial = nil
		i.call.setResult(line.Get("result"))
		state := callDone
		if line.Get("isError").Bool() {
			state = callFailed
		}
		i.call.end(state, r.Time)
	}
	t.bytes += i.weight() - before
	i.changed()
}

// beginBash is a command that the user runs.
func (t *Transcript) beginBash(r journal.Record, line gjson.Result) {
	t.answering = false
	id := "bash:" + bounded(line.Get("id").Str, 200)
	i := t.push(&item{kind: kindCall, seq: r.Seq, at: r.Time,
		call: &call{id: id, name: "! bash", main: bounded(line.Get("command").Str, maxArgs), user: true, state: callRunning, began: r.Time}})
	t.calls[id] = i
}

func (t *Transcript) endBash(at time.Time, i *item, line gjson.Result) {
	before := i.weight()
	state := callDone
	if line.Get("success").Bool() {
		d := line.Get("data")
		i.call.setOutput(d.Get("output").Str)
		switch code := d.Get("exitCode"); {
		case d.Get("cancelled").Bool():
			state = callStopped
		case code.Int() != 0:
			state, i.call.exit = callFailed, "exit code "+bounded(code.Raw, 20)
		}
	} else {
		state = callFailed
		i.call.setOutput(line.Get("error").Str)
	}
	i.call.end(state, at)
	delete(t.calls, i.call.id)
	t.bytes += i.weight() - before
	i.changed()
}
