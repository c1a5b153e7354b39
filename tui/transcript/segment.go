package transcript

import (
	"slices"
	"strings"

	"charm.land/lipgloss/v2"

	"patio/tui/safe"
)

// segment is some lines that are drawn together, and only when they are looked at.
type segment struct {
	draw  func(width int) []string
	lines []string
	// drawn is the layout that lines were drawn for, 0 for none.
	drawn  int
	height int    // of lines, or about
	rough  bool   // lines lack their colours yet
	used   uint64 // the last frame that showed it
	head   bool   // a click on it folds and unfolds
	live   bool   // it changes by itself
	listed bool   // in drawnSegments
	counts int    // of the lines that are counted as cached
}

// stale has the lines drawn anew. Their number stays as an estimate.
func (s *segment) stale() { s.drawn, s.lines = 0, nil }

// about is roughly how many lines a text takes.
func about(bytes, lines, width int) int { return max(lines+bytes/max(width, 1), 1) }

// linesOf draws a segment, or takes what was drawn.
func (t *Transcript) linesOf(s *segment) []string {
	if s.drawn == t.drawing && !s.live && (!s.rough || t.coloured >= colourBudget) {
		s.used = t.frame
		return s.lines
	}
	t.isRough = false
	s.lines = slices.Clone(s.draw(t.inner()))
	for k := range s.lines {
		s.lines[k] = safe.Pad(s.lines[k], t.inner()) // once, not at each frame
	}
	s.rough = t.isRough
	s.drawn, s.height, s.used = t.drawing, len(s.lines), t.frame
	t.cached += len(s.lines) - s.counts
	s.counts = len(s.lines)
	if !s.listed {
		s.listed = true
		t.drawnSegments = append(t.drawnSegments, s)
	}
	return s.lines
}

// heightOf is how many lines a segment has, or about if it wasn't drawn.
func (s *segment) heightOf() int { return max(s.height, 0) }

// maxCached is how many drawn lines are kept for when they are looked at again.
const maxCached = 20_000

// forget drops drawn lines that aren't on the screen when there are too many.
func (t *Transcript) forget() {
	if t.cached <= maxCached && len(t.drawnSegments) <= maxCached {
		return
	}
	kept := t.drawnSegments[:0]
	t.cached = 0
	for _, s := range t.drawnSegments {
		if s.used == t.frame {
			kept = append(kept, s)
			t.cached += len(s.lines)
			continue
		}
		s.stale()
		s.listed, s.counts = false, 0
	}
	clear(t.drawnSegments[len(kept):])
	t.drawnSegments = kept
}

// blank is the segment of one empty line.
func blank() *segment {
	return &segment{height: 1, draw: func(int) []string { return []string{""} }}
}

// wrap draws plain text of a style, each of its lines with an indent before it.
func wrap(text string, width int, st lipgloss.Style, indent string) []string {
	room := max(width-safe.Width(indent), 1)
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		if safe.Width(line) <= room {
			out = append(out, indent+paint(st, line))
			continue
		}
		for _, l := range safe.Wrap(line, room) {
			out = append(out, indent+paint(st, l))
		}
	}
	return out
}

// paint is st.Render for one line, which may be empty.
func paint(st lipgloss.Style, s string) string {
	if s == "" {
		return ""
	}
	return st.Render(s)
}
