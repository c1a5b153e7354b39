package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
)

// blockSize is how much a reader reads at a time. A thousand busy readers then hold 32 MB; idle ones hold nothing.
const blockSize = 32 << 10

var blocks = sync.Pool{New: func() any {
	b := make([]byte, blockSize)
	return &b
}}

func getBlock() *[]byte  { return blocks.Get().(*[]byte) }
func putBlock(b *[]byte) { blocks.Put(b) }

// Reader gives the records of a journal one by one, at its own pace. It holds at most one block, or one line if that is
// longer. Next and TryNext are for one goroutine at a time; Close may be called from any.
type Reader struct {
	file    *sharedFile
	journal *Journal // nil when only the file is read
	size    int64    // of the file, when only the file is read
	skip    uint64   // records up to this one aren't given

	off   int64   // of block[start] in the file
	block *[]byte // nil while there is nothing in it
	start int
	fill  int

	closing sync.Once
	closed  chan struct{}
}

// NewReader gives a reader of the records after since, the ones to come included. It must be closed.
func (j *Journal) NewReader(since uint64) (*Reader, error) {
	j.mu.Lock()
	if j.closed.Load() {
		j.mu.Unlock()
		return nil, fmt.Errorf("read journal: %w", ErrClosed)
	}
	j.file.acquire()
	m, ok := j.marks.before(min(since, j.seq) + 1)
	if since >= j.seq {
		m.off = j.end.Load()
	}
	first := j.marks[0].off
	j.mu.Unlock()

	r := &Reader{file: j.file, journal: j, skip: since, off: m.off, closed: make(chan struct{})}
	if !ok {
		off, err := seek(j.file, first, since)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("read journal: %w", err), j.file.release())
		}
		r.off = off
	}
	return r, nil
}

// OpenReader reads the file of a session that has ended: the records after since, up to the last whole one. A file that
// is still being written is read as far as it goes now; to follow it, ask the process that writes it.
func OpenReader(path string, since uint64) (*Reader, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	size, err := regularSize(f)
	var off int64
	if err == nil && since > 0 {
		off, err = seek(f, size, since)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read journal %s: %w", path, err), f.Close())
	}
	r := &Reader{file: &sharedFile{File: f}, size: size, skip: since, off: off, closed: make(chan struct{})}
	r.file.refs.Store(1)
	return r, nil
}

// Next gives the next record's line without its LF, and waits for one if need be. The bytes are valid until the next
// call. It returns io.EOF when there is none and there will be none: the journal is closed, or the file is at its end.
func (r *Reader) Next(ctx context.Context) ([]byte, error) {
	for {
		line, ok, err := r.TryNext()
		if ok || err != nil {
			return line, err
		}
		wake := r.journal.bell.wait()
		if r.journal.end.Load() > r.off || r.journal.closed.Load() {
			continue
		}
		select {
		case <-wake:
		case <-r.closed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// TryNext is Next, but returns ok false instead of waiting.
func (r *Reader) TryNext() (line []byte, ok bool, err error) {
	for {
		select {
		case <-r.closed:
			return nil, false, ErrClosed
		default:
		}
		line, ok, err := r.read()
		if err != nil {
			return nil, false, fmt.Errorf("read journal: %w", err)
		}
		if !ok {
			// Look at closed before end: the other way round, a record appended in between would be missed.
			if r.journal == nil || r.journal.closed.Load() && r.off == r.journal.end.Load() {
				return nil, false, io.EOF
			}
			return nil, false, nil
		}
		if r.skip > 0 {
			if seq, _, _, ok := Header(line); ok && seq <= r.skip {
				continue
			}
			r.skip = 0
		}
		return line, true, nil
	}
}

// limit is the offset up to which the file holds what this reader may see.
func (r *Reader) limit() int64 {
	if r.journal != nil {
		return r.journal.end.Load()
	}
	return r.size
}

// read gives the next whole line below limit.
func (r *Reader) read() ([]byte, bool, error) {
	limit := r.limit()
	for {
		if r.block != nil {
			have := (*r.block)[r.start:r.fill]
			if i := bytes.IndexByte(have, '\n'); i >= 0 {
				r.start += i + 1
				r.off += int64(i) + 1
				return have[:i:i], true, nil
			}
		}
		have := r.fill - r.start
		next := r.off + int64(have)
		if next >= limit {
			if have == 0 && r.block != nil {
				putBlock(r.block)
				r.block, r.start, r.fill = nil, 0, 0
			}
			return nil, false, nil
		}
		if have == blockSize {
			return r.readLong(limit)
		}
		if r.block == nil {
			r.block = getBlock()
		}
		b := *r.block
		copy(b, b[r.start:r.fill])
		r.start, r.fill = 0, have
		b = b[have:min(blockSize, int64(have)+limit-next)]
		if err := readFull(r.file, b, next); err != nil {
			return nil, false, err
		}
		r.fill += len(b)
	}
}

// readLong reads a line that doesn't fit in a block: once for its length, then into a buffer of just that length.
// Growing a buffer instead would take up to three times the line. A block full of the line's start is in hand.
func (r *Reader) readLong(limit int64) ([]byte, bool, error) {
	b := *r.block
	scratch := getBlock()
	lf, err := nextLF(r.file, *scratch, r.off+blockSize, min(limit, r.off+MaxRecord+1))
	putBlock(scratch)
	if err != nil {
		return nil, false, err
	}
	if lf < 0 {
		if limit-r.off > MaxRecord {
			return nil, false, fmt.Errorf("line at offset %d is longer than %d bytes", r.off, MaxRecord)
		}
		return nil, false, nil
	}
	line := make([]byte, lf-r.off)
	n := copy(line, b)
	if err := readFull(r.file, line[n:], r.off+int64(n)); err != nil {
		return nil, false, err
	}
	r.off, r.start, r.fill = lf+1, 0, 0
	return line, true, nil
}

// Close ends the reader; a Next that waits returns ErrClosed. Closing again does nothing.
func (r *Reader) Close() error {
	var err error
	r.closing.Do(func() {
		close(r.closed)
		err = r.file.release()
	})
	return err
}
