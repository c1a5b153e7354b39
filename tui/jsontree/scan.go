package jsontree

import "bytes"

// The scanner finds where values begin and end without decoding them. It takes anything:
// what isn't JSON gives odd values, but never a panic and never a step that stands still.

// skipString is the offset after the string whose quote is at i. Strings are most of a
// large document, and a quote is found at the speed of memory.
func skipString(b []byte, i int) int {
	j := i + 1
	// Most strings are short: a call costs more than a look at a few bytes.
	for end := min(j+24, len(b)); j < end; j++ {
		if b[j] == '"' {
			return j + 1
		}
		if b[j] == '\\' {
			break
		}
	}
	for {
		k := bytes.IndexByte(b[j:], '"')
		if k < 0 {
			return len(b)
		}
		j += k
		escapes := 0
		for j-1-escapes > i && b[j-1-escapes] == '\\' {
			escapes++
		}
		j++
		if escapes%2 == 0 {
			return j
		}
	}
}

// structural marks the bytes at which a container's scan has to look.
var structural = [256]bool{'"': true, '{': true, '}': true, '[': true, ']': true}

// skipValue is the offset after the value at i.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return len(b)
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		depth := 0
		for j := i; j < len(b); {
			for j < len(b) && !structural[b[j]] {
				j++
			}
			if j == len(b) {
				break
			}
			switch b[j] {
			case '"':
				j = skipString(b, j)
			case '{', '[':
				depth++
				j++
			default:
				depth--
				j++
				if depth == 0 {
					return j
				}
			}
		}
		return len(b)
	}
	j := i + 1
	for j < len(b) && !ends(b[j]) {
		j++
	}
	return j
}

func ends(c byte) bool {
	switch c {
	case ' ', '\t', '\r', '\n', ',', ':', '{', '}', '[', ']', '"':
		return true
	}
	return false
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

// item is one member of a container.
type item struct {
	keyFrom, keyTo int // with the quotes; equal when there is no key
	from, to       int
}

// begin is where the item starts, with its key.
func (m item) begin() int {
	if m.keyTo > m.keyFrom {
		return m.keyFrom
	}
	return m.from
}

// next reads the item of a container's inside, b[i:], and where to go on; ok is false at
// its end.
func next(b []byte, i int, keys bool) (m item, after int, ok bool) {
	for i < len(b) && (b[i] == ',' || b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	if i >= len(b) {
		return m, i, false
	}
	if keys && b[i] == '"' {
		m.keyFrom, m.keyTo = i, skipString(b, i)
		i = skipSpace(b, m.keyTo)
		if i < len(b) && b[i] == ':' {
			i = skipSpace(b, i+1)
		}
	}
	m.from = i
	m.to = skipValue(b, i)
	return m, m.to, true
}

// maxWindow is how much of one string is shown at a time.
const maxWindow = 64 << 10

// aligned moves an offset inside of a string's source forward until no character and no
// escape is cut there.
func aligned(b []byte, from, i, to int) int {
	// The longest escape is \uXXXX: without a backslash in the five bytes before, none is cut.
	for ; i > from && i < to; i++ {
		whole := b[i]&0xc0 != 0x80 && bytes.IndexByte(b[max(i-5, from):i], '\\') < 0
		if whole || b[i] == '\\' && begins(b, from, i) {
			return i
		}
	}
	return min(max(i, from), to)
}

// begins says that the backslash at i begins an escape: an even number stands before it.
func begins(b []byte, from, i int) bool {
	n := 0
	for i-1-n >= from && b[i-1-n] == '\\' {
		n++
	}
	return n%2 == 0
}
