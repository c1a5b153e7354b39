package sandbox

import (
	"fmt"
	"sort"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"patio/sandbox/mounts"
	"patio/sandbox/namespace"
)

// Home is the home directory inside: a private, empty file system in memory.
const Home = "/home/sandbox"

// Spec is the OCI runtime configuration of a plan. It is pure.
//
// No user, network or mount namespace is asked for: runsc runs in namespaces that were
// made for this sandbox alone (see package namespace), as id 0 of them.
func (p Plan) Spec() *specs.Spec {
	rlimits := append(p.Limits.Rlimits(), specs.POSIXRlimit{Type: "RLIMIT_CORE"})
	return &specs.Spec{
		Version:  specs.Version,
		Hostname: "sandbox",
		Process: &specs.Process{
			User:            specs.User{UID: namespace.SandboxID, GID: namespace.SandboxID},
			Args:            p.Argv,
			Env:             p.Env,
			Cwd:             p.Cwd,
			NoNewPrivileges: true,
			// Present and empty: absent would mean runsc's defaults.
			Capabilities: &specs.LinuxCapabilities{},
			Rlimits:      rlimits,
		},
		// Not Readonly: that would switch off the overlay in which mount points are made.
		Root: &specs.Root{Path: "rootfs"},
		Annotations: map[string]string{
			"dev.gvisor.spec.rootfs.source": p.Image.Path,
			"dev.gvisor.spec.rootfs.type":   "erofs",
			// Mount points that the image lacks are made in memory, never on the host. Nobody
			// inside can write to the rootfs (it is root's, and nobody there is root), so
			// little room is enough.
			"dev.gvisor.spec.rootfs.overlay": "memory",
			"dev.gvisor.spec.rootfs.options": "size=16m",
		},
		Mounts: append(p.systemMounts(), p.bindMounts()...),
		Linux: &specs.Linux{
			Namespaces: []specs.LinuxNamespace{
				{Type: specs.PIDNamespace}, {Type: specs.IPCNamespace}, {Type: specs.UTSNamespace},
				{Type: specs.MountNamespace},
				// The namespace that runsc is in: the gateway's TAP is there.
				{Type: specs.NetworkNamespace, Path: "/proc/self/ns/net"},
			},
		},
	}
}

func (p Plan) systemMounts() []specs.Mount {
	memory := func(destination, mode string, options ...string) specs.Mount {
		options = append([]string{"nosuid", "nodev", "mode=" + mode}, options...)
		return specs.Mount{Destination: destination, Type: "tmpfs", Source: "tmpfs", Options: append(options, p.Limits.TmpOptions()...)}
	}
	owned := []string{fmt.Sprintf("uid=%d", namespace.SandboxID), fmt.Sprintf("gid=%d", namespace.SandboxID)}
	return []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "nodev", "noexec"}},
		{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "nodev", "noexec", "ro"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "mode=755", "size=65536"}},
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec"}},
		memory("/dev/shm", "1777"),
		memory("/tmp", "1777"),
		memory("/var/tmp", "1777"),
		memory(Home, "700", owned...),
	}
}

// bindMounts orders host paths so that a parent comes before what lies in it.
func (p Plan) bindMounts() []specs.Mount {
	sorted := append([]mounts.Mount(nil), p.Mounts...)
	sort.SliceStable(sorted, func(i, j int) bool {
		return depth(sorted[i].Destination) < depth(sorted[j].Destination)
	})
	out := make([]specs.Mount, 0, len(sorted))
	for _, m := range sorted {
		out = append(out, specs.Mount{
			Destination: m.Destination, Source: m.Source, Type: "bind",
			Options: []string{"bind", "nosuid", "nodev", string(m.Mode)},
		})
	}
	return out
}

func depth(path string) int { return strings.Count(path, "/") }
