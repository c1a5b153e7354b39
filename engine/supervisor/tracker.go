package supervisor

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"patio/engine/api"
	"patio/engine/pi"
)

// tracker keeps the snapshot of a session, from what Pi says and what happens to it.
type tracker struct {
	mu        sync.Mutex
	s         api.Session
	running   bool     // from agent_start to agent_settled
	toolCalls []string // ids that run now, oldest first
}

func (t *tracker) snapshot() api.Session {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.s
	s.Questions = slices.Clone(t.s.Questions)
	if t.s.Usage != nil {
		usage := *t.s.Usage
		s.Usage = &usage
	}
	return s
}

// update changes the snapshot under its lock.
func (t *tracker) update(f func(s *api.Session)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(&t.s)
}

// tools lists the tool calls that run now.
func (t *tracker) tools() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.toolCalls)
}

// usage is the token count of one assistant message, as Pi gives it.
type usage struct {
	Input       int `json:"input"`
	Output      int `json:"output"`
	CacheRead   int `json:"cacheRead"`
	CacheWrite  int `json:"cacheWrite"`
	TotalTokens int `json:"totalTokens"`
	Cost        struct {
		Total float64 `json:"total"`
	} `json:"cost"`
}

// observe follows an event from Pi. It returns the change worth a state record, if any.
func (t *tracker) observe(m pi.Message, now time.Time) (api.StateRecord, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch m.Type {
	case "agent_start":
		t.running = true
		return t.activity()
	case "agent_settled":
		// A settled agent waits for nothing; a question of its that is still open was dropped.
		t.running, t.toolCalls = false, nil
		t.s.Questions = slices.DeleteFunc(t.s.Questions, func(q api.Question) bool { return !strings.HasPrefix(q.ID, ownQuestion) })
		return t.activity()
	case "turn_start":
		t.s.Turns++
	case "message_end":
		if m.Get("message.role").Str == "assistant" {
			var u usage
			if raw := m.Get("message.usage").Raw; raw != "" && json.Unmarshal([]byte(raw), &u) == nil {
				t.s.Tokens.Input += u.Input
				t.s.Tokens.Output += u.Output
				t.s.Tokens.CacheRead += u.CacheRead
				t.s.Tokens.CacheWrite += u.CacheWrite
				t.s.Tokens.Context = u.TotalTokens
				t.s.CostUSD += u.Cost.Total
			}
		}
	case "tool_execution_start":
		t.toolCalls = append(t.toolCalls, m.Get("toolCallId").Str)
	case "tool_execution_end":
		id := m.Get("toolCallId").Str
		t.toolCalls = slices.DeleteFunc(t.toolCalls, func(c string) bool { return c == id })
	case "session_info_changed":
		t.s.Name = m.Get("name").Str
	case "thinking_level_changed":
		t.s.Model.Thinking = m.Get("level").Str
	case "extension_ui_request":
		if method := m.Get("method").Str; pi.Dialog(method) {
			return t.ask(m, method, now)
		}
	}
	return api.StateRecord{}, false
}

func (t *tracker) ask(m pi.Message, method string, now time.Time) (api.StateRecord, bool) {
	q := api.Question{ID: m.ID, Method: method, Title: m.Get("title").Str, Message: m.Get("message").Str, Asked: now, Raw: slices.Clone(json.RawMessage(m.Line))}
	for _, o := range m.Get("options").Array() {
		q.Options = append(q.Options, o.String())
	}
	return t.add(q), true
}

// asked notes a question of patio's own.
func (t *tracker) asked(q api.Question) api.StateRecord {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.add(q)
}

// add puts a question among the open ones. The caller holds t.mu.
func (t *tracker) add(q api.Question) api.StateRecord {
	t.s.Questions = append(t.s.Questions, q)
	r, _ := t.activity()
	r.Question = &q
	return r
}

// answered notes that a question has its answer, from whoever gave it, or none any more.
func (t *tracker) answered(id string) (api.StateRecord, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := len(t.s.Questions)
	t.s.Questions = slices.DeleteFunc(t.s.Questions, func(q api.Question) bool { return q.ID == id })
	if len(t.s.Questions) == before {
		return api.StateRecord{}, false
	}
	r, _ := t.activity()
	r.Answered = id
	return r, true
}

// activity takes over what follows from the questions and from whether the agent runs: a
// command of an extension asks without one.
func (t *tracker) activity() (api.StateRecord, bool) {
	a := api.ActivityIdle
	switch {
	case len(t.s.Questions) > 0:
		a = api.ActivityBlocked
	case t.running:
		a = api.ActivityWorking
	}
	changed := t.s.Activity != a
	t.s.Activity = a
	return api.StateRecord{Phase: t.s.Phase, Activity: a}, changed
}

// ready makes the session ready for commands.
func (t *tracker) ready(now time.Time, sessionFile string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.s.Ready, t.s.SessionFile = &now, sessionFile
	t.activity()
}
