package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
)

// SearchOptions say what to search for, and where.
type SearchOptions struct {
	// Sessions are searched in this order. Without any, those that Scan finds are.
	Sessions []Summary
	Scan     Options

	Filter        Filter
	Query         string // not empty
	Regexp        bool   // Query is a regular expression of Go's; ^ and $ match at lines
	CaseSensitive bool
}

// SearchStats say what a search went through.
type SearchStats struct {
	Files    int
	Bytes    int64
	Matches  int
	Problems []Problem // files that couldn't be searched, whole or in part
}

// Search calls fn with every entry that has the query in one of its texts: in the order of the sessions, then of the lines, one
// call at a time. When fn returns an error, the search ends with it; fs.SkipAll ends it without an error. Files are searched as
// long as they were when they were opened. Memory doesn't grow with their size: a line of many megabytes is read only when it
// may match, one at a time.
func Search(ctx context.Context, o SearchOptions, fn func(Match) error) (SearchStats, error) {
	p, err := compile(o.Query, o.Regexp, o.CaseSensitive)
	if err != nil {
		return SearchStats{}, err
	}
	var stats SearchStats
	if o.Sessions == nil {
		list, err := Scan(ctx, o.Scan)
		if err != nil {
			return stats, err
		}
		o.Sessions, stats.Problems = list.Sessions, list.Problems
	}
	s := search{pattern: p, needle: newNeedle(o.Query, o.Regexp, o.CaseSensitive)}
	if err := s.run(ctx, o, &stats, fn); err != nil && !errors.Is(err, fs.SkipAll) {
		return stats, err
	}
	return stats, nil
}

// search is one search.
type search struct {
	pattern *pattern
	needle  *needle
	bytes   atomic.Int64
}

// searched is a file that is searched, or waits to be.
type searched struct {
	session Summary
	matches chan Match // closed at the end; err is set before
	err     error
}

// backlog is how many matches a file may be ahead of the one whose turn it is.
const backlog = 64

func (s *search) run(ctx context.Context, o SearchOptions, stats *SearchStats, fn func(Match) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	// Files are taken up in the order in which they are delivered, so the one whose turn it is never waits for another.
	work, order := make(chan *searched), make(chan *searched, 2*workers())
	wg.Go(func() {
		defer close(work)
		defer close(order)
		for _, session := range o.Sessions {
			if !o.Filter.Match(session) || session.Broken != "" && session.ID == "" {
				continue
			}
			f := &searched{session: session, matches: make(chan Match, backlog)}
			for _, to := range []chan *searched{work, order} {
				select {
				case to <- f:
				case <-ctx.Done():
					return
				}
			}
		}
	})
	for range workers() {
		wg.Go(func() {
			r := reader{search: s, ctx: ctx, matcher: matcher{pattern: s.pattern}, finders: s.needle.finders()}
			for f := range work {
				f.err = r.file(f)
				close(f.matches)
			}
		})
	}
	defer func() { stats.Bytes = s.bytes.Load() }()
	for f := range order {
		for m := range f.matches {
			stats.Matches++
			if err := fn(m); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		switch {
		case f.err == nil:
			stats.Files++
		case !errors.Is(f.err, fs.ErrNotExist): // one that went away has nothing to find
			stats.Problems = append(stats.Problems, Problem{Path: f.session.Path, Err: f.err})
		}
	}
	return ctx.Err()
}

// reader searches files, one at a time.
type reader struct {
	search  *search
	ctx     context.Context
	matcher matcher
	finders []finder
	buf     []byte
	to      *searched
	line    int // of the beginning of buf
}

func (r *reader) file(to *searched) error {
	f, err := open(to.session.Path)
	if err != nil {
		return err
	}
	defer f.close()
	if r.buf == nil {
		r.buf = make([]byte, chunk)
	}
	r.to, r.line = to, 1
	var problems []error
	held := 0
	for offset := int64(0); ; {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		n := int(min(int64(len(r.buf)-held), f.stamp.size-offset))
		if err := f.at(r.buf[held:held+n], offset); err != nil {
			return err
		}
		offset += int64(n)
		r.search.bytes.Add(int64(n))
		b := r.buf[:held+n]
		if offset == f.stamp.size {
			return errors.Join(errors.Join(problems...), r.lines(b))
		}
		end := bytes.LastIndexByte(b, '\n') + 1
		if end == 0 {
			if offset, err = r.long(f, offset-int64(len(b))); errors.Is(err, errTooLong) {
				problems = append(problems, err)
			} else if err != nil {
				return err
			}
			held = 0
			continue
		}
		if err := r.lines(b[:end]); err != nil {
			return err
		}
		held = copy(r.buf, b[end:])
	}
}

// lines searches whole lines.
func (r *reader) lines(b []byte) error {
	for _, f := range r.finders {
		f.reset()
	}
	counted := 0
	for at := 0; at < len(b); {
		hit := r.next(b, at)
		if hit >= len(b) {
			break
		}
		start := at + bytes.LastIndexByte(b[at:hit], '\n') + 1
		end := len(b)
		if n := bytes.IndexByte(b[hit:], '\n'); n >= 0 {
			end = hit + n
		}
		if m, ok := r.matcher.match(b[start:end]); ok {
			r.line += bytes.Count(b[counted:start], newline)
			counted = start
			if err := r.emit(m); err != nil {
				return err
			}
		}
		at = end + 1
	}
	r.line += bytes.Count(b[counted:], newline)
	return nil
}

var newline = []byte{'\n'}

// next is the first place at or after an offset where a line may match, len(b) without one.
func (r *reader) next(b []byte, from int) int {
	first := len(b)
	for _, f := range r.finders {
		first = min(first, f.next(b, from))
	}
	return first
}

func (r *reader) emit(m Match) error {
	m.Session, m.Line = r.to.session, r.line
	select {
	case r.to.matches <- m:
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

var errTooLong = errors.New("too long to be searched")

// long searches a line that is longer than the buffer, and returns where the next one begins. The line is gone through in
// pieces; only if it may match is it read whole.
func (r *reader) long(f *file, start int64) (next int64, err error) {
	size := f.stamp.size
	end, offset, held, may := size, start, 0, false
	for offset < size && end == size {
		if err := r.ctx.Err(); err != nil {
			return 0, err
		}
		n := int(min(int64(len(r.buf)-held), size-offset))
		if err := f.at(r.buf[held:held+n], offset); err != nil {
			return 0, err
		}
		b := r.buf[:held+n]
		if n := bytes.IndexByte(b[held:], '\n'); n >= 0 {
			end = offset + int64(n)
			b = b[:held+n]
		}
		offset += int64(n)
		if !may {
			for _, f := range r.finders {
				f.reset()
			}
			may = r.next(b, 0) < len(b)
		}
		held = copy(r.buf, b[max(0, len(b)-r.search.needle.overlap()):])
	}
	next = min(end+1, size)
	r.search.bytes.Add(max(0, next-start-int64(len(r.buf))))
	defer func() { r.line++ }()
	if !may {
		return next, nil
	}
	if end-start > lineLimit {
		return next, fmt.Errorf("line %d of %d bytes: %w", r.line, end-start, errTooLong)
	}
	m, ok, err := r.whole(f, start, end)
	if err != nil || !ok {
		return next, err
	}
	return next, r.emit(m)
}

// whole reads a long line and looks for its match. It gives the memory back before anybody waits.
func (r *reader) whole(f *file, start, end int64) (Match, bool, error) {
	if end-start > largeLine {
		largeLines <- struct{}{}
		defer func() { <-largeLines }()
	}
	b := make([]byte, end-start)
	if err := f.at(b, start); err != nil {
		return Match{}, false, err
	}
	m, ok := r.matcher.match(b)
	clear(r.matcher.line.texts)
	if cap(r.matcher.decoded) > windowLimit {
		r.matcher.decoded = nil
	}
	return m, ok, nil
}
