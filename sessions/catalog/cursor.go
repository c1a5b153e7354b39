package catalog

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// cursor reads JSON in place, in one pass. It checks the structure that it needs to find its way and no more: strings are
// skipped at the speed of a byte search, which is what makes lines full of base64 cheap. It doesn't recurse, so nesting
// costs no stack.
type cursor struct {
	b []byte
	i int
}

func (c *cursor) space() {
	for c.i < len(c.b) {
		switch c.b[c.i] {
		case ' ', '\t', '\r', '\n':
			c.i++
		default:
			return
		}
	}
}

// peek is the next byte that isn't space, 0 at the end.
func (c *cursor) peek() byte {
	c.space()
	if c.i < len(c.b) {
		return c.b[c.i]
	}
	return 0
}

func (c *cursor) accept(b byte) bool {
	if c.peek() != b {
		return false
	}
	c.i++
	return true
}

// str reads a string and returns what is between its quotes. On an unterminated one it returns what is there.
func (c *cursor) str() (raw []byte, ok bool) {
	if !c.accept('"') {
		return nil, false
	}
	start := c.i
	for {
		n := bytes.IndexByte(c.b[c.i:], '"')
		if n < 0 {
			c.i = len(c.b)
			return c.b[start:], false
		}
		end := c.i + n
		c.i = end + 1
		// The quote ends the string unless an odd number of backslashes stands before it.
		back := end
		for back > start && c.b[back-1] == '\\' {
			back--
		}
		if (end-back)%2 == 0 {
			return c.b[start:end], true
		}
	}
}

// value skips a value of any kind and returns its bytes.
func (c *cursor) value() (raw []byte, ok bool) {
	first := c.peek()
	start := c.i
	switch first {
	case '"':
		_, ok := c.str()
		return c.b[start:c.i], ok
	case '{', '[':
		for depth := 0; c.i < len(c.b); {
			switch c.b[c.i] {
			case '"':
				if _, ok := c.str(); !ok {
					return c.b[start:], false
				}
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
			c.i++
			if depth == 0 {
				return c.b[start:c.i], true
			}
		}
		return c.b[start:], false
	}
	for c.i < len(c.b) {
		switch c.b[c.i] {
		case ',', '}', ']', ' ', '\t', '\r', '\n', ':', '"', '{', '[':
			return c.b[start:c.i], c.i > start
		}
		c.i++
	}
	return c.b[start:c.i], c.i > start
}

// object reads an object. member is called with the cursor before each value and must consume it; false ends the reading.
func (c *cursor) object(member func(key []byte) bool) bool {
	if !c.accept('{') {
		return false
	}
	if c.accept('}') {
		return true
	}
	for {
		key, ok := c.str()
		if !ok || !c.accept(':') {
			return false
		}
		if bytes.IndexByte(key, '\\') >= 0 {
			key = unquote(nil, key)
		}
		if !member(key) {
			return false
		}
		if c.accept('}') {
			return true
		}
		if !c.accept(',') {
			return false
		}
	}
}

// array reads an array. element is called with the cursor before each value and must consume it; false ends the reading.
func (c *cursor) array(element func() bool) bool {
	if !c.accept('[') {
		return false
	}
	if c.accept(']') {
		return true
	}
	for {
		if !element() {
			return false
		}
		if c.accept(']') {
			return true
		}
		if !c.accept(',') {
			return false
		}
	}
}

// end says that nothing but space is left.
func (c *cursor) end() bool {
	c.space()
	return c.i == len(c.b)
}

// unquote appends a string's value to dst: escapes are resolved, and what is no UTF-8 becomes U+FFFD.
func unquote(dst, raw []byte) []byte {
	for i := 0; i < len(raw); {
		b := raw[i]
		switch {
		case b == '\\' && i+1 < len(raw):
			i++
			switch raw[i] {
			case 'b':
				dst = append(dst, '\b')
			case 'f':
				dst = append(dst, '\f')
			case 'n':
				dst = append(dst, '\n')
			case 'r':
				dst = append(dst, '\r')
			case 't':
				dst = append(dst, '\t')
			case 'u':
				r, ok := hex4(raw[i+1:])
				if !ok {
					return dst
				}
				i += 4
				if utf16.IsSurrogate(r) {
					pair := rune(utf8.RuneError)
					if i+2 < len(raw) && raw[i+1] == '\\' && raw[i+2] == 'u' {
						if low, ok := hex4(raw[i+3:]); ok {
							pair = utf16.DecodeRune(r, low)
						}
					}
					if pair != utf8.RuneError {
						i += 6
					}
					r = pair
				}
				dst = utf8.AppendRune(dst, r)
			default:
				dst = append(dst, raw[i])
			}
			i++
		case b < utf8.RuneSelf:
			next := i + 1
			for next < len(raw) && raw[next] < utf8.RuneSelf && raw[next] != '\\' {
				next++
			}
			dst = append(dst, raw[i:next]...)
			i = next
		default:
			r, n := utf8.DecodeRune(raw[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
		}
	}
	return dst
}

// hex4 reads the four digits of a \u escape.
func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
