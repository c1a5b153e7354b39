package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"patio/engine/api"
	"patio/engine/jsonl"
	"patio/engine/supervisor"
)

// Start starts the supervisor of a planned session and returns when the session is
// ready. Progress gets a snapshot at each change of phase; it may be nil. When ctx ends
// first, or the start fails, the session's directory stays for `patio inspect` and
// `patio logs`; nothing else does.
func (e *Engine) Start(ctx context.Context, l *Launch, progress func(api.Session)) (api.Session, error) {
	if progress == nil {
		progress = func(api.Session) {}
	}
	if err := e.o.Dirs.prepare(); err != nil {
		return api.Session{}, err
	}
	if n := len(l.spec.Socket); n > maxSocketPath {
		return api.Session{}, api.Errorf(api.CodeConfig, "set XDG_RUNTIME_DIR to a shorter directory", "the socket's path %s has %d bytes, at most %d are possible", l.spec.Socket, n, maxSocketPath)
	}
	if err := e.checkImage(ctx, l.image); err != nil {
		return api.Session{}, err
	}
	if err := e.probePlatform(ctx, l.image, l.spec.Sandbox.Platform); err != nil {
		return api.Session{}, err
	}
	dir := l.spec.Dir
	// The launcher is the one to blame until the supervisor has the lock: see reap.
	l.spec.Session.SupervisorPID = os.Getpid()
	if l.resume {
		if err := e.claim(ctx, dir, l.spec.Session); err != nil {
			return api.Session{}, err
		}
	} else if err := os.Mkdir(dir, 0o700); err != nil {
		return api.Session{}, fmt.Errorf("make the session's directory: %w", err)
	} else if err := supervisor.WriteSession(dir, l.spec.Session); err != nil {
		return api.Session{}, errors.Join(err, os.RemoveAll(dir))
	}
	s, err := e.supervise(ctx, l, progress)
	if err != nil {
		return s, err
	}
	if s.Error != nil {
		return s, s.Error
	}
	if s.Phase != api.PhaseReady {
		reason := ""
		if s.End != nil {
			reason = ": " + s.End.Reason
		}
		return s, api.Errorf(api.CodeInternal, "", "the session is %s%s", s.Phase, reason)
	}
	return s, nil
}

// maxSocketPath is the size of sun_path less its NUL.
const maxSocketPath = 107

// startDelay is how long a supervisor that was told to give up may take to clean up.
const startDelay = 30 * time.Second

func (e *Engine) supervise(ctx context.Context, l *Launch, progress func(api.Session)) (api.Session, error) {
	// Not CommandContext: a supervisor that is killed can't clean up. Closing its stdin
	// tells it to give up.
	cmd := exec.Command(l.spec.Executable, "supervise", l.spec.Session.ID)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Dir = "/"
	cmd.Env = supervisorEnv(e.o.Environ)
	stderr, err := os.OpenFile(filepath.Join(l.spec.Dir, supervisor.LogFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return api.Session{}, fmt.Errorf("open the supervisor's log: %w", err)
	}
	defer func() { _ = stderr.Close() }()
	cmd.Stderr = stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return api.Session{}, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return api.Session{}, err
	}
	if err := cmd.Start(); err != nil {
		return api.Session{}, fmt.Errorf("start the session's supervisor: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = stdin.Close() })
	defer stop()
	if err := json.NewEncoder(stdin).Encode(l.spec); err != nil && ctx.Err() == nil {
		_ = stdin.Close()
		return api.Session{}, errors.Join(fmt.Errorf("hand the launch over: %w", err), cmd.Wait())
	}
	last := l.Session
	lines := jsonl.NewReader(stdout)
	for {
		line, err := lines.Next()
		if err != nil {
			break
		}
		var s api.Session
		if err := json.Unmarshal(line, &s); err != nil {
			return last, fmt.Errorf("read the session's start: %w", err)
		}
		last = s
		progress(s)
	}
	if last.Phase == api.PhaseReady && ctx.Err() == nil {
		_ = stdin.Close()
		// The supervisor lives on; its exit is init's to collect, or this process's if it is still there.
		go func() { _ = cmd.Wait() }()
		return last, nil
	}
	timeout := time.AfterFunc(startDelay, func() { _ = cmd.Process.Kill() })
	defer timeout.Stop()
	_ = stdin.Close()
	waitErr := cmd.Wait()
	if ctx.Err() != nil {
		// Ready in the moment of the interrupt: it is stopped like any other.
		if last.Phase == api.PhaseReady {
			if err := e.Stop(context.WithoutCancel(ctx), last, api.StopRequest{Reason: "interrupted", Now: true}); err != nil {
				return last, err
			}
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return last, api.Errorf(api.CodeTimeout, "a cold start takes some seconds; give it more time", "the session was not ready in time")
		}
		return last, api.Errorf(api.CodeInterrupted, "", "interrupted before the session was ready")
	}
	if !last.Phase.Final() {
		return last, api.Errorf(api.CodeInternal, "see "+filepath.Join(l.spec.Dir, supervisor.LogFile), "the session's supervisor ended early: %w", waitErr)
	}
	return last, nil
}

// supervisorEnv passes on what programs that the supervisor starts need, and patio's own
// settings. Provider keys go in the launch, not in an environment that /proc shows.
func supervisorEnv(environ []string) []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "PATIO_DEBUG"} {
		for _, kv := range environ {
			if len(kv) > len(name) && kv[len(name)] == '=' && kv[:len(name)] == name {
				env = append(env, kv)
			}
		}
	}
	return env
}
