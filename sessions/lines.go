package sessions

import (
	"bufio"
	"errors"
	"io"
)

// line is one line of a file with its place. Its text is valid until the next one.
type line struct {
	number int
	offset int64
	text   []byte // without LF
	ended  bool   // by LF
}

// keepLine bounds the buffer that is kept between lines: a line may have 60 MB.
const keepLine = 1 << 20

// lineReader reads lines of any size, ended by LF alone.
type lineReader struct {
	r      *bufio.Reader
	buf    []byte
	number int
	offset int64
}

func newLineReader(r io.Reader) *lineReader { return &lineReader{r: bufio.NewReaderSize(r, 256<<10)} }

// next returns io.EOF after the last line.
func (r *lineReader) next() (line, error) {
	if cap(r.buf) > keepLine {
		r.buf = nil
	}
	r.buf = r.buf[:0]
	for {
		part, err := r.r.ReadSlice('\n')
		r.buf = append(r.buf, part...)
		switch {
		case err == nil:
			return r.line(r.buf[:len(r.buf)-1], true), nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(r.buf) > 0:
			return r.line(r.buf, false), nil
		default:
			return line{}, err
		}
	}
}

func (r *lineReader) line(text []byte, ended bool) line {
	r.number++
	l := line{number: r.number, offset: r.offset, text: text, ended: ended}
	r.offset += int64(len(text))
	if ended {
		r.offset++
	}
	return l
}
