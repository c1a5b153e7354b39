package sessions

import "slices"

// tree is how entries hang together. Indexes are those of entries.
type tree struct {
	parent   []int   // -1 is none, or one that isn't there
	children [][]int // by their time, as Pi orders them
	roots    []int
	// call is, for a tool's result, the entry with its call: the nearest before it on its
	// way, or -1.
	call map[int]int
}

func newTree(f *File) tree {
	n := len(f.entries)
	t := tree{parent: make([]int, n), children: make([][]int, n), call: map[int]int{}}
	for i, e := range f.entries {
		t.parent[i] = -1
		if e.ParentID == "" {
			continue
		}
		if p, ok := f.byID[e.ParentID]; ok {
			t.parent[i] = p
		}
	}
	for i := range f.entries {
		if p := t.parent[i]; p < 0 || p == i {
			t.roots = append(t.roots, i)
		} else {
			t.children[p] = append(t.children[p], i)
		}
	}
	for _, c := range t.children {
		if len(c) > 1 {
			slices.SortStableFunc(c, func(a, b int) int { return f.entries[a].Time.Compare(f.entries[b].Time) })
		}
	}
	t.pairCalls(f)
	return t
}

// pairCalls walks the tree with the calls that are open on the way. It does so without
// recursion: a file may be one chain of all its entries.
func (t *tree) pairCalls(f *File) {
	if len(f.callsOf) == 0 {
		return
	}
	type step struct{ entry, next int }
	open := map[string][]int{}
	enter := func(i int) step {
		if e := f.entries[i]; e.Role == RoleToolResult {
			if on := open[e.call]; len(on) > 0 {
				t.call[i] = on[len(on)-1]
			}
		}
		for _, id := range f.callsOf[i] {
			open[id] = append(open[id], i)
		}
		return step{entry: i}
	}
	for _, root := range t.roots {
		stack := []step{enter(root)}
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if children := t.children[top.entry]; top.next < len(children) {
				top.next++
				stack = append(stack, enter(children[top.next-1]))
				continue
			}
			for _, id := range f.callsOf[top.entry] {
				open[id] = open[id][:len(open[id])-1]
			}
			stack = stack[:len(stack)-1]
		}
	}
}

// way are the entries from a root to one of them. A circle ends it.
func (t *tree) way(to int) []int {
	var way []int
	seen := map[int]bool{}
	for at := to; at >= 0 && !seen[at]; at = t.parent[at] {
		seen[at] = true
		way = append(way, at)
	}
	slices.Reverse(way)
	return way
}

// Path is the way from the root to the leaf, which is the last entry: what Pi goes on
// with. A circle ends it.
func (f *File) Path() []Entry {
	leaf, ok := f.Leaf()
	if !ok {
		return nil
	}
	return f.PathTo(leaf)
}

// PathTo is the way from the root to an entry.
func (f *File) PathTo(e Entry) []Entry { return f.list(f.tree.way(e.Index)) }

// Leaf is where Pi goes on: the last entry of the file, on whatever branch.
func (f *File) Leaf() (Entry, bool) {
	if len(f.entries) == 0 {
		return Entry{}, false
	}
	return f.entries[len(f.entries)-1], true
}

// Parent is the entry that e follows.
func (f *File) Parent(e Entry) (Entry, bool) {
	p := f.tree.parent[e.Index]
	if p < 0 {
		return Entry{}, false
	}
	return f.entries[p], true
}

// Children are the entries that follow e. More than one are branches.
func (f *File) Children(e Entry) []Entry { return f.list(f.tree.children[e.Index]) }

// Roots are the entries that follow none: where the conversation began, where it began
// anew, and where what came before is lost.
func (f *File) Roots() []Entry { return f.list(f.tree.roots) }

// Leaves are the ends of all branches, in the order of their lines.
func (f *File) Leaves() []Entry {
	var leaves []Entry
	for i, e := range f.entries {
		if len(f.tree.children[i]) == 0 {
			leaves = append(leaves, e)
		}
	}
	return leaves
}

// Label is the mark that the user has set on an entry.
func (f *File) Label(e Entry) string {
	if e.ID == "" {
		return ""
	}
	return f.labels[e.ID]
}

// Labels are all marks, by the id of their entry.
func (f *File) Labels() map[string]string {
	labels := make(map[string]string, len(f.labels))
	for id, label := range f.labels {
		if _, ok := f.byID[id]; ok {
			labels[id] = label
		}
	}
	return labels
}

func (f *File) list(indexes []int) []Entry {
	if len(indexes) == 0 {
		return nil
	}
	entries := make([]Entry, len(indexes))
	for i, at := range indexes {
		entries[i] = f.entries[at]
	}
	return entries
}
