package catalog

import (
	"bytes"
	"time"
)

// line is an entry as a search sees it: what names it, then its texts.
type line struct {
	typ, id, role, timestamp []byte
	messageTime              int64
	texts                    [][]byte // the insides of JSON strings, in the line's order
}

// read gathers what was said: by user, model, tools, extensions and summaries. Left out are images, signatures, usage, ids, the
// details of tool results, and the copies of messages that a compaction carries. Of an entry of a type that isn't known, every
// string counts. A line that isn't a JSON object has no texts.
func (l *line) read(b []byte) bool {
	*l = line{texts: l.texts[:0]}
	kind := entryType(b)
	c := cursor{b: b}
	ok := c.object(func(key []byte) bool {
		switch string(key) {
		case "type":
			return c.text(&l.typ)
		case "id":
			return c.text(&l.id)
		case "timestamp":
			return c.text(&l.timestamp)
		case "parentId":
			return c.skip()
		}
		switch kind {
		case "message":
			if string(key) == "message" {
				return l.message(&c)
			}
			return c.skip()
		case "custom_message":
			if string(key) == "content" {
				return l.content(&c)
			}
			return c.skip()
		case "compaction", "branch_summary":
			return l.take(&c, key, "summary")
		case "session_info":
			return l.take(&c, key, "name")
		case "label":
			return l.take(&c, key, "label")
		case "session", "model_change", "thinking_level_change":
			return c.skip()
		}
		return l.every(&c)
	})
	return ok && c.end()
}

// entryType is the type of an entry, which other members need not follow.
func entryType(b []byte) string {
	const first = `{"type":"`
	if bytes.HasPrefix(b, []byte(first)) {
		if raw, ok := (&cursor{b: b, i: len(first) - 1}).str(); ok && bytes.IndexByte(raw, '\\') < 0 {
			return string(raw)
		}
	}
	var typ []byte
	c := cursor{b: b}
	c.object(func(key []byte) bool {
		if string(key) == "type" {
			return c.text(&typ)
		}
		return c.skip()
	})
	return string(typ)
}

func (l *line) message(c *cursor) bool {
	if c.peek() != '{' {
		return c.skip()
	}
	return c.object(func(key []byte) bool {
		switch string(key) {
		case "role":
			return c.text(&l.role)
		case "timestamp":
			return c.number(func(n int64) { l.messageTime = n })
		case "content":
			return l.content(c)
		case "command", "output", "summary", "errorMessage":
			return l.take(c, key, string(key))
		}
		return c.skip()
	})
}

// content is a text or a list of blocks.
func (l *line) content(c *cursor) bool {
	switch c.peek() {
	case '"':
		raw, ok := c.str()
		l.texts = append(l.texts, raw)
		return ok
	case '[':
		return c.array(func() bool {
			if c.peek() != '{' {
				return c.skip()
			}
			return l.block(c)
		})
	}
	return c.skip()
}

func (l *line) block(c *cursor) bool {
	start := *c
	raw, ok := c.value()
	if !ok {
		return false
	}
	kind := entryType(raw)
	if kind == "image" {
		return true
	}
	*c = start
	return c.object(func(key []byte) bool {
		switch kind {
		case "text":
			return l.take(c, key, "text")
		case "thinking":
			return l.take(c, key, "thinking")
		case "toolCall":
			if string(key) == "arguments" {
				return l.every(c)
			}
			return l.take(c, key, "name")
		}
		if string(key) == "type" {
			return c.skip()
		}
		return l.every(c)
	})
}

// take reads the value of a member if it is the wanted one's, and a string.
func (l *line) take(c *cursor, key []byte, wanted string) bool {
	if string(key) != wanted || c.peek() != '"' {
		return c.skip()
	}
	raw, ok := c.str()
	l.texts = append(l.texts, raw)
	return ok
}

// every takes every string of a value, however deep. Names of members are none.
func (l *line) every(c *cursor) bool {
	raw, ok := c.value()
	if !ok {
		return false
	}
	in := cursor{b: raw}
	for {
		n := bytes.IndexByte(raw[in.i:], '"')
		if n < 0 {
			return true
		}
		in.i += n
		text, ok := in.str()
		if !ok {
			return false
		}
		if in.peek() != ':' {
			l.texts = append(l.texts, text)
		}
	}
}

func (c *cursor) skip() bool {
	_, ok := c.value()
	return ok
}

// at is when the entry was made, zero when it doesn't say.
func (l *line) at() time.Time {
	if t, ok := parseTime(string(l.timestamp)); ok {
		return t
	}
	if 0 < l.messageTime && l.messageTime <= lastMilli {
		return time.UnixMilli(l.messageTime).UTC()
	}
	return time.Time{}
}
