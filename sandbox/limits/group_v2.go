package limits

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// openV2 makes the session's cgroup in the version 2 hierarchy, for the limits that no version 1 hierarchy keeps. Even with
// none left it is worth having: only version 2 kills a whole cgroup at once.
func (b *builder) openV2(ctx context.Context, h hierarchy) error {
	var needed []string
	for _, w := range b.wants {
		if b.open(w) {
			needed = append(needed, w.controller)
		}
	}
	if b.mode == ModeV2 && b.Parent == "" && b.Systemd != nil {
		err := b.openScope(ctx, h, needed)
		if err == nil || errors.Is(err, errBusy) {
			return err
		}
		b.note("no scope from systemd: %v", err)
	}
	places, reasons := b.places(h, needed)
	for _, place := range places {
		path, err := b.make(place.dir, func(above string) error {
			b.enable(place.dir, place.controllers)
			b.enable(above, place.controllers)
			return nil
		})
		if errors.Is(err, errBusy) {
			return err
		}
		if err != nil {
			reasons = append(reasons, plain(err))
			continue
		}
		if b.mode == ModeV2 && !b.kernel.Writable(h.mount) {
			b.mode = ModeV2Delegated
		}
		b.settle(h, path, needed)
		return nil
	}
	for _, controller := range needed {
		b.refuse(controller, whyNoPlace(controller, h, reasons))
	}
	return nil
}

func whyNoPlace(controller string, h hierarchy, reasons []string) string {
	if !slices.Contains(readWords(filepath.Join(h.mount, "cgroup.controllers")), controller) {
		return fmt.Sprintf("the kernel offers no %s controller in %s", controller, h.mount)
	}
	why := "no cgroup around this process is delegated to this user"
	if len(reasons) > 0 {
		why += ": " + strings.Join(reasons, "; ")
	}
	return why
}

// settle adopts a new version 2 cgroup with the controllers that it came to have.
func (b *builder) settle(h hierarchy, path string, needed []string) {
	have := readWords(filepath.Join(path, "cgroup.controllers"))
	b.adopt(directory{version: 2, controllers: have, path: path, mount: h.mount})
	for _, controller := range needed {
		if !slices.Contains(have, controller) {
			b.refuse(controller, fmt.Sprintf("the %s controller is not handed on to %s", controller, filepath.Dir(filepath.Dir(path))))
		}
	}
	if slices.Contains(have, "memory") {
		// A sandbox whose sentry or stub is gone is of no use: all of it ends together, and the reason is clear.
		if err := b.kernel.Write(filepath.Join(path, "memory.oom.group"), "1"); err != nil {
			b.note("out of memory may kill single processes: %v", err)
		}
	}
}

// place is a cgroup below which the session's can be made, with the controllers it can hand on.
type place struct {
	dir         string
	controllers []string
}

// places walks from the process's own cgroup outwards and returns those that this process may use, the most useful first,
// and what spoke against the others.
func (b *builder) places(h hierarchy, needed []string) ([]place, []string) {
	start := h.own
	if b.Parent != "" {
		start = filepath.Join(h.mount, b.Parent)
	}
	var found []place
	var reasons []string
	for dir := start; within(dir, h.mount); dir = filepath.Dir(dir) {
		// To move a process needs the right to write the cgroup.procs of the nearest cgroup around both ends.
		if !b.kernel.Writable(dir) || !b.kernel.Writable(filepath.Join(dir, "cgroup.procs")) {
			reasons = append(reasons, "not writable: "+dir)
		} else {
			controllers, reason := b.available(dir, needed)
			found = append(found, place{dir, controllers})
			if reason != "" {
				reasons = append(reasons, reason)
			}
		}
		if b.Parent != "" || dir == h.mount {
			break
		}
	}
	// Stable: of equals, the nearest.
	slices.SortStableFunc(found, func(a, b place) int { return len(b.controllers) - len(a.controllers) })
	return found, reasons
}

// available lists the needed controllers that a cgroup hands on to its children, or would if asked to.
func (b *builder) available(dir string, needed []string) (controllers []string, reason string) {
	enabled := readWords(filepath.Join(dir, "cgroup.subtree_control"))
	offered := readWords(filepath.Join(dir, "cgroup.controllers"))
	for _, controller := range needed {
		if slices.Contains(enabled, controller) {
			controllers = append(controllers, controller)
			continue
		}
		switch {
		case !slices.Contains(offered, controller):
			reason = fmt.Sprintf("%s has no %s controller", dir, controller)
		case !b.kernel.Writable(filepath.Join(dir, "cgroup.subtree_control")):
			reason = "not writable: " + filepath.Join(dir, "cgroup.subtree_control")
		case b.occupied(dir):
			reason = fmt.Sprintf("%s holds processes of its own", dir)
		default:
			controllers = append(controllers, controller)
		}
	}
	return controllers, reason
}

// occupied tells whether a cgroup can't hand on controllers because it holds processes. The root, which alone has no type,
// may do both.
func (b *builder) occupied(dir string) bool {
	if !exists(filepath.Join(dir, "cgroup.type")) {
		return false
	}
	pids, err := readProcs(dir)
	return err != nil || len(pids) > 0
}

// enable makes a cgroup hand on controllers. A failure shows in the child's cgroup.controllers.
func (b *builder) enable(dir string, controllers []string) {
	file := filepath.Join(dir, "cgroup.subtree_control")
	enabled := readWords(file)
	for _, controller := range controllers {
		if slices.Contains(enabled, controller) {
			continue
		}
		// One at a time: the kernel takes all of a line or nothing.
		if err := b.kernel.Write(file, "+"+controller); err != nil {
			b.Log.Debug("controller not enabled", "controller", controller, "err", err)
		}
	}
}

// openScope asks systemd for a delegated scope around the calling process and divides it: the process goes into one leaf,
// the session into another, since a cgroup that hands on controllers may hold no processes.
func (b *builder) openScope(ctx context.Context, h hierarchy, needed []string) error {
	pid, err := selfPid(b.ProcRoot)
	if err != nil {
		return err
	}
	unit := parentName + "-" + b.Name + ".scope"
	if err := b.Systemd.StartScope(ctx, unit, pid); err != nil {
		return err
	}
	if err := awaitUnit(ctx, b.ProcRoot, unit); err != nil {
		return err
	}
	moved, err := detect(b.ProcRoot, b.Root)
	if err != nil {
		return err
	}
	scope := h.mount
	for _, now := range moved {
		if now.version == 2 {
			scope = now.own
		}
	}
	if filepath.Base(scope) != unit {
		return fmt.Errorf("the cgroup of %s is not visible in %s", unit, h.mount)
	}
	supervisor := filepath.Join(scope, "supervisor")
	if err := b.kernel.Mkdir(supervisor); err != nil {
		return err
	}
	if err := b.kernel.Write(filepath.Join(supervisor, "cgroup.procs"), strconv.Itoa(pid)); err != nil {
		return errors.Join(fmt.Errorf("leave the top of the scope: %w", err), b.kernel.Rmdir(supervisor))
	}
	path, err := b.make(scope, func(above string) error {
		b.enable(scope, needed)
		b.enable(above, needed)
		return nil
	})
	if err != nil {
		return err
	}
	b.mode = ModeV2Scope
	b.settle(h, path, needed)
	return nil
}
