package chat

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"patio/tui/safe"
)

// The text area holds runes and draws them. What a terminal must not get, it holds as a
// private code point that stands for it: drawn as a sign, sent as what it was.
const (
	standFirst = 0x100000
	standLast  = 0x10fffd
	standSign  = '·'
	standTab   = '⇥'
)

// stand is what one code point stands for. The runes of a chip's label are stands too; the
// chip's text is behind the first of them.
type stand struct {
	text string
	show rune
	chip *chip
}

// chip is a paste or an image that the text area shows as one word.
type chip struct {
	first rune
	label []rune
	text  string
	image *picture
}

// stands are those of one text.
type stands struct {
	list   []stand
	single map[string]rune
}

func isStand(r rune) bool { return r >= standFirst && r <= standLast }

// of is the stand with a code point.
func (s *stands) of(r rune) (stand, bool) {
	if i := int(r - standFirst); isStand(r) && i < len(s.list) {
		return s.list[i], true
	}
	return stand{}, false
}

// one returns the code point for text, which is shown as a sign.
func (s *stands) one(text string, show rune) rune {
	if r, ok := s.single[text]; ok {
		return r
	}
	if len(s.list) > standLast-standFirst {
		return show
	}
	if s.single == nil {
		s.single = map[string]rune{}
	}
	r := rune(standFirst + len(s.list))
	s.list = append(s.list, stand{text: text, show: show})
	s.single[text] = r
	return r
}

// add makes the code points of a chip. ok is false when there are none left.
func (s *stands) add(c *chip) (string, bool) {
	if len(s.list)+len(c.label) > standLast-standFirst+1 || len(c.label) == 0 {
		return "", false
	}
	c.first = rune(standFirst + len(s.list))
	var b strings.Builder
	for i, r := range c.label {
		t := stand{show: r, chip: c}
		if i == 0 {
			t.text = c.text
		}
		s.list = append(s.list, t)
		b.WriteRune(c.first + rune(i))
	}
	return b.String(), true
}

// maxMarks is how many combining marks stand on one character, as package safe has it.
const maxMarks = 3

// encode makes text fit for the text area. before is what stands left of it. It counts
// what is taken out for good: NUL and ESC, which end a line for Pi's terminal programs or
// begin a control sequence, and bytes that are no UTF-8, which JSON can't carry.
func (s *stands) encode(text, before string) (encoded string, removed int) {
	var b strings.Builder
	b.Grow(len(text))
	marks, based := marksOf(before)
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		i += size
		switch {
		case r == 0, r == 0x1b:
			removed++
			continue
		case r == '\r' && strings.HasPrefix(text[i:], "\n"):
			continue
		case r == '\n', r == '\r':
			b.WriteByte('\n')
			marks, based = 0, false
			continue
		case r >= 0x20 && r < 0x7f:
			b.WriteRune(r)
			marks, based = 0, true
			continue
		case r == utf8.RuneError:
			if size == 1 {
				removed++
			}
			b.WriteRune(s.one("\uFFFD", '?'))
		case r == '\t':
			b.WriteRune(s.one("\t", standTab))
		case isStand(r) || strange(r):
			b.WriteRune(s.one(string(r), standSign))
		case combining(r):
			if based && marks < maxMarks {
				marks++
				b.WriteRune(r)
				continue
			}
			b.WriteRune(s.one(string(r), standSign))
			continue
		default:
			b.WriteRune(r)
		}
		marks, based = 0, true
	}
	return b.String(), removed
}

// marksOf counts the combining marks at the end of a line.
func marksOf(line string) (marks int, based bool) {
	for line != "" {
		r, size := utf8.DecodeLastRuneInString(line)
		if !combining(r) {
			return marks, r != '\n'
		}
		marks++
		line = line[:len(line)-size]
	}
	return 0, false
}

func combining(r rune) bool { return unicode.In(r, unicode.Mn, unicode.Me, unicode.Mc) }

// strange says that package safe doesn't let a rune through.
func strange(r rune) bool {
	s := "a" + string(r)
	return safe.Line(s) != s
}

// decode is encode's inverse; the labels of pictures leave nothing.
func (s *stands) decode(text string) string {
	if len(s.list) == 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if t, ok := s.of(r); ok {
			b.WriteString(t.text)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// draw puts the signs in the place of the code points, in what the text area drew.
func (s *stands) draw(view string) string {
	return strings.Map(func(r rune) rune {
		if !isStand(r) {
			return r
		}
		if t, ok := s.of(r); ok {
			return t.show
		}
		return standSign
	}, view)
}

// chips are those that are whole in text, in order.
func (s *stands) chips(text string) []*chip {
	var all []*chip
	for _, r := range text {
		if t, ok := s.of(r); ok && t.chip != nil && t.chip.first == r {
			all = append(all, t.chip)
		}
	}
	return all
}

// whole removes what is left of chips that were broken by an edit. It returns the column
// that the cursor has then, if it was in this line.
func (s *stands) whole(line []rune, column int) ([]rune, int, bool) {
	var out []rune
	at, changed := column, false
	for i := 0; i < len(line); {
		t, ok := s.of(line[i])
		if !ok || t.chip == nil {
			out = append(out, line[i])
			i++
			continue
		}
		n := 0
		for n < len(t.chip.label) && i+n < len(line) && line[i+n] == t.chip.first+rune(n) {
			n++
		}
		if n == len(t.chip.label) {
			out = append(out, line[i:i+n]...)
			i += n
			continue
		}
		n = max(n, 1)
		changed = true
		if column > i {
			at -= min(n, column-i)
		}
		i += n
	}
	return out, at, changed
}

// bounds are where the chip around a column begins and ends.
func (s *stands) bounds(line []rune, column int) (from, to int, ok bool) {
	if column <= 0 || column >= len(line) {
		return 0, 0, false
	}
	t, found := s.of(line[column])
	if !found || t.chip == nil || line[column] == t.chip.first {
		return 0, 0, false
	}
	from = column - int(line[column]-t.chip.first)
	return from, from + len(t.chip.label), from >= 0
}
