package sessions

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxLine is the longest string that Pi's engine can hold (V8: 2^29-24 characters). A
// longer line ends Pi, so nothing reads one here.
const maxLine = 1<<29 - 24

// line is one line of a file with its place.
type line struct {
	number int
	offset int64
	length int64  // in bytes, without LF
	text   string // without LF; "" when it is too long
	ended  bool   // by LF
}

func (l line) tooLong() bool { return l.length > maxLine }

// source is what lines are read from: in order, and the long ones once more by offset, so
// that they take exactly their own size in memory.
type source interface {
	io.Reader
	io.ReaderAt
}

// lineReader reads lines of any size, ended by LF alone.
type lineReader struct {
	src    source
	r      *bufio.Reader
	number int
	offset int64
}

// newLineReader reads src from its start, where its file offset has to be.
func newLineReader(src source) *lineReader {
	return &lineReader{src: src, r: bufio.NewReaderSize(src, 256<<10)}
}

// next returns io.EOF after the last line.
func (r *lineReader) next() (line, error) {
	l := line{number: r.number + 1, offset: r.offset}
	for parts := 0; ; parts++ {
		part, err := r.r.ReadSlice('\n')
		l.length += int64(len(part))
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && (!errors.Is(err, io.EOF) || l.length == 0) {
			return line{}, err
		}
		r.number++
		r.offset += l.length
		if l.ended = err == nil; l.ended {
			l.length--
		}
		switch {
		case parts == 0:
			l.text = string(part[:l.length])
		case !l.tooLong():
			if l.text, err = readString(r.src, l.offset, l.length); err != nil {
				return line{}, fmt.Errorf("line %d: %w", l.number, err)
			}
		}
		return l, nil
	}
}

// readString reads a part of a file into memory once.
func readString(r io.ReaderAt, offset, length int64) (string, error) {
	var b strings.Builder
	b.Grow(int(length))
	n, err := io.Copy(&b, io.NewSectionReader(r, offset, length))
	if err == nil && n < length {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return "", err
	}
	return b.String(), nil
}
