package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"patio/engine/supervisor"
	"patio/sandbox/namespace"
)

// superviseCommand is how the engine starts a session's supervisor.
const superviseCommand = "supervise"

// Main runs the command line of this process and returns its exit code.
func Main() int {
	// A sandbox's init process is this executable too; it must do nothing else.
	if namespace.IsInit() {
		return namespace.InitMain()
	}
	// A supervisor handles signals by itself and outlives the command that started it.
	if len(os.Args) > 1 && os.Args[1] == superviseCommand {
		return supervisor.Main(os.Args[2:])
	}
	ctx, stop := withSignals(context.Background())
	defer stop()
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, lookupEnv: os.LookupEnv}
	return a.run(ctx, os.Args[1:])
}

// signalError is why a context was cancelled: the user or the system ended the command.
type signalError struct{ signal syscall.Signal }

func (e *signalError) Error() string { return "ended by " + e.signal.String() }

// withSignals cancels the context on the first signal that asks to end. The second ends
// the process at once: cleaning up may hang, and the user has said twice what they want.
func withSignals(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	// A reader that went away is an error of the write, so that a session that this
	// command owns is still stopped; the default would end the process on the spot.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	done := make(chan struct{})
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		for first := true; ; first = false {
			select {
			case s := <-signals:
				sig, ok := s.(syscall.Signal)
				if !ok {
					continue
				}
				if !first {
					os.Exit(128 + int(sig))
				}
				cancel(&signalError{sig})
			case <-done:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		<-finished
		cancel(nil)
	}
}

// run executes one command line and reports its error. It is all of Main but for what
// belongs to the process.
func (a *app) run(ctx context.Context, args []string) int {
	root := newRoot(a)
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.display())
	root.SetErr(a.errors())
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	var status *exitStatus
	if errors.As(err, &status) {
		return status.code
	}
	if errors.Is(err, syscall.EPIPE) {
		return 128 + int(syscall.SIGPIPE)
	}
	var sig *signalError
	if errors.As(context.Cause(ctx), &sig) {
		a.printError(args, interrupted(err))
		return 128 + int(sig.signal)
	}
	e := classify(err)
	a.printError(args, e)
	return exitCode(e.Code)
}

// exitStatus ends the command with a code and no message: everything has been said.
type exitStatus struct{ code int }

func (e *exitStatus) Error() string { return fmt.Sprintf("exit status %d", e.code) }
