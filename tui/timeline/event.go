package timeline

import (
	"bytes"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/tui/figure"
)

// kind is what an event is about, and the lane that it is drawn in.
type kind uint8

const (
	kindTurn kind = iota
	kindTool
	kindNetwork
	kindProgram
	kindState
	kinds
)

// event is something that took time, or happened at one.
type event struct {
	seq, endSeq uint64 // of the records that began and ended it
	begin, end  int64  // nanoseconds; end is 0 while it goes on
	what        string
	outcome     string
	call        string // the tool call that it is, or that ran then
	host        string
	kind        kind
	row         uint8 // in its lane, so that what goes on at the same time is told apart
	point       bool  // it took no time
	failed      bool  // a tool or a turn that failed, a connection that was denied
}

func (e *event) open() bool { return !e.point && e.end == 0 }

const (
	// maxEvents bounds what is kept; the oldest go first.
	maxEvents = 50_000
	// maxRunning bounds what goes on at the same time. Whoever writes the lines may begin
	// things without ever ending them.
	maxRunning = 1000
	// maxText is what is kept of a text, in bytes, and maxHead what is looked at of a line:
	// what tells about it stands at its begin.
	maxText, maxHead = 160, 64 << 10
	// maxRows is how many things that go on at the same time are told apart in a lane.
	maxRows = 3
)

func short(s string) string {
	s = strings.TrimSpace(s)
	if len(s) <= maxText {
		return strings.Clone(s)
	}
	s = s[:maxText]
	for i := 0; i < utf8.UTFMax && len(s) > 0 && !utf8.RuneStart(s[len(s)-1]); i++ {
		s = s[:len(s)-1]
	}
	return strings.Clone(s[:max(len(s)-1, 0)]) + "…"
}

// apply takes one record in.
func (t *Timeline) apply(r journal.Record) {
	at := r.Time.UnixNano()
	t.last, t.seq = max(t.last, at), r.Seq
	switch r.Type {
	case api.RecordRPC:
		t.line(r, at)
	case api.RecordEgress:
		t.egress(r, at)
	case api.RecordExec:
		t.program(r, at)
	case api.RecordState:
		t.state(r, at)
	}
}

// What runs is known by these, and the id of what it is: ids are Pi's, and could be alike.
const (
	runTurn       = "turn"
	runCompaction = "compaction"
	runTool       = "tool "
	runConnection = "connection "
	runProgram    = "program "
	runQuestion   = "question "
)

func (t *Timeline) line(r journal.Record, at int64) {
	// Of most lines, the type is all that is looked at.
	const key = `"line":`
	i := bytes.Index(r.Data[:min(len(r.Data), 1<<10)], []byte(key))
	if i < 0 || !bytes.Contains(r.Data[:i], []byte(`"from_pi"`)) {
		return
	}
	line := r.Data[i+len(key):]
	line = line[:min(len(line), maxHead)]
	get := func(path string) string { return gjson.GetBytes(line, path).String() }
	typ := get("type")
	switch typ {
	case "turn_start":
		t.turns++
		t.begin(runTurn, event{kind: kindTurn, seq: r.Seq, begin: at, what: fmt.Sprintf("turn %d", t.turns)})
	case "turn_end":
		e := t.finish(runTurn, r.Seq, at)
		if e == nil {
			return
		}
		if text := said(line); text != "" {
			e.what = short(e.what + ": " + text)
		}
		if reason := get("message.stopReason"); reason == "error" || reason == "aborted" {
			e.failed = reason == "error"
			e.outcome = short(reason + " " + get("message.errorMessage"))
		}
	case "agent_end", "agent_settled":
		if e := t.finish(runTurn, r.Seq, at); e != nil {
			e.outcome = "cut off"
		}
	case "message_end":
		if get("message.role") == "user" {
			t.begin("", event{kind: kindTurn, seq: r.Seq, begin: at, point: true, what: short("prompt: " + said(line))})
		}
	case "compaction_start":
		t.begin(runCompaction, event{kind: kindTurn, seq: r.Seq, begin: at, what: "compaction"})
	case "compaction_end":
		t.finish(runCompaction, r.Seq, at)
	case "tool_execution_start":
		id := get("toolCallId")
		t.begin(runTool+id, event{kind: kindTool, seq: r.Seq, begin: at, call: short(id), what: short(get("toolName") + " " + argument(line))})
	case "tool_execution_end":
		if e := t.finish(runTool+get("toolCallId"), r.Seq, at); e != nil && failedTool(r.Data) {
			e.failed, e.outcome = true, "failed"
		}
	}
}

// failedTool says that a tool's end tells of a failure. It stands last, behind a result
// of any length; in a string, its quotes would be escaped.
func failedTool(data []byte) bool {
	return bytes.Contains(data[max(len(data)-maxText, 0):], []byte(`"isError":true`))
}

// said is the first text of a message, or the tools that it calls.
func said(line []byte) string {
	content := gjson.GetBytes(line, "message.content")
	if content.Type == gjson.String {
		return content.Str
	}
	text, tools := "", []string(nil)
	content.ForEach(func(_, part gjson.Result) bool {
		switch part.Get("type").Str {
		case "text":
			text = part.Get("text").Str
		case "toolCall":
			tools = append(tools, part.Get("name").Str)
		}
		return strings.TrimSpace(text) == "" && len(tools) < 8
	})
	if strings.TrimSpace(text) != "" {
		return text
	}
	if len(tools) > 0 {
		return "calls " + strings.Join(tools, ", ")
	}
	return ""
}

// argument is the one that says most of a tool call.
func argument(line []byte) string {
	for _, name := range []string{"command", "path", "file_path", "pattern", "url", "query"} {
		if v := gjson.GetBytes(line, "args."+name); v.Type == gjson.String {
			return v.Str
		}
	}
	raw := gjson.GetBytes(line, "args").Raw
	return raw[:min(len(raw), 2*maxText)]
}

func (t *Timeline) egress(r journal.Record, at int64) {
	var e api.EgressRecord
	if e.UnmarshalJSON(r.Data) != nil {
		return // of another version
	}
	ev := event{kind: kindNetwork, seq: r.Seq, begin: at, what: short(e.Host), host: short(e.Host)}
	if e.Port != 0 {
		ev.what = short(fmt.Sprintf("%s:%d", e.Host, e.Port))
	}
	if len(e.ToolCalls) > 0 {
		ev.call = short(e.ToolCalls[0])
	}
	switch {
	case e.Kind == api.EgressEnd:
		outcome := fmt.Sprintf("%s in, %s out", figure.Bytes(e.BytesIn), figure.Bytes(e.BytesOut))
		if was := t.finish(runConnection+e.ID, r.Seq, at); was != nil {
			was.outcome = outcome
			return
		}
		// Its begin is no more here.
		ev.begin, ev.end, ev.endSeq, ev.outcome = at-int64(e.Duration), max(at, 1), r.Seq, outcome
		t.add(ev)
	case e.Kind == api.EgressDropped:
		ev.point, ev.failed, ev.what = true, true, fmt.Sprintf("%d decisions were too many to record", e.Count)
		t.begin("", ev)
	case e.Verdict != api.VerdictAllow:
		ev.point, ev.failed = true, true
		ev.outcome = short("denied: " + strings.ReplaceAll(string(e.Reason), "_", " "))
		if e.Count > 1 {
			ev.outcome = fmt.Sprintf("%d× %s", e.Count, ev.outcome)
		}
		t.begin("", ev)
	case e.Kind == api.EgressConnection:
		ev.outcome = "allowed"
		t.begin(runConnection+e.ID, ev)
	}
	// A name that may be looked up says nothing that its connection doesn't.
}

func (t *Timeline) program(r journal.Record, at int64) {
	head := r.Data[:min(len(r.Data), maxHead)]
	var words []string
	for _, a := range gjson.GetBytes(head, "argv").Array() {
		words = append(words, a.String())
	}
	what := short(strings.Join(words, " "))
	// The same program may run more than once: the one that began first ends first.
	id, n := "", 0
	name := func() string { return fmt.Sprintf("%s%d %s", runProgram, n, what) }
	if !gjson.GetBytes(head, "exited").Bool() {
		for id = name(); t.running[id] != 0; id = name() {
			n++
		}
		t.begin(id, event{kind: kindProgram, seq: r.Seq, begin: at, what: what})
		return
	}
	for id = name(); t.running[id] == 0 && n < maxRunning; id = name() {
		n++
	}
	if e := t.finish(id, r.Seq, at); e != nil {
		code := gjson.GetBytes(head, "exit_code").Int()
		e.failed, e.outcome = code != 0, fmt.Sprintf("exit code %d", code)
	}
}

func (t *Timeline) state(r journal.Record, at int64) {
	head := r.Data[:min(len(r.Data), maxHead)]
	get := func(path string) string { return gjson.GetBytes(head, path).String() }
	phase := get("phase")
	ev := event{kind: kindState, seq: r.Seq, begin: at, point: true}
	if gjson.GetBytes(head, "question").Exists() {
		ask := ev
		ask.point, ask.what = false, short("asks: "+get("question.title"))
		t.begin(runQuestion+get("question.id"), ask)
	}
	if id := get("answered"); id != "" {
		if e := t.finish(runQuestion+id, r.Seq, at); e != nil {
			e.outcome = "answered"
		}
	}
	switch {
	case phase != t.phase:
		t.phase = phase
		ev.what = phase
		ev.outcome = short(get("reason"))
		ev.failed = phase == string(api.PhaseFailed) || phase == string(api.PhaseCrashed)
		if text := get("error.message"); text != "" {
			ev.outcome = short(text)
		}
		if api.Phase(phase).Final() {
			t.cutOff(r.Seq, at)
		}
		t.begin("", ev)
	case gjson.GetBytes(head, "model").Exists():
		ev.what = short("model " + get("model.provider") + "/" + get("model.id"))
		t.begin("", ev)
	}
	// Idle and working are what the turns show.
}

// cutOff ends all that goes on: nothing does in a session that has ended.
func (t *Timeline) cutOff(seq uint64, at int64) {
	for id := range t.running {
		if e := t.finish(id, seq, at); e != nil && e.kind != kindNetwork {
			e.outcome = "cut off"
		}
	}
}

// begin adds an event. One that takes time goes on until its id is finished.
func (t *Timeline) begin(id string, e event) {
	id = short(id)
	if e.point || len(t.running) >= maxRunning {
		e.point = true
		t.add(e)
		return
	}
	if t.running[id] != 0 {
		t.finish(id, e.seq, e.begin) // its end was never told
	}
	for e.row < maxRows-1 && t.busy[e.kind][e.row] > 0 {
		e.row++
	}
	t.busy[e.kind][e.row]++
	t.rows[e.kind] = max(t.rows[e.kind], int(e.row)+1)
	t.running[id] = t.dropped + len(t.events) + 1
	t.add(e)
}

func (t *Timeline) add(e event) {
	t.events = append(t.events, e)
	t.counts[e.kind]++
	if !t.hidden[e.kind] {
		t.shown = append(t.shown, t.dropped+len(t.events)-1)
	}
	if len(t.events) <= maxEvents+maxEvents/8 {
		return
	}
	n := len(t.events) - maxEvents
	for i := range n {
		e := &t.events[i]
		t.counts[e.kind]--
		if e.open() {
			t.busy[e.kind][e.row]--
		}
	}
	t.events = append(make([]event, 0, maxEvents+maxEvents/8+1), t.events[n:]...)
	t.dropped += n
	gone := 0
	for gone < len(t.shown) && t.shown[gone] < t.dropped {
		gone++
	}
	t.shown = append(t.shown[:0], t.shown[gone:]...)
	t.table.Shift(gone)
}

// at is the event of a number that counts the dropped ones too, nil for one of those.
func (t *Timeline) at(n int) *event {
	if n -= t.dropped; n >= 0 && n < len(t.events) {
		return &t.events[n]
	}
	return nil
}

// finish ends what runs by this id, and gives it unless it was dropped.
func (t *Timeline) finish(id string, seq uint64, at int64) *event {
	id = short(id)
	n := t.running[id]
	if n == 0 {
		return nil
	}
	delete(t.running, id)
	e := t.at(n - 1)
	if e == nil {
		return nil
	}
	t.busy[e.kind][e.row]--
	e.end, e.endSeq = max(at, e.begin, 1), seq
	return e
}

// took is a duration in at most eight columns.
func took(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm %02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh %02dm", int(d.Hours()), int(d.Minutes())%60)
}
