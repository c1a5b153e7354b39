package cli

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"patio/engine"
	"patio/engine/api"
	"patio/sandbox/image"
	"patio/sandbox/namespace"
	"patio/sandbox/runsc"
)

// healthyMachine has everything.
func healthyMachine() *machine {
	return &machine{
		os: "linux", arch: "amd64", uid: 1000,
		dirs:         engine.Dirs{State: "/s", Data: "/d", Cache: "/c", Runtime: "/run/user/1000/patio"},
		sysctl:       func(name string) string { return map[string]string{"kernel/osrelease": "6.1.0"}[name] },
		lookPath:     func(name string) (string, error) { return "/usr/bin/" + name, nil },
		findRunsc:    func() (string, error) { return "/x/runsc", nil },
		runscVersion: func(context.Context, string) (string, error) { return "release-1", nil },
		image: func() (image.Image, error) {
			return image.Image{Manifest: image.Manifest{Digest: "0123456789abcdef", Versions: map[string]string{"pi": "0.84.2", "node": "24"}}}, nil
		},
		subordinate: func(int) (namespace.Range, namespace.Range, error) {
			return namespace.Range{Start: 100000, Size: 65536}, namespace.Range{Start: 100000, Size: 65536}, nil
		},
		tryNamespaces: func(context.Context) error { return nil },
		openTUN:       func() error { return nil },
		cgroups:       func() (string, bool) { return "cgroup v2", true },
		freeSpace:     func(string) (uint64, error) { return 100 << 30, nil },
		writable:      func(string) error { return nil },
	}
}

func TestDoctor(t *testing.T) {
	noImage := func(m *machine) {
		m.image = func() (image.Image, error) { return image.Image{}, image.ErrNoImage }
	}
	for name, c := range map[string]struct {
		spoil  func(*machine)
		check  string
		status status
		want   string // in the detail or the fix
		code   api.Code
	}{
		"healthy":        {func(*machine) {}, "runsc", statusOK, "release-1", ""},
		"another system": {func(m *machine) { m.os = "darwin" }, "machine", statusFail, "darwin", api.CodeUnsupported},
		"no runsc":       {func(m *machine) { m.findRunsc = func() (string, error) { return "", runsc.ErrMissing } }, "runsc", statusFail, "make setup", api.CodeMissing},
		"broken runsc": {func(m *machine) {
			m.runscVersion = func(context.Context, string) (string, error) { return "", errors.New("exec format error") }
		}, "runsc", statusFail, "exec format", api.CodeMissing},
		"no image":       {noImage, "image", statusFail, "patio image build", api.CodeMissing},
		"no build tools": {func(m *machine) { m.lookPath = func(string) (string, error) { return "", exec.ErrNotFound } }, "image tools", statusWarn, "apt-get install erofs-utils mmdebstrap", ""},
		"neither tools": {func(m *machine) {
			noImage(m)
			m.lookPath = func(string) (string, error) { return "", exec.ErrNotFound }
		}, "image tools", statusFail, "sudo apt-get install", api.CodeMissing},
		"no uidmap": {func(m *machine) {
			m.subordinate = func(int) (a, b namespace.Range, err error) { return a, b, namespace.ErrNoIDMapper }
		}, "id mapping", statusFail, "sudo apt-get install uidmap", api.CodeMissing},
		"no subuid": {func(m *machine) {
			m.subordinate = func(int) (a, b namespace.Range, err error) {
				return a, b, &namespace.SubordinateError{File: "/etc/subuid", Line: "u:100000:65536"}
			}
		}, "id mapping", statusFail, "echo u:100000:65536 | sudo tee -a /etc/subuid", api.CodeMissing},
		"no user namespaces": {func(m *machine) {
			m.sysctl = func(n string) string { return map[string]string{"user/max_user_namespaces": "0"}[n] }
		}, "user namespaces", statusFail, "user.max_user_namespaces", api.CodeUnsupported},
		"clone forbidden": {func(m *machine) {
			m.sysctl = func(n string) string { return map[string]string{"kernel/unprivileged_userns_clone": "0"}[n] }
		}, "user namespaces", statusFail, "kernel.unprivileged_userns_clone=1", api.CodeUnsupported},
		"clone refused": {func(m *machine) { m.tryNamespaces = func(context.Context) error { return syscall.EPERM } }, "user namespaces", statusFail, "operation not permitted", api.CodeUnsupported},
		"apparmor": {func(m *machine) {
			m.sysctl = func(n string) string {
				return map[string]string{"kernel/apparmor_restrict_unprivileged_userns": "1"}[n]
			}
		}, "user namespaces", statusWarn, "apparmor_restrict_unprivileged_userns=0", ""},
		"tun is root's": {func(m *machine) {
			m.openTUN = func() error { return &fs.PathError{Op: "open", Path: tunDevice, Err: fs.ErrPermission} }
		}, "network device", statusFail, "sudo chmod 0666 /dev/net/tun", api.CodeUnsupported},
		"no tun": {func(m *machine) {
			m.openTUN = func() error { return &fs.PathError{Op: "open", Path: tunDevice, Err: fs.ErrNotExist} }
		}, "network device", statusFail, "sudo modprobe tun", api.CodeUnsupported},
		"no cgroups":       {func(m *machine) { m.cgroups = func() (string, bool) { return "", false } }, "limits", statusWarn, "no cgroups", ""},
		"cgroups not ours": {func(m *machine) { m.cgroups = func() (string, bool) { return "cgroup v2", false } }, "limits", statusWarn, "not writable", ""},
		"disk nearly full": {func(m *machine) { m.freeSpace = func(string) (uint64, error) { return 1 << 20, nil } }, "disk space", statusWarn, "1.0 MiB", ""},
		"no room to build": {func(m *machine) { noImage(m); m.freeSpace = func(string) (uint64, error) { return 1 << 30, nil } }, "disk space", statusWarn, "1.0 GiB", api.CodeMissing},
		"long socket path": {func(m *machine) { m.dirs.Runtime = "/" + strings.Repeat("x", 100) }, "directories", statusFail, "XDG_RUNTIME_DIR", api.CodeUnsupported},
		"not writable":     {func(m *machine) { m.writable = func(string) error { return fs.ErrPermission } }, "directories", statusFail, "permission denied", api.CodeUnsupported},
		"both kinds": {func(m *machine) {
			noImage(m)
			m.openTUN = func() error { return fs.ErrPermission }
		}, "image", statusFail, "no such image", api.CodeUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			m := healthyMachine()
			c.spoil(m)
			h, code := examine(t.Context(), m)
			require.Equal(t, c.code, code)
			require.Equal(t, c.code == "", h.OK)
			for _, f := range h.Checks {
				if f.Name == c.check {
					require.Equal(t, c.status, f.Status)
					require.Contains(t, f.Detail+"\n"+f.Meaning+"\n"+f.Fix, c.want)
					return
				}
			}
			require.Fail(t, "no such check", c.check)
		})
	}
}

func TestDoctorText(t *testing.T) {
	m := healthyMachine()
	m.openTUN = func() error { return &fs.PathError{Op: "open", Path: tunDevice, Err: fs.ErrPermission} }
	m.cgroups = func() (string, bool) { return "", false }
	h, _ := examine(t.Context(), m)
	var b bytes.Buffer
	require.NoError(t, writeHealth(&b, h))
	requireSafe(t, b.String())
	requireGolden(t, "doctor.txt", b.Bytes())
}

func TestRootNeedsNoSudo(t *testing.T) {
	m := healthyMachine()
	m.uid = 0
	m.lookPath = func(string) (string, error) { return "", exec.ErrNotFound }
	f := checkBuildTools(t.Context(), m)
	require.True(t, strings.HasPrefix(f.Fix, "apt-get install"), f.Fix)
}
