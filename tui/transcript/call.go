package transcript

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"patio/tui/figure"
	"patio/tui/safe"
)

// callState is how far a tool call is.
type callState int

const (
	callWritten callState = iota // the model writes it
	callWaiting
	callRunning
	callDone
	callFailed
	callStopped // nothing more comes of it
)

// call is a tool call, or a command that the user ran.
type call struct {
	id      string
	name    string
	args    string // JSON, bounded
	main    string // the argument that says most
	written int    // bytes, while the model writes it
	state   callState
	began   time.Time
	took    time.Duration
	partial []byte // the newest tool_execution_update that wasn't read yet
	out     *flow
	images  []image
	diff    *diff
	user    bool
	exit    string // of a command: what its exit code says
}

const (
	// maxArgs bounds what is kept of a call's arguments.
	maxArgs = 64 << 10
	// foldedLines is how much of an output is shown before it is unfolded.
	foldedLines = 4
	foldedDiff  = 10
)

// setArgs takes the arguments of a call, as JSON.
func (c *call) setArgs(args gjson.Result) {
	if !args.Exists() || args.Raw == "" || c.main != "" && c.args != "" {
		return
	}
	c.main = mainArgument(args)
	c.diff = diffOfArgs(c.name, args.Raw)
	c.args = bounded(args.Raw, maxArgs)
}

// bounded is a copy of the beginning of s.
func bounded(s string, n int) string {
	if len(s) > n {
		return strings.Clone(cutBack(s[:n]) + "…")
	}
	return strings.Clone(s)
}

// mainArgument is the argument that says most, of those that tools have.
func mainArgument(args gjson.Result) string {
	for _, key := range []string{"command", "path", "file_path", "pattern", "query", "url"} {
		if v := args.Get(key); v.Type == gjson.String {
			return bounded(v.Str, 8<<10)
		}
	}
	if args.Raw == "{}" {
		return ""
	}
	return bounded(args.Raw, 1<<10)
}

// setResult takes a result or, while the call runs, what there is of it.
func (c *call) setResult(result gjson.Result) {
	var text []string
	c.images = nil
	result.Get("content").ForEach(func(_, b gjson.Result) bool {
		switch {
		case b.Get("type").Str == "image":
			c.images = append(c.images, imageOf(b))
		case b.Get("text").Exists():
			text = append(text, b.Get("text").Str)
		}
		return true
	})
	c.setOutput(strings.Join(text, "\n"))
	if details := result.Get("details.diff"); details.Type == gjson.String {
		if d := diffOf(details.Str); d != nil {
			c.diff = d
		}
	}
}

func imageOf(b gjson.Result) image {
	data := b.Get("data").Str
	if data == "" {
		data = b.Get("source.data").Str
	}
	mime := b.Get("mimeType").Str
	if mime == "" {
		mime = "of an unknown kind"
	}
	return image{bounded(mime, 80), len(data) / 4 * 3}
}

func (c *call) setOutput(text string) {
	if c.out != nil && c.out.same(text) {
		return
	}
	c.out = flowOf(text, false)
}

// readPartial reads what was put off until someone looks.
func (c *call) readPartial() {
	if c.partial == nil {
		return
	}
	c.setResult(gjson.GetBytes(c.partial, "line.partialResult"))
	c.partial = nil
}

func (c *call) running() bool {
	return c.state == callRunning || c.state == callWritten || c.state == callWaiting
}

// end gives the call its last state.
func (c *call) end(state callState, at time.Time) {
	c.state = state
	if !c.began.IsZero() && at.After(c.began) {
		c.took = at.Sub(c.began)
	}
}

// outLines is how many lines the output has.
func (c *call) outLines() int {
	if c.out == nil || c.out.size == 0 {
		return 0
	}
	n := c.out.lines
	if !c.endsLine() {
		n++
	}
	return n
}

func (c *call) endsLine() bool {
	if len(c.out.parts) == 0 {
		return true
	}
	return strings.HasSuffix(c.out.source(c.out.parts[len(c.out.parts)-1]), "\n")
}

func (t *Transcript) callSegments(s []*segment, i *item) []*segment {
	c := i.call
	open := t.open(i)
	c.readPartial()
	s = append(s, &segment{height: 1, head: true, live: c.running(), draw: func(w int) []string { return []string{t.callHead(i, open, w)} }})
	if c.state == callWritten {
		return s
	}
	for _, img := range c.images {
		s = append(s, &segment{height: 1, draw: func(w int) []string {
			return []string{t.styles.Border.Render("  │ ") + t.styles.Muted.Render(safe.Cut(img.String(), max(w-4, 1)))}
		}})
	}
	if open {
		s = t.callArgs(s, c)
	}
	if c.diff != nil && c.state != callFailed {
		return t.diffSegments(s, i, open)
	}
	if open && c.diff != nil {
		s = t.diffSegments(s, i, open)
	}
	if c.outLines() == 0 {
		return s
	}
	if open {
		for _, p := range c.out.parts {
			p.seg.draw = func(w int) []string { return t.outputPart(c, p, w) }
			if p.seg.height == 0 {
				p.seg.height = about(len(p.text), strings.Count(p.text, "\n"), t.inner())
			}
			s = append(s, &p.seg)
		}
		return s
	}
	return append(s, &segment{height: min(c.outLines(), foldedLines+1), draw: func(w int) []string { return t.folded(c, w) }})
}

// outputPart draws a part of the output, beside a bar.
func (t *Transcript) outputPart(c *call, p *part, width int) []string {
	if p.kind == partGap {
		return []string{t.styles.Border.Render("  │ ") + t.styles.Warning.Render(safe.Cut("… "+figure.Size(int64(p.left))+" more: open it in Traffic", max(width-4, 1)))}
	}
	return wrap(safe.Text(clearOf(strings.TrimSuffix(c.out.source(p), "\n"))), width, t.styles.Muted, t.styles.Border.Render("  │ "))
}

// folded is a glimpse of the output: its end while it runs or when it failed, for that
// says why, and else its beginning.
func (t *Transcript) folded(c *call, width int) []string {
	bar := t.styles.Border.Render("  │ ")
	room := max(width-4, 1)
	n := c.outLines()
	tail := c.state == callFailed || c.running()
	lines := glimpse(c.out, foldedLines, tail)
	var out []string
	more := t.styles.Border.Render("  │ ") + t.styles.Muted.Italic(true).Render(safe.Cut("… "+plural(n-len(lines), "more line", "more lines"), room))
	if n > len(lines) && tail {
		out = append(out, more)
	}
	for _, line := range lines {
		out = append(out, bar+paint(t.styles.Muted, safe.Fit(clearOf(line), room)))
	}
	if n > len(lines) && !tail {
		out = append(out, more)
	}
	return out
}

// glimpse are the first or the last lines of a text.
func glimpse(f *flow, n int, tail bool) []string {
	if tail {
		text := ""
		for k := len(f.parts) - 1; k >= 0 && strings.Count(text, "\n") <= n; k-- {
			if f.parts[k].kind == partGap {
				break
			}
			text = f.source(f.parts[k]) + text
		}
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		return lines[max(len(lines)-n, 0):]
	}
	text := ""
	for k := 0; k < len(f.parts) && strings.Count(text, "\n") <= n && f.parts[k].kind != partGap; k++ {
		text += f.source(f.parts[k])
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	return lines[:min(len(lines), n)]
}

func (t *Transcript) diffSegments(s []*segment, i *item, open bool) []*segment {
	d := i.call.diff
	shown := len(d.lines)
	if !open {
		shown = min(shown, foldedDiff)
	}
	const at = 40 // lines a segment
	for from := 0; from < shown; from += at {
		to := min(from+at, shown)
		s = append(s, &segment{height: to - from, draw: func(w int) []string { return d.draw(t, from, to, w) }})
	}
	if rest := len(d.lines) + d.left - shown; rest > 0 {
		text := "… " + plural(rest, "more line", "more lines")
		if open {
			text += ": open it in Traffic"
		}
		s = append(s, &segment{height: 1, draw: func(w int) []string {
			return []string{t.styles.Border.Render("  │ ") + t.styles.Muted.Italic(true).Render(safe.Cut(text, max(w-4, 1)))}
		}})
	}
	return s
}

// callArgs are the arguments that the head doesn't show whole.
func (t *Transcript) callArgs(s []*segment, c *call) []*segment {
	bar := t.styles.Border.Render("  │ ")
	if strings.HasPrefix(c.args, "{") && gjson.Valid(c.args) {
		count := 0
		gjson.Parse(c.args).ForEach(func(k, v gjson.Result) bool {
			text := v.Str
			if v.Type != gjson.String {
				text = v.Raw
			}
			one := text == c.main
			if c.diff != nil && (k.Str == "content" || k.Str == "edits" || k.Str == "oldText" || k.Str == "newText") || one && !strings.Contains(text, "\n") && len(text) < 60 {
				return true
			}
			if count++; count > 40 {
				return false
			}
			label := safe.Fit(k.Str, 40)
			s = append(s, &segment{height: 1, draw: func(w int) []string {
				head, more := firstLines(text, 40)
				if more {
					head += "\n…"
				}
				lines := wrap(safe.Text(label+": "+head), max(w-4, 1), t.styles.Text, "")
				for k := range lines {
					lines[k] = bar + lines[k]
				}
				return lines
			}})
			return true
		})
		return s
	}
	if c.args == "" && !strings.Contains(c.main, "\n") {
		return s
	}
	text := c.main
	if text == "" {
		text = c.args
	}
	return append(s, &segment{height: 1, draw: func(w int) []string {
		head, _ := firstLines(text, 40)
		return wrap(safe.Text(head), w, t.styles.Text, bar)
	}})
}

// callHead is the line that says which call it is and how far.
func (t *Transcript) callHead(i *item, open bool, width int) string {
	c := i.call
	var sign string
	st := t.styles.Warning
	word := ""
	switch c.state {
	case callWritten, callWaiting, callRunning:
		sign = t.spin()
	case callDone:
		sign, st = "✓", t.styles.Good
	case callFailed:
		sign, st, word = "✗", t.styles.Bad, "failed"
	case callStopped:
		sign, st, word = "■", t.styles.Muted, "stopped"
	}
	name := c.name
	if name == "" {
		name = "tool call"
	}
	meta := t.callMeta(c, open, word)
	name = safe.Fit(name, max(min(30, width/3), 1))
	left := width - 2 - safe.Width(name) - 2 - safe.Width(meta)
	line := st.Render(sign) + " " + t.styles.Tool.Bold(true).Render(name)
	argument := c.main
	if first, rest, more := strings.Cut(argument, "\n"); more {
		argument = first
		if strings.TrimSpace(rest) != "" {
			argument += " …"
		}
	}
	if argument != "" && left >= 8 {
		line += "  " + t.styles.Text.Render(safe.Fit(argument, left-2))
	}
	if meta != "" {
		line += "  " + t.styles.Muted.Render(meta)
	}
	return safe.Cut(line, width)
}

// callMeta says how long it took and what it gave.
func (t *Transcript) callMeta(c *call, open bool, word string) string {
	var parts []string
	add := func(s string) {
		if s != "" {
			parts = append(parts, s)
		}
	}
	add(word)
	add(c.exit)
	switch {
	case c.state == callWritten:
		if c.written > 0 {
			add("writing, " + figure.Size(int64(c.written)))
		}
		return strings.Join(parts, " · ")
	case c.state == callWaiting:
		add("waiting")
	case c.state == callRunning:
		add("running")
		if d := t.now().Sub(c.began); d >= time.Second && !c.began.IsZero() {
			add(spanOf(d))
		}
	case c.took > 0:
		add(spanOf(c.took))
	}
	arrow := "▸ "
	if open {
		arrow = "▾ "
	}
	switch n := c.outLines(); {
	case c.diff != nil && c.state != callFailed:
		add(fmt.Sprintf("%s+%d −%d", arrow, c.diff.added, c.diff.removed))
	case n > 0:
		add(arrow + plural(n, "line", "lines") + ", " + figure.Size(int64(c.out.size)))
	case c.state == callDone:
		add("no output")
	}
	return strings.Join(parts, " · ")
}
