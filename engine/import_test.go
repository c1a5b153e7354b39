package engine

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"patio/engine/api"
	"patio/sessions"
)

// filesIn lists what is in a directory, but for lock files, which stay.
func filesIn(t testing.TB, dir string) []string {
	t.Helper()
	var all []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) != ".lock" {
			all = append(all, path)
		}
		return err
	}))
	return all
}

// TestImportCorpus imports every file of the corpus, in place and as a copy.
func TestImportCorpus(t *testing.T) {
	paths, err := filepath.Glob("../sessions/testdata/corpus/*.jsonl")
	require.NoError(t, err)
	require.Greater(t, len(paths), 50)
	m := newMachine(t)
	e := m.engine()
	require.NoError(t, m.dirs().prepare())
	imported := 0
	for _, path := range paths {
		before, err := os.ReadFile(path)
		require.NoError(t, err)
		report, err := sessions.Validate(path)
		require.NoError(t, err)
		_, fatal := report.Fatal()
		_, hopeless := report.Hopeless()
		hopeless = hopeless || report.Header.ID == "" // nothing to go on with
		for _, copied := range []bool{false, true} {
			source := filepath.Join(t.TempDir(), filepath.Base(path)) // equal base names each time
			require.NoError(t, os.WriteFile(source, before, 0o600))
			was := filesIn(t, m.dirs().State)
			done, err := e.Import(t.Context(), source, ImportRequest{Copy: copied})
			require.NoError(t, err, path)
			after, err := os.ReadFile(source)
			require.NoError(t, err)
			require.Equal(t, before, after, "the source stays as it is")
			if hopeless || fatal && !copied {
				require.Equal(t, ImportRefused, done.Status, path)
				require.NotNil(t, done.Error)
				require.Equal(t, was, filesIn(t, m.dirs().State), "a failed import leaves nothing")
				continue
			}
			require.Equal(t, ImportDone, done.Status, "%s: %v", path, done.Error)
			imported++
			s, err := e.Find(t.Context(), done.Session)
			require.NoError(t, err)
			require.Equal(t, done.File, s.SessionFile)
			require.Equal(t, copied, s.SessionFile != source)
			repaired, err := sessions.Validate(s.SessionFile)
			require.NoError(t, err)
			p, fatal := repaired.Fatal()
			require.False(t, fatal, "%s: %s", path, p)
			again, err := e.Import(t.Context(), source, ImportRequest{Copy: copied})
			require.NoError(t, err)
			require.Equal(t, ImportKnown, again.Status)
			require.Equal(t, done.Session, again.Session)
		}
	}
	all, err := e.List(t.Context())
	require.NoError(t, err)
	require.Len(t, all, imported)
	require.Greater(t, imported, 100)
}

const importable = `{"type":"session","version":3,"id":"a","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/gone/project/sub"}` + "\n" +
	`{"type":"message","id":"1","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"hello","timestamp":1}}` + "\n"

func TestImportMovedProject(t *testing.T) {
	m := newMachine(t)
	e := m.engine()
	place := filepath.Join(t.TempDir(), "new")
	require.NoError(t, os.MkdirAll(filepath.Join(place, "sub"), 0o755))
	file := filepath.Join(t.TempDir(), "s.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(importable), 0o600))

	dry, err := e.Import(t.Context(), file, ImportRequest{DryRun: true})
	require.NoError(t, err)
	require.Equal(t, ImportWould, dry.Status)
	require.Contains(t, strings.Join(dry.Notes, "\n"), "--cwd", "the directory is gone")
	require.NoDirExists(t, m.dirs().State, "a dry run makes nothing")

	bad, err := e.Import(t.Context(), file, ImportRequest{Cwd: filepath.Join(place, "nowhere")})
	require.NoError(t, err)
	require.Equal(t, api.CodeNotFound, bad.Error.Code)

	done, err := e.Import(t.Context(), file, ImportRequest{Moved: map[string]string{"/gone": "/elsewhere", "/gone/project": place, "/gone/pro": "/no"}})
	require.NoError(t, err)
	require.Equal(t, ImportDone, done.Status, done.Error)
	require.Equal(t, filepath.Join(place, "sub"), done.Workspace)
	report, err := sessions.Validate(done.File)
	require.NoError(t, err)
	require.Equal(t, done.Workspace, report.Header.Cwd, "Pi goes where the header says")
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, importable, string(b))
}

func TestImportOnceAtOnce(t *testing.T) {
	m := newMachine(t)
	e := m.engine()
	file := filepath.Join(t.TempDir(), "s.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(importable), 0o600))
	link, hard := file+"-link.jsonl", file+"-hard.jsonl"
	require.NoError(t, os.Symlink(file, link))
	require.NoError(t, os.Link(file, hard))
	var wg sync.WaitGroup
	results := make([]Imported, 9)
	errs := make([]error, len(results))
	for n := range results {
		wg.Go(func() {
			results[n], errs[n] = e.Import(t.Context(), []string{file, link, hard}[n%3], ImportRequest{Copy: n%2 == 0})
		})
	}
	wg.Wait()
	ids := map[string]bool{}
	done := 0
	for n, r := range results {
		require.NoError(t, errs[n])
		ids[r.Session] = true
		if r.Status == ImportDone {
			done++
		}
	}
	require.Len(t, ids, 1)
	require.Equal(t, 1, done)
}

func FuzzImport(f *testing.F) {
	f.Add([]byte(importable), false)
	f.Add([]byte("\xef\xbb\xbf"+importable+"{\"torn"), true)
	f.Add([]byte("{}\n[]\nnull\n"), true)
	f.Fuzz(func(t *testing.T, b []byte, copied bool) {
		m := newMachine(t)
		require.NoError(t, m.dirs().prepare())
		file := filepath.Join(t.TempDir(), "s.jsonl")
		require.NoError(t, os.WriteFile(file, b, 0o600))
		done, err := m.engine().Import(t.Context(), file, ImportRequest{Copy: copied})
		require.NoError(t, err)
		after, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(b), string(after))
		if done.Status == ImportRefused {
			require.NotNil(t, done.Error)
			require.Empty(t, filesIn(t, m.dirs().State))
			return
		}
		report, err := sessions.Validate(done.File)
		require.NoError(t, err)
		_, fatal := report.Fatal()
		require.False(t, fatal, report.Problems)
	})
}
