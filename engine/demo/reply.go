package demo

import (
	"iter"
	"strings"
	"time"
	"unicode/utf8"
)

// reply is one answer: either a failure, or pieces of text that may end in a tool call.
type reply struct {
	pieces []piece
	tool   string
	args   string
	pause  time.Duration

	status  int // not 0: a failure
	message string
}

// piece is a stretch of an answer: a text, or so many bytes of filler made as they are sent.
type piece struct {
	reasoning bool
	text      string
	filler    int64
}

func said(text string) piece { return piece{text: text} }

func (p piece) size() int64 { return int64(len(p.text)) + p.filler }

// Sizes of a delta. Real models send a few characters at a time; long texts come in larger pieces, so that a gigabyte
// isn't 40 million events.
const (
	minDelta  = 24
	maxDelta  = 16 << 10
	maxDeltas = 400
)

func deltaSize(total int64) int { return int(min(max(total/maxDeltas, minDelta), maxDelta)) }

// deltas cuts a piece into what is streamed one by one.
func (p piece) deltas() iter.Seq[string] {
	return func(yield func(string) bool) {
		size := deltaSize(p.size())
		for s := p.text; s != ""; {
			n := cut(s, size)
			if !yield(s[:n]) {
				return
			}
			s = s[n:]
		}
		for at := int64(0); at < p.filler; {
			s := fillerAt(at)
			s = s[:min(int64(len(s)), int64(size), p.filler-at)]
			if !yield(s) {
				return
			}
			at += int64(len(s))
		}
	}
}

// cut gives the length of a start of s near size, at the end of a word or at least of a character.
func cut(s string, size int) int {
	if len(s) <= size {
		return len(s)
	}
	if i := strings.LastIndexByte(s[size/2:size], ' '); i >= 0 {
		return size/2 + i + 1
	}
	for size > 1 && !utf8.RuneStart(s[size]) {
		size--
	}
	return size
}

// filler is what TEXT is made of, over and over: readable, and one byte a character.
var filler = strings.Repeat(`The courtyard is quiet in the morning. A lizard rests on the warm stones while water runs slowly `+
	`through the narrow channel toward the lemon trees. Nobody is in a hurry, and the gate stays closed.
`, 100)

// fillerAt gives filler from an offset on: at least one byte, at most as much as there is before it starts over.
func fillerAt(at int64) string { return filler[at%int64(len(filler)):] }
