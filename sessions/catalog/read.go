package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
	"time"
)

const (
	// headWindow holds the header with the first prompt of nearly every session, tailWindow some turns. A file that fits
	// into both is read whole, which costs no more.
	headWindow = 16 << 10
	tailWindow = 48 << 10
	// windowLimit is how far a window grows while it lacks the first prompt or the last message. Pi, too, gives up on a
	// header that isn't complete in 1 MiB.
	windowLimit = 1 << 20
)

var windows = sync.Pool{New: func() any {
	b := make([]byte, headWindow+tailWindow)
	return &b
}}

// Read summarizes one file; exact takes all of it in, else only its beginning and its end. The error says why it couldn't be
// read; a file that could, but is no session, is a Summary with Broken set.
func Read(path string, exact bool) (Summary, error) {
	r, err := read(context.Background(), path, exact, nil)
	return r.Summary, err
}

// tries is how often a file that is rewritten meanwhile is read anew.
const tries = 3

// read makes the record of a file. What an earlier record knows exactly and still holds isn't read again.
func read(ctx context.Context, path string, exact bool, old *record) (record, error) {
	for try := 1; ; try++ {
		r, err := readOnce(ctx, path, exact, old)
		if err == nil {
			return r, nil
		}
		if !errors.Is(err, errShrunk) || try == tries {
			return record{Summary: Summary{Path: path}}, fmt.Errorf("read session file: %w", err)
		}
	}
}

func readOnce(ctx context.Context, path string, exact bool, old *record) (record, error) {
	began := time.Now()
	f, err := open(path)
	if err != nil {
		return record{}, err
	}
	defer f.close()
	r := record{stamp: f.stamp, read: began.UnixNano()}
	r.Path, r.Size, r.ModTime = path, f.stamp.size, time.Unix(0, f.stamp.mtime).UTC()
	buf := windows.Get().(*[]byte)
	defer func() {
		if cap(*buf) <= windowLimit {
			windows.Put(buf)
		}
	}()
	var facts facts
	grown, err := old.grownTo(f)
	switch {
	case err != nil:
	case grown:
		facts = old.facts()
		r.Exact, err = f.lines(ctx, buf, old.Size, facts.line)
	case f.stamp.size <= headWindow+tailWindow:
		b := room(buf, int(f.stamp.size))
		err = f.at(b, 0)
		facts.all(b)
		r.Exact = true
	case exact:
		r.Exact, err = f.lines(ctx, buf, 0, facts.line)
	default:
		r.Exact, err = facts.ends(f, buf)
	}
	if err != nil {
		return record{}, err
	}
	r.Broken = facts.broken(f.stamp.size)
	facts.summary(&r)
	if !r.Exact {
		if facts.bytes > 0 {
			r.Messages = max(r.Messages, int(float64(facts.messages)/float64(facts.bytes)*float64(f.stamp.size)))
		}
		if !facts.spoke {
			// What is at the end is one entry longer than the window: most likely a message.
			r.LastActivity = r.ModTime
		}
	}
	if r.Torn, r.mark, err = f.marks(f.stamp.size); err != nil {
		return record{}, err
	}
	return r, nil
}

// markSize is how much of a file's beginning, and of what was its end, must be as it was to believe that it only grew.
const markSize = 512

// marks returns whether the file's first size bytes don't end in a line feed, with a checksum of their beginning and end.
func (f *file) marks(size int64) (torn bool, mark uint32, err error) {
	if size == 0 {
		return false, 0, nil
	}
	var b [markSize]byte
	part := b[:min(size, markSize)]
	if err := f.at(part, 0); err != nil {
		return false, 0, err
	}
	mark = crc32.Update(0, castagnoli, part)
	if err := f.at(part, size-int64(len(part))); err != nil {
		return false, 0, err
	}
	return part[len(part)-1] != '\n', crc32.Update(mark, castagnoli, part), nil
}

// grownTo says that the file is the recorded one with lines added, and that the record is exact. Pi only appends, except when
// it converts an old file, which changes the header.
func (r *record) grownTo(f *file) (bool, error) {
	if r == nil || !r.Exact || r.Torn || r.Broken != "" || r.stamp.dev != f.stamp.dev || r.stamp.ino != f.stamp.ino ||
		r.Size == 0 || r.Size > f.stamp.size {
		return false, nil
	}
	_, mark, err := f.marks(r.Size)
	return err == nil && mark == r.mark, err
}

// all takes in every line, the last one with or without its line feed.
func (f *facts) all(b []byte) {
	if rest := f.complete(b); len(rest) > 0 {
		f.line(rest)
	}
}

// complete takes in every line that ends in b and returns what follows.
func (f *facts) complete(b []byte) []byte {
	for {
		n := bytes.IndexByte(b, '\n')
		if n < 0 {
			return b
		}
		f.line(b[:n])
		b = b[n+1:]
	}
}

// ends reads the beginning and the end of a file that is larger than both windows. all says that nothing lay between them.
func (f *facts) ends(file *file, buf *[]byte) (all bool, err error) {
	done, err := f.head(file, buf)
	if err != nil || done == file.stamp.size || f.broken(file.stamp.size) != "" {
		return done == file.stamp.size, err
	}
	f.begun, f.spoke = true, false
	for window := int64(tailWindow); ; window = min(window*4, windowLimit) {
		from := max(file.stamp.size-window, done)
		b := room(buf, int(file.stamp.size-from))
		if err := file.at(b, from); err != nil {
			return false, err
		}
		if from > done {
			b = b[bytes.IndexByte(b, '\n')+1:] // what precedes belongs to a line that begins before the window
		}
		// A wider window sees the same lines again, so a narrower one leaves nothing behind.
		tail := *f
		tail.last, tail.model = bytes.Clone(f.last), bytes.Clone(f.model)
		tail.all(b)
		if tail.spoke || window == windowLimit || from == done {
			*f = tail
			return from == done, nil
		}
	}
}

// head takes in the lines of the first window, and more until it has the first prompt. It returns where they end.
func (f *facts) head(file *file, buf *[]byte) (done int64, err error) {
	for window := int64(headWindow); ; window *= 4 {
		window = min(window, windowLimit, file.stamp.size)
		b := room(buf, int(window-done))
		if err := file.at(b, done); err != nil {
			return 0, err
		}
		if window == file.stamp.size {
			f.all(b)
			return window, nil
		}
		rest := f.complete(b)
		done = window - int64(len(rest))
		switch {
		case f.headed && (len(f.prompt) > 0 || f.header.entryType != "session"):
			return done, nil
		case window == windowLimit:
			f.partial(rest)
			return done, nil
		}
	}
}
