package traffic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/tui/figure"
)

// maxHead is how much of a line its summary is made of. What tells lines apart stands at
// their begin, and a line may have 60 MB.
const maxHead = 8 << 10

// described is a record as the index keeps it.
type described struct {
	typ      string
	class    class
	way      way
	failed   bool
	size     int
	summary  string
	toolCall string // that begins here
}

// describe makes the summary of a record.
func describe(r journal.Record) described {
	var d described
	head := r.Data[:min(len(r.Data), maxHead)]
	get := func(path string) string { return gjson.GetBytes(head, path).String() }
	d.size, d.typ = len(r.Data), r.Type
	switch r.Type {
	case api.RecordRPC:
		describeLine(&d, r.Data)
	case api.RecordStderr:
		d.class, d.summary = classStderr, get("text")
	case api.RecordEgress:
		d.class = classEgress
		d.failed = get("verdict") != "allow"
		d.typ = "egress " + get("kind")
		verdict := "allowed"
		if d.failed {
			verdict = "denied"
		}
		d.summary = fmt.Sprintf("%s %s:%s %s", verdict, get("host"), get("port"), join(get("reason"), get("message")))
	case api.RecordExec:
		d.class = classState
		var argv []string
		for _, a := range gjson.GetBytes(head, "argv").Array() {
			argv = append(argv, a.String())
		}
		d.summary = strings.Join(argv, " ")
		if gjson.GetBytes(head, "exited").Bool() {
			code := gjson.GetBytes(head, "exit_code").Int()
			d.failed = code != 0
			d.summary += fmt.Sprintf(" exited with %d", code)
		}
	case api.RecordStats:
		d.class = classStats
		d.summary = fmt.Sprintf("CPU %.0f%%, memory %s, %d processes", gjson.GetBytes(head, "cpu_percent").Float(),
			figure.Bytes(gjson.GetBytes(head, "memory_bytes").Int()), gjson.GetBytes(head, "pids").Int())
	case api.RecordState:
		d.class = classState
		phase := get("phase")
		d.failed = phase == string(api.PhaseFailed) || phase == string(api.PhaseCrashed)
		d.summary = join(phase, get("activity"), get("reason"), get("question.title"), get("error.message"))
	default:
		d.class = classState
		d.summary = string(head[:min(len(head), 2*maxSummary)])
	}
	d.summary = cut(strings.TrimSpace(d.summary), maxSummary)
	return d
}

func join(parts ...string) string {
	var some []string
	for _, p := range parts {
		if p != "" {
			some = append(some, p)
		}
	}
	return strings.Join(some, " · ")
}

// line is the RPC line in a record's data, as it went over the wire: it is the last field
// that RPCRecord writes. ok is false for one that isn't JSON.
func line(data []byte) (line []byte, ok bool) {
	const key = `"line":`
	// The client's name stands before it.
	i := bytes.Index(data[:min(len(data), 1<<10)], []byte(key))
	if i < 0 || len(data) < i+len(key)+1 {
		return nil, false
	}
	return data[i+len(key) : len(data)-1], true
}

func describeLine(d *described, data []byte) {
	d.way, d.class = fromPi, classEvent
	if gjson.GetBytes(data[:min(len(data), 100)], "direction").String() == string(api.ToPi) {
		d.way, d.class = toPi, classCommand
	}
	raw, ok := line(data)
	if !ok {
		var r struct{ Text string }
		head := data[:min(len(data), maxHead)]
		d.typ, d.failed = "no JSON", true
		if text := gjson.GetBytes(head, "text"); text.Exists() {
			r.Text = text.String()
		} else {
			_ = json.Unmarshal(data, &r)
		}
		d.size, d.summary = len(data)-len(`{"direction":"to_pi","text":""}`), r.Text
		return
	}
	d.size = len(raw)
	head := raw[:min(len(raw), maxHead)]
	get := func(path string) string { return gjson.GetBytes(head, path).String() }
	d.typ = get("type")
	if d.typ == "" {
		d.typ = "no type"
	}
	switch {
	case d.typ == "extension_ui_request":
		d.class = classUI
		d.summary = join(get("method"), get("title"), get("message"))
	case d.typ == "extension_ui_response":
		d.class = classUI
		switch {
		case gjson.GetBytes(head, "cancelled").Bool():
			d.summary = "cancelled"
		case gjson.GetBytes(head, "confirmed").Exists():
			d.summary = "confirmed: " + get("confirmed")
		default:
			d.summary = get("value")
		}
	case d.way == fromPi && d.typ == "response":
		d.class = classResponse
		d.typ = "response " + get("command")
		if gjson.GetBytes(head, "success").Bool() {
			d.summary = join("ok", rest(head, "data"))
			break
		}
		d.failed = true
		d.summary = "failed: " + get("error")
	case d.way == toPi:
		d.summary = command(head, d.typ)
	default:
		d.summary, d.failed = event(head, d.typ)
		if d.typ == "tool_execution_end" {
			// It stands last, behind a result of any length; in a string, its quotes would
			// be escaped.
			d.failed = bytes.Contains(raw[max(len(raw)-100, 0):], []byte(`"isError":true`))
		}
		if d.typ == "tool_execution_start" {
			d.toolCall = get("toolCallId")
		}
	}
}

// rest is how a member's source begins.
func rest(head []byte, path string) string {
	raw := gjson.GetBytes(head, path).Raw
	return raw[:min(len(raw), 2*maxSummary)]
}

func command(head []byte, typ string) string {
	get := func(path string) string { return gjson.GetBytes(head, path).String() }
	switch typ {
	case "prompt", "steer", "follow_up":
		return join(get("message"), get("streamingBehavior"))
	case "bash":
		return get("command")
	case "set_model":
		return get("provider") + "/" + get("modelId")
	case "set_session_name":
		return get("name")
	}
	return members(head)
}

// members is a line's source without its type and id, which have columns or say little.
func members(head []byte) string {
	var b strings.Builder
	gjson.ParseBytes(head).ForEach(func(k, v gjson.Result) bool {
		if k.Str != "type" && k.Str != "id" {
			if b.Len() > 0 {
				b.WriteString(" · ")
			}
			b.WriteString(k.Str + " " + v.Raw[:min(len(v.Raw), maxSummary)])
		}
		return b.Len() < maxSummary
	})
	return b.String()
}

func event(head []byte, typ string) (summary string, failed bool) {
	get := func(path string) string { return gjson.GetBytes(head, path).String() }
	switch typ {
	case "message_update":
		const e = "assistantMessageEvent."
		kind := get(e + "type")
		if delta := get(e + "delta"); delta != "" {
			return kind + " " + delta, false
		}
		return join(kind, get(e+"content"), get(e+"toolCall.name")), kind == "error"
	case "message_start", "message_end":
		stop := get("message.stopReason")
		// The order of content is Pi's; the first of it that is text says most.
		text := get("message.content.0.text")
		if text == "" {
			text = join(get("message.content.0.thinking"), get("message.content.0.name"))
		}
		if m := gjson.GetBytes(head, "message.content"); m.Type == gjson.String {
			text = m.Str
		}
		return join(get("message.role"), get("message.toolName"), get("message.errorMessage"), text), stop == "error" || gjson.GetBytes(head, "message.isError").Bool()
	case "tool_execution_start", "tool_execution_update", "tool_execution_end":
		what := get("args.command")
		if what == "" {
			what = get("args.path")
		}
		if what == "" {
			what = rest(head, "args")
		}
		out := get("result.content.0.text")
		if out == "" {
			out = get("partialResult.content.0.text")
		}
		return join(get("toolName"), what, out), false
	case "turn_end":
		return join(get("message.role"), get("message.stopReason"), get("message.errorMessage")), get("message.stopReason") == "error"
	case "agent_end":
		return rest(head, "messages"), false
	case "extension_error":
		return join(get("extensionPath"), get("event"), get("error")), true
	}
	return members(head), false
}

// cut shortens s to at most n bytes without cutting a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[:n-len("…")]
	for i := 0; i < utf8.UTFMax && len(s) > 0; i++ {
		if r, size := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || size > 1 {
			break
		}
		s = s[:len(s)-1]
	}
	return s + "…"
}
