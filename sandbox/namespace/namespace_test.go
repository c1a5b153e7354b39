package namespace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// start makes namespaces with this test binary as their init process, or skips the test
// where the kernel forbids them.
func start(t *testing.T, change ...func(*Options)) *Namespaces {
	t.Helper()
	missing := t.Skipf
	if os.Getenv("PATIO_REQUIRE_SANDBOX") == "1" {
		missing = t.Fatalf
	}
	uids, gids, err := Subordinate(os.Geteuid())
	if err != nil {
		missing("no namespaces: %v", err)
	}
	leaks, files := goleak.IgnoreCurrent(), openFiles(t)
	executable, err := os.Executable()
	require.NoError(t, err)
	o := Options{Executable: executable, UIDs: Map(uint32(os.Geteuid()), uids), GIDs: Map(uint32(os.Getegid()), gids), Stderr: os.Stderr}
	for _, f := range change {
		f(&o)
	}
	n, err := Start(within(t), o)
	if errors.Is(err, ErrForbidden) {
		missing("no namespaces: %v", err)
	}
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, n.Close())
		goleak.VerifyNone(t, leaks)
		require.ElementsMatch(t, files, openFiles(t), "no descriptor is left open")
		require.NoFileExists(t, fmt.Sprintf("/proc/%d/stat", n.Pid()))
	})
	return n
}

// within bounds waits that only a defect makes long.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// program is a shell script that runs inside.
type program struct {
	*Process
	out chan string
}

func run(t *testing.T, n *Namespaces, script string) *program {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(t, err)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	p, err := n.Start(within(t), Command{Argv: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"}, Files: []*os.File{null, w, w}})
	require.NoError(t, null.Close())
	require.NoError(t, w.Close())
	if err != nil {
		require.NoError(t, r.Close())
	}
	require.NoError(t, err)
	out := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(r)
		_ = r.Close()
		out <- string(b)
	}()
	return &program{Process: p, out: out}
}

func (p *program) wait(t *testing.T) syscall.WaitStatus {
	t.Helper()
	status, err := p.Wait(within(t))
	require.NoError(t, err)
	return status
}

func TestInside(t *testing.T) {
	n := start(t)
	p := run(t, n, `echo "$(id -u):$(id -g):$(hostname):$(pwd):$$"; cat /proc/1/comm; wc -l < /proc/net/dev; readlink /proc/self/ns/user; env | grep -c .; cat /proc/self/uid_map`)
	require.Equal(t, 0, p.wait(t).ExitStatus())
	lines := strings.Split(<-p.out, "\n")
	require.True(t, strings.HasPrefix(lines[0], "0:0:sandbox:/:"), lines[0])
	pid, err := strconv.Atoi(lines[0][strings.LastIndexByte(lines[0], ':')+1:])
	require.NoError(t, err)
	require.Less(t, pid, 100, "a pid namespace of its own")
	require.Equal(t, "3", strings.TrimSpace(lines[2]), "two lines of heading and the loopback")
	outside, err := os.Readlink("/proc/self/ns/user")
	require.NoError(t, err)
	require.NotEqual(t, outside, lines[3])
	require.Contains(t, strings.Join(lines, "\n"), fmt.Sprintf("1000 %10d          1", os.Geteuid()))
	for _, ns := range []string{"pid", "net", "mnt", "ipc", "uts"} {
		ours, err := os.Readlink("/proc/self/ns/" + ns)
		require.NoError(t, err)
		p := run(t, n, "readlink /proc/self/ns/"+ns)
		p.wait(t)
		require.NotEqual(t, ours, strings.TrimSpace(<-p.out))
	}
}

func TestExitStatus(t *testing.T) {
	n := start(t)
	require.Equal(t, 0, run(t, n, "exit 0").wait(t).ExitStatus())
	require.Equal(t, 7, run(t, n, "exit 7").wait(t).ExitStatus())
	status := run(t, n, "kill -9 $$").wait(t)
	require.True(t, status.Signaled())
	require.Equal(t, syscall.SIGKILL, status.Signal())

	p := run(t, n, "exec sleep 1000")
	require.NoError(t, p.Signal(syscall.SIGTERM))
	require.Equal(t, syscall.SIGTERM, p.wait(t).Signal())
	require.NoError(t, p.Signal(syscall.SIGKILL), "after its end nothing happens")
	<-p.Done()
}

func TestStartFails(t *testing.T) {
	n := start(t)
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer func() { require.NoError(t, null.Close()) }()
	three := []*os.File{null, null, null}
	for name, tc := range map[string]struct {
		c    Command
		want string
	}{
		"no such program":   {Command{Argv: []string{"/no/such/program"}, Files: three}, "no such file"},
		"no program":        {Command{Argv: []string{"/"}, Files: three}, "permission denied"},
		"no such directory": {Command{Argv: []string{"/bin/sh"}, Dir: "/no/such/dir", Files: three}, "no such file"},
		"few descriptors":   {Command{Argv: []string{"/bin/sh"}, Files: three[:2]}, "three descriptors"},
		"too long":          {Command{Argv: []string{"/bin/sh", strings.Repeat("x", maxMessage)}, Files: three}, "too long"},
	} {
		_, err := n.Start(within(t), tc.c)
		require.ErrorContains(t, err, tc.want, name)
		require.ErrorContains(t, err, "start "+tc.c.Argv[0], name)
	}
	require.Equal(t, 0, run(t, n, "exit 0").wait(t).ExitStatus(), "the next one works")
	n.mu.Lock()
	defer n.mu.Unlock()
	require.Empty(t, n.waiting)
}

func TestManyAtOnce(t *testing.T) {
	n := start(t)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, null.Close()) }()
	ctx := within(t)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 12 {
				want := (i*12 + j) % 200
				// Some of them leave orphans behind, for process 1 to reap.
				p, err := n.Start(ctx, Command{Argv: []string{"/bin/sh", "-c", fmt.Sprintf("(true &) ; exit %d", want)}, Files: []*os.File{null, null, null}})
				if err != nil {
					t.Errorf("start: %v", err)
					return
				}
				status, err := p.Wait(ctx)
				if err != nil || status.ExitStatus() != want {
					t.Errorf("program %d/%d ended with %d, %v", i, j, status.ExitStatus(), err)
				}
			}
		})
	}
	wg.Wait()
}

func TestAdopt(t *testing.T) {
	n := start(t)
	t.Run("one that runs", func(t *testing.T) {
		p := run(t, n, `sleep 1000 >/dev/null 2>&1 & echo $!`)
		p.wait(t)
		pid, err := strconv.Atoi(strings.TrimSpace(<-p.out))
		require.NoError(t, err)
		orphan, err := n.Adopt(pid)
		require.NoError(t, err)
		select {
		case <-orphan.Done():
			t.Fatal("it runs")
		case <-time.After(20 * time.Millisecond):
		}
		require.NoError(t, orphan.Signal(syscall.SIGTERM))
		status, err := orphan.Wait(within(t))
		require.NoError(t, err)
		require.Equal(t, syscall.SIGTERM, status.Signal())
	})
	t.Run("one that has ended", func(t *testing.T) {
		p := run(t, n, `sh -c 'sleep 0.1; exit 9' >/dev/null 2>&1 & echo $!`)
		p.wait(t)
		pid, err := strconv.Atoi(strings.TrimSpace(<-p.out))
		require.NoError(t, err)
		require.Eventually(t, func() bool { return len(insiders(t, n)) == 1 }, 20*time.Second, 5*time.Millisecond)
		orphan, err := n.Adopt(pid)
		require.NoError(t, err)
		status, err := orphan.Wait(within(t))
		require.NoError(t, err)
		require.Equal(t, 9, status.ExitStatus())
	})
	t.Run("one that there isn't", func(t *testing.T) {
		orphan, err := n.Adopt(4000000)
		require.NoError(t, err)
		_, err = orphan.Wait(within(t))
		require.ErrorContains(t, err, "no such process")
	})
}

func TestCloseKillsEverything(t *testing.T) {
	n := start(t)
	p := run(t, n, `trap '' TERM HUP INT; echo up; for i in 1 2 3; do (trap '' TERM; sleep 1000) & done; wait`)
	pids := insiders(t, n)
	require.Eventually(t, func() bool { pids = insiders(t, n); return len(pids) >= 5 }, 20*time.Second, 5*time.Millisecond)
	require.NoError(t, p.Signal(syscall.SIGTERM))
	require.NoError(t, n.Close())
	require.NoError(t, n.Close(), "a second time is nothing")
	<-n.Exited()
	require.Equal(t, "up\n", <-p.out)
	_, err := p.Wait(within(t))
	require.ErrorIs(t, err, ErrClosed)
	for _, pid := range pids {
		require.NoFileExists(t, fmt.Sprintf("/proc/%d/stat", pid))
	}
	_, err = n.Start(within(t), Command{Argv: []string{"/bin/sh"}})
	require.ErrorIs(t, err, ErrClosed)
	_, err = n.Adopt(1)
	require.ErrorIs(t, err, ErrClosed)
}

// insiders are the host's ids of the processes inside: init and all that descends from it.
func insiders(t *testing.T, n *Namespaces) []int {
	t.Helper()
	want, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", n.Pid()))
	require.NoError(t, err)
	procs, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	var pids []int
	for _, p := range procs {
		if ns, err := os.Readlink(p + "/ns/pid"); err == nil && ns == want {
			pid, err := strconv.Atoi(filepath.Base(p))
			require.NoError(t, err)
			pids = append(pids, pid)
		}
	}
	return pids
}

// A supervisor that was killed can't close anything: its end of the socket closes by itself.
func TestTheSupervisorsDeathKillsEverything(t *testing.T) {
	n := start(t)
	run(t, n, `trap '' TERM HUP; sleep 1000`)
	require.Eventually(t, func() bool { return len(insiders(t, n)) >= 3 }, 20*time.Second, 5*time.Millisecond)
	require.NoError(t, n.conn.CloseWrite())
	require.NoError(t, n.conn.CloseRead())
	select {
	case <-n.Exited():
	case <-time.After(20 * time.Second):
		t.Fatal("process 1 lives on without a supervisor")
	}
	_, err := n.Start(within(t), Command{Argv: []string{"/bin/sh"}, Files: nil})
	require.ErrorIs(t, err, ErrClosed)
}

// Programs start with no signal ignored, whatever the supervisor ignores.
func TestNoSignalIsIgnoredInside(t *testing.T) {
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	defer signal.Reset(syscall.SIGHUP, syscall.SIGPIPE)
	n := start(t)
	p := run(t, n, "grep SigIgn /proc/self/status")
	p.wait(t)
	mask, err := strconv.ParseUint(strings.TrimSpace(strings.TrimPrefix(<-p.out, "SigIgn:")), 16, 64)
	require.NoError(t, err)
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE, syscall.SIGTERM} {
		// Others are what the test itself was started with.
		require.Zero(t, mask&(1<<(sig-1)), sig)
	}
}

// Signals that are meant for a whole process tree don't end the init process.
func TestInitIgnoresSignals(t *testing.T) {
	n := start(t)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE} {
		require.NoError(t, syscall.Kill(n.Pid(), sig))
	}
	require.Equal(t, 0, run(t, n, "exit 0").wait(t).ExitStatus())
}

func TestInitKilled(t *testing.T) {
	n := start(t)
	p := run(t, n, "exec sleep 1000")
	require.NoError(t, syscall.Kill(n.Pid(), syscall.SIGKILL))
	_, err := p.Wait(within(t))
	require.ErrorIs(t, err, ErrClosed)
	<-n.Exited()
}

func TestTAP(t *testing.T) {
	if f, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0); err != nil {
		t.Skipf("no TAP: %v", err)
	} else {
		require.NoError(t, f.Close())
	}
	n := start(t, func(o *Options) { o.TAP = "eth0" })
	p := run(t, n, "grep -c eth0 /proc/net/dev")
	p.wait(t)
	require.Equal(t, "1\n", <-p.out)
	tap := n.TAP()
	require.NotNil(t, tap)
	require.Nil(t, n.TAP(), "it is given away once")
	require.NoError(t, tap.Close())
	devices, err := os.ReadFile("/proc/net/dev")
	require.NoError(t, err)
	own := start(t, func(o *Options) { o.TAP = "patiotest0" }) // closed by Close when nobody took it
	require.NotContains(t, string(devices), "patiotest0")
	_ = own
}

func TestStartErrors(t *testing.T) {
	leaks, files := goleak.IgnoreCurrent(), openFiles(t)
	_, err := Start(t.Context(), Options{Executable: "/no/such/program"})
	require.ErrorContains(t, err, "make namespaces")
	// A program that isn't an init process of ours.
	_, err = Start(t.Context(), Options{Executable: "/bin/true"})
	require.Error(t, err)
	if os.Geteuid() == 0 {
		executable, exeErr := os.Executable()
		require.NoError(t, exeErr)
		// Ids that overlap: the kernel refuses, and nothing is left.
		bad := []Mapping{{0, 0, 10}, {5, 100, 10}}
		_, err = Start(t.Context(), Options{Executable: executable, UIDs: bad, GIDs: bad})
		require.ErrorContains(t, err, "map ids")
	}
	goleak.VerifyNone(t, leaks)
	require.ElementsMatch(t, files, openFiles(t))
}

func TestExplainClone(t *testing.T) {
	for cause, hint := range map[error]string{
		syscall.EPERM: "patio doctor", syscall.EACCES: "patio doctor", syscall.ENOSPC: "max_user_namespaces", syscall.EUSERS: "max_user_namespaces",
	} {
		err := explainClone(cause)
		require.ErrorIs(t, err, ErrForbidden)
		require.ErrorContains(t, err, hint)
		require.ErrorContains(t, err, cause.Error())
		require.NotErrorIs(t, err, syscall.ENOSPC, "this is no full disk")
	}
	require.NotErrorIs(t, explainClone(syscall.ENOMEM), ErrForbidden)
	require.ErrorIs(t, explainClone(syscall.ENOMEM), syscall.ENOMEM)
}
