package transcript

import (
	"slices"
	"strings"

	"patio/engine/api"
	"patio/tui/safe"
)

// place is a line of the conversation: of an item by number, of one of its segments.
type place struct{ n, segment, line int }

// row is a line on the screen.
type row struct {
	place
	text  string
	head  bool // of what folds
	first bool // of its item's lines with something on them
}

// View implements pane.Pane.
func (t *Transcript) View() string {
	if t.width <= 0 || t.height <= 0 {
		return ""
	}
	if t.styles == nil || t.width <= gutter {
		return safe.Block("", t.width, t.height)
	}
	t.frame++
	t.coloured = 0
	rows := t.lookUp()
	defer t.forget()
	lines := make([]string, 0, t.height)
	for _, r := range rows {
		lines = append(lines, t.mark(r)+r.text)
	}
	if t.messages == 0 && t.follow && len(lines)+2 <= t.height {
		lines = append(lines, strings.Repeat(" ", t.width), safe.Pad(t.styles.Muted.Render(safe.Cut("  "+t.hint(), t.width)), t.width))
	}
	if !t.follow {
		lines = append(lines, safe.Pad(t.belowLine(), t.width))
	}
	for len(lines) < t.height {
		lines = append(lines, strings.Repeat(" ", t.width))
	}
	return strings.Join(lines, "\n")
}

// hint says what will be here.
func (t *Transcript) hint() string {
	phase := t.phase
	if phase == "" {
		phase = t.session.Phase
	}
	switch {
	case t.needs && !t.given:
		return "Reading what was said before…"
	case phase == api.PhaseReady:
		return "Nothing was said yet. Write to Pi below, and Enter sends it."
	case phase.Final():
		return "Nothing was said in this session."
	case phase == "":
		return "The conversation is shown here."
	}
	return "The conversation begins when the sandbox is ready."
}

// belowLine says that the end isn't shown.
func (t *Transcript) belowLine() string {
	text := "▼ " + plural(t.below, "more line", "more lines") + ", G"
	if t.belowMore {
		text = "▼ more than " + plural(t.below, "line", "lines") + " below, G"
	}
	text = safe.Cut(text, max(t.width-2, 0))
	return strings.Repeat(" ", max(t.width-safe.Width(text)-1, 0)) + t.styles.Accent.Bold(true).Render(text)
}

// mark is what stands at the left of a row: who speaks, and what is selected.
func (t *Transcript) mark(r row) string {
	i := t.at(r.n)
	selected := t.focused && t.chosen && r.n == t.selected
	switch {
	case r.segment == 0 && t.gapped(r.n): // the blank line above
		return "  "
	case selected && r.first:
		return t.styles.Accent.Bold(true).Render("▶") + " "
	case selected:
		return t.styles.Accent.Render("▌") + " "
	case i.kind == kindUser:
		return t.styles.User.Render("┃") + " "
	}
	return "  "
}

// lookUp computes the rows of the screen.
func (t *Transcript) lookUp() []row {
	t.below, t.belowMore = 0, false
	if len(t.items) == 0 || t.height <= 0 || t.styles == nil {
		t.rows = nil
		return nil
	}
	if !t.follow {
		t.clampTop()
		rows := t.down(t.top, t.height)
		end := len(rows) < t.height
		if !end {
			_, more := t.next(rows[len(rows)-1].place)
			end = !more
		}
		if !end {
			t.rows = rows[:t.height-1]
			t.countBelow()
			return t.rows
		}
		t.follow = true
	}
	t.rows = t.up(t.height)
	return t.rows
}

// clampTop brings the first row back onto what there is.
func (t *Transcript) clampTop() {
	switch {
	case t.top.n < t.base:
		t.top = place{n: t.base}
	case !t.has(t.top.n):
		t.top = place{n: t.base + len(t.items) - 1}
	}
	s := t.segmentsOf(t.top.n)
	if t.top.segment >= len(s) {
		t.top.segment, t.top.line = max(len(s)-1, 0), 0
	}
	if len(s) > 0 {
		if n := len(t.linesOf(s[t.top.segment])); t.top.line >= n {
			t.top.line = max(n-1, 0)
		}
	}
}

// rowsOf are the rows of one segment.
func (t *Transcript) rowsOf(n, segment int) []row {
	s := t.segmentsOf(n)[segment]
	lines := t.linesOf(s)
	rows := make([]row, len(lines))
	first := segment == 0 && !t.gapped(n) || segment == 1 && t.gapped(n)
	for k, line := range lines {
		rows[k] = row{place: place{n, segment, k}, text: line, head: s.head, first: first && k == 0}
	}
	return rows
}

// down are the rows from a place on, at most max.
func (t *Transcript) down(from place, limit int) []row {
	var rows []row
	for n := from.n; t.has(n) && len(rows) < limit; n++ {
		for k := range t.segmentsOf(n) {
			if n == from.n && k < from.segment {
				continue
			}
			some := t.rowsOf(n, k)
			if n == from.n && k == from.segment {
				some = some[min(from.line, len(some)):]
			}
			rows = append(rows, some...)
			if len(rows) >= limit {
				break
			}
		}
	}
	return rows[:min(len(rows), limit)]
}

// up are the last rows.
func (t *Transcript) up(limit int) []row {
	var back [][]row
	count := 0
	for n := t.base + len(t.items) - 1; n >= t.base && count < limit; n-- {
		for k := len(t.segmentsOf(n)) - 1; k >= 0 && count < limit; k-- {
			some := t.rowsOf(n, k)
			back = append(back, some)
			count += len(some)
		}
	}
	slices.Reverse(back)
	rows := slices.Concat(back...)
	return rows[max(len(rows)-limit, 0):]
}

// next is the line after a place.
func (t *Transcript) next(p place) (place, bool) {
	p.line++
	for t.has(p.n) {
		s := t.segmentsOf(p.n)
		for p.segment < len(s) {
			if p.line < len(t.linesOf(s[p.segment])) {
				return p, true
			}
			p.segment, p.line = p.segment+1, 0
		}
		p = place{n: p.n + 1}
	}
	return p, false
}

// previous is the line before a place.
func (t *Transcript) previous(p place) (place, bool) {
	if p.line--; p.line >= 0 {
		return p, true
	}
	for {
		for p.segment--; p.segment >= 0; p.segment-- {
			if n := len(t.linesOf(t.segmentsOf(p.n)[p.segment])); n > 0 {
				p.line = n - 1
				return p, true
			}
		}
		if p.n--; p.n < t.base {
			return place{}, false
		}
		p.segment = len(t.segmentsOf(p.n))
	}
}

// maxBelow is how many items below the screen are counted.
const maxBelow = 400

// countBelow counts the lines below the screen, those that weren't drawn by estimate.
func (t *Transcript) countBelow() {
	if len(t.rows) == 0 {
		return
	}
	p := t.rows[len(t.rows)-1].place
	for n := p.n; t.has(n); n++ {
		if n > p.n+maxBelow {
			t.belowMore = true
			return
		}
		for k, s := range t.segmentsOf(n) {
			switch {
			case n == p.n && k < p.segment:
			case n == p.n && k == p.segment:
				t.below += max(len(s.lines)-1-p.line, 0)
			default:
				t.below += s.heightOf()
			}
		}
	}
	t.below = max(t.below, 1)
}

// ScrollToEnd follows what comes from here on.
func (t *Transcript) ScrollToEnd() { t.follow = true }

// AtEnd says that the end is shown, and what comes will be.
func (t *Transcript) AtEnd() bool { return t.follow }

// scroll moves the screen by lines.
func (t *Transcript) scroll(by int) {
	if t.styles == nil || len(t.items) == 0 || by == 0 {
		return
	}
	t.coloured = colourBudget // what is passed needs no colours
	rows := t.lookUp()
	if len(rows) == 0 {
		return
	}
	if t.follow {
		if by > 0 || len(rows) < t.height {
			return
		}
		t.follow, t.top = false, rows[0].place
		if _, ok := t.previous(t.top); !ok {
			t.follow = true
			return
		}
	}
	for ; by < 0; by++ {
		p, ok := t.previous(t.top)
		if !ok {
			break
		}
		t.top = p
	}
	for ; by > 0; by-- {
		p, ok := t.next(t.top)
		if !ok {
			break
		}
		t.top = p
	}
	t.lookUp() // which notices the end
}

// reveal brings an item onto the screen.
func (t *Transcript) reveal(n int) {
	if t.styles == nil || t.height <= 0 || !t.has(n) {
		return
	}
	t.coloured = colourBudget
	rows := t.lookUp()
	first, last := -1, -1
	for k, r := range rows {
		if r.n == n {
			if first < 0 {
				first = k
			}
			last = k
		}
	}
	begun := first >= 0 && rows[first].segment == 0 && rows[first].line == 0
	ended := false
	if last >= 0 {
		p, ok := t.next(rows[last].place)
		ended = !ok || p.n != n
	}
	if begun && (ended || first == 0) {
		return
	}
	if len(rows) > 0 && (first < 0 && n > rows[len(rows)-1].n || begun && !ended) {
		// From below: its end at the bottom, or its beginning at the top if it is long.
		p := place{n: n + 1}
		count := 0
		for {
			q, ok := t.previous(p)
			if !ok || q.n < n && count >= t.height-1 || count >= t.height-1 {
				break
			}
			p = q
			count++
		}
		if p.n == n {
			p = place{n: n}
		}
		t.follow, t.top = false, p
		t.lookUp()
		return
	}
	t.follow, t.top = false, place{n: n}
	t.lookUp()
}
