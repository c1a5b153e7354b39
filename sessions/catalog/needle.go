package catalog

import (
	"bytes"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// needle tells which lines can match, from their bytes as they are in the file. It may name a line that doesn't match; it never
// misses one that does. A part of the query without characters that JSON must or may escape in a short form is looked for as it
// is, and so are escapes that stand for one of its characters: one of both is in every line that matches.
type needle struct {
	literals [][]byte      // any of them
	folded   []byte        // or this, in which ASCII letters are lower and stand for both cases
	escaped  map[rune]bool // or a \u escape of one of these
	astral   bool          // or of half a surrogate pair
}

// finder finds places in one buffer after another. Offsets it is asked for only grow, until it is reset.
type finder interface {
	reset()
	// next is the first place at or after from, len(b) without one.
	next(b []byte, from int) int
}

// newNeedle makes the needle of a query that compile accepts.
func newNeedle(query string, isRegexp, caseSensitive bool) *needle {
	runes, folds := []rune(query), !caseSensitive
	if isRegexp {
		re, err := syntax.Parse(flags(caseSensitive)+query, syntax.Perl)
		if err != nil {
			return &needle{}
		}
		runes, folds = required(re)
	}
	if folds {
		return foldedNeedle(runes)
	}
	part := longest(runes, func(r rune) bool { return !mayEscape(r) })
	if len(part) == 0 {
		return &needle{}
	}
	n := &needle{literals: [][]byte{[]byte(string(part))}}
	n.escapes(part, false)
	return n
}

// mayEscape says that JSON has a short escape for the character, or that a decoder may have put it in the place of another.
func mayEscape(r rune) bool {
	return r < ' ' || r == '"' || r == '\\' || r == '/' || r == utf8.RuneError
}

func foldedNeedle(runes []rune) *needle {
	// ASCII letters and what has no case can be found in one go.
	part := longest(runes, func(r rune) bool {
		return !mayEscape(r) && (r < utf8.RuneSelf || len(cases(r)) == 1)
	})
	if cased := longest(runes, func(r rune) bool { return !mayEscape(r) }); len(part) < 3 && len(cased) > len(part) {
		return variants(cased)
	}
	if len(part) == 0 {
		return &needle{}
	}
	n := &needle{folded: []byte(strings.ToLower(string(part)))}
	for _, r := range part {
		for _, other := range cases(r) {
			// The Kelvin sign is a k, the long s is an s.
			if r < utf8.RuneSelf && other >= utf8.RuneSelf {
				n.literals = append(n.literals, []byte(string(other)))
			}
		}
	}
	n.escapes(part, true)
	return n
}

// maxVariants bounds how often a buffer is gone through.
const maxVariants = 16

// variants spells out the cases of the first characters.
func variants(runes []rune) *needle {
	n := &needle{literals: [][]byte{nil}}
	used := 0
	for _, r := range runes[:min(len(runes), 3)] {
		all := cases(r)
		if used > 0 && len(n.literals)*len(all) > maxVariants {
			break
		}
		var longer [][]byte
		for _, literal := range n.literals {
			for _, other := range all {
				longer = append(longer, utf8.AppendRune(slices.Clone(literal), other))
			}
		}
		n.literals = longer
		used++
	}
	n.escapes(runes[:used], true)
	return n
}

func (n *needle) escapes(runes []rune, folds bool) {
	n.escaped = map[rune]bool{}
	for _, r := range runes {
		all := []rune{r}
		if folds {
			all = cases(r)
		}
		for _, r := range all {
			n.escaped[r] = true
			n.astral = n.astral || r > 0xffff
		}
	}
}

// longest is the longest run of characters, counted in bytes, that all pass.
func longest(runes []rune, pass func(rune) bool) []rune {
	var best []rune
	for start := 0; start < len(runes); {
		end := start
		for end < len(runes) && pass(runes[end]) {
			end++
		}
		if len(string(runes[start:end])) > len(string(best)) {
			best = runes[start:end]
		}
		start = end + 1
	}
	return best
}

// required is the longest literal that every match of an expression contains.
func required(re *syntax.Regexp) (literal []rune, folds bool) {
	switch re.Op {
	case syntax.OpLiteral:
		return re.Rune, re.Flags&syntax.FoldCase != 0
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if l, f := required(sub); len(l) > len(literal) {
				literal, folds = l, f
			}
		}
		return literal, folds
	default:
	}
	return nil, false
}

// overlap is how many bytes of a buffer must be seen again with the next one, so that nothing between them is missed.
func (n *needle) overlap() int {
	longest := max(len(n.folded), len(`\u0000`))
	for _, l := range n.literals {
		longest = max(longest, len(l))
	}
	return longest - 1
}

// finders look for the needle, each for its part. Without any part, every line may match.
func (n *needle) finders() []finder {
	var all []finder
	for _, l := range n.literals {
		all = append(all, &literalFinder{literal: l})
	}
	if n.folded != nil {
		all = append(all, newFoldFinder(n.folded))
	}
	if len(n.escaped) > 0 {
		all = append(all, &escapeFinder{needle: n, backslashU: literalFinder{literal: []byte(`\u`)}})
	}
	if len(all) == 0 {
		all = append(all, everywhere{})
	}
	return all
}

type everywhere struct{}

func (everywhere) reset() {}

func (everywhere) next(_ []byte, from int) int { return from }

type literalFinder struct {
	literal []byte
	at      int // the last answer, negative before the first
}

func (f *literalFinder) reset() { f.at = -1 }

func (f *literalFinder) next(b []byte, from int) int {
	if f.at < from {
		if n := bytes.Index(b[from:], f.literal); n >= 0 {
			f.at = from + n
		} else {
			f.at = len(b)
		}
	}
	return f.at
}

// foldFinder finds ASCII letters in both cases. It goes by the rarest byte.
type foldFinder struct {
	folded       []byte
	rare         int // which byte
	lower, upper literalFinder
}

// common are bytes from frequent to rare in session files, about; others are rarer.
const common = " etaonisrhldcumpfgyw,.b-:vk_()0123456789/jxqz"

func newFoldFinder(folded []byte) *foldFinder {
	f := &foldFinder{folded: folded}
	best := -1
	for i, c := range folded {
		rank := strings.IndexByte(common, c)
		if rank < 0 {
			rank = len(common)
		}
		if c >= utf8.RuneSelf {
			rank = len(common) / 2 // one of few that a script's characters share
		}
		if rank > best {
			best, f.rare = rank, i
		}
	}
	c := folded[f.rare]
	f.lower.literal = []byte{c}
	f.upper.literal = bytes.ToUpper([]byte{c})
	if c >= utf8.RuneSelf || f.upper.literal[0] == c {
		f.upper.literal = nil
	}
	return f
}

func (f *foldFinder) reset() {
	f.lower.reset()
	f.upper.reset()
}

func (f *foldFinder) next(b []byte, from int) int {
	for at := from + f.rare; at < len(b); at++ {
		at = f.byteAt(b, at)
		if start := at - f.rare; at < len(b) && hasFolded(b[start:], f.folded) {
			return start
		}
	}
	return len(b)
}

func (f *foldFinder) byteAt(b []byte, from int) int {
	at := f.lower.next(b, from)
	if f.upper.literal != nil {
		at = min(at, f.upper.next(b, from))
	}
	return at
}

func hasFolded(b, folded []byte) bool {
	if len(b) < len(folded) {
		return false
	}
	for i, want := range folded {
		c := b[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != want {
			return false
		}
	}
	return true
}

// escapeFinder finds escapes of the needle's characters.
type escapeFinder struct {
	needle     *needle
	backslashU literalFinder
	at         int
}

func (f *escapeFinder) reset() {
	f.backslashU.reset()
	f.at = -1
}

func (f *escapeFinder) next(b []byte, from int) int {
	if f.at >= from {
		return f.at
	}
	for f.at = f.backslashU.next(b, from); f.at < len(b); f.at = f.backslashU.next(b, f.at+1) {
		r, ok := hex4(b[f.at+2:])
		if ok && (f.needle.escaped[r] || f.needle.astral && 0xd800 <= r && r < 0xe000) {
			return f.at
		}
	}
	return len(b)
}
