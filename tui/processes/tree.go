package processes

import (
	"cmp"
	"slices"
	"strings"

	"patio/engine/api"
)

// order is how the processes are listed.
type order int

const (
	byTree order = iota
	byCPU
	byMemory
	orders // how many there are
)

func (o order) String() string {
	switch o {
	case byCPU:
		return "by CPU"
	case byMemory:
		return "by memory"
	default:
		return "tree"
	}
}

// maxCommand bounds what is kept of a command line; the kernel allows megabytes.
const maxCommand = 4096

// row is one line of the list.
type row struct {
	api.Process
	prefix   string // the branches of the tree
	children int    // of all levels, below it
	folded   bool
	match    bool // of the filter; a parent is shown for a child that matches
}

// arrange makes the rows. In the tree, those that match are shown with their parents.
func arrange(ps []api.Process, o order, folded map[int]bool, terms []string) []row {
	if o != byTree {
		return flat(ps, o, terms)
	}
	t := newTree(ps)
	rows := make([]row, 0, len(ps))
	t.walk(terms, folded, func(r row) { rows = append(rows, r) })
	return rows
}

func flat(ps []api.Process, o order, terms []string) []row {
	rows := make([]row, 0, len(ps))
	for _, p := range ps {
		if matches(p, terms) {
			rows = append(rows, row{Process: p, match: true})
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		if o == byCPU {
			return cmp.Or(cmp.Compare(b.CPUPercent, a.CPUPercent), cmp.Compare(b.RSS, a.RSS), a.PID-b.PID)
		}
		return cmp.Or(cmp.Compare(b.RSS, a.RSS), cmp.Compare(b.CPUPercent, a.CPUPercent), a.PID-b.PID)
	})
	return rows
}

// matches reports whether each term is in the process' command or is its pid.
func matches(p api.Process, terms []string) bool {
	if len(terms) == 0 {
		return true
	}
	command, pid := strings.ToLower(p.Command), itoa(p.PID)
	for _, t := range terms {
		if !strings.Contains(command, t) && pid != t {
			return false
		}
	}
	return true
}

// tree is who started whom.
type tree struct {
	ps       []api.Process
	children map[int][]int // by pid, as indices
	roots    []int
}

// newTree sorts by pid, so that what was started first is first. A process whose parent
// isn't listed is a root: a list is read while processes come and go.
func newTree(ps []api.Process) *tree {
	t := &tree{ps: slices.Clone(ps), children: map[int][]int{}}
	slices.SortStableFunc(t.ps, func(a, b api.Process) int { return cmp.Compare(a.PID, b.PID) })
	t.ps = slices.CompactFunc(t.ps, func(a, b api.Process) bool { return a.PID == b.PID })
	known := make(map[int]bool, len(t.ps))
	for _, p := range t.ps {
		known[p.PID] = true
	}
	for i, p := range t.ps {
		if known[p.PPID] && p.PPID != p.PID {
			t.children[p.PPID] = append(t.children[p.PPID], i)
		} else {
			t.roots = append(t.roots, i)
		}
	}
	t.breakRings()
	return t
}

// breakRings makes a root of one process of each ring, which only a list that lies has.
func (t *tree) breakRings() {
	seen := make([]bool, len(t.ps))
	mark := func(first int) {
		stack := []int{first}
		for len(stack) > 0 {
			i := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if seen[i] {
				continue
			}
			seen[i] = true
			stack = append(stack, t.children[t.ps[i].PID]...)
		}
	}
	for _, r := range t.roots {
		mark(r)
	}
	for i, p := range t.ps {
		if !seen[i] {
			siblings := t.children[p.PPID]
			t.children[p.PPID] = slices.DeleteFunc(slices.Clone(siblings), func(j int) bool { return j == i })
			t.roots = append(t.roots, i)
			mark(i)
		}
	}
}

// visit is one process on the way through the tree.
type visit struct {
	i     int
	depth int
	last  bool
}

// maxDepth bounds how far a row is moved to the right; deeper ones stand below each other.
const maxDepth = 24

// walk gives the rows from the top. It uses no recursion: the depth comes from inside the
// sandbox.
func (t *tree) walk(terms []string, folded map[int]bool, give func(row)) {
	below, wanted := t.sums(terms)
	var stack []visit
	push := func(indices []int, depth int) {
		last := true
		for _, i := range slices.Backward(indices) {
			if wanted[i] {
				stack = append(stack, visit{i, depth, last})
				last = false
			}
		}
	}
	push(t.roots, 0)
	bars := make([]bool, 0, maxDepth) // whether a level has more to come
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		p := t.ps[v.i]
		r := row{Process: p, children: below[v.i], folded: folded[p.PID] && below[v.i] > 0, match: matches(p, terms)}
		r.prefix = branches(bars, v)
		if d := min(v.depth, maxDepth); d < len(bars) {
			bars = append(bars[:d], !v.last)
		} else if d == len(bars) && d < maxDepth {
			bars = append(bars, !v.last)
		}
		give(r)
		if !r.folded {
			push(t.children[p.PID], v.depth+1)
		}
	}
}

// branches are the lines left of a command.
func branches(bars []bool, v visit) string {
	if v.depth == 0 {
		return ""
	}
	var b strings.Builder
	for d := 1; d < min(v.depth, maxDepth); d++ {
		if d < len(bars) && bars[d] {
			b.WriteString("│ ")
		} else {
			b.WriteString("  ")
		}
	}
	if v.last {
		b.WriteString("└ ")
	} else {
		b.WriteString("├ ")
	}
	return b.String()
}

// sums counts what is below each process, and marks those that are shown: the ones that
// match, and those above them.
func (t *tree) sums(terms []string) (below []int, wanted []bool) {
	below, wanted = make([]int, len(t.ps)), make([]bool, len(t.ps))
	// A parent stands before its children in this list, whatever their pids.
	var downwards []int
	parent := make([]int, len(t.ps))
	stack := slices.Clone(t.roots)
	for _, r := range t.roots {
		parent[r] = -1
	}
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		downwards = append(downwards, i)
		for _, c := range t.children[t.ps[i].PID] {
			parent[c] = i
			stack = append(stack, c)
		}
	}
	for _, i := range slices.Backward(downwards) {
		wanted[i] = wanted[i] || matches(t.ps[i], terms)
		if p := parent[i]; p >= 0 {
			below[p] += below[i] + 1
			wanted[p] = wanted[p] || wanted[i]
		}
	}
	return below, wanted
}
