package limits

import (
	"fmt"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
)

const (
	kib = int64(1) << 10
	mib = int64(1) << 20
	gib = int64(1) << 30
)

// Limits is what one session may use. A zero field means "no limit".
//
// Memory, Pids and CPUs are held by the host's cgroup; Pids, OpenFiles and FileSize also by gVisor itself, as rlimits
// of the sandboxed process; TmpSize and TmpInodes by the tmpfs that gVisor mounts at /tmp.
type Limits struct {
	// Memory in bytes, for what runs inside. /tmp counts: its files live in the sandbox's memory.
	Memory int64 `json:"memory"`
	// MemoryHeadroom in bytes, on top of Memory, for gVisor itself.
	MemoryHeadroom int64 `json:"memoryHeadroom"`
	// Pids is how many tasks may exist inside at once. A thread is a task, as for RLIMIT_NPROC.
	Pids int64 `json:"pids"`
	// CPUs is processor time per wall time: 1.5 is one and a half cores.
	CPUs float64 `json:"cpus"`
	// OpenFiles is RLIMIT_NOFILE, per process.
	OpenFiles uint64 `json:"openFiles"`
	// FileSize in bytes is RLIMIT_FSIZE: the largest file that a process inside may write.
	FileSize uint64 `json:"fileSize"`
	// TmpSize in bytes of the sandbox's /tmp.
	TmpSize int64 `json:"tmpSize"`
	// TmpInodes is how many files and directories /tmp may hold.
	TmpInodes int64 `json:"tmpInodes"`
}

const (
	// A coding agent plus a compiler, a test run and a type checker fit in 4 GiB; more than half of the machine would
	// push the user's editor and browser into swap.
	defaultMemory = 4 * gib
	// Node alone takes some 200 MiB and a TypeScript build several times that: below this Pi hardly starts.
	leastDefaultMemory = 1 * gib
	// The sentry and the gofer take about 100 MiB, page tables and stub processes grow with what runs inside, and page
	// cache of the image is charged here too. It is a limit, not a reservation, so it is generous: were it short, the
	// kernel would kill the sentry for memory that the sandboxed programs had been promised.
	defaultHeadroom = 512 * mib
	// Node has about ten threads, a parallel build on a laptop a few hundred tasks. A fork bomb ends here.
	defaultPids = 1024
	// Bundlers and test runners hold some thousands of files open; distributions give 1024 soft, and 10,000 is a leak.
	defaultOpenFiles = 4096
	// Larger than any source file, lockfile, binary or usual git pack, smaller than a laptop's free disk.
	defaultFileSize = uint64(4 * gib)
	// /tmp is memory: a quarter of the default memory leaves the rest to programs.
	defaultTmpSize = 1 * gib
	// An inode costs about a KiB of the sentry's heap, which the tmpfs size does not count: 256 Ki of them stay within
	// the headroom, and an unpacked node_modules tree has about 100,000.
	defaultTmpInodes = 256 * kib
)

// Default returns the limits for a machine with hostMemory bytes and cpus logical processors. A hostMemory of zero
// means unknown.
func Default(hostMemory int64, cpus int) Limits {
	memory := defaultMemory
	if hostMemory > 0 {
		memory = min(memory, max(hostMemory/2, min(leastDefaultMemory, hostMemory)))
	}
	return Limits{
		Memory:         memory,
		MemoryHeadroom: defaultHeadroom,
		Pids:           defaultPids,
		CPUs:           defaultCPUs(cpus),
		OpenFiles:      defaultOpenFiles,
		FileSize:       defaultFileSize,
		TmpSize:        min(defaultTmpSize, memory/4),
		TmpInodes:      defaultTmpInodes,
	}
}

// defaultCPUs leaves one processor to the desktop, or on a small machine a quarter of it: the terminal that shows the
// session must stay responsive while a build inside takes everything that it may.
func defaultCPUs(cpus int) float64 {
	switch {
	case cpus <= 0:
		return 0
	case cpus < 4:
		return float64(cpus) * 0.75
	default:
		return float64(cpus - 1)
	}
}

const (
	// Tasks of the host that a session has besides its stubs: the namespace's init, gofers with their threads, and the
	// sentry, whose Go runtime adds a thread for every goroutine that sits in a system call.
	hostPidsBase = 512
)

// HostPids is the number of tasks that the host's cgroup must admit so that Pids inside is reached first.
//
// gVisor's systrap gives each address space inside a stub: one process for system calls and up to one more for each
// processor, none of them sharing a thread group and none ended before the address space is. In the worst case every
// task inside is a process of its own, and each of them is in an exec, which holds a second address space for a moment. The
// host limit is a net below the exact one inside (RLIMIT_NPROC, kept by the sentry): were it reached first, the sentry
// would fail to make a stub, which it answers by ending the sandbox.
func (l Limits) HostPids(cpus int) int64 {
	if l.Pids <= 0 {
		return 0
	}
	return l.Pids*int64(max(cpus, 1)+2) + hostPidsBase
}

// HostMemory is the number of bytes that the host's cgroup admits, or zero for no limit.
func (l Limits) HostMemory() int64 {
	if l.Memory <= 0 {
		return 0
	}
	return l.Memory + max(l.MemoryHeadroom, 0)
}

// Rlimits are the limits that gVisor keeps for the sandboxed process, for the OCI spec. Soft and hard are equal, so
// that no process inside can raise them.
func (l Limits) Rlimits() []specs.POSIXRlimit {
	var rlimits []specs.POSIXRlimit
	add := func(kind string, value uint64) {
		if value > 0 {
			rlimits = append(rlimits, specs.POSIXRlimit{Type: kind, Soft: value, Hard: value})
		}
	}
	add("RLIMIT_NOFILE", l.OpenFiles)
	add("RLIMIT_FSIZE", l.FileSize)
	add("RLIMIT_NPROC", uint64(max(l.Pids, 0)))
	return rlimits
}

// TmpOptions are the mount options that bound the sandbox's /tmp.
func (l Limits) TmpOptions() []string {
	var options []string
	if l.TmpSize > 0 {
		options = append(options, fmt.Sprintf("size=%d", l.TmpSize))
	}
	if l.TmpInodes > 0 {
		options = append(options, fmt.Sprintf("nr_inodes=%d", l.TmpInodes))
	}
	return options
}

// String lists the limits as Parse reads them.
func (l Limits) String() string {
	settings := make([]string, 0, len(keys))
	for _, k := range keys {
		settings = append(settings, k.name+"="+k.get(l))
	}
	return strings.Join(settings, " ")
}
