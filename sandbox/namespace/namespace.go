package namespace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"patio/sandbox/network"
)

// setupTimeout bounds the set-up of the namespaces. It takes 20 ms; a machine that
// swaps needs longer, and one that needs more than this can't run a sandbox.
const setupTimeout = 30 * time.Second

// Options say how a set of namespaces is made.
type Options struct {
	// Name tells these namespaces' init process from others in ps.
	Name string
	// Executable is the patio binary whose InitMain becomes process 1.
	Executable string
	UIDs, GIDs []Mapping
	// TAP names the network device to make; "" makes none.
	TAP string
	// Stderr gets what the init process and programs without a stderr of their own print.
	Stderr *os.File
	Log    *slog.Logger
}

// Namespaces is a live set of namespaces with its init process.
// Its methods may be called from several goroutines.
type Namespaces struct {
	cmd  *exec.Cmd
	conn *net.UnixConn
	tap  *os.File
	log  *slog.Logger

	sendMu sync.Mutex

	mu      sync.Mutex
	next    uint64
	waiting map[uint64]*Process
	closed  bool

	exited chan struct{} // the init process has been waited for
	once   sync.Once
	err    error
}

// Start makes the namespaces and their init process. Close ends both.
func Start(ctx context.Context, o Options) (*Namespaces, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make socket pair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "init"), os.NewFile(uintptr(pair[1]), "supervisor")
	defer func() { _ = theirs.Close() }()
	c, err := net.FileConn(ours)
	_ = ours.Close()
	if err != nil {
		return nil, fmt.Errorf("use socket pair: %w", err)
	}
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.New("use socket pair: not a unix socket"), c.Close())
	}

	cmd := exec.Command(o.Executable)
	cmd.Args = []string{initArg, o.Name}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.Dir = "/"
	cmd.Stderr = o.Stderr
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid: true,
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET |
			syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		// execve by an id that isn't 0 inside drops capabilities; ambient ones survive.
		AmbientCaps: allCapabilities(),
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(explainClone(err), conn.Close())
	}
	n := &Namespaces{cmd: cmd, conn: conn, log: o.Log, waiting: map[uint64]*Process{}, exited: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(n.exited)
	}()
	if err := n.setup(ctx, o); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	go n.read()
	return n, nil
}

func (n *Namespaces) setup(ctx context.Context, o Options) error {
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = n.conn.SetDeadline(time.Now()) })
	defer stop()
	pid := n.cmd.Process.Pid
	if err := mapIDs(ctx, pid, o.UIDs, o.GIDs); err != nil {
		return err
	}
	m := message{Op: opSetup, TAP: o.TAP}
	if o.TAP != "" && os.Geteuid() == 0 {
		// /dev/net/tun is root's alone on some machines, and id 0 inside isn't root outside:
		// root opens the device itself, in the new network namespace.
		tap, err := openTAPIn(pid, o.TAP)
		if err != nil {
			return err
		}
		n.tap, m.HasTAP = tap, true
	}
	if err := send(n.conn, m); err != nil {
		return fmt.Errorf("set namespaces up: %w", err)
	}
	reply, files, err := receive(n.conn)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		} else if errors.Is(err, io.EOF) {
			err = errors.New("the init process ended")
		}
		return fmt.Errorf("set namespaces up: %w", err)
	}
	if reply.Err != "" {
		closeAll(files)
		return fmt.Errorf("set namespaces up: %s", reply.Err)
	}
	if len(files) == 1 {
		n.tap = files[0]
	} else {
		closeAll(files)
	}
	return nil
}

// Pid is the init process's id on the host: put it in a cgroup before starting anything.
func (n *Namespaces) Pid() int { return n.cmd.Process.Pid }

// TAP returns the network device's descriptor and gives it away: the caller closes it.
func (n *Namespaces) TAP() *os.File {
	n.mu.Lock()
	defer n.mu.Unlock()
	tap := n.tap
	n.tap = nil
	return tap
}

// Exited is closed once process 1, and with it every process inside, has ended.
func (n *Namespaces) Exited() <-chan struct{} { return n.exited }

// closeTimeout bounds how long the kernel may take to kill a pid namespace: a process in
// uninterruptible sleep (a dead network file system) can hold it.
const closeTimeout = 20 * time.Second

// Close kills everything inside and waits until it is gone.
func (n *Namespaces) Close() error {
	n.once.Do(func() {
		n.mu.Lock()
		n.closed = true
		tap := n.tap
		n.tap = nil
		n.mu.Unlock()
		var errs []error
		if tap != nil {
			errs = append(errs, tap.Close())
		}
		if err := n.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			errs = append(errs, err)
		}
		timeout := time.NewTimer(closeTimeout)
		defer timeout.Stop()
		select {
		case <-n.exited:
		case <-timeout.C:
			errs = append(errs, fmt.Errorf("the sandbox's processes did not end within %v of being killed", closeTimeout))
		}
		errs = append(errs, n.conn.Close())
		n.failAll()
		n.err = errors.Join(errs...)
	})
	return n.err
}

func mapIDs(ctx context.Context, pid int, uids, gids []Mapping) error {
	if os.Geteuid() == 0 {
		for name, maps := range map[string][]Mapping{"uid_map": uids, "gid_map": gids} {
			if err := os.WriteFile(fmt.Sprintf("/proc/%d/%s", pid, name), []byte(lines(maps)), 0); err != nil {
				return fmt.Errorf("map ids: %w", err)
			}
		}
		return nil
	}
	for tool, maps := range map[string][]Mapping{"newuidmap": uids, "newgidmap": gids} {
		args := append([]string{strconv.Itoa(pid)}, strings.Fields(lines(maps))...)
		cmd := exec.CommandContext(ctx, tool, args...)
		cmd.WaitDelay = time.Second
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("map ids with %s: %w: %s", tool, err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}

// openTAPIn opens a TAP in the network namespace of pid. A thread that changed its
// namespace isn't given back to the Go runtime: it ends with its goroutine.
func openTAPIn(pid int, name string) (*os.File, error) {
	type result struct {
		f   *os.File
		err error
	}
	ch := make(chan result, 1)
	go func() {
		runtime.LockOSThread()
		f, err := func() (*os.File, error) {
			ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
			if err != nil {
				return nil, fmt.Errorf("open network namespace: %w", err)
			}
			defer func() { _ = ns.Close() }()
			if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
				return nil, fmt.Errorf("join network namespace: %w", err)
			}
			return network.OpenTAP(name)
		}()
		ch <- result{f, err}
	}()
	r := <-ch
	return r.f, r.err
}

// allCapabilities lists every capability the running kernel knows.
func allCapabilities() []uintptr {
	last := unix.CAP_LAST_CAP
	if b, err := os.ReadFile("/proc/sys/kernel/cap_last_cap"); err == nil {
		if v, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
			last = v
		}
	}
	caps := make([]uintptr, 0, last+1)
	for c := range last + 1 {
		caps = append(caps, uintptr(c))
	}
	return caps
}

// ErrForbidden means that this machine doesn't let the caller make user namespaces.
var ErrForbidden = errors.New("this machine forbids user namespaces")

func explainClone(err error) error {
	hint := ""
	switch {
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		hint = "; `patio doctor` names the setting (kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns, or a container's seccomp profile)"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EUSERS):
		hint = "; raise user.max_user_namespaces with sysctl"
	default:
		return fmt.Errorf("make namespaces: %w", err)
	}
	// Not the cause itself: ENOSPC is about namespaces here, not about a disk.
	return fmt.Errorf("make namespaces: %w: %s%s", ErrForbidden, err.Error(), hint)
}
