package engine

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUserDirs(t *testing.T) {
	home := t.TempDir()
	unset := func(t *testing.T) {
		for _, name := range []string{"XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"} {
			t.Setenv(name, "")
		}
		t.Setenv("HOME", home)
	}
	t.Run("set", func(t *testing.T) {
		unset(t)
		for _, name := range []string{"STATE_HOME", "DATA_HOME", "CACHE_HOME", "CONFIG_HOME", "RUNTIME_DIR"} {
			t.Setenv("XDG_"+name, "/xdg/"+name)
		}
		d, err := UserDirs()
		require.NoError(t, err)
		require.Equal(t, Dirs{
			State: "/xdg/STATE_HOME/patio", Data: "/xdg/DATA_HOME/patio", Cache: "/xdg/CACHE_HOME/patio",
			Config: "/xdg/CONFIG_HOME/patio", Runtime: "/xdg/RUNTIME_DIR/patio",
		}, d)
		require.Equal(t, []string{"/xdg/DATA_HOME/patio/images", SystemImages}, d.Images())
	})
	t.Run("unset", func(t *testing.T) {
		unset(t)
		d, err := UserDirs()
		require.NoError(t, err)
		if os.Geteuid() == 0 {
			require.Equal(t, Dirs{State: "/var/lib/patio", Data: "/var/lib/patio", Cache: "/var/cache/patio", Runtime: "/run/patio", Config: "/etc/patio"}, d)
			require.Equal(t, []string{SystemImages}, d.Images(), "root's own store is the system's")
			return
		}
		require.Equal(t, filepath.Join(home, ".local/state/patio"), d.State)
		require.Equal(t, filepath.Join(home, ".local/share/patio"), d.Data)
		require.Equal(t, filepath.Join(home, ".cache/patio"), d.Cache)
		require.Equal(t, filepath.Join(home, ".config/patio"), d.Config)
	})
	t.Run("only state", func(t *testing.T) {
		unset(t)
		t.Setenv("XDG_STATE_HOME", "/xdg/state")
		d, err := UserDirs()
		require.NoError(t, err)
		require.Equal(t, "/xdg/state/patio", d.State)
		require.Equal(t, filepath.Join(home, ".local/share/patio"), d.Data, "this also takes root's from the system's places")
		if isDir("/run/user/" + strconv.Itoa(os.Getuid())) {
			require.Equal(t, filepath.Join("/run/user", strconv.Itoa(os.Getuid()), "patio"), d.Runtime)
		} else {
			require.Equal(t, "/xdg/state/patio/run", d.Runtime)
		}
	})
	t.Run("relative ones don't count", func(t *testing.T) {
		unset(t)
		t.Setenv("XDG_STATE_HOME", "/xdg/state")
		for _, name := range []string{"XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"} {
			t.Setenv(name, "relative")
		}
		d, err := UserDirs()
		require.NoError(t, err)
		for _, dir := range []string{d.State, d.Data, d.Cache, d.Config, d.Runtime} {
			require.True(t, filepath.IsAbs(dir), dir)
		}
	})
}

func TestPrepare(t *testing.T) {
	root := t.TempDir()
	d := Dirs{State: root + "/state", Runtime: root + "/run"}
	require.NoError(t, os.MkdirAll(d.Runtime, 0o755))
	require.NoError(t, os.Chmod(d.Runtime, 0o777))
	for range 2 {
		require.NoError(t, d.prepare())
		for _, dir := range []string{d.State, d.sessions(), d.piSessions(), d.Runtime} {
			fi, err := os.Stat(dir)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o700), fi.Mode().Perm(), dir)
		}
	}
	require.NoError(t, os.WriteFile(root+"/file", nil, 0o600))
	require.ErrorContains(t, Dirs{State: root + "/file", Runtime: root + "/run"}.prepare(), "patio's directories")
}

func TestSupervisorEnv(t *testing.T) {
	got := supervisorEnv([]string{"PATH=/bin", "HOME=/h", "OPENAI_API_KEY=secret", "PATHOLOGICAL=x", "LANG=C", "PATIO_DEBUG=1", "EMPTY=", "TZ"})
	require.Equal(t, []string{"PATH=/bin", "HOME=/h", "LANG=C", "PATIO_DEBUG=1"}, got)
}
