package supervisor

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/sandbox"
)

func specFor(t *testing.T) Spec {
	t.Helper()
	dir, err := os.MkdirTemp("", "sup") // short: a socket lies in it
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return Spec{
		Session: api.Session{V: 1, ID: "test", Phase: api.PhaseNew}, Dir: dir,
		Scratch: filepath.Join(dir, "scratch"), Socket: filepath.Join(dir, "s"),
		ImageStore: []string{filepath.Join(dir, "images")},
		Sandbox:    sandbox.Plan{ID: "test", Image: sandbox.Image{Digest: "0123"}},
	}
}

// A start that fails leaves its files to look at, and nothing else.
func TestRunFails(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	spec := specFor(t)
	require.NoError(t, os.WriteFile(spec.Socket, nil, 0o600), "a crash left one")
	var told []api.Phase
	err := Run(t.Context(), spec, slog.New(slog.DiscardHandler), func(s api.Session) { told = append(told, s.Phase) })
	require.ErrorContains(t, err, "no such image")
	require.Equal(t, []api.Phase{api.PhasePreparing, api.PhaseFailed}, told)

	s, err := ReadSession(spec.Dir)
	require.NoError(t, err)
	require.Equal(t, api.PhaseFailed, s.Phase)
	require.NotNil(t, s.Ended)
	require.Contains(t, s.Error.Message, "no such image")
	require.Equal(t, s.Error.Message, s.End.Reason)
	require.Equal(t, 1, s.End.ExitCode)
	require.Zero(t, s.SupervisorPID)

	j, err := journal.Open(filepath.Join(spec.Dir, JournalFile), "test")
	require.NoError(t, err, "it is whole and unlocked")
	log := states(t, &Supervisor{journal: j})
	require.NoError(t, j.Close())
	require.Equal(t, api.PhasePreparing, log[0].Phase)
	require.Equal(t, api.PhaseFailed, log[len(log)-1].Phase)
	require.Equal(t, s.End, log[len(log)-1].End)

	var left []string
	entries, err := os.ReadDir(spec.Dir)
	require.NoError(t, err)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	require.ElementsMatch(t, []string{JournalFile, SessionFile, LockFile}, left)
	lock := flock.New(filepath.Join(spec.Dir, LockFile))
	locked, err := lock.TryLock()
	require.NoError(t, err)
	require.True(t, locked)
	require.NoError(t, lock.Close())
}

func TestRunNeedsTheLock(t *testing.T) {
	spec := specFor(t)
	lock := flock.New(filepath.Join(spec.Dir, LockFile))
	locked, err := lock.TryLock()
	require.NoError(t, err)
	require.True(t, locked)
	defer func() { require.NoError(t, lock.Close()) }()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err = Run(ctx, spec, slog.New(slog.DiscardHandler), func(api.Session) { t.Error("nothing to tell") })
	require.ErrorContains(t, err, "has a supervisor already")
	require.Equal(t, api.CodeConflict, api.AsError(err).Code)
	require.NoFileExists(t, filepath.Join(spec.Dir, JournalFile))
}

// A journal that can't be opened is another session's, or damaged: it stays as it is.
func TestRunKeepsAnotherJournal(t *testing.T) {
	spec := specFor(t)
	path := filepath.Join(spec.Dir, JournalFile)
	require.NoError(t, os.WriteFile(path, []byte("not a journal\n"), 0o600))
	err := Run(t.Context(), spec, slog.New(slog.DiscardHandler), func(api.Session) {})
	require.Error(t, err)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "not a journal\n", string(b))
}
