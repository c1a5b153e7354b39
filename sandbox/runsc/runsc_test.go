package runsc

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFind(t *testing.T) {
	t.Setenv("PATIO_RUNSC", "")
	root := t.TempDir()
	patio := filepath.Join(root, "bin", "patio")
	own := filepath.Join(root, "libexec", "patio", "runsc")
	require.NoError(t, os.MkdirAll(filepath.Dir(own), 0o755))

	_, err := Find(patio)
	require.ErrorIs(t, err, ErrMissing)
	require.ErrorContains(t, err, own)
	require.ErrorContains(t, err, "make setup")

	// One in PATH isn't taken.
	elsewhere := filepath.Join(root, "path")
	require.NoError(t, os.Mkdir(elsewhere, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(elsewhere, "runsc"), nil, 0o755))
	t.Setenv("PATH", elsewhere)
	_, err = Find(patio)
	require.ErrorIs(t, err, ErrMissing)

	require.NoError(t, os.WriteFile(own, nil, 0o644))
	_, err = Find(patio)
	require.ErrorIs(t, err, ErrMissing, "not executable")
	require.NoError(t, os.Chmod(own, 0o755))
	got, err := Find(patio)
	require.NoError(t, err)
	require.Equal(t, own, got)

	other := filepath.Join(elsewhere, "runsc")
	t.Setenv("PATIO_RUNSC", other)
	got, err = Find(patio)
	require.NoError(t, err)
	require.Equal(t, other, got)
	t.Chdir(elsewhere)
	t.Setenv("PATIO_RUNSC", "./runsc")
	got, err = Find(patio)
	require.NoError(t, err)
	require.True(t, filepath.IsAbs(got), "the supervisor works in another directory")
	for _, bad := range []string{"/no/such/runsc", elsewhere} {
		t.Setenv("PATIO_RUNSC", bad)
		_, err = Find(patio)
		require.ErrorIs(t, err, ErrMissing, "what was asked for and isn't there is no reason to take another")
		require.ErrorContains(t, err, "PATIO_RUNSC")
	}
}

func TestArgv(t *testing.T) {
	c := Command{Path: "/x/runsc", Root: "/r o/t", Platform: Systrap}
	for name, argv := range map[string][]string{
		"run":       c.Run("id", "/b", "/pid"),
		"exec":      c.Exec("id", ExecOptions{Cwd: "/w", User: "1000:1000", Env: []string{"A=b c", "--x=y"}, PIDFile: "/p", Argv: []string{"ls", "--all"}}),
		"kill":      c.Kill("id", "TERM"),
		"kill one":  c.KillProcess("id", 7, "KILL"),
		"events":    c.Events("id", 1),
		"processes": c.Processes("id"),
	} {
		require.Equal(t, "/x/runsc", argv[0], name)
		// What confines a sandbox stands in every command line.
		for _, flag := range []string{
			"--root=/r o/t", "--platform=systrap", "--network=sandbox", "--ignore-cgroups", "--host-uds=none", "--host-fifo=none", "--overlay2=none",
		} {
			require.Contains(t, argv, flag, name)
		}
		require.False(t, slices.ContainsFunc(argv, func(a string) bool { return a == "--debug" || a == "--rootless" }), name)
	}
	tail := func(argv []string, n int) []string { return argv[len(argv)-n:] }
	require.Equal(t, []string{"run", "--detach", "--bundle=/b", "--pid-file=/pid", "id"}, tail(c.Run("id", "/b", "/pid"), 5))
	require.Equal(t,
		[]string{"exec", "--user=1000:1000", "--cwd=/w", "--internal-pid-file=/p", "--env=A=b c", "--env=--x=y", "id", "ls", "--all"},
		tail(c.Exec("id", ExecOptions{Cwd: "/w", User: "1000:1000", Env: []string{"A=b c", "--x=y"}, PIDFile: "/p", Argv: []string{"ls", "--all"}}), 9))
	require.Equal(t, []string{"kill", "--all", "id", "TERM"}, tail(c.Kill("id", "TERM"), 4))
	require.Equal(t, []string{"kill", "--pid=7", "id", "KILL"}, tail(c.KillProcess("id", 7, "KILL"), 4))
	require.Equal(t, []string{"events", "--interval=2", "id"}, tail(c.Events("id", 2), 3))
	require.Equal(t, []string{"/x/runsc", "--version"}, c.Version())

	c.Log, c.Debug, c.Platform = "/l", true, KVM
	argv := c.Processes("id")
	for _, flag := range []string{"--log=/l", "--debug", "--debug-log=/l.debug.%COMMAND%", "--platform=kvm"} {
		require.Contains(t, argv, flag)
	}
}
