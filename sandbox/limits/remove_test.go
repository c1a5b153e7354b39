package limits

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCloseLeavesOtherSessions(t *testing.T) {
	f := newFake(t)
	desktop(f)
	first, _, err := Open(t.Context(), f.options(testLimits))
	require.NoError(t, err)
	options := f.options(testLimits)
	options.Name = "s2"
	second, report, err := Open(t.Context(), options)
	require.NoError(t, err)
	require.NoError(t, first.Close())
	require.DirExists(t, report.Paths[0])
	require.NoError(t, second.Close())
	require.NoDirExists(t, filepath.Dir(report.Paths[0]))
}

func TestReapRefusesOtherPaths(t *testing.T) {
	f := newFake(t)
	f.v1("memory", "memory")
	other := f.group("memory/system", "", "")
	for _, path := range []string{other, "/", "", "patio/s1", filepath.Join(f.root, "memory/patio/../system"), f.root} {
		err := reap(t.Context(), f, []string{path})
		require.ErrorContains(t, err, "not a session's cgroup", "%q", path)
	}
	require.DirExists(t, other)
}

func TestReapRemovesParent(t *testing.T) {
	f := newFake(t)
	desktop(f)
	_, report, err := Open(t.Context(), f.options(testLimits))
	require.NoError(t, err)
	f.group(strings.TrimPrefix(report.Paths[0], f.root)+"/made-inside", "", "77\n")
	require.NoError(t, reap(t.Context(), f, report.Paths))
	require.NoDirExists(t, filepath.Dir(report.Paths[0]))
	require.NoError(t, reap(t.Context(), f, report.Paths))
}

func TestKillGivesUpInTime(t *testing.T) {
	f := newFake(t)
	f.v2("", "memory")
	group, report, err := Open(t.Context(), f.options(testLimits))
	require.NoError(t, err)
	require.NoError(t, group.Add(99))
	// A process that does not go, as one in an uninterruptible sleep.
	f.onWrite = func(path, _ string) {
		if filepath.Base(path) == "cgroup.kill" {
			f.file(filepath.Join(report.Paths[0], "cgroup.procs"), "99\n")
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err = group.Kill(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "1 processes are left")
	f.file(filepath.Join(report.Paths[0], "cgroup.procs"), "")
	require.NoError(t, group.Close())
}
