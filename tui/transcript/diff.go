package transcript

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/tidwall/gjson"

	"patio/tui/safe"
)

// diffLine is one line of a diff. Its number is 0 when only the place in the file could
// tell it.
type diffLine struct {
	sign   byte // '+', '-', ' ', or '~' for lines that were left out
	number int
	text   string
}

// diff is what a call did to a file, or is about to.
type diff struct {
	lines          []diffLine
	added, removed int
	left           int // lines that aren't kept
}

const (
	// maxDiffLines bounds what is kept of a diff.
	maxDiffLines = 2000
	// maxDiffText is the largest text that is compared.
	maxDiffText = 64 << 10
)

func (d *diff) add(sign byte, number int, text string) {
	switch sign {
	case '+':
		d.added++
	case '-':
		d.removed++
	}
	if len(d.lines) >= maxDiffLines {
		d.left++
		return
	}
	if len(text) > 4<<10 {
		text = cutBack(text[:4<<10]) + "…"
	}
	d.lines = append(d.lines, diffLine{sign, number, strings.Clone(text)})
}

// diffOf reads the diff in the details of an edit's result: lines of a sign, a number and
// text, as Pi makes them.
func diffOf(text string) *diff {
	d := &diff{}
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		if line == "" {
			continue
		}
		sign := line[0]
		rest := strings.TrimLeft(line[1:], " ")
		number, content, _ := strings.Cut(rest, " ")
		n, err := strconv.Atoi(number)
		switch {
		case sign != '+' && sign != '-' && sign != ' ':
			return nil
		case err == nil && n > 0:
			d.add(sign, n, content)
		case strings.TrimSpace(line) == "...":
			d.add('~', 0, "")
		default:
			return nil
		}
	}
	if d.added+d.removed == 0 {
		return nil
	}
	return d
}

// diffOfArgs is what an edit's or a write's arguments say; nil when they say none.
func diffOfArgs(name, args string) *diff {
	switch name {
	case "write":
		content := gjson.Get(args, "content")
		if content.Type != gjson.String {
			return nil
		}
		d := &diff{}
		n := 0
		for line := range strings.SplitSeq(strings.TrimSuffix(content.Str, "\n"), "\n") {
			n++
			d.add('+', n, line)
		}
		return d
	case "edit":
		d := &diff{}
		edits := gjson.Get(args, "edits").Array()
		if len(edits) == 0 {
			edits = []gjson.Result{gjson.Parse(args)}
		}
		for i, e := range edits {
			before, after := e.Get("oldText"), e.Get("newText")
			if before.Type != gjson.String || after.Type != gjson.String {
				return nil
			}
			if i > 0 {
				d.add('~', 0, "")
			}
			d.compare(before.Str, after.Str)
		}
		return d
	}
	return nil
}

// compare adds the lines of a change whose place in the file isn't known.
func (d *diff) compare(before, after string) {
	end := func(s string) string {
		if s != "" && !strings.HasSuffix(s, "\n") {
			return s + "\n"
		}
		return s
	}
	before, after = end(before), end(after)
	if len(before)+len(after) <= maxDiffText {
		u, err := udiff.ToUnifiedDiff("", "", before, udiff.Lines(before, after), udiff.DefaultContextLines)
		if err == nil && len(u.Hunks) > 0 {
			for _, h := range u.Hunks {
				for _, l := range h.Lines {
					sign := map[udiff.OpKind]byte{udiff.Delete: '-', udiff.Insert: '+', udiff.Equal: ' '}[l.Kind]
					d.add(sign, 0, strings.TrimSuffix(l.Content, "\n"))
				}
			}
			return
		}
	}
	for _, side := range []struct {
		sign byte
		text string
	}{{'-', before}, {'+', after}} {
		if side.text == "" {
			continue
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(side.text, "\n"), "\n") {
			d.add(side.sign, 0, line)
		}
	}
}

// draw draws lines of the diff.
func (d *diff) draw(t *Transcript, from, to, width int) []string {
	digits := 0
	for _, l := range d.lines {
		if l.number > 0 {
			digits = max(digits, len(strconv.Itoa(l.number)))
		}
	}
	var out []string
	for _, l := range d.lines[from:to] {
		number := strings.Repeat(" ", digits)
		if l.number > 0 {
			number = fmt.Sprintf("%*d", digits, l.number)
		}
		if digits > 0 {
			number += " "
		}
		indent := t.styles.Border.Render("  │ ") + t.styles.Muted.Render(number)
		room := max(width-4-len(number)-2, 1)
		if l.sign == '~' {
			out = append(out, indent+t.styles.Muted.Render("⋯"))
			continue
		}
		st := t.styles.Muted
		switch l.sign {
		case '+':
			st = t.styles.Added
		case '-':
			st = t.styles.Removed
		}
		for i, piece := range safe.Wrap(safe.Text(clearOf(l.text)), room) {
			sign := string(l.sign) + " "
			if i > 0 {
				sign = "  "
				indent = t.styles.Border.Render("  │ ") + strings.Repeat(" ", len(number))
			}
			out = append(out, indent+st.Render(sign+piece))
		}
	}
	return out
}
