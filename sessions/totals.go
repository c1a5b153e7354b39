package sessions

import (
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// Usage is what models were used for, in tokens and in what Pi reckons as their price.
type Usage struct {
	Input      int64   `json:"input"`
	Output     int64   `json:"output"`
	CacheRead  int64   `json:"cacheRead"`
	CacheWrite int64   `json:"cacheWrite"`
	Cost       float64 `json:"cost"`
}

// Total is the number of all tokens, as Pi counts them.
func (u Usage) Total() int64 { return u.Input + u.Output + u.CacheRead + u.CacheWrite }

func (u *Usage) add(v gjson.Result) {
	number := func(path string) gjson.Result {
		if n := v.Get(path); n.Type == gjson.Number {
			return n
		}
		return gjson.Result{}
	}
	u.Input += number("input").Int()
	u.Output += number("output").Int()
	u.CacheRead += number("cacheRead").Int()
	u.CacheWrite += number("cacheWrite").Int()
	u.Cost += number("cost.total").Float()
}

// ModelUse is what one model answered.
type ModelUse struct {
	Provider string `json:"provider"`
	ModelID  string `json:"modelId"`
	Answers  int    `json:"answers"`
	Usage    Usage  `json:"usage"`
}

// Counts are what a whole file has, its branches included.
type Counts struct {
	Messages    int `json:"messages"` // of every role
	User        int `json:"user"`
	Assistant   int `json:"assistant"`
	ToolCalls   int `json:"toolCalls"`
	ToolResults int `json:"toolResults"`
	Compactions int `json:"compactions"`
	Branches    int `json:"branches"` // the ends of all ways through the tree
}

// totals are summed up while the file is read, so that no body is read twice for them.
type totals struct {
	counts    Counts
	usage     Usage
	models    []ModelUse
	model     map[string]int
	name      string
	firstUser int // the entry, or -1
	activity  time.Time
}

func newTotals() totals { return totals{firstUser: -1, model: map[string]int{}} }

// maxModels is more than anybody uses in one file; what is beyond counts as the last one.
const maxModels = 256

func (t *totals) answered(provider, model string, usage gjson.Result) {
	name := key(provider + "/" + model)
	i, ok := t.model[name]
	if !ok {
		if i = len(t.models); i >= maxModels {
			i = maxModels - 1
		} else {
			t.models = append(t.models, ModelUse{Provider: key(provider), ModelID: key(model)})
			t.model[name] = i
		}
	}
	t.models[i].Answers++
	t.models[i].Usage.add(usage)
}

// body takes from an entry what is kept of it.
func (f *File) body(e *Entry, r record) {
	switch e.Type {
	case TypeMessage:
		f.message(e, r)
	case TypeSessionInfo:
		f.totals.name = strings.Clone(cut(strings.TrimSpace(r.name.Str), infoText))
	case TypeLabel:
		target := idOf(r.target)
		if r.label.Str == "" {
			delete(f.labels, target)
		} else {
			f.labels[target] = key(r.label.Str)
		}
	case TypeCompaction, TypeBranchSummary:
		f.totals.usage.add(r.usage)
		if e.Type == TypeCompaction {
			f.totals.counts.Compactions++
		}
	case TypeCustomMessage:
		e.images = hasImages(r.content)
	}
}

func (f *File) message(e *Entry, r record) {
	if !r.message.IsObject() {
		// Pi looks for the role of what isn't there.
		if r.message.Type == gjson.Null {
			f.note(Problem{Line: e.Line, Severity: Fatal, kind: "no message", Text: "a message entry without a message: Pi dies of it"})
		} else {
			f.note(Problem{Line: e.Line, Severity: Note, kind: "odd message", Text: "a message that is no JSON object"})
		}
		return
	}
	t := &f.totals
	t.counts.Messages++
	m := r.message
	e.Role = f.word(m.Get("role").Str)
	if e.Role == "hookMessage" { // its name until version 2
		e.Role = RoleCustom
	}
	content := m.Get("content")
	e.images = hasImages(content)
	switch e.Role {
	case RoleUser:
		t.counts.User++
		if t.firstUser < 0 && hasText(content) {
			t.firstUser = e.Index
		}
	case RoleAssistant:
		t.counts.Assistant++
		usage := m.Get("usage")
		if !usage.Get("cost").IsObject() {
			f.late.add(Problem{Line: e.Line, Severity: Note, kind: "no usage", Text: "an answer that doesn't say what it used: Pi can't sum up the session"})
		}
		t.usage.add(usage)
		t.answered(m.Get("provider").Str, m.Get("model").Str, usage)
		f.toolCalls(e, content)
	case RoleToolResult:
		t.counts.ToolResults++
		t.usage.add(m.Get("usage"))
		e.call, e.failed = key(m.Get("toolCallId").Str), m.Get("isError").Bool()
	}
	f.active(*e, m.Get("timestamp"), content.Exists())
}

func (f *File) toolCalls(e *Entry, content gjson.Result) {
	if !content.IsArray() {
		return
	}
	var ids []string
	content.ForEach(func(_, block gjson.Result) bool {
		if block.Get("type").Str == "toolCall" {
			ids = append(ids, key(block.Get("id").Str))
		}
		return true
	})
	if len(ids) > 0 {
		f.callsOf[e.Index] = ids
		f.totals.counts.ToolCalls += len(ids)
	}
}

// active moves the time of the last activity as Pi does: by what the user and the model
// said.
func (f *File) active(e Entry, stamp gjson.Result, hasContent bool) {
	if !hasContent || e.Role != RoleUser && e.Role != RoleAssistant {
		return
	}
	at := e.Time
	if stamp.Type == gjson.Number {
		at = time.UnixMilli(stamp.Int()).UTC()
	}
	if at.After(f.totals.activity) {
		f.totals.activity = at
	}
}

func hasImages(content gjson.Result) bool {
	found := false
	if content.IsArray() {
		content.ForEach(func(_, block gjson.Result) bool {
			found = block.Get("type").Str == "image"
			return !found
		})
	}
	return found
}

func hasText(content gjson.Result) bool { return messageText(content, 1) != "" }

// messageText joins the text of a message's blocks as Pi does for its lists, or takes the
// text that it is. It stops when it has enough.
func messageText(content gjson.Result, enough int) string {
	if content.Type == gjson.String {
		return content.Str
	}
	if !content.IsArray() {
		return ""
	}
	var b strings.Builder
	first := true
	content.ForEach(func(_, block gjson.Result) bool {
		if block.Get("type").Str != "text" {
			return true
		}
		if !first {
			b.WriteByte(' ')
		}
		first = false
		b.WriteString(block.Get("text").Str)
		return b.Len() < enough
	})
	return b.String()
}
