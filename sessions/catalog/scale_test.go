package catalog

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"patio/sessions/catalog/benchtree"
	"patio/sessions/scaletest"
)

const mebibyte = 1 << 20

// TestMemoryOfList lists and watches 10,000 files.
func TestMemoryOfList(t *testing.T) {
	if testing.Short() || scaletest.Raced {
		t.Skip("many files")
	}
	dir, err := benchtree.Write(t.TempDir(), benchtree.Spec{Files: 10_000, Bytes: 40e6, Seed: 1})
	require.NoError(t, err)
	o := Options{Roots: []Root{{Dir: dir}}, Index: filepath.Join(t.TempDir(), "index")}
	for _, name := range []string{"cold", "indexed"} {
		var list List
		peak, after := scaletest.Heap(t, func() { list, err = Scan(t.Context(), o) })
		require.NoError(t, err)
		require.Equal(t, 10_000, len(list.Sessions))
		t.Logf("%s: %.1f MiB at most, %.1f afterwards", name, float64(peak)/mebibyte, float64(after)/mebibyte)
		require.Less(t, peak, int64(96*mebibyte))
		require.Less(t, after, int64(32*mebibyte))
	}
	var w *Watcher
	path := filepath.Join(dir, "new.jsonl")
	peak, after := scaletest.Heap(t, func() {
		w = Watch(t.Context(), o)
		until(t, w, "the first list", func(u Update) bool { return len(u.Sessions) == 10_000 })
		put(t, path)
		until(t, w, "added", func(u Update) bool { return len(u.Sessions) == 10_001 })
		// Files that were made just now are read once more, until their times tell their states apart.
		read, deadline := 10, time.Now().Add(20*time.Second)
		for n := 0; n < 20 || read >= 10; n++ {
			require.True(t, time.Now().Before(deadline), "%d files are read for one that changed", read)
			appendTo(t, path, userLine("2", "more"))
			read = (<-w.Updates()).Read
		}
	})
	t.Logf("watched: %.1f MiB at most, %.1f afterwards", float64(peak)/mebibyte, float64(after)/mebibyte)
	require.Less(t, peak, int64(96*mebibyte))
	require.Less(t, after, int64(64*mebibyte))
	require.NoError(t, w.Close())
}

// TestMemoryOfFile lists and searches a large file, exactly and not, and one with a line of 60 MB. A list holds a line of any length
// once while it is read exactly, in a buffer that doubles; else never.
func TestMemoryOfFile(t *testing.T) {
	if testing.Short() || scaletest.Raced {
		t.Skip("large files")
	}
	const line = 60 * mebibyte
	for name, tc := range map[string]struct {
		fill   func(w *bufio.Writer)
		exact  int64
		search int64
	}{
		"entries": {func(w *bufio.Writer) {
			text := userLine("2", strings.Repeat("words of a tool. ", 1000))
			for n := 0; n < 256*mebibyte; n += len(text) {
				w.WriteString(text)
			}
		}, 4 * mebibyte, 4 * mebibyte},
		"line": {func(w *bufio.Writer) {
			w.WriteString(`{"type":"message","id":"2","message":{"role":"user","content":"`)
			for range line / 16 {
				w.WriteString(`words \"and\" \n `)
			}
			w.WriteString("\"}}\n")
			w.WriteString(userLine("3", "the end"))
		}, 4 * line, 5 * mebibyte},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "large.jsonl")
			f, err := os.Create(path)
			require.NoError(t, err)
			w := bufio.NewWriterSize(f, mebibyte)
			w.WriteString(sessionText("id", "the beginning"))
			tc.fill(w)
			require.NoError(t, w.Flush())
			require.NoError(t, f.Close())
			within := func(what string, may int64, do func()) {
				t.Helper()
				peak, after := scaletest.Heap(t, do)
				t.Logf("%s: %.1f MiB of %.0f at most, %.1f afterwards", what, float64(peak)/mebibyte, float64(may)/mebibyte, float64(after)/mebibyte)
				require.LessOrEqual(t, peak, may, what)
				require.Less(t, after, int64(4*mebibyte), what)
			}
			for exact, may := range map[bool]int64{false: 5 * mebibyte, true: tc.exact} {
				within(fmt.Sprint("exact ", exact), may, func() {
					s, err := Read(path, exact)
					require.NoError(t, err)
					require.Equal(t, exact, s.Exact)
					require.Equal(t, "id", s.ID)
					require.Equal(t, "the beginning", s.Title)
				})
			}
			within("search for nothing", tc.search, func() {
				stats, err := Search(t.Context(), SearchOptions{Sessions: []Summary{{Path: path, ID: "id"}}, Query: "nowhere"}, func(Match) error { return nil })
				require.NoError(t, err)
				require.Zero(t, stats.Matches)
				require.Empty(t, stats.Problems)
			})
			within("search", 4*line, func() {
				stats, err := Search(t.Context(), SearchOptions{Sessions: []Summary{{Path: path, ID: "id"}}, Query: "WORDS"}, func(Match) error { return nil })
				require.NoError(t, err)
				require.NotZero(t, stats.Matches)
			})
		})
	}
}
