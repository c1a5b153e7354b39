package engine

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"patio/engine/api"
	"patio/sessions"
)

// importSteps makes an importer of a file that has been read, and the steps that it takes.
func importSteps(t testing.TB, e *Engine, path string, r ImportRequest) (halfImport, []func() error) {
	t.Helper()
	i := &importer{e: e, r: r, done: Imported{Path: path}}
	known, err := e.knownFiles(t.Context())
	require.NoError(t, err)
	i.examine(known)
	require.Nil(t, i.done.Error)
	h := e.halfImport(newID())
	return h, i.steps(h, new(api.Session))
}

const crashSteps = "PATIO_TEST_IMPORT_STEPS"

// TestImportThatIsKilled is what TestImportCrash kills.
func TestImportThatIsKilled(t *testing.T) {
	steps, err := strconv.Atoi(os.Getenv(crashSteps))
	if err != nil {
		t.Skip("run by TestImportCrash")
	}
	root := os.Getenv("PATIO_TEST_IMPORT_ROOT")
	e := (&machine{root: root}).engine()
	unlock, err := e.lockImports(t.Context())
	require.NoError(t, err)
	defer unlock()
	_, all := importSteps(t, e, filepath.Join(root, "source.jsonl"), ImportRequest{Copy: os.Getenv("PATIO_TEST_IMPORT_COPY") == "1"})
	for _, step := range all[:steps] {
		require.NoError(t, step())
	}
	_, err = os.Stdout.WriteString("ready\n")
	require.NoError(t, err)
	_, err = bufio.NewReader(os.Stdin).ReadString('\n') // until it is killed
	require.NoError(t, err)
}

// TestImportCrash kills an import after each of its steps. The next command finds either
// a whole session or nothing of it.
func TestImportCrash(t *testing.T) {
	for name, c := range map[string]struct {
		copied bool
		steps  int
		whole  int // from this step on the session is there
	}{
		"in place": {steps: 5, whole: 3},
		"copied":   {copied: true, steps: 7, whole: 6},
	} {
		t.Run(name, func(t *testing.T) {
			for steps := range c.steps + 1 {
				m := newMachine(t)
				source := filepath.Join(m.root, "source.jsonl")
				require.NoError(t, os.WriteFile(source, []byte(importable), 0o600))
				require.NoError(t, m.dirs().prepare())
				if steps == 0 {
					_, all := importSteps(t, m.engine(), source, ImportRequest{Copy: c.copied})
					require.Len(t, all, c.steps)
				}

				child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestImportThatIsKilled$")
				copied := "0"
				if c.copied {
					copied = "1"
				}
				child.Env = append(os.Environ(), crashSteps+"="+strconv.Itoa(steps), "PATIO_TEST_IMPORT_ROOT="+m.root, "PATIO_TEST_IMPORT_COPY="+copied)
				_, err := child.StdinPipe() // open until Wait
				require.NoError(t, err)
				stdout, err := child.StdoutPipe()
				require.NoError(t, err)
				require.NoError(t, child.Start())
				for lines := bufio.NewScanner(stdout); ; {
					require.True(t, lines.Scan(), "step %d", steps)
					if lines.Text() == "ready" {
						break
					}
				}
				before := filesIn(t, m.dirs().State)
				live, err := m.engine().List(t.Context())
				require.NoError(t, err)
				require.Equal(t, before, filesIn(t, m.dirs().State), "an import that lives is left alone")
				require.Equal(t, steps == c.steps, len(live) == 1, "no half session is listed")
				require.NoError(t, child.Process.Kill())
				require.Error(t, child.Wait())

				all, err := m.engine().List(t.Context())
				require.NoError(t, err)
				m.checkEnded(t, all, c.copied)
				require.Equal(t, steps >= c.whole, len(all) == 1, "step %d", steps)
				b, err := os.ReadFile(source)
				require.NoError(t, err)
				require.Equal(t, importable, string(b), "the source stays as it is")
				done, err := m.engine().Import(t.Context(), source, ImportRequest{Copy: c.copied})
				require.NoError(t, err)
				require.Equal(t, steps >= c.whole, done.Status == ImportKnown, "and can be imported")
			}
		})
	}
}

// checkEnded checks that nothing of an import is half made.
func (m *machine) checkEnded(t testing.TB, all []api.Session, copied bool) {
	t.Helper()
	want := 0
	for _, s := range all {
		want += 2 // snapshot and journal
		if copied {
			want++
		}
		require.Equal(t, api.PhaseEnded, s.Phase)
		report, err := sessions.Validate(s.SessionFile)
		require.NoError(t, err)
		_, fatal := report.Fatal()
		require.False(t, fatal)
		r, err := m.engine().OpenJournal(t.Context(), s.ID, 0)
		require.NoError(t, err)
		require.NoError(t, r.Close())
	}
	require.Len(t, filesIn(t, m.dirs().State), want)
	for _, dir := range []string{m.dirs().imports(), m.dirs().piSessions()} {
		entries, err := os.ReadDir(dir)
		if !os.IsNotExist(err) {
			require.NoError(t, err)
		}
		for _, entry := range entries {
			require.False(t, entry.IsDir(), entry.Name())
		}
	}
}

// TestImportTornBetween has what a kill leaves within a step.
func TestImportTornBetween(t *testing.T) {
	for name, c := range map[string]struct {
		steps int
		tear  func(t *testing.T, h halfImport, m *machine)
		whole bool
	}{
		"a copy that is being written": {steps: 2, tear: func(t *testing.T, h halfImport, _ *machine) {
			require.NoError(t, os.WriteFile(filepath.Join(h.copyDir, ".copy123"), []byte("half"), 0o600))
		}},
		"a snapshot that is being written": {steps: 4, tear: func(t *testing.T, h halfImport, _ *machine) {
			require.NoError(t, os.WriteFile(filepath.Join(h.dir, ".session.json123"), []byte("half"), 0o600))
		}},
		"somebody else's file has the copy's name": {steps: 5, tear: func(t *testing.T, _ halfImport, m *machine) {
			require.NoError(t, os.WriteFile(filepath.Join(m.dirs().piSessions(), "source.jsonl"), []byte("theirs"), 0o600))
		}},
		"the copy's directory is gone": {steps: 6, whole: true, tear: func(t *testing.T, h halfImport, _ *machine) {
			require.NoError(t, os.RemoveAll(h.copyDir))
		}},
		"a removal that got half way": {steps: 6, tear: func(t *testing.T, h halfImport, m *machine) {
			require.NoError(t, os.Remove(filepath.Join(m.dirs().piSessions(), "source.jsonl")))
			require.NoError(t, os.RemoveAll(h.copyDir))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			source := filepath.Join(m.root, "source.jsonl")
			require.NoError(t, os.WriteFile(source, []byte(importable), 0o600))
			require.NoError(t, m.dirs().prepare())
			h, steps := importSteps(t, m.engine(), source, ImportRequest{Copy: true})
			for _, step := range steps[:c.steps] {
				require.NoError(t, step())
			}
			c.tear(t, h, m)
			all, err := m.engine().List(t.Context())
			require.NoError(t, err)
			if c.whole {
				require.Len(t, all, 1)
				m.checkEnded(t, all, true)
				return
			}
			require.Empty(t, all)
			require.NoDirExists(t, h.dir)
			require.NoDirExists(t, h.copyDir)
			for _, file := range filesIn(t, m.dirs().State) {
				b, err := os.ReadFile(file)
				require.NoError(t, err)
				require.Equal(t, "theirs", string(b))
			}
		})
	}
}

// TestImportFails has a step that fails: nothing is left, and the batch says why.
func TestImportFails(t *testing.T) {
	m := newMachine(t)
	source := filepath.Join(m.root, "source.jsonl")
	require.NoError(t, os.WriteFile(source, []byte(importable), 0o600))
	require.NoError(t, m.dirs().prepare())
	require.NoError(t, os.WriteFile(m.dirs().imports(), nil, 0o600))
	was := filesIn(t, m.dirs().State)
	_, err := m.engine().Import(t.Context(), source, ImportRequest{Copy: true})
	require.Error(t, err)
	require.Equal(t, was, filesIn(t, m.dirs().State))
	require.NoError(t, os.Remove(m.dirs().imports()))

	// The source is removed after it was read: that is the file's fault alone.
	_, steps := importSteps(t, m.engine(), source, ImportRequest{Copy: true})
	require.NoError(t, os.Remove(source))
	require.NoError(t, steps[0]())
	require.NoError(t, steps[1]())
	require.ErrorIs(t, steps[2](), errRefused)
}
