package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"patio/sandbox/limits"
	"patio/sandbox/namespace"
	"patio/sandbox/network"
	"patio/sandbox/runsc"
)

// tapName is the network device's name inside.
const tapName = "eth0"

// Options are what a sandbox is started with besides its plan.
type Options struct {
	Plan Plan
	// Dir is a private directory on the host for the sandbox's own files. It must exist;
	// Start fills it, Close empties it.
	Dir string
	// Executable is the patio binary, Runsc the runsc binary.
	Executable, Runsc string
	// Files become the program's 0, 1 and 2. They are duplicated: the caller closes its own.
	Stdin, Stdout, Stderr *os.File
	// Network configures the gateway; Start sets TAP and MTU.
	Network network.Config
	// OwnScope lets the calling process be moved into a cgroup scope of systemd's, where a
	// plain user gets limits too. Only a supervisor, which lives for one sandbox, may.
	OwnScope bool
	Debug    bool
	Log      *slog.Logger
}

// Sandbox is a running gVisor sandbox. Close ends it and removes everything that Start
// made. Its methods may be called from several goroutines.
type Sandbox struct {
	plan    Plan
	dir     string
	runsc   runsc.Command
	ns      *namespace.Namespaces
	group   *limits.Group
	report  limits.Report
	gateway *network.Gateway
	process *namespace.Process
	log     *slog.Logger

	execs atomic.Uint64

	once sync.Once
	err  error
}

// Start makes the namespaces, the cgroup and the gateway, in this order, and then lets
// runsc start the plan's program. When it fails nothing is left.
func Start(ctx context.Context, o Options) (_ *Sandbox, err error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Sandbox{plan: o.Plan, dir: o.Dir, log: o.Log}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if err := s.prepare(o); err != nil {
		return nil, err
	}
	group := limits.Options{Name: o.Plan.ID, Limits: o.Plan.Limits, Log: o.Log}
	if o.OwnScope {
		group.Systemd = limits.Systemd{}
	}
	if s.group, s.report, err = limits.Open(ctx, group); err != nil {
		return nil, fmt.Errorf("set limits: %w", err)
	}
	if err := s.startNamespaces(ctx, o); err != nil {
		return nil, err
	}
	// Everything inside descends from the init process, so its cgroup is theirs.
	if err := s.group.Add(s.ns.Pid()); err != nil {
		return nil, fmt.Errorf("set limits: %w", err)
	}
	o.Network.TAP, o.Network.MTU, o.Network.Log = s.ns.TAP(), network.DefaultMTU, o.Log
	if s.gateway, err = network.New(o.Network); err != nil {
		return nil, err
	}
	if err := s.run(ctx, o); err != nil {
		return nil, err
	}
	return s, nil
}

// prepare writes runsc's bundle.
func (s *Sandbox) prepare(o Options) error {
	s.runsc = runsc.Command{Path: o.Runsc, Root: filepath.Join(o.Dir, "runsc"), Log: filepath.Join(o.Dir, "runsc.log"), Platform: o.Plan.Platform, Debug: o.Debug}
	spec, err := json.MarshalIndent(o.Plan.Spec(), "", "  ")
	if err != nil {
		return fmt.Errorf("encode OCI spec: %w", err)
	}
	for _, dir := range []string{s.runsc.Root, filepath.Join(s.bundle(), "rootfs")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("make bundle: %w", err)
		}
	}
	// The spec holds the environment, secrets included.
	if err := os.WriteFile(filepath.Join(s.bundle(), "config.json"), spec, 0o600); err != nil {
		return fmt.Errorf("write OCI spec: %w", err)
	}
	return own(o.Dir, o.Plan.Owner)
}

// own gives a tree to the plan's owner: root's files would be out of reach in the user
// namespace of a workspace that isn't root's.
func own(dir string, o Owner) error {
	if os.Geteuid() != 0 || o.UID == 0 {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(o.UID), int(o.GID)) //nolint:gosec // G122: the tree was just made, in a private directory
	})
}

func (s *Sandbox) bundle() string { return filepath.Join(s.dir, "bundle") }

func (s *Sandbox) startNamespaces(ctx context.Context, o Options) error {
	uids, gids, err := namespace.Subordinate(os.Geteuid())
	if err != nil {
		return err
	}
	s.ns, err = namespace.Start(ctx, namespace.Options{
		Name:       o.Plan.ID,
		Executable: o.Executable,
		UIDs:       namespace.Map(o.Plan.Owner.UID, uids),
		GIDs:       namespace.Map(o.Plan.Owner.GID, gids),
		TAP:        tapName,
		Log:        o.Log,
	})
	return err
}

// runscEnv is the environment of every runsc: nothing of the caller's.
var runscEnv = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR=/tmp"}

// run starts the container and leaves it running, adopted by the init process.
func (s *Sandbox) run(ctx context.Context, o Options) error {
	pidFile := filepath.Join(s.dir, "pid")
	p, err := s.ns.Start(ctx, namespace.Command{
		Argv: s.runsc.Run(s.plan.ID, s.bundle(), pidFile), Env: runscEnv,
		Files: []*os.File{o.Stdin, o.Stdout, o.Stderr},
	})
	if err != nil {
		return err
	}
	status, err := p.Wait(ctx)
	if err != nil {
		return fmt.Errorf("start sandbox: %w", err)
	}
	// The spec has been read. Its environment is in runsc's own state from here on, in the
	// same private directory, which ends with the sandbox.
	if err := os.Remove(filepath.Join(s.bundle(), "config.json")); err != nil {
		return fmt.Errorf("remove OCI spec: %w", err)
	}
	if status.ExitStatus() != 0 {
		return fmt.Errorf("start sandbox: %w", s.runscError(status))
	}
	b, err := os.ReadFile(pidFile)
	if err != nil {
		return fmt.Errorf("start sandbox: %w", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return fmt.Errorf("start sandbox: %w", err)
	}
	if s.process, err = s.ns.Adopt(pid); err != nil {
		return fmt.Errorf("watch sandbox: %w", err)
	}
	return nil
}

// runscError finds in runsc's log why it failed.
func (s *Sandbox) runscError(status syscall.WaitStatus) error {
	f, err := os.Open(s.runsc.Log)
	if err != nil {
		return fmt.Errorf("runsc ended with status %d and left no log: %w", status.ExitStatus(), err)
	}
	defer func() { _ = f.Close() }()
	// The reason is the last thing that runsc says.
	const tail = 8 << 10
	if fi, err := f.Stat(); err == nil && fi.Size() > tail {
		_, _ = f.Seek(-tail, io.SeekEnd)
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	text := strings.TrimSpace(string(b))
	if lines := strings.Split(text, "\n"); len(lines) > 3 {
		text = strings.Join(lines[len(lines)-3:], "\n")
	}
	return fmt.Errorf("runsc ended with status %d: %s", status.ExitStatus(), text)
}

// Limits tells which limits hold, and by what.
func (s *Sandbox) Limits() limits.Report { return s.report }

// Wait returns when the program inside has ended.
func (s *Sandbox) Wait(ctx context.Context) (syscall.WaitStatus, error) { return s.process.Wait(ctx) }

// Done is closed when the program inside has ended.
func (s *Sandbox) Done() <-chan struct{} { return s.process.Done() }

// Gateway is the sandbox's only way out.
func (s *Sandbox) Gateway() *network.Gateway { return s.gateway }

// Group is the sandbox's cgroup.
func (s *Sandbox) Group() *limits.Group { return s.group }

// InitPid is the id on the host of the process that everything inside descends from.
func (s *Sandbox) InitPid() int { return s.ns.Pid() }

// Close kills everything inside, then removes the gateway, the namespaces, the cgroup
// and the files, and returns what could not be removed.
func (s *Sandbox) Close() error {
	s.once.Do(func() {
		var errs []error
		if s.ns != nil {
			errs = append(errs, s.ns.Close())
		}
		if s.gateway != nil {
			errs = append(errs, s.gateway.Close())
		}
		if s.group != nil {
			errs = append(errs, s.group.Close())
		}
		for _, name := range []string{"bundle", "runsc", "pid"} {
			errs = append(errs, os.RemoveAll(filepath.Join(s.dir, name)))
		}
		for _, pattern := range []string{"runsc.log*", "exec-*"} {
			files, err := filepath.Glob(filepath.Join(s.dir, pattern))
			errs = append(errs, err)
			for _, f := range files {
				errs = append(errs, os.Remove(f))
			}
		}
		s.err = errors.Join(errs...)
	})
	return s.err
}
