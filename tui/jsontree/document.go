package jsontree

import (
	"github.com/tidwall/gjson"
)

const (
	// maxNodes is how many values are held at a time. What is folded is forgotten then.
	maxNodes = 100_000
	// maxUnfold is how many lines unfolding everything shows, and maxFirst how many a
	// document begins with.
	maxUnfold, maxFirst = 5000, 400
	// maxChecked is the size up to which a document is checked as a whole. A larger one is
	// what it begins and ends like.
	maxChecked = 1 << 20
	// maxPassed bounds the source that one key makes the scanner pass over.
	maxPassed = 8 << 20
)

// Document is a value made ready to be shown. Load may be called outside of Update, as
// for a large one it should be.
type Document struct {
	raw  []byte
	root *node
	json bool
	made int
}

// Load takes a value. The bytes are kept and must not change.
func Load(raw []byte) *Document {
	d := &Document{raw: raw}
	from := skipSpace(raw, 0)
	to := len(raw)
	for to > from && skipSpace(raw, to-1) == to {
		to--
	}
	d.json = isJSON(raw[from:to])
	if !d.json {
		d.root = &node{kind: kindText, to: len(raw), open: true}
		return d
	}
	d.root = newNode(raw, nil, item{from: from, to: to}, 0)
	d.root.open = true
	d.made = 1 + d.root.scan(raw)
	d.unfold(maxFirst)
	return d
}

func isJSON(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	if len(b) <= maxChecked {
		return gjson.ValidBytes(b)
	}
	last := b[len(b)-1]
	switch b[0] {
	case '{':
		return last == '}'
	case '[':
		return last == ']'
	case '"':
		return last == '"' && skipString(b, 0) == len(b)
	}
	return false
}

// unfold opens values level by level, as long as all fit into so many lines. Those of
// more than a page of source stay folded at first: looking into them costs.
func (d *Document) unfold(lines int) (all bool) {
	all = true
	// Each level is passed over again: one that is all depth would cost its square.
	budget := maxPassed
	level := []*node{d.root}
	shown := 1
	for len(level) > 0 {
		var below []*node
		for _, n := range level {
			if !n.container() || n.from == n.to {
				continue
			}
			if n != d.root && n.to-n.from > maxWindow && lines == maxFirst {
				all = false
				continue
			}
			if n.kind == kindGroup && lines == maxFirst {
				continue
			}
			if !n.scanned {
				budget -= n.to - n.from
			}
			if d.made > maxNodes || budget < 0 {
				return false
			}
			d.made += n.scan(d.raw)
			if shown+len(n.kids) > lines && n != d.root {
				all = false
				continue
			}
			n.open = true
			shown += len(n.kids)
			below = append(below, n.kids...)
		}
		level = below
	}
	return all
}
