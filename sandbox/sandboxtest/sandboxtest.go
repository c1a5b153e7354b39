// Package sandboxtest lets tests use real gVisor sandboxes, and counts what they leave.
package sandboxtest

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"patio/sandbox/image"
	"patio/sandbox/namespace"
	"patio/sandbox/runsc"
)

// Tools are what a sandbox test needs, all real.
type Tools struct {
	Root       string // of the repository
	Executable string // bin/patio
	Runsc      string
	Image      image.Image
}

// systemImages is where root's images are.
const systemImages = "/var/lib/patio/images"

// Require returns the tools (PATIO_TEST_IMAGE names another image than this version's), or skips the test with the reason. Under
// PATIO_REQUIRE_SANDBOX=1 it fails instead.
func Require(t testing.TB) Tools {
	t.Helper()
	missing := t.Skipf
	if os.Getenv("PATIO_REQUIRE_SANDBOX") == "1" {
		missing = t.Fatalf
	}
	_, file, _, _ := runtime.Caller(0)
	root := filepath.Dir(filepath.Dir(filepath.Dir(file)))
	if dir := os.Getenv("PATIO_TEST_ROOT"); dir != "" {
		root = dir
	}
	tools := Tools{Root: root, Executable: filepath.Join(root, "bin", "patio")}
	if _, err := os.Stat(tools.Executable); err != nil {
		missing("no sandbox tests: %v: run `make setup`", err)
	}
	var err error
	if tools.Runsc, err = runsc.Find(tools.Executable); err != nil {
		missing("no sandbox tests: %v", err)
	}
	dirs := []string{systemImages}
	if home, err := os.UserHomeDir(); err == nil {
		dirs = append([]string{filepath.Join(home, ".local", "share", "patio", "images")}, dirs...)
	}
	store := image.Store{Dirs: dirs}
	if tools.Image, err = store.Resolve(os.Getenv("PATIO_TEST_IMAGE")); err != nil {
		missing("no sandbox tests: %v", err)
	}
	if _, _, err := namespace.Subordinate(os.Geteuid()); err != nil {
		missing("no sandbox tests: %v", err)
	}
	if f, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0); err != nil {
		missing("no sandbox tests: %v", err)
	} else {
		_ = f.Close()
	}
	return tools
}

// leakTimeout is how long the kernel may take to drop what a test left to it.
const leakTimeout = 15 * time.Second

// CheckLeaks fails the test if, at its end, anything of patio's is left whose name has one
// of the marks: a session's id, or a directory of the test's own. Tests of other packages
// run beside it. Marks are asked for at the end.
func CheckLeaks(t testing.TB, marks func() []string) {
	t.Helper()
	t.Cleanup(func() {
		names := marks()
		deadline := time.Now().Add(leakTimeout)
		for {
			left := slices.DeleteFunc(Count(), func(thing string) bool {
				return !slices.ContainsFunc(names, func(mark string) bool { return strings.Contains(thing, mark) })
			})
			if len(left) == 0 {
				return
			}
			if time.Now().After(deadline) {
				t.Errorf("left behind:\n%s", strings.Join(left, "\n"))
				return
			}
			time.Sleep(20 * time.Millisecond) // polls the kernel, with a deadline
		}
	})
}

// Count lists patio's own things that exist on this machine now.
func Count() []string {
	var found []string
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range procs {
		b, err := os.ReadFile(filepath.Join(p, "cmdline"))
		if err != nil {
			continue
		}
		argv := strings.Split(string(b), "\x00")
		name := filepath.Base(argv[0])
		supervise := name == "patio" && len(argv) > 1 && argv[1] == "supervise"
		if name == "patio-namespace-init" || strings.HasPrefix(name, "runsc") || supervise {
			if stat, err := os.ReadFile(filepath.Join(p, "stat")); err == nil && !strings.Contains(string(stat), ") Z ") {
				found = append(found, "process "+filepath.Base(p)+" "+strings.Join(argv, " "))
			}
		}
	}
	for _, pattern := range []string{"/sys/fs/cgroup/patio/*", "/sys/fs/cgroup/*/patio/*", "/sys/fs/cgroup/*/*/patio/*", "/sys/fs/cgroup/user.slice/*/*/patio/*"} {
		dirs, _ := filepath.Glob(pattern)
		for _, d := range dirs {
			if fi, err := os.Stat(d); err == nil && fi.IsDir() {
				found = append(found, "cgroup "+d)
			}
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, "runsc") {
			found = append(found, "mount "+strings.TrimSpace(line))
		}
	}
	return found
}
