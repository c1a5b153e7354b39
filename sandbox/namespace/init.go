package namespace

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"patio/sandbox/network"
)

// initArg is argv[0] of the init process: a name that says in ps what it is, and that
// nobody types.
const initArg = "patio-namespace-init"

// initSocket is the descriptor on which the init process finds its socket.
const initSocket = 3

// IsInit reports whether this process was started as a namespace's init process.
// It must be asked before anything else looks at the command line.
func IsInit() bool { return len(os.Args) > 0 && os.Args[0] == initArg }

// InitMain is the whole life of the init process; it returns its exit code.
func InitMain() int {
	// Programs that kill a caller's whole process tree signal this process too. It ends
	// when the supervisor does, not before: the sandbox's end must be an orderly one.
	// Caught, not ignored: what is ignored stays so in every program that is started.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGPIPE, syscall.SIGTTOU, syscall.SIGTTIN)
	syscall.CloseOnExec(initSocket)
	f := os.NewFile(initSocket, "supervisor")
	c, err := net.FileConn(f)
	_ = f.Close()
	if err != nil {
		return 1
	}
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return 1
	}
	in := &initProcess{conn: conn, watched: map[int]uint64{}, started: map[uint64]int{}, done: map[int]int{}}
	if err := in.run(); err != nil {
		_ = in.reply(message{Op: opReady, Err: err.Error()})
		return 1
	}
	return 0
}

type initProcess struct {
	conn *net.UnixConn

	sendMu sync.Mutex

	mu      sync.Mutex
	watched map[int]uint64 // pid → request that wants its exit
	started map[uint64]int // request → pid, while it runs
	done    map[int]int    // pid → wait status, reaped before anybody adopted it
}

func (in *initProcess) reply(m message, files ...*os.File) error {
	in.sendMu.Lock()
	defer in.sendMu.Unlock()
	return send(in.conn, m, files...)
}

func (in *initProcess) run() error {
	m, files, err := receive(in.conn)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	closeAll(files)
	if m.Op != opSetup {
		return fmt.Errorf("expected %q first, not %q", opSetup, m.Op)
	}
	tap, err := setup(m)
	if err != nil {
		return err
	}
	// Children must be reaped from the first one on.
	chld := make(chan os.Signal, 1)
	signal.Notify(chld, syscall.SIGCHLD)
	go in.reap(chld)

	ready := message{Op: opReady}
	if tap != nil {
		err = in.reply(ready, tap)
		err = errors.Join(err, tap.Close())
	} else {
		err = in.reply(ready)
	}
	if err != nil {
		return err
	}
	for {
		m, files, err := receive(in.conn)
		if err != nil {
			// EOF: the supervisor is gone, and so is the reason to live. Returning ends
			// process 1, and the kernel ends the rest of the pid namespace with it.
			return nil
		}
		in.handle(m, files)
		closeAll(files)
	}
}

// setup runs once the ids are mapped. The process still has its creator's id, which is
// SandboxID now, and every capability of the new user namespace, kept through execve in
// the ambient set.
func setup(m message) (*os.File, error) {
	if err := syscall.Setgroups(nil); err != nil {
		return nil, fmt.Errorf("drop supplementary groups: %w", err)
	}
	if err := syscall.Setresgid(0, 0, 0); err != nil {
		return nil, fmt.Errorf("become group 0 of the namespace: %w", err)
	}
	if err := syscall.Setresuid(0, 0, 0); err != nil {
		return nil, fmt.Errorf("become user 0 of the namespace: %w", err)
	}
	// Changing ids makes a process undumpable, and its /proc/self then belongs to the
	// host's root, out of reach for runsc.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("make /proc/self readable: %w", err)
	}
	// The ambient capabilities stay: children are id 0 of this namespace and have them all
	// anyway, and runsc drops what its parts don't need, which lowers the ambient set too.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return nil, fmt.Errorf("mount /proc for the new pid namespace (a container that masks parts of /proc forbids this): %w", err)
	}
	if err := unix.Sethostname([]byte("sandbox")); err != nil {
		return nil, fmt.Errorf("set host name: %w", err)
	}
	if m.TAP == "" {
		return nil, nil
	}
	var tap *os.File
	if !m.HasTAP {
		var err error
		if tap, err = network.OpenTAP(m.TAP); err != nil {
			return nil, err
		}
	}
	if err := network.Configure(m.TAP, network.DefaultMTU); err != nil {
		return nil, err
	}
	return tap, nil
}

func (in *initProcess) handle(m message, files []*os.File) {
	switch m.Op {
	case opStart:
		in.start(m, files)
	case opAdopt:
		in.adopt(m.ID, m.PID)
	case opSignal:
		// Under the lock: a process that is reaped meanwhile gives its id to another.
		in.mu.Lock()
		if pid, ok := in.started[m.ID]; ok {
			_ = syscall.Kill(pid, syscall.Signal(m.Signal))
		}
		in.mu.Unlock()
	}
}

func (in *initProcess) start(m message, files []*os.File) {
	if len(m.Argv) == 0 || len(files) < 3 {
		_ = in.reply(message{Op: opExited, ID: m.ID, Err: "start needs an argv and three descriptors"})
		return
	}
	attr := &os.ProcAttr{Dir: m.Dir, Env: m.Env, Files: files, Sys: &syscall.SysProcAttr{Setsid: true}}
	if m.TTY {
		attr.Sys.Setctty = true
	}
	// Nobody is reaped meanwhile: the exit of this process can't be taken for that of an
	// earlier one with the same id.
	in.mu.Lock()
	p, err := os.StartProcess(m.Argv[0], m.Argv, attr)
	if err != nil {
		in.mu.Unlock()
		_ = in.reply(message{Op: opExited, ID: m.ID, Err: err.Error()})
		return
	}
	pid := p.Pid
	_ = p.Release()
	delete(in.done, pid)
	in.watched[pid], in.started[m.ID] = m.ID, pid
	in.mu.Unlock()
	_ = in.reply(message{Op: opStart, ID: m.ID, PID: pid})
}

// adopt reports the exit of pid to request id, also one that was reaped already.
func (in *initProcess) adopt(id uint64, pid int) {
	answer := message{Op: opExited, ID: id}
	in.mu.Lock()
	status, gone := in.done[pid]
	switch {
	case gone:
		delete(in.done, pid)
		answer.Status = status
	case errors.Is(syscall.Kill(pid, 0), syscall.ESRCH):
		// Its end was another's to see: nobody here will.
		gone, answer.Err = true, "no such process"
	default:
		in.watched[pid], in.started[id] = id, pid
	}
	in.mu.Unlock()
	if gone {
		_ = in.reply(answer)
	}
}

// maxUnclaimed bounds the statuses kept for processes that nobody asked for: runsc's
// short-lived helpers. A status is asked for right after the process is known.
const maxUnclaimed = 4096

// reap waits for every child, those that runsc leaves behind included.
func (in *initProcess) reap(chld <-chan os.Signal) {
	for range chld {
		for in.reapOne() {
		}
	}
}

// reapOne waits for one child that has ended, and says whether there was one.
func (in *initProcess) reapOne() bool {
	var ws syscall.WaitStatus
	in.mu.Lock()
	pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
	if err != nil || pid <= 0 {
		in.mu.Unlock()
		return errors.Is(err, syscall.EINTR)
	}
	id, ok := in.watched[pid]
	if ok {
		delete(in.watched, pid)
		delete(in.started, id)
	} else {
		if len(in.done) >= maxUnclaimed {
			clear(in.done)
		}
		in.done[pid] = int(ws)
	}
	in.mu.Unlock()
	if ok {
		_ = in.reply(message{Op: opExited, ID: id, Status: int(ws)})
	}
	return true
}
