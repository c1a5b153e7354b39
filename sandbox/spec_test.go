package sandbox_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"patio/sandbox"
	"patio/sandbox/limits"
	"patio/sandbox/mounts"
	"patio/sandbox/runsc"
)

var update = flag.Bool("update", false, "rewrite golden files")

func plan() sandbox.Plan {
	return sandbox.Plan{
		ID: "abcdefghij", Image: sandbox.Image{Digest: "0123", Path: "/images/0123.erofs"},
		Argv: []string{"/usr/local/bin/node", "cli.js", "--mode", "rpc"}, Env: []string{"PATH=/bin", "KEY=a b\nc", "EMPTY="},
		Cwd: "/home/me/work space", Owner: sandbox.Owner{UID: 1234, GID: 5678},
		Mounts: []mounts.Mount{
			mounts.At("/home/me/work space/deep/er", mounts.ReadOnly, "deeper"),
			mounts.At("/home/me/work space", mounts.ReadWrite, "the workspace"),
			mounts.At("/state/agent", mounts.ReadWrite, "Pi's own state"),
		},
		Limits: limits.Default(16<<30, 8), Platform: runsc.Systrap,
	}
}

func TestSpecGolden(t *testing.T) {
	var got bytes.Buffer
	enc := json.NewEncoder(&got)
	enc.SetIndent("", "  ")
	require.NoError(t, enc.Encode(plan().Spec()))
	golden := filepath.Join("testdata", "spec.golden.json")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(golden, got.Bytes(), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got.String(), "run the test with -update when this is meant")
}

// What must hold whatever the golden says.
func TestSpecConfines(t *testing.T) {
	p := plan()
	s := p.Spec()
	require.Equal(t, s, p.Spec(), "equal plans make equal sandboxes")
	require.EqualValues(t, 1000, s.Process.User.UID)
	require.EqualValues(t, 1000, s.Process.User.GID)
	require.Empty(t, s.Process.User.AdditionalGids)
	require.True(t, s.Process.NoNewPrivileges)
	require.NotNil(t, s.Process.Capabilities, "absent would mean runsc's defaults")
	for _, set := range [][]string{
		s.Process.Capabilities.Bounding, s.Process.Capabilities.Effective, s.Process.Capabilities.Inheritable,
		s.Process.Capabilities.Permitted, s.Process.Capabilities.Ambient,
	} {
		require.Empty(t, set)
	}
	require.Equal(t, p.Env, s.Process.Env, "the environment is the plan's alone")
	require.Nil(t, s.Hooks)
	require.Empty(t, s.Linux.Devices)
	for _, m := range s.Mounts {
		require.Contains(t, m.Options, "nosuid", m.Destination)
		if m.Type == "bind" || m.Type == "tmpfs" && m.Destination != "/dev" {
			require.Contains(t, m.Options, "nodev", m.Destination)
		}
		if m.Type == "bind" {
			require.False(t, slices.Contains(m.Options, "rbind"), "what is mounted below a host path isn't wanted")
		} else {
			require.False(t, filepath.IsAbs(m.Source), "%s comes from the host", m.Destination)
		}
	}
	var limited []string
	for _, r := range s.Process.Rlimits {
		limited = append(limited, r.Type)
		if r.Type == "RLIMIT_CORE" {
			require.Zero(t, r.Hard, "a core file holds secrets")
		}
	}
	require.Contains(t, limited, "RLIMIT_CORE")
}

func TestMountsParentsFirst(t *testing.T) {
	p := plan()
	p.Mounts = nil
	for _, path := range []string{"/a/b/c", "/x", "/a", "/a/b", "/z/y", "/a/b/c/d/e", "/x/1"} {
		p.Mounts = append(p.Mounts, mounts.At(path, mounts.ReadWrite, ""))
	}
	given := slices.Clone(p.Mounts)
	var order []string
	for _, m := range p.Spec().Mounts {
		if m.Type == "bind" {
			order = append(order, m.Destination)
			require.Equal(t, m.Destination, m.Source)
		} else {
			require.Empty(t, order, "the system's own come before the host's")
		}
	}
	require.Len(t, order, len(given))
	for i, path := range order {
		for _, before := range order[:i] {
			require.False(t, strings.HasPrefix(before, path+"/"), "%s would be hidden by %s", before, path)
		}
	}
	require.Equal(t, given, p.Mounts, "the plan is left alone")
}

func TestMountModes(t *testing.T) {
	modes := map[string]string{}
	for _, m := range plan().Spec().Mounts {
		if m.Type == "bind" {
			modes[m.Destination] = m.Options[len(m.Options)-1]
		}
	}
	require.Equal(t, map[string]string{"/home/me/work space": "rw", "/home/me/work space/deep/er": "ro", "/state/agent": "rw"}, modes)
}
