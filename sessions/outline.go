package sessions

import "slices"

// branch is another way on than the one that is shown in full.
type branch struct {
	number int
	from   Entry // where it leaves; the zero value for a beginning of its own
	first  Entry
}

// renderer writes an outline, in order.
type renderer interface {
	turn(t Turn) error
	// open and end enclose a branch where it leaves.
	open(b branch) error
	end() error
	// mention says that a branch comes later, where nesting it isn't possible.
	mention(b branch) error
	// later opens a branch that was mentioned.
	later(b branch) error
}

// outline walks through all entries: first those that the leaf's way goes by, with each
// branch where it leaves.
type outline struct {
	f       *File
	r       renderer
	nest    int // how deep branches may be within branches
	pairs   pairing
	on      map[int]bool // the way to the leaf
	seen    []bool
	waiting []branch
	number  int
}

// render writes one way if a leaf is named, else everything.
func (f *File) render(r renderer, leaf string, nest int) error {
	if leaf != "" {
		return f.Conversation(leaf, r.turn)
	}
	way, err := f.wayTo("")
	if err != nil {
		return err
	}
	o := outline{f: f, r: r, nest: nest, pairs: f.pair(way, true), on: map[int]bool{}, seen: make([]bool, len(f.entries))}
	for _, i := range way {
		o.on[i] = true
	}
	return o.all(way)
}

func (o *outline) all(way []int) error {
	for _, root := range o.f.tree.roots {
		if !o.on[root] {
			if err := o.branch(Entry{}, root, 0); err != nil {
				return err
			}
		}
	}
	if len(way) > 0 {
		if err := o.walk(way[0], 0); err != nil {
			return err
		}
	}
	// A branch can have more of them, which wait in their turn.
	for len(o.waiting) > 0 {
		b := o.waiting[0]
		o.waiting = o.waiting[1:]
		if err := o.enclosed(b, o.r.later, 1); err != nil {
			return err
		}
	}
	// No root leads to what goes in a circle.
	for i, seen := range o.seen {
		if !seen && !o.seen[i] && !o.pairs.paired[i] {
			o.number++
			if err := o.enclosed(branch{number: o.number, first: o.f.entries[i]}, o.r.later, 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// walk follows one way to its end, and the branches that leave it.
func (o *outline) walk(at, depth int) error {
	for at >= 0 && !o.seen[at] {
		o.seen[at] = true
		if !o.pairs.paired[at] {
			t, err := o.f.turn(o.f.entries[at], o.pairs)
			if err != nil {
				return err
			}
			if len(t.Blocks) > 0 || t.Label != "" {
				if err := o.r.turn(t); err != nil {
					return err
				}
			}
		}
		next := o.next(at)
		for _, child := range o.f.tree.children[at] {
			if child == next || o.seen[child] {
				continue
			}
			if err := o.branch(o.f.entries[at], child, depth); err != nil {
				return err
			}
		}
		at = next
	}
	return nil
}

// next is the child that goes on: the one on the leaf's way, else the latest.
func (o *outline) next(at int) int {
	children := o.f.tree.children[at]
	if len(children) == 0 {
		return -1
	}
	if i := slices.IndexFunc(children, func(c int) bool { return o.on[c] }); i >= 0 {
		return children[i]
	}
	return children[len(children)-1]
}

func (o *outline) branch(from Entry, first, depth int) error {
	o.number++
	b := branch{number: o.number, from: from, first: o.f.entries[first]}
	if depth >= o.nest {
		o.waiting = append(o.waiting, b)
		return o.r.mention(b)
	}
	return o.enclosed(b, o.r.open, depth+1)
}

func (o *outline) enclosed(b branch, open func(branch) error, depth int) error {
	if err := open(b); err != nil {
		return err
	}
	if err := o.walk(b.first.Index, depth); err != nil {
		return err
	}
	return o.r.end()
}
