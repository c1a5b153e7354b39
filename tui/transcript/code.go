package transcript

import (
	"image/color"
	"math"
	"path/filepath"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/alecthomas/chroma/v2/styles"
	"github.com/charmbracelet/x/ansi"

	"patio/tui/safe"
	"patio/tui/style"
)

const (
	// colourBudget is how much code is coloured for one frame, in bytes; the rest is coloured
	// for the next ones. Colouring takes about 3 µs a byte.
	colourBudget = 2 << 10
	// maxCodeLine is the longest line that is coloured: lexers are made of expressions that
	// backtrack.
	maxCodeLine = 600
)

// painter colours code in the chroma style of the palette.
type painter struct {
	style  *chroma.Style
	plain  lipgloss.Style
	faint  color.Color                    // for what a chroma style has too little contrast for
	types  map[chroma.TokenType][2]string // what is written before and behind text
	lexers map[string]chroma.Lexer
}

func newPainter(s *style.Styles) *painter {
	return &painter{style: styles.Get(s.Palette.Code), plain: s.Code, faint: s.Muted.GetForeground(), types: map[chroma.TokenType][2]string{}, lexers: map[string]chroma.Lexer{}}
}

// lexer finds the lexer of a language or a file's name, nil for none.
func (p *painter) lexer(lang string) chroma.Lexer {
	lang = strings.ToLower(safe.Fit(lang, 60))
	if lang == "" || lang == "text" || lang == "plain" || lang == "txt" {
		return nil
	}
	l, known := p.lexers[lang]
	if !known {
		if l = lexers.Get(lang); l == nil {
			l = lexers.Match(filepath.Base(lang))
		}
		if len(p.lexers) > 100 {
			clear(p.lexers)
		}
		p.lexers[lang] = l
	}
	return l
}

// of is the style of a kind of token, on the surface's colour.
func (p *painter) of(kind chroma.TokenType) [2]string {
	if around, ok := p.types[kind]; ok {
		return around
	}
	st, e := p.plain, p.style.Get(kind)
	if e.Colour.IsSet() {
		c := lipgloss.Color(e.Colour.String())
		if contrast(c, p.plain.GetBackground()) < leastContrast {
			c = p.faint
		}
		st = st.Foreground(c)
	}
	if e.Bold == chroma.Yes {
		st = st.Bold(true)
	}
	if e.Italic == chroma.Yes {
		st = st.Italic(true)
	}
	before, behind, _ := strings.Cut(st.Render("x"), "x")
	p.types[kind] = [2]string{before, behind}
	return p.types[kind]
}

// leastContrast is what text needs to be read: chroma's styles are made for backgrounds
// of their own, and many draw comments hardly visible.
const leastContrast = 3

// contrast is the ratio of two colours' luminances; without a background it is unknown,
// and taken to be good.
func contrast(a, b color.Color) float64 {
	if _, none := b.(lipgloss.NoColor); none || b == nil {
		return 21
	}
	la, lb := luminance(a), luminance(b)
	return (max(la, lb) + 0.05) / (min(la, lb) + 0.05)
}

func luminance(c color.Color) float64 {
	part := func(v uint32) float64 {
		x := float64(v) / 0xffff
		if x <= 0.04045 {
			return x / 12.92
		}
		return math.Pow((x+0.055)/1.055, 2.4)
	}
	r, g, b, _ := c.RGBA()
	return 0.2126*part(r) + 0.7152*part(g) + 0.0722*part(b)
}

// paint colours lines of code; nil when it has no lexer for them.
func (p *painter) paint(source, lang string) (lines []string) {
	defer func() {
		if recover() != nil {
			lines = nil
		}
	}()
	l := p.lexer(lang)
	if l == nil {
		return nil
	}
	for line := range strings.SplitSeq(source, "\n") {
		if len(line) > maxCodeLine {
			return nil
		}
	}
	tokens, err := l.Tokenise(nil, source)
	if err != nil {
		return nil
	}
	var b strings.Builder
	for token := tokens(); token != chroma.EOF; token = tokens() {
		st := p.of(token.Type)
		text := token.Value
		for {
			line, rest, more := strings.Cut(text, "\n")
			if line != "" {
				b.WriteString(st[0])
				b.WriteString(line)
				b.WriteString(st[1])
			}
			if !more {
				break
			}
			lines = append(lines, b.String())
			b.Reset()
			text = rest
		}
	}
	return append(lines, b.String())
}

// code draws a block of code as a panel of the surface's colour, indented by two columns.
func (t *Transcript) code(source, lang string, width int) []string {
	source = strings.TrimRight(safe.Text(source), "\n")
	raw := strings.Split(source, "\n")
	var coloured []string
	switch {
	case t.painter.lexer(lang) == nil:
	case t.coloured >= colourBudget:
		t.isRough = true
	default:
		t.coloured += len(source)
		coloured = t.painter.paint(source, lang)
	}
	room := max(min(width, maxProse)-4, 1)
	pad := t.painter.plain.Render
	var out []string
	for i, line := range raw {
		// A lexer may normalise line ends: what doesn't fit is drawn plain.
		shown := paint(t.painter.plain, line)
		if i < len(coloured) && safe.Width(coloured[i]) == safe.Width(line) {
			shown = coloured[i]
		}
		pieces := []string{shown}
		if safe.Width(line) > room {
			pieces = strings.Split(hardWrap(shown, room), "\n")
		}
		for _, piece := range pieces {
			gap := max(room-safe.Width(piece), 0)
			out = append(out, "  "+pad(" ")+piece+pad(strings.Repeat(" ", gap+1)))
		}
	}
	return out
}

// hardWrap breaks a styled line at a width, each piece with its styles.
func hardWrap(s string, width int) string {
	return lipgloss.Wrap(ansi.Hardwrap(s, width, true), width, "")
}
