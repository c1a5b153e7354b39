// Package safe makes foreign text harmless to a terminal and of a known width.
package safe

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// maxCombining is how many marks may stand on one character. Vietnamese and pointed
// Hebrew need two or three; floods of hundreds draw over the lines around.
const maxCombining = 3

// tabWidth is what a tab becomes; a terminal's own would break columns.
const tabWidth = 4

// dropped says that a rune may not reach the terminal. Without ESC and the C1 introducers
// no control sequence begins. Format characters turn the direction of text around, join
// what is apart, or take no place: terminals disagree on all of them. Variation selectors
// change a width that is measured without them.
func dropped(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r <= 0x9f:
		return true
	case r < 0xad:
		return false
	case r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0100 && r <= 0xe01ef, r >= 0x180b && r <= 0x180f:
		return true
	case r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0, r == 0x034f, r == 0x2800: // blank letters
		return true
	}
	return unicode.Is(unicode.Cf, r)
}

// plain says that s is printable ASCII, as most of everything is.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// Text returns s without anything that a terminal could take for a command. Line feeds
// stay, CRLF is one, tabs become spaces, and bytes that aren't UTF-8 become U+FFFD.
func Text(s string) string {
	if plain(s) {
		return s
	}
	return clean(s, true)
}

// Line is Text on one line: line ends and tabs become one space.
func Line(s string) string {
	if plain(s) {
		return s
	}
	return clean(s, false)
}

func clean(s string, lines bool) string {
	var b strings.Builder
	b.Grow(len(s))
	marks := maxCombining // none may come first: it would stand on what is before s
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		switch {
		case r == '\n', r == 0x2028, r == 0x2029, r == 0x85, r == '\r' && !strings.HasPrefix(s[i:], "\n"):
			if lines {
				b.WriteByte('\n')
			} else {
				b.WriteByte(' ')
			}
			marks = maxCombining
		case r == '\t' && lines:
			b.WriteString(strings.Repeat(" ", tabWidth))
			marks = 0
		case r == '\t':
			b.WriteByte(' ')
			marks = 0
		case dropped(r):
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Mc):
			if marks < maxCombining {
				marks++
				b.WriteRune(r)
			}
		default:
			marks = 0
			b.WriteRune(r) // U+FFFD for a byte that is no UTF-8
		}
	}
	return b.String()
}

// Width is the number of columns of one line of safe text, with or without our styling.
func Width(s string) int {
	if plain(s) {
		return len(s)
	}
	return ansi.StringWidth(s)
}

// longest bounds what Fit looks at: no screen is wider, whatever marks stand on it.
const longest = 16 << 10

// Fit makes foreign text one safe line of at most width columns; what is cut off leaves
// an ellipsis. It looks at the beginning only, so a line of 10 MB costs nothing.
func Fit(s string, width int) string {
	if width <= 0 {
		return ""
	}
	over := false
	if len(s) > longest {
		s, over = s[:longest], true
		for i := 0; i < utf8.UTFMax && !utf8.ValidString(s[len(s)-1:]); i++ {
			s = s[:len(s)-1]
		}
	}
	s = Line(s)
	if over && Width(s) <= width {
		s += "…"
	}
	return Cut(s, width)
}

// Cut shortens one line of safe text, styled or not, to at most width columns.
func Cut(s string, width int) string {
	if width <= 0 {
		return ""
	}
	if Width(s) <= width {
		return s
	}
	return ansi.Truncate(s, width, "…")
}

// Pad makes one line of safe text exactly width columns wide.
func Pad(s string, width int) string {
	s = Cut(s, width)
	if n := width - Width(s); n > 0 {
		return s + strings.Repeat(" ", n)
	}
	return s
}

// PadLeft is Pad with the text at the right, for figures.
func PadLeft(s string, width int) string {
	s = Cut(s, width)
	if n := width - Width(s); n > 0 {
		return strings.Repeat(" ", n) + s
	}
	return s
}

// Block makes safe text exactly width by height: lines are cut and padded, missing ones
// are blank, those too many are left out.
func Block(s string, width, height int) string {
	lines := strings.Split(s, "\n")
	if len(lines) > height {
		lines = lines[:max(height, 0)]
	}
	for i := range lines {
		lines[i] = Pad(lines[i], width)
	}
	for len(lines) < height {
		lines = append(lines, strings.Repeat(" ", max(width, 0)))
	}
	return strings.Join(lines, "\n")
}

// Wrap breaks safe text into lines of at most width columns, at spaces where there are.
func Wrap(s string, width int) []string {
	if width <= 0 {
		return nil
	}
	return strings.Split(ansi.Wrap(s, width, ""), "\n")
}
