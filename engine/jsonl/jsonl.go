// Package jsonl reads lines of JSON as Pi frames them: LF ends a line and nothing else
// does (raw U+2028 occurs inside), and a line may be of any size.
package jsonl

import (
	"bufio"
	"errors"
	"io"
)

// keep bounds the buffer that a Reader holds on to between lines: one huge line must not
// cost its size for the rest of a session.
const keep = 1 << 20

// Reader reads lines. It is not safe for use by several goroutines.
type Reader struct {
	r    *bufio.Reader
	line []byte
}

// NewReader returns a reader of r's lines.
func NewReader(r io.Reader) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 64<<10)}
}

// Next returns the next line without its LF, valid until the next call. A last line
// without LF is returned with io.ErrUnexpectedEOF; after that comes io.EOF.
func (r *Reader) Next() ([]byte, error) {
	if cap(r.line) > keep {
		r.line = nil
	}
	r.line = r.line[:0]
	for {
		part, err := r.r.ReadSlice('\n')
		if err == nil && len(r.line) == 0 {
			return part[:len(part)-1], nil // the common case copies nothing
		}
		r.line = append(r.line, part...)
		switch {
		case err == nil:
			return r.line[:len(r.line)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(r.line) > 0:
			return r.line, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}
