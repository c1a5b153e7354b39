package cli

import (
	"strings"

	"github.com/tidwall/gjson"

	"patio/engine/api"
	"patio/engine/journal"
)

// turn follows one prompt through the journal, from the line that carries it to the
// moment when Pi has settled. It does no I/O: it is told each record in order.
type turn struct {
	// client is the name that the prompt was sent under, message its text: together they
	// tell our prompt from another client's.
	client, message string

	// id is the prompt's on the wire, "" until its line has been seen.
	id string
	// accepted: Pi has answered the prompt. started: an agent ran after it was sent.
	accepted, started bool
	// probe asks for Pi's state: a slash command may be over without an agent having run.
	probe   bool
	settled bool

	// question is what Pi asked and nobody has answered.
	question *api.Question
	// stop and stopMessage are those of the last assistant message.
	stop, stopMessage string
	// end is how the session ended, when it did.
	end *api.StateRecord
}

// event is one line of Pi's with the data that came around it.
type event struct {
	direction api.Direction
	client    string
	line      gjson.Result
}

// rpcEvent reads an rpc record's data.
func rpcEvent(data []byte) event {
	d := gjson.ParseBytes(data)
	return event{
		direction: api.Direction(d.Get("direction").Str),
		client:    d.Get("client").Str,
		line:      d.Get("line"),
	}
}

// observe takes the next record.
func (t *turn) observe(r journal.Record) {
	switch r.Type {
	case api.RecordState:
		t.observeState(r.Data)
	case api.RecordRPC:
		e := rpcEvent(r.Data)
		if e.direction == api.ToPi {
			t.observeSent(e)
			return
		}
		t.observeEvent(e.line)
	}
}

func (t *turn) observeState(data []byte) {
	var s api.StateRecord
	if !decodeData(data, &s) {
		return
	}
	if s.Answered != "" && t.question != nil && t.question.ID == s.Answered {
		t.question = nil
	}
	if s.Question != nil && t.id != "" && !answersItself(s.Question) {
		t.question = s.Question
	}
	if s.Phase.Final() {
		t.end = &s
	}
}

// answersItself reports whether a question has a time limit, after which Pi goes on with
// its default.
func answersItself(q *api.Question) bool {
	return gjson.GetBytes(q.Raw, "timeout").Int() > 0
}

func (t *turn) observeSent(e event) {
	if t.id != "" || e.line.Get("type").Str != "prompt" {
		return
	}
	if strings.HasPrefix(e.client, t.client+"-") && e.line.Get("message").Str == t.message {
		t.id = e.line.Get("id").Str
	}
}

func (t *turn) observeEvent(line gjson.Result) {
	if t.id == "" {
		return
	}
	switch line.Get("type").Str {
	case "response":
		t.observeResponse(line)
	case "agent_start":
		t.started = true
	case "message_end":
		if m := line.Get("message"); m.Get("role").Str == "assistant" {
			t.stop, t.stopMessage = m.Get("stopReason").Str, m.Get("errorMessage").Str
		}
	case "agent_settled":
		// One that comes before the prompt was taken belongs to the run before it.
		if t.accepted {
			t.settled, t.question = true, nil
		}
	}
}

func (t *turn) observeResponse(line gjson.Result) {
	success := line.Get("success").Bool()
	switch {
	case line.Get("id").Str == t.id && success:
		t.accepted = true
		t.probe = strings.HasPrefix(strings.TrimSpace(t.message), "/")
	case t.accepted && success && line.Get("command").Str == "get_state":
		if !t.started && !line.Get("data.isStreaming").Bool() {
			t.settled = true
		}
	}
}

// over reports whether nothing more will come of the prompt.
func (t *turn) over() bool { return t.settled || t.end != nil }

// err says how the turn went; it is meant for one that is over.
func (t *turn) err() error {
	if !t.settled && t.end != nil {
		reason := t.end.Reason
		if t.end.Error != nil {
			return t.end.Error
		}
		if t.end.End != nil && reason == "" {
			reason = t.end.End.Reason
		}
		return api.Errorf(api.CodeInternal, "`patio logs ID` shows what happened", "the session ended before the answer was complete: %s", reason)
	}
	switch t.stop {
	case "error":
		return api.Errorf(api.CodeInternal, "", "the model failed: %s", firstNonEmpty(t.stopMessage, "no reason was given"))
	case "aborted":
		return api.Errorf(api.CodeInternal, "", "the turn was aborted")
	}
	return nil
}

// questionError is a question that nobody can answer, as the error it ends a run with.
func questionError(q *api.Question, hint string) error {
	text := q.Title
	if q.Message != "" {
		text = strings.TrimSpace(text + ": " + q.Message)
	}
	if len(q.Options) > 0 {
		text += " [" + strings.Join(q.Options, " | ") + "]"
	}
	return api.Errorf(api.CodeNeedsAnswer, hint, "Pi asks (%s): %s", q.Method, text)
}

func firstNonEmpty(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
