package limits

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	"github.com/stretchr/testify/require"
)

func TestDefault(t *testing.T) {
	for name, tc := range map[string]struct {
		memory     int64
		cpus       int
		wantMemory int64
		wantCPUs   float64
		wantTmp    int64
	}{
		"laptop":           {16 * gib, 8, 4 * gib, 7, gib},
		"small laptop":     {6 * gib, 4, 3 * gib, 3, 768 * mib},
		"two processors":   {24 * gib, 2, 4 * gib, 1.5, gib},
		"three processors": {24 * gib, 3, 4 * gib, 2.25, gib},
		"one processor":    {gib + gib/2, 1, gib, 0.75, 256 * mib},
		"tiny":             {512 * mib, 1, 512 * mib, 0.75, 128 * mib},
		"unknown":          {0, 0, 4 * gib, 0, gib},
	} {
		t.Run(name, func(t *testing.T) {
			l := Default(tc.memory, tc.cpus)
			require.Equal(t, tc.wantMemory, l.Memory)
			require.InDelta(t, tc.wantCPUs, l.CPUs, 1e-9)
			require.Equal(t, tc.wantTmp, l.TmpSize)
			require.Less(t, l.OpenFiles, uint64(10_000), "a leak of ten thousand files must hit the limit")
		})
	}
}

func TestHostLimits(t *testing.T) {
	l := Limits{Memory: gib, MemoryHeadroom: 512 * mib, Pids: 1024}
	require.Equal(t, gib+512*mib, l.HostMemory())
	require.EqualValues(t, 1024*10+512, l.HostPids(8))
	require.EqualValues(t, 1024*3+512, l.HostPids(0))
	require.Zero(t, Limits{MemoryHeadroom: gib}.HostMemory())
	require.Zero(t, Limits{}.HostPids(8))
}

func TestRlimits(t *testing.T) {
	require.Equal(t, []specs.POSIXRlimit{
		{Type: "RLIMIT_NOFILE", Soft: 4096, Hard: 4096},
		{Type: "RLIMIT_FSIZE", Soft: 1 << 30, Hard: 1 << 30},
		{Type: "RLIMIT_NPROC", Soft: 100, Hard: 100},
	}, Limits{OpenFiles: 4096, FileSize: 1 << 30, Pids: 100}.Rlimits())
	require.Empty(t, Limits{}.Rlimits())
	require.Equal(t, []string{"size=1048576", "nr_inodes=100"}, Limits{TmpSize: mib, TmpInodes: 100}.TmpOptions())
	require.Empty(t, Limits{}.TmpOptions())
}

func TestHostInfo(t *testing.T) {
	host, err := HostInfo("")
	require.NoError(t, err)
	require.Positive(t, host.Memory)
	require.Positive(t, host.CPUs)

	proc := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(proc, "meminfo"), []byte("MemTotal:       2048 kB\nMemFree: 1 kB\n"), 0o600))
	host, err = HostInfo(proc)
	require.NoError(t, err)
	require.Equal(t, 2*mib, host.Memory)

	require.NoError(t, os.WriteFile(filepath.Join(proc, "meminfo"), []byte("MemFree: 1 kB\n"), 0o600))
	_, err = HostInfo(proc)
	require.ErrorContains(t, err, "no MemTotal")
	_, err = HostInfo(filepath.Join(proc, "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
