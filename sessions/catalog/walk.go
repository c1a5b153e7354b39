package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxDepth bounds directories in directories. Pi makes one level.
const maxDepth = 32

// found is a session file that a walk came across.
type found struct {
	path  string
	stamp stamp
}

// walk finds the session files under roots. Every directory is entered once and every file is found once, whatever links lead
// to it: real directories are walked before those that only a symlink leads to, so a path without links wins.
type walk struct {
	ctx      context.Context
	enter    func(dir string) error // called before a directory is read; may be nil
	problem  func(path string, err error)
	files    []found
	dirs     map[inode]bool
	inodes   map[inode]bool
	real     []string // the roots, resolved
	deferred []string // symlinks to directories
}

type inode struct{ dev, ino uint64 }

func find(ctx context.Context, roots []Root, enter func(dir string) error, problem func(path string, err error)) ([]found, error) {
	w := walk{ctx: ctx, enter: enter, problem: problem, dirs: map[inode]bool{}, inodes: map[inode]bool{}}
	for _, root := range roots {
		if real, err := filepath.EvalSymlinks(root.Dir); err == nil {
			w.real = append(w.real, real)
		}
	}
	for _, root := range roots {
		if err := w.dir(root.Dir, 0); err != nil {
			return nil, err
		}
	}
	for len(w.deferred) > 0 {
		link := w.deferred[0]
		w.deferred = w.deferred[1:]
		if err := w.link(link); err != nil {
			return nil, err
		}
	}
	return w.files, nil
}

// link walks the directory behind a symlink. One that leads above a root is refused: session directories can be written from
// inside a sandbox, and a link to a home directory would have all of it searched.
func (w *walk) link(path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		w.report(path, err)
		return nil
	}
	if slices.ContainsFunc(w.real, func(root string) bool { return within(real, root) }) {
		return w.dir(path, 0) // it was entered already, unless its real path couldn't be
	}
	for _, root := range w.real {
		if within(root, real) {
			w.report(path, errors.New("the symbolic link leads to a directory above the session directory; add what you need to the session directories by name"))
			return nil
		}
	}
	return w.dir(path, 0)
}

// within says that path is dir or lies in it; both are clean.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

func (w *walk) report(path string, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		return // it went away, or never was: nothing to see is no problem
	}
	w.problem(path, err)
}

func (w *walk) dir(path string, depth int) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if depth > maxDepth {
		w.report(path, fmt.Errorf("directories are nested more than %d deep; add this one to the session directories by name", maxDepth))
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		w.report(path, bare(err))
		return nil
	}
	defer func() { _ = d.Close() }()
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstat(int(d.Fd()), &st) }); err != nil {
		w.report(path, err)
		return nil
	}
	id := inode{st.Dev, st.Ino}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		w.report(path, unix.ENOTDIR)
		return nil
	}
	if w.dirs[id] {
		return nil
	}
	w.dirs[id] = true
	if w.enter != nil {
		if err := w.enter(path); err != nil {
			return err
		}
	}
	entries, err := d.ReadDir(-1)
	if err != nil {
		w.report(path, bare(err)) // what was read so far still counts
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, entry := range entries {
		name := filepath.Join(path, entry.Name())
		switch kind := entry.Type(); {
		case kind.IsDir():
			if err := w.dir(name, depth+1); err != nil {
				return err
			}
		case kind&fs.ModeSymlink != 0:
			if info, err := os.Stat(name); err == nil && info.IsDir() {
				w.deferred = append(w.deferred, name)
			}
		case kind.IsRegular() && isSession(name):
			w.file(int(d.Fd()), name, entry.Name())
		}
	}
	return nil
}

// isSession says that a file's name is one that session files have.
func isSession(path string) bool { return strings.HasSuffix(path, ".jsonl") }

func (w *walk) file(dir int, path, name string) {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) }); err != nil {
		w.report(path, err)
		return
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return
	}
	id := inode{st.Dev, st.Ino}
	if w.inodes[id] {
		return
	}
	w.inodes[id] = true
	w.files = append(w.files, found{path: path, stamp: stampOf(&st)})
}

// bare is an error without the path, which a Problem has.
func bare(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
