package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"unicode"
	"unicode/utf8"
)

// pattern is what a search looks for in decoded texts.
type pattern struct {
	re      *regexp.Regexp // nil for a literal
	literal []byte
	folded  []rune // the literal, folded; nil when case counts
}

func compile(query string, isRegexp, caseSensitive bool) (*pattern, error) {
	switch {
	case query == "":
		return nil, errors.New("search: the query is empty; say what to look for")
	case !isRegexp && !utf8.ValidString(query):
		return nil, errors.New("search: the query isn't valid UTF-8")
	case isRegexp:
		re, err := regexp.Compile(flags(caseSensitive) + query)
		if err != nil {
			return nil, fmt.Errorf("search: %w", err)
		}
		return &pattern{re: re}, nil
	case caseSensitive:
		return &pattern{literal: []byte(query)}, nil
	}
	p := &pattern{literal: []byte(query)}
	for _, r := range query {
		p.folded = append(p.folded, fold(r))
	}
	return p, nil
}

// flags are those of every expression: lines have beginnings and ends.
func flags(caseSensitive bool) string {
	if caseSensitive {
		return "(?m)"
	}
	return "(?mi)"
}

// maxHits bounds the hits that are counted in one text.
const maxHits = 10_000

// find returns the first hit in a text and how many there are, 0 without any. Hits don't overlap, and an empty one is none.
func (p *pattern) find(text []byte) (start, end, hits int) {
	if p.re != nil {
		for _, loc := range p.re.FindAllIndex(text, maxHits) {
			if loc[0] == loc[1] {
				continue
			}
			if hits++; hits == 1 {
				start, end = loc[0], loc[1]
			}
		}
		return start, end, hits
	}
	for at := 0; hits < maxHits; hits++ {
		s, e := p.next(text, at)
		if s < 0 {
			break
		}
		if at = e; hits == 0 {
			start, end = s, e
		}
	}
	return start, end, hits
}

// next finds a literal in text from an offset on; start is negative without one.
func (p *pattern) next(text []byte, from int) (start, end int) {
	if p.folded == nil {
		n := bytes.Index(text[from:], p.literal)
		if n < 0 {
			return -1, -1
		}
		return from + n, from + n + len(p.literal)
	}
	for i := from; i < len(text); {
		if end := p.foldedAt(text, i); end >= 0 {
			return i, end
		}
		if text[i] < utf8.RuneSelf {
			i++
			continue
		}
		_, n := utf8.DecodeRune(text[i:])
		i += n
	}
	return -1, -1
}

// foldedAt returns where the folded literal ends that begins at i, negative if it doesn't.
func (p *pattern) foldedAt(text []byte, i int) int {
	for _, want := range p.folded {
		if i >= len(text) {
			return -1
		}
		r, n := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(text[i:])
		}
		if fold(r) != want {
			return -1
		}
		i += n
	}
	return i
}

// fold maps all cases of a character to one of them, as regular expressions do.
func fold(r rune) rune {
	if r < utf8.RuneSelf {
		if 'a' <= r && r <= 'z' {
			return r - ('a' - 'A')
		}
		return r
	}
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return least
}

// cases are all characters that fold to the same one, r among them.
func cases(r rune) []rune {
	all := []rune{r}
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		all = append(all, next)
	}
	return all
}
