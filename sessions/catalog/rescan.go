package catalog

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// rescanner makes one scan after another, each from what the ones before know.
type rescanner struct {
	options Options
	known   map[string]*record
	records []*record // in the order of the walk
	last    []Problem
	scanned bool
	saved   time.Time // when the index was replaced, or read
	behind  bool      // the index isn't what is known

	n       notifier // whose watches these are
	watches map[string]bool
}

// outcome is what one rescan found.
type outcome struct {
	began   time.Time
	list    List
	changed bool            // the list isn't what it was; otherwise it is empty
	again   bool            // something may have changed unseen
	watched map[string]bool // the directories with a watch; it isn't changed any more
	failure error           // why not every directory is watched
	err     error           // ctx's
}

// rescan looks at everything, and watches what it enters before it reads it. So nothing changes unseen.
func (r *rescanner) rescan(ctx context.Context, n notifier, suspects []string) outcome {
	o := outcome{began: time.Now()}
	s := scanner{options: r.options, now: o.began}
	if !r.scanned {
		r.known, r.saved = s.load(), o.began
	} else {
		s.options.Progress = nil
	}
	if r.n != n {
		r.n, r.watches = n, nil
	}
	w := watching{n: n, had: r.watches, has: map[string]bool{}}
	w.forget(suspects)
	roots := rootStates(r.options.Roots)
	var records []*record
	if records, o.err = s.look(ctx, r.known, w.enter); o.err != nil {
		return o
	}
	w.ways(r.options.Roots)
	w.settle()
	r.watches, o.watched, o.failure = w.has, w.has, w.failure
	o.again = w.gap || n != nil && !slices.EqualFunc(roots, rootStates(r.options.Roots), sameRoot)
	r.behind = r.behind || s.news
	if r.behind && (!r.scanned || o.began.Sub(r.saved) >= saveInterval) {
		known := r.known
		if r.scanned {
			known = s.load() // others write it too
		}
		s.save(records, known)
		r.saved, r.behind = o.began, false
	}
	slices.SortFunc(s.problems, func(a, b Problem) int { return strings.Compare(a.Error(), b.Error()) }) // they come in any order
	o.changed = !r.scanned || !slices.EqualFunc(records, r.records, sameRecord) || !slices.EqualFunc(s.problems, r.last, sameProblem)
	if o.changed {
		o.list = s.list(records)
	}
	r.remember(records)
	r.last, r.scanned = s.problems, true
	return o
}

func (r *rescanner) remember(records []*record) {
	if r.known == nil || !r.scanned {
		r.known = make(map[string]*record, len(records)) // what the index knew of other roots goes
	}
	clear(r.known)
	for _, record := range records {
		r.known[record.Path] = record
	}
	r.records = records
}

// finish brings the index up to date.
func (r *rescanner) finish() error {
	if !r.behind {
		return nil
	}
	s := scanner{options: r.options, now: time.Now()}
	s.save(r.records, s.load())
	r.behind = false
	var errs []error
	for _, p := range s.problems {
		errs = append(errs, p)
	}
	return errors.Join(errs...)
}

func sameRecord(a, b *record) bool { return a == b || a.Summary == b.Summary }

func sameProblem(a, b Problem) bool { return a.Path == b.Path && a.Err.Error() == b.Err.Error() }

// rootStates are what is at the roots, nil where nothing is.
func rootStates(roots []Root) []os.FileInfo {
	states := make([]os.FileInfo, len(roots))
	for i, root := range roots {
		if info, err := os.Stat(root.Dir); err == nil {
			states[i] = info
		}
	}
	return states
}

func sameRoot(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b)
}

// watching is the watches of one rescan.
type watching struct {
	n        notifier // nil for none
	had, has map[string]bool
	failure  error
	gap      bool // what a watch may have missed
}

// enter watches a directory. It is asked for again each time, though it be watched: another one may have its name now.
func (w *watching) enter(dir string) error {
	w.add(dir)
	return nil
}

func (w *watching) add(dir string) {
	if w.n == nil || w.failure != nil {
		return
	}
	if len(w.has) >= maxWatches && !w.has[dir] {
		w.failure = errManyDirs
		return
	}
	err := w.n.Add(dir)
	switch {
	case err == nil:
		w.has[dir] = true
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, unix.ENOTDIR):
		// It went away, which is reported where it was; or it can't be read, which is a problem of the list's own.
	default:
		w.failure = err
	}
}

// forget gives up the watches of what isn't what it was: fsnotify keeps them by name.
func (w *watching) forget(suspects []string) {
	for _, path := range suspects {
		if w.had[path] {
			_ = w.n.Remove(path) // mostly the kernel did
		}
	}
}

// ways watches, for each root, the nearest directory above it that exists: that is where the root comes and goes.
func (w *watching) ways(roots []Root) {
	for _, root := range roots {
		for above, before := nearest(filepath.Dir(root.Dir)), ""; above != before; above, before = nearest(filepath.Dir(root.Dir)), above {
			w.add(above)
		}
	}
}

func nearest(dir string) string {
	for {
		info, err := os.Stat(dir)
		if err == nil && info.IsDir() || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// settle gives up the watches that this rescan had no use for. The kernel has one watch for a directory, whatever its names: when
// a directory above was renamed, the watch of the old name is that of the new one. So all are asked for once more.
func (w *watching) settle() {
	if w.n == nil || w.failure != nil {
		return
	}
	for path := range w.had {
		if !w.has[path] && w.n.Remove(path) == nil {
			w.gap = true
		}
	}
	if w.gap {
		for path := range w.has {
			w.add(path)
		}
	}
}

// concerns says whether an event may change the list: of a session file, of a directory, or of a link to one. When it can't be
// told, it may.
func concerns(roots []Root, e fsnotify.Event, watched map[string]bool, scanning bool) bool {
	if isSession(e.Name) || watched[e.Name] {
		return true
	}
	if e.Op == fsnotify.Write {
		return false // directories aren't written to
	}
	if slices.ContainsFunc(roots, func(r Root) bool { return within(r.Dir, e.Name) }) {
		return true
	}
	if !slices.ContainsFunc(roots, func(r Root) bool { return within(e.Name, r.Dir) }) {
		return false
	}
	if scanning {
		return true
	}
	info, err := os.Lstat(e.Name)
	return err == nil && (info.IsDir() || info.Mode()&fs.ModeSymlink != 0)
}
