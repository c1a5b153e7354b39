package sessions

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Severity is how much a problem matters to a resume of the file as it is.
type Severity string

// The severities. A fatal problem forbids a resume; a repairable one is mended in the
// file before Pi has it; a note is Pi's to live with.
const (
	Fatal      Severity = "fatal"
	Repairable Severity = "repairable"
	Note       Severity = "note"
)

// Fix is what can mend a problem.
type Fix string

// The fixes: nothing, RepairTail in the file itself, or Repair in a copy.
const (
	FixNone Fix = ""
	FixTail Fix = "tail"
	FixCopy Fix = "copy"
)

// Problem is what is wrong at a line.
type Problem struct {
	Line     int      `json:"line"` // 0 is the file as a whole
	Severity Severity `json:"severity"`
	Text     string   `json:"text"`
	Fix      Fix      `json:"fix,omitempty"`
	// Action is what the fix does.
	Action string `json:"action,omitempty"`

	kind string
}

func (p Problem) String() string {
	if p.Line == 0 {
		return p.Text
	}
	return fmt.Sprintf("line %d: %s", p.Line, p.Text)
}

// maxNotes bounds how many problems of a kind and a severity are told one by one: a file
// can have a million.
const maxNotes = 100

type noteKey struct {
	kind     string
	severity Severity
	fix      Fix
}

// noteList gathers problems.
type noteList struct {
	list []Problem
	seen map[noteKey]int
	last map[noteKey]int // the line of the last one
}

func (n *noteList) add(p Problem) {
	if p.kind == "" {
		p.kind = p.Text
	}
	k := noteKey{p.kind, p.Severity, p.Fix}
	if n.seen == nil {
		n.seen, n.last = map[noteKey]int{}, map[noteKey]int{}
	}
	n.seen[k]++
	n.last[k] = p.Line
	if n.seen[k] <= maxNotes {
		n.list = append(n.list, p)
	}
}

func (n *noteList) join(other noteList) {
	if n.seen == nil {
		n.seen, n.last = map[noteKey]int{}, map[noteKey]int{}
	}
	n.list = append(n.list, other.list...)
	for k, count := range other.seen {
		n.seen[k] += count
		n.last[k] = max(n.last[k], other.last[k])
	}
}

// all are the problems in the order of their lines, and how many more there were.
func (n *noteList) all() []Problem {
	problems := slices.Clone(n.list)
	for k, count := range n.seen {
		if more := count - maxNotes; more > 0 {
			last := slices.IndexFunc(problems, func(p Problem) bool { return noteKey{p.kind, p.Severity, p.Fix} == k })
			p := problems[last]
			p.Line, p.Text = n.last[k], fmt.Sprintf("%d more like that of line %d, the last one here", more, p.Line)
			problems = append(problems, p)
		}
	}
	slices.SortStableFunc(problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return problems
}

func (f *File) note(p Problem) { f.notes.add(p) }

// noteOnce notes the first of many lines with the same problem.
func (f *File) noteOnce(p Problem) {
	if !slices.ContainsFunc(f.notes.list, func(q Problem) bool { return q.Text == p.Text }) {
		f.note(p)
	}
}

// Problems lists what is wrong with the file, in the order of its lines.
func (f *File) Problems() []Problem {
	n := f.problems()
	return n.all()
}

// problems are those found while reading with those of the tree.
func (f *File) problems() noteList {
	var n noteList
	n.join(f.notes)
	if !f.hasHead && len(f.entries) == 0 && f.lastLine > 0 {
		n.add(Problem{Severity: Fatal, Text: "the file holds no session: Pi refuses it", Action: "the file is left as it is"})
	}
	if f.lost != "" && f.hasHead {
		p := Problem{Line: f.lastLine, Severity: Fatal, Text: f.lost}
		if len(f.entries) == 0 || f.entries[len(f.entries)-1].Line < f.lastLine {
			p.Fix, p.Action = FixCopy, "a copy leaves it out"
			if last := len(f.entries) - 1; last >= 0 && f.entries[last].ID == "" {
				n.add(Problem{Line: f.entries[last].Line, Severity: Fatal, Text: lastWithoutID})
			}
		}
		n.add(p)
	}
	f.treeProblems(&n)
	f.toolProblems(&n)
	return n
}

// Fatal is the first problem that forbids a resume. Pi itself spins for seconds on a
// cycle or a repeated id, and then dies.
func (f *File) Fatal() (Problem, bool) {
	return firstFatal(f.Problems(), func(Problem) bool { return true })
}

func firstFatal(problems []Problem, counts func(Problem) bool) (Problem, bool) {
	for _, p := range problems {
		if p.Severity == Fatal && counts(p) {
			return p, true
		}
	}
	return Problem{}, false
}

// treeProblems finds parents that aren't there and cycles.
func (f *File) treeProblems(n *noteList) {
	// 0: not looked at, 1: on the way, 2: leads to a root.
	state := make([]byte, len(f.entries))
	for start := range f.entries {
		var way []int
		at := start
		for at >= 0 && state[at] == 0 {
			state[at] = 1
			way = append(way, at)
			e := f.entries[at]
			next := f.tree.parent[at]
			if next < 0 && e.ParentID != "" {
				n.add(Problem{Line: e.Line, Severity: Note, kind: "parent", Text: fmt.Sprintf("its parent %q isn't there: what came before it is lost to Pi", e.ParentID)})
			}
			at = next
		}
		if at >= 0 && state[at] == 1 {
			text := "its parents go in a circle"
			if f.tree.parent[at] == at {
				text = "it is its own parent"
			}
			n.add(Problem{Line: f.entries[at].Line, Severity: Fatal, kind: "circle", Text: text})
		}
		for _, i := range way {
			state[i] = 2
		}
	}
}

// toolProblems finds results that answer no call on their way, which a provider refuses.
func (f *File) toolProblems(n *noteList) {
	for _, e := range f.entries {
		if e.Role != RoleToolResult {
			continue
		}
		if _, ok := f.callFor(e); ok {
			continue
		}
		n.add(Problem{Line: e.Line, Severity: Note, kind: "orphan", Text: fmt.Sprintf("the result of a tool call %q that isn't before it: a provider may refuse the conversation", e.call)})
	}
}

// Report is what Validate finds.
type Report struct {
	Path     string    `json:"path"`
	Size     int64     `json:"size"`
	Header   Header    `json:"header"`
	Entries  int       `json:"entries"`
	Problems []Problem `json:"problems"`
}

// Fatal is the first problem that forbids to resume the file as it is.
func (r Report) Fatal() (Problem, bool) {
	return firstFatal(r.Problems, func(Problem) bool { return true })
}

// Hopeless is the first problem that forbids to resume even a repaired copy.
func (r Report) Hopeless() (Problem, bool) {
	return firstFatal(r.Problems, func(p Problem) bool { return p.Fix != FixCopy })
}

// Fixes says whether some problem is mended by a fix.
func (r Report) Fixes(fix Fix) bool {
	return slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Fix == fix })
}

// Validate reads a whole file, its images too, and changes nothing. The error is of
// reading alone: what is wrong with a file is in the report.
func Validate(path string) (Report, error) {
	f, err := Open(path)
	if err != nil {
		return Report{}, err
	}
	r, err := f.Report()
	return r, errors.Join(err, f.Close())
}

// Report is what Validate says of a file that is open.
func (f *File) Report() (Report, error) {
	n := f.problems()
	n.join(f.late)
	err := f.imageProblems(&n)
	return Report{Path: f.f.Name(), Size: f.size, Header: f.header, Entries: len(f.entries), Problems: n.all()}, err
}
