package engine

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSessionDirs holds that the directories of the options are looked at for every
// caller, and one that is named twice once.
func TestSessionDirs(t *testing.T) {
	m := newMachine(t)
	old := filepath.Join(m.root, "old")
	require.NoError(t, os.Mkdir(old, 0o700))
	m.write(t, "old/a.jsonl", `{"type":"session","version":3,"id":"0197cccc-0000-7000-8000-000000000000","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/work"}`+"\n", 0o600)
	e := New(Options{Dirs: m.dirs(), Environ: m.env, SessionDirs: []string{old, filepath.Join(m.root, "missing")}})

	for name, extra := range map[string][]string{"alone": nil, "named again": {old}} {
		t.Run(name, func(t *testing.T) {
			list, err := e.SessionFiles(t.Context(), extra...)
			require.NoError(t, err)
			require.Empty(t, list.Problems)
			require.Len(t, list.Sessions, 1)
			require.Equal(t, filepath.Join(old, "a.jsonl"), list.Sessions[0].Path)
		})
	}
	path, err := e.FindSessionFile(t.Context(), "0197c")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(old, "a.jsonl"), path)

	_, err = m.engine().FindSessionFile(t.Context(), "0197c")
	require.Error(t, err, "an engine without them doesn't look there")
}
