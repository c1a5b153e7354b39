package limits

import (
	"fmt"
	"math"
)

// Report tells what became of each limit.
type Report struct {
	Mode Mode `json:"mode"`
	// Paths are the cgroup's directories, to be kept with the session's state and given to Reap after a crash.
	Paths   []string `json:"paths,omitempty"`
	Entries []Entry  `json:"limits"`
	// Notes are facts about the cgroup as a whole, such as why a better place was not to be had.
	Notes []string `json:"notes,omitempty"`
}

// Entry is one limit. Requested and Effective are in the units of Limits, as Parse reads them.
type Entry struct {
	Name      string `json:"name"`
	Requested string `json:"requested"`
	// Effective is the value read back, or "unknown" when the limit is kept where this package can't look.
	Effective string `json:"effective"`
	Enforced  bool   `json:"enforced"`
	// By names what enforces it: "cgroup v1 memory", "rlimit inside (gVisor)", "tmpfs (gVisor)", "none".
	By string `json:"by"`
	// Why says why it is not enforced, or what to know about it when it is.
	Why string `json:"why,omitempty"`
}

// Entry returns the entry of a limit by name.
func (r Report) Entry(name string) (Entry, bool) {
	for _, entry := range r.Entries {
		if entry.Name == name {
			return entry, true
		}
	}
	return Entry{}, false
}

// Unenforced lists the limits that were asked for and are not kept by anything.
func (r Report) Unenforced() []Entry {
	var entries []Entry
	for _, entry := range r.Entries {
		if !entry.Enforced && entry.Requested != unlimited {
			entries = append(entries, entry)
		}
	}
	return entries
}

const (
	byNone   = "none"
	byRlimit = "rlimit inside (gVisor)"
	byTmpfs  = "tmpfs (gVisor)"

	// What gVisor keeps can only be read back from inside.
	unknown       = "unknown"
	whySpec       = "set through the launch; read it back from inside"
	whyUnbounded  = "no limit was asked for"
	whyNoCgroup   = "no cgroup file system is mounted"
	nameMemory    = "memory"
	nameSwap      = "swap"
	nameHostPids  = "host pids"
	nameCPUs      = "cpus"
	nameInsidePID = "pids"
)

// insideEntries reports the limits that gVisor keeps by itself, with or without cgroups.
func insideEntries(l Limits) []Entry {
	inside := func(name, requested, by string) Entry {
		if requested == unlimited {
			return Entry{Name: name, Requested: requested, Effective: unlimited, By: byNone, Why: whyUnbounded}
		}
		return Entry{Name: name, Requested: requested, Effective: unknown, Enforced: true, By: by, Why: whySpec}
	}
	return []Entry{
		inside(nameInsidePID, formatCount(l.Pids), byRlimit),
		inside("files", formatCount(int64(min(l.OpenFiles, math.MaxInt64))), byRlimit),
		inside("fsize", formatSize(int64(min(l.FileSize, math.MaxInt64))), byRlimit),
		inside("tmp", formatSize(l.TmpSize), byTmpfs),
		inside("tmp-inodes", formatCount(l.TmpInodes), byTmpfs),
	}
}

// want is one limit that a cgroup shall keep.
type want struct {
	name       string
	controller string
	value      float64
	format     func(float64) string
}

func (w want) bounded() bool { return w.value > 0 }

func wants(l Limits, cpus int) []want {
	size := func(v float64) string { return formatSize(int64(v)) }
	count := func(v float64) string { return formatCount(int64(v)) }
	return []want{
		{name: nameMemory, controller: "memory", value: float64(l.HostMemory()), format: size},
		{name: nameHostPids, controller: "pids", value: float64(l.HostPids(cpus)), format: count},
		{name: nameCPUs, controller: "cpu", value: l.CPUs, format: formatCPUs},
	}
}

// refused is the entry of a limit that no cgroup keeps.
func (w want) refused(why string) Entry {
	entry := Entry{Name: w.name, Requested: w.format(w.value), Effective: unlimited, By: byNone, Why: why}
	if !w.bounded() {
		entry.Why = whyUnbounded
	}
	return entry
}

// kept is the entry of a limit that was written and read back as effective; outer is the cgroup that allows less than
// this one, if any.
func (w want) kept(effective float64, by, outer string) Entry {
	entry := Entry{Name: w.name, Requested: w.format(w.value), Effective: w.format(effective), By: by}
	switch {
	case effective <= 0:
		entry.Effective, entry.By = unlimited, byNone
		entry.Why = "the kernel took the value but reads back none"
	case effective > w.value*1.001:
		// Rounding of a quota to whole microseconds is no difference.
		entry.Why = fmt.Sprintf("the kernel keeps %s, more than was asked for", entry.Effective)
	default:
		entry.Enforced = true
		if outer != "" {
			entry.Why = "an outer cgroup allows less: " + outer
		}
	}
	return entry
}
