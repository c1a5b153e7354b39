package jsontree

import (
	"fmt"

	tea "charm.land/bubbletea/v2"

	"patio/tui/figure"
)

// maxScan is the source that is looked into at once; more is, outside of Update.
const maxScan = 1 << 20

// scannedMsg is a large container that was looked into.
type scannedMsg struct {
	tree *Tree
	doc  *Document
	n    *node
	scan node
	at   int // an offset to go on revealing, or -1
}

// look makes the kids of a container, or returns the command that does.
func (t *Tree) look(n *node, at int) tea.Cmd {
	if n.scanned || n.to-n.from <= maxScan {
		t.doc.made += n.scan(t.doc.raw)
		return nil
	}
	t.note = fmt.Sprintf("looking into %s…", figure.Bytes(int64(n.to-n.from)))
	raw, msg := t.doc.raw, scannedMsg{tree: t, doc: t.doc, n: n, scan: *n, at: at}
	return func() tea.Msg {
		msg.scan.scan(raw)
		return msg
	}
}

func (t *Tree) scanned(msg scannedMsg) tea.Cmd {
	if msg.tree != t || msg.doc != t.doc {
		return nil
	}
	t.note = ""
	if n := msg.n; !n.scanned {
		n.scanned, n.count, n.kids = true, msg.scan.count, msg.scan.kids
		for _, k := range n.kids {
			k.parent = n
		}
		t.doc.made += len(n.kids)
	}
	if msg.at >= 0 {
		return t.reveal(msg.at)
	}
	msg.n.open = true
	t.layout()
	return nil
}

func (t *Tree) toggle() tea.Cmd {
	r := t.rows[t.cursor]
	switch {
	case r.text == before || r.text == after:
		t.turn(r)
	case r.text >= 0:
		t.fold()
	case r.n.open:
		t.fold()
	case r.n.container():
		if t.doc.made > maxNodes {
			t.doc.made -= t.doc.root.prune()
		}
		if t.doc.made > maxNodes {
			t.note = "too much is unfolded: fold some of it first"
			return nil
		}
		if cmd := t.look(r.n, -1); cmd != nil {
			return cmd
		}
		r.n.open = true
		t.layout()
	case r.n.openable(t.doc.raw):
		r.n.open = true
		t.layout()
	}
	return nil
}

// turn moves a string's excerpt on, or back.
func (t *Tree) turn(r row) {
	e := r.n.excerpt
	start := e.to
	if r.text == before {
		start = r.n.around(t.doc.raw, e.from-maxWindow*3/4)
	}
	r.n.show(t.doc.raw, start, e.width)
	t.layout()
	// On with reading: at the begin of what follows, or at the end of what came before.
	line := 0
	if r.text == before {
		line = len(r.n.excerpt.lines) - 1
	}
	if i := t.find(r.n, line); i >= 0 {
		t.cursor = i
	}
	t.clamp()
}

// fold closes what the cursor is on, or what that is in.
func (t *Tree) fold() {
	n := t.rows[t.cursor].n
	if !n.open || !n.container() && !n.stringLike() {
		n = n.parent
	}
	if n == nil {
		return
	}
	if t.rows[t.cursor].n == n || t.rows[t.cursor].text != header {
		if n != t.doc.root || n.container() {
			n.open = false
			t.layout()
		}
	}
	// From inside, the first press goes to what holds it.
	if i := t.find(n, header); i >= 0 {
		t.cursor = i
	}
	t.clamp()
}

func (t *Tree) find(n *node, text int) int {
	for i, r := range t.rows {
		if r.n == n && r.text == text {
			return i
		}
	}
	return -1
}

// all folds everything but the first level, or unfolds as much as can be looked at.
func (t *Tree) all() {
	at := t.rows[t.cursor].n
	t.folded = !t.folded
	if t.folded {
		for _, k := range t.doc.root.kids {
			shut(k)
		}
		t.doc.made -= t.doc.root.prune()
	} else if !t.doc.unfold(maxUnfold) {
		t.note = fmt.Sprintf("what doesn't fit into %d lines stays folded", maxUnfold)
	}
	t.doc.root.open = true
	t.layout()
	for ; at != nil; at = at.parent {
		if i := t.find(at, header); i >= 0 {
			t.cursor = i
			break
		}
	}
	t.clamp()
}

func shut(n *node) {
	n.open = false
	for _, k := range n.kids {
		shut(k)
	}
}

// layout makes the rows of what is unfolded.
func (t *Tree) layout() {
	t.rows = t.rows[:0]
	t.place(t.doc.root, 0)
	t.clamp()
}

func (t *Tree) place(n *node, depth int) {
	if n.kind != kindText {
		t.rows = append(t.rows, row{n, depth, header})
		depth++
	}
	if !n.open {
		return
	}
	if n.stringLike() {
		width := t.width - gutter - indent(depth, t.width) - 2
		if n.excerpt == nil || n.excerpt.width != width {
			from, _ := n.text(t.doc.raw)
			if n.excerpt != nil {
				from = n.excerpt.from
			}
			n.show(t.doc.raw, from, width)
		}
		from, to := n.text(t.doc.raw)
		if n.excerpt.from > from {
			t.rows = append(t.rows, row{n, depth, before})
		}
		for i := range n.excerpt.lines {
			t.rows = append(t.rows, row{n, depth, i})
		}
		if n.excerpt.to < to {
			t.rows = append(t.rows, row{n, depth, after})
		}
		return
	}
	for _, k := range n.kids {
		t.place(k, depth)
	}
}

// gutter has the cursor's sign.
const gutter = 2

// indent leaves half of the room to what is indented, however deep it is.
func indent(depth, width int) int { return min(2*depth, max(width/2-gutter, 0)) }
