package image

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dustin/go-humanize"
	"golang.org/x/sys/unix"
)

// ErrNoSpace marks a build that would not fit on the disk.
var ErrNoSpace = errors.New("not enough disk space")

const (
	// Measured for the pinned recipe, with half as much again for larger versions: the unpacked tree and the image
	// together, the Debian tarball, and mmdebstrap's own tree with its downloads.
	scratchSpace   = 2 << 30
	tarballSpace   = 500 << 20
	bootstrapSpace = 1200 << 20
)

// need is how many bytes a build wants under a folder, which may not exist yet.
type need struct {
	dir   string
	bytes uint64
}

// checkSpace adds up the needs of each file system and compares them with what is free there.
func checkSpace(free func(dir string) (device, bytes uint64, err error), needs []need) error {
	total := map[uint64]uint64{}
	for _, n := range needs {
		dir, err := existing(n.dir)
		if err != nil {
			return fmt.Errorf("check disk space: %w", err)
		}
		device, have, err := free(dir)
		if err != nil {
			return fmt.Errorf("check disk space: %w", err)
		}
		total[device] += n.bytes
		if total[device] > have {
			return fmt.Errorf("%w on the file system of %s: need %s, have %s; free some, or choose another folder",
				ErrNoSpace, n.dir, humanize.IBytes(total[device]), humanize.IBytes(have))
		}
	}
	return nil
}

// existing is the nearest ancestor that is there.
func existing(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for {
		if _, err = os.Stat(dir); err == nil || !errors.Is(err, os.ErrNotExist) || dir == filepath.Dir(dir) {
			return dir, err
		}
		dir = filepath.Dir(dir)
	}
}

// freeSpace is the device of a folder and how many bytes an ordinary user may still write there.
func freeSpace(dir string) (device, bytes uint64, err error) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return 0, 0, fmt.Errorf("stat %s: %w", dir, err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, 0, fmt.Errorf("statfs %s: %w", dir, err)
	}
	return st.Dev, fs.Bavail * uint64(fs.Bsize), nil
}
