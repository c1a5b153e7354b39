package sessions

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// byteOrderMark starts files that some editors have saved.
const byteOrderMark = "\xef\xbb\xbf"

// What becomes of lines that are no entries.
const (
	leftOut = "a copy leaves it out"
	leftAs  = "the file is left as it is"
	cutOff  = "it is cut off and kept beside the file"
)

// lastWithoutID forbids a resume of a file, and of a copy that leaves out what follows.
const lastWithoutID = "the last entry has no id: Pi would go on without all that came before"

// line takes one line into the index, as Pi would take it.
func (f *File) line(l line) {
	f.lastLine = l.number
	if l.tooLong() {
		f.note(Problem{Line: l.number, Severity: Fatal, kind: "too long", Text: fmt.Sprintf("the line has %d bytes: Pi can't read one of more than %d", l.length, maxLine)})
		return
	}
	text := l.text
	if l.number == 1 && strings.HasPrefix(text, byteOrderMark) {
		f.note(Problem{Line: 1, Severity: Fatal, Fix: FixCopy, Text: "a byte order mark stands before the header: Pi takes the file for none of its own", Action: "a copy has none"})
		text = text[len(byteOrderMark):]
		l.offset += int64(len(byteOrderMark))
	}
	switch {
	case !l.ended:
		f.note(Problem{Line: l.number, Severity: Repairable, Fix: FixTail, Text: "the last line has no line end: what Pi appends would be glued to it", Action: "a whole line gets its line end; a torn one is cut off and kept beside the file"})
	case strings.HasSuffix(text, "\r"):
		f.noteOnce(Problem{Line: l.number, Severity: Note, Fix: FixCopy, Text: "lines end in CR LF", Action: "in a copy they end in LF"})
	}
	if strings.TrimSpace(text) == "" {
		return
	}
	switch kindOf(text) {
	case object:
		f.object(l, text)
	case truthy:
		f.notEntry(l, text)
	case falsy, malformed:
		f.passedOver(l, text)
	}
}

// passedOver is a line that Pi doesn't see.
func (f *File) passedOver(l line, text string) {
	p := Problem{Line: l.number, Severity: Note, Fix: FixCopy, kind: "no object", Text: "not a JSON object: it is passed over", Action: leftOut}
	switch {
	case !l.ended:
		p.Severity, p.Fix, p.Action = Repairable, FixTail, cutOff
	default:
		if entry, how := salvage(text); entry != "" {
			p.kind, p.Text, p.Action = "lost entry", "not a JSON object: Pi passes over the entry in it", "a copy saves the entry: "+how
		}
	}
	f.note(p)
}

// notEntry is a line that is JSON but no object. Pi takes it for an entry that has
// neither id nor type.
func (f *File) notEntry(l line, text string) {
	p := Problem{Line: l.number, Severity: Note, Fix: FixCopy, kind: "no object", Text: "not a JSON object: it is passed over", Action: leftOut}
	array := strings.HasPrefix(strings.Trim(text, spaces), "[")
	switch {
	case !l.ended:
		p.Severity, p.Fix, p.Action = Repairable, FixTail, cutOff
	case !f.hasHead:
		f.headless(l.number)
	case f.header.Version >= 2:
		f.lost = "the last line is no JSON object: Pi would go on without all that came before"
	case array:
		p.Severity, p.kind, p.Text = Fatal, "chain", "not a JSON object: in a file of version 1 Pi would lose what came before"
	default:
		p.Severity, p.kind, p.Text = Fatal, "dies", "not a JSON object: Pi dies of it in a file of version 1"
	}
	f.note(p)
}

func (f *File) headless(number int) {
	f.noteOnce(Problem{Line: number, Severity: Fatal, Text: "no header comes first: this isn't a session of Pi's", Action: leftAs})
}

func (f *File) object(l line, text string) {
	if !utf8.ValidString(text) {
		f.note(Problem{Line: l.number, Severity: Note, Fix: FixCopy, kind: "UTF-8", Text: "it isn't UTF-8: Pi has a replacement for what it can't read", Action: "a copy has the replacement"})
	}
	if tooDeep(text) {
		p := Problem{Line: l.number, Severity: Note, kind: "too deep", Text: fmt.Sprintf("it nests deeper than %d levels: Pi can't show its tree", maxDepth)}
		if f.hasHead && f.header.Version < Version {
			p.Severity, p.Text = Fatal, fmt.Sprintf("it nests deeper than %d levels: Pi loses the file when it makes it one of version %d", maxDepth, Version)
		}
		f.note(p)
	}
	r := parseRecord(text)
	if r.typ.Str == "session" {
		f.head(l.number, r)
		return
	}
	if !f.hasHead {
		f.headless(l.number)
	}
	e := Entry{Index: len(f.entries), Line: l.number, Offset: l.offset, Length: len(text), Type: f.word(r.typ.Str), ID: idOf(r.id), ParentID: idOf(r.parent), Time: parseTime(r.timestamp)}
	f.lost = ""
	if f.hasHead && f.header.Version < 2 {
		// Without ids the order of lines is the tree; Pi gives ids of its own.
		e.ID, e.ParentID = fmt.Sprintf("line-%d", e.Line), ""
		if n := len(f.entries); n > 0 {
			e.ParentID = f.entries[n-1].ID
		}
	}
	f.body(&e, r)
	switch first, twice := f.byID[e.ID]; {
	case e.ID == "":
		f.note(Problem{Line: l.number, Severity: Note, kind: "no id", Text: "an entry without an id: Pi can't go on from it"})
		f.lost = lastWithoutID
	case twice:
		p := Problem{Line: l.number, Severity: Fatal, kind: "twice", Text: fmt.Sprintf("the id %q is also that of line %d", e.ID, f.entries[first].Line)}
		if f.sameLine(f.entries[first], text) {
			p.Fix, p.Action, p.kind = FixCopy, "a copy has the same line once", "same"
		}
		f.note(p)
		f.byID[e.ID] = e.Index
	default:
		f.byID[e.ID] = e.Index
	}
	f.entries = append(f.entries, e)
}

func (f *File) head(number int, r record) {
	if f.hasHead {
		f.note(Problem{Line: number, Severity: Note, Fix: FixCopy, kind: "header", Text: "a second header: it is passed over", Action: leftOut})
		return
	}
	f.hasHead, f.header = true, r.header()
	if !r.isHeader() {
		f.note(Problem{Line: number, Severity: Fatal, Text: "the header has no id: Pi takes the file for none of its own", Action: leftAs})
	}
	if f.header.Version > Version {
		f.note(Problem{Line: number, Severity: Note, Text: fmt.Sprintf("version %d is newer than %d: it is shown as far as it is understood", f.header.Version, Version)})
	}
}

func (f *File) sameLine(e Entry, text string) bool {
	if e.Length != len(text) {
		return false
	}
	before, err := f.text(e)
	return err == nil && before == text
}

// maxWords bounds how many types and roles are kept once; Pi has a dozen.
const maxWords = 1000

// word keeps one copy of a text that many entries have.
func (f *File) word(s string) string {
	if w, ok := f.words[s]; ok {
		return w
	}
	w := key(s)
	if len(f.words) < maxWords {
		f.words[w] = w
	}
	return w
}
