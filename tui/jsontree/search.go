package jsontree

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
)

// maxHits bounds what a search keeps.
const maxHits = 10_000

// foundMsg is what a search found.
type foundMsg struct {
	tree   *Tree
	search int
	hits   []int
	more   bool
}

func (t *Tree) typed(msg tea.KeyPressMsg) tea.Cmd {
	switch msg.String() {
	case "esc":
		t.leaveSearch()
		return nil
	case "enter":
		t.typing = false
		t.input.Blur()
		t.query = t.input.Value()
		t.hits, t.hit, t.more = nil, 0, false
		t.search++
		if t.query == "" {
			return nil
		}
		t.waiting = true
		raw, query, search := t.doc.raw, t.query, t.search
		if t.doc.json {
			query = Quoted(query)
		}
		return func() tea.Msg {
			hits, more := Find(raw, query, maxHits)
			return foundMsg{t, search, hits, more}
		}
	}
	var cmd tea.Cmd
	t.input, cmd = t.input.Update(msg)
	return cmd
}

// Quoted is how text stands in JSON's source.
func Quoted(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(s) != nil {
		return s
	}
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(b.String()), `"`), `"`)
}

// Find gives the offsets at which text is, whatever its case, at most limit of them.
func Find(raw []byte, text string, limit int) (hits []int, more bool) {
	if text == "" {
		return nil, false
	}
	m := NewMatcher(text)
	for at := 0; at < len(raw); {
		i := m.Index(raw[at:])
		if i < 0 {
			return hits, false
		}
		if len(hits) == limit {
			return hits, true
		}
		hits = append(hits, at+i)
		at += i + len(text)
	}
	return hits, false
}

// Matcher looks for a text in bytes, whatever its case.
type Matcher struct {
	lower, upper []byte // of the text; equally long
	first        [2]byte
}

// NewMatcher makes the matcher of a text.
func NewMatcher(text string) *Matcher {
	var lower, upper []byte
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		l, u := []byte(text[:size]), []byte(text[:size])
		// Only letters whose cases are equally long are folded: all of Latin, Greek and
		// Cyrillic but a handful.
		if a, b := string(unicode.ToLower(r)), string(unicode.ToUpper(r)); r != utf8.RuneError && len(a) == size && len(b) == size {
			l, u = []byte(a), []byte(b)
		}
		lower, upper = append(lower, l...), append(upper, u...)
		text = text[size:]
	}
	m := &Matcher{lower: lower, upper: upper}
	if len(lower) > 0 {
		m.first = [2]byte{lower[0], upper[0]}
	}
	return m
}

// Index is the first place of the text, or -1. An empty text is everywhere.
func (m *Matcher) Index(b []byte) int {
	if len(m.lower) == 0 {
		return 0
	}
	// Each case of the first byte is looked for as the machine does it best; the one that
	// isn't there isn't looked for again.
	low, up := -1, -1
	for at := 0; at+len(m.lower) <= len(b); at++ {
		if low < at {
			low = place(b, m.first[0], at)
		}
		if m.first[1] == m.first[0] {
			up = low
		} else if up < at {
			up = place(b, m.first[1], at)
		}
		at = min(low, up)
		if at+len(m.lower) > len(b) {
			return -1
		}
		if m.at(b[at:]) {
			return at
		}
	}
	return -1
}

func place(b []byte, c byte, at int) int {
	if i := bytes.IndexByte(b[at:], c); i >= 0 {
		return at + i
	}
	return len(b)
}

func (m *Matcher) at(b []byte) bool {
	for i := range m.lower {
		if b[i] != m.lower[i] && b[i] != m.upper[i] {
			return false
		}
	}
	return true
}

func (t *Tree) found(msg foundMsg) tea.Cmd {
	if msg.tree != t || msg.search != t.search {
		return nil
	}
	t.waiting = false
	t.hits, t.more = msg.hits, msg.more
	if len(t.hits) == 0 {
		return nil
	}
	// The first one after the cursor, around the end if there is none.
	t.hit = 0
	at := t.rows[t.cursor].n.from
	for i, h := range t.hits {
		if h >= at {
			t.hit = i
			break
		}
	}
	return t.reveal(t.hits[t.hit])
}

func (t *Tree) jump(n int) tea.Cmd {
	if len(t.hits) == 0 {
		if t.query == "" {
			t.note = "nothing is searched for: / begins a search"
		}
		return nil
	}
	t.hit = (t.hit + n + len(t.hits)) % len(t.hits)
	return t.reveal(t.hits[t.hit])
}

// reveal unfolds what holds an offset of the source and goes there.
func (t *Tree) reveal(at int) tea.Cmd {
	raw := t.doc.raw
	if t.doc.made > maxNodes {
		t.doc.made -= t.doc.root.prune()
	}
	n, budget := t.doc.root, maxPassed
	for n.container() {
		if !n.scanned && n.to-n.from <= maxScan {
			budget -= n.to - n.from
		}
		if budget < 0 {
			t.note = "the match is deeper than can be unfolded at once"
			break
		}
		if cmd := t.look(n, at); cmd != nil {
			return cmd
		}
		inside := n.holding(at)
		if inside == nil {
			break
		}
		n.open = true
		n = inside
		if at < n.keyTo {
			break // the name is what was found
		}
	}
	text := header
	if n.stringLike() && n.openable(raw) && at >= n.from {
		n.open = true
		if e := n.excerpt; e == nil || at < e.from || at+len(t.query) > e.to {
			n.show(raw, n.around(raw, at), 0) // layout breaks it anew
		}
		t.layout()
		e := n.excerpt
		decoded := len(n.decode(raw, e.from, max(min(at, e.to), e.from)))
		text = 0
		for i, s := range e.starts {
			if s <= decoded {
				text = i
			}
		}
	} else {
		t.layout()
	}
	if i := t.find(n, text); i >= 0 {
		t.cursor = i
	}
	t.clamp()
	// Not at the very edge: what stands around a match tells what it is.
	if t.body() > 6 {
		t.top = max(min(t.cursor-t.body()/3, len(t.rows)-t.body()), 0)
	}
	return nil
}
