package cli

import (
	"fmt"
	"strings"

	"github.com/mattn/go-runewidth"
)

// settingsProblem is one fault in the configuration file.
type settingsProblem struct {
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
	// Text is the line, without what a terminal would obey, where its words don't tell.
	Text string `json:"text,omitempty"`
}

// settingsError is a configuration file that can't be used.
type settingsError struct {
	path     string
	problems []settingsProblem
}

// maxProblems bounds what one error tells: a file of another kind is wrong in every line.
const maxProblems = 20

// Error implements error, with one line for each problem, as compilers write them.
func (e *settingsError) Error() string {
	var lines []string
	for i, p := range e.problems {
		if i == maxProblems {
			lines = append(lines, fmt.Sprintf("%s: and %d more", e.path, len(e.problems)-i))
			break
		}
		place := e.path
		if p.Line > 0 {
			place = fmt.Sprintf("%s:%d:%d", e.path, p.Line, p.Column)
		}
		line := place + ": " + cleanLine(p.Message)
		if p.Text != "" {
			line += ": " + p.Text
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// shownLine is what is quoted of a line: enough to find it by, on a line of its own.
const shownLine = 80

// quoteLine is a line of the file to be shown.
func quoteLine(text []byte, line int) string {
	lines := strings.Split(string(text), "\n")
	if line < 1 || line > len(lines) {
		return ""
	}
	return runewidth.Truncate(strings.TrimSpace(cleanLine(lines[line-1])), shownLine, "…")
}

// maxName is longer than any name that a person mistypes.
const maxName = 64

// closestName is the name that a wrong one was meant to be, empty when none is like it.
func closestName(name string, names []string) string {
	if len(name) > maxName {
		return ""
	}
	best, found := max(2, len(name)/3)+1, ""
	for _, n := range names {
		if d := editDistance(strings.ToLower(name), n); d < best {
			best, found = d, n
		}
	}
	return found
}

// editDistance counts the letters to insert, delete, replace or swap with their neighbour.
func editDistance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
