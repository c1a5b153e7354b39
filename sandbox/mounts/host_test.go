package mounts

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAccountHomes(t *testing.T) {
	passwd := filepath.Join(t.TempDir(), "passwd")
	require.NoError(t, os.WriteFile(passwd, []byte(`root:x:0:0:root:/root:/bin/bash
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin
# a comment
short:x:1000
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
me:x:1000:1000:Me,,,:/home/me:/bin/bash
toor:x:0:0::/toor:/bin/sh
bad:x:abc:1:::
+::::::
last:x:60000:60000::/srv/last:/bin/sh`), 0o600))
	require.Equal(t, []string{"/root", "/home/me", "/toor", "/srv/last"}, accountHomes(passwd))
	require.Empty(t, accountHomes(passwd+".missing"))
}

func TestPhysical(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(root, "real"), 0o755))
	require.NoError(t, os.Symlink("real", filepath.Join(root, "link")))
	require.Equal(t,
		[]string{filepath.Join(root, "link"), filepath.Join(root, "real"), "/missing/x"},
		physical([]string{root + "//link/", "", ".", "relative", "/", "//", "/..", "/missing/y/../x"}))
}

func TestReadHost(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	h := ReadHost("/state/patio", "", "relative")
	require.Equal(t, os.Geteuid(), h.UID)
	require.Equal(t, home, h.Homes[0], "the caller's comes first")
	require.Equal(t, []string{"/state/patio"}, h.Private)
	_, err := CheckWorkspace(home, h)
	require.ErrorIs(t, err, ErrRefused)
}
