package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"patio/engine"
	"patio/sandbox/image"
	"patio/sandbox/namespace"
	"patio/sandbox/runsc"
)

const (
	tunDevice  = "/dev/net/tun"
	cgroupRoot = "/sys/fs/cgroup"
)

// machine is what doctor asks of the machine it runs on. Nothing of it changes anything.
type machine struct {
	os, arch string
	uid      int
	dirs     engine.Dirs

	// sysctl reads a value below /proc/sys, "" when it isn't there.
	sysctl        func(name string) string
	lookPath      func(string) (string, error)
	findRunsc     func() (string, error)
	runscVersion  func(ctx context.Context, path string) (string, error)
	image         func() (image.Image, error)
	subordinate   func(uid int) (uids, gids namespace.Range, err error)
	tryNamespaces func(context.Context) error
	openTUN       func() error
	// cgroups names the layout, "" for none, and tells whether a cgroup can be made.
	cgroups   func() (mode string, writable bool)
	freeSpace func(dir string) (uint64, error)
	writable  func(dir string) error
}

// sudo writes a command as the caller has to run it.
func (m *machine) sudo(command string) string {
	if m.uid == 0 {
		return command
	}
	return "sudo " + command
}

func (a *app) thisMachine() (*machine, error) {
	dirs, err := engine.UserDirs()
	if err != nil {
		return nil, err
	}
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find patio's own executable: %w", err)
	}
	e, err := a.engine()
	if err != nil {
		return nil, err
	}
	return &machine{
		os: runtime.GOOS, arch: runtime.GOARCH, uid: os.Geteuid(), dirs: dirs,
		sysctl: func(name string) string {
			b, err := os.ReadFile(filepath.Join("/proc/sys", name))
			if err != nil {
				return ""
			}
			return strings.TrimSpace(string(b))
		},
		lookPath:     lookPath,
		findRunsc:    func() (string, error) { return runsc.Find(executable) },
		runscVersion: runscVersion,
		image: func() (image.Image, error) {
			store := e.Store()
			return store.Resolve("")
		},
		subordinate:   namespace.Subordinate,
		tryNamespaces: tryNamespaces,
		openTUN: func() error {
			f, err := os.OpenFile(tunDevice, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			return f.Close()
		},
		cgroups:   cgroupLayout,
		freeSpace: freeSpace,
		writable: func(dir string) error {
			existing, err := nearest(dir)
			if err != nil {
				return err
			}
			return unix.Access(existing, unix.W_OK)
		},
	}, nil
}

// lookPath also looks where an ordinary user's PATH often doesn't: some of the programs
// are an administrator's.
func lookPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/local/sbin", "/usr/sbin", "/sbin"} {
		if p, sbinErr := exec.LookPath(filepath.Join(dir, name)); sbinErr == nil {
			return p, nil
		}
	}
	return "", err
}

// tryNamespaces starts a program that ends at once, in namespaces like a sandbox's.
func tryNamespaces(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/true")
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	return cmd.Run()
}

// cgroupLayout tells what is mounted. Which limits hold is known only when a session has
// set and read them back; inspect shows that.
func cgroupLayout() (mode string, writable bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(cgroupRoot, &st); err != nil {
		return "", false
	}
	if st.Type == unix.CGROUP2_SUPER_MAGIC {
		own, err := ownCgroup()
		return "cgroup v2", err == nil && unix.Access(filepath.Join(cgroupRoot, own), unix.W_OK) == nil
	}
	for _, controller := range []string{"memory", "cpu", "pids"} {
		dir := filepath.Join(cgroupRoot, controller)
		if err := unix.Statfs(dir, &st); err != nil || st.Type != unix.CGROUP_SUPER_MAGIC {
			continue
		}
		if mode = "cgroup v1"; unix.Access(dir, unix.W_OK) == nil {
			return mode, true
		}
	}
	return mode, false
}

// ownCgroup is the version 2 cgroup of this process.
func ownCgroup() (string, error) {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(b)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return path, nil
		}
	}
	return "", errors.New("this process is in no cgroup of version 2")
}

// nearest is dir or the closest directory above it that is there.
func nearest(dir string) (string, error) {
	for {
		_, err := os.Stat(dir)
		if err == nil || !isMissing(err) || dir == filepath.Dir(dir) {
			return dir, err
		}
		dir = filepath.Dir(dir)
	}
}

// freeSpace is how much an ordinary user may still write where dir is or will be.
func freeSpace(dir string) (uint64, error) {
	existing, err := nearest(dir)
	if err != nil {
		return 0, err
	}
	var st unix.Statfs_t
	if err := unix.Statfs(existing, &st); err != nil {
		return 0, fmt.Errorf("look at the file system of %s: %w", existing, err)
	}
	return st.Bavail * uint64(st.Bsize), nil
}
