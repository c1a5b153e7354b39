package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"patio/engine/api"
)

func execCommand(a *app) *cobra.Command {
	var cwd string
	var env []string
	cmd := &cobra.Command{
		Use:   "exec ID [-- CMD…]",
		Short: "Run a program inside a session's sandbox (default: a shell)",
		Long: `exec runs a program in the sandbox of a running session, as the user that Pi runs as, with
the streams of this command. Its exit code is the program's, 128+N for one that a signal
ended. Without a program and on a terminal it runs a shell.`,
		Args:              arguments(cobra.MinimumNArgs(1)),
		ValidArgsFunction: a.completeSessions(false, live),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.exec(cmd.Context(), args[0], args[1:], cwd, env)
		},
	}
	f := cmd.Flags()
	// What follows the id is the program's, flags too.
	f.SetInterspersed(false)
	f.StringVarP(&cwd, "workdir", "w", "", "the directory to run in (default: the workspace)")
	f.StringArrayVarP(&env, "env", "e", nil, "set NAME=VALUE, or pass NAME on; may be repeated")
	return cmd
}

func (a *app) exec(ctx context.Context, ref string, argv []string, cwd string, env []string) error {
	if len(argv) > 0 && argv[0] == "--" {
		argv = argv[1:]
	}
	interactive := a.interactive()
	if len(argv) == 0 {
		if !interactive {
			return usageError("usage: patio exec ID -- CMD…", "no program is given, and this is no terminal")
		}
		argv = []string{"bash", "-l"}
	}
	e, s, err := a.running(ctx, ref)
	if err != nil {
		return err
	}
	r := api.ExecRequest{Argv: argv, Cwd: cwd, Env: a.execEnv(env, interactive), TTY: interactive}
	client := e.Client(s.ID, clientCLI)
	defer client.Close()
	code, err := a.execIn(ctx, client, r)
	if err != nil {
		return causeOf(ctx, err)
	}
	if code != 0 {
		return &exitStatus{code}
	}
	return nil
}

// interactive reports whether a program gets a terminal of its own: all three streams
// are one here. A stream that leads elsewhere must get the program's bytes as they are.
func (a *app) interactive() bool {
	for _, stream := range []any{a.stdin, a.stdout, a.stderr} {
		if _, ok := terminal(stream); !ok {
			return false
		}
	}
	return true
}

// execEnv is what the caller passes on; a terminal's type goes with the terminal.
func (a *app) execEnv(env []string, interactive bool) []string {
	var out []string
	if interactive {
		env = append([]string{"TERM"}, env...)
	}
	for _, kv := range env {
		name, _, given := strings.Cut(kv, "=")
		if given {
			out = append(out, kv)
		} else if v, ok := a.lookupEnv(name); ok {
			out = append(out, name+"="+v)
		}
	}
	return out
}

// forwarded are the signals that are the program's, not this command's.
var forwarded = []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2}

// execIn runs the program and returns its exit code. Its signals are taken over from
// this process for as long as it runs.
func (a *app) execIn(ctx context.Context, c *api.Client, r api.ExecRequest) (int, error) {
	var streams [3]*os.File
	var started, release func()
	var err error
	if r.TTY {
		streams, started, release, err = a.terminalStreams()
	} else {
		started = func() {}
		streams, release, err = a.execStreams()
	}
	if err != nil {
		return 0, err
	}
	defer release()
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded...)
	defer signal.Stop(signals)
	// An interrupt is the program's, so it must not end the connection.
	ctx = context.WithoutCancel(ctx)
	x, err := c.Exec(ctx, r, streams[0], streams[1], streams[2])
	if err != nil {
		return 0, err
	}
	started()
	done := make(chan struct{})
	forwarding := make(chan struct{})
	go func() {
		defer close(forwarding)
		for {
			select {
			case s := <-signals:
				if sig, ok := s.(syscall.Signal); ok {
					_ = x.Signal(sig) // a program that has ended needs none
				}
			case <-done:
				return
			}
		}
	}()
	code, err := x.Wait(ctx)
	close(done)
	<-forwarding
	if err != nil {
		return 0, fmt.Errorf("run %s: %w", r.Argv[0], err)
	}
	return code, nil
}

// execStreams gives the three streams as files that the program inside may have. Pipes,
// sockets and terminals go in as they are. A regular file doesn't: gVisor would begin at
// its start, wherever this process is in it, so its bytes are passed through a pipe.
func (a *app) execStreams() (streams [3]*os.File, release func(), err error) {
	var pipes []io.Closer
	var copies []chan error
	release = func() {
		for _, p := range pipes {
			_ = p.Close()
		}
		for _, c := range copies {
			<-c
		}
	}
	stdin, ok := passable(a.stdin)
	if !ok {
		r, w, err := os.Pipe()
		if err != nil {
			return streams, release, err
		}
		pipes = append(pipes, r)
		// It ends with its input, or with the process: a read can't be broken off.
		go func() {
			_, _ = io.Copy(w, a.stdin)
			_ = w.Close()
		}()
		stdin = r
	}
	streams[0] = stdin
	for i, stream := range []io.Writer{a.stdout, a.stderr} {
		f, ok := passable(stream)
		if !ok {
			r, w, err := os.Pipe()
			if err != nil {
				release()
				return streams, func() {}, err
			}
			done := make(chan error, 1)
			go func() {
				_, err := io.Copy(stream, r)
				done <- errors.Join(err, r.Close())
			}()
			pipes, copies = append(pipes, w), append(copies, done)
			f = w
		}
		streams[i+1] = f
	}
	return streams, release, nil
}

// passable returns the file behind a stream if a sandbox can use it as it is.
func passable(stream any) (*os.File, bool) {
	f, ok := stream.(*os.File)
	if !ok {
		return nil, false
	}
	info, err := f.Stat()
	return f, err == nil && !info.Mode().IsRegular()
}
