package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"patio/engine/api"
)

// Main is the supervisor process: `patio supervise ID`. The launcher gives it the Spec on
// stdin, reads snapshots from its stdout until the session is ready, and keeps stdin open
// until then: a launcher that dies earlier takes the session with it.
func Main(args []string) int {
	spec, err := readSpec(os.Stdin, args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "patio supervise: %v (patio starts this itself: use `patio new`)\n", err)
		return 2
	}
	logFile, err := os.OpenFile(filepath.Join(spec.Dir, LogFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		fmt.Fprintf(os.Stderr, "patio supervise: %v\n", err)
		return 1
	}
	defer func() { _ = logFile.Close() }()
	log := slog.New(slog.NewTextHandler(logFile, nil)).With("session", spec.Session.ID)
	// A panic's trace belongs in the log too.
	if err := unix.Dup2(int(logFile.Fd()), 2); err != nil {
		log.Warn("redirect stderr", "err", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// The session outlives the terminal it was started in.
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	launcher := newLauncher(os.Stdin, os.Stdout, func() { cancel(errLauncherGone) })
	err = Run(ctx, spec, log, launcher.tell)
	if err != nil {
		log.Error("session failed", "err", err)
		return 1
	}
	return 0
}

var errLauncherGone = errors.New("the command that started the session is gone")

func readSpec(r io.Reader, args []string) (Spec, error) {
	if len(args) != 1 {
		return Spec{}, errors.New("it takes a session's id")
	}
	if f, ok := r.(*os.File); ok {
		if fi, err := f.Stat(); err == nil && fi.Mode()&os.ModeCharDevice != 0 {
			return Spec{}, errors.New("it takes a launch on stdin")
		}
	}
	var spec Spec
	if err := json.NewDecoder(r).Decode(&spec); err != nil {
		return Spec{}, fmt.Errorf("read launch: %w", err)
	}
	if spec.Session.ID != args[0] {
		return Spec{}, fmt.Errorf("launch is for session %q", spec.Session.ID)
	}
	return spec, nil
}

// launcher is the command that started this supervisor, while it waits.
type launcher struct {
	mu   sync.Mutex
	out  *os.File
	done bool
}

func newLauncher(in, out *os.File, gone func()) *launcher {
	l := &launcher{out: out}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		l.mu.Lock()
		done := l.done
		l.mu.Unlock()
		if !done {
			gone()
		}
	}()
	return l
}

// tell sends a snapshot; the first one of a phase that nothing is waited for after lets
// the launcher go.
func (l *launcher) tell(s api.Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		return
	}
	// A launcher that is gone isn't an error here: its stdin end says so.
	_ = json.NewEncoder(l.out).Encode(s)
	if s.Phase == api.PhaseReady || s.Phase.Final() {
		l.done = true
		_ = l.out.Close()
	}
}
