package limits

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

var testLimits = Limits{Memory: 256 * mib, MemoryHeadroom: 64 * mib, Pids: 100, CPUs: 1.5, OpenFiles: 512, FileSize: 1 << 30, TmpSize: 64 * mib}

// Delegation as systemd makes it for a user who is logged in: the user owns user@1000.service and what is below.
func desktop(f *fakeMachine) (appSlice string) {
	f.v2("", "cpuset", "cpu", "io", "memory", "pids")
	f.file(filepath.Join(f.root, "cgroup.subtree_control"), "cpu memory pids\n")
	f.group("user.slice", "cpu memory pids", "")
	f.group("user.slice/user-1000.slice", "cpu memory pids", "")
	f.group("user.slice/user-1000.slice/user@1000.service", "cpu memory pids", "")
	appSlice = f.group("user.slice/user-1000.slice/user@1000.service/app.slice", "memory pids", "")
	f.group("user.slice/user-1000.slice/user@1000.service/app.slice/terminal.scope", "", "42\n43\n")
	f.deny = []string{f.root}
	f.allow = []string{filepath.Join(f.root, "user.slice/user-1000.slice/user@1000.service")}
	f.own = []string{"0::/user.slice/user-1000.slice/user@1000.service/app.slice/terminal.scope"}
	f.save()
	return appSlice
}

type expectation struct {
	enforced bool
	by, why  string
}

func TestOpenOnFakeMachines(t *testing.T) {
	enforced := func(by string) expectation { return expectation{enforced: true, by: by} }
	refused := func(why string) expectation { return expectation{by: byNone, why: why} }
	for name, tc := range map[string]struct {
		machine func(f *fakeMachine)
		mode    Mode
		paths   []string
		want    map[string]expectation
	}{
		"version 1, root": {
			machine: func(f *fakeMachine) {
				for _, c := range []string{"memory", "pids", "freezer", "blkio", "devices"} {
					f.v1(c, c)
				}
				f.v1("cpu,cpuacct", "cpu", "cpuacct")
				f.v1("systemd", "name=systemd")
				f.own = []string{"9:name=systemd:/a", "4:memory:/", "3:cpu,cpuacct:/", "2:pids:/"}
				f.save()
			},
			mode:  ModeV1,
			paths: []string{"memory/patio/s1", "pids/patio/s1", "freezer/patio/s1", "blkio/patio/s1", "cpu,cpuacct/patio/s1"},
			want: map[string]expectation{
				nameMemory: enforced("cgroup v1 memory"), nameSwap: enforced("cgroup v1 memory"),
				nameHostPids: enforced("cgroup v1 pids"), nameCPUs: enforced("cgroup v1 cpu"),
			},
		},
		"version 1, below the caller's own cgroup": {
			machine: func(f *fakeMachine) {
				f.v1("memory", "memory")
				f.group("memory/outer", "", "1\n")
				f.file(filepath.Join(f.root, "memory/outer/memory.limit_in_bytes"), "104857600\n")
				f.own = []string{"4:memory:/outer"}
				f.save()
			},
			mode:  ModeV1,
			paths: []string{"memory/outer/patio/s1"},
			want: map[string]expectation{
				nameMemory: {enforced: true, by: "cgroup v1 memory", why: "an outer cgroup allows less"},
				nameCPUs:   refused("no cpu controller"), nameHostPids: refused("no pids controller"),
			},
		},
		"version 1, not permitted": {
			machine: func(f *fakeMachine) {
				f.v1("memory", "memory")
				f.v1("pids", "pids")
				f.deny = []string{filepath.Join(f.root, "memory"), filepath.Join(f.root, "pids")}
			},
			mode: ModeV1,
			want: map[string]expectation{nameMemory: refused("not permitted"), nameHostPids: refused("not permitted"), nameCPUs: refused("no cpu")},
		},
		"version 1, one hierarchy delegated": {
			machine: func(f *fakeMachine) {
				f.v1("memory", "memory")
				f.v1("pids", "pids")
				f.deny = []string{filepath.Join(f.root, "memory")}
			},
			mode:  ModeV1,
			paths: []string{"pids/patio/s1"},
			want:  map[string]expectation{nameMemory: refused("not permitted"), nameHostPids: enforced("cgroup v1 pids")},
		},
		"version 1, no accounting of swap": {
			machine: func(f *fakeMachine) {
				f.v1("memory", "memory")
				f.onWrite = func(path, _ string) {
					if filepath.Base(path) == "memory.limit_in_bytes" {
						_ = os.Remove(filepath.Join(filepath.Dir(path), "memory.memsw.limit_in_bytes"))
					}
				}
			},
			mode:  ModeV1,
			paths: []string{"memory/patio/s1"},
			want:  map[string]expectation{nameMemory: enforced("cgroup v1 memory"), nameSwap: refused("does not count swap")},
		},
		"version 1, quota refused": {
			machine: func(f *fakeMachine) {
				f.v1("cpu", "cpu")
				f.refuse = []string{"cpu.cfs_quota_us"}
			},
			mode:  ModeV1,
			paths: []string{"cpu/patio/s1"},
			want:  map[string]expectation{nameCPUs: refused("invalid argument")},
		},
		"version 1, kernel ignores the value": {
			machine: func(f *fakeMachine) {
				f.v1("pids", "pids")
				f.onWrite = func(path, _ string) { f.file(path, "max\n") }
			},
			mode:  ModeV1,
			paths: []string{"pids/patio/s1"},
			want:  map[string]expectation{nameHostPids: refused("reads back none")},
		},
		"hybrid": {
			machine: func(f *fakeMachine) {
				f.v1("memory", "memory")
				f.v1("cpu", "cpu")
				f.v1("pids", "pids")
				f.v1("systemd", "name=systemd")
				f.v2("unified", "hugetlb")
				f.own = []string{"4:memory:/", "2:cpu:/", "0::/"}
				f.save()
			},
			mode:  ModeHybrid,
			paths: []string{"memory/patio/s1", "cpu/patio/s1", "pids/patio/s1", "unified/patio/s1"},
			want: map[string]expectation{
				nameMemory: enforced("cgroup v1 memory"), nameHostPids: enforced("cgroup v1 pids"), nameCPUs: enforced("cgroup v1 cpu"),
			},
		},
		"version 2, root without systemd": {
			machine: func(f *fakeMachine) {
				f.v2("", "cpu", "io", "memory", "pids")
				f.own = []string{"0::/"}
				f.file(filepath.Join(f.root, "cgroup.procs"), "1\n2\n")
				f.save()
			},
			mode:  ModeV2,
			paths: []string{"patio/s1"},
			want: map[string]expectation{
				nameMemory: enforced("cgroup v2 memory"), nameSwap: enforced("cgroup v2 memory"),
				nameHostPids: enforced("cgroup v2 pids"), nameCPUs: enforced("cgroup v2 cpu"),
			},
		},
		"version 2, own cgroup holds processes": {
			machine: func(f *fakeMachine) {
				f.v2("", "cpu", "memory", "pids")
				f.file(filepath.Join(f.root, "cgroup.subtree_control"), "memory pids\n")
				f.group("user.slice", "memory pids", "")
				f.group("user.slice/session.scope", "", "1\n2\n")
				f.own = []string{"0::/user.slice/session.scope"}
				f.save()
			},
			mode: ModeV2,
			// The root alone can still hand on cpu.
			paths: []string{"patio/s1"},
			want: map[string]expectation{
				nameMemory: enforced("cgroup v2 memory"), nameHostPids: enforced("cgroup v2 pids"), nameCPUs: enforced("cgroup v2 cpu"),
			},
		},
		"version 2, delegated by systemd to a user": {
			machine: func(f *fakeMachine) { desktop(f) },
			mode:    ModeV2Delegated,
			paths:   []string{"user.slice/user-1000.slice/user@1000.service/app.slice/patio/s1"},
			want: map[string]expectation{
				nameMemory: enforced("cgroup v2 memory"), nameHostPids: enforced("cgroup v2 pids"), nameCPUs: enforced("cgroup v2 cpu"),
			},
		},
		"version 2, delegated without cpu": {
			machine: func(f *fakeMachine) {
				app := desktop(f)
				f.file(filepath.Join(app, "cgroup.controllers"), "memory pids\n")
				f.file(filepath.Join(filepath.Dir(app), "cgroup.controllers"), "memory pids\n")
				f.file(filepath.Join(filepath.Dir(app), "cgroup.subtree_control"), "memory pids\n")
			},
			mode:  ModeV2Delegated,
			paths: []string{"user.slice/user-1000.slice/user@1000.service/app.slice/patio/s1"},
			want: map[string]expectation{
				nameMemory: enforced("cgroup v2 memory"), nameHostPids: enforced("cgroup v2 pids"), nameCPUs: refused("cpu controller is not handed on"),
			},
		},
		"version 2, a login session that is not delegated": {
			machine: func(f *fakeMachine) {
				desktop(f)
				f.group("user.slice/user-1000.slice/session-3.scope", "", "77\n")
				f.own = []string{"0::/user.slice/user-1000.slice/session-3.scope"}
				f.save()
			},
			mode: ModeV2,
			want: map[string]expectation{nameMemory: refused("delegated"), nameHostPids: refused("not writable"), nameCPUs: refused("delegated")},
		},
		"version 2, no controllers in the kernel": {
			machine: func(f *fakeMachine) { f.v2(""); f.own = []string{"0::/"}; f.save() },
			mode:    ModeV2,
			paths:   []string{"patio/s1"},
			want:    map[string]expectation{nameMemory: refused("memory controller"), nameCPUs: refused("cpu controller")},
		},
		"version 2, read-only": {
			machine: func(f *fakeMachine) {
				f.v2("", "cpu", "memory", "pids")
				f.own = []string{"0::/"}
				f.readOnly = true
				f.save()
			},
			mode: ModeV2,
			want: map[string]expectation{nameMemory: refused("delegated"), nameHostPids: refused("not writable"), nameCPUs: refused("delegated")},
		},
		"none": {
			machine: func(*fakeMachine) {},
			mode:    ModeNone,
			want:    map[string]expectation{nameMemory: refused(whyNoCgroup), nameHostPids: refused(whyNoCgroup), nameCPUs: refused(whyNoCgroup)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			tc.machine(f)
			before := f.tree()
			group, report, err := Open(t.Context(), f.options(testLimits))
			require.NoError(t, err)
			require.Equal(t, tc.mode, report.Mode)
			paths := []string{}
			for _, path := range tc.paths {
				paths = append(paths, filepath.Join(f.root, path))
			}
			require.ElementsMatch(t, paths, append([]string{}, report.Paths...))
			for limit, want := range tc.want {
				entry, found := report.Entry(limit)
				require.True(t, found, limit)
				require.Equal(t, want.enforced, entry.Enforced, "%s: %+v", limit, entry)
				require.Equal(t, want.by, entry.By, limit)
				require.Contains(t, entry.Why, want.why, limit)
				require.Equal(t, !want.enforced, slices.Contains(report.Unenforced(), entry), limit)
			}
			for _, limit := range []string{"files", "fsize", "tmp", "pids"} {
				entry, _ := report.Entry(limit)
				require.True(t, entry.Enforced, "gVisor keeps %s everywhere", limit)
			}
			require.NoError(t, group.Close())
			require.NoError(t, group.Close())
			require.Equal(t, before, f.tree(), "cgroups were left behind")
		})
	}
}

func TestValuesWritten(t *testing.T) {
	f := newFake(t)
	app := desktop(f)
	group, report, err := Open(t.Context(), f.options(testLimits))
	require.NoError(t, err)
	leaf := filepath.Join(app, "patio", "s1")
	for file, want := range map[string]string{
		"memory.max": "335544320", "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "912", "cpu.max": "150000 100000",
	} {
		require.Equal(t, want, f.read(filepath.Join(leaf, file)), file)
	}
	require.Empty(t, report.Notes)
	require.NoError(t, group.Add(4711))
	require.Equal(t, "4711", f.read(filepath.Join(leaf, "cgroup.procs")))
	require.NoError(t, group.Kill(t.Context()))
	require.NoError(t, group.Close())
}

func TestUnlimitedWritesNothing(t *testing.T) {
	f := newFake(t)
	desktop(f)
	group, report, err := Open(t.Context(), f.options(Limits{}))
	require.NoError(t, err)
	require.Empty(t, report.Unenforced())
	for _, entry := range report.Entries {
		require.Equal(t, unlimited, entry.Effective, entry.Name)
		require.Equal(t, whyUnbounded, entry.Why, entry.Name)
	}
	require.NoError(t, group.Close())
}

func TestStatsOfFakes(t *testing.T) {
	want := Usage{
		MemoryCurrent: 1000, MemoryPeak: 2000, MemoryReclaimable: 15, MemoryLimit: 320 * mib, MemoryLimitHits: 3, OOMKills: 1,
		CPULimit: 1.5, Periods: 9, ThrottledPeriods: 2, Throttled: 3 * time.Microsecond,
		PidsCurrent: 7, PidsLimit: 912, PidsRefused: 4, ReadBytes: 4100, WriteBytes: 512,
	}
	t.Run("version 1", func(t *testing.T) {
		f := newFake(t)
		for _, c := range []string{"memory", "cpu", "cpuacct", "pids", "blkio"} {
			f.v1(c, c)
		}
		group, _, err := Open(t.Context(), f.options(testLimits))
		require.NoError(t, err)
		want := want
		want.CPUTotal, want.CPUUser, want.CPUSystem = 5*time.Millisecond, 3*time.Millisecond, 2*time.Millisecond
		usage, err := group.Stats()
		require.NoError(t, err)
		want.Time = usage.Time
		require.Equal(t, want, usage)
		require.NoError(t, group.Close())
	})
	t.Run("version 2", func(t *testing.T) {
		f := newFake(t)
		f.v2("", "memory", "cpu", "pids", "io")
		f.file(filepath.Join(f.root, "cgroup.subtree_control"), "io\n")
		f.group("patio", "io", "")
		group, _, err := Open(t.Context(), f.options(testLimits))
		require.NoError(t, err)
		want := want
		want.CPUTotal, want.CPUUser, want.CPUSystem = 1500*time.Millisecond, time.Second, 500*time.Millisecond
		usage, err := group.Stats()
		require.NoError(t, err)
		want.Time = usage.Time
		require.Equal(t, want, usage)
		require.NoError(t, group.Close())
	})
	t.Run("version 2 without controllers", func(t *testing.T) {
		f := newFake(t)
		f.v2("")
		group, _, err := Open(t.Context(), f.options(testLimits))
		require.NoError(t, err)
		usage, err := group.Stats()
		require.NoError(t, err)
		require.Equal(t, 1500*time.Millisecond, usage.CPUTotal)
		require.Equal(t, []string{"memory", "throttling", "pids", "io"}, usage.Missing)
		require.NoError(t, group.Close())
	})
}

func TestWithoutCgroup(t *testing.T) {
	f := newFake(t)
	group, report, err := Open(t.Context(), f.options(testLimits))
	require.NoError(t, err)
	require.Empty(t, report.Paths)
	require.NoError(t, group.Add(os.Getpid()))
	_, err = group.Stats()
	require.ErrorIs(t, err, ErrNoCgroup)
	_, err = group.Processes()
	require.ErrorIs(t, err, ErrNoCgroup)
	require.ErrorIs(t, group.Kill(t.Context()), ErrNoCgroup)
	require.NoError(t, group.Close())
}

func TestOpenWithoutProc(t *testing.T) {
	f := newFake(t)
	options := f.options(testLimits)
	options.ProcRoot = filepath.Join(f.proc, "missing")
	_, report, err := Open(t.Context(), options)
	require.NoError(t, err)
	require.Equal(t, ModeNone, report.Mode)
	require.Contains(t, report.Notes[0], "detect cgroups")
}

func TestOpenRefusesNames(t *testing.T) {
	for _, name := range []string{"", ".", "..", "a/b", "-a", "a b", "ä", strings.Repeat("a", 101), "a\n"} {
		f := newFake(t)
		options := f.options(testLimits)
		options.Name = name
		_, _, err := Open(t.Context(), options)
		require.ErrorContains(t, err, "open cgroup: name", "%q", name)
	}
}

func TestOpenReplacesStaleAndSparesLive(t *testing.T) {
	f := newFake(t)
	f.v1("memory", "memory")
	f.v1("pids", "pids")
	f.group("memory/patio", "", "")
	stale := f.group(filepath.Join("memory/patio", "s1"), "", "")
	f.file(filepath.Join(stale, "memory.max_usage_in_bytes"), "999999\n")
	group, _, err := Open(t.Context(), f.options(testLimits))
	require.NoError(t, err)
	require.Equal(t, "2000", f.read(filepath.Join(stale, "memory.max_usage_in_bytes")), "counters begin anew")

	f.file(filepath.Join(f.root, "pids/patio/s1/cgroup.procs"), "99\n")
	_, _, err = Open(t.Context(), f.options(testLimits))
	require.ErrorIs(t, err, errBusy)
	require.Equal(t, "99", f.read(filepath.Join(f.root, "pids/patio/s1/cgroup.procs")))
	f.file(filepath.Join(f.root, "pids/patio/s1/cgroup.procs"), "")
	require.NoError(t, group.Close())
}

// vanishing removes the parent patio right after it was made, as the Close of another session does.
type vanishing struct {
	*fakeMachine
	times int
}

func (v *vanishing) Mkdir(path string) error {
	if filepath.Base(path) != parentName && v.times > 0 {
		v.times--
		if err := v.Rmdir(filepath.Dir(path)); err != nil {
			return err
		}
	}
	return v.fakeMachine.Mkdir(path)
}

func TestOpenWhileAnotherCloses(t *testing.T) {
	for name, build := range map[string]func(*fakeMachine){
		"version 1": func(f *fakeMachine) { f.v1("memory", "memory") },
		"version 2": func(f *fakeMachine) { desktop(f) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			build(f)
			options := f.options(testLimits)
			options.kernel = &vanishing{fakeMachine: f, times: 3}
			group, report, err := Open(t.Context(), options)
			require.NoError(t, err)
			entry, _ := report.Entry(nameMemory)
			require.True(t, entry.Enforced, "%+v", entry)
			require.NoError(t, group.Close())
		})
	}
}

func TestParentOption(t *testing.T) {
	f := newFake(t)
	desktop(f)
	f.group("user.slice/user-1000.slice/user@1000.service/mine.slice", "", "")
	options := f.options(testLimits)
	options.Parent = "/user.slice/user-1000.slice/user@1000.service/mine.slice"
	group, report, err := Open(t.Context(), options)
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(f.root, options.Parent, "patio", "s1")}, report.Paths)
	require.Empty(t, report.Unenforced())
	require.NoError(t, group.Close())
}

func TestAddErrors(t *testing.T) {
	f := newFake(t)
	f.v1("memory", "memory")
	group, report, err := Open(t.Context(), f.options(testLimits))
	require.NoError(t, err)
	require.ErrorContains(t, group.Add(0), "not a process")
	require.ErrorContains(t, group.Add(-1), "not a process")
	f.deny = []string{report.Paths[0]}
	require.ErrorIs(t, group.Add(99), unix.EACCES)
	f.deny = nil
	require.NoError(t, group.Close())
	require.ErrorIs(t, group.Add(99), os.ErrClosed)
}
