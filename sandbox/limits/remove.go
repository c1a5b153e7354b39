package limits

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// A killed process leaves its cgroup when the kernel has torn down its memory: seconds for some GiB on a busy machine.
	closeTimeout = 10 * time.Second
	firstPause   = 2 * time.Millisecond
	longestPause = 200 * time.Millisecond
)

// Close removes the cgroup, and its parent when no other session uses it. It kills nothing: while processes are in the
// group it waits for them to go, ten seconds at most. It may be called again, also after a failure.
func (g *Group) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return g.CloseContext(ctx)
}

// CloseContext is Close with a bound of the caller's choice.
func (g *Group) CloseContext(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	var failed []error
	for _, d := range g.dirs {
		failed = append(failed, removePatiently(ctx, g.kernel, d.path))
	}
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("close cgroup: %w", err)
	}
	for _, parent := range g.parents {
		if err := removeParent(g.kernel, parent); err != nil {
			failed = append(failed, err)
		}
	}
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("close cgroup: %w", err)
	}
	return nil
}

// Reap kills what is left in the cgroups that a crashed supervisor made and removes them, with their parents when those
// are empty. Paths that are gone are no error; a path that can't be a session's cgroup is one, and nothing happens
// to it.
func Reap(ctx context.Context, paths ...string) error {
	return reap(ctx, kernelFS{}, paths)
}

func reap(ctx context.Context, kernel cgroupfs, paths []string) error {
	var failed []error
	g := &Group{kernel: kernel}
	for _, path := range paths {
		parent := filepath.Dir(path)
		if !filepath.IsAbs(path) || filepath.Clean(path) != path || filepath.Base(parent) != parentName {
			failed = append(failed, fmt.Errorf("reap cgroup %q: not a session's cgroup", path))
			continue
		}
		if !exists(filepath.Join(path, "cgroup.procs")) {
			// Gone, or no cgroup; the parent may still be there.
			if exists(filepath.Join(parent, "cgroup.procs")) {
				g.addParent(parent)
			}
			continue
		}
		g.dirs = append(g.dirs, directory{path: path, controllers: reapControllers(path)})
		g.addParent(parent)
	}
	if len(g.dirs) > 0 {
		if err := g.Kill(ctx); err != nil {
			failed = append(failed, fmt.Errorf("reap cgroup: %w", err))
		}
	}
	if err := g.CloseContext(ctx); err != nil {
		failed = append(failed, fmt.Errorf("reap cgroup: %w", err))
	}
	return errors.Join(failed...)
}

func reapControllers(path string) []string {
	if exists(filepath.Join(path, "freezer.state")) {
		return []string{"freezer"}
	}
	return nil
}

// removePatiently removes a cgroup and what is below it, waiting while it is busy.
func removePatiently(ctx context.Context, kernel cgroupfs, path string) error {
	return poll(ctx, func() (bool, error) {
		err := removeTree(kernel, path)
		if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ENOTEMPTY) {
			return false, err
		}
		return true, err
	})
}

// removeTree removes a cgroup and those below it. Only rmdir is used: the files in a cgroup go with it.
func removeTree(kernel cgroupfs, path string) error {
	for _, dir := range subtree(path) {
		if err := kernel.Rmdir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// removeParent removes a cgroup unless another session uses it.
func removeParent(kernel cgroupfs, path string) error {
	err := kernel.Rmdir(path)
	for _, fine := range []error{fs.ErrNotExist, unix.EBUSY, unix.ENOTEMPTY, fs.ErrPermission, unix.EROFS} {
		if errors.Is(err, fine) {
			return nil
		}
	}
	return err
}

// poll calls try until it is done, with pauses that grow to a bound. When ctx ends, the last error of try is in the result.
func poll(ctx context.Context, try func() (done bool, err error)) error {
	pause := firstPause
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		done, err := try()
		if done {
			return err
		}
		timer.Reset(pause)
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-timer.C:
		}
		pause = min(pause*2, longestPause)
	}
}
