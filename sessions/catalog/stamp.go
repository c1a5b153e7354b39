package catalog

import (
	"io/fs"
	"time"

	"golang.org/x/sys/unix"
)

// stamp tells a file's states apart. The change time is part of it: unlike the modification time, nobody can set it back.
type stamp struct {
	dev, ino     uint64
	size         int64
	mtime, ctime int64 // Unix nanoseconds
}

// granularity is the coarsest clock of a file system (FAT counts in 2 s): a change that follows another one faster than
// this may leave the times as they were.
const granularity = 2 * time.Second

// settled says that a file with this stamp, read at that time, can't have changed since without another stamp.
func (s stamp) settled(read int64) bool {
	latest := max(s.mtime, s.ctime)
	return latest <= read-int64(granularity)
}

func stampOf(st *unix.Stat_t) stamp {
	return stamp{
		dev: uint64(st.Dev), ino: st.Ino, size: st.Size,
		mtime: time.Unix(st.Mtim.Unix()).UnixNano(), ctime: time.Unix(st.Ctim.Unix()).UnixNano(),
	}
}

// lstat is the stamp of a regular file; any other kind is an error.
func lstat(path string) (stamp, error) {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Lstat(path, &st) }); err != nil {
		return stamp{}, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return stamp{}, fs.ErrInvalid
	}
	return stampOf(&st), nil
}

// retry repeats a system call that a signal interrupted.
func retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR { //nolint:errorlint // a bare errno, as the package unix returns it
			return err
		}
	}
}
