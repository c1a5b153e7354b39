package jsontree

import (
	"bytes"
	"fmt"
	"sort"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/tidwall/gjson"

	"patio/tui/safe"
)

// perGroup is how many items of a container are shown side by side; more stand in groups
// of as many, so that unfolding never makes more nodes than this.
const perGroup = 1000

// kind is what a node is.
type kind uint8

const (
	kindObject kind = iota
	kindArray
	kindGroup // of a container's items
	kindString
	kindNumber
	kindLiteral // true, false, null, and what is none of these
	kindText    // a document that is no JSON
)

// node is one value of the document, made when its container is unfolded.
type node struct {
	parent         *node
	keyFrom, keyTo int
	from, to       int
	index          int   // among the items of the container
	count          int   // of items, known once scanned
	size           int   // of a group: items in each of its kids
	marks          []int // where every perGroup-th item begins
	kids           []*node
	excerpt        *excerpt
	kind           kind
	keyed          bool // a group of an object's items
	open, scanned  bool
}

// excerpt is the part of an unfolded string that is shown, broken into lines.
type excerpt struct {
	from, to int // in the source
	width    int
	lines    []string // safe
	starts   []int    // of each line, in the decoded excerpt
}

func (n *node) container() bool { return n.kind <= kindGroup }

// stringLike has text that can be unfolded.
func (n *node) stringLike() bool { return n.kind == kindString || n.kind == kindText }

func newNode(b []byte, parent *node, m item, index int) *node {
	n := &node{parent: parent, keyFrom: m.keyFrom, keyTo: m.keyTo, from: m.from, to: m.to, index: index}
	n.kind = kindLiteral
	if m.from < len(b) {
		switch c := b[m.from]; {
		case c == '{':
			n.kind = kindObject
		case c == '[':
			n.kind = kindArray
		case c == '"':
			n.kind = kindString
		case c == '-' || c >= '0' && c <= '9':
			n.kind = kindNumber
		}
	}
	return n
}

// inside is the source of a container's items.
func (n *node) inside(b []byte) (from, to int) {
	if n.kind == kindGroup {
		return n.from, n.to
	}
	from, to = n.from+1, n.to
	if to-1 >= from && (b[to-1] == '}' || b[to-1] == ']') {
		to--
	}
	return min(from, to), to
}

// empty says that a container has no items.
func (n *node) empty(b []byte) bool {
	from, to := n.inside(b)
	return skipSpace(b[:to], from) >= to
}

// scan makes the kids of a container that had none yet, and returns how many it made.
// It passes over the container's source once and keeps one offset per perGroup items.
func (n *node) scan(b []byte) int {
	if n.scanned || !n.container() {
		return 0
	}
	n.scanned = true
	from, to := n.inside(b)
	keyed := n.kind == kindObject || n.keyed
	if n.kind == kindGroup && n.size > 1 {
		n.groups(n.marks, n.size/perGroup, n.index, n.count, to, keyed)
		return len(n.kids)
	}
	src := b[:to]
	at, count, base := from, 0, 0
	if n.kind == kindGroup {
		base = n.index
	}
	var kids []*node
	var marks []int
	for {
		m, after, ok := next(src, at, keyed)
		if !ok {
			break
		}
		at = after
		if count%perGroup == 0 {
			marks = append(marks, m.begin())
		}
		if count < perGroup {
			kids = append(kids, newNode(b, n, m, base+count))
		}
		count++
	}
	n.count = count
	if count <= perGroup {
		n.kids = kids
		return len(kids)
	}
	size := perGroup
	for (count+size-1)/size > perGroup {
		size *= perGroup
	}
	n.groups(marks, size, 0, count, to, keyed)
	return len(n.kids)
}

// groups makes kids that stand for size items each. marks has the begin of every
// perGroup-th item.
func (n *node) groups(marks []int, size, index, count, to int, keyed bool) {
	if size <= 1 {
		size = perGroup
	}
	step := size / perGroup // marks in one group
	for i := 0; i < len(marks); i += step {
		part := marks[i:min(i+step, len(marks))]
		g := &node{parent: n, kind: kindGroup, keyed: keyed, from: part[0], to: to, index: index + i*perGroup, marks: part}
		if i+step < len(marks) {
			g.to = marks[i+step]
		}
		g.count = min(size, count-i*perGroup)
		if len(part) > 1 {
			g.size = size
		}
		n.kids = append(n.kids, g)
	}
}

// holding is the kid whose source has an offset.
func (n *node) holding(at int) *node {
	i := sort.Search(len(n.kids), func(i int) bool { return n.kids[i].to > at })
	if i == len(n.kids) {
		return nil
	}
	k := n.kids[i]
	if at < k.from && (k.keyTo <= k.keyFrom || at < k.keyFrom) {
		return nil
	}
	return k
}

// prune forgets what a folded node had inside.
func (n *node) prune() int {
	if n.excerpt != nil && !n.open {
		n.excerpt = nil
	}
	dropped := 0
	for _, k := range n.kids {
		dropped += k.prune()
	}
	if n.container() && !n.open && n.scanned {
		dropped += len(n.kids)
		n.kids, n.scanned = nil, false
	}
	return dropped
}

// key is the decoded name of an object's member.
func (n *node) key(b []byte) string {
	if n.keyTo <= n.keyFrom {
		return ""
	}
	to := n.keyTo
	if b[to-1] == '"' && to-1 > n.keyFrom {
		to--
	}
	return decode(b[n.keyFrom+1 : min(to, n.keyFrom+maxKey)])
}

// maxKey is how much of a key is looked at.
const maxKey = 4 << 10

// decode gives the text of a string's source, without its quotes; it may be cut off.
func decode(src []byte) string {
	if bytes.IndexByte(src, '\\') < 0 {
		return string(src)
	}
	// A cut may have left half an escape, which would swallow the quote that is set here.
	if n := len(src); src[n-1] == '\\' && begins(src, 0, n-1) {
		src = src[:n-1]
	}
	return gjson.Parse(`"` + string(src) + `"`).Str
}

// text is the source of a string without its quotes.
func (n *node) text(b []byte) (from, to int) {
	if n.kind == kindText {
		return n.from, n.to
	}
	from, to = n.from+1, n.to
	if to-1 >= from && b[to-1] == '"' {
		to--
	}
	return min(from, to), to
}

func (n *node) decode(b []byte, from, to int) string {
	if n.kind == kindText {
		return string(b[from:to])
	}
	return decode(b[from:to])
}

// around is where an excerpt begins that has an offset of the string's source in it, at
// the begin of a line if one is near.
func (n *node) around(b []byte, at int) int {
	from, to := n.text(b)
	if at-from <= maxWindow*3/4 {
		return from
	}
	start := aligned(b, from, at-maxWindow/4, to)
	if i := n.lineEnd(b[start:min(start+maxWindow/16, to)]); i >= 0 {
		start += i
	}
	return start
}

// show makes a string's excerpt of what begins at an offset of the source, which cuts
// nothing, in lines of a width.
func (n *node) show(b []byte, start, width int) {
	_, to := n.text(b)
	end := aligned(b, start, min(start+maxWindow, to), to)
	if i := n.lineEnd(b[end:min(end+maxWindow/16, to)]); end < to && i >= 0 {
		end += i
	}
	e := &excerpt{from: start, to: end, width: width}
	text := n.decode(b, start, end)
	offset := 0
	for line := range strings.SplitSeq(text, "\n") {
		// This isn't prose: it is cut at columns, and keeps what it is made of. Where a part
		// begins is off by what safe.Line takes away, which is good enough to find a match.
		begin := offset
		for part := range strings.SplitSeq(ansi.Hardwrap(safe.Line(line), max(width, 4), true), "\n") {
			e.lines = append(e.lines, part)
			e.starts = append(e.starts, begin)
			begin += len(part)
		}
		offset += len(line) + 1
	}
	n.excerpt = e
}

// lineEnd is the offset after the first end of a line in a string's source, or -1. In
// JSON it is an escape; that of a backslash before an n isn't.
func (n *node) lineEnd(src []byte) int {
	if n.kind == kindText {
		if i := bytes.IndexByte(src, '\n'); i >= 0 {
			return i + 1
		}
		return -1
	}
	for at := 0; ; {
		i := bytes.Index(src[at:], []byte(`\n`))
		if i < 0 {
			return -1
		}
		if at += i; begins(src, 0, at) {
			return at + 2
		}
		at++
	}
}

// openable says that a string has more than its line can show.
func (n *node) openable(b []byte) bool {
	if !n.stringLike() {
		return false
	}
	from, to := n.text(b)
	return to-from > 40 || bytes.Contains(b[from:to], []byte(`\n`)) || n.kind == kindText
}

// path is how jq names the value.
func (n *node) path(b []byte) string {
	var parts []string
	for ; n != nil && n.parent != nil; n = n.parent {
		if n.kind == kindGroup {
			if len(parts) == 0 {
				parts = append(parts, fmt.Sprintf("[%d:%d]", n.index, n.index+n.count))
			}
			continue
		}
		if n.keyTo > n.keyFrom {
			parts = append(parts, "."+n.key(b))
			continue
		}
		parts = append(parts, fmt.Sprintf("[%d]", n.index))
	}
	if len(parts) == 0 {
		return "."
	}
	var s strings.Builder
	for i := len(parts) - 1; i >= 0; i-- {
		s.WriteString(parts[i])
	}
	if p := s.String(); p[0] == '.' {
		return p
	}
	return "." + s.String()
}
