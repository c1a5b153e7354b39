package limits

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"strconv"
	"strings"
)

// The scheduler's own default period. A shorter one throttles more evenly and costs more.
const cpuPeriod = 100_000 // microseconds

// control is how one controller keeps its limit.
type control struct {
	// write sets the limit on a cgroup.
	write func(kernel cgroupfs, dir string, value float64) error
	// read returns the limit of a cgroup, zero for none.
	read func(dir string) (float64, error)
}

// controls are the controllers that this package uses, by cgroup version.
var controls = map[int]map[string]control{
	1: {
		"memory": {write: writeFile("memory.limit_in_bytes", wholePages), read: readFile("memory.limit_in_bytes")},
		"pids":   {write: writeFile("pids.max", whole), read: readFile("pids.max")},
		"cpu":    {write: writeQuota, read: readQuota},
	},
	2: {
		"memory": {write: writeFile("memory.max", wholePages), read: readFile("memory.max")},
		"pids":   {write: writeFile("pids.max", whole), read: readFile("pids.max")},
		"cpu":    {write: writeCPUMax, read: readCPUMax},
	},
}

func whole(value float64) int64 { return int64(value) }

// wholePages rounds down as the kernel does, so that reading back gives what was written.
func wholePages(value float64) int64 { return int64(value) &^ (4*kib - 1) }

func writeFile(name string, convert func(float64) int64) func(cgroupfs, string, float64) error {
	return func(kernel cgroupfs, dir string, value float64) error {
		return kernel.Write(filepath.Join(dir, name), strconv.FormatInt(convert(value), 10))
	}
}

func readFile(name string) func(string) (float64, error) {
	return func(dir string) (float64, error) {
		n, err := readNumber(filepath.Join(dir, name))
		return float64(n), err
	}
}

func quota(cpus float64) int64 { return int64(math.Round(cpus * cpuPeriod)) }

func writeQuota(kernel cgroupfs, dir string, cpus float64) error {
	if err := kernel.Write(filepath.Join(dir, "cpu.cfs_period_us"), strconv.Itoa(cpuPeriod)); err != nil {
		return err
	}
	return kernel.Write(filepath.Join(dir, "cpu.cfs_quota_us"), strconv.FormatInt(quota(cpus), 10))
}

func readQuota(dir string) (float64, error) {
	microseconds, err := readNumber(filepath.Join(dir, "cpu.cfs_quota_us"))
	if err != nil {
		return 0, err
	}
	period, err := readNumber(filepath.Join(dir, "cpu.cfs_period_us"))
	if err != nil || period == 0 {
		return 0, err
	}
	return float64(microseconds) / float64(period), nil
}

func writeCPUMax(kernel cgroupfs, dir string, cpus float64) error {
	return kernel.Write(filepath.Join(dir, "cpu.max"), fmt.Sprintf("%d %d", quota(cpus), cpuPeriod))
}

func readCPUMax(dir string) (float64, error) {
	line, err := readLine(filepath.Join(dir, "cpu.max"))
	if err != nil {
		return 0, err
	}
	left, right, _ := strings.Cut(line, " ")
	microseconds, err := parseNumber(left)
	if err != nil {
		return 0, fmt.Errorf("read cpu.max: %w", err)
	}
	period, err := parseNumber(right)
	if err != nil || period == 0 {
		return 0, err
	}
	return float64(microseconds) / float64(period), nil
}

// apply writes one limit to a cgroup and reads it back, with what the cgroups around it allow.
func apply(kernel cgroupfs, d directory, w want) Entry {
	by := fmt.Sprintf("cgroup v%d %s", d.version, w.controller)
	c := controls[d.version][w.controller]
	if err := c.write(kernel, d.path, w.value); err != nil {
		return w.refused(plain(err))
	}
	effective, err := c.read(d.path)
	if err != nil {
		return w.refused(plain(err))
	}
	own := effective
	outer := ""
	// A limit of an outer cgroup holds for everything in it: the least one is what this session can reach.
	for dir := filepath.Dir(d.path); own > 0 && within(dir, d.mount); dir = filepath.Dir(dir) {
		if limit, err := c.read(dir); err == nil && limit > 0 && limit < effective {
			effective, outer = limit, dir
		}
	}
	return w.kept(effective, by, outer)
}

// applySwap keeps the session from using swap on top of its memory.
func applySwap(kernel cgroupfs, d directory, w want) Entry {
	entry := Entry{Name: nameSwap, Requested: "0", Effective: unlimited, By: byNone}
	file, limit := "memory.swap.max", int64(0)
	if d.version == 1 {
		// Version 1 limits the sum of memory and swap.
		file, limit = "memory.memsw.limit_in_bytes", wholePages(w.value)
	}
	path := filepath.Join(d.path, file)
	err := kernel.Write(path, strconv.FormatInt(limit, 10))
	if errors.Is(err, fs.ErrNotExist) {
		entry.Why = "this kernel does not count swap; the session may be swapped out beyond its memory"
		return entry
	}
	if err != nil {
		entry.Why = plain(err)
		return entry
	}
	line, err := readLine(path)
	if err != nil || line != strconv.FormatInt(limit, 10) {
		entry.Why = fmt.Sprintf("%s reads back %q", file, line)
		return entry
	}
	entry.Effective, entry.Enforced, entry.By = "0", true, fmt.Sprintf("cgroup v%d memory", d.version)
	return entry
}

// within tells whether dir is root or below it.
func within(dir, root string) bool {
	return dir == root || strings.HasPrefix(dir, strings.TrimSuffix(root, "/")+"/")
}

// plain says in a few words why a cgroup can't be changed, and keeps the path.
func plain(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "not permitted: " + err.Error()
	case errors.Is(err, fs.ErrNotExist):
		return "not in this kernel: " + err.Error()
	default:
		return err.Error()
	}
}
