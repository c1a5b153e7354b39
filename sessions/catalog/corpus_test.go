package catalog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"patio/sessions"
)

// TestScanCorpus holds what is listed of each file against the decoder, read cold and from
// the index.
func TestScanCorpus(t *testing.T) {
	dir, err := filepath.Abs("../testdata/corpus")
	require.NoError(t, err)
	index := filepath.Join(t.TempDir(), "index")
	o := Options{Roots: []Root{{Dir: dir}}, Index: index}
	cold, err := Scan(t.Context(), o)
	require.NoError(t, err)
	require.Empty(t, cold.Problems)
	paths, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	require.NoError(t, err)
	require.Len(t, cold.Sessions, len(paths))
	again, err := Scan(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, cold.Sessions, again.Sessions)
	compared := 0
	for _, s := range cold.Sessions {
		if s.Broken != "" {
			continue
		}
		f, err := sessions.Open(s.Path)
		require.NoError(t, err)
		info, err := f.Info()
		require.NoError(t, err)
		header := f.Header()
		require.NoError(t, f.Close())
		require.Equal(t, header.ID, s.ID, s.Path)
		require.Equal(t, header.Cwd, s.Cwd, s.Path)
		require.Equal(t, info.Name != "", s.Named, s.Path)
		if info.Name != "" {
			require.True(t, strings.HasPrefix(s.Title, info.Name[:1]), s.Path)
		}
		compared++
	}
	require.Greater(t, compared, 80)
}

// TestIndexInDoubt spoils the index in every way that a crash or a stranger can: the list
// stays right.
func TestIndexInDoubt(t *testing.T) {
	dir, err := filepath.Abs("../testdata/corpus")
	require.NoError(t, err)
	index := filepath.Join(t.TempDir(), "index")
	o := Options{Roots: []Root{{Dir: dir}}, Index: index}
	want, err := Scan(t.Context(), o)
	require.NoError(t, err)
	good, err := os.ReadFile(index)
	require.NoError(t, err)
	for name, spoil := range map[string]func() []byte{
		"empty": func() []byte { return nil },
		"torn":  func() []byte { return good[:len(good)/2] },
		"other": func() []byte { return []byte("hello\n") },
		"flip": func() []byte {
			b := append([]byte(nil), good...)
			b[len(b)/2] ^= 0x40
			return b
		},
		"longer": func() []byte { return append(append([]byte(nil), good...), "more"...) },
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(index, spoil(), 0o600))
			got, err := Scan(t.Context(), o)
			require.NoError(t, err)
			require.Equal(t, want.Sessions, got.Sessions)
			require.Equal(t, len(want.Sessions), got.Read, "nothing of it is believed")
		})
	}
}

// TestSymlinkedDirectories lists each file once, however many ways lead to it.
func TestSymlinkedDirectories(t *testing.T) {
	dir := t.TempDir()
	sub := filepath.Join(dir, "--work--")
	require.NoError(t, os.Mkdir(sub, 0o755))
	line := `{"type":"session","version":3,"id":"a","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/work"}` + "\n"
	for _, path := range []string{filepath.Join(dir, "flat.jsonl"), filepath.Join(sub, "encoded.jsonl")} {
		require.NoError(t, os.WriteFile(path, []byte(line), 0o600))
	}
	require.NoError(t, os.Symlink(sub, filepath.Join(dir, "twin")))
	require.NoError(t, os.Symlink(dir, filepath.Join(sub, "loop")))
	list, err := Scan(t.Context(), Options{Roots: []Root{{Dir: dir}, {Dir: sub}}})
	require.NoError(t, err)
	require.Len(t, list.Sessions, 2)
}
