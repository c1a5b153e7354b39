package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/engine/supervisor"
	"patio/sandbox/limits"
)

// lockRetry is how often a lock that is held is tried again.
const lockRetry = 10 * time.Millisecond

func (e *Engine) lock(id string) *flock.Flock {
	return flock.New(filepath.Join(e.o.Dirs.session(id), supervisor.LockFile), flock.SetPermissions(0o600))
}

// reap finds out whether a session that hasn't ended has lost its supervisor, and if so
// removes what is left and marks it crashed. Everything inside the sandbox has ended with
// the supervisor (see sandbox/namespace); files and the cgroup have not.
func (e *Engine) reap(ctx context.Context, dir string, s api.Session) (api.Session, bool, error) {
	lock := e.lock(s.ID)
	locked, err := lock.TryLock()
	if err != nil {
		return s, false, fmt.Errorf("look at session %s: %w", s.ID, err)
	}
	if !locked {
		return s, false, nil
	}
	defer func() { _ = lock.Close() }()
	// It may have ended between the look at its file and the lock.
	if now, err := supervisor.ReadSession(dir); err == nil {
		s = now
	}
	if s.Phase.Final() {
		return s, true, nil
	}
	// A supervisor that was only just started hasn't got its lock yet.
	if s.Phase == api.PhaseNew && alive(s.SupervisorPID) {
		return s, false, nil
	}
	e.o.Log.Info("reap crashed session", "session", s.ID)
	var errs []error
	if err := os.Remove(filepath.Join(dir, supervisor.ReserveFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		errs = append(errs, err)
	}
	if len(s.Cgroups) > 0 {
		errs = append(errs, limits.Reap(ctx, s.Cgroups...))
	}
	d := e.o.Dirs
	errs = append(errs, os.RemoveAll(d.scratch(s.ID)))
	if err := os.Remove(d.socket(s.ID)); err != nil && !errors.Is(err, os.ErrNotExist) {
		errs = append(errs, err)
	}
	now := time.Now().UTC()
	s.Phase, s.Activity, s.Questions, s.Usage, s.SupervisorPID, s.Cgroups = api.PhaseCrashed, "", nil, nil, 0, nil
	s.Ended = &now
	s.End = &api.End{Reason: "the session's supervisor was lost", ExitCode: 1}
	if j, err := journal.Open(e.journalPath(s.ID), s.ID); err != nil {
		errs = append(errs, err)
	} else {
		_, err := j.Append(api.RecordState, api.StateRecord{Phase: s.Phase, Reason: s.End.Reason, End: s.End})
		errs = append(errs, err, j.Close())
	}
	errs = append(errs, supervisor.WriteSession(dir, s))
	if err := errors.Join(errs...); err != nil {
		// It has crashed all the same, and the next look tries the rest again.
		e.o.Log.Warn("clean up after a crashed session", "session", s.ID, "err", err)
	}
	return s, true, nil
}

// reapImports ends imports that were killed. One that lives holds the lock, and ends them
// itself.
func (e *Engine) reapImports() {
	if entries, err := os.ReadDir(e.o.Dirs.imports()); err != nil || len(entries) == 0 {
		return
	}
	lock := e.importLock()
	locked, err := lock.TryLock()
	if err != nil {
		e.o.Log.Warn("look at imports", "err", err) // the sessions can be listed all the same
	}
	if locked {
		e.recoverImports()
		_ = lock.Close()
	}
}

func alive(pid int) bool {
	return pid > 0 && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
