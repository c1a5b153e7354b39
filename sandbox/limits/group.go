package limits

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// parentName is the cgroup that holds those of all sessions of one caller.
const parentName = "patio"

// ErrNoCgroup is returned by what needs a cgroup when the session has none; SampleTree works without.
var ErrNoCgroup = errors.New("the session has no cgroup")

// Options say what Open shall make.
type Options struct {
	// Name of the session, unique on this machine: letters, digits, dot, dash, underscore.
	Name   string
	Limits Limits
	Log    *slog.Logger
	// Parent is the cgroup, as a path in every hierarchy, below which patio/<Name> is made. Empty means that of the calling
	// process or, on version 2, the nearest one around it that can hand on the controllers: limits that were put on
	// the caller then hold for the session too.
	Parent string
	// Systemd, when set, is asked for a scope of our own on version 2 before any place in the existing tree is tried: cgroups
	// in a tree that systemd manages belong below a delegated unit. Open then moves the calling process into that
	// scope, so set it in the supervisor only.
	Systemd ScopeStarter
	// CPUs is the number of processors that gVisor will see, for Limits.HostPids; zero means this machine's.
	CPUs int
	// Root is the directory at or below which cgroup file systems are looked for, by default /sys/fs/cgroup.
	Root string
	// ProcRoot is the proc file system, by default /proc.
	ProcRoot string

	kernel cgroupfs
}

// directory is one cgroup of a group: version 1 has one for each controller.
type directory struct {
	version     int
	controllers []string
	path        string
	mount       string
}

// Group is the cgroup of one session. Its methods may be called from several goroutines. Without a usable cgroup file
// system a Group exists too: Add and Close do nothing then, and the others return ErrNoCgroup.
type Group struct {
	log    *slog.Logger
	kernel cgroupfs
	dirs   []directory
	// parents were made, or found, by Open; Close removes those that are empty.
	parents []string

	mu     sync.Mutex
	closed bool
}

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// Open makes the session's cgroup, sets the limits and reads each back. A limit that can't be kept here is in the
// report, and no error; an error means that the name can't be used, and then nothing is left behind.
func Open(ctx context.Context, options Options) (*Group, Report, error) {
	if !validName.MatchString(options.Name) {
		return nil, Report{}, fmt.Errorf("open cgroup: name %q: want letters, digits, dot, dash, underscore, 100 at most", options.Name)
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.Root == "" {
		options.Root = "/sys/fs/cgroup"
	}
	if options.ProcRoot == "" {
		options.ProcRoot = "/proc"
	}
	if options.CPUs <= 0 {
		options.CPUs = runtime.NumCPU()
	}
	if options.kernel == nil {
		options.kernel = kernelFS{}
	}
	b := &builder{
		Options: options,
		group:   &Group{log: options.Log, kernel: options.kernel},
		wants:   wants(options.Limits, options.CPUs),
		entries: make(map[string]Entry),
	}
	if err := b.build(ctx); err != nil {
		return nil, Report{}, errors.Join(fmt.Errorf("open cgroup: %w", err), b.group.Close())
	}
	return b.group, b.report(), nil
}

// builder is an Open under way.
type builder struct {
	Options
	group   *Group
	mode    Mode
	wants   []want
	entries map[string]Entry
	notes   []string
}

func (b *builder) build(ctx context.Context) error {
	hierarchies, err := detect(b.ProcRoot, b.Root)
	if err != nil {
		b.mode = ModeNone
		b.note("%v", err)
		return nil
	}
	b.mode = mode(hierarchies)
	for _, h := range hierarchies {
		if h.version == 1 {
			if err := b.openV1(h); err != nil {
				return err
			}
		}
	}
	for _, h := range hierarchies {
		if h.version == 2 {
			if err := b.openV2(ctx, h); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *builder) note(format string, args ...any) {
	b.notes = append(b.notes, fmt.Sprintf(format, args...))
}

// open tells whether a limit still waits for a controller that keeps it.
func (b *builder) open(w want) bool { return w.bounded() && !b.entries[w.name].Enforced }

// adopt takes a new cgroup into the group and sets the limits that its controllers keep.
func (b *builder) adopt(d directory) {
	b.group.dirs = append(b.group.dirs, d)
	for _, w := range b.wants {
		if !b.open(w) || !slices.Contains(d.controllers, w.controller) {
			continue
		}
		b.entries[w.name] = apply(b.kernel, d, w)
		if w.name == nameMemory && b.entries[w.name].Enforced {
			b.entries[nameSwap] = applySwap(b.kernel, d, w)
		}
	}
}

// refuse records why a controller's limit is not kept, unless a better reason is there.
func (b *builder) refuse(controller, why string) {
	for _, w := range b.wants {
		if _, known := b.entries[w.name]; w.controller == controller && !known {
			b.entries[w.name] = w.refused(why)
		}
	}
}

func (b *builder) report() Report {
	report := Report{Mode: b.mode, Paths: b.group.Paths(), Notes: b.notes}
	for _, w := range b.wants {
		entry, known := b.entries[w.name]
		if !known {
			why := fmt.Sprintf("no %s controller is available here", w.controller)
			if b.mode == ModeNone {
				why = whyNoCgroup
			}
			entry = w.refused(why)
		}
		report.Entries = append(report.Entries, entry)
		if swap, known := b.entries[nameSwap]; known && w.name == nameMemory {
			report.Entries = append(report.Entries, swap)
		}
	}
	report.Entries = append(report.Entries, insideEntries(b.Limits)...)
	for _, entry := range report.Unenforced() {
		b.Log.Warn("limit is not enforced", "limit", entry.Name, "requested", entry.Requested, "why", entry.Why)
	}
	return report
}

// Sessions come and go at once, and the last to go removes the parent: another's Open tries again that often.
const makeAttempts = 20

// make creates parent/patio/<name>. prepare, when set, is run on the cgroup patio before the session's is made.
func (b *builder) make(parent string, prepare func(dir string) error) (string, error) {
	above := filepath.Join(parent, parentName)
	path := filepath.Join(above, b.Name)
	var err error
	for range makeAttempts {
		if err = b.kernel.Mkdir(above); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
		b.group.addParent(above)
		if prepare != nil {
			if err = prepare(above); gone(err) {
				continue
			} else if err != nil {
				return "", err
			}
		}
		err = b.makeLeaf(path)
		if !gone(err) {
			break
		}
	}
	if err != nil {
		return "", err
	}
	return path, nil
}

// errBusy is a session's name that still has processes.
var errBusy = errors.New("a session of this name still has processes; stop it first")

// makeLeaf creates the session's own cgroup. One that a crashed supervisor left is replaced, as its limits and counters
// are not ours.
func (b *builder) makeLeaf(path string) error {
	err := b.kernel.Mkdir(path)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	pids, err := processes(path)
	if err != nil {
		return err
	}
	if len(pids) > 0 {
		return fmt.Errorf("%s: %w", path, errBusy)
	}
	if err := removeTree(b.kernel, path); err != nil {
		return err
	}
	return b.kernel.Mkdir(path)
}

func (g *Group) addParent(path string) {
	if !slices.Contains(g.parents, path) {
		g.parents = append(g.parents, path)
	}
}

// Paths lists the group's directories, to be given to Reap when the supervisor could not close it.
func (g *Group) Paths() []string {
	paths := make([]string, 0, len(g.dirs))
	for _, d := range g.dirs {
		paths = append(paths, d.path)
	}
	return paths
}

// Add moves a process into the group; what it starts from then on is in it as well. Its present children are not moved.
func (g *Group) Add(pid int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return fmt.Errorf("add process %d to cgroup: %w", pid, os.ErrClosed)
	}
	if pid <= 0 {
		return fmt.Errorf("add process %d to cgroup: not a process", pid)
	}
	for _, d := range g.dirs {
		if err := g.kernel.Write(filepath.Join(d.path, "cgroup.procs"), strconv.Itoa(pid)); err != nil {
			if errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("add process %d to cgroup: it has ended: %w", pid, os.ErrProcessDone)
			}
			return fmt.Errorf("add process %d to cgroup: %w", pid, err)
		}
	}
	return nil
}

// Processes lists the processes in the group, as this process's pid namespace numbers them.
func (g *Group) Processes() ([]int, error) {
	if len(g.dirs) == 0 {
		return nil, ErrNoCgroup
	}
	return processes(g.Paths()...)
}

// find returns the group's directory that has a controller.
func (g *Group) find(controller string) (directory, bool) {
	for _, d := range g.dirs {
		if slices.Contains(d.controllers, controller) {
			return d, true
		}
	}
	return directory{}, false
}
