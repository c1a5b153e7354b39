package limits

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Kill ends every process in the group and returns when none is left, or with an error when ctx ends first. Only
// processes that are in the group at that moment get the signal.
func (g *Group) Kill(ctx context.Context) error {
	if len(g.dirs) == 0 {
		return ErrNoCgroup
	}
	err := poll(ctx, func() (bool, error) {
		pids, err := processes(g.Paths()...)
		if err != nil {
			return true, err
		}
		if len(pids) == 0 {
			return true, nil
		}
		if err := g.killOnce(ctx); err != nil {
			return true, err
		}
		return false, fmt.Errorf("%d processes are left", len(pids))
	})
	if err != nil {
		return fmt.Errorf("kill cgroup: %w", err)
	}
	return nil
}

func (g *Group) killOnce(ctx context.Context) error {
	for _, d := range g.dirs {
		// The kernel's own way, since 5.14: nothing can fork its way out.
		if err := g.kernel.Write(filepath.Join(d.path, "cgroup.kill"), "1"); err == nil {
			return nil
		}
	}
	var failed []error
	freezer, frozen := g.find("freezer")
	if frozen {
		// While they stand still they can't fork, and no pid can pass to another process.
		if err := g.freeze(ctx, freezer.path); err != nil && !gone(err) {
			failed = append(failed, err)
		}
	}
	for _, d := range g.dirs {
		for _, dir := range subtree(d.path) {
			if err := killMembers(dir); err != nil {
				failed = append(failed, err)
			}
		}
	}
	if frozen {
		// Frozen processes die when they are thawed.
		if err := g.kernel.Write(filepath.Join(freezer.path, "freezer.state"), "THAWED"); err != nil && !gone(err) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// freeze holds the processes still. A process in an uninterruptible sleep can keep the kernel from it; what was frozen
// by then is enough for a round of Kill.
func (g *Group) freeze(ctx context.Context, dir string) error {
	file := filepath.Join(dir, "freezer.state")
	ctx, cancel := context.WithTimeout(ctx, longestPause)
	defer cancel()
	err := poll(ctx, func() (bool, error) {
		if err := g.kernel.Write(file, "FROZEN"); err != nil {
			return true, err
		}
		state, err := readLine(file)
		return err != nil || strings.TrimSpace(state) == "FROZEN", err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// killMembers sends SIGKILL to each process of one cgroup. The process is held by a file descriptor and its membership is
// read again before the signal, so that a pid that has passed to a stranger is spared.
func killMembers(dir string) error {
	pids, err := readProcs(dir)
	if gone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var failed []error
	for _, pid := range pids {
		if err := killMember(dir, pid); err != nil {
			failed = append(failed, fmt.Errorf("kill process %d: %w", pid, err))
		}
	}
	return errors.Join(failed...)
}

func killMember(dir string, pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	pids, err := readProcs(dir)
	if gone(err) || err == nil && !slices.Contains(pids, pid) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}
