package jsontree

import (
	"bytes"
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	"patio/tui/figure"
	"patio/tui/safe"
)

// View draws the tree, exactly as wide and high as its size; the last line says where the
// cursor is.
func (t *Tree) View() string {
	if t.width <= 0 || t.height <= 0 || t.styles == nil {
		return ""
	}
	lines := make([]string, 0, t.height)
	for i := t.top; i < len(t.rows) && len(lines) < t.body(); i++ {
		lines = append(lines, t.line(i))
	}
	for len(lines) < t.body() {
		lines = append(lines, "")
	}
	lines = append(lines, t.status())
	return safe.Block(strings.Join(lines, "\n"), t.width, t.height)
}

// pen draws one line, with the selection under its colours.
type pen struct {
	b     strings.Builder
	left  int
	whole *lipgloss.Style
	mark  *Matcher
	match lipgloss.Style
}

func (p *pen) write(text string, s lipgloss.Style) {
	text = safe.Cut(text, p.left)
	if text == "" {
		return
	}
	p.left -= safe.Width(text)
	if p.whole != nil {
		s = p.whole.Foreground(s.GetForeground())
	}
	if p.mark == nil {
		p.b.WriteString(s.Render(text))
		return
	}
	for text != "" {
		i := p.mark.Index([]byte(text))
		if i < 0 {
			p.b.WriteString(s.Render(text))
			return
		}
		if i > 0 {
			p.b.WriteString(s.Render(text[:i]))
		}
		m := p.match
		if p.whole != nil {
			m = m.Background(p.whole.GetBackground())
		}
		end := i + len(p.mark.lower)
		p.b.WriteString(m.Render(text[i:end]))
		text = text[end:]
	}
}

func (t *Tree) line(i int) string {
	r := t.rows[i]
	s := t.styles
	p := &pen{left: t.width}
	if i == t.cursor {
		p.whole = &s.Selected
		p.write("▌ ", s.Accent)
	} else {
		p.write("  ", s.Text)
	}
	p.write(strings.Repeat(" ", indent(r.depth, t.width)), s.Text)
	if text := safe.Line(t.query); text != "" {
		p.mark, p.match = NewMatcher(text), s.Match
	}
	switch {
	case r.text >= 0:
		if r.n.kind != kindText {
			p.write("│ ", s.Muted)
		}
		p.write(r.n.excerpt.lines[r.text], s.Text)
	case r.text == before:
		from, _ := r.n.text(t.doc.raw)
		p.write("▲ "+figure.Bytes(int64(r.n.excerpt.from-from))+" before this", s.Muted)
	case r.text == after:
		_, to := r.n.text(t.doc.raw)
		p.write("▼ "+figure.Bytes(int64(to-r.n.excerpt.to))+" after this: enter goes on", s.Muted)
	default:
		t.value(p, r.n)
	}
	if p.whole != nil {
		p.mark = nil
		p.write(strings.Repeat(" ", p.left), s.Text)
	}
	return p.b.String()
}

// maxPreview is how much of a value's source is looked at for its line.
const maxPreview = 2 << 10

func (t *Tree) value(p *pen, n *node) {
	s, raw := t.styles, t.doc.raw
	sign := "  "
	if n.container() && !n.empty(raw) || n.openable(raw) {
		sign = "▸ "
		if n.open {
			sign = "▾ "
		}
	}
	p.write(sign, s.Muted)
	switch {
	case n.keyTo > n.keyFrom:
		p.write(safe.Fit(n.key(raw), max(p.left/2, 8)), s.Accent)
		p.write(": ", s.Muted)
	case n.parent != nil && n.kind != kindGroup:
		p.write(fmt.Sprintf("%d", n.index), s.Muted)
		p.write(": ", s.Muted)
	}
	size := n.to - n.from
	switch n.kind {
	case kindObject, kindArray:
		t.containerLine(p, n, size)
	case kindGroup:
		p.write(fmt.Sprintf("%d … %d", n.index, n.index+n.count-1), s.Info)
		p.write(fmt.Sprintf("  %d items, %s", n.count, figure.Bytes(int64(size))), s.Muted)
	case kindString:
		t.stringLine(p, n)
	case kindNumber:
		p.write(safe.Fit(string(raw[n.from:min(n.to, n.from+maxPreview)]), p.left), s.Warning)
	default:
		p.write(safe.Fit(string(raw[n.from:min(n.to, n.from+maxPreview)]), p.left), s.Info)
	}
}

func (t *Tree) containerLine(p *pen, n *node, size int) {
	s, raw := t.styles, t.doc.raw
	shut, what := "{}", "keys"
	if n.kind == kindArray {
		shut, what = "[]", "items"
	}
	if n.empty(raw) {
		p.write(shut, s.Text)
		return
	}
	about := figure.Bytes(int64(size))
	if n.scanned {
		if n.count == 1 {
			what = strings.TrimSuffix(what, "s")
		}
		about = fmt.Sprintf("%d %s, %s", n.count, what, about)
	}
	if n.open {
		p.write(shut[:1], s.Text)
		p.write("  "+about, s.Muted)
		return
	}
	// What is folded shows how it begins.
	room := p.left - safe.Width(about) - 2
	preview := raw[n.from:min(n.to, n.from+maxPreview)]
	text := safe.Fit(string(preview), max(room, 4))
	p.write(text, s.Text)
	if size > maxPreview || safe.Width(text) >= room {
		p.write("  "+about, s.Muted)
	}
}

func (t *Tree) stringLine(p *pen, n *node) {
	s, raw := t.styles, t.doc.raw
	from, to := n.text(raw)
	about := figure.Bytes(int64(to - from))
	if n.open {
		p.write("text", s.Good)
		p.write("  "+about, s.Muted)
		return
	}
	room := p.left - 2
	if to-from > 40 {
		room -= safe.Width(about) + 2
	}
	end := aligned(raw, from, min(from+maxPreview, to), to)
	text := n.decode(raw, from, end)
	// Line ends are shown as what they are, for they would be spaces.
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "⏎")
	text = safe.Fit(text, max(room, 1))
	cut := strings.HasSuffix(text, "…") || end < to
	p.write(`"`+text+`"`, s.Good)
	if cut || to-from > 1000 || bytes.Contains(raw[from:end], []byte(`\n`)) {
		p.write("  "+about, s.Muted)
	}
}

func (t *Tree) status() string {
	s := t.styles
	if t.typing {
		line, _ := t.inputLine()
		return s.Accent.Render(line[:1]) + s.Text.Render(line[1:])
	}
	if t.note != "" {
		return s.Warning.Render(safe.Fit("! "+t.note, t.width))
	}
	var right string
	if t.query != "" {
		switch {
		case t.waiting:
			right = "searching…"
		case len(t.hits) == 0:
			right = "no match for " + safe.Fit(t.query, 20)
		case t.more:
			right = fmt.Sprintf("match %d of more than %d", t.hit+1, len(t.hits))
		default:
			right = fmt.Sprintf("match %d of %d", t.hit+1, len(t.hits))
		}
	} else if len(t.rows) > 0 {
		right = fmt.Sprintf("%d/%d", t.cursor+1, len(t.rows))
	}
	left := "text, no JSON · " + figure.Bytes(int64(len(t.doc.raw)))
	switch {
	case len(t.doc.raw) == 0:
		left, right = "nothing to show", ""
	case t.doc.json && len(t.rows) > 0:
		left = safe.Line(t.rows[t.cursor].n.path(t.doc.raw))
	}
	room := max(t.width-safe.Width(right)-2, 0)
	if safe.Width(left) > room {
		// The end of a path says more than its begin.
		r := []rune(left)
		for len(r) > 0 && safe.Width(string(r)) >= room {
			r = r[1:]
		}
		left = "…" + string(r)
	}
	return s.Muted.Render(safe.Pad(left, room) + "  " + safe.Cut(right, t.width))
}
