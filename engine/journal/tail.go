package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// ErrNotJournal is returned for a file with bytes in it but not one record; it is left as it was.
var ErrNotJournal = errors.New("not a journal")

// backBlock is how much of a file is read at a time when looking for line ends.
const backBlock = 256 << 10

// fullCheck is the length up to which the last line is validated whole when a journal is opened. Longer ones are
// held to their prefix and last byte, so that opening never reads a 60 MB line into memory.
const fullCheck = 4 << 20

// tail is the end of the last whole record, and what that record says.
type tail struct {
	end     int64
	seq     uint64
	session string
}

// findTail looks back from the end of a file for its last whole record. It reads blocks, never the whole file, unless
// the file is damaged all through.
func findTail(f io.ReaderAt, size int64) (tail, error) {
	if size == 0 {
		return tail{}, nil
	}
	end, err := lastLF(f, size)
	if err != nil {
		return tail{}, err
	}
	if end < 0 {
		torn, err := tornFirst(f, size)
		if err == nil && !torn {
			err = ErrNotJournal
		}
		return tail{}, err
	}
	for end >= 0 {
		before, err := lastLF(f, end)
		if err != nil {
			return tail{}, err
		}
		r, ok, err := wholeRecord(f, before+1, end)
		if err != nil {
			return tail{}, err
		}
		if ok {
			return tail{end: end + 1, seq: r.Seq, session: r.Session}, nil
		}
		end = before
	}
	return tail{}, ErrNotJournal
}

// lastLF gives the offset of the last LF before limit, or -1.
func lastLF(f io.ReaderAt, limit int64) (int64, error) {
	buf := make([]byte, min(backBlock, limit))
	for limit > 0 {
		block := buf[:min(int64(len(buf)), limit)]
		at := limit - int64(len(block))
		if err := readFull(f, block, at); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(block, '\n'); i >= 0 {
			return at + int64(i), nil
		}
		limit = at
	}
	return -1, nil
}

// wholeRecord reads the record on the line [start, end).
func wholeRecord(f io.ReaderAt, start, end int64) (Record, bool, error) {
	length := end - start
	if length < int64(len(keyVersion)) || length > MaxRecord {
		return Record{}, false, nil
	}
	if length > fullCheck {
		head, last := make([]byte, maxPrefix), make([]byte, 1)
		if err := errors.Join(readFull(f, head, start), readFull(f, last, end-1)); err != nil {
			return Record{}, false, err
		}
		if p, ok := parsePrefix(head); ok {
			return Record{Seq: p.seq, Session: string(p.session)}, last[0] == '}', nil
		}
	}
	line := make([]byte, length)
	if err := readFull(f, line, start); err != nil {
		return Record{}, false, err
	}
	r, err := Decode(line)
	return r, err == nil, nil
}

// tornFirst reports whether a file without any LF is a first record that was cut off, or the zeros that a file system
// leaves where it had no time to write one. Anything else is somebody's file, not a journal.
func tornFirst(f io.ReaderAt, size int64) (bool, error) {
	head := make([]byte, min(size, maxPrefix))
	if err := readFull(f, head, 0); err != nil {
		return false, err
	}
	n := min(len(head), len(keyVersion))
	return string(head[:n]) == keyVersion[:n] || len(bytes.Trim(head, "\x00")) == 0, nil
}

// readFull reads len(p) bytes at off; a file that turns out shorter is an error.
func readFull(f io.ReaderAt, p []byte, off int64) error {
	n, err := f.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read %d bytes at offset %d: %w", len(p), off, err)
}
