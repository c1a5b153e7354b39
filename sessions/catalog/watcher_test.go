package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const sessionTime = "2026-03-01T10:00:00.000Z"

func sessionText(id, prompt string) string {
	return fmt.Sprintf(`{"type":"session","version":3,"id":%q,"timestamp":%q,"cwd":"/w"}`+"\n", id, sessionTime) + userLine("1", prompt)
}

func userLine(id, prompt string) string {
	return fmt.Sprintf(`{"type":"message","id":%q,"parentId":null,"timestamp":%q,"message":{"role":"user","content":%q}}`+"\n", id, sessionTime, prompt)
}

// put writes a session whose id is its name.
func put(t testing.TB, path string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(sessionText(strings.TrimSuffix(filepath.Base(path), ".jsonl"), "hello")), 0o600))
}

func appendTo(t testing.TB, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = f.WriteString(text)
	require.NoError(t, errors.Join(err, f.Close()))
}

func ids(u Update) []string {
	var ids []string
	for _, s := range u.Sessions {
		ids = append(ids, s.ID)
	}
	slices.Sort(ids)
	return ids
}

// until receives updates until one is as wanted.
func until(t *testing.T, w *Watcher, what string, good func(Update) bool) Update {
	t.Helper()
	timeout := time.NewTimer(20 * time.Second)
	defer timeout.Stop()
	var last Update
	for {
		select {
		case u, ok := <-w.Updates():
			require.True(t, ok, what)
			if last = u; good(u) {
				return u
			}
		case <-timeout.C:
			require.Fail(t, what, "the last update has %v, live %v %s", ids(last), last.Live, last.Why)
		}
	}
}

// lists says that an update has these sessions and no others.
func lists(want ...string) func(Update) bool {
	slices.Sort(want)
	return func(u Update) bool { return slices.Equal(ids(u), want) }
}

func started(t *testing.T, o Options) *Watcher {
	t.Helper()
	w := Watch(t.Context(), o)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return w
}

func TestWatchFiles(t *testing.T) {
	root := t.TempDir()
	a := filepath.Join(root, "project", "a.jsonl")
	put(t, a)
	w := started(t, Options{Roots: []Root{{Dir: root}}})
	u := until(t, w, "the first list", lists("a"))
	require.True(t, u.Live)
	require.Empty(t, u.Why)
	require.Equal(t, watchSlow, u.Every)

	put(t, filepath.Join(root, "project", "b.jsonl"))
	until(t, w, "added", lists("a", "b"))

	appendTo(t, a, `{"type":"session_info","id":"2","parentId":"1","name":"the name"}`+"\n")
	u = until(t, w, "appended", func(u Update) bool {
		return slices.ContainsFunc(u.Sessions, func(s Summary) bool { return s.Title == "the name" })
	})
	require.Less(t, u.Read, 3)

	require.NoError(t, os.Rename(filepath.Join(root, "project", "b.jsonl"), filepath.Join(root, "b2.jsonl")))
	until(t, w, "renamed", func(u Update) bool {
		return lists("a", "b")(u) && slices.ContainsFunc(u.Sessions, func(s Summary) bool { return s.Path == filepath.Join(root, "b2.jsonl") })
	})

	require.NoError(t, os.Remove(a))
	until(t, w, "removed", lists("b"))

	require.NoError(t, os.WriteFile(filepath.Join(root, "x.tmp"), []byte(sessionText("c", "x")), 0o600))
	require.NoError(t, os.Rename(filepath.Join(root, "x.tmp"), filepath.Join(root, "c.jsonl")))
	until(t, w, "renamed into place", lists("b", "c"))
}

func TestWatchDirectories(t *testing.T) {
	base := t.TempDir()
	root := filepath.Join(base, "root")
	require.NoError(t, os.MkdirAll(filepath.Join(root, "one", "deep"), 0o700))
	w := started(t, Options{Roots: []Root{{Dir: root}}})
	until(t, w, "the first list", lists())

	// Files are there before anybody could watch their directory.
	outside := filepath.Join(base, "made")
	put(t, filepath.Join(outside, "in", "a.jsonl"))
	require.NoError(t, os.Rename(outside, filepath.Join(root, "made")))
	until(t, w, "a directory with a file", lists("a"))
	put(t, filepath.Join(root, "made", "in", "b.jsonl"))
	until(t, w, "a file in it, later", lists("a", "b"))
	put(t, filepath.Join(root, "x", "y", "z", "c.jsonl"))
	until(t, w, "directories in directories", lists("a", "b", "c"))

	// Below a directory that was renamed, no name is what it was, and the watches are.
	require.NoError(t, os.Rename(filepath.Join(root, "made"), filepath.Join(root, "moved")))
	until(t, w, "a renamed directory", func(u Update) bool {
		return lists("a", "b", "c")(u) && slices.ContainsFunc(u.Sessions, func(s Summary) bool { return s.Path == filepath.Join(root, "moved", "in", "a.jsonl") })
	})
	put(t, filepath.Join(root, "moved", "in", "d.jsonl"))
	until(t, w, "a file below it", lists("a", "b", "c", "d"))
	put(t, filepath.Join(root, "made", "in", "e.jsonl"))
	until(t, w, "another directory of the old name", lists("a", "b", "c", "d", "e"))
	appendTo(t, filepath.Join(root, "made", "in", "e.jsonl"), `{"type":"session_info","id":"2","name":"new"}`+"\n")
	until(t, w, "a change below it", func(u Update) bool {
		return slices.ContainsFunc(u.Sessions, func(s Summary) bool { return s.Title == "new" })
	})

	require.NoError(t, os.RemoveAll(filepath.Join(root, "moved")))
	until(t, w, "a removed directory", lists("c", "e"))
}

func TestWatchRootComesAndGoes(t *testing.T) {
	base := t.TempDir()
	root := filepath.Join(base, "home", "agent", "sessions")
	w := started(t, Options{Roots: []Root{{Dir: root}, {Dir: filepath.Join(base, "never")}}})
	u := until(t, w, "nothing", lists())
	require.True(t, u.Live)
	require.Empty(t, u.Problems)
	put(t, filepath.Join(root, "project", "a.jsonl"))
	until(t, w, "it came", lists("a"))
	put(t, filepath.Join(root, "project", "b.jsonl"))
	until(t, w, "it is watched", lists("a", "b"))
	require.NoError(t, os.Rename(filepath.Join(base, "home", "agent"), filepath.Join(base, "home", "elsewhere")))
	appendTo(t, filepath.Join(base, "home", "elsewhere", "sessions", "project", "b.jsonl"), userLine("9", "more"))
	until(t, w, "it went with the directory above", lists())
	put(t, filepath.Join(root, "c.jsonl"))
	until(t, w, "it came again", lists("c"))
	require.NoError(t, os.RemoveAll(filepath.Join(base, "home")))
	until(t, w, "all of it went", lists())
	put(t, filepath.Join(root, "d.jsonl"))
	until(t, w, "and came", lists("d"))
}

func TestWatchLinks(t *testing.T) {
	base := t.TempDir()
	root, one, two := filepath.Join(base, "root"), filepath.Join(base, "one"), filepath.Join(base, "two")
	put(t, filepath.Join(one, "a.jsonl"))
	put(t, filepath.Join(two, "b.jsonl"))
	require.NoError(t, os.MkdirAll(root, 0o700))
	link := filepath.Join(root, "link")
	require.NoError(t, os.Symlink(one, link))
	w := started(t, Options{Roots: []Root{{Dir: root}}})
	until(t, w, "behind the link", lists("a"))
	put(t, filepath.Join(one, "c.jsonl"))
	until(t, w, "a change behind the link", lists("a", "c"))
	require.NoError(t, os.Symlink(one, filepath.Join(root, "again")))
	require.NoError(t, os.Symlink(root, filepath.Join(root, "self")))
	require.NoError(t, os.Remove(link))
	require.NoError(t, os.Symlink(two, link))
	until(t, w, "the link leads elsewhere, another one there", lists("a", "b", "c"))
	put(t, filepath.Join(two, "d.jsonl"))
	until(t, w, "a change where it leads now", lists("a", "b", "c", "d"))
	put(t, filepath.Join(one, "e.jsonl"))
	until(t, w, "a change where the other one leads", lists("a", "b", "c", "d", "e"))
	require.NoError(t, os.RemoveAll(two))
	until(t, w, "what a link led to went", lists("a", "c", "e"))
}

// TestWatchChaos changes a tree in random ways while it is watched: in the end the list is what a scan finds.
func TestWatchChaos(t *testing.T) {
	root := t.TempDir()
	w := started(t, Options{Roots: []Root{{Dir: root}}})
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 4 {
		for range 150 {
			dir := filepath.Join(root, fmt.Sprint("d", rng.IntN(4)), fmt.Sprint("e", rng.IntN(3)))
			other := filepath.Join(root, fmt.Sprint("d", rng.IntN(4)), fmt.Sprint("e", rng.IntN(3)))
			switch rng.IntN(6) {
			case 0, 1, 2:
				put(t, filepath.Join(dir, fmt.Sprint("f", rng.IntN(5), ".jsonl")))
			case 3:
				_ = os.Rename(dir, other)
			case 4:
				_ = os.Rename(filepath.Dir(dir), filepath.Dir(other))
			case 5:
				_ = os.RemoveAll(dir)
			}
		}
		put(t, filepath.Join(root, "d0", fmt.Sprint("last", round, ".jsonl")))
		want, err := Scan(t.Context(), Options{Roots: []Root{{Dir: root}}})
		require.NoError(t, err)
		until(t, w, "as a scan has it", func(u Update) bool { return slices.Equal(u.Sessions, want.Sessions) })
	}
}

func TestWatchIndex(t *testing.T) {
	root, index := t.TempDir(), filepath.Join(t.TempDir(), "cache", "index")
	put(t, filepath.Join(root, "a.jsonl"))
	o := Options{Roots: []Root{{Dir: root}}, Index: index}
	w := started(t, o)
	until(t, w, "the first list", lists("a"))
	first, err := os.Stat(index)
	require.NoError(t, err, "a long first scan isn't lost by a crash")
	put(t, filepath.Join(root, "b.jsonl"))
	until(t, w, "added", lists("a", "b"))
	after, err := os.Stat(index)
	require.NoError(t, err)
	require.True(t, os.SameFile(first, after), "not at each change")
	require.NoError(t, w.Close())
	records, err := loadIndex(index, time.Now())
	require.NoError(t, err)
	require.Len(t, records, 2)
	require.NoError(t, w.Close(), "again")
	_, open := <-w.Updates()
	require.False(t, open)
}

func TestWatchIndexInTheWay(t *testing.T) {
	root := t.TempDir()
	put(t, filepath.Join(root, "a.jsonl"))
	index := t.TempDir() // no file can replace it
	w := Watch(t.Context(), Options{Roots: []Root{{Dir: root}}, Index: index})
	u := until(t, w, "the first list", lists("a"))
	require.NotEmpty(t, u.Problems)
	put(t, filepath.Join(root, "b.jsonl"))
	until(t, w, "added", lists("a", "b"))
	require.ErrorContains(t, w.Close(), "write session index")
}

func TestWatchEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := Watch(ctx, Options{Roots: []Root{{Dir: t.TempDir()}}})
	cancel()
	for range w.Updates() {
	}
	require.NoError(t, w.Close())
}

// TestWatchCloseWhileScanning closes in the middle of a file that takes long.
func TestWatchCloseWhileScanning(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "long.jsonl")
	put(t, path)
	require.NoError(t, os.Truncate(path, 1<<40)) // a hole: one line that never ends
	reading := make(chan struct{}, 8)
	w := Watch(t.Context(), Options{Roots: []Root{{Dir: root}}, Exact: true, Progress: func(done, total int) { reading <- struct{}{} }})
	<-reading
	require.NoError(t, w.Close())
	_, open := <-w.Updates()
	require.False(t, open)
}

func TestWatchSlowConsumer(t *testing.T) {
	root := t.TempDir()
	w := started(t, Options{Roots: []Root{{Dir: root}}})
	until(t, w, "the first list", lists())
	for i := range 40 {
		put(t, filepath.Join(root, fmt.Sprintf("%02d.jsonl", i)))
	}
	// Nobody receives until all of it was found.
	require.Eventually(t, func() bool {
		select {
		case u := <-w.updates:
			done := len(u.Sessions) == 40
			if !done {
				return false
			}
			require.Empty(t, w.updates, "older ones are gone")
			return true
		default:
			return false
		}
	}, 20*time.Second, time.Second)
}

// fake is a notifier that reports what a test says.
type fake struct {
	events chan fsnotify.Event
	errs   chan error
	closed chan struct{}

	mu      sync.Mutex
	added   map[string]int
	limit   int // directories, then there is no space
	add     func(dir string)
	removed []string
}

func newFake() *fake {
	return &fake{events: make(chan fsnotify.Event), errs: make(chan error), closed: make(chan struct{}), added: map[string]int{}}
}

func (f *fake) Add(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.limit > 0 && f.added[dir] == 0 && len(f.added) >= f.limit {
		return unix.ENOSPC
	}
	f.added[dir]++
	if f.add != nil {
		f.add(dir)
	}
	return nil
}

func (f *fake) Remove(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.removed = append(f.removed, dir)
	return fs.ErrNotExist
}

func (f *fake) Events() <-chan fsnotify.Event { return f.events }
func (f *fake) Errors() <-chan error          { return f.errs }
func (f *fake) Close() error                  { close(f.closed); return nil }

// scans is how often a root was looked at.
func (f *fake) scans(root string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.added[root]
}

// send reports an event, unless nobody listens any more.
func (f *fake) send(path string, op fsnotify.Op) {
	select {
	case f.events <- fsnotify.Event{Name: path, Op: op}:
	case <-f.closed:
	}
}

// bubble runs a test of time with fakes: each in turn, then none can be had.
func bubble(t *testing.T, o Options, fakes []*fake, test func(t *testing.T, w *Watcher)) {
	synctest.Test(t, func(t *testing.T) {
		for _, f := range fakes {
			f.events, f.errs, f.closed = make(chan fsnotify.Event), make(chan error), make(chan struct{})
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		w := watch(ctx, o, func() (notifier, error) {
			if len(fakes) == 0 {
				return nil, unix.EMFILE
			}
			f := fakes[0]
			fakes = fakes[1:]
			return f, nil
		})
		test(t, w)
		require.NoError(t, w.Close())
	})
}

func TestWatchCoalesces(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "a.jsonl")
	put(t, path)
	f := newFake()
	bubble(t, Options{Roots: []Root{{Dir: root}}}, []*fake{f}, func(t *testing.T, w *Watcher) {
		require.True(t, (<-w.Updates()).Live)
		time.Sleep(time.Second)
		require.Equal(t, 1, f.scans(root))

		// Quiet until now: at once.
		at := time.Now()
		put(t, filepath.Join(root, "b.jsonl"))
		f.send(filepath.Join(root, "b.jsonl"), fsnotify.Create)
		require.Len(t, (<-w.Updates()).Sessions, 2)
		require.Zero(t, time.Since(at))

		// A burst.
		for range 10_000 {
			f.send(path, fsnotify.Write)
		}
		time.Sleep(time.Second)
		require.LessOrEqual(t, f.scans(root), 5)

		// Without an end: one in each interval.
		before, at := f.scans(root), time.Now()
		for time.Since(at) < 10*time.Second {
			f.send(path, fsnotify.Write)
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		require.InDelta(t, 40, f.scans(root)-before, 2)

		// What is no session's concern.
		time.Sleep(time.Second)
		before = f.scans(root)
		require.NoError(t, os.WriteFile(filepath.Join(root, "notes.txt"), nil, 0o600))
		f.send(filepath.Join(root, "notes.txt"), fsnotify.Create)
		f.send(filepath.Join(root, "notes.txt"), fsnotify.Write)
		f.send(filepath.Join(root, "notes.txt"), fsnotify.Remove)
		f.send(filepath.Join(filepath.Dir(root), "neighbour"), fsnotify.Create)
		time.Sleep(time.Second)
		require.Equal(t, before, f.scans(root))

		// What nothing reports, as on a network file system.
		put(t, filepath.Join(root, "c.jsonl"))
		require.Len(t, (<-w.Updates()).Sessions, 3)
		require.Equal(t, before+1, f.scans(root))
	})
}

func TestWatchOutOfWatches(t *testing.T) {
	root := t.TempDir()
	for i := range 10 {
		put(t, filepath.Join(root, fmt.Sprint(i), fmt.Sprint(i, ".jsonl")))
	}
	first, second := newFake(), newFake()
	first.limit = 4
	bubble(t, Options{Roots: []Root{{Dir: root}}}, []*fake{first, second}, func(t *testing.T, w *Watcher) {
		u := <-w.Updates()
		require.Len(t, u.Sessions, 10, "all are listed all the same")
		require.False(t, u.Live)
		require.Contains(t, u.Why, "out of inotify watches")
		require.Equal(t, pollInterval, u.Every)
		<-first.closed // its watches are given back
		put(t, filepath.Join(root, "new.jsonl"))
		at := time.Now()
		require.Len(t, (<-w.Updates()).Sessions, 11)
		require.Equal(t, pollInterval, time.Since(at))
		u = <-w.Updates()
		require.True(t, u.Live, "it is tried again")
		require.Empty(t, u.Why)
		require.Equal(t, retryFirst, time.Since(at))
	})
}

func TestWatchOutOfInstances(t *testing.T) {
	root := t.TempDir()
	bubble(t, Options{Roots: []Root{{Dir: root}}}, nil, func(t *testing.T, w *Watcher) {
		u := <-w.Updates()
		require.False(t, u.Live)
		require.Contains(t, u.Why, "out of inotify instances")
		time.Sleep(24 * time.Hour)
		select {
		case u := <-w.Updates():
			require.Fail(t, "nothing changed", "%+v", u)
		default:
		}
		put(t, filepath.Join(root, "a.jsonl"))
		require.Len(t, (<-w.Updates()).Sessions, 1)
	})
}

func TestWatchOverflow(t *testing.T) {
	root := t.TempDir()
	fakes := []*fake{newFake(), newFake(), newFake()}
	bubble(t, Options{Roots: []Root{{Dir: root}}}, fakes, func(t *testing.T, w *Watcher) {
		require.True(t, (<-w.Updates()).Live)
		put(t, filepath.Join(root, "lost.jsonl")) // its event is
		at := time.Now()
		fakes[0].errs <- fsnotify.ErrEventOverflow
		u := <-w.Updates()
		require.Len(t, u.Sessions, 1)
		require.LessOrEqual(t, time.Since(at), watchInterval)
		require.False(t, u.Live)
		require.Contains(t, u.Why, "max_queued_events")
		require.True(t, (<-w.Updates()).Live, "with watches made anew")
		require.LessOrEqual(t, time.Since(at), pollInterval+watchInterval)
		require.NotZero(t, fakes[1].scans(root))

		at = time.Now()
		fakes[1].errs <- fsnotify.ErrEventOverflow
		require.False(t, (<-w.Updates()).Live)
		require.True(t, (<-w.Updates()).Live)
		require.Greater(t, time.Since(at), retryFirst, "once more, and it takes longer")
		close(fakes[2].events)
		u = <-w.Updates()
		require.False(t, u.Live)
		require.NotEmpty(t, u.Why)
	})
}

// TestWatchBeforeRead makes a file between the watch of its directory and the reading of it, and one after that.
func TestWatchBeforeRead(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "d"), 0o700))
	f := newFake()
	var once sync.Once
	f.add = func(dir string) {
		if dir == filepath.Join(root, "d") {
			once.Do(func() { put(t, filepath.Join(dir, "early.jsonl")) })
		}
	}
	bubble(t, Options{Roots: []Root{{Dir: root}}}, []*fake{f}, func(t *testing.T, w *Watcher) {
		require.Len(t, (<-w.Updates()).Sessions, 1)
		put(t, filepath.Join(root, "d", "late.jsonl"))
		f.send(filepath.Join(root, "d", "late.jsonl"), fsnotify.Create)
		require.Len(t, (<-w.Updates()).Sessions, 2)
	})
}

func TestPollEvery(t *testing.T) {
	for cost, want := range map[time.Duration]time.Duration{
		0: 5 * time.Second, 250 * time.Millisecond: 5 * time.Second, time.Second: 20 * time.Second, time.Hour: pollLimit,
	} {
		require.Equal(t, want, pollEvery(cost), cost)
	}
}
