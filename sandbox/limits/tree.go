package limits

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Role is what a process of a session's tree is for.
type Role string

// The roles, in the order in which a session's processes descend from each other.
const (
	RoleSupervisor Role = "supervisor" // patio itself, and the init of the namespaces, which is patio too
	RoleRunsc      Role = "runsc"      // the runsc command that waits for its sandbox
	RoleGofer      Role = "gofer"      // serves the host's files to the sentry
	RoleSentry     Role = "sentry"     // gVisor's kernel
	RoleStub       Role = "stub"       // systrap's address spaces, in which sandboxed code runs
	RoleOther      Role = "other"
)

// Process is one process of a tree. Sizes are in bytes.
type Process struct {
	PID    int    `json:"pid"`
	Parent int    `json:"parent"`
	Role   Role   `json:"role"`
	Name   string `json:"name"`
	// Started is in clock ticks since the machine's boot; with PID it names a process for good.
	Started uint64 `json:"started"`
	// Resident counts every page that is mapped, those that it shares as well.
	Resident int64 `json:"resident"`
	// Private is what Resident has besides shared memory and files: it can be summed over processes.
	Private int64         `json:"private"`
	CPU     time.Duration `json:"cpu"`
	Threads int           `json:"threads"`
	// Files are the open file descriptors, -1 when they can't be counted. A stub shares the sentry's table and has 0.
	Files int `json:"files"`
}

// RoleUsage sums up the processes of one role.
type RoleUsage struct {
	Processes int           `json:"processes"`
	Resident  int64         `json:"resident"`
	Private   int64         `json:"private"`
	CPU       time.Duration `json:"cpu"`
	Threads   int           `json:"threads"`
	Files     int           `json:"files"`
}

// TreeUsage is what a process and its descendants use.
//
// The sandbox's memory is one memfd that the sentry maps, and of which each stub maps the parts that its program uses: the
// same page is in the resident size of several processes, so a sum of those says far too much. Memory therefore adds
// up the private pages of all, and the memfd once. The proportional size that smaps_rollup gives would be right too, but the
// kernel walks every page table for it: milliseconds for each GiB, too dear for one sample a second.
type TreeUsage struct {
	Time time.Time `json:"time"`
	// Memory is the best estimate in bytes of what the tree holds.
	Memory int64 `json:"memory"`
	// Sandboxed is the part of Memory that belongs to programs inside: the memfd's size on the host. Zero when it
	// can't be read.
	Sandboxed int64              `json:"sandboxed"`
	CPU       time.Duration      `json:"cpu"`
	Threads   int                `json:"threads"`
	Files     int                `json:"files"`
	Roles     map[Role]RoleUsage `json:"roles"`
	Processes []Process          `json:"processes"`
}

// The unit of times in /proc/<pid>/stat. Linux fixes it at 100 for user space on every architecture that gVisor runs on.
const ticksPerSecond = 100

// SampleTree reads all processes below procRoot (empty means /proc) and sums up root and its descendants, those in pid
// namespaces below this one included. Processes that end meanwhile are left out. A root that is gone is
// os.ErrProcessDone.
func SampleTree(procRoot string, root int) (TreeUsage, error) {
	if procRoot == "" {
		procRoot = "/proc"
	}
	all, err := readStats(procRoot)
	if err != nil {
		return TreeUsage{}, fmt.Errorf("sample processes: %w", err)
	}
	if _, found := all[root]; !found {
		return TreeUsage{}, fmt.Errorf("sample processes: process %d: %w", root, os.ErrProcessDone)
	}
	usage := TreeUsage{Time: time.Now(), Roles: make(map[Role]RoleUsage)}
	shared := int64(0)
	for _, p := range descendants(all, root) {
		if !p.complete(procRoot, usage.Processes) {
			continue
		}
		if p.Role == RoleSentry {
			usage.Sandboxed += sandboxedMemory(procRoot, p.PID)
		}
		shared = max(shared, p.Resident-p.Private)
		usage.add(p)
	}
	if usage.Sandboxed > 0 {
		usage.Memory += usage.Sandboxed
	} else {
		// The largest view of what is shared is the least that there can be.
		usage.Memory += shared
	}
	return usage, nil
}

func (u *TreeUsage) add(p Process) {
	u.Processes = append(u.Processes, p)
	u.Memory += p.Private
	u.CPU += p.CPU
	u.Threads += p.Threads
	u.Files += max(p.Files, 0)
	r := u.Roles[p.Role]
	r.Processes++
	r.Resident += p.Resident
	r.Private += p.Private
	r.CPU += p.CPU
	r.Threads += p.Threads
	r.Files += max(p.Files, 0)
	u.Roles[p.Role] = r
}

// readStats reads the stat file of every process.
func readStats(procRoot string) (map[int]Process, error) {
	directory, err := os.Open(procRoot)
	if err != nil {
		return nil, err
	}
	names, err := directory.Readdirnames(-1)
	_ = directory.Close() // Only read.
	if err != nil {
		return nil, err
	}
	all := make(map[int]Process, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		data, err := os.ReadFile(filepath.Join(procRoot, name, "stat"))
		if err != nil {
			continue // It has ended.
		}
		if p, ok := parseStat(pid, string(data)); ok {
			all[pid] = p
		}
	}
	return all, nil
}

// parseStat reads "pid (name) state ppid …", proc_pid_stat(5). The name may hold blanks and parentheses: what counts is
// the last one.
func parseStat(pid int, line string) (Process, bool) {
	open, end := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return Process{}, false
	}
	fields := strings.Fields(line[end+1:])
	// The manual's number of each field less three: two are cut off, and it counts from one.
	const state, ppid, utime, stime, threads, starttime = 0, 1, 11, 12, 17, 19
	if len(fields) <= starttime || fields[state] == "Z" || fields[state] == "X" {
		return Process{}, false // A zombie uses nothing.
	}
	number := func(field int) uint64 {
		n, _ := strconv.ParseUint(fields[field], 10, 64) // The kernel writes numbers there.
		return n
	}
	return Process{
		PID:     pid,
		Parent:  int(number(ppid)),
		Name:    line[open+1 : end],
		Started: number(starttime),
		CPU:     time.Duration(number(utime)+number(stime)) * (time.Second / ticksPerSecond),
		Threads: int(number(threads)),
	}, true
}

// descendants lists root and what descends from it, parents before children.
func descendants(all map[int]Process, root int) []Process {
	childrenOf := make(map[int][]int)
	for pid, p := range all {
		childrenOf[p.Parent] = append(childrenOf[p.Parent], pid)
	}
	tree := []Process{all[root]}
	seen := map[int]bool{root: true}
	for i := 0; i < len(tree); i++ {
		pids := childrenOf[tree[i].PID]
		slices.Sort(pids)
		for _, pid := range pids {
			// The files are read one after the other: a reused pid could make a circle.
			if !seen[pid] {
				seen[pid] = true
				tree = append(tree, all[pid])
			}
		}
	}
	return tree
}

// complete reads the rest of a process; before holds those above it. It is false when the process has ended.
func (p *Process) complete(procRoot string, before []Process) bool {
	directory := filepath.Join(procRoot, strconv.Itoa(p.PID))
	statm, err := os.ReadFile(filepath.Join(directory, "statm"))
	if err != nil {
		return false
	}
	// "size resident shared …" in pages; shared counts files and shared memory.
	fields := strings.Fields(string(statm))
	if len(fields) >= 3 {
		page := int64(os.Getpagesize())
		resident, _ := strconv.ParseInt(fields[1], 10, 64) // The kernel writes numbers there.
		shared, _ := strconv.ParseInt(fields[2], 10, 64)
		p.Resident, p.Private = resident*page, max(resident-shared, 0)*page
	}
	p.Role = roleOf(directory, *p, before)
	if p.Role == RoleStub {
		return true
	}
	p.Files = -1
	if entries, err := os.ReadDir(filepath.Join(directory, "fd")); err == nil {
		p.Files = len(entries)
	}
	return true
}

// roleOf tells what a process is for. A stub is a fork of the sentry that never executes a program, so it has the sentry's
// arguments, or none: only its place in the tree tells it.
func roleOf(directory string, p Process, before []Process) Role {
	for _, above := range before {
		if above.PID == p.Parent && (above.Role == RoleSentry || above.Role == RoleStub) {
			return RoleStub
		}
	}
	data, err := os.ReadFile(filepath.Join(directory, "cmdline"))
	if err != nil {
		return RoleOther
	}
	argv := strings.Split(strings.TrimRight(string(data), "\x00"), "\x00")
	// runsc names its processes by the first argument.
	switch filepath.Base(argv[0]) {
	case "runsc-sandbox":
		return RoleSentry
	case "runsc-gofer":
		return RoleGofer
	case "runsc":
		return RoleRunsc
	case "patio":
		return RoleSupervisor
	}
	if target, err := os.Readlink(filepath.Join(directory, "exe")); err == nil && filepath.Base(target) == "patio" {
		return RoleSupervisor
	}
	return RoleOther
}

// sandboxedMemory is the size on the host of the memfd that holds a sandbox's memory, zero when it can't be read.
func sandboxedMemory(procRoot string, sentry int) int64 {
	directory := filepath.Join(procRoot, strconv.Itoa(sentry), "fd")
	entries, err := os.ReadDir(directory)
	if err != nil {
		return 0
	}
	var size int64
	seen := make(map[uint64]bool)
	for _, entry := range entries {
		path := filepath.Join(directory, entry.Name())
		target, err := os.Readlink(path)
		if err != nil || !strings.HasPrefix(target, memfdName) {
			continue
		}
		var stat unix.Stat_t
		if err := unix.Stat(path, &stat); err != nil || seen[stat.Ino] || stat.Mode&unix.S_IFMT != unix.S_IFREG {
			continue
		}
		seen[stat.Ino] = true
		size += stat.Blocks * 512
	}
	return size
}

// memfdName begins the link of a file descriptor to gVisor's memory file.
const memfdName = "/memfd:runsc-memory"
