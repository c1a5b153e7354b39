package chat

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"patio/tui/pane"
)

func load(t *testing.T, s InputStore, workspace string) []string {
	t.Helper()
	msg := s.Load(workspace)()
	require.IsType(t, InputsMsg{}, msg)
	return msg.(InputsMsg).Texts
}

func TestInputFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "inputs")
	s := NewInputFile(dir)
	require.Empty(t, load(t, s, "/a"))
	require.NoFileExists(t, dir)
	require.Nil(t, s.Append("/a", "one\nin two lines")())
	require.Nil(t, s.Append("/b", "elsewhere")())
	require.Nil(t, s.Append("/a", "zwei")())
	require.Equal(t, []string{"one\nin two lines", "zwei"}, load(t, s, "/a"))
	require.Equal(t, []string{"elsewhere"}, load(t, s, "/b"))
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	require.NoError(t, err)
	require.Len(t, files, 2)
	for _, f := range files {
		info, err := os.Stat(f)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	require.Nil(t, s.Append("/a", ""))
	require.Nil(t, s.Append("/a", strings.Repeat("x", maxInput+1)))
}

func TestInputFileIsMended(t *testing.T) {
	dir := t.TempDir()
	f := InputFile{dir}
	require.Nil(t, f.Append("/a", "one")())
	path := f.path("/a")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(b, `{"time":"2026`...), 0o600))
	require.Nil(t, f.Append("/a", "two")())
	require.Equal(t, []string{"one", "two"}, load(t, f, "/a"))
}

func TestInputFileIsBounded(t *testing.T) {
	f := InputFile{t.TempDir()}
	for i := range 1100 {
		require.Nil(t, f.Append("/a", fmt.Sprint(i))())
	}
	texts := load(t, f, "/a")
	require.LessOrEqual(t, len(texts), maxInputs)
	require.Equal(t, "1099", texts[len(texts)-1])
	for range 60 {
		require.Nil(t, f.Append("/big", strings.Repeat("y", 60<<10))())
		info, err := os.Stat(f.path("/big"))
		require.NoError(t, err)
		require.LessOrEqual(t, info.Size(), int64(maxInputBytes))
	}
	require.NotEmpty(t, load(t, f, "/big"))
	// Of a file that something else made huge, a part is read, and it is cut back.
	require.NoError(t, os.WriteFile(f.path("/huge"), []byte(strings.Repeat("z", 8<<20)), 0o600))
	require.Empty(t, load(t, f, "/huge"))
	require.Nil(t, f.Append("/huge", "small")())
	require.Equal(t, []string{"small"}, load(t, f, "/huge"))
}

func TestInputFileOfTwoWindows(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			s := NewInputFile(dir)
			for i := range 20 {
				if msg := s.Append("/a", fmt.Sprintf("%d %d", w, i))(); msg != nil {
					t.Error(msg)
				}
			}
		})
	}
	wg.Wait()
	require.Len(t, load(t, NewInputFile(dir), "/a"), 160)
}

func TestInputFileErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	s := NewInputFile(file)
	require.ErrorContains(t, s.Append("/a", "x")().(pane.ErrorMsg).Err, "keep what was typed")
	require.ErrorContains(t, s.Load("/a")().(pane.ErrorMsg).Err, "read what was typed")
}

func TestInputsAreKept(t *testing.T) {
	dir := t.TempDir()
	d := newDesk(t)
	d.c.o.Inputs = NewInputFile(dir)
	d.typed("hello")
	d.press("enter")
	d.typed("/compact x")
	d.press("enter")
	require.Equal(t, []string{"hello", "/compact x"}, load(t, d.c.o.Inputs, "/work/tour"))
	other := newDesk(t)
	other.c.o.Inputs = d.c.o.Inputs
	other.run(other.c.Wake())
	other.press("up", "up")
	require.Equal(t, "hello", other.c.ed.text())
}
