package sessions

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// seeds adds the corpus to a fuzz target.
func seeds(f *testing.F) {
	f.Helper()
	for _, path := range corpus(f) {
		b, err := os.ReadFile(path)
		require.NoError(f, err)
		if len(b) < 16<<10 {
			f.Add(b)
		}
	}
}

// fuzzed writes an input. The function that it returns requires that it took no unreasonable time.
func fuzzed(t *testing.T, b []byte) (path string, done func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "f.jsonl")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	began := time.Now()
	return path, func() { require.Less(t, time.Since(began), 20*time.Second) }
}

// FuzzDecode reads any file, and shows it in every way. What is kept of it is bounded, and nothing is made up.
func FuzzDecode(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		path, done := fuzzed(t, b)
		defer done()
		file, err := Open(path)
		require.NoError(t, err)
		defer func() { require.NoError(t, file.Close()) }()
		require.EqualValues(t, len(b), file.Size())
		last := 0
		for i, e := range file.Entries() {
			require.Equal(t, i, e.Index)
			require.Greater(t, e.Line, last)
			last = e.Line
			for _, s := range []string{e.ID, e.ParentID, e.Type, e.Role, e.call} {
				require.LessOrEqual(t, len(s), maxKey)
			}
			body, err := file.Body(e)
			require.NoError(t, err)
			require.Equal(t, object, kindOf(string(body)), "an entry is a line of its own")
			_, err = file.Turn(e)
			require.NoError(t, err)
			require.NotEmpty(t, file.PathTo(e))
			require.NoError(t, file.Conversation(e.ID, func(Turn) error { return nil }))
		}
		require.LessOrEqual(t, len(file.Path()), len(file.Entries()))
		info, err := file.Info()
		require.NoError(t, err)
		for _, s := range []string{info.Name, info.First, info.Last, info.FirstAnswer, info.LastAnswer, info.Provider, info.ModelID, info.Thinking} {
			require.LessOrEqual(t, len(s), infoText)
		}
		for _, write := range []func(io.Writer, ExportOptions) error{file.WriteText, file.WriteMarkdown, file.WriteHTML} {
			require.NoError(t, write(io.Discard, ExportOptions{Limit: 1000}))
		}
		var text strings.Builder
		require.NoError(t, file.WriteText(&text, ExportOptions{}))
		require.True(t, utf8.ValidString(text.String()))
		require.Negative(t, strings.IndexFunc(text.String(), isControl))
	})
}

// FuzzReport repairs any file. It has no fatal problem then, unless it is hopeless, and there is nothing more to repair.
func FuzzReport(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		path, done := fuzzed(t, b)
		defer done()
		report, err := Validate(path)
		require.NoError(t, err)
		for _, p := range report.Problems {
			require.NotEmpty(t, p.Text)
			require.True(t, p.Severity == Fatal || p.Severity == Repairable || p.Severity == Note)
		}
		repairOf(t, path)
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, b, after, "the file is as it was")

		switch mended, err := RepairTail(path); {
		case errors.Is(err, ErrNoSession):
			return
		default:
			require.NoError(t, err)
			if mended.Cut > 0 {
				kept, err := os.ReadFile(mended.Kept)
				require.NoError(t, err)
				now, err := os.ReadFile(path)
				require.NoError(t, err)
				require.Equal(t, string(b), string(now)+string(kept), "nothing is lost")
			}
		}
		report, err = Validate(path)
		require.NoError(t, err)
		require.False(t, report.Fixes(FixTail), report.Problems)
	})
}
