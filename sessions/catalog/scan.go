package catalog

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options say what to scan.
type Options struct {
	Roots []Root
	// Index is the path of the index file, which is read and replaced; empty for none. Its directory is made.
	Index string
	// Exact takes whole files in, so that every Summary is exact. What the index knows exactly isn't read again.
	Exact bool
	// Progress, if set, is told how many of the files are done. It is called from several goroutines, one at a time.
	Progress func(done, total int)
}

// List is the outcome of a scan.
type List struct {
	// Sessions are in the order of their last activity, the latest first. Files that are no sessions are among them, with the
	// reason in Broken.
	Sessions []Summary
	// Problems are what couldn't be looked at, and an index that couldn't be used or replaced.
	Problems []Problem
	// Read counts the files that were read; the others came from the index.
	Read int
}

// Scan lists the session files under the roots. It reads the beginning and the end of those that the index doesn't know. The
// error is ctx's.
func Scan(ctx context.Context, o Options) (List, error) {
	s := scanner{options: o, now: time.Now()}
	records, err := s.scan(ctx, nil)
	if err != nil {
		return List{}, err
	}
	return s.list(records), nil
}

// list is the outcome of a scan that found these records.
func (s *scanner) list(records []*record) List {
	list := List{Problems: s.problems, Read: s.read, Sessions: make([]Summary, len(records))}
	for i, r := range records {
		list.Sessions[i] = r.Summary
	}
	slices.SortFunc(list.Sessions, latestFirst)
	return list
}

func latestFirst(a, b Summary) int {
	return cmp.Or(b.LastActivity.Compare(a.LastActivity), strings.Compare(a.Path, b.Path))
}

// workers bounds the files that are open at a time. Reading is copying from the page cache, mostly; on a disk, more than a few
// requests at once gain nothing.
func workers() int { return min(max(runtime.GOMAXPROCS(0), 2), 8) }

// scanner is one scan.
type scanner struct {
	options  Options
	now      time.Time
	mu       sync.Mutex
	problems []Problem
	read     int
	news     bool // the index isn't what was found
}

func (s *scanner) problem(path string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, Problem{Path: path, Err: err})
}

// scan returns the record of every file, from the index where it holds, and brings the index up to date.
func (s *scanner) scan(ctx context.Context, enter func(dir string) error) ([]*record, error) {
	known := s.load()
	records, err := s.look(ctx, known, enter)
	if err == nil && s.news {
		s.save(records, known)
	}
	return records, err
}

// load reads the index, if there is one.
func (s *scanner) load() map[string]*record {
	if s.options.Index == "" {
		return nil
	}
	known, err := loadIndex(s.options.Index, s.now)
	if err != nil {
		s.problem(s.options.Index, err)
	}
	return known
}

// look returns the record of every file, from the known ones where they hold. It sets news.
func (s *scanner) look(ctx context.Context, known map[string]*record, enter func(dir string) error) ([]*record, error) {
	files, err := find(ctx, s.options.Roots, enter, s.problem)
	if err != nil {
		return nil, err
	}
	records, err := s.refresh(ctx, files, known)
	s.news = s.news || !s.covers(known, len(records))
	return records, err
}

// save replaces the index, if there is one. known is what it has now.
func (s *scanner) save(records []*record, known map[string]*record) {
	if s.options.Index == "" {
		return
	}
	if err := saveIndex(s.options.Index, s.keep(records, known), s.now); err != nil {
		s.problem(s.options.Index, err)
	}
}

// refresh makes the records of files, from the known ones where they hold.
func (s *scanner) refresh(ctx context.Context, files []found, known map[string]*record) ([]*record, error) {
	records := make([]*record, len(files))
	var stale []int
	for i, f := range files {
		if old := known[f.path]; old != nil && old.holds(f.stamp) && (old.Exact || !s.options.Exact) {
			records[i] = old
		} else {
			stale = append(stale, i)
		}
	}
	s.read = len(stale)
	done := len(files) - len(stale)
	progress := func(n int) {
		if s.options.Progress == nil {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		done += n
		s.options.Progress(done, len(files))
	}
	progress(0)
	var next atomic.Int64
	var news atomic.Bool
	var wg sync.WaitGroup
	for range min(workers(), len(stale)) {
		wg.Go(func() {
			for ctx.Err() == nil {
				n := int(next.Add(1)) - 1
				if n >= len(stale) {
					return
				}
				i := stale[n]
				old := known[files[i].path]
				r := s.one(ctx, files[i], old)
				if records[i] = r; r != nil && r.news(old) {
					news.Store(true)
				}
				progress(1)
			}
		})
	}
	wg.Wait()
	s.news = news.Load()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(records, func(r *record) bool { return r == nil }), nil
}

// one reads a file. One that vanished is nil; one that can't be read is listed as broken.
func (s *scanner) one(ctx context.Context, f found, old *record) *record {
	r, err := read(ctx, f.path, s.options.Exact, old)
	switch {
	case err == nil:
		return &r
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	// The stamp stays zero: it is tried again next time.
	r = record{Summary: Summary{
		Path: f.path, Size: f.stamp.size, ModTime: time.Unix(0, f.stamp.mtime).UTC(), Broken: "can't be read: " + bare(err).Error(),
	}}
	r.LastActivity = r.ModTime
	return &r
}

// covers says that the index has nothing under the roots but what was found.
func (s *scanner) covers(known map[string]*record, found int) bool {
	inside := 0
	for path := range known {
		if s.inside(path) {
			inside++
		}
	}
	return inside == found
}

// maxForeign bounds the records of other roots that an index keeps.
const maxForeign = 20_000

// keep is what the index holds from now on: what was found, with what is under roots that this scan didn't look at.
func (s *scanner) keep(records []*record, known map[string]*record) []*record {
	kept := slices.Clone(records)
	for path, r := range known {
		if len(kept)-len(records) == maxForeign {
			break
		}
		if !s.inside(path) {
			kept = append(kept, r)
		}
	}
	return kept
}

func (s *scanner) inside(path string) bool {
	return slices.ContainsFunc(s.options.Roots, func(r Root) bool { return within(path, r.Dir) })
}
