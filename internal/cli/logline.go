package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/sandbox/network"
	"patio/sandbox/network/policy"
)

// logLines writes journal records for people, one line each.
type logLines struct {
	w      io.Writer
	width  int
	deltas bool
	// types are those that were asked for by name; none means all that tell something new.
	types []string
	// zone is what times are shown in.
	zone *time.Location
}

// show writes one record.
func (l *logLines) show(r journal.Record) error {
	if !l.deltas && passing(r) && (r.Type == api.RecordRPC || !slices.Contains(l.types, r.Type)) {
		return nil
	}
	mark, text := summary(r)
	line := fmt.Sprintf("%6d  %s  %-6s %s %s", r.Seq, r.Time.In(l.zone).Format("15:04:05.000"), r.Type, mark, cleanLine(text))
	line = strings.TrimRight(line, " ")
	if l.width > 0 {
		line = shorten(line, l.width)
	}
	_, err := fmt.Fprintln(l.w, line)
	return err
}

// passing reports whether a record only tells how far something is that another record
// tells whole.
func passing(r journal.Record) bool {
	if r.Type != api.RecordRPC {
		return r.Type == api.RecordStats
	}
	switch rpcEvent(r.Data).line.Get("type").Str {
	case "message_update", "tool_execution_update", "bash_execution_update":
		return true
	}
	return false
}

// summary is a record in a few words, with a mark for its direction or weight.
func summary(r journal.Record) (mark, text string) {
	switch r.Type {
	case api.RecordRPC:
		return rpcSummary(r.Data)
	case api.RecordEgress:
		return egressSummary(r.Data)
	case api.RecordState:
		return " ", stateSummary(r.Data)
	case api.RecordStats:
		var u api.Usage
		if decodeData(r.Data, &u) {
			return " ", fmt.Sprintf("cpu %s, memory %s, %d processes, network %s in, %s out", formatPercent(u.CPUPercent),
				formatShare(u.Memory, u.MemoryLimit), u.Pids, formatBytes(int64(u.NetworkIn)), formatBytes(int64(u.NetworkOut)))
		}
	case api.RecordStderr:
		return "!", gjson.GetBytes(r.Data, "text").Str
	case api.RecordExec:
		var e api.ExecRecord
		if decodeData(r.Data, &e) {
			if e.Exited {
				return " ", fmt.Sprintf("%s: exit %d", strings.Join(e.Argv, " "), e.ExitCode)
			}
			return " ", strings.Join(e.Argv, " ")
		}
	}
	return " ", string(r.Data)
}

func rpcSummary(data []byte) (mark, text string) {
	e := rpcEvent(data)
	mark = "<"
	if e.direction == api.ToPi {
		mark = ">"
	}
	if !e.line.Exists() {
		return mark, gjson.GetBytes(data, "text").Str
	}
	line := e.line
	kind := line.Get("type").Str
	switch kind {
	case "prompt", "steer", "follow_up":
		text = line.Get("message").Str
	case "response":
		text = line.Get("command").Str + " ok"
		if !line.Get("success").Bool() {
			text = line.Get("command").Str + " failed: " + line.Get("error").Str
		}
	case "message_start", "message_end":
		text = messageSummary(line.Get("message"))
	case "message_update":
		u := line.Get("assistantMessageEvent")
		text = u.Get("type").Str + " " + u.Get("delta").Str
	case "tool_execution_start":
		text = line.Get("toolName").Str + " " + toolArguments(line.Get("args"))
	case "tool_execution_end":
		text = line.Get("toolName").Str + ": " + firstNonEmpty(lastLine(resultText(line.Get("result"))), "done")
		if line.Get("isError").Bool() {
			text = line.Get("toolName").Str + " failed: " + lastLine(resultText(line.Get("result")))
		}
	case "extension_ui_request":
		text = strings.TrimSpace(line.Get("method").Str + " " + line.Get("title").Str + " " + line.Get("message").Str)
	case "extension_error":
		text = line.Get("error").Str
	case "bash":
		text = line.Get("command").Str
	case "set_model":
		text = line.Get("provider").Str + "/" + line.Get("modelId").Str
	case "agent_end":
		if line.Get("willRetry").Bool() {
			text = "will retry"
		}
	case "":
		return mark, line.Raw
	}
	if e.client != "" {
		kind = e.client + " " + kind
	}
	return mark, strings.TrimSpace(kind + "  " + text)
}

func messageSummary(m gjson.Result) string {
	var parts []string
	for _, block := range m.Get("content").Array() {
		switch block.Get("type").Str {
		case "text":
			parts = append(parts, block.Get("text").Str)
		case "thinking":
			parts = append(parts, "(thinking)")
		case "toolCall":
			parts = append(parts, "("+block.Get("name").Str+" "+toolArguments(block.Get("arguments"))+")")
		case "image":
			parts = append(parts, "(image)")
		}
	}
	if c := m.Get("content"); c.Type == gjson.String {
		parts = append(parts, c.Str)
	}
	text := m.Get("role").Str + ": " + strings.Join(parts, " ")
	if stop := m.Get("stopReason").Str; stop == "error" || stop == "aborted" {
		text += " (" + stop + ": " + m.Get("errorMessage").Str + ")"
	}
	return text
}

func egressSummary(data []byte) (mark, text string) {
	var e api.EgressRecord
	if !decodeData(data, &e) {
		return " ", string(data)
	}
	mark = " "
	text = e.Verdict.String() + " " + string(e.Kind) + " " + egressTarget(e)
	if e.Protocol != "" {
		text += " " + string(e.Protocol)
	}
	switch {
	case e.Kind == network.KindEnd:
		text = fmt.Sprintf("closed %s, %s in, %s out, %s", egressTarget(e), formatBytes(e.BytesIn), formatBytes(e.BytesOut), formatSpan(e.Duration))
	case e.Verdict == policy.Deny:
		mark = "!"
		text += ": " + firstNonEmpty(e.Message, e.Reason.Message())
	case e.Rule != "":
		text += " by rule " + e.Rule
	}
	if e.Count > 1 {
		text += fmt.Sprintf(" (%d times)", e.Count)
	}
	return mark, text
}

func stateSummary(data []byte) string {
	var s api.StateRecord
	if !decodeData(data, &s) {
		return string(data)
	}
	parts := []string{string(s.Phase)}
	if s.Activity != "" {
		parts = append(parts, string(s.Activity))
	}
	if s.Model != nil {
		parts = append(parts, "model "+s.Model.String())
	}
	if s.Question != nil {
		parts = append(parts, "asks: "+strings.TrimSpace(s.Question.Title+" "+s.Question.Message))
	}
	if s.Answered != "" {
		parts = append(parts, "answered")
	}
	switch {
	case s.Error != nil:
		parts = append(parts, s.Error.Message)
	case s.Reason != "":
		parts = append(parts, s.Reason)
	case s.End != nil:
		parts = append(parts, s.End.Reason)
	}
	if s.End != nil {
		parts = append(parts, fmt.Sprintf("exit %d", s.End.ExitCode))
	}
	return strings.Join(parts, ", ")
}
