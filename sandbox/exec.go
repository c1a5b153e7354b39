package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"patio/sandbox/namespace"
	"patio/sandbox/runsc"
)

// Exec is a program to run in a running sandbox, as the same user as the plan's own and
// with the plan's environment.
type Exec struct {
	Argv []string
	Env  []string // more of it
	Cwd  string   // the plan's when empty
	// TTY says that descriptor 0 is a terminal of the program's own.
	TTY   bool
	Files []*os.File // 0, 1 and 2
}

// Program is a program that Exec started. Its exit status is that of its process.
type Program struct {
	*namespace.Process
	s       *Sandbox
	pidFile string
}

// Exec starts a program inside.
func (s *Sandbox) Exec(ctx context.Context, e Exec) (*Program, error) {
	cwd := e.Cwd
	if cwd == "" {
		cwd = s.plan.Cwd
	}
	p := &Program{s: s, pidFile: filepath.Join(s.dir, "exec-"+strconv.FormatUint(s.execs.Add(1), 10))}
	argv := s.runsc.Exec(s.plan.ID, runsc.ExecOptions{
		Argv: e.Argv, Env: e.Env, Cwd: cwd, PIDFile: p.pidFile,
		User: fmt.Sprintf("%d:%d", namespace.SandboxID, namespace.SandboxID),
	})
	var err error
	if p.Process, err = s.ns.Start(ctx, namespace.Command{Argv: argv, Env: runscEnv, Files: e.Files, TTY: e.TTY}); err != nil {
		return nil, err
	}
	return p, nil
}

// Kill ends the program. Its process on the host only waits for it: killing that alone
// would leave the program running.
func (p *Program) Kill(ctx context.Context) error {
	b, err := os.ReadFile(p.pidFile)
	if err != nil {
		// It hasn't started yet.
		return p.Signal(syscall.SIGKILL)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return fmt.Errorf("kill program: %w", err)
	}
	return p.s.control(ctx, "kill", p.s.runsc.KillProcess(p.s.plan.ID, pid, "KILL"))
}

// Signal sends a signal to every process inside.
func (s *Sandbox) Signal(ctx context.Context, signal string) error {
	return s.control(ctx, "kill", s.runsc.Kill(s.plan.ID, signal))
}

// Pause stops everything inside where it is, until Resume. Its connections stay open.
func (s *Sandbox) Pause(ctx context.Context) error {
	return s.control(ctx, "pause", s.runsc.Pause(s.plan.ID))
}

// Resume lets a paused sandbox go on.
func (s *Sandbox) Resume(ctx context.Context) error {
	return s.control(ctx, "resume", s.runsc.Resume(s.plan.ID))
}

func (s *Sandbox) control(ctx context.Context, verb string, argv []string) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = null.Close() }()
	p, err := s.ns.Start(ctx, namespace.Command{Argv: argv, Env: runscEnv, Files: []*os.File{null, null, null}})
	if err != nil {
		return err
	}
	status, err := p.Wait(ctx)
	if err == nil && status.ExitStatus() != 0 {
		err = fmt.Errorf("runsc %s ended with status %d", verb, status.ExitStatus())
	}
	return err
}

const (
	// outputLimit bounds what Output keeps of a program's stdout.
	outputLimit = 8 << 20
	// messageLimit bounds what it keeps of the program's stderr, for an error.
	messageLimit = 64 << 10
)

// Output runs a program inside and returns what it printed on its stdout. The program is
// killed when ctx ends first.
func (s *Sandbox) Output(ctx context.Context, argv ...string) ([]byte, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer func() { _ = null.Close() }()
	stdout, stderr, err := twoPipes()
	if err != nil {
		return nil, err
	}
	defer func() { _ = stdout.r.Close(); _ = stderr.r.Close() }()
	p, err := s.Exec(ctx, Exec{Argv: argv, Files: []*os.File{null, stdout.w, stderr.w}})
	err = errors.Join(err, stdout.w.Close(), stderr.w.Close())
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() {
		killCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = p.Kill(killCtx)
		// What the program left running may hold its ends.
		_ = stdout.r.SetReadDeadline(time.Now())
		_ = stderr.r.SetReadDeadline(time.Now())
	})
	defer stop()
	message := make(chan []byte, 1)
	go func() {
		b, _ := io.ReadAll(io.LimitReader(stderr.r, messageLimit))
		_, _ = io.Copy(io.Discard, stderr.r)
		message <- b
	}()
	out, readErr := io.ReadAll(io.LimitReader(stdout.r, outputLimit))
	if readErr == nil {
		_, readErr = io.Copy(io.Discard, stdout.r)
	}
	text := <-message
	status, err := p.Wait(ctx)
	if err := errors.Join(ctx.Err(), err, readErr); err != nil {
		return out, fmt.Errorf("run %s: %w", argv[0], err)
	}
	if status.ExitStatus() != 0 {
		return out, fmt.Errorf("run %s: exit status %d: %s", argv[0], status.ExitStatus(), strings.TrimSpace(string(text)))
	}
	return out, nil
}

type pipe struct{ r, w *os.File }

func twoPipes() (a, b pipe, err error) {
	if a.r, a.w, err = os.Pipe(); err != nil {
		return a, b, err
	}
	if b.r, b.w, err = os.Pipe(); err != nil {
		return a, b, errors.Join(err, a.r.Close(), a.w.Close())
	}
	return a, b, nil
}
