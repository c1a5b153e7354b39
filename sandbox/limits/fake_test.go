package limits

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// fakeMachine models the cgroup file systems of a machine with real files in a temporary directory.
type fakeMachine struct {
	t *testing.T
	// root stands for /sys/fs/cgroup, proc for /proc.
	root, proc string
	mounts     []fakeMount
	// own holds lines of /proc/self/cgroup.
	own []string
	// deny are directories that the user may not write; what is below is judged by its own nearest entry, of which
	// allow are the writable ones.
	deny, allow []string
	readOnly    bool
	// refuse are file names whose writing fails with EINVAL.
	refuse []string
	// onWrite, when set, sees each write that went well.
	onWrite func(path, data string)
}

type fakeMount struct {
	dir         string
	version     int
	controllers []string
}

func newFake(t *testing.T) *fakeMachine {
	t.Helper()
	base := t.TempDir()
	f := &fakeMachine{t: t, root: filepath.Join(base, "cgroup"), proc: filepath.Join(base, "proc")}
	require.NoError(t, os.MkdirAll(f.root, 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(f.proc, "self"), 0o755))
	f.save()
	return f
}

// save writes what /proc tells about the machine.
func (f *fakeMachine) save() {
	f.t.Helper()
	var lines []string
	line := func(dir, kind, options string) {
		lines = append(lines, fmt.Sprintf("%d 1 0:30 / %s rw,nosuid shared:9 - %s cgroup %s", 30+len(lines), dir, kind, options))
	}
	line("/", "ext4", "rw")
	for _, m := range f.mounts {
		if m.version == 1 {
			line(m.dir, "cgroup", "rw,"+strings.Join(m.controllers, ","))
		} else {
			line(m.dir, "cgroup2", "rw,nsdelegate,memory_recursiveprot")
		}
	}
	f.file(filepath.Join(f.proc, "self", "mountinfo"), strings.Join(lines, "\n")+"\n")
	f.file(filepath.Join(f.proc, "self", "cgroup"), strings.Join(f.own, "\n")+"\n")
}

func (f *fakeMachine) file(path, data string) {
	f.t.Helper()
	require.NoError(f.t, os.WriteFile(path, []byte(data), 0o644))
}

// v1 mounts a version 1 hierarchy at root/<name>.
func (f *fakeMachine) v1(name string, controllers ...string) {
	f.t.Helper()
	f.mount(fakeMount{dir: filepath.Join(f.root, name), version: 1, controllers: controllers})
}

// v2 mounts the version 2 hierarchy; name is empty for the root itself.
func (f *fakeMachine) v2(name string, controllers ...string) {
	f.t.Helper()
	f.mount(fakeMount{dir: filepath.Join(f.root, name), version: 2, controllers: controllers})
}

func (f *fakeMachine) mount(m fakeMount) {
	f.t.Helper()
	f.mounts = append(f.mounts, m)
	require.NoError(f.t, os.MkdirAll(m.dir, 0o755))
	f.fill(m, m.dir, m.controllers)
	// The root of version 2 has no type, and no limits.
	for _, name := range []string{"cgroup.type", "memory.max", "cpu.max", "pids.max"} {
		if m.version == 2 {
			require.NoError(f.t, os.RemoveAll(filepath.Join(m.dir, name)))
		}
	}
	f.save()
}

// group makes a cgroup as root would, with procs in it; subtree are controllers that a version 2 one hands on.
func (f *fakeMachine) group(dir string, subtree, procs string) string {
	f.t.Helper()
	path := filepath.Join(f.root, dir)
	readOnly, deny := f.readOnly, f.deny
	f.readOnly, f.deny = false, nil
	require.NoError(f.t, f.Mkdir(path))
	f.readOnly, f.deny = readOnly, deny
	if subtree != "" {
		f.file(filepath.Join(path, "cgroup.subtree_control"), subtree+"\n")
	}
	f.file(filepath.Join(path, "cgroup.procs"), procs)
	return path
}

// fill makes the files that the kernel would in a new cgroup.
func (f *fakeMachine) fill(m fakeMount, dir string, controllers []string) {
	f.t.Helper()
	files := map[string]string{"cgroup.procs": ""}
	if m.version == 2 {
		maps.Copy(files, map[string]string{
			"cgroup.type": "domain", "cgroup.controllers": "", "cgroup.subtree_control": "", "cgroup.kill": "", "cpu.stat": coreStat,
		})
	}
	for name, data := range files {
		f.file(filepath.Join(dir, name), data+"\n")
	}
	for _, controller := range controllers {
		f.offer(m, dir, controller)
	}
}

// offer gives a cgroup one more controller.
func (f *fakeMachine) offer(m fakeMount, dir, controller string) {
	f.t.Helper()
	for name, data := range controllerFiles[fmt.Sprintf("%d %s", m.version, controller)] {
		f.file(filepath.Join(dir, name), data+"\n")
	}
	if m.version == 2 {
		path := filepath.Join(dir, "cgroup.controllers")
		f.file(path, strings.Join(append(readWords(path), controller), " ")+"\n")
	}
}

const coreStat = "usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000"

var controllerFiles = map[string]map[string]string{
	"1 memory": {
		"memory.limit_in_bytes":       "9223372036854771712",
		"memory.memsw.limit_in_bytes": "9223372036854771712",
		"memory.usage_in_bytes":       "1000",
		"memory.max_usage_in_bytes":   "2000",
		"memory.failcnt":              "3",
		"memory.oom_control":          "oom_kill_disable 0\nunder_oom 0\noom_kill 1",
		"memory.stat":                 "total_inactive_file 10\ntotal_active_file 5",
	},
	"1 pids":    {"pids.max": "max", "pids.current": "7", "pids.events": "max 4"},
	"1 cpu":     {"cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000", "cpu.stat": "nr_periods 9\nnr_throttled 2\nthrottled_time 3000"},
	"1 cpuacct": {"cpuacct.usage": "5000000", "cpuacct.usage_user": "3000000", "cpuacct.usage_sys": "2000000"},
	"1 freezer": {"freezer.state": "THAWED"},
	"1 blkio":   {"blkio.throttle.io_service_bytes_recursive": "8:0 Read 4096\n8:0 Write 512\n8:16 Read 4\nTotal 4612"},
	"2 memory": {
		"memory.max":       "max",
		"memory.swap.max":  "max",
		"memory.oom.group": "0",
		"memory.current":   "1000",
		"memory.peak":      "2000",
		"memory.events":    "low 0\nhigh 0\nmax 3\noom 1\noom_kill 1\noom_group_kill 0",
		"memory.stat":      "anon 900\ninactive_file 10\nactive_file 5",
	},
	"2 pids": {"pids.max": "max", "pids.current": "7", "pids.events": "max 4"},
	"2 cpu":  {"cpu.max": "max 100000", "cpu.stat": coreStat + "\nnr_periods 9\nnr_throttled 2\nthrottled_usec 3"},
	"2 io":   {"io.stat": "8:0 rbytes=4096 wbytes=512 rios=1 wios=1 dbytes=0 dios=0\n8:16 rbytes=4 wbytes=0"},
}

func (f *fakeMachine) mountOf(path string) fakeMount {
	for _, m := range f.mounts {
		if within(path, m.dir) && (m.dir != f.root || m.version == 2) {
			return m
		}
	}
	f.t.Fatalf("%s is in no cgroup file system", path)
	return fakeMount{}
}

func (f *fakeMachine) denied(path string) bool {
	for dir := path; within(dir, f.root); dir = filepath.Dir(dir) {
		if slices.Contains(f.allow, dir) {
			return false
		}
		if slices.Contains(f.deny, dir) {
			return true
		}
	}
	return false
}

func (f *fakeMachine) may(op, path, object string) error {
	if f.readOnly {
		return &fs.PathError{Op: op, Path: path, Err: unix.EROFS}
	}
	if f.denied(object) {
		return &fs.PathError{Op: op, Path: path, Err: unix.EACCES}
	}
	return nil
}

func (f *fakeMachine) Mkdir(path string) error {
	if err := f.may("mkdir", path, filepath.Dir(path)); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		return err
	}
	m := f.mountOf(path)
	controllers := m.controllers
	if m.version == 2 {
		controllers = readWords(filepath.Join(filepath.Dir(path), "cgroup.subtree_control"))
	}
	f.fill(m, path, controllers)
	return nil
}

func (f *fakeMachine) Rmdir(path string) error {
	if err := f.may("rmdir", path, filepath.Dir(path)); err != nil {
		return err
	}
	if !exists(path) {
		return &fs.PathError{Op: "rmdir", Path: path, Err: unix.ENOENT}
	}
	pids, err := readProcs(path)
	if err != nil || len(pids) > 0 || len(children(path)) > 0 {
		return &fs.PathError{Op: "rmdir", Path: path, Err: unix.EBUSY}
	}
	return os.RemoveAll(path)
}

func (f *fakeMachine) Write(path, data string) error {
	if err := f.may("open", path, path); err != nil {
		return err
	}
	if !exists(path) {
		return &fs.PathError{Op: "open", Path: path, Err: unix.ENOENT}
	}
	name := filepath.Base(path)
	if slices.Contains(f.refuse, name) {
		return &fs.PathError{Op: "write", Path: path, Err: unix.EINVAL}
	}
	switch name {
	case "cgroup.subtree_control":
		controller := strings.TrimPrefix(data, "+")
		dir := filepath.Dir(path)
		if !slices.Contains(readWords(filepath.Join(dir, "cgroup.controllers")), controller) {
			return &fs.PathError{Op: "write", Path: path, Err: unix.ENOENT}
		}
		if pids, _ := readProcs(dir); len(pids) > 0 && exists(filepath.Join(dir, "cgroup.type")) {
			return &fs.PathError{Op: "write", Path: path, Err: unix.EBUSY}
		}
		for _, child := range children(dir) {
			f.offer(f.mountOf(child), child, controller)
		}
		data = strings.Join(append(readWords(path), controller), " ")
	case "cgroup.procs":
		f.leave(data)
		old, _ := os.ReadFile(path)
		data = string(old) + data
	case "cgroup.kill":
		for _, dir := range subtree(filepath.Dir(path)) {
			f.file(filepath.Join(dir, "cgroup.procs"), "")
		}
	}
	f.file(path, data+"\n")
	if f.onWrite != nil {
		f.onWrite(path, data)
	}
	return nil
}

// leave takes a process out of the cgroup of the version 2 hierarchy that it was in.
func (f *fakeMachine) leave(pid string) {
	for _, m := range f.mounts {
		if m.version != 2 {
			continue
		}
		for _, dir := range subtree(m.dir) {
			path := filepath.Join(dir, "cgroup.procs")
			words := readWords(path)
			if i := slices.Index(words, pid); i >= 0 {
				f.file(path, strings.Join(slices.Delete(words, i, i+1), "\n")+"\n")
			}
		}
	}
}

func (f *fakeMachine) Writable(path string) bool { return !f.readOnly && !f.denied(path) }

func (f *fakeMachine) options(l Limits) Options {
	return Options{Name: "s1", Limits: l, CPUs: 2, Root: f.root, ProcRoot: f.proc, kernel: f}
}

func (f *fakeMachine) read(path string) string {
	f.t.Helper()
	line, err := readLine(path)
	require.NoError(f.t, err)
	return line
}

// tree lists the cgroups on the machine, to see that none was left.
func (f *fakeMachine) tree() []string {
	var dirs []string
	for _, m := range f.mounts {
		dirs = append(dirs, subtree(m.dir)...)
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}
