package limits

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Usage is what a session's cgroup has used. Numbers that this machine does not keep are zero, and Missing names them.
type Usage struct {
	Time time.Time `json:"time"`

	// Bytes. Current includes page cache, of which the kernel takes back Reclaimable when memory runs short.
	MemoryCurrent     int64 `json:"memoryCurrent"`
	MemoryReclaimable int64 `json:"memoryReclaimable"`
	MemoryPeak        int64 `json:"memoryPeak"`
	// MemoryLimit is zero when there is none.
	MemoryLimit int64 `json:"memoryLimit"`
	// MemoryLimitHits counts how often the group ran into its limit and the kernel had to reclaim. Version 1 counts none
	// where swap is limited too: the group runs into that limit first, and recent kernels don't count there.
	MemoryLimitHits int64 `json:"memoryLimitHits"`
	// OOMKills counts processes that were killed because reclaiming did not help.
	OOMKills int64 `json:"oomKills"`

	CPUTotal  time.Duration `json:"cpuTotal"`
	CPUUser   time.Duration `json:"cpuUser"`
	CPUSystem time.Duration `json:"cpuSystem"`
	// CPULimit is the number of processors, zero for no limit.
	CPULimit float64 `json:"cpuLimit"`
	// Periods that the group was runnable in, those in which it used up its share, and how long it then stood.
	Periods          int64         `json:"periods"`
	ThrottledPeriods int64         `json:"throttledPeriods"`
	Throttled        time.Duration `json:"throttled"`

	// Tasks of the host, not of the sandbox.
	PidsCurrent int64 `json:"pidsCurrent"`
	PidsLimit   int64 `json:"pidsLimit"`
	// PidsRefused counts forks that failed at the limit.
	PidsRefused int64 `json:"pidsRefused"`

	// Bytes that went to and came from block devices.
	ReadBytes  int64 `json:"readBytes"`
	WriteBytes int64 `json:"writeBytes"`

	Missing []string `json:"missing,omitempty"`
}

// Stats reads the group's counters. They start at zero when Open made the group, and stay after the processes have gone,
// until Close.
func (g *Group) Stats() (Usage, error) {
	if len(g.dirs) == 0 {
		return Usage{}, ErrNoCgroup
	}
	g.mu.Lock()
	closed := g.closed
	g.mu.Unlock()
	if closed {
		return Usage{}, fmt.Errorf("read cgroup counters: %w", os.ErrClosed)
	}
	r := &reader{usage: Usage{Time: time.Now()}, have: make(map[string]bool)}
	for _, d := range g.dirs {
		if d.version == 1 {
			r.readV1(d)
		} else {
			r.readV2(d)
		}
	}
	for _, measure := range []string{"memory", "cpu", "throttling", "pids", "io"} {
		if !r.have[measure] {
			r.usage.Missing = append(r.usage.Missing, measure)
		}
	}
	if len(r.failed) > 0 {
		return r.usage, fmt.Errorf("read cgroup counters: %w", errors.Join(r.failed...))
	}
	return r.usage, nil
}

// reader gathers the counters of one group from all its directories.
type reader struct {
	usage  Usage
	have   map[string]bool
	failed []error
}

// number reads a control file into target. One that this kernel does not have is left out; any other failure is told.
func (r *reader) number(target *int64, dir, name string) bool {
	n, err := readNumber(filepath.Join(dir, name))
	if err != nil {
		r.fail(err)
		return false
	}
	*target = n
	return true
}

func (r *reader) flat(dir, name string) map[string]int64 {
	values, err := readFlat(filepath.Join(dir, name))
	if err != nil {
		r.fail(err)
	}
	return values
}

func (r *reader) fail(err error) {
	if !gone(err) {
		r.failed = append(r.failed, err)
	}
}

func (r *reader) readV1(d directory) {
	u := &r.usage
	if slices.Contains(d.controllers, "memory") {
		r.have["memory"] = r.number(&u.MemoryCurrent, d.path, "memory.usage_in_bytes")
		r.number(&u.MemoryPeak, d.path, "memory.max_usage_in_bytes")
		r.number(&u.MemoryLimit, d.path, "memory.limit_in_bytes")
		r.number(&u.MemoryLimitHits, d.path, "memory.failcnt")
		u.OOMKills = r.flat(d.path, "memory.oom_control")["oom_kill"]
		stat := r.flat(d.path, "memory.stat")
		u.MemoryReclaimable = stat["total_inactive_file"] + stat["total_active_file"]
	}
	if slices.Contains(d.controllers, "cpuacct") {
		var total, user, system int64
		r.have["cpu"] = r.number(&total, d.path, "cpuacct.usage")
		r.number(&user, d.path, "cpuacct.usage_user")
		r.number(&system, d.path, "cpuacct.usage_sys")
		u.CPUTotal, u.CPUUser, u.CPUSystem = time.Duration(total), time.Duration(user), time.Duration(system)
	}
	if slices.Contains(d.controllers, "cpu") {
		stat := r.flat(d.path, "cpu.stat")
		r.have["throttling"] = stat != nil
		u.Periods, u.ThrottledPeriods, u.Throttled = stat["nr_periods"], stat["nr_throttled"], time.Duration(stat["throttled_time"])
		u.CPULimit, _ = readQuota(d.path) // Without a limit to read there is none to show.
	}
	if slices.Contains(d.controllers, "pids") {
		r.pids(d.path)
	}
	if slices.Contains(d.controllers, "blkio") {
		r.transfers(filepath.Join(d.path, "blkio.throttle.io_service_bytes_recursive"), func(fields []string) {
			// "8:0 Read 4096"
			if len(fields) == 3 {
				r.transfer(fields[1], fields[2])
			}
		})
	}
}

func (r *reader) readV2(d directory) {
	u := &r.usage
	if slices.Contains(d.controllers, "memory") {
		r.have["memory"] = r.number(&u.MemoryCurrent, d.path, "memory.current")
		r.number(&u.MemoryPeak, d.path, "memory.peak") // Since Linux 5.19.
		r.number(&u.MemoryLimit, d.path, "memory.max")
		events := r.flat(d.path, "memory.events")
		u.MemoryLimitHits, u.OOMKills = events["max"], events["oom_kill"]
		stat := r.flat(d.path, "memory.stat")
		u.MemoryReclaimable = stat["inactive_file"] + stat["active_file"]
	}
	// Processor time is counted even where the cpu controller is not handed on.
	stat := r.flat(d.path, "cpu.stat")
	if _, counted := stat["usage_usec"]; counted && !r.have["cpu"] {
		r.have["cpu"] = true
		u.CPUTotal, u.CPUUser, u.CPUSystem = microseconds(stat["usage_usec"]), microseconds(stat["user_usec"]), microseconds(stat["system_usec"])
	}
	if slices.Contains(d.controllers, "cpu") {
		r.have["throttling"] = stat != nil
		u.Periods, u.ThrottledPeriods, u.Throttled = stat["nr_periods"], stat["nr_throttled"], microseconds(stat["throttled_usec"])
		u.CPULimit, _ = readCPUMax(d.path) // Without a limit to read there is none to show.
	}
	if slices.Contains(d.controllers, "pids") {
		r.pids(d.path)
	}
	r.transfers(filepath.Join(d.path, "io.stat"), func(fields []string) {
		// "8:0 rbytes=4096 wbytes=0 rios=1 …"
		for _, field := range fields {
			name, value, _ := strings.Cut(field, "=")
			r.transfer(name, value)
		}
	})
}

func microseconds(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

func (r *reader) pids(dir string) {
	r.have["pids"] = r.number(&r.usage.PidsCurrent, dir, "pids.current")
	r.number(&r.usage.PidsLimit, dir, "pids.max")
	r.usage.PidsRefused = r.flat(dir, "pids.events")["max"]
}

func (r *reader) transfers(path string, line func(fields []string)) {
	data, err := os.ReadFile(path)
	if err != nil {
		r.fail(err)
		return
	}
	r.have["io"] = true
	for text := range strings.Lines(string(data)) {
		line(strings.Fields(text))
	}
}

func (r *reader) transfer(direction, text string) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return
	}
	switch strings.ToLower(direction) {
	case "read", "rbytes":
		r.usage.ReadBytes += n
	case "write", "wbytes":
		r.usage.WriteBytes += n
	}
}
