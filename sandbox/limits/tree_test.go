package limits

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeProc writes processes as /proc shows them.
type fakeProc struct {
	t   *testing.T
	dir string
}

func newFakeProc(t *testing.T) *fakeProc {
	t.Helper()
	return &fakeProc{t: t, dir: t.TempDir()}
}

type fakeProcess struct {
	pid, parent            int
	name                   string
	state                  string
	argv                   []string
	ticks, started         int
	threads, pages, shared int
	files                  int
}

func (f *fakeProc) put(p fakeProcess) {
	f.t.Helper()
	dir := filepath.Join(f.dir, fmt.Sprint(p.pid))
	require.NoError(f.t, os.RemoveAll(dir))
	require.NoError(f.t, os.MkdirAll(filepath.Join(dir, "fd"), 0o755))
	if p.state == "" {
		p.state = "S"
	}
	write := func(name, data string) {
		require.NoError(f.t, os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600))
	}
	write("stat", fmt.Sprintf("%d (%s) %s %d 1 1 0 -1 4194304 1 0 0 0 %d 0 0 0 20 0 %d 0 %d 1000 10 0\n",
		p.pid, p.name, p.state, p.parent, p.ticks, p.threads, p.started))
	write("statm", fmt.Sprintf("9999 %d %d 1 0 1 0\n", p.pages, p.shared))
	write("cmdline", strings.Join(p.argv, "\x00")+"\x00")
	for i := range p.files {
		write(filepath.Join("fd", fmt.Sprint(i)), "")
	}
}

func session(t *testing.T) *fakeProc {
	f := newFakeProc(t)
	f.put(fakeProcess{pid: 1, name: "init", argv: []string{"init"}, threads: 1, pages: 1000})
	f.put(fakeProcess{pid: 10, parent: 1, name: "patio", argv: []string{"/usr/bin/patio", "supervise"}, ticks: 5, threads: 9, pages: 30, shared: 10, files: 3})
	f.put(fakeProcess{pid: 11, parent: 10, name: "exe", argv: []string{"runsc", "run", "x"}, threads: 4, pages: 20, shared: 10, files: 2})
	f.put(fakeProcess{pid: 12, parent: 11, name: "exe", argv: []string{"runsc-gofer", "--root=/x"}, ticks: 7, threads: 5, pages: 20, shared: 10, files: 4})
	f.put(fakeProcess{pid: 13, parent: 11, name: "exe", argv: []string{"runsc-sandbox", "boot"}, ticks: 100, threads: 20, pages: 200, shared: 150, files: 40})
	f.put(fakeProcess{pid: 14, parent: 13, name: "exe", argv: []string{"runsc-sandbox", "boot"}, ticks: 50, threads: 1, pages: 120, shared: 119, files: 40})
	f.put(fakeProcess{pid: 15, parent: 14, name: "odd) S (name", threads: 1, pages: 60, shared: 60})
	f.put(fakeProcess{pid: 16, parent: 10, name: "sh", argv: []string{"sh"}, threads: 1, pages: 1, shared: 1})
	f.put(fakeProcess{pid: 17, parent: 10, name: "dead", state: "Z", threads: 1})
	f.put(fakeProcess{pid: 20, parent: 1, name: "other", argv: []string{"runsc-sandbox"}, threads: 3, pages: 500})
	require.NoError(t, os.WriteFile(filepath.Join(f.dir, "meminfo"), nil, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(f.dir, "99"), 0o755)) // ended between readdir and open
	return f
}

func TestSampleTree(t *testing.T) {
	usage, err := SampleTree(session(t).dir, 10)
	require.NoError(t, err)
	roles := make(map[int]Role)
	for _, p := range usage.Processes {
		roles[p.PID] = p.Role
	}
	require.Equal(t, map[int]Role{
		10: RoleSupervisor, 11: RoleRunsc, 12: RoleGofer, 13: RoleSentry, 14: RoleStub, 15: RoleStub, 16: RoleOther,
	}, roles)
	page := int64(os.Getpagesize())
	// Private pages of all, and of the shared ones the largest view: not the sum, which counts the sandbox's memory
	// once per stub.
	require.Equal(t, (20+10+10+50+1+0+0+150)*page, usage.Memory)
	require.Zero(t, usage.Sandboxed)
	require.Equal(t, 1620*time.Millisecond, usage.CPU)
	require.Equal(t, 41, usage.Threads)
	require.Equal(t, 49, usage.Files)
	require.Equal(t, RoleUsage{Processes: 2, Resident: 180 * page, Private: page, CPU: 500 * time.Millisecond, Threads: 2}, usage.Roles[RoleStub])
	require.Equal(t, "odd) S (name", usage.Processes[len(usage.Processes)-1].Name)

	_, err = SampleTree(session(t).dir, 4711)
	require.ErrorIs(t, err, os.ErrProcessDone)
	_, err = SampleTree(session(t).dir, 17)
	require.ErrorIs(t, err, os.ErrProcessDone, "a zombie has ended")
	_, err = SampleTree(filepath.Join(t.TempDir(), "missing"), 1)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestSampleTreeOfCircle(t *testing.T) {
	f := newFakeProc(t)
	f.put(fakeProcess{pid: 10, parent: 11, name: "a"})
	f.put(fakeProcess{pid: 11, parent: 10, name: "b"})
	usage, err := SampleTree(f.dir, 10)
	require.NoError(t, err)
	require.Len(t, usage.Processes, 2)
}

func TestSampler(t *testing.T) {
	f := session(t)
	now := time.Now()
	s := NewSampler(f.dir, 10, func() time.Time { return now })
	last, _ := s.Last()
	require.True(t, last.Time.IsZero())

	usage, rates, err := s.Sample()
	require.NoError(t, err)
	require.Zero(t, rates.Interval)
	require.Equal(t, now, usage.Time)

	// In two seconds: the sentry used one, a stub ended, another took its pid and used half a second.
	now = now.Add(2 * time.Second)
	page := os.Getpagesize()
	f.put(fakeProcess{pid: 13, parent: 11, name: "exe", argv: []string{"runsc-sandbox", "boot"}, ticks: 200, threads: 20, pages: 300, shared: 150})
	f.put(fakeProcess{pid: 14, parent: 13, name: "exe", ticks: 50, started: 777, threads: 1, pages: 120, shared: 119})
	_, rates, err = s.Sample()
	require.NoError(t, err)
	require.Equal(t, 2*time.Second, rates.Interval)
	require.InDelta(t, 0.75, rates.CPU, 1e-9)
	require.InDelta(t, 0.5, rates.Roles[RoleSentry], 1e-9)
	require.InDelta(t, 0.25, rates.Roles[RoleStub], 1e-9)
	require.InDelta(t, float64(100*page)/2, rates.Memory, 1e-9)
	_, kept := s.Last()
	require.Equal(t, rates, kept)

	// A process that ends takes its time out of the sums, never into the negative.
	now = now.Add(time.Second)
	require.NoError(t, os.RemoveAll(filepath.Join(f.dir, "13")))
	_, rates, err = s.Sample()
	require.NoError(t, err)
	require.Zero(t, rates.CPU)
	require.NoError(t, os.RemoveAll(filepath.Join(f.dir, "10")))
	_, _, err = s.Sample()
	require.ErrorIs(t, err, os.ErrProcessDone)
}

func TestSampleRealTree(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "sleep 100 & sleep 100 & echo ready; wait")
	// The children are in the shell's process group and end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)

	s := NewSampler("", cmd.Process.Pid, nil)
	require.Eventually(t, func() bool {
		usage, _, err := s.Sample()
		require.NoError(t, err)
		sleeps := 0
		for _, p := range usage.Processes {
			if p.Name == "sleep" {
				sleeps++
				require.Equal(t, cmd.Process.Pid, p.Parent)
				require.Equal(t, RoleOther, p.Role)
			}
		}
		return sleeps == 2
	}, 10*time.Second, 5*time.Millisecond)
	usage, _ := s.Last()
	require.Equal(t, 3, usage.Roles[RoleOther].Processes)
	require.Equal(t, 3, usage.Threads)
	require.Positive(t, usage.Memory)
	require.GreaterOrEqual(t, usage.Files, 3)
	require.Less(t, usage.Memory, usage.Roles[RoleOther].Resident, "the C library is shared")

	cancel()
	require.Error(t, cmd.Wait())
	_, _, err = s.Sample()
	require.ErrorIs(t, err, os.ErrProcessDone)
}

func BenchmarkSample(b *testing.B) {
	s := NewSampler("", os.Getpid(), nil)
	for b.Loop() {
		if _, _, err := s.Sample(); err != nil {
			b.Fatal(err)
		}
	}
}
