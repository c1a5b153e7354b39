package limits

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// cgroupfs is how this package changes a cgroup file system. Tests put a model of the kernel behind it; reading needs
// none, since a fake tree holds real files.
type cgroupfs interface {
	Mkdir(path string) error
	Rmdir(path string) error
	Write(path, data string) error
	// Writable tells whether this process may write path.
	Writable(path string) bool
}

type kernelFS struct{}

func (kernelFS) Mkdir(path string) error { return os.Mkdir(path, 0o755) }

// Rmdir is not os.Remove, which would also unlink a file.
func (kernelFS) Rmdir(path string) error {
	if err := unix.Rmdir(path); err != nil {
		return &fs.PathError{Op: "rmdir", Path: path, Err: err}
	}
	return nil
}

// Write never creates a file: a control file that is missing means a kernel without that feature.
func (kernelFS) Write(path, data string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	// One write: the kernel takes each as a whole value.
	_, err = f.WriteString(data)
	return errors.Join(err, f.Close())
}

func (kernelFS) Writable(path string) bool {
	return unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS) == nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func readLine(path string) (string, error) {
	data, err := os.ReadFile(path)
	return strings.TrimSpace(string(data)), err
}

// readNumber reads a control file with one number. "max", and version 1's largest page-aligned number, are no limit
// and read as zero.
func readNumber(path string) (int64, error) {
	line, err := readLine(path)
	if err != nil {
		return 0, err
	}
	return parseNumber(line)
}

// Version 1 prints "no limit" as the largest int64 rounded down to a page; pages have at most 64 KiB.
const v1Unlimited = math.MaxInt64 - int64(64<<10)

func parseNumber(text string) (int64, error) {
	if text == "max" || text == "-1" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("parse %q: %w", text, err)
	}
	if n >= uint64(v1Unlimited) {
		return 0, nil
	}
	return int64(n), nil
}

// readFlat reads a control file of "key number" lines.
func readFlat(path string) (map[string]int64, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	values := make(map[string]int64)
	for line := range strings.Lines(string(data)) {
		name, text, found := strings.Cut(strings.TrimSpace(line), " ")
		if !found {
			continue
		}
		if n, err := parseNumber(text); err == nil {
			values[name] = n
		}
	}
	return values, nil
}

// readWords reads a control file that lists words, such as cgroup.controllers.
func readWords(path string) []string {
	line, err := readLine(path)
	if err != nil {
		return nil
	}
	return strings.Fields(line)
}

// readProcs lists the processes of one cgroup. A process of a pid namespace that this one can't see reads as 0 and is
// left out.
func readProcs(dir string) ([]int, error) {
	data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil, err
	}
	var pids []int
	for field := range strings.FieldsSeq(string(data)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// gone tells that a cgroup was removed under the reader: the file is missing, or it was opened before the removal.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV)
}

// children lists the cgroups directly below dir.
func children(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var dirs []string
	for _, entry := range entries {
		if entry.IsDir() {
			dirs = append(dirs, filepath.Join(dir, entry.Name()))
		}
	}
	return dirs
}

// subtree lists dir and every cgroup below it, deepest first.
func subtree(dir string) []string {
	var dirs []string
	for _, child := range children(dir) {
		dirs = append(dirs, subtree(child)...)
	}
	return append(dirs, dir)
}

// processes lists the processes of the cgroups at and below each of dirs, sorted, each once.
func processes(dirs ...string) ([]int, error) {
	var pids []int
	for _, root := range dirs {
		for _, dir := range subtree(root) {
			found, err := readProcs(dir)
			if err != nil && !gone(err) {
				return nil, fmt.Errorf("list processes of cgroup: %w", err)
			}
			pids = append(pids, found...)
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil
}
