package transcript

import (
	"bytes"
	"hash/maphash"
	"slices"
	"strings"
	"unicode/utf8"

	"patio/tui/figure"
)

// What is kept of one text: its head and its tail. What is between them is in the journal.
const (
	keepHead = 48 << 10
	keepTail = 16 << 10
)

// Parts are drawn one at a time, and the last one of a text that grows is drawn anew at
// each frame: their sizes bound what a frame costs. Colouring code costs most.
const (
	maxPart  = 2 << 10
	maxTable = 2 << 10
	maxCode  = 900
)

// partKind is how a part is drawn.
type partKind int

const (
	partPlain partKind = iota
	partMarkdown
	partCode
	partGap // what was left out
)

// part is a piece of a text that can be drawn without its neighbours.
type part struct {
	kind partKind
	text string
	lang string // partCode
	// tight: no blank line belongs between the part before and this one.
	tight bool
	again int // how much of text repeats what is in the part before: a table's head
	left  int // partGap: bytes
	seg   segment
	// ready is what the lines that can't change any more look like, while the part grows.
	ready ready
}

// ready are lines that were drawn, and what of.
type ready struct {
	source  string
	drawing int
	lines   []string
	rough   bool
}

// flow is a text that may grow, in parts. Of a Markdown text a part is some paragraphs or
// a fenced code block; of others it is some lines. All but the last are final.
type flow struct {
	markdown bool
	parts    []*part
	buf      []byte // text of the last part while it grows
	seen     int    // how much of buf was split into lines
	hash     maphash.Hash

	size, lines, words int // of the whole text
	kept               int // bytes in parts
	head               int // how many parts are before the gap, once there is one
	inWord             bool

	fence  string // that closes the code block we are in, "" outside
	nested bool   // the code block is inside of a list or a quote
	blank  bool   // the line before is blank
	table  bool
}

var seed = maphash.MakeSeed()

func newFlow(markdown bool) *flow {
	f := &flow{markdown: markdown}
	f.hash.SetSeed(seed)
	return f
}

// flowOf makes the flow of a text that is whole.
func flowOf(text string, markdown bool) *flow {
	f := newFlow(markdown)
	if len(text) <= 4*(keepHead+keepTail) {
		f.add(text)
		f.end()
		return f
	}
	// Splitting all of it would take long, to keep a little.
	head, tail := cutBack(text[:keepHead]), cutFront(text[len(text)-keepTail:])
	f.add(head)
	f.end()
	f.fence, f.nested = "", false
	left := text[len(head) : len(text)-len(tail)]
	f.count(left)
	f.parts = append(f.parts, &part{kind: partGap, left: len(left)})
	f.head = len(f.parts)
	f.add(tail)
	f.end()
	f.hash.Reset()
	_, _ = f.hash.WriteString(text)
	return f
}

// cutBack takes a broken character, or all after the last line end, from the end.
func cutBack(s string) string {
	if i := strings.LastIndexByte(s, '\n'); i > len(s)/2 {
		return s[:i+1]
	}
	for i := 0; i < utf8.UTFMax && len(s) > 0; i++ {
		if r, size := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || size > 1 {
			break
		}
		s = s[:len(s)-1]
	}
	return s
}

// cutFront is cutBack at the other end.
func cutFront(s string) string {
	if i := strings.IndexByte(s, '\n'); i >= 0 && i < len(s)/2 {
		return s[i+1:]
	}
	for i := 0; i < utf8.UTFMax && len(s) > 0 && !utf8.RuneStart(s[0]); i++ {
		s = s[1:]
	}
	return s
}

// same reports whether the flow has been given exactly this text.
func (f *flow) same(text string) bool {
	return len(text) == f.size && maphash.String(seed, text) == f.hash.Sum64()
}

func (f *flow) count(s string) {
	f.size += len(s)
	f.lines += strings.Count(s, "\n")
	for i := range len(s) {
		space := s[i] <= ' '
		if !space && !f.inWord {
			f.words++
		}
		f.inWord = !space
	}
}

// add appends to the text.
func (f *flow) add(s string) {
	if s == "" {
		return
	}
	f.count(s)
	_, _ = f.hash.WriteString(s)
	for s != "" {
		// In pieces, for what is behind a part's end is moved at each.
		n := min(len(s), 2*maxPart)
		f.buf = append(f.buf, s[:n]...)
		s = s[n:]
		for {
			i := bytes.IndexByte(f.buf[f.seen:], '\n')
			if i < 0 {
				break
			}
			f.line(f.seen, f.seen+i+1)
		}
		for len(f.buf)-f.seen > maxPart {
			f.breakLine()
		}
		if len(f.buf) > 0 {
			f.open()
		}
		f.bound()
	}
}

// breakLine ends the part in the middle of a line that is too long for one.
func (f *flow) breakLine() {
	kind, lang := f.open().kind, f.open().lang
	at := f.seen + maxPart
	if i := strings.LastIndexByte(string(f.buf[f.seen:at]), ' '); i > maxPart/2 {
		at = f.seen + i + 1
	}
	for i := 0; i < utf8.UTFMax && at > 1 && !utf8.RuneStart(f.buf[at]); i++ {
		at--
	}
	f.freeze(at)
	p := f.open()
	p.kind, p.lang, p.tight = kind, lang, true
}

// line takes the line buf[start:end], with its line end, into account. It may end the
// part before the line or after it.
func (f *flow) line(start, end int) {
	if !f.markdown {
		f.seen = end
		if end > maxPart {
			f.freeze(end)
			f.open().tight = true
		}
		return
	}
	text := strings.TrimRight(string(f.buf[start:end]), "\r\n")
	trimmed := strings.TrimLeft(text, " \t")
	if f.fence != "" {
		f.code(start, end, trimmed)
		return
	}
	mark, lang := fenceOf(trimmed)
	if mark == "" {
		// A fence can begin on the line of a list's item.
		if _, rest, ok := strings.Cut(trimmed, " "); ok {
			if m, _ := fenceOf(strings.TrimLeft(rest, " ")); m != "" && isMarker(trimmed) {
				f.fence, f.nested = m, true
			}
		}
	}
	switch column := len(text) - len(trimmed); {
	case mark != "" && column == 0:
		f.freeze(start)
		f.drop(end - start)
		f.fence, f.nested = mark, false
		p := f.open()
		p.kind, p.lang, p.tight = partCode, lang, false
		f.blank, f.table = false, false
		return
	case mark != "":
		f.fence, f.nested = mark, true
	case trimmed == "":
		f.blank = true
		f.table = false
		f.seen = end
		return
	case column == 0 && f.blank:
		f.freeze(start)
		end -= start
	case column == 0 && start > maxPart && !strings.HasPrefix(trimmed, "|"), start > maxTable && f.fence == "":
		f.split(start, &end)
	}
	f.table = strings.HasPrefix(trimmed, "|")
	f.blank = false
	f.seen = end
}

// split ends the part before a line though nothing ends there. The rest of a table gets
// the table's head again.
func (f *flow) split(start int, end *int) {
	var head string
	if f.table {
		if lines := strings.SplitN(string(f.buf[:start]), "\n", 3); len(lines) == 3 && strings.HasPrefix(lines[0], "|") && strings.HasPrefix(lines[1], "|") {
			head = lines[0] + "\n" + lines[1] + "\n"
		}
	}
	f.freeze(start)
	p := f.open()
	p.tight = true
	if head != "" && len(head) < maxPart/2 {
		p.again = len(head)
		f.buf = append([]byte(head), f.buf...)
		*end += len(head)
	}
	*end -= start
}

// code takes a line inside of a code block into account.
func (f *flow) code(start, end int, trimmed string) {
	closes := strings.HasPrefix(trimmed, f.fence) && strings.Trim(trimmed, f.fence[:1]+" \t") == ""
	if f.nested {
		if closes {
			f.fence, f.nested = "", false
		}
		f.seen = end
		if end > 4*maxPart {
			// Its code goes on as a block of its own.
			f.freeze(end)
			p := f.open()
			p.tight = true
			if f.fence != "" {
				p.kind, f.nested = partCode, false
			}
		}
		return
	}
	if closes {
		f.freeze(start)
		f.drop(end - start)
		f.fence = ""
		f.open().kind = partMarkdown
		return
	}
	f.seen = end
	if end > maxCode || end > maxCode/2 && trimmed == "" {
		lang := f.open().lang
		f.freeze(end)
		p := f.open()
		p.kind, p.lang, p.tight = partCode, lang, true
	}
}

// fenceOf is the mark of a line that opens a code block, and the language.
func fenceOf(trimmed string) (mark, lang string) {
	if !strings.HasPrefix(trimmed, "```") && !strings.HasPrefix(trimmed, "~~~") {
		return "", ""
	}
	rest := strings.TrimLeft(trimmed, trimmed[:1])
	mark = trimmed[:len(trimmed)-len(rest)]
	if mark[0] == '`' && strings.Contains(rest, "`") {
		return "", ""
	}
	lang, _, _ = strings.Cut(strings.TrimSpace(rest), " ")
	return mark, lang
}

// isMarker says that a line begins with the marker of a list's item.
func isMarker(line string) bool {
	marker, _, _ := strings.Cut(line, " ")
	switch {
	case marker == "-", marker == "*", marker == "+":
		return true
	case len(marker) < 2 || len(marker) > 10:
		return false
	}
	digits, end := marker[:len(marker)-1], marker[len(marker)-1]
	return strings.Trim(digits, "0123456789") == "" && (end == '.' || end == ')')
}

// open is the part that grows.
func (f *flow) open() *part {
	if n := len(f.parts); n > 0 && f.parts[n-1].text == "" && f.parts[n-1].kind != partGap {
		return f.parts[n-1]
	}
	kind := partPlain
	if f.markdown {
		kind = partMarkdown
	}
	p := &part{kind: kind}
	f.parts = append(f.parts, p)
	return p
}

// freeze ends the part that grows at an offset of buf; the rest is for the next one.
func (f *flow) freeze(at int) {
	text := string(f.buf[:at])
	f.drop(at)
	p := f.open()
	if p.kind == partMarkdown && strings.TrimSpace(text) == "" {
		return
	}
	p.text = text
	p.seg.stale()
	f.kept += len(text)
	f.blank = false
}

// drop takes bytes from the beginning of buf.
func (f *flow) drop(n int) {
	rest := copy(f.buf, f.buf[n:])
	f.buf = f.buf[:rest]
	f.seen = max(f.seen-n, 0)
}

// bound leaves out what is too much, in the middle.
func (f *flow) bound() {
	for f.kept > keepHead+keepTail {
		if f.head == 0 {
			n := 0
			for f.head < len(f.parts)-1 && n < keepHead {
				n += len(f.parts[f.head].text)
				f.head++
			}
			f.parts = slices.Insert(f.parts, f.head, &part{kind: partGap})
			f.head++
		}
		if f.head >= len(f.parts)-1 {
			return
		}
		gone := f.parts[f.head]
		gap := f.parts[f.head-1]
		gap.left += len(gone.text)
		gap.seg.stale()
		f.kept -= len(gone.text)
		f.parts = slices.Delete(f.parts, f.head, f.head+1)
	}
}

// end says that nothing more comes.
func (f *flow) end() {
	if f.seen < len(f.buf) {
		f.line(f.seen, len(f.buf))
	}
	if len(f.buf) == 0 {
		if n := len(f.parts); n > 0 && f.parts[n-1].text == "" && f.parts[n-1].kind != partGap {
			f.parts = f.parts[:n-1]
		}
		f.buf = nil
		return
	}
	f.freeze(len(f.buf))
	f.buf = nil
	if n := len(f.parts); n > 0 && f.parts[n-1].text == "" && f.parts[n-1].kind != partGap {
		f.parts = f.parts[:n-1]
	}
}

// source is the text of a part, be it the one that grows.
func (f *flow) source(p *part) string {
	if p.text == "" && p.kind != partGap && len(f.parts) > 0 && f.parts[len(f.parts)-1] == p {
		return string(f.buf)
	}
	return p.text
}

// all is the text as far as it is kept.
func (f *flow) all() string {
	var b strings.Builder
	for i, p := range f.parts {
		switch p.kind {
		case partGap:
			b.WriteString("\n[… " + figure.Size(int64(p.left)) + " left out …]\n")
		case partCode:
			if i == 0 || f.parts[i-1].kind != partCode || !p.tight {
				b.WriteString("```" + p.lang + "\n")
			}
			text := f.source(p)
			b.WriteString(text)
			if i+1 == len(f.parts) || f.parts[i+1].kind != partCode || !f.parts[i+1].tight {
				if text != "" && !strings.HasSuffix(text, "\n") {
					b.WriteByte('\n')
				}
				b.WriteString("```\n")
			}
		case partPlain, partMarkdown:
			b.WriteString(f.source(p)[p.again:])
		}
	}
	return b.String()
}
