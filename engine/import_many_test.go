package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"

	"patio/engine/api"
)

// importables makes n small session files.
func importables(t testing.TB, n int) []string {
	t.Helper()
	dir := t.TempDir()
	paths := make([]string, n)
	for i := range paths {
		paths[i] = filepath.Join(dir, fmt.Sprintf("s%05d.jsonl", i))
		text := strings.Replace(importable, `"id":"a"`, fmt.Sprintf(`"id":"a%d"`, i), 1)
		require.NoError(t, os.WriteFile(paths[i], []byte(text), 0o600))
	}
	return paths
}

// importAll imports files and returns what was told, in order.
func importAll(ctx context.Context, t testing.TB, e *Engine, paths []string, r ImportRequest) []Imported {
	t.Helper()
	var all []Imported
	require.NoError(t, e.ImportMany(ctx, paths, r, func(n int, done Imported) error {
		require.Equal(t, len(all), n)
		require.Equal(t, paths[n], done.Path, "in order")
		all = append(all, done)
		return nil
	}))
	require.Len(t, all, len(paths))
	return all
}

// reads counts the reads of this process so far, as the kernel does.
func reads(t testing.TB) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Skipf("the kernel counts no reads: %v", err)
	}
	found := regexp.MustCompile(`syscr: (\d+)`).FindSubmatch(b)
	require.NotNil(t, found)
	n, err := strconv.Atoi(string(found[1]))
	require.NoError(t, err)
	return n
}

// TestImportManyIsLinear counts instead of measuring time: each file costs as many reads
// among 2000 as among 200, and no session that is there is read for each file.
func TestImportManyIsLinear(t *testing.T) {
	cost := func(n int, copied bool) (first, again float64) {
		m := newMachine(t)
		paths := importables(t, n)
		e := m.engine()
		for i := range 50 {
			m.add(t, api.Session{ID: fmt.Sprintf("old%d", i), Phase: api.PhaseEnded})
		}
		began := reads(t)
		for _, one := range importAll(t.Context(), t, e, paths, ImportRequest{Copy: copied}) {
			require.Equal(t, ImportDone, one.Status, one.Error)
		}
		imported := reads(t)
		for _, one := range importAll(t.Context(), t, e, paths, ImportRequest{Copy: copied}) {
			require.Equal(t, ImportKnown, one.Status)
		}
		return float64(imported-began) / float64(n), float64(reads(t)-imported) / float64(n)
	}
	for name, copied := range map[string]bool{"in place": false, "copied": true} {
		t.Run(name, func(t *testing.T) {
			small, smallAgain := cost(200, copied)
			large, largeAgain := cost(2000, copied)
			t.Logf("reads for a file: %.1f of 200, %.1f of 2000; when known: %.1f, %.1f", small, large, smallAgain, largeAgain)
			require.Less(t, large, 1.25*small)
			require.Less(t, largeAgain, 1.25*smallAgain)
			require.Less(t, largeAgain, 6.0, "a file that is known isn't read")
		})
	}
}

func TestImportManyMixed(t *testing.T) {
	m := newMachine(t)
	e := m.engine()
	paths := importables(t, 3)
	broken, gone := filepath.Join(t.TempDir(), "broken.jsonl"), filepath.Join(t.TempDir(), "gone.jsonl")
	require.NoError(t, os.WriteFile(broken, []byte("hello\n"), 0o600))
	hard := filepath.Join(filepath.Dir(paths[0]), "hard.jsonl")
	require.NoError(t, os.Link(paths[0], hard))
	paths = []string{paths[0], broken, hard, paths[1], gone, paths[0], paths[2]}

	var statuses []ImportStatus
	for _, one := range importAll(t.Context(), t, e, paths, ImportRequest{DryRun: true}) {
		statuses = append(statuses, one.Status)
	}
	require.Equal(t, []ImportStatus{ImportWould, ImportRefused, ImportKnown, ImportWould, ImportRefused, ImportKnown, ImportWould}, statuses)
	require.NoDirExists(t, m.dirs().State)

	all := importAll(t.Context(), t, e, paths, ImportRequest{})
	statuses = nil
	for _, one := range all {
		statuses = append(statuses, one.Status)
	}
	require.Equal(t, []ImportStatus{ImportDone, ImportRefused, ImportKnown, ImportDone, ImportRefused, ImportKnown, ImportDone}, statuses)
	require.Equal(t, all[0].Session, all[2].Session, "a file by another name")
	require.Equal(t, api.CodeNotFound, all[4].Error.Code)

	// A session that is removed frees its file.
	s, err := e.Find(t.Context(), all[0].Session)
	require.NoError(t, err)
	require.NoError(t, e.Remove(t.Context(), s, false))
	again := importAll(t.Context(), t, e, paths[:1], ImportRequest{})
	require.Equal(t, ImportDone, again[0].Status)
	require.NotEqual(t, all[0].Session, again[0].Session)
}

// TestImportManyEndsEarly ends a batch by its context and by its reader: what was told
// is what there is.
func TestImportManyEndsEarly(t *testing.T) {
	stop := errors.New("stop")
	for name, want := range map[string]error{"interrupted": context.Canceled, "not told": stop} {
		interrupted := name == "interrupted"
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			e := m.engine()
			paths := importables(t, 500)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			told := map[string]bool{}
			err := e.ImportMany(ctx, paths, ImportRequest{Copy: true}, func(n int, done Imported) error {
				require.Equal(t, ImportDone, done.Status)
				told[done.Session] = true
				if n == 20 && !interrupted {
					return stop
				}
				if n == 20 {
					cancel()
				}
				return nil
			})
			require.ErrorIs(t, err, want)
			all, err := e.List(t.Context())
			require.NoError(t, err)
			for _, s := range all {
				if interrupted { // who stops listening knows less
					require.True(t, told[s.ID])
				}
				require.FileExists(t, s.SessionFile)
			}
			require.GreaterOrEqual(t, len(all), len(told))
			require.Less(t, len(all), len(paths))
			left, err := os.ReadDir(m.dirs().imports())
			require.NoError(t, err)
			require.Empty(t, left)
			copies, err := os.ReadDir(m.dirs().piSessions())
			require.NoError(t, err)
			require.Len(t, copies, len(all))

			// And it goes on from there.
			importAll(t.Context(), t, e, paths, ImportRequest{Copy: true})
			now, err := e.List(t.Context())
			require.NoError(t, err)
			require.Len(t, now, len(paths))
		})
	}
}

// TestImportManyLetsOthersIn imports other files while a batch is told of its first ones.
func TestImportManyLetsOthersIn(t *testing.T) {
	m := newMachine(t)
	paths := importables(t, 300)
	other := importables(t, 1)[0]
	require.NoError(t, m.engine().ImportMany(t.Context(), paths, ImportRequest{}, func(n int, _ Imported) error {
		if n > 0 {
			return nil
		}
		for _, path := range []string{other, paths[len(paths)-1]} {
			done, err := m.engine().Import(t.Context(), path, ImportRequest{})
			require.NoError(t, err)
			require.NotEmpty(t, done.Session)
		}
		return nil
	}))
	all, err := m.engine().List(t.Context())
	require.NoError(t, err)
	require.Len(t, all, len(paths)+1, "no file becomes two sessions")
}

// TestImportsTakeTurns has a batch that gives the lock back and wants it again: who waits
// comes first.
func TestImportsTakeTurns(t *testing.T) {
	m := newMachine(t)
	e := m.engine()
	unlock, err := e.lockImports(t.Context())
	require.NoError(t, err)
	order := make(chan string, 2)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		unlock, err := e.lockImports(t.Context())
		if err == nil {
			order <- "waited"
			unlock()
		}
	})
	require.Eventually(t, func() bool {
		queue := flock.New(filepath.Join(m.dirs().locks(), "import-queue.lock"))
		free, err := queue.TryLock()
		require.NoError(t, err)
		require.NoError(t, queue.Close())
		return !free
	}, 10*time.Second, time.Millisecond)
	unlock()
	unlock, err = e.lockImports(t.Context())
	require.NoError(t, err)
	order <- "again"
	unlock()
	require.Equal(t, "waited", <-order)
	require.Equal(t, "again", <-order)
}
