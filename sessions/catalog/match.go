package catalog

import (
	"bytes"
	"encoding/json"
	"time"
	"unicode"
	"unicode/utf8"
)

// Match is an entry of a session in which the query was found.
type Match struct {
	Session Summary   `json:"session"`
	Line    int       `json:"line"`            // from 1
	EntryID string    `json:"entry,omitempty"` // empty in files of version 1
	Type    string    `json:"type"`
	Role    string    `json:"role,omitempty"` // of a message
	Time    time.Time `json:"time"`           // zero when the entry doesn't say
	Hits    int       `json:"hits"`           // in the whole entry

	// Snippet is one line around the first hit, without control characters. The hit is the bytes from Start to End.
	Snippet string `json:"snippet"`
	Start   int    `json:"start"`
	End     int    `json:"end"`
}

// matcher looks for a pattern in one line after another.
type matcher struct {
	pattern *pattern
	line    line
	decoded []byte
}

// match returns the match of a line, without its session. Lines that Pi couldn't read have none.
func (m *matcher) match(b []byte) (Match, bool) {
	if !m.line.read(b) {
		return Match{}, false
	}
	var found Match
	for _, raw := range m.line.texts {
		text := raw
		if bytes.IndexByte(raw, '\\') >= 0 || !utf8.Valid(raw) {
			m.decoded = unquote(m.decoded[:0], raw)
			text = m.decoded
		}
		start, end, hits := m.pattern.find(text)
		if hits == 0 {
			continue
		}
		if found.Hits == 0 {
			found.Snippet, found.Start, found.End = snippet(text, start, end)
		}
		found.Hits += hits
	}
	if found.Hits == 0 || !json.Valid(b) {
		return Match{}, false
	}
	found.EntryID, found.Time = text(m.line.id), m.line.at()
	found.Type, found.Role = preview(m.line.typ), preview(m.line.role)
	return found, true
}

const (
	snippetBefore = 60  // bytes of context before a hit, about
	snippetAfter  = 120 // and after it
	snippetHit    = 240 // of the hit itself
)

// snippet makes one displayable line of what is around a hit, and says where the hit is in it.
func snippet(text []byte, start, end int) (line string, from, to int) {
	end = min(end, boundary(text, start+snippetHit))
	first, last := boundary(text, start-snippetBefore), boundary(text, end+snippetAfter)
	var out []byte
	if first > 0 {
		out = append(out, "…"...)
	}
	out = flatten(out, text[first:start])
	from = len(out)
	out = flatten(out, text[start:end])
	to = len(out)
	out = flatten(out, text[end:last])
	if last < len(text) {
		out = append(out, "…"...)
	}
	return string(out), from, to
}

// flatten appends text with a space for everything that isn't displayable in a line.
func flatten(dst, text []byte) []byte {
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		text = text[n:]
		if unicode.IsSpace(r) || !displayable(r) {
			r = ' '
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

// boundary is the nearest beginning of a character at or after an offset, within the text.
func boundary(text []byte, i int) int {
	i = min(max(i, 0), len(text))
	for i < len(text) && !utf8.RuneStart(text[i]) {
		i++
	}
	return i
}
