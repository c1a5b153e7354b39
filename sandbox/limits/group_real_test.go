package limits

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// openReal makes a cgroup on this machine and checks at the end of the test that nothing of it is left. It skips, with the
// reason, when this machine or user can't enforce the named limits.
func openReal(t *testing.T, l Limits, needed ...string) (*Group, Report) {
	t.Helper()
	name := fmt.Sprintf("test-%d-%d", os.Getpid(), time.Now().UnixNano())
	group, report, err := Open(t.Context(), Options{Name: name, Limits: l, CPUs: 1, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if len(report.Paths) > 0 {
			require.NoError(t, group.Kill(ctx))
		}
		require.NoError(t, group.CloseContext(ctx))
		require.NoError(t, group.Close(), "a second close")
		for _, path := range report.Paths {
			require.NoDirExists(t, path)
		}
	})
	for _, limit := range needed {
		entry, found := report.Entry(limit)
		require.True(t, found, limit)
		if !entry.Enforced {
			t.Skipf("%s can't be enforced here: %s", limit, entry.Why)
		}
	}
	return group, report
}

func TestRealReport(t *testing.T) {
	group, report := openReal(t, Limits{Memory: 256 * mib, MemoryHeadroom: 64 * mib, Pids: 50, CPUs: 0.5}, nameMemory, nameHostPids, nameCPUs)
	for limit, effective := range map[string]string{nameMemory: "320M", nameHostPids: "662", nameCPUs: "0.5"} {
		entry, _ := report.Entry(limit)
		require.Equal(t, effective, entry.Effective, limit)
		require.Equal(t, entry.Requested, entry.Effective, limit)
		require.Contains(t, entry.By, "cgroup v", limit)
	}
	usage, err := group.Stats()
	require.NoError(t, err)
	require.Equal(t, 320*mib, usage.MemoryLimit)
	require.EqualValues(t, 662, usage.PidsLimit)
	require.InDelta(t, 0.5, usage.CPULimit, 0.001)
	pids, err := group.Processes()
	require.NoError(t, err)
	require.Empty(t, pids)
}

func TestRealMemoryLimitKills(t *testing.T) {
	group, report := openReal(t, Limits{Memory: 48 * mib}, nameMemory)
	c := startChild(t, "allocate 200")
	require.NoError(t, group.Add(c.cmd.Process.Pid))
	c.goOn(t)
	status := c.wait()
	require.True(t, status.Signaled(), "the child allocated more than its limit and ended with %v", status)
	require.Equal(t, syscall.SIGKILL, status.Signal())
	usage, err := group.Stats()
	require.NoError(t, err)
	require.Positive(t, usage.OOMKills)
	if strings.HasPrefix(string(report.Mode), string(ModeV2)) {
		require.Positive(t, usage.MemoryLimitHits)
	}
	require.Greater(t, usage.MemoryPeak, 40*mib)
	// The victim may still be charged a few pages on its way out.
	require.LessOrEqual(t, usage.MemoryPeak, 49*mib)
}

func TestRealMemoryBelowLimitLives(t *testing.T) {
	group, _ := openReal(t, Limits{Memory: 128 * mib}, nameMemory)
	c := startChild(t, "allocate 30")
	require.NoError(t, group.Add(c.cmd.Process.Pid))
	c.goOn(t)
	require.Equal(t, "allocated 30", c.line(t))
	require.Zero(t, c.wait().ExitStatus())
	usage, err := group.Stats()
	require.NoError(t, err)
	require.Zero(t, usage.OOMKills)
	require.Greater(t, usage.MemoryPeak, 25*mib)
	require.Positive(t, usage.CPUTotal)
}

func TestRealPidsLimitRefusesForks(t *testing.T) {
	// HostPids adds what gVisor needs: 32 inside are 608 on a host with one processor.
	group, _ := openReal(t, Limits{Pids: 32}, nameHostPids)
	c := startChild(t, "fork 2000")
	require.NoError(t, group.Add(c.cmd.Process.Pid))
	c.goOn(t)
	var started, refused int
	_, err := fmt.Sscanf(c.line(t), "forked %d refused %d", &started, &refused)
	require.NoError(t, err)
	require.Equal(t, 1, refused)
	require.Less(t, started, 608)
	usage, err := group.Stats()
	require.NoError(t, err)
	require.Positive(t, usage.PidsRefused)
	require.LessOrEqual(t, usage.PidsCurrent, usage.PidsLimit)
	require.Greater(t, usage.PidsCurrent, int64(started))

	pids, err := group.Processes()
	require.NoError(t, err)
	require.Len(t, pids, started+1)

	require.NoError(t, group.Kill(t.Context()))
	pids, err = group.Processes()
	require.NoError(t, err)
	require.Empty(t, pids)
	require.Equal(t, syscall.SIGKILL, c.wait().Signal())
	require.NoError(t, syscall.Kill(os.Getpid(), 0), "the caller lives")
}

func TestRealCPUQuotaThrottles(t *testing.T) {
	group, _ := openReal(t, Limits{CPUs: 0.1}, nameCPUs)
	c := startChild(t, "spin 200")
	require.NoError(t, group.Add(c.cmd.Process.Pid))
	begin := time.Now()
	c.goOn(t)
	require.Equal(t, "spinning", c.line(t))
	require.Equal(t, "spun", c.line(t))
	// 200 ms at a tenth of a processor are two seconds, less the share of the first and last period.
	require.Greater(t, time.Since(begin), 1200*time.Millisecond)
	require.Zero(t, c.wait().ExitStatus())
	usage, err := group.Stats()
	require.NoError(t, err)
	require.Positive(t, usage.ThrottledPeriods)
	require.Positive(t, usage.Throttled)
	require.Greater(t, usage.CPUTotal, 150*time.Millisecond)
	require.NotContains(t, usage.Missing, "cpu")
}

func TestRealCloseWaitsForProcesses(t *testing.T) {
	group, report := openReal(t, Limits{Memory: 128 * mib}, nameMemory)
	c := startChild(t, "wait")
	require.NoError(t, group.Add(c.cmd.Process.Pid))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := group.CloseContext(ctx)
	require.ErrorIs(t, err, syscall.EBUSY)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	closed := make(chan error, 1)
	go func() { closed <- group.Close() }()
	c.goOn(t)
	c.goOn(t)
	require.Zero(t, c.wait().ExitStatus())
	require.NoError(t, <-closed)
	for _, path := range report.Paths {
		require.NoDirExists(t, path)
	}
	require.ErrorIs(t, group.Add(os.Getpid()), os.ErrClosed)
	_, err = group.Stats()
	require.ErrorIs(t, err, os.ErrClosed)
}

func TestRealAddOfEndedProcess(t *testing.T) {
	group, _ := openReal(t, Limits{Memory: 128 * mib}, nameMemory)
	c := startChild(t, "wait")
	c.goOn(t)
	c.goOn(t)
	c.wait()
	require.ErrorIs(t, group.Add(c.cmd.Process.Pid), os.ErrProcessDone)
}

func TestRealReapAfterCrash(t *testing.T) {
	group, report := openReal(t, Limits{Memory: 128 * mib}, nameMemory)
	c := startChild(t, "wait")
	require.NoError(t, group.Add(c.cmd.Process.Pid))

	require.NoError(t, Reap(t.Context(), report.Paths...))
	require.Equal(t, syscall.SIGKILL, c.wait().Signal())
	for _, path := range report.Paths {
		require.NoDirExists(t, path)
	}
	require.NoError(t, Reap(t.Context(), report.Paths...), "again")
}

// Kernels before 5.14, and pure version 1, have no cgroup.kill.
func TestRealKillWithoutCgroupKill(t *testing.T) {
	for name, keep := range map[string]func(directory) bool{
		"with the freezer":    func(d directory) bool { return d.version == 1 },
		"without the freezer": func(d directory) bool { return slices.Contains(d.controllers, "memory") },
	} {
		t.Run(name, func(t *testing.T) {
			group, _ := openReal(t, Limits{Memory: 512 * mib, Pids: 200}, nameMemory)
			old := &Group{kernel: withoutKill{}, log: group.log}
			for _, d := range group.dirs {
				if keep(d) {
					old.dirs = append(old.dirs, d)
				}
			}
			if len(old.dirs) == 0 {
				t.Skip("no version 1 hierarchies here")
			}
			c := startChild(t, "fork 50")
			require.NoError(t, group.Add(c.cmd.Process.Pid))
			c.goOn(t)
			require.Equal(t, "forked 50 refused 0", c.line(t))
			require.NoError(t, old.Kill(t.Context()))
			require.Equal(t, syscall.SIGKILL, c.wait().Signal())
			pids, err := group.Processes()
			require.NoError(t, err)
			require.Empty(t, pids)
		})
	}
}

type withoutKill struct{ kernelFS }

func (w withoutKill) Write(path, data string) error {
	if filepath.Base(path) == "cgroup.kill" {
		return os.ErrNotExist
	}
	return w.kernelFS.Write(path, data)
}

func TestRealNameOfLiveSession(t *testing.T) {
	group, report := openReal(t, Limits{Memory: 128 * mib}, nameMemory)
	c := startChild(t, "wait")
	require.NoError(t, group.Add(c.cmd.Process.Pid))
	_, _, err := Open(t.Context(), Options{Name: filepath.Base(report.Paths[0]), Limits: Limits{Memory: 64 * mib}})
	require.ErrorIs(t, err, errBusy)
	pids, err := group.Processes()
	require.NoError(t, err)
	require.Equal(t, []int{c.cmd.Process.Pid}, pids)
}

// TestRealScope leaves this process in a scope of its own, where the tests after it run as well as before.
func TestRealScope(t *testing.T) {
	if _, err := os.Stat(systemdSocket()); err != nil {
		t.Skipf("no service manager for this user: %v", err)
	}
	name := fmt.Sprintf("test-%d", os.Getpid())
	group, report, err := Open(t.Context(), Options{Name: name, Limits: Limits{Memory: 48 * mib, Pids: 50, CPUs: 0.5}, CPUs: 1, Systemd: Systemd{}})
	require.NoError(t, err)
	require.Equal(t, ModeV2Scope, report.Mode, "%v", report.Notes)
	for _, limit := range []string{nameMemory, nameSwap, nameHostPids, nameCPUs} {
		entry, _ := report.Entry(limit)
		require.True(t, entry.Enforced, "%+v", entry)
	}
	c := startChild(t, "allocate 200")
	require.NoError(t, group.Add(c.cmd.Process.Pid))
	c.goOn(t)
	require.Equal(t, syscall.SIGKILL, c.wait().Signal())
	usage, err := group.Stats()
	require.NoError(t, err)
	require.Positive(t, usage.OOMKills)
	require.NoError(t, group.Kill(t.Context()))
	require.NoError(t, group.Close())
	require.NoDirExists(t, report.Paths[0])
	require.NoDirExists(t, filepath.Dir(report.Paths[0]))
}
