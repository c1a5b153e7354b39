package catalog

import (
	"bytes"
	"strconv"
	"strings"
	"time"
)

// previewRaw bounds what is kept of a text's JSON for its preview: previewRunes of the longest escapes, with some space.
const previewRaw = 8 << 10

// facts gathers what a list shows, from lines in the file's order.
type facts struct {
	header   header
	headed   bool // a first entry was read
	messages int
	bytes    int64 // of the lines seen, for the estimate

	name   string
	named  bool // the last session_info gave a name
	prompt []byte
	last   []byte
	model  []byte
	level  string
	active int64 // Unix milliseconds, 0 when unknown
	spoke  bool  // a message of user or model was seen since this was reset
	begun  bool  // the first prompt, if there is any, was before the lines that come
}

// header is the first entry of a file.
type header struct {
	entryType, id, cwd, parent string
	version                    int
	hasID                      bool
	created                    time.Time
}

// message is the part of an entry's message that facts need; texts are quoted JSON.
type message struct {
	role, provider, model []byte
	timestamp             int64
	hasTimestamp          bool
	hasContent            bool
	text                  []byte // raw JSON strings' insides, joined by a space
}

// line takes one line in. A line that isn't a JSON object changes nothing, as in Pi.
func (f *facts) line(b []byte) {
	f.bytes += int64(len(b)) + 1
	var e entry
	if e.read(b) {
		f.entry(&e)
	}
}

// partial takes in the beginning of a line that is too long to be read whole.
func (f *facts) partial(b []byte) {
	var e entry
	e.read(b)
	if f.headed && string(e.typ) == "message" && string(e.msg.role) == "user" && len(f.prompt) == 0 && !blank(e.msg.text) {
		f.prompt = bytes.Clone(e.msg.text[:min(len(e.msg.text), previewRaw)])
	}
}

// entry is one line of a session file, as far as a list needs it. Its texts point into the line.
type entry struct {
	typ, id, timestamp           []byte
	cwd, parent                  []byte
	name, provider, model, level []byte
	hasID                        bool
	version                      int
	msg                          message
}

func (e *entry) read(b []byte) bool {
	c := cursor{b: b}
	ok := c.object(func(key []byte) bool {
		switch string(key) {
		case "type":
			return c.text(&e.typ)
		case "id":
			e.hasID = c.peek() == '"'
			return c.text(&e.id)
		case "timestamp":
			return c.text(&e.timestamp)
		case "message":
			e.msg = message{}
			return e.msg.read(&c)
		case "version":
			return c.number(func(n int64) { e.version = int(n) })
		case "cwd":
			return c.text(&e.cwd)
		case "parentSession":
			return c.text(&e.parent)
		case "name":
			return c.text(&e.name)
		case "provider":
			return c.text(&e.provider)
		case "modelId":
			return c.text(&e.model)
		case "thinkingLevel":
			return c.text(&e.level)
		}
		_, ok := c.value()
		return ok
	})
	return ok && c.end()
}

func (m *message) read(c *cursor) bool {
	if c.peek() != '{' {
		_, ok := c.value()
		return ok
	}
	return c.object(func(key []byte) bool {
		switch string(key) {
		case "role":
			return c.text(&m.role)
		case "provider":
			return c.text(&m.provider)
		case "model":
			return c.text(&m.model)
		case "timestamp":
			return c.number(func(n int64) { m.timestamp, m.hasTimestamp = n, true })
		case "content":
			m.hasContent = true
			m.text = nil
			return m.content(c)
		}
		_, ok := c.value()
		return ok
	})
}

// content reads a text, or a list of blocks of which those of type text count.
func (m *message) content(c *cursor) bool {
	switch c.peek() {
	case '"':
		raw, ok := c.str()
		m.text = raw
		return ok
	case '[':
		return c.array(func() bool {
			if c.peek() != '{' {
				_, ok := c.value()
				return ok
			}
			var kind, text []byte
			ok := c.object(func(key []byte) (ok bool) {
				switch {
				case string(key) == "type":
					return c.text(&kind)
				case string(key) == "text" && c.peek() == '"':
					text, ok = c.str()
					return ok
				}
				_, ok = c.value()
				return ok
			})
			if string(kind) == "text" {
				m.join(text)
			}
			return ok
		})
	}
	_, ok := c.value()
	return ok
}

func (m *message) join(text []byte) {
	switch {
	case len(text) == 0 || len(m.text) > previewRaw:
	case m.text == nil:
		m.text = text
	default:
		joined := make([]byte, 0, len(m.text)+1+min(len(text), previewRaw))
		joined = append(append(joined, m.text...), ' ')
		m.text = append(joined, text[:min(len(text), previewRaw)]...)
	}
}

func (f *facts) entry(e *entry) {
	if !f.headed {
		f.headed = true
		f.header = header{
			entryType: text(e.typ), id: text(e.id), hasID: e.hasID, cwd: text(e.cwd), parent: text(e.parent), version: e.version,
		}
		f.header.created, _ = parseTime(text(e.timestamp))
		return
	}
	switch string(e.typ) {
	case "session_info":
		f.name = preview(e.name)
		f.named = f.name != ""
	case "model_change":
		f.setModel(e.provider, e.model)
	case "thinking_level_change":
		f.level = text(e.level)
	case "message":
		f.messages++
		f.message(e)
	}
}

func (f *facts) message(e *entry) {
	m := &e.msg
	user, assistant := string(m.role) == "user", string(m.role) == "assistant"
	if assistant {
		f.setModel(m.provider, m.model)
	}
	if !user && !assistant || !m.hasContent {
		return
	}
	f.spoke = true
	at := m.timestamp
	if !m.hasTimestamp {
		if t, ok := parseTime(text(e.timestamp)); ok {
			at = t.UnixMilli()
		}
	}
	if at <= lastMilli {
		f.active = max(f.active, at)
	}
	if blank(m.text) {
		return
	}
	short := m.text[:min(len(m.text), previewRaw)]
	f.last = append(f.last[:0], short...)
	if user && len(f.prompt) == 0 && !f.begun {
		f.prompt = bytes.Clone(short)
	}
}

func (f *facts) setModel(provider, id []byte) {
	if len(provider) == 0 && len(id) == 0 {
		return
	}
	f.model = append(append(append(f.model[:0], provider...), '/'), id...)
}

// blank says that a raw text shows nothing: only spaces, raw or escaped.
func blank(raw []byte) bool {
	if len(raw) > 0 && raw[0] > ' ' && raw[0] != '\\' && raw[0] < 0x80 {
		return false
	}
	return preview(unquote(nil, raw[:min(len(raw), previewRaw)])) == ""
}

// broken says why Pi would refuse the file, empty for a session.
func (f *facts) broken(size int64) string {
	switch {
	case size == 0:
		return "the file is empty"
	case !f.headed:
		return "no line is a JSON object"
	case f.header.entryType != "session":
		return "the first entry isn't a session header"
	case !f.header.hasID:
		return "the session header has no id"
	}
	return ""
}

// facts are what an exact record knew after its file's last line.
func (r *record) facts() facts {
	f := facts{
		headed: true, messages: r.Messages, named: r.Named, prompt: quote(r.FirstPrompt), last: quote(r.LastText),
		model: []byte(r.Model), level: r.Thinking, active: r.active, bytes: r.Size,
		header: header{
			entryType: "session", id: r.ID, hasID: true, cwd: r.Cwd, parent: r.ParentSession, version: r.Version,
			created: r.Created,
		},
	}
	if r.Named {
		f.name = r.Title
	}
	return f
}

// quote is a preview as the inside of a JSON string.
func quote(s string) []byte {
	return []byte(strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s))
}

// summary is what the facts say about the file.
func (f *facts) summary(r *record) {
	s := &r.Summary
	r.active = f.active
	if f.headed && f.header.entryType == "session" {
		s.ID, s.Cwd, s.ParentSession = f.header.id, f.header.cwd, f.header.parent
		s.Version, s.Created = max(f.header.version, 1), f.header.created
	}
	s.FirstPrompt = preview(unquote(nil, f.prompt))
	s.LastText = preview(unquote(nil, f.last))
	s.Title, s.Named = s.FirstPrompt, f.named
	if f.named {
		s.Title = f.name
	}
	s.Model = preview(f.model)
	s.Thinking = preview([]byte(f.level))
	s.Messages = f.messages
	switch {
	case f.active > 0:
		s.LastActivity = time.UnixMilli(f.active).UTC()
	case !s.Created.IsZero():
		s.LastActivity = s.Created
	default:
		s.LastActivity = s.ModTime
	}
}

// text reads a string into dst; a value of another kind is skipped.
func (c *cursor) text(dst *[]byte) bool {
	if c.peek() != '"' {
		*dst = nil
		_, ok := c.value()
		return ok
	}
	raw, ok := c.str()
	if bytes.IndexByte(raw, '\\') >= 0 {
		raw = unquote(nil, raw)
	}
	*dst = raw
	return ok
}

// text is a string of its own, in UTF-8.
func text(b []byte) string { return strings.ToValidUTF8(string(b), "\ufffd") }

// number reads a number's whole part; a value of another kind is skipped.
func (c *cursor) number(set func(int64)) bool {
	raw, ok := c.value()
	if !ok {
		return false
	}
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		set(n)
	} else if x, err := strconv.ParseFloat(string(raw), 64); err == nil && x > -1e18 && x < 1e18 {
		set(int64(x))
	}
	return true
}

// lastMilli is the end of the year 9999: later times can't be written down as others can.
const lastMilli = 253402300799999

// parseTime reads the forms of a timestamp that JavaScript writes.
func parseTime(s string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339Nano, s)
	return t.UTC().Truncate(time.Millisecond), err == nil
}
