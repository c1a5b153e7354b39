package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"patio/engine/api"
	"patio/engine/supervisor"
)

func (e *Engine) journalPath(id string) string {
	return filepath.Join(e.o.Dirs.session(id), supervisor.JournalFile)
}

// snapshotTimeout bounds the question to one supervisor: a list must come up even when
// one of a hundred hangs.
const snapshotTimeout = 2 * time.Second

// List returns all sessions, newest first. Those that run tell their state themselves;
// what a crash left is reaped on the way.
func (e *Engine) List(ctx context.Context) ([]api.Session, error) {
	e.reapImports()
	entries, err := os.ReadDir(e.o.Dirs.sessions())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	sessions := make([]api.Session, len(entries))
	var wg sync.WaitGroup
	for i, entry := range entries {
		wg.Go(func() {
			s, err := e.load(ctx, entry.Name())
			if err != nil {
				// A directory that is being made or removed right now isn't a session.
				if !errors.Is(err, fs.ErrNotExist) {
					e.o.Log.Warn("unreadable session", "session", entry.Name(), "err", err)
				}
				return
			}
			sessions[i] = s
		})
	}
	wg.Wait()
	sessions = slices.DeleteFunc(sessions, func(s api.Session) bool { return s.ID == "" })
	slices.SortFunc(sessions, func(a, b api.Session) int { return b.Created.Compare(a.Created) })
	return sessions, nil
}

// load returns one session as it is now.
func (e *Engine) load(ctx context.Context, id string) (api.Session, error) {
	dir := e.o.Dirs.session(id)
	s, err := supervisor.ReadSession(dir)
	if err != nil {
		return s, err
	}
	if s.Phase.Final() {
		return s, nil
	}
	if s, crashed, err := e.reap(ctx, dir, s); err != nil || crashed {
		return s, err
	}
	ctx, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	c := e.Client(id, "list")
	defer c.Close()
	if live, err := c.Session(ctx); err == nil {
		return live, nil
	}
	// It starts or ends just now: its file is as new as anything.
	if now, err := supervisor.ReadSession(dir); err == nil {
		return now, nil
	}
	return s, nil
}

// Find returns the session of an id, a unique prefix of one, or a name.
func (e *Engine) Find(ctx context.Context, ref string) (api.Session, error) {
	if ref == "" {
		return api.Session{}, api.Errorf(api.CodeUsage, "", "no session named")
	}
	if dir := e.o.Dirs.session(ref); filepath.Base(dir) == ref && ref != "." && ref != ".." {
		if s, err := e.load(ctx, ref); err == nil {
			return s, nil
		}
	}
	all, err := e.List(ctx)
	if err != nil {
		return api.Session{}, err
	}
	// A name before an id's prefix: it was given to be used.
	matches := slices.DeleteFunc(slices.Clone(all), func(s api.Session) bool { return s.Name != ref })
	// A name can be given again: the one that runs is meant.
	if live := slices.DeleteFunc(slices.Clone(matches), func(s api.Session) bool { return s.Phase.Final() }); len(live) == 1 {
		matches = live
	}
	if len(matches) == 0 {
		matches = slices.DeleteFunc(all, func(s api.Session) bool { return !strings.HasPrefix(s.ID, ref) })
	}
	switch len(matches) {
	case 1:
		return matches[0], nil
	case 0:
		return api.Session{}, api.Errorf(api.CodeNotFound, "`patio ls -a` lists all sessions", "no session %q", ref)
	}
	var ids []string
	for _, s := range matches {
		ids = append(ids, s.ID)
	}
	return api.Session{}, api.Errorf(api.CodeConflict, "", "%q is ambiguous: %s", ref, strings.Join(ids, ", "))
}

// stopTimeout bounds a stop: both graces, and the removal of what the sandbox had.
const stopTimeout = 60 * time.Second

// Stop ends a session and returns when nothing of it is left. One that has ended is fine.
func (e *Engine) Stop(ctx context.Context, s api.Session, r api.StopRequest) error {
	if s.Phase.Final() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	c := e.Client(s.ID, "stop")
	defer c.Close()
	_, err := c.Stop(ctx, r)
	hungUp := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	if err == nil || hungUp {
		if err := e.gone(ctx, s.ID); err != nil {
			return err
		}
	}
	if err == nil {
		return nil
	}
	// Nobody listens, or nobody any more: it has just ended, or crashed.
	now, loadErr := e.load(ctx, s.ID)
	if loadErr != nil {
		return loadErr
	}
	if now.Phase.Final() {
		return nil
	}
	return fmt.Errorf("stop session: %w", err)
}

// gone waits until the supervisor has let go of its lock: until then it still removes
// its socket.
func (e *Engine) gone(ctx context.Context, id string) error {
	lock := e.lock(id)
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		return fmt.Errorf("stop session: %w", err)
	}
	return lock.Close()
}

// Remove deletes a session's directory: its journal and Pi's state. Pi's session file
// stays, it belongs to the user. A session that runs is stopped first when force is set.
func (e *Engine) Remove(ctx context.Context, s api.Session, force bool) error {
	if !s.Phase.Final() {
		if !force {
			return api.Errorf(api.CodeConflict, "stop it first, or use --force", "session %s is %s", s.ID, s.Phase)
		}
		if err := e.Stop(ctx, s, api.StopRequest{Reason: "removed"}); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(e.o.Dirs.session(s.ID)); err != nil {
		return fmt.Errorf("remove session: %w", err)
	}
	return nil
}
