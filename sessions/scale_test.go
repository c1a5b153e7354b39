package sessions

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"patio/sessions/scaletest"
)

const mebibyte = 1 << 20

// made writes a file of many lines.
func made(t *testing.T, fill func(w *bufio.Writer)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "large.jsonl")
	f, err := os.Create(path)
	require.NoError(t, err)
	w := bufio.NewWriterSize(f, mebibyte)
	_, err = w.WriteString(head)
	require.NoError(t, err)
	fill(w)
	require.NoError(t, w.Flush())
	require.NoError(t, f.Close())
	return path
}

// everything does with a file what patio does with one, and requires that each takes no more memory than it may. The text stands
// for the other formats unless formats is set.
func everything(t *testing.T, path string, may int64, formats bool) *File {
	t.Helper()
	var f *File
	within := func(name string, may int64, do func() error) {
		t.Helper()
		began := time.Now()
		used, _ := scaletest.Heap(t, func() { require.NoError(t, do(), name) })
		t.Logf("%-12s %6.1f MiB of %.0f, %s", name, float64(used)/mebibyte, float64(may)/mebibyte, time.Since(began).Round(time.Millisecond))
		require.LessOrEqual(t, used, may, name)
	}
	within("open", may, func() (err error) { f, err = Open(path); return err })
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	within("info", may, func() error { _, err := f.Info(); return err })
	within("report", may, func() error { _, err := f.Report(); return err })
	within("conversation", may, func() error { return f.Conversation("", func(Turn) error { return nil }) })
	o := ExportOptions{Limit: mebibyte}
	within("text", may, func() error { return f.WriteText(io.Discard, o) })
	if formats {
		within("markdown", may, func() error { return f.WriteMarkdown(io.Discard, o) })
		within("html", may, func() error { return f.WriteHTML(io.Discard, o) })
	}
	within("repair", may, func() error {
		_, err := Repair(path, filepath.Join(t.TempDir(), "copy.jsonl"))
		return err
	})
	return f
}

// TestMemoryOfLine has a line of 60 MB of each kind. The line itself is in memory once. A text in it that has escapes is there
// once more without them, and once more where it is joined or cut, and what was there before may not be collected yet: five lines are enough for
// everything.
func TestMemoryOfLine(t *testing.T) {
	if testing.Short() || scaletest.Raced {
		t.Skip("large files")
	}
	const size = 60 * mebibyte
	for name, content := range map[string]func(w *bufio.Writer){
		"image": func(w *bufio.Writer) {
			w.WriteString(`{"role":"user","content":[{"type":"image","mimeType":"image/png","data":"`)
			fillWith(w, "iVBORw0KGgoAAAAN", size)
			w.WriteString(`"}]}`)
		},
		"text": func(w *bufio.Writer) {
			w.WriteString(`{"role":"user","content":[{"type":"text","text":"`)
			fillWith(w, `some \"words\" of a text\n`, size)
			w.WriteString(`"}]}`)
		},
		"blocks": func(w *bufio.Writer) {
			w.WriteString(`{"role":"assistant","provider":"p","model":"m","content":[{"type":"text","text":"a"}`)
			fillWith(w, `,{"type":"text","text":"`+strings.Repeat("words ", 1000)+`"}`, size)
			w.WriteString(`]}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := made(t, func(w *bufio.Writer) {
				w.WriteString(`{"type":"message","id":"1","parentId":null,"message":`)
				content(w)
				w.WriteString("}\n")
			})
			f := everything(t, path, 5*size, true)
			require.Len(t, f.Entries(), 1)
		})
	}
}

func fillWith(w *bufio.Writer, s string, size int) {
	for n := 0; n < size; n += len(s) {
		w.WriteString(s)
	}
}

// TestMemoryOfFile has files whose memory is that of their entries: half a kilobyte each, whatever they say.
func TestMemoryOfFile(t *testing.T) {
	if testing.Short() || scaletest.Raced {
		t.Skip("large files")
	}
	size := 256 * mebibyte
	if os.Getenv("PATIO_LARGE_TESTS") == "1" {
		size = 2048 * mebibyte
	}
	n := 0
	text := strings.Repeat("Some words of what a tool said. ", 600)
	path := made(t, func(w *bufio.Writer) {
		for written := 0; written < size; n++ {
			k, err := fmt.Fprintf(w, `{"type":"message","id":"%08x","parentId":%s,"timestamp":"2026-03-01T10:00:00.000Z","message":{"role":"user","content":[{"type":"text","text":"%s"}]}}`+"\n", n, parentOf(n-1), text)
			require.NoError(t, err)
			written += k
		}
	})
	f := everything(t, path, int64(n)<<10+16*mebibyte, false)
	require.Equal(t, n, len(f.Entries()))
	require.Equal(t, n, len(f.Path()))
}

func parentOf(n int) string {
	if n < 0 {
		return "null"
	}
	return fmt.Sprintf(`"%08x"`, n)
}

// TestManyEntries has 60,000 entries in trees of all shapes. Nothing recurses, and nothing takes the square of their number.
func TestManyEntries(t *testing.T) {
	if testing.Short() || scaletest.Raced {
		t.Skip("large files")
	}
	const n = 60_000
	for name, tc := range map[string]struct {
		parent func(i int) int
		path   int
	}{
		"chain":  {func(i int) int { return i - 1 }, n},
		"fan":    {func(i int) int { return min(i-1, 0) }, 2},
		"roots":  {func(int) int { return -1 }, 1},
		"comb":   {func(i int) int { return i - 1 - i%2 }, n / 2},
		"binary": {func(i int) int { return (i+1)/2 - 1 }, 16},
	} {
		t.Run(name, func(t *testing.T) {
			path := made(t, func(w *bufio.Writer) {
				for i := range n {
					fmt.Fprintf(w, `{"type":"message","id":"%08x","parentId":%s,"timestamp":"2026-03-01T10:00:00.000Z","message":{"role":"user","content":"x"}}`+"\n", i, parentOf(tc.parent(i)))
				}
			})
			began := time.Now()
			f := everything(t, path, n<<11, name == "comb")
			require.Equal(t, n, len(f.Entries())) // Len would print them
			require.Equal(t, tc.path, len(f.Path()))
			require.Less(t, time.Since(began), time.Minute)
		})
	}
}
