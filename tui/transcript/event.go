package transcript

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"patio/engine/api"
	"patio/engine/journal"
)

// maxNote bounds what is kept of a quiet line.
const maxNote = 8 << 10

func (t *Transcript) noteOf(r journal.Record, sign, title string, grave *lipglossStyle) *item {
	i := &item{kind: kindNote, seq: r.Seq, at: r.Time, sign: sign, title: bounded(title, maxNote), grave: grave}
	t.bytes += i.weight()
	return t.push(i)
}

// event takes what isn't a part of a message.
func (t *Transcript) event(r journal.Record, kind string, line gjson.Result) {
	switch kind {
	case "response":
		t.response(r, line)
	case "queue_update":
		t.steering, t.followUp = texts(line.Get("steering")), texts(line.Get("followUp"))
	case "bash_execution_update":
		if i := t.calls["bash:"+line.Get("id").Str]; i != nil {
			if i.call.out == nil {
				i.call.out = newFlow(false)
			}
			before := i.call.out.kept
			i.call.out.add(line.Get("delta").Str)
			if n := len(i.call.out.parts); n > 0 {
				i.call.out.parts[n-1].seg.stale()
			}
			t.bytes += i.call.out.kept - before
			i.changed()
		}
	case "auto_retry_start", "auto_retry_end", "summarization_retry_scheduled", "summarization_retry_finished":
		t.retried(r, kind, line)
	case "compaction_start", "compaction_end":
		t.compacted(r, kind, line)
	case "thinking_level_changed":
		if level := line.Get("level").Str; level != t.thinking {
			t.thinking = bounded(level, 40)
			t.noteOf(r, "·", "thinking: "+level, nil)
		}
	case "session_info_changed":
		t.noteOf(r, "·", "name: "+line.Get("name").Str, nil)
	case "extension_error":
		t.noteOf(r, "✗", fmt.Sprintf("extension %s failed: %s", line.Get("extensionPath").Str, line.Get("error").Str), &asBad)
	case "extension_ui_request":
		t.notify(r, line)
	}
}

func texts(list gjson.Result) []string {
	var out []string
	list.ForEach(func(_, v gjson.Result) bool {
		text := v.Str
		if v.IsObject() {
			text = v.Get("text").Str
		}
		out = append(out, bounded(text, maxPrompt))
		return len(out) < 100
	})
	return out
}

// notify is a message of an extension. Those of Paseo's own are for its program.
func (t *Transcript) notify(r journal.Record, line gjson.Result) {
	text := line.Get("message").Str
	if line.Get("method").Str != "notify" || strings.HasPrefix(text, "PASEO_") {
		return
	}
	switch line.Get("notifyType").Str {
	case "error":
		t.noteOf(r, "✗", text, &asBad)
	case "warning":
		t.noteOf(r, "!", text, &asWarning)
	default:
		t.noteOf(r, "i", text, nil)
	}
}

func (t *Transcript) retried(r journal.Record, kind string, line gjson.Result) {
	title := ""
	grave := &asWarning
	switch kind {
	case "auto_retry_start", "summarization_retry_scheduled":
		what := "retry"
		if kind != "auto_retry_start" {
			what = "retry of the summary"
		}
		title = fmt.Sprintf("%s %d of %d in %s: %s", what, line.Get("attempt").Int(), line.Get("maxAttempts").Int(),
			spanOf(time.Duration(line.Get("delayMs").Float())*time.Millisecond), line.Get("errorMessage").Str)
		t.retry = t.noteOf(r, "~", title, grave)
		return
	default:
		if t.retry == nil {
			return
		}
		if line.Get("success").Bool() || kind == "summarization_retry_finished" && !line.Get("error").Exists() {
			t.retry.title += " (it worked)"
			t.retry.grave = nil
		} else {
			t.retry.title = bounded(fmt.Sprintf("gave up after %s: %s", plural(int(line.Get("attempt").Int()), "retry", "retries"), line.Get("finalError").Str), maxNote)
			t.retry.grave = &asBad
		}
		t.retry.changed()
		t.retry = nil
	}
}

func (t *Transcript) compacted(r journal.Record, kind string, line gjson.Result) {
	if kind == "compaction_start" || t.compact == nil {
		t.compact = t.push(&item{kind: kindSummary, seq: r.Seq, at: r.Time, sign: "≡", growing: true,
			title: "compacting the conversation (" + bounded(line.Get("reason").Str, 100) + ")"})
		if kind == "compaction_start" {
			return
		}
	}
	i := t.compact
	t.compact = nil
	i.growing = false
	switch {
	case line.Get("errorMessage").Str != "":
		i.title, i.grave = bounded(line.Get("errorMessage").Str, maxNote), &asBad
		i.sign = "✗"
	case line.Get("aborted").Bool():
		i.title, i.sign = "the compaction was stopped", "■"
	default:
		i.title = "the conversation was compacted: Pi goes on with a summary"
		if n := line.Get("result.tokensBefore").Int(); n > 0 {
			i.title += " of " + tokensOf(n) + " tokens"
		}
		if text := line.Get("result.summary").Str; text != "" {
			i.body = flowOf(text, true)
			t.bytes += i.body.kept
		}
	}
	i.changed()
}

// response is Pi's answer to a command, whoever sent it.
func (t *Transcript) response(r journal.Record, line gjson.Result) {
	command := line.Get("command").Str
	ok := line.Get("success").Bool()
	switch {
	case command == "bash":
		if i := t.calls["bash:"+line.Get("id").Str]; i != nil {
			t.endBash(r.Time, i, line)
		}
	case command == "get_messages" && ok:
		t.replace(line.Get("data.messages"), r.Seq)
	case command == "get_state" && ok:
		if line.Get("data.messageCount").Int() > 0 && t.messages == 0 && !t.given {
			t.needs = true // a session file that patio's journal hasn't seen
		}
	case ok, strings.HasPrefix(command, "get_"):
		// What was asked for is told otherwise, or not for the conversation.
	case command == "compact" && t.last() != nil && t.last().kind == kindSummary:
		// The end of the compaction has told it.
	default:
		t.noteOf(r, "✗", strings.TrimSpace(command+" failed: "+line.Get("error").Str), &asBad)
	}
}

// applyState takes what happened to the session.
func (t *Transcript) applyState(r journal.Record, s api.StateRecord) {
	before := t.phase
	t.phase = s.Phase
	reason := s.Reason
	if reason == "" && s.End != nil {
		reason = s.End.Reason
	}
	if before == "" && s.Phase.Final() && strings.HasPrefix(reason, "imported") && !t.given {
		t.needs = true
	}
	switch {
	case s.Phase == before && !s.Phase.Final():
	case s.Phase.Final():
		t.working = false
		t.settle(r.Time)
		t.over(r, s, reason)
	case s.Phase == api.PhaseStopping:
		t.line(r, "stopping"+after(": ", reason), "■", nil, true)
	case s.Phase == api.PhaseReady:
		title := "the session is ready"
		if t.started {
			title = "the session goes on"
		}
		if s.Model != nil {
			title += " with " + s.Model.String()
		}
		t.line(r, title, "●", nil, false)
		t.started = true
	case before == "" || before.Final():
		t.line(r, "the sandbox is being prepared", "", nil, true)
	default:
		t.line(r, "the sandbox starts", "", nil, true)
	}
	if m := s.Model; m != nil {
		t.model(r, *m, s.Phase == before)
	}
}

// model notes that another model, or another level of thinking, is used from here on.
func (t *Transcript) model(r journal.Record, m api.Model, tell bool) {
	changed := m.Provider != t.provider || m.ID != t.modelID
	level := m.Thinking != "" && m.Thinking != t.thinking
	t.provider, t.modelID = bounded(m.Provider, 100), bounded(m.ID, 200)
	if m.Thinking != "" {
		t.thinking = bounded(m.Thinking, 40)
	}
	switch {
	case !tell:
	case changed:
		t.noteOf(r, "·", "model: "+m.String()+after(", thinking: ", m.Thinking), nil)
		t.answering = false
	case level:
		t.noteOf(r, "·", "thinking: "+m.Thinking, nil)
	}
}

func after(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// over is the session's end.
func (t *Transcript) over(r journal.Record, s api.StateRecord, reason string) {
	var grave *lipglossStyle
	sign, title := "■", string(s.Phase)
	if s.Phase != api.PhaseEnded {
		sign, grave = "✗", &asBad
	}
	title += after(": ", reason)
	if s.End != nil && s.End.ExitCode != 0 && s.Phase == api.PhaseEnded {
		title += fmt.Sprintf(", exit code %d", s.End.ExitCode)
	}
	i := t.line(r, title, sign, grave, false)
	if s.Error != nil {
		text := s.Error.Message
		if s.Error.Hint != "" {
			text += "\n" + s.Error.Hint
		}
		i.body = flowOf(text, false)
	}
	t.life = nil
	i.changed()
}

// line writes the line about the session's state, over the one before if that was still
// under way.
func (t *Transcript) line(r journal.Record, title, sign string, grave *lipglossStyle, underWay bool) *item {
	t.answering = false
	if t.life == nil || t.last() != t.life {
		if t.life != nil {
			t.life.growing = false
			t.life.changed()
		}
		t.life = t.push(&item{kind: kindBreak, seq: r.Seq})
	}
	i := t.life
	i.title, i.sign, i.grave, i.at, i.growing = bounded(title, maxNote), sign, grave, r.Time, underWay
	i.changed()
	if !underWay {
		t.life = nil
	}
	return i
}
