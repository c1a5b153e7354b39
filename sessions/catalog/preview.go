package catalog

import (
	"unicode"
	"unicode/utf8"
)

// previewRunes bounds the texts in a Summary: more than a terminal's line, little enough for 10,000 of them.
const previewRunes = 240

// preview makes one displayable line of a text: white space becomes single spaces, and what could steer a terminal or
// reorder the line (control, format and surrogate characters) goes.
func preview(text []byte) string {
	out := make([]byte, 0, min(len(text), previewRunes))
	runes, space := 0, false
	for len(text) > 0 && runes < previewRunes {
		r, n := utf8.DecodeRune(text)
		text = text[n:]
		switch {
		case unicode.IsSpace(r):
			space = len(out) > 0
			continue
		case !displayable(r):
			continue
		}
		if space {
			out = append(out, ' ')
			runes++
			space = false
		}
		out = utf8.AppendRune(out, r)
		runes++
	}
	return string(out)
}

func displayable(r rune) bool {
	if r == '\u200d' { // joins emoji
		return true
	}
	return !unicode.In(r, unicode.Cc, unicode.Cf, unicode.Cs, unicode.Zl, unicode.Zp)
}
