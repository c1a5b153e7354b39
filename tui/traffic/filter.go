package traffic

import (
	"encoding/json"
	"slices"
	"strings"

	"patio/tui/jsontree"
)

// filter says which lines are shown.
type filter struct {
	text    string
	invert  bool
	classes uint16 // a bit for each
	way     way
	deep    bool // the lines themselves are searched, not their summaries alone
}

// usual is what is on at first: all but the figures of every second.
const usual = 1<<classes - 1 - 1<<classStats

// parse takes what was typed: a leading ! inverts.
func (f *filter) parse(typed string) {
	f.text, f.invert = typed, false
	if rest, ok := strings.CutPrefix(typed, "!"); ok {
		f.text, f.invert = rest, true
	}
	if f.text == "" {
		f.invert = false
	}
}

// admits says whether the chips let a line through.
func (f *filter) admits(r *row) bool {
	return f.classes>>r.class()&1 == 1 && (f.way == noWay || f.way == r.way())
}

// needle looks for text in the source of records.
type needle []*jsontree.Matcher

func newNeedle(text string) needle {
	n := needle{jsontree.NewMatcher(jsontree.Quoted(text))}
	// Whoever wrote the line may have escaped what HTML uses.
	if b, err := json.Marshal(text); err == nil && len(b) > 2 {
		if html := string(b[1 : len(b)-1]); html != jsontree.Quoted(text) {
			n = append(n, jsontree.NewMatcher(html))
		}
	}
	return n
}

func (n needle) in(data []byte) bool {
	return slices.ContainsFunc(n, func(m *jsontree.Matcher) bool { return m.Index(data) >= 0 })
}

// entryKind is how an entry of the list is drawn.
type entryKind uint8

const (
	single entryKind = iota
	folded           // several updates of one message
	opened           // the same, with its lines below
	child            // one of them
)

// entry is one row of the list: one line, or a run of them.
type entry struct {
	first, last uint32 // numbers of lines
	n           uint32
	kind        entryKind
	size        uint64
}

// list is the lines that a filter shows, as far as they were looked at.
type list struct {
	filter  filter
	matcher *jsontree.Matcher
	types   []int8 // whether a type matches: 1 yes, -1 no, 0 unknown
	entries []entry
	next    int // number of the first line that wasn't looked at
	message int // how many began so far
	run     int // which the last entry is of
	header  int // of the run that is open at the end of the list, or -1
	matched int // lines
}

func newList(f filter, from int) *list {
	return &list{filter: f, matcher: jsontree.NewMatcher(f.text), next: from, header: -1}
}

// matches says whether a line is shown.
func (l *list) matches(x *index, d *deep, i int) bool {
	r := x.row(i)
	if !l.filter.admits(r) {
		return false
	}
	if l.filter.text == "" {
		return true
	}
	found := l.matcher.Index(x.summary(i)) >= 0 || l.typeMatches(x, r.typ) || l.filter.deep && d.has(r.seq)
	return found != l.filter.invert
}

func (l *list) typeMatches(x *index, id uint16) bool {
	for len(l.types) <= int(id) {
		l.types = append(l.types, 0)
	}
	if l.types[id] == 0 {
		l.types[id] = -1
		if l.matcher.Index([]byte(x.types[id])) >= 0 {
			l.types[id] = 1
		}
	}
	return l.types[id] > 0
}

// step looks at lines up to before a number, at most so many, and reports whether it came there.
func (l *list) step(x *index, d *deep, to, most int) bool {
	l.next = max(l.next, x.first)
	for ; l.next < to && most > 0; most-- {
		l.look(x, d, l.next)
		l.next++
	}
	return l.next >= to
}

func (l *list) look(x *index, d *deep, i int) {
	r := x.row(i)
	if r.typ == typeStart {
		l.message++
	}
	if !l.matches(x, d, i) {
		return
	}
	l.matched++
	n := uint32(i)
	if r.typ != typeUpdate || r.way() != fromPi {
		l.entries = append(l.entries, entry{first: n, last: n, n: 1, size: uint64(r.size)})
		l.run, l.header = -1, -1
		return
	}
	if l.run != l.message || len(l.entries) == 0 {
		l.entries = append(l.entries, entry{first: n, last: n, n: 1, size: uint64(r.size)})
		l.run, l.header = l.message, -1
		return
	}
	at := len(l.entries) - 1
	if l.header >= 0 {
		at = l.header
		l.entries = append(l.entries, entry{first: n, last: n, n: 1, size: uint64(r.size), kind: child})
	}
	e := &l.entries[at]
	e.last, e.n, e.size = n, e.n+1, e.size+uint64(r.size)
	if e.kind == single {
		e.kind = folded
	}
}

// unfold shows the lines of a run below it.
func (l *list) unfold(x *index, d *deep, at int) {
	e := l.entries[at]
	if e.kind != folded {
		return
	}
	kids := make([]entry, 0, e.n)
	for i := max(int(e.first), x.first); i <= int(e.last); i++ {
		if r := x.row(i); r.typ == typeUpdate && r.way() == fromPi && l.matches(x, d, i) {
			kids = append(kids, entry{first: uint32(i), last: uint32(i), n: 1, size: uint64(r.size), kind: child})
		}
	}
	l.entries[at].kind = opened
	last := at == len(l.entries)-1
	l.entries = slices.Insert(l.entries, at+1, kids...)
	switch {
	case last && l.run == l.message:
		l.header = at
	case l.header > at:
		l.header += len(kids)
	}
}

// fold puts a run's lines away, by the run or one of them, and returns where the run is.
func (l *list) fold(at int) int {
	for at > 0 && l.entries[at].kind == child {
		at--
	}
	if l.entries[at].kind != opened {
		return at
	}
	end := at + 1
	for end < len(l.entries) && l.entries[end].kind == child {
		end++
	}
	l.entries[at].kind = folded
	l.entries = slices.Delete(l.entries, at+1, end)
	switch {
	case l.header == at:
		l.header = -1
	case l.header > at:
		l.header -= end - at - 1
	}
	return at
}

// drop forgets entries of lines before a number, and returns how many.
func (l *list) drop(x *index, d *deep, first int) int {
	n := 0
	for n < len(l.entries) && int(l.entries[n].last) < first {
		if l.entries[n].kind != child {
			l.matched -= int(l.entries[n].n) // its lines aren't counted by themselves
		}
		n++
	}
	l.entries = slices.Delete(l.entries, 0, n)
	l.header = max(l.header-n, -1)
	if len(l.entries) > 0 && int(l.entries[0].first) < first {
		// Some lines of a run are gone; it is counted anew.
		before := len(l.entries)
		l.fold(0)
		n += before - len(l.entries)
		e := &l.entries[0]
		l.matched -= int(e.n)
		e.first, e.n, e.size = uint32(first), 0, 0
		for i := first; i <= int(e.last); i++ {
			if r := x.row(i); r.typ == typeUpdate && l.matches(x, d, i) {
				e.n++
				e.size += uint64(r.size)
			}
		}
		l.matched += int(e.n)
	}
	return n
}

// at is the entry that shows a line, or the nearest one before.
func (l *list) at(number int) int {
	i, ok := slices.BinarySearchFunc(l.entries, number, func(e entry, n int) int { return int(e.first) - n })
	if !ok {
		i--
	}
	if i < 0 {
		return 0
	}
	// A run and its first line begin alike: the line is the one that was asked for.
	if i+1 < len(l.entries) && l.entries[i].kind == opened && int(l.entries[i+1].first) == number {
		i++
	}
	return i
}
