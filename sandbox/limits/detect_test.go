package limits

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/moby/sys/mountinfo"
	"github.com/stretchr/testify/require"
)

func TestDetectHybrid(t *testing.T) {
	f := newFake(t)
	f.v1("cpu,cpuacct", "cpu", "cpuacct")
	f.v1("memory", "memory")
	f.v1("systemd", "name=systemd")
	f.v2("unified")
	inner := f.group("memory/a", "", "")
	f.own = []string{"7:name=systemd:/x", "4:memory:/a", "1:cpu,cpuacct:/gone", "0::/"}
	f.save()
	hierarchies, err := detect(f.proc, f.root)
	require.NoError(t, err)
	require.Equal(t, []hierarchy{
		{version: 1, controllers: []string{"cpu", "cpuacct"}, mount: filepath.Join(f.root, "cpu,cpuacct"), own: filepath.Join(f.root, "cpu,cpuacct")},
		{version: 1, controllers: []string{"memory"}, mount: filepath.Join(f.root, "memory"), own: inner},
		{version: 1, controllers: []string{"name=systemd"}, mount: filepath.Join(f.root, "systemd"), own: filepath.Join(f.root, "systemd")},
		{version: 2, mount: filepath.Join(f.root, "unified"), own: filepath.Join(f.root, "unified")},
	}, hierarchies)
	require.Equal(t, ModeHybrid, mode(hierarchies))
}

func TestDetectIgnoresOtherMounts(t *testing.T) {
	f := newFake(t)
	f.v2("", "memory")
	hierarchies, err := detect(f.proc, filepath.Join(f.root, "elsewhere"))
	require.NoError(t, err)
	require.Empty(t, hierarchies)
	require.Equal(t, ModeNone, mode(hierarchies))

	// The named hierarchy alone, as systemd mounts it beside version 2, holds no limits.
	require.Equal(t, ModeV2, mode([]hierarchy{{version: 1, controllers: []string{"name=systemd"}}, {version: 2}}))
}

func TestDetectTakesTheFirstOfTwoMounts(t *testing.T) {
	f := newFake(t)
	f.v1("memory", "memory")
	f.v1("memory-again", "memory")
	hierarchies, err := detect(f.proc, f.root)
	require.NoError(t, err)
	require.Len(t, hierarchies, 1)
	require.Equal(t, filepath.Join(f.root, "memory"), hierarchies[0].mount)
}

func TestOwnDirectory(t *testing.T) {
	mount := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(mount, "a", "b"), 0o755))
	for name, tc := range map[string]struct{ root, path, want string }{
		"root":                          {"/", "/", mount},
		"below":                         {"/", "/a/b", filepath.Join(mount, "a", "b")},
		"not listed":                    {"/", "", mount},
		"not there":                     {"/", "/gone", mount},
		"outside the namespace":         {"/", "/../x", mount},
		"container's own root":          {"/docker/1", "/docker/1", mount},
		"below the container's root":    {"/docker/1", "/docker/1/a", filepath.Join(mount, "a")},
		"outside of the mount's root":   {"/docker/1", "/a", mount},
		"sibling of a like-named mount": {"/docker/1", "/docker/10", mount},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, ownDirectory(&mountinfo.Info{Root: tc.root, Mountpoint: mount}, tc.path))
		})
	}
}

func TestParseNumber(t *testing.T) {
	for text, want := range map[string]int64{"max": 0, "-1": 0, "0": 0, "42": 42, "9223372036854771712": 0, "9223372036854710272": 0, "18446744073709551615": 0} {
		got, err := parseNumber(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "x", "1 2", "-2"} {
		_, err := parseNumber(text)
		require.Error(t, err, "%q", text)
	}
}
