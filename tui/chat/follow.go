package chat

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"patio/engine/api"
	"patio/engine/journal"
)

// SetSession implements pane.Follower. A snapshot may be older than the records that are
// here already: what those say about the session's state stays then.
func (c *Chat) SetSession(s api.Session) {
	c.t.SetSession(s)
	if !c.seen {
		c.seen, c.firstSeq = true, s.Seq
	}
	if s.Seq < c.s.Seq && !s.Phase.Final() {
		return
	}
	before := c.s
	s.Questions = slices.Clone(s.Questions)
	c.s = s
	if s.Seq < c.stateSeq && !s.Phase.Final() {
		c.s.Phase, c.s.Activity, c.s.Questions, c.s.Model = before.Phase, before.Activity, before.Questions, before.Model
	}
	if before.Phase.Final() && !s.Phase.Final() {
		c.toEditor() // it was resumed
	}
	c.changed("Pi's question is gone: it was answered in another window")
}

// Apply implements pane.Follower.
func (c *Chat) Apply(records []journal.Record) {
	c.t.Apply(records)
	why := ""
	for _, r := range records {
		switch r.Type {
		case api.RecordState:
			if w := c.applyState(r); w != "" {
				why = w
			}
		case api.RecordRPC:
			c.applyRPC(r)
		}
	}
	if why == "" {
		why = "Pi took its question back"
	}
	c.changed(why)
}

// changed follows what the session's state became.
func (c *Chat) changed(why string) {
	if c.s.Phase.Final() {
		c.s.Questions = nil
		if c.focus != focusTranscript {
			c.toTranscript()
		}
		c.picker = nil
	}
	if !c.working() {
		c.since, c.aborting = time.Time{}, false
	}
	c.syncAsks(why)
}

// applyState takes over a change. It returns why a question is gone, if one is.
func (c *Chat) applyState(r journal.Record) (why string) {
	var st api.StateRecord
	if json.Unmarshal(r.Data, &st) != nil {
		return ""
	}
	if st.Activity == api.ActivityWorking || st.Activity == api.ActivityBlocked {
		if c.since.IsZero() {
			c.since = r.Time
		}
	} else {
		c.since = time.Time{}
	}
	if r.Seq <= c.s.Seq {
		return "" // the snapshot has it
	}
	c.stateSeq = r.Seq
	if st.Phase != "" {
		c.s.Phase = st.Phase
	}
	c.s.Activity = st.Activity
	if st.Model != nil {
		c.s.Model = *st.Model
	}
	if st.End != nil {
		c.s.End = st.End
	}
	if st.Error != nil {
		c.s.Error = st.Error
	}
	if st.Answered != "" {
		c.s.Questions = slices.DeleteFunc(c.s.Questions, func(q api.Question) bool { return q.ID == st.Answered })
		why = "Pi's question was answered in another window"
		if st.Reason != "" {
			why = st.Reason
		}
	}
	if st.Question != nil && !slices.ContainsFunc(c.s.Questions, func(q api.Question) bool { return q.ID == st.Question.ID }) {
		c.s.Questions = append(c.s.Questions, *st.Question)
	}
	if st.Activity != api.ActivityBlocked {
		c.s.Questions = nil // a settled agent waits for nothing
	}
	return why
}

// deltas are most of a journal, and nothing here follows them.
var deltas = []byte(`{"direction":"from_pi","line":{"type":"message_update"`)

// applyRPC follows what Pi says.
func (c *Chat) applyRPC(r journal.Record) {
	if bytes.HasPrefix(r.Data, deltas) || gjson.GetBytes(r.Data, "direction").Str != string(api.FromPi) {
		return
	}
	newer := r.Seq > c.s.Seq
	get := func(path string) gjson.Result { return gjson.GetBytes(r.Data, "line."+path) }
	switch get("type").Str {
	case "response":
		switch get("command").Str {
		case "new_session", "switch_session", "fork", "clone":
			// Another runtime of Pi's, with other extensions.
			if r.Seq > c.firstSeq && get("success").Bool() {
				c.known, c.theirs = commandsUnknown, nil
				c.round++
				c.extension = extension{}
				c.complete()
			}
		}
	case "turn_start":
		if newer {
			c.s.Turns++
		}
	case "message_end":
		if newer && get("message.role").Str == "assistant" {
			u := get("message.usage")
			c.s.Tokens.Input += int(u.Get("input").Int())
			c.s.Tokens.Output += int(u.Get("output").Int())
			c.s.Tokens.Context = int(u.Get("totalTokens").Int())
			c.s.CostUSD += u.Get("cost.total").Float()
		}
	case "thinking_level_changed":
		if newer {
			c.s.Model.Thinking = get("level").Str
		}
	case "session_info_changed":
		if newer {
			c.s.Name = get("name").Str
		}
	case "extension_ui_request":
		c.applyUI(r.Seq > c.firstSeq, get)
	}
}

// applyUI follows what an extension shows, and the text it hands to the editor. That is
// taken once, when it comes: a journal that is read again says it again.
func (c *Chat) applyUI(live bool, get func(string) gjson.Result) {
	switch get("method").Str {
	case "set_editor_text":
		if !live || c.o.ReadOnly {
			return
		}
		if !c.ed.empty() {
			c.tell("an extension has a text for you; yours stays")
			return
		}
		c.ed.set(get("text").Str)
		c.arrange()
	case "setStatus":
		c.extension.setStatus(get("statusKey").Str, get("statusText").Str)
	case "setWidget":
		var lines []string
		for _, l := range get("widgetLines").Array() {
			if len(lines) == maxWidget {
				break
			}
			lines = append(lines, clip(l.Str, 4096))
		}
		c.extension.setWidget(get("widgetKey").Str, lines)
	}
}

// Bounds on what extensions show beside the conversation.
const (
	maxShown  = 8
	maxWidget = 3
)

// extension is what Pi's extensions show: short words, and lines.
type extension struct {
	status, widget []shown
}

type shown struct {
	key   string
	lines []string
}

func set(list []shown, key string, lines []string) []shown {
	list = slices.DeleteFunc(list, func(s shown) bool { return s.key == key })
	if len(lines) > 0 && len(list) < maxShown {
		list = append(list, shown{key, lines})
	}
	return list
}

func (e *extension) setStatus(key, text string) {
	var lines []string
	if text != "" {
		lines = []string{clip(text, 4096)}
	}
	e.status = set(e.status, clip(key, 200), lines)
}

func (e *extension) setWidget(key string, lines []string) {
	e.widget = set(e.widget, clip(key, 200), lines)
}

func flat(list []shown) []string {
	var all []string
	for _, s := range list {
		all = append(all, s.lines...)
	}
	return all
}

func (e *extension) words() []string { return flat(e.status) }

func (e *extension) lines() []string { return flat(e.widget) }
