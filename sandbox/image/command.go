package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// stopGrace is how long a tool may clean up after SIGTERM: mmdebstrap removes a tree of some hundred MB.
	stopGrace = 30 * time.Second
	// stopInterval is how long a tool has before it is asked again.
	stopInterval = time.Second
	// tailLines of output go into an error: enough to see apt's or npm's reason.
	tailLines = 12
)

// command is one run of a host tool.
type command struct {
	path string
	args []string
	dir  string
	// env nil means this process's.
	env   []string
	stdin *os.File
	// stdout nil sends it to onLine, together with stderr.
	stdout io.Writer
	// stop asks the tool's process group to end; 0 means SIGTERM.
	stop syscall.Signal
	// onLine, which may be nil, is called for each line of output, one at a time. A carriage return ends a line too.
	onLine func(string)
}

// run runs the tool in its own process group, so that an interrupt at the terminal reaches only this program, which
// then ends the tool in order. The error has the last lines of output.
func (c command) run(ctx context.Context) error {
	name := filepath.Base(c.path)
	lines := &lineWriter{onLine: c.onLine}
	cmd := exec.CommandContext(ctx, c.path, c.args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	cmd.Stderr = lines
	if c.stdin != nil {
		cmd.Stdin = c.stdin
	}
	if c.stdout != nil {
		cmd.Stdout = c.stdout
	} else {
		cmd.Stdout = lines
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stop := c.stop
	if stop == 0 {
		stop = syscall.SIGTERM
	}
	ended := make(chan struct{})
	var stopping sync.WaitGroup
	cmd.Cancel = func() error {
		stopping.Go(func() { repeatSignal(cmd.Process.Pid, stop, ended) })
		return nil
	}
	cmd.WaitDelay = stopGrace
	err := cmd.Run()
	close(ended)
	stopping.Wait()
	if ctx.Err() != nil {
		if cmd.Process != nil {
			// Children that ignored the request: the group's id stays taken as long as one is left.
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
		return fmt.Errorf("%s: %w", name, context.Cause(ctx))
	}
	if err == nil {
		return nil
	}
	lines.flush()
	if tail := strings.Join(lines.tail, "\n  "); tail != "" {
		return fmt.Errorf("%s: %w; its last output:\n  %s", name, err, tail)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// repeatSignal sends a signal to a process group until ended is closed. Once is not enough: mmdebstrap's processes pass
// through moments in which they ignore it, and then work on to the end.
func repeatSignal(group int, signal syscall.Signal, ended <-chan struct{}) {
	again := time.NewTicker(stopInterval)
	defer again.Stop()
	for {
		_ = syscall.Kill(-group, signal)
		select {
		case <-ended:
			return
		case <-again.C:
		}
	}
}

// output runs the tool and returns its stdout.
func (c command) output(ctx context.Context) ([]byte, error) {
	var out bytes.Buffer
	c.stdout = &out
	err := c.run(ctx)
	return out.Bytes(), err
}

// lineWriter cuts what is written to it into lines and remembers the last ones.
type lineWriter struct {
	onLine  func(string)
	partial []byte
	tail    []string
}

// maxLine bounds what is kept of a line without an end.
const maxLine = 1 << 20

func (w *lineWriter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		i := bytes.IndexAny(rest, "\r\n")
		if i < 0 {
			if len(w.partial)+len(rest) <= maxLine {
				w.partial = append(w.partial, rest...)
			}
			break
		}
		w.emit(string(w.partial) + string(rest[:i]))
		w.partial = w.partial[:0]
		rest = rest[i+1:]
	}
	return len(p), nil
}

func (w *lineWriter) flush() {
	if len(w.partial) > 0 {
		w.emit(string(w.partial))
		w.partial = nil
	}
}

func (w *lineWriter) emit(line string) {
	// Some tools rewrite their line on a terminal with this sequence and don't look whether it is one.
	line = strings.TrimSpace(strings.ReplaceAll(line, "\x1b[K", ""))
	if line == "" {
		return
	}
	w.tail = append(w.tail, line)
	if len(w.tail) > tailLines {
		w.tail = w.tail[1:]
	}
	if w.onLine != nil {
		w.onLine(line)
	}
}

// errNotFound is what findTool returns for a program that is not installed.
var errNotFound = errors.New("not installed")

// findTool looks in PATH and then in the administrator's folders, which an ordinary user's PATH lacks on Debian.
func findTool(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return filepath.Abs(path)
	}
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, errNotFound)
}
