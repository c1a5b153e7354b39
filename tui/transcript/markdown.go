package transcript

import (
	"html"
	"regexp"
	"strings"

	"charm.land/glamour/v2"
	gansi "charm.land/glamour/v2/ansi"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"patio/themes"
	"patio/tui/safe"
)

// maxProse is how wide text is set: longer lines are hard to read.
const maxProse = 116

// maxNesting bounds what a line may nest lists and quotes: each level costs a wrapping of
// all that is in it.
const maxNesting = 8

func ref[T any](v T) *T { return &v }

// markdownStyle is what glamour draws with.
func markdownStyle(p themes.Palette) gansi.StyleConfig {
	colour := func(c string) *string {
		if c == "" {
			return nil
		}
		return &c
	}
	heading := func(prefix string, c string) gansi.StyleBlock {
		return gansi.StyleBlock{StylePrimitive: gansi.StylePrimitive{Prefix: prefix, Color: colour(c), Bold: ref(true)}}
	}
	zero := ref(uint(0))
	return gansi.StyleConfig{
		Document:   gansi.StyleBlock{StylePrimitive: gansi.StylePrimitive{Color: colour(p.Text)}, Margin: zero},
		BlockQuote: gansi.StyleBlock{StylePrimitive: gansi.StylePrimitive{Color: colour(p.Muted), Italic: ref(true)}, Indent: ref(uint(1)), IndentToken: ref("│ ")},
		List:       gansi.StyleList{LevelIndent: 2},
		Heading:    gansi.StyleBlock{StylePrimitive: gansi.StylePrimitive{Bold: ref(true), Color: colour(p.Accent)}},
		H1:         heading("# ", p.Accent), H2: heading("## ", p.Accent), H3: heading("### ", p.Accent),
		H4: heading("#### ", p.Text), H5: heading("##### ", p.Text), H6: heading("###### ", p.Muted),
		Strikethrough:  gansi.StylePrimitive{CrossedOut: ref(true)},
		Emph:           gansi.StylePrimitive{Italic: ref(true), Color: colour(p.Text)},
		Strong:         gansi.StylePrimitive{Bold: ref(true), Color: colour(p.Text)},
		HorizontalRule: gansi.StylePrimitive{Color: colour(p.Border), Format: "────────\n"},
		Item:           gansi.StylePrimitive{BlockPrefix: "• "},
		Enumeration:    gansi.StylePrimitive{BlockPrefix: ". "},
		Task:           gansi.StyleTask{Ticked: "[x] ", Unticked: "[ ] "},
		Link:           gansi.StylePrimitive{Color: colour(p.Info), Underline: ref(true)},
		LinkText:       gansi.StylePrimitive{Color: colour(p.Accent), Bold: ref(true)},
		Image:          gansi.StylePrimitive{Color: colour(p.Info), Underline: ref(true)},
		ImageText:      gansi.StylePrimitive{Color: colour(p.Muted), Format: "[image {{.text}}]"},
		Code:           gansi.StyleBlock{StylePrimitive: gansi.StylePrimitive{Color: colour(p.Info), BackgroundColor: colour(p.Surface)}},
		CodeBlock:      gansi.StyleCodeBlock{StyleBlock: gansi.StyleBlock{StylePrimitive: gansi.StylePrimitive{Color: colour(p.Text)}, Margin: ref(uint(2))}, Theme: p.Code},
		Table: gansi.StyleTable{StyleBlock: gansi.StyleBlock{Margin: ref(uint(1))},
			CenterSeparator: ref("┼"), ColumnSeparator: ref("│"), RowSeparator: ref("─")},
		DefinitionTerm:        gansi.StylePrimitive{Bold: ref(true)},
		DefinitionDescription: gansi.StylePrimitive{BlockPrefix: "\n  "},
	}
}

// markdown draws a part of a Markdown text.
func (t *Transcript) markdown(source string, width int) []string {
	width = min(width, maxProse)
	source = safe.Text(source)
	// Glamour breaks lines without regard to what they are in, and fills them with blanks, a
	// styled one at a time: but for tables, lines are broken here.
	source = literal(source)
	out, ok := t.glamour(source, 0)
	if ok && hasTable(source) && lipgloss.Width(out) > width {
		out, ok = t.glamour(source, width)
	}
	if !ok {
		return wrap(strings.Trim(source, "\n"), width, t.styles.Text, "")
	}
	var lines []string
	empty := true
	for line := range strings.SplitSeq(styledOnly(out), "\n") {
		bare := ansi.Strip(line)
		if strings.TrimSpace(bare) == "" {
			if !empty {
				lines = append(lines, "")
			}
			empty = true
			continue
		}
		empty = false
		lines = append(lines, hang(line, bare, width)...)
	}
	if n := len(lines); n > 0 && lines[n-1] == "" {
		lines = lines[:n-1]
	}
	return lines
}

// hasTable says that a line begins like a table's.
func hasTable(source string) bool {
	for line := range strings.SplitSeq(source, "\n") {
		if l := strings.TrimLeft(line, " "); strings.HasPrefix(l, "|") || strings.Contains(l, "|-") || strings.Contains(l, "-|") {
			return true
		}
	}
	return false
}

// lead is what a line begins with that its continuation is indented by.
var lead = regexp.MustCompile(`^(│ )*( *)(• |\d{1,9}\. |\[[ x]\] )?`)

// hang breaks a styled line, its continuation below its text.
func hang(line, bare string, width int) []string {
	line = strings.TrimRight(line, " ")
	if safe.Width(line) <= width {
		return []string{line}
	}
	first := lead.FindString(bare)
	indent := safe.Width(first)
	if indent > width/2 {
		indent, first = 0, ""
	}
	if indent == 0 {
		return strings.Split(lipgloss.Wrap(line, width, ""), "\n")
	}
	rest := strings.Split(lipgloss.Wrap(ansi.TruncateLeft(line, indent, ""), width-indent, ""), "\n")
	bars := strings.Repeat("│ ", strings.Count(first, "│"))
	for k := range rest {
		if k == 0 {
			rest[k] = ansi.Truncate(line, indent, "") + rest[k]
			continue
		}
		rest[k] = bars + strings.Repeat(" ", indent-safe.Width(bars)) + rest[k]
	}
	return rest
}

// glamour renders Markdown. It answers false for what glamour has no good answer to.
func (t *Transcript) glamour(source string, width int) (out string, ok bool) {
	defer func() {
		if recover() != nil { // foreign text, and parsers
			out, ok = "", false
			clear(t.renderers)
		}
	}()
	if tooNested(source) || width > 0 && width < 12 {
		return "", false
	}
	r := t.renderers[width]
	if r == nil {
		var err error
		if r, err = glamour.NewTermRenderer(glamour.WithStyles(markdownStyle(t.styles.Palette)), glamour.WithWordWrap(width), glamour.WithChromaFormatter("terminal16m")); err != nil {
			return "", false
		}
		if len(t.renderers) > 4 {
			clear(t.renderers) // of sizes before
		}
		t.renderers[width] = r
	}
	out, err := r.Render(source)
	return out, err == nil
}

// settled leaves out the end of a growing text that is no mark yet but would be drawn as
// another one: of a code block, a table's row, a heading's underline.
func settled(source string) string {
	i := strings.LastIndexByte(source, '\n') + 1
	last := strings.TrimLeft(source[i:], " ")
	if i > 0 && (strings.HasPrefix(last, "`") && strings.Trim(last, "`") == "" || strings.HasPrefix(last, "```") || strings.HasPrefix(last, "~~~") ||
		strings.HasPrefix(last, "|") || last != "" && strings.Trim(last, "-= ") == "") {
		return source[:i]
	}
	return source
}

// tooNested says that lists and quotes stand in each other too deeply.
func tooNested(source string) bool {
	for line := range strings.SplitSeq(source, "\n") {
		marks := 0
		for i := 0; i < len(line) && i < 4*maxNesting; i++ {
			switch line[i] {
			case '>':
				marks++
			case '-', '*', '+':
				if i+1 < len(line) && line[i+1] == ' ' {
					marks++
				}
			case ' ':
			default:
				i = len(line)
			}
		}
		if marks > maxNesting || strings.HasPrefix(line, strings.Repeat(" ", 6*maxNesting)) {
			return true
		}
	}
	return strings.Count(source, "[") > 200 || strings.Count(source, "*") > 600 || strings.Count(source, "_") > 600
}

// literal has glamour show what Markdown would take away or turn into something unsafe:
// HTML, which is mostly code that was meant to be seen, and entities of control characters.
func literal(source string) string {
	if !strings.ContainsAny(source, "<&") && !strings.Contains(source, "```") && !strings.Contains(source, "~~~") {
		return source
	}
	var b strings.Builder
	fence := ""
	for line := range strings.SplitAfterSeq(source, "\n") {
		trimmed := strings.TrimLeft(line, " >")
		mark, lang := fenceOf(strings.TrimRight(trimmed, "\r\n"))
		switch {
		case fence != "":
			if strings.HasPrefix(trimmed, fence) {
				fence = ""
			}
			b.WriteString(line)
		case mark != "":
			fence = mark
			if lang == "" {
				line = strings.TrimRight(line, " \r\n") + "text\n" // or its language is guessed, slowly
			}
			b.WriteString(line)
		case strings.HasPrefix(line, "    ") && !isMarker(trimmed):
			b.WriteString(line) // code, or the rest of an item: without tags of any use
		default:
			literalLine(&b, line)
		}
	}
	return b.String()
}

func literalLine(b *strings.Builder, line string) {
	for i := 0; i < len(line); {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line):
			b.WriteString(line[i : i+2])
			i += 2
		case c == '`':
			n := 1
			for i+n < len(line) && line[i+n] == '`' {
				n++
			}
			ticks := line[i : i+n]
			if end := strings.Index(line[i+n:], ticks); end >= 0 {
				b.WriteString(line[i : i+n+end+n])
				i += n + end + n
				continue
			}
			b.WriteString(ticks)
			i += n
		case c == '<' && !autolink(line[i:]):
			b.WriteString(`\<`)
			i++
		case c == '&' && strange(line[i:]):
			b.WriteString("&amp;")
			i++
		default:
			b.WriteByte(c)
			i++
		}
	}
}

// autolink says that a text begins with a link in angle brackets.
func autolink(s string) bool {
	return strings.HasPrefix(s, "<http://") || strings.HasPrefix(s, "<https://") || strings.HasPrefix(s, "<mailto:")
}

// strange says that a text begins with an entity of a character that may not be drawn.
func strange(s string) bool {
	end := strings.IndexByte(s, ';')
	if end < 0 || end > 40 {
		return strings.HasPrefix(s, "&#")
	}
	one := html.UnescapeString(s[:end+1])
	return one != s[:end+1] && (safe.Line(one) != one || strings.HasPrefix(s, "&#"))
}

// styledOnly takes everything but text and SGR out of what glamour made: links as OSC 8,
// and what else a library might write one day.
func styledOnly(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for s != "" {
		i := strings.IndexByte(s, 0x1b)
		if i < 0 {
			b.WriteString(safe.Text(s))
			break
		}
		if i > 0 {
			b.WriteString(safe.Text(s[:i]))
			s = s[i:]
		}
		n := sequence(s)
		if strings.HasPrefix(s, "\x1b[") && s[n-1] == 'm' && strings.Trim(s[2:n-1], "0123456789;:") == "" {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// sequence is the length of the escape sequence that s begins with.
func sequence(s string) int {
	if len(s) < 2 {
		return len(s)
	}
	switch s[1] {
	case '[':
		for i := 2; i < len(s); i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
			if s[i] < 0x20 || s[i] > 0x7e {
				return i
			}
		}
		return len(s)
	case ']':
		for i := 2; i < len(s); i++ {
			switch {
			case s[i] == 0x07:
				return i + 1
			case s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\':
				return i + 2
			case s[i] == '\n':
				return i
			}
		}
	}
	return 1
}
