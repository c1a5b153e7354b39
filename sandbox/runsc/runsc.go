// Package runsc is the command line of gVisor's runsc, typed. It builds argument lists
// and reads what runsc prints; it starts nothing.
package runsc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrMissing means that no runsc was found.
var ErrMissing = errors.New("runsc is missing")

// Find returns the path of the runsc that belongs to this patio: PATIO_RUNSC, or the
// one beside the executable as `make setup` or a package puts it. A runsc from
// elsewhere on PATH isn't taken: distributions ship versions that are years old, and a
// sandbox is only as good as the version it was tested with.
func Find(executable string) (string, error) {
	if p := os.Getenv("PATIO_RUNSC"); p != "" {
		if err := executableFile(p); err != nil {
			return "", fmt.Errorf("%w: PATIO_RUNSC: %w", ErrMissing, err)
		}
		return filepath.Abs(p)
	}
	p := filepath.Join(filepath.Dir(filepath.Dir(executable)), "libexec", "patio", "runsc")
	if err := executableFile(p); err != nil {
		return "", fmt.Errorf("%w at %s: run `make setup` in patio's source tree, or set PATIO_RUNSC", ErrMissing, p)
	}
	return p, nil
}

func executableFile(path string) error {
	fi, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !fi.Mode().IsRegular() || fi.Mode()&0o111 == 0 {
		return &fs.PathError{Op: "exec", Path: path, Err: errors.New("not an executable file")}
	}
	return nil
}

// Command is a runsc with its global flags.
type Command struct {
	Path string // of the runsc binary
	Root string // where this sandbox's state and control socket are
	Log  string // file for runsc's own log; "" is none
	// Platform is how system calls are caught: systrap or kvm.
	Platform string
	Debug    bool
}

// Platforms.
const (
	Systrap = "systrap"
	KVM     = "kvm"
)

func (c Command) argv(sub ...string) []string {
	argv := []string{
		c.Path,
		"--root=" + c.Root,
		"--platform=" + c.Platform,
		// The gateway's TAP is scraped from the network namespace that runsc runs in.
		"--network=sandbox",
		// sandbox/limits owns the cgroup, so that it also covers the namespaces' init.
		"--ignore-cgroups",
		// No host socket and no host FIFO can be reached through a mount.
		"--host-uds=none",
		"--host-fifo=none",
		// Bind mounts write through; the rootfs has an overlay of its own (see Plan.Spec).
		"--overlay2=none",
		// Both ends are on one machine, joined by memory: frames can't be damaged.
		"--rx-checksum-offload=true",
		// Advice about the host's sysctls isn't news for each session: doctor gives it.
		"--host-settings=ignore",
		// A gofer needs no network; in a user namespace the shared null namespace can't be kept.
		"--gofer-network-namespace=host",
	}
	if c.Log != "" {
		argv = append(argv, "--log="+c.Log, "--log-format=text", "--panic-log="+c.Log+".panic")
	}
	if c.Debug {
		argv = append(argv, "--debug", "--debug-log="+c.Log+".debug.%COMMAND%")
	}
	return append(argv, sub...)
}

// Run creates and starts a container from bundle, writes the sandbox's process id to
// pidFile and ends, leaving the sandbox with the descriptors it was given.
func (c Command) Run(id, bundle, pidFile string) []string {
	return c.argv("run", "--detach", "--bundle="+bundle, "--pid-file="+pidFile, id)
}

// ExecOptions say how a program runs inside a container.
type ExecOptions struct {
	Cwd  string
	User string // UID:GID
	Env  []string
	// PIDFile is where runsc writes the program's process id inside.
	PIDFile string
	Argv    []string
}

// Exec runs a program inside a running container in the foreground. Its exit code is
// the program's.
func (c Command) Exec(id string, o ExecOptions) []string {
	args := []string{"exec", "--user=" + o.User, "--cwd=" + o.Cwd, "--internal-pid-file=" + o.PIDFile}
	for _, kv := range o.Env {
		args = append(args, "--env="+kv)
	}
	return c.argv(append(append(args, id), o.Argv...)...)
}

// Kill sends a signal to every process of a container.
func (c Command) Kill(id, signal string) []string { return c.argv("kill", "--all", id, signal) }

// Pause stops every process of a container where it is; Resume lets them go on.
func (c Command) Pause(id string) []string { return c.argv("pause", id) }

// Resume is Pause's inverse.
func (c Command) Resume(id string) []string { return c.argv("resume", id) }

// KillProcess sends a signal to one process, by its id inside.
func (c Command) KillProcess(id string, pid int, signal string) []string {
	return c.argv("kill", fmt.Sprintf("--pid=%d", pid), id, signal)
}

// Events prints a container's statistics every interval seconds, one JSON a line.
func (c Command) Events(id string, interval int) []string {
	return c.argv("events", fmt.Sprintf("--interval=%d", interval), id)
}

// Processes prints a container's processes as JSON.
func (c Command) Processes(id string) []string { return c.argv("ps", "--format=json", id) }

// Version prints runsc's version.
func (c Command) Version() []string { return []string{c.Path, "--version"} }
