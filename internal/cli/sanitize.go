package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// hazardous reports whether a rune must not reach a terminal: control characters of C0
// and C1 but for line feed and tab, DEL, and what changes the direction of text. Without
// ESC and the C1 introducers no control sequence can begin.
func hazardous(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20, r >= 0x7f && r <= 0x9f:
		return true
	case r == 0x061c, r == 0x200e, r == 0x200f: // marks
		return true
	case r >= 0x202a && r <= 0x202e: // embeddings and overrides
		return true
	case r >= 0x2066 && r <= 0x2069: // isolates
		return true
	}
	return false
}

// clean returns s without hazardous runes. Bytes that aren't UTF-8 become U+FFFD: a
// terminal in an 8-bit mode reads some of them as C1.
func clean(s string) string {
	if isClean(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if hazardous(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, string(utf8.RuneError)))
}

func isClean(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if hazardous(r) {
			return false
		}
	}
	return true
}

// cleanLine is clean for text that has to stay on one line.
func cleanLine(s string) string {
	s = clean(s)
	if !strings.ContainsAny(s, "\n\t\u2028\u2029") {
		return s
	}
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return r == '\n' || r == '\t' || r == 0x2028 || r == 0x2029
	}), " ")
}

// cleanMode says what a cleaner does with a hazardous rune.
type cleanMode int

const (
	// dropHazards leaves it out: for text.
	dropHazards cleanMode = iota
	// escapeJSON writes its JSON escape: what was JSON means the same afterwards.
	escapeJSON
)

// cleaner is a writer that lets no hazardous rune through, also when one is split over
// two writes. Flush tells it that nothing follows.
type cleaner struct {
	w    io.Writer
	mode cleanMode
	// tail is the start of a rune whose rest hasn't come.
	tail []byte
	buf  []byte
}

func newCleaner(w io.Writer, mode cleanMode) *cleaner { return &cleaner{w: w, mode: mode} }

// Write implements io.Writer.
func (c *cleaner) Write(p []byte) (int, error) {
	c.buf = c.buf[:0]
	b := p
	if len(c.tail) > 0 {
		b = append(c.tail, p...)
		c.tail = nil
	}
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size <= 1 && !utf8.FullRune(b) {
			c.tail = append([]byte(nil), b...)
			break
		}
		c.buf = c.append(c.buf, r)
		b = b[size:]
	}
	if err := c.emit(); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (c *cleaner) append(dst []byte, r rune) []byte {
	switch {
	case !hazardous(r):
		return utf8.AppendRune(dst, r)
	case c.mode == escapeJSON && r != '\r':
		// Outside of a string only CR can occur, as white space.
		return fmt.Appendf(dst, `\u%04x`, r)
	}
	return dst
}

func (c *cleaner) emit() error {
	if len(c.buf) == 0 {
		return nil
	}
	_, err := c.w.Write(c.buf)
	return err
}

// Flush writes U+FFFD for a rune that never became whole.
func (c *cleaner) Flush() error {
	if len(c.tail) == 0 {
		return nil
	}
	c.tail = nil
	c.buf = utf8.AppendRune(c.buf[:0], utf8.RuneError)
	return c.emit()
}
