package catalog

import (
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
		dev: st.Dev, ino: st.Ino, size: st.Size,
		mtime: time.Unix(st.Mtim.Unix()).UnixNano(), ctime: time.Unix(st.Ctim.Unix()).UnixNano(),
	}
}

// retry repeats a system call that a signal interrupted.
func retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR { //nolint:errorlint // a bare errno, as the package unix returns it
			return err
		}
	}
}
