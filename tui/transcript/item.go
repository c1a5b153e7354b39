package transcript

import (
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"patio/tui/figure"
	"patio/tui/safe"
)

// kind is what an item is.
type kind int

const (
	kindUser kind = iota
	kindText
	kindThinking
	kindCall
	kindNote    // a quiet line
	kindBreak   // a line across, for what happens to the session
	kindProblem // a box
	kindCost    // what an answer took
	kindSummary // of what was said before
	kindImage
)

// fold is whether an item's content is shown.
type fold int

const (
	foldDefault fold = iota
	foldClosed
	foldOpen
)

// item is one thing of the conversation that can be selected or is a line between.
type item struct {
	kind    kind
	seq     uint64 // of the journal's record that began it; 0 from Pi's session file
	at      time.Time
	speaker string // the name that is written above; foreign
	title   string // foreign
	sign    string
	grave   *lipglossStyle
	body    *flow
	call    *call
	images  []image
	fold    fold
	// growing: more of it comes. until is when nothing more came.
	growing bool
	until   time.Time
	// counts says that the item begins a message.
	counts bool

	version int
	built   built
}

// lipglossStyle picks a style of the theme that is in use when the item is drawn.
type lipglossStyle = func(t *Transcript) lipgloss.Style

// image is one that can't be shown here.
type image struct {
	mime string
	size int
}

func (i image) String() string {
	return "[image " + safe.Fit(i.mime, 40) + ", " + figure.Size(int64(i.size)) + "]"
}

// built are an item's segments and what they were built for.
type built struct {
	version, drawing int
	segments         []*segment
}

// changed has the item built anew.
func (i *item) changed() { i.version++ }

// selectable says that one can select the item.
func (i *item) selectable() bool {
	switch i.kind {
	case kindUser, kindText, kindThinking, kindCall, kindProblem, kindSummary:
		return true
	case kindNote, kindBreak, kindCost, kindImage:
	}
	return false
}

// foldable says that one can fold the item.
func (i *item) foldable() bool {
	switch i.kind {
	case kindThinking, kindCall, kindSummary:
		return true
	case kindUser:
		return i.body != nil && (i.body.lines > foldedUser || i.body.size > foldedUser*200)
	case kindText, kindNote, kindBreak, kindProblem, kindCost, kindImage:
	}
	return false
}

// open says that all of the item is shown.
func (t *Transcript) open(i *item) bool {
	if i.fold != foldDefault {
		return i.fold == foldOpen
	}
	switch i.kind {
	case kindThinking:
		return t.allThinking
	case kindCall:
		return t.allOutput
	case kindUser, kindSummary:
		return false
	case kindText, kindNote, kindBreak, kindProblem, kindCost, kindImage:
	}
	return true
}

// foldedUser is how many lines of a message are shown before it is unfolded.
const foldedUser = 24

// segmentsOf are the parts that an item is drawn in.
func (t *Transcript) segmentsOf(n int) []*segment {
	i := t.at(n)
	if i.built.segments != nil && i.built.version == i.version && i.built.drawing == t.drawing {
		return i.built.segments
	}
	var s []*segment
	if t.gapped(n) {
		s = append(s, blank())
	}
	if i.speaker != "" {
		s = append(s, &segment{height: 1, draw: func(w int) []string { return []string{t.speaker(i, w)} }})
	}
	switch i.kind {
	case kindUser:
		s = t.userSegments(s, i)
	case kindText:
		s = t.flowSegments(s, i.body, i.growing)
	case kindThinking:
		s = t.thinkingSegments(s, i)
	case kindCall:
		s = t.callSegments(s, i)
	case kindSummary:
		s = t.summarySegments(s, i)
	case kindProblem:
		s = append(s, &segment{height: 4, draw: func(w int) []string { return t.problem(i, w) }})
	case kindBreak:
		s = append(s, &segment{height: 1, live: i.growing, draw: func(w int) []string { return t.across(i, w) }})
	case kindNote, kindCost, kindImage:
		s = append(s, &segment{height: 1, live: i.growing, draw: func(w int) []string { return t.note(i, w) }})
	}
	i.built = built{i.version, t.drawing, s}
	return s
}

// gapped says that a blank line stands above an item.
func (t *Transcript) gapped(n int) bool {
	if n <= t.base {
		return false
	}
	before, i := t.at(n-1), t.at(n)
	switch i.kind {
	case kindCost:
		return false
	case kindNote, kindImage:
		return before.kind != kindNote && before.kind != kindImage
	case kindBreak:
		return before.kind != kindBreak
	case kindUser, kindText, kindThinking, kindCall, kindProblem, kindSummary:
	}
	return true
}

func (t *Transcript) speaker(i *item, width int) string {
	name, detail, _ := strings.Cut(i.speaker, "\n")
	line := t.styles.Agent.Bold(true).Render("◆ " + safe.Fit(name, 30))
	if detail != "" {
		line += " " + t.styles.Muted.Render(safe.Fit(detail, max(width-12, 1)))
	}
	return safe.Cut(line, width)
}

// flowSegments are those of a text's parts.
func (t *Transcript) flowSegments(s []*segment, f *flow, growing bool) []*segment {
	for k, p := range f.parts {
		last := growing && k == len(f.parts)-1
		if k > 0 && !p.tight && f.markdown {
			s = append(s, blank())
		}
		if p.kind == partCode && !p.tight && p.lang != "" {
			lang := p.lang
			s = append(s, &segment{height: 1, draw: func(w int) []string {
				label := " " + safe.Fit(lang, max(min(w-6, 40), 1))
				return []string{"  " + t.styles.Code.Foreground(t.styles.Muted.GetForeground()).Render(safe.Pad(label, max(w-2, 1)))}
			}})
		}
		if p.seg.draw == nil {
			if p.kind != partGap {
				p.seg.height = about(len(p.text), strings.Count(p.text, "\n"), t.inner())
			} else {
				p.seg.height = 1
			}
		}
		p.seg.draw = func(w int) []string { return t.part(f, p, w, last) }
		p.seg.used = 0
		if last {
			p.seg.stale()
		}
		s = append(s, &p.seg)
	}
	return s
}

func (t *Transcript) part(f *flow, p *part, width int, growing bool) []string {
	text := f.source(p)
	switch p.kind {
	case partCode:
		if !growing {
			p.ready = ready{}
			return t.code(text, p.lang, width)
		}
		// The line that grows has no colours yet, those above it keep theirs.
		whole := strings.LastIndexByte(text, '\n') + 1
		var lines []string
		if whole > 0 {
			lines = t.once(p, text[:whole], func() []string { return t.code(text[:whole], p.lang, width) })
		}
		if whole < len(text) {
			lines = slices.Concat(lines, t.code(text[whole:], "", width))
		}
		return lines
	case partMarkdown:
		if !growing {
			p.ready = ready{}
			return t.markdown(text, width)
		}
		text = settled(text)
		return t.once(p, text, func() []string { return t.markdown(text, width) })
	case partGap:
		return []string{t.styles.Muted.Render(safe.Cut("… "+figure.Size(int64(p.left))+" more: open it in Traffic", width))}
	case partPlain:
	}
	return wrap(safe.Text(clearOf(strings.TrimSuffix(text, "\n"))), width, t.styles.Text, "")
}

// once draws what a part has that is settled, and remembers it while that stays the same.
func (t *Transcript) once(p *part, source string, draw func() []string) []string {
	r := &p.ready
	if r.drawing != t.drawing || r.source != source || r.rough {
		*r = ready{source: source, drawing: t.drawing, lines: draw(), rough: t.isRough}
	}
	return r.lines
}

func (t *Transcript) userSegments(s []*segment, i *item) []*segment {
	s = append(s, &segment{height: 1, head: i.foldable(), draw: func(w int) []string {
		line := t.styles.User.Bold(true).Render("you")
		if !i.at.IsZero() {
			line += " " + t.styles.Muted.Render(t.clock(i.at))
		}
		return []string{safe.Cut(line, w)}
	}})
	for _, img := range i.images {
		s = append(s, &segment{height: 1, draw: func(w int) []string { return []string{t.styles.Muted.Render(safe.Cut(img.String(), w))} }})
	}
	if !i.foldable() || t.open(i) {
		s = t.flowSegments(s, i.body, false)
		if i.foldable() {
			s = append(s, t.foldLine("▴ less"))
		}
		return s
	}
	head, _ := firstLines(i.body.all(), foldedUser/2)
	s = append(s, &segment{height: foldedUser / 2, draw: func(w int) []string {
		return wrap(safe.Text(head), w, t.styles.Text, "")
	}})
	text := "▸ all of it, " + figure.Size(int64(i.body.size))
	if more := i.body.lines + 1 - foldedUser/2; more > 0 {
		text = "▸ " + plural(more, "more line", "more lines")
	}
	return append(s, t.foldLine(text))
}

// foldLine is a line that one can click on.
func (t *Transcript) foldLine(text string) *segment {
	return &segment{height: 1, head: true, draw: func(w int) []string { return []string{t.styles.Muted.Render(safe.Cut(text, w))} }}
}

// firstLines are the first lines of a text, bounded, and whether there are more.
func firstLines(text string, n int) (head string, more bool) {
	end := 0
	for range n {
		i := strings.IndexByte(text[end:], '\n')
		if i < 0 {
			end = len(text)
			break
		}
		end += i + 1
	}
	more = end < len(text)
	head = strings.TrimSuffix(text[:end], "\n")
	if limit := n * 240; len(head) > limit {
		head, more = cutBack(head[:limit])+"…", true
	}
	return head, more
}

func (t *Transcript) thinkingSegments(s []*segment, i *item) []*segment {
	open := t.open(i)
	s = append(s, &segment{height: 1, head: true, live: i.growing, draw: func(w int) []string {
		arrow := "▸"
		if open {
			arrow = "▾"
		}
		words := plural(i.body.words, "word", "words")
		var line string
		switch {
		case i.growing:
			line = t.spin() + " thinking… " + words
		case i.until.IsZero() || i.at.IsZero() || i.until.Sub(i.at) < 100*time.Millisecond:
			line = "∴ thought · " + words
		default:
			line = "∴ thought for " + spanOf(i.until.Sub(i.at)) + " · " + words
		}
		return []string{t.styles.Thinking.Render(safe.Cut(line+" "+arrow, w))}
	}})
	if !open {
		return s
	}
	for k, p := range i.body.parts {
		p.seg.draw = func(w int) []string {
			if p.kind == partGap {
				return t.part(i.body, p, w, false)
			}
			return wrap(safe.Text(strings.TrimSuffix(i.body.source(p), "\n")), min(w, maxProse), t.styles.Thinking, t.styles.Border.Render("│ "))
		}
		if p.seg.height == 0 {
			p.seg.height = about(len(p.text), strings.Count(p.text, "\n"), t.inner())
		}
		if i.growing && k == len(i.body.parts)-1 {
			p.seg.stale()
		}
		s = append(s, &p.seg)
	}
	return s
}

func (t *Transcript) summarySegments(s []*segment, i *item) []*segment {
	open := t.open(i)
	s = append(s, &segment{height: 1, head: i.body != nil, live: i.growing, draw: func(w int) []string {
		sign := i.sign
		if i.growing {
			sign = t.spin()
		}
		arrow := ""
		if i.body != nil && len(i.body.parts) > 0 {
			arrow = " ▸"
			if open {
				arrow = " ▾"
			}
		}
		st := t.styles.Muted
		if i.grave != nil {
			st = (*i.grave)(t)
		}
		return []string{st.Render(safe.Fit(sign+" "+i.title, max(w-2, 1)) + arrow)}
	}})
	if open && i.body != nil {
		s = t.flowSegments(s, i.body, false)
	}
	return s
}

// problem is a box that says what went wrong and what to do.
func (t *Transcript) problem(i *item, width int) []string {
	width = min(width, maxProse)
	room := width - 4
	if room < 8 {
		return wrap(safe.Text(i.title+"\n"+i.body.all()), width, t.styles.Bad, "")
	}
	edge := t.styles.Bad.Render
	title := " " + safe.Fit(i.title, room-4) + " "
	out := []string{edge("╭─") + t.styles.Bad.Bold(true).Render(title) + edge(strings.Repeat("─", max(width-3-safe.Width(title), 0))+"╮")}
	text, more := firstLines(i.body.all(), 20)
	lines := wrap(safe.Text(text), room, t.styles.Text, "")
	if more {
		lines = append(lines, t.styles.Muted.Render("… all of it is in Traffic"))
	}
	if i.sign != "" {
		lines = append(lines, wrap(i.sign, room, t.styles.Muted, "")...)
	}
	for _, line := range lines {
		out = append(out, edge("│")+" "+safe.Pad(line, room)+" "+edge("│"))
	}
	return append(out, edge("╰"+strings.Repeat("─", width-2)+"╯"))
}

// across is a line with words in it.
func (t *Transcript) across(i *item, width int) []string {
	st := t.styles.Muted
	if i.grave != nil {
		st = (*i.grave)(t)
	}
	sign := i.sign
	if i.growing {
		sign = t.spin()
	}
	words := i.title
	if !i.at.IsZero() {
		words += " · " + t.clock(i.at)
	}
	words = safe.Fit(strings.TrimSpace(sign+" "+words), max(width-6, 1))
	rule := max(min(width, maxProse)-4-safe.Width(words), 0)
	out := []string{t.styles.Border.Render("── ") + st.Render(words) + t.styles.Border.Render(" "+strings.Repeat("─", rule))}
	if i.body != nil {
		text, _ := firstLines(i.body.all(), 12)
		out = append(out, wrap(safe.Text(text), max(width-3, 1), st, "   ")...)
	}
	return out
}

// note is a quiet text with a sign.
func (t *Transcript) note(i *item, width int) []string {
	st := t.styles.Muted
	if i.grave != nil {
		st = (*i.grave)(t)
	}
	sign := i.sign
	if i.growing {
		sign = t.spin()
	}
	if len(i.title) > 8<<10 {
		return wrap(safe.Fit(sign+" "+i.title, max(width*8, 1)), width, st, "")
	}
	lines := wrap(safe.Text(i.title), max(width-2, 1), st, "")
	if len(lines) > 12 {
		lines = append(lines[:12], st.Render("… all of it is in Traffic"))
	}
	for k := range lines {
		if k == 0 {
			lines[k] = st.Render(sign) + " " + lines[k]
		} else {
			lines[k] = "  " + lines[k]
		}
	}
	return lines
}
