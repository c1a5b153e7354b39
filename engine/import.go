package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"patio/engine/api"
	"patio/sessions"
)

// ImportRequest says how session files become sessions of patio's.
type ImportRequest struct {
	// Copy goes on in a repaired copy in patio's own directory. Without it the file is
	// registered where it is, and stays as it is until it is resumed.
	Copy bool
	// Cwd is where the conversations go on, instead of where they were. It makes a copy,
	// for Pi works where the file says.
	Cwd string
	// Moved maps directories that have moved, and all below them; the longest counts.
	Moved map[string]string
	// DryRun finds out what would be done, and does nothing.
	DryRun bool
}

// ImportStatus is what became of one file.
type ImportStatus string

// The statuses. A file that is known was imported before, or is a session's own.
const (
	ImportDone    ImportStatus = "imported"
	ImportWould   ImportStatus = "would be imported"
	ImportKnown   ImportStatus = "known"
	ImportRefused ImportStatus = "refused"
)

// Imported is what became of one file.
type Imported struct {
	Path    string       `json:"path"`
	Status  ImportStatus `json:"status"`
	Session string       `json:"session,omitempty"` // its id
	File    string       `json:"file,omitempty"`    // that it goes on with
	// Workspace is where it would go on; nothing is mounted by an import.
	Workspace string             `json:"workspace,omitempty"`
	Problems  []sessions.Problem `json:"problems"`
	// Notes say what was done, or what a resume will need.
	Notes []string   `json:"notes,omitempty"`
	Error *api.Error `json:"error,omitempty"` // why it was refused
}

// Import registers one session file as an ended session, which `patio resume` goes on
// with. The source is never changed, and one that is refused leaves nothing. The error is
// of patio's own directories; what is wrong with the file is in Imported.
func (e *Engine) Import(ctx context.Context, path string, r ImportRequest) (Imported, error) {
	one := Imported{Path: path, Status: ImportRefused, Problems: []sessions.Problem{}}
	err := e.ImportMany(ctx, []string{path}, r, func(_ int, done Imported) error {
		one = done
		return nil
	})
	return one, err
}

// ImportMany imports files as Import does, each with a look at its own session alone: the
// sessions that are there are listed once. Report is told of each file in order, n counts
// from 0; it is called by this goroutine, without the lock, and its error ends the import.
// When the import ends early, report has been told of every session that was made, and
// the next import of the same files goes on from there.
func (e *Engine) ImportMany(ctx context.Context, paths []string, r ImportRequest, report func(n int, done Imported) error) error {
	known, err := e.knownFiles(ctx)
	if err != nil {
		return err
	}
	b := importBatch{e: e, r: r, known: known}
	reading, cancel := context.WithCancel(ctx)
	files, joined := b.read(reading, paths)
	defer joined()
	defer cancel()
	for n := 0; n < len(paths); {
		done, err := b.chunk(ctx, files)
		for _, one := range done {
			if err := report(n, one); err != nil {
				return err
			}
			n++
		}
		if err != nil {
			return err
		}
	}
	e.o.Log.Debug("imported", "files", len(paths), "sessions_read", known.reads, "chunks", b.chunks)
	return nil
}

// importHold is how long a batch keeps the lock: another import waits no longer, and what
// was done is told this often.
const importHold = 200 * time.Millisecond

// importAhead is how many files, for each reader, are read before their turn: one long
// file shouldn't stop the other readers, and thousands of reports shouldn't pile up.
const importAhead = 8

// importBatch is many files that become sessions.
type importBatch struct {
	e      *Engine
	r      ImportRequest
	known  *knownFiles
	chunks int // that took the lock
}

// read reads files side by side and returns them in order. The channel is closed after
// the last one, or when ctx ends; joined waits for the readers after that.
func (b *importBatch) read(ctx context.Context, paths []string) (files <-chan *importer, joined func()) {
	readers := min(runtime.GOMAXPROCS(0), len(paths))
	turns := make(chan chan *importer, readers*importAhead)
	free := make(chan struct{}, readers)
	ordered := make(chan *importer)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(turns)
		for _, path := range paths {
			turn := make(chan *importer, 1)
			select {
			case <-ctx.Done():
				return
			case free <- struct{}{}:
			}
			wg.Go(func() {
				defer func() { <-free }()
				i := &importer{e: b.e, r: b.r, done: Imported{Path: path, Status: ImportRefused, Problems: []sessions.Problem{}}}
				i.examine(b.known)
				turn <- i
			})
			select {
			case <-ctx.Done():
				return
			case turns <- turn:
			}
		}
	})
	wg.Go(func() {
		defer close(ordered)
		for turn := range turns {
			select {
			case <-ctx.Done():
				return
			case ordered <- <-turn:
			}
		}
	})
	return ordered, wg.Wait
}

// chunk imports the files whose turn comes within importHold. The lock is taken for the
// first one that becomes a session, and given back at the end.
func (b *importBatch) chunk(ctx context.Context, files <-chan *importer) (done []Imported, err error) {
	var hold <-chan time.Time
	locked := false
	for {
		if ctx.Err() != nil {
			return done, ctx.Err()
		}
		var i *importer
		select {
		case <-ctx.Done():
			return done, ctx.Err()
		case <-hold:
			return done, nil
		case next, more := <-files:
			if !more {
				return done, ctx.Err()
			}
			i = next
		}
		if i.done.Error == nil && !b.r.DryRun && !locked {
			unlock, err := b.e.lockImports(ctx)
			if err != nil {
				return done, err
			}
			defer unlock()
			locked = true
			b.chunks++
			if err := b.known.refresh(ctx); err != nil {
				return done, err
			}
		}
		if hold == nil {
			timer := time.NewTimer(importHold)
			defer timer.Stop()
			hold = timer.C
		}
		if err := i.finish(b.known); err != nil {
			return done, err
		}
		done = append(done, i.done)
	}
}

// lockImports makes imports take turns: two of one file at once are one session. Nothing
// else that patio does waits for it. Who waits has the queue, where a batch that wants the
// lock back has to stand, too.
func (e *Engine) lockImports(ctx context.Context) (unlock func(), err error) {
	if err := e.o.Dirs.prepare(); err != nil {
		return nil, err
	}
	queue := flock.New(filepath.Join(e.o.Dirs.locks(), "import-queue.lock"), flock.SetPermissions(0o600))
	if _, err := queue.TryLockContext(ctx, lockRetry); err != nil {
		return nil, fmt.Errorf("lock imports: %w", err)
	}
	defer func() { _ = queue.Close() }()
	lock := e.importLock()
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		return nil, fmt.Errorf("lock imports: %w", err)
	}
	e.recoverImports()
	return func() { _ = lock.Close() }, nil
}

func (e *Engine) importLock() *flock.Flock {
	return flock.New(filepath.Join(e.o.Dirs.locks(), "import.lock"), flock.SetPermissions(0o600))
}
