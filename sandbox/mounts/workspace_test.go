package mounts

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// tree is a machine in a temporary directory: two homes, patio's state, and links.
type tree struct {
	root string
	host Host
}

func newTree(t *testing.T) tree {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, dir := range []string{
		"home/me/project/sub", "home/me/.ssh/keys", "home/me/.config/gcloud", "home/me/.config/nvim", "home/me/.pi/agent",
		"home/me/.local/state/patio/sessions", "home/me/.local/share/other", "home/me/ssh", "home/me/.sshx",
		"home/other/project", "state/sessions", "work/repo", "work/state", "odd",
	} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	for name, target := range map[string]string{
		"to-project": "home/me/project", "to-ssh": "home/me/.ssh", "to-home": "home/me", "to-root": "/", "to-state": "state",
		"to-etc": "/etc", "work/up": "../home", "dangling": "nowhere", "loop": "loop", "home/me/project/out": "../.ssh",
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(root, name)))
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "work", "file"), nil, 0o600))
	return tree{root: root, host: Host{
		UID:     os.Geteuid(),
		Homes:   physical([]string{filepath.Join(root, "home/me"), filepath.Join(root, "home/other")}),
		Private: physical([]string{filepath.Join(root, "state")}),
	}}
}

func TestCheckWorkspace(t *testing.T) {
	tr := newTree(t)
	for name, tc := range map[string]struct{ dir, want string }{
		"a project in a home":        {"home/me/project", "home/me/project"},
		"a directory in it":          {"home/me/project/sub", "home/me/project/sub"},
		"outside of every home":      {"work/repo", "work/repo"},
		"a slash at the end":         {"work/repo/", "work/repo"},
		"dots":                       {"work/../work/./repo", "work/repo"},
		"a link to it":               {"to-project", "home/me/project"},
		"a link above it":            {"to-home/project", "home/me/project"},
		"a link with a slash behind": {"to-project/", "home/me/project"},
		"a config directory":         {"home/me/.config/nvim", "home/me/.config/nvim"},
		"only looks like .ssh":       {"home/me/ssh", "home/me/ssh"},
		"begins like .ssh":           {"home/me/.sshx", "home/me/.sshx"},
		"another's project":          {"home/other/project", "home/other/project"},
		"named like a private one":   {"work/state", "work/state"},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := CheckWorkspace(tr.root+"/"+tc.dir, tr.host)
			require.NoError(t, err)
			require.Equal(t, filepath.Join(tr.root, tc.want), w.Path)
			fi, err := os.Stat(w.Path)
			require.NoError(t, err)
			st := fi.Sys().(*syscall.Stat_t)
			require.Equal(t, Workspace{Path: w.Path, UID: st.Uid, GID: st.Gid, Device: st.Dev, Inode: st.Ino}, w)
			require.NoError(t, w.Recheck())
		})
	}
}

func TestCheckWorkspaceRefuses(t *testing.T) {
	tr := newTree(t)
	for name, tc := range map[string]struct{ dir, want string }{
		"a home":                         {"home/me", "a home directory holds"},
		"another's home":                 {"home/other", "a home directory holds"},
		"the directory of homes":         {"home", "a home directory holds"},
		"a parent of that":               {".", "a home directory holds"},
		"keys":                           {"home/me/.ssh", "~/.ssh may hold"},
		"below keys":                     {"home/me/.ssh/keys", "~/.ssh may hold"},
		"Pi's own":                       {"home/me/.pi/agent", "~/.pi may hold"},
		"cloud credentials":              {"home/me/.config/gcloud", "~/.config/gcloud may hold"},
		"all of .config":                 {"home/me/.config", "belongs to many programs"},
		"all of .local/share":            {"home/me/.local/share", "belongs to many programs"},
		"patio's default state":          {"home/me/.local/state/patio/sessions", "~/.local/state/patio may hold"},
		"patio's state":                  {"state", "holds state of patio"},
		"below patio's state":            {"state/sessions", "holds state of patio"},
		"a link to keys":                 {"to-ssh", "~/.ssh may hold"},
		"a link to a home":               {"to-home", "a home directory holds"},
		"a link to the root":             {"to-root", "much more than one project"},
		"a link to patio's state":        {"to-state/sessions", "holds state of patio"},
		"a link to the system":           {"to-etc", "the operating system"},
		"a link in the path":             {"work/up/me", "a home directory holds"},
		"a link out of the project":      {"home/me/project/out", "~/.ssh may hold"},
		"dots out of the project":        {"home/me/project/..", "a home directory holds"},
		"a home with a slash at the end": {"home/me///", "a home directory holds"},
	} {
		t.Run(name, func(t *testing.T) {
			// Not Join, which would clean the path.
			_, err := CheckWorkspace(tr.root+"/"+tc.dir, tr.host)
			require.ErrorIs(t, err, ErrRefused)
			require.ErrorContains(t, err, tc.want)
		})
	}
	t.Run("a parent of patio's state", func(t *testing.T) {
		_, err := CheckWorkspace(tr.root, Host{UID: os.Geteuid(), Private: []string{filepath.Join(tr.root, "state")}})
		require.ErrorIs(t, err, ErrRefused)
	})
	t.Run("a home behind a link", func(t *testing.T) {
		link := filepath.Join(tr.root, "odd", "home")
		require.NoError(t, os.Symlink(filepath.Join(tr.root, "work"), link))
		_, err := CheckWorkspace(filepath.Join(tr.root, "work"), Host{UID: os.Geteuid(), Homes: physical([]string{link})})
		require.ErrorIs(t, err, ErrRefused)
	})
}

func TestSystemDirectories(t *testing.T) {
	refused := []string{
		"/", "/bin", "/boot", "/dev", "/dev/shm", "/dev/shm/x", "/etc", "/etc/x", "/home", "/lib", "/lib64/x", "/media", "/mnt", "/opt", "/opt/pi",
		"/opt/pi/node_modules", "/proc", "/proc/1/root", "/root", "/run", "/run/user", "/run/user/1000", "/run/user/1000/x", "/run/docker", "/run/media",
		"/sbin", "/srv", "/sys", "/sys/fs/cgroup", "/tmp", "/usr", "/usr/bin", "/usr/lib/x", "/usr/share/x", "/usr/local", "/usr/local/bin", "/usr/local/bin/x",
		"/usr/local/lib/x", "/usr/src", "/var", "/var/lib", "/var/tmp",
	}
	for _, path := range refused {
		require.ErrorIs(t, refuse(path, Host{}), ErrRefused, path)
	}
	for _, path := range []string{
		"/home/x", "/mnt/x", "/opt/x", "/opt/pizza", "/root/x", "/srv/x", "/tmp/x", "/usr/local/src/x", "/usr/local/x", "/usr/src/linux", "/var/www", "/var/lib/x",
		"/var/tmp/x", "/run/media/me/disk", "/etcetera", "/bin2", "/work", "/data/etc",
	} {
		require.NoError(t, refuse(path, Host{}), path)
	}
}

func TestCheckWorkspaceFails(t *testing.T) {
	tr := newTree(t)
	_, err := CheckWorkspace(filepath.Join(tr.root, "work", "missing"), tr.host)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "doesn't exist")
	_, err = CheckWorkspace(filepath.Join(tr.root, "dangling"), tr.host)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = CheckWorkspace(filepath.Join(tr.root, "loop"), tr.host)
	require.Error(t, err)
	_, err = CheckWorkspace(filepath.Join(tr.root, "work", "file"), tr.host)
	require.ErrorContains(t, err, "isn't a directory")
	_, err = CheckWorkspace(filepath.Join(tr.root, "work", "file", "x"), tr.host)
	require.Error(t, err)

	other := tr.host
	other.UID = os.Geteuid() + 12345
	_, err = CheckWorkspace(filepath.Join(tr.root, "work", "repo"), other)
	require.ErrorContains(t, err, "not to you")
	require.NotErrorIs(t, err, ErrRefused)

	if os.Geteuid() != 0 { // root can write everywhere
		require.NoError(t, os.Chmod(filepath.Join(tr.root, "work", "repo"), 0o555))
		_, err = CheckWorkspace(filepath.Join(tr.root, "work", "repo"), tr.host)
		require.ErrorContains(t, err, "isn't writable")
		require.True(t, errors.Is(err, fs.ErrPermission))
	}
}

func TestWorkspaceRelative(t *testing.T) {
	tr := newTree(t)
	t.Chdir(filepath.Join(tr.root, "work"))
	for _, dir := range []string{"repo", "./repo", "../work/repo", "../to-home/../work/repo"} {
		w, err := CheckWorkspace(dir, tr.host)
		require.NoError(t, err, dir)
		require.Equal(t, filepath.Join(tr.root, "work", "repo"), w.Path)
	}
}

func TestWorkspaceNames(t *testing.T) {
	for _, name := range []string{"with space", "quote'\"", "new\nline", "日本 é", "-dash", "a:b", "$HOME", "\xff\xfe"} {
		dir := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.Mkdir(dir, 0o755))
		w, err := CheckWorkspace(dir, Host{UID: os.Geteuid()})
		require.NoError(t, err, "%q", name)
		require.Equal(t, filepath.Base(dir), filepath.Base(w.Path))
	}
}

func TestRecheck(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, path string){
		"replaced": func(t *testing.T, path string) {
			require.NoError(t, os.Rename(path, path+".old"))
			require.NoError(t, os.Mkdir(path, 0o755))
		},
		"a link now": func(t *testing.T, path string) {
			require.NoError(t, os.Rename(path, path+".old"))
			require.NoError(t, os.Symlink(path+".old", path))
		},
		"a link above": func(t *testing.T, path string) {
			parent := filepath.Dir(path)
			require.NoError(t, os.Rename(parent, parent+".old"))
			require.NoError(t, os.Symlink(parent+".old", parent))
		},
		"gone": func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) },
		"a file now": func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.WriteFile(path, nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			root, err := filepath.EvalSymlinks(t.TempDir())
			require.NoError(t, err)
			path := filepath.Join(root, "parent", "work")
			require.NoError(t, os.MkdirAll(path, 0o755))
			w, err := CheckWorkspace(path, Host{UID: os.Geteuid()})
			require.NoError(t, err)
			require.NoError(t, w.Recheck())
			change(t, path)
			require.Error(t, w.Recheck())
		})
	}
}
