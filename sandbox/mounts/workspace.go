package mounts

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrRefused means that policy forbids the path as a mount.
var ErrRefused = errors.New("refused as a workspace")

// Host is what a decision on a path needs to know about this machine.
type Host struct {
	UID int
	// Homes are home directories, the caller's first.
	Homes []string
	// Private are directories of patio itself, and of other programs that the caller knows.
	Private []string
}

// Workspace is a directory that a session may work in.
type Workspace struct {
	Path     string // physical: no symbolic link in it
	UID, GID uint32 // its owner
	Device   uint64
	Inode    uint64
}

// system are directories of the operating system. Nothing below them is a project, but
// for what /var, /usr and /srv may hold deeper down.
var system = []string{
	"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/lost+found", "/proc", "/sbin", "/sys",
}

// crowded are directories that belong to many: a workspace may be in them, not be them.
var crowded = []string{"/", "/home", "/media", "/mnt", "/opt", "/root", "/run/media", "/srv", "/tmp", "/usr", "/usr/local", "/var", "/var/lib", "/var/tmp", "/usr/src"}

// inImage are directories whose content in the image is needed inside: a mount would
// hide it. Of /usr, /usr/local and /usr/src may hold projects.
var inImage = []string{"/opt/pi", "/usr/local/bin", "/usr/local/lib", "/usr/local/sbin", "/usr/local/share"}

// inHome are directories of a home that hold credentials or another program's state.
// Nothing below them is a workspace.
var inHome = []string{
	".pi", ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".mozilla", ".thunderbird",
	".paseo", ".claude", ".codex", ".gemini", ".npm", ".cargo", ".gem", ".pki",
	".config/gcloud", ".config/gh", ".config/op", ".config/sops", ".config/rclone", ".config/doctl", ".config/patio",
	".local/share/keyrings", ".local/share/patio", ".local/state/patio", ".cache/patio",
}

// crowdedInHome are directories of a home that belong to many programs: a project (dot
// files are one) may be in them.
var crowdedInHome = []string{".config", ".local", ".local/share", ".local/state", ".local/bin", ".cache"}

// CheckWorkspace decides whether dir can be a session's workspace, and returns it with
// its physical path: a session's cwd is what the kernel calls it, and so is every path
// in Pi's transcript.
func CheckWorkspace(dir string, h Host) (Workspace, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Workspace{}, fmt.Errorf("workspace: %w", err)
	}
	path, err := filepath.EvalSymlinks(abs)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return Workspace{}, fmt.Errorf("workspace %q doesn't exist: %w", abs, fs.ErrNotExist)
		}
		return Workspace{}, fmt.Errorf("workspace: %w", err)
	}
	if err := refuse(path, h); err != nil {
		return Workspace{}, err
	}
	w, err := open(path)
	if err != nil {
		return Workspace{}, err
	}
	if h.UID != 0 && int(w.UID) != h.UID {
		return Workspace{}, fmt.Errorf("workspace %q belongs to uid %d, not to you: files made inside couldn't be yours", path, w.UID)
	}
	if err := unix.Access(path, unix.W_OK|unix.X_OK); err != nil {
		return Workspace{}, fmt.Errorf("workspace %q isn't writable for you: %w", path, err)
	}
	return w, nil
}

// open looks at the directory by descriptor, without following a link that took the
// path's place meanwhile.
func open(path string) (Workspace, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
	if errors.Is(err, syscall.ENOSYS) {
		fd, err = unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return Workspace{}, fmt.Errorf("open workspace %q: %w", path, err)
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return Workspace{}, fmt.Errorf("open workspace %q: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return Workspace{}, fmt.Errorf("workspace %q isn't a directory", path)
	}
	return Workspace{Path: path, UID: st.Uid, GID: st.Gid, Device: st.Dev, Inode: st.Ino}, nil
}

// Recheck fails when another directory has taken the workspace's place.
func (w Workspace) Recheck() error {
	now, err := open(w.Path)
	if err != nil {
		return err
	}
	if now.Device != w.Device || now.Inode != w.Inode {
		return fmt.Errorf("workspace %q was replaced by another directory since it was checked", w.Path)
	}
	return nil
}

func refuse(path string, h Host) error {
	no := func(why string) error { return fmt.Errorf("%q is %w: %s", path, ErrRefused, why) }
	if slices.Contains(crowded, path) {
		return no("it holds much more than one project; choose the project's own directory")
	}
	for _, dir := range system {
		if within(path, dir) {
			return no("it belongs to the operating system")
		}
	}
	if within(path, "/run") && !within(path, "/run/media") {
		return no("it holds sockets and other state of running programs")
	}
	for _, dir := range inImage {
		if within(path, dir) {
			return no("it would hide programs that the sandbox needs")
		}
	}
	if within(path, "/usr") && !within(path, "/usr/local") && !within(path, "/usr/src") {
		return no("it would hide programs that the sandbox needs")
	}
	for _, home := range h.Homes {
		if within(home, path) {
			return no("a home directory holds credentials and other programs' state; choose a directory in it")
		}
		for _, name := range inHome {
			if within(path, filepath.Join(home, name)) {
				return no("~/" + name + " may hold credentials or another program's state")
			}
		}
		for _, name := range crowdedInHome {
			if path == filepath.Join(home, name) {
				return no("~/" + name + " belongs to many programs; choose a directory in it")
			}
		}
	}
	for _, dir := range h.Private {
		if within(path, dir) || within(dir, path) {
			return no(dir + " holds state of patio or of another program")
		}
	}
	return nil
}

// within reports whether path is dir or lies in it. Both are clean and absolute.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
