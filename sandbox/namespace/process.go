package namespace

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// ErrClosed means that the namespaces are gone, and every process in them.
var ErrClosed = errors.New("the sandbox's namespaces are gone")

// Command is a program to start inside. Its descriptors are duplicated: the caller
// closes its own.
type Command struct {
	Argv  []string // Argv[0] is an absolute path on the host
	Env   []string
	Dir   string // "" is /
	Files []*os.File
	// TTY makes descriptor 0 the program's controlling terminal.
	TTY bool
}

// Process is a program that runs, or ran, inside.
type Process struct {
	n    *Namespaces
	id   uint64
	pid  chan int // buffered, one value or closed
	done chan struct{}

	// Set before done is closed.
	status syscall.WaitStatus
	err    error
}

// Start starts a program inside and returns its process. Files must hold at least
// descriptors 0, 1 and 2.
func (n *Namespaces) Start(ctx context.Context, c Command) (*Process, error) {
	dir := c.Dir
	if dir == "" {
		dir = "/"
	}
	p, err := n.request(message{Op: opStart, Argv: c.Argv, Env: c.Env, Dir: dir, TTY: c.TTY}, c.Files...)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Argv[0], err)
	}
	select {
	case <-p.pid:
		return p, nil
	case <-p.done:
		if p.err != nil {
			return nil, fmt.Errorf("start %s: %w", c.Argv[0], p.err)
		}
		return p, nil
	case <-ctx.Done():
		_ = p.Signal(syscall.SIGKILL)
		return nil, ctx.Err()
	}
}

// Adopt returns the process of that id inside, one that a program left behind, such as
// the sandbox that `runsc run --detach` starts.
func (n *Namespaces) Adopt(pid int) (*Process, error) {
	return n.request(message{Op: opAdopt, PID: pid})
}

func (n *Namespaces) request(m message, files ...*os.File) (*Process, error) {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil, ErrClosed
	}
	n.next++
	m.ID = n.next
	p := &Process{n: n, id: m.ID, pid: make(chan int, 1), done: make(chan struct{})}
	n.waiting[m.ID] = p
	n.mu.Unlock()
	if err := n.send(m, files...); err != nil {
		n.mu.Lock()
		delete(n.waiting, m.ID)
		n.mu.Unlock()
		if errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed) {
			err = ErrClosed
		}
		return nil, err
	}
	return p, nil
}

func (n *Namespaces) send(m message, files ...*os.File) error {
	n.sendMu.Lock()
	defer n.sendMu.Unlock()
	return send(n.conn, m, files...)
}

// read dispatches what the init process says, until it is gone.
func (n *Namespaces) read() {
	for {
		m, files, err := receive(n.conn)
		closeAll(files)
		if err != nil {
			n.failAll()
			return
		}
		n.mu.Lock()
		p := n.waiting[m.ID]
		if p != nil && m.Op == opExited {
			delete(n.waiting, m.ID)
		}
		n.mu.Unlock()
		switch {
		case p == nil:
		case m.Op == opStart:
			p.pid <- m.PID
		case m.Op == opExited:
			if m.Err != "" {
				p.err = errors.New(m.Err)
			}
			p.status = syscall.WaitStatus(m.Status)
			close(p.done)
		}
	}
}

// failAll ends every wait: without an init process nothing inside is alive.
func (n *Namespaces) failAll() {
	n.mu.Lock()
	n.closed = true
	waiting := n.waiting
	n.waiting = map[uint64]*Process{}
	n.mu.Unlock()
	for _, p := range waiting {
		p.err = ErrClosed
		close(p.done)
	}
}

// Wait returns the exit status. It fails with ErrClosed when the namespaces went first.
func (p *Process) Wait(ctx context.Context) (syscall.WaitStatus, error) {
	select {
	case <-p.done:
		return p.status, p.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal sends a signal; to a process that has ended it does nothing.
func (p *Process) Signal(sig syscall.Signal) error {
	return p.n.send(message{Op: opSignal, ID: p.id, Signal: int(sig)})
}
