package sessions

import (
	"fmt"
	"slices"
)

// Severity is how much a problem matters to a resume.
type Severity string

// The severities. A repairable problem is mended before Pi has the file.
const (
	Fatal      Severity = "fatal"
	Repairable Severity = "repairable"
	Note       Severity = "note"
)

// Problem is what is wrong at a line.
type Problem struct {
	Line     int      `json:"line"`
	Severity Severity `json:"severity"`
	Text     string   `json:"text"`
}

func (p Problem) String() string {
	if p.Line == 0 {
		return p.Text
	}
	return fmt.Sprintf("line %d: %s", p.Line, p.Text)
}

func (f *File) note(line int, s Severity, text string) {
	f.notes = append(f.notes, Problem{Line: line, Severity: s, Text: text})
}

// noteOnce notes the first of many lines with the same problem.
func (f *File) noteOnce(line int, s Severity, text string) {
	if !slices.ContainsFunc(f.notes, func(p Problem) bool { return p.Text == text }) {
		f.note(line, s, text)
	}
}

// Problems lists what is wrong with the file, in the order of its lines.
func (f *File) Problems() []Problem {
	problems := slices.Clone(f.notes)
	if !f.hasHead && len(f.entries) == 0 && len(problems) > 0 {
		problems = append(problems, Problem{Severity: Fatal, Text: "the file holds no session: Pi refuses it"})
	}
	problems = append(problems, f.treeProblems()...)
	slices.SortStableFunc(problems, func(a, b Problem) int { return a.Line - b.Line })
	return problems
}

// Fatal is the first problem that forbids a resume. Pi itself spins for seconds on a
// cycle or a repeated id, and then dies.
func (f *File) Fatal() (Problem, bool) {
	for _, p := range f.Problems() {
		if p.Severity == Fatal {
			return p, true
		}
	}
	return Problem{}, false
}

// treeProblems finds parents that aren't there and cycles.
func (f *File) treeProblems() []Problem {
	var problems []Problem
	// 0: not looked at, 1: on the way, 2: leads to a root.
	state := make([]byte, len(f.entries))
	for start := range f.entries {
		var way []int
		at := start
		for state[at] == 0 {
			state[at] = 1
			way = append(way, at)
			e := f.entries[at]
			if e.ParentID == "" {
				break
			}
			parent, ok := f.byID[e.ParentID]
			if !ok {
				problems = append(problems, Problem{Line: e.Line, Severity: Note, Text: fmt.Sprintf("its parent %q isn't there: what came before it is lost to Pi", e.ParentID)})
				break
			}
			at = parent
		}
		if state[at] == 1 && len(way) > 0 && way[len(way)-1] != at {
			problems = append(problems, Problem{Line: f.entries[at].Line, Severity: Fatal, Text: "its parents go in a circle"})
		} else if state[at] == 1 && len(way) > 0 && f.entries[at].ParentID == f.entries[at].ID && f.entries[at].ID != "" {
			problems = append(problems, Problem{Line: f.entries[at].Line, Severity: Fatal, Text: "it is its own parent"})
		}
		for _, i := range way {
			state[i] = 2
		}
	}
	return problems
}
