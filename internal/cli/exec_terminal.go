package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"
)

// drainTimeout bounds the wait for the last output of a program that has ended: something
// it left behind may hold the terminal open.
const drainTimeout = time.Second

// terminalStreams gives a program a terminal of its own, joined to this command's, which
// is in raw mode until release. A terminal can control only one session of processes, so
// the caller's own can't be handed in.
//
// started closes what the program has now; without that its end wouldn't be seen.
func (a *app) terminalStreams() (streams [3]*os.File, started, release func(), err error) {
	host, ok := terminal(a.stdin)
	if !ok {
		return streams, nil, nil, errors.New("stdin is no terminal")
	}
	master, slave, err := pty.Open()
	if err != nil {
		return streams, nil, nil, fmt.Errorf("open a terminal for the program: %w", err)
	}
	state, err := term.MakeRaw(int(host.Fd()))
	if err != nil {
		return streams, nil, nil, errors.Join(fmt.Errorf("set the terminal to raw mode: %w", err), master.Close(), slave.Close())
	}
	_ = pty.InheritSize(host, master) // a terminal without a size is one of 0 by 0
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	stop := make(chan struct{})
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		for {
			select {
			case <-resized:
				_ = pty.InheritSize(host, master)
			case <-stop:
				return
			}
		}
	}()
	// A read of the terminal can't be broken off; it ends with the process.
	go func() { _, _ = io.Copy(master, host) }()
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		// The end is EIO, once nobody has the other side any more.
		_, _ = io.Copy(host, master)
	}()
	streams = [3]*os.File{slave, slave, slave}
	started = func() { _ = slave.Close() }
	release = func() {
		_ = slave.Close()
		select {
		case <-shown:
		case <-time.After(drainTimeout):
		}
		signal.Stop(resized)
		close(stop)
		<-watching
		_ = master.Close()
		_ = term.Restore(int(host.Fd()), state)
	}
	return streams, started, release, nil
}
