package network

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/rawfile"
)

// device carries Ethernet frames. Read gives one frame; WriteFrame takes the parts of one and never waits.
type device interface {
	Read(frame []byte) (int, error)
	WriteFrame(parts [][]byte) error
	Close() error
}

// tapDevice is a TAP, or a socket that keeps message boundaries, in Go's poller: so that Close ends a Read.
type tapDevice struct {
	*os.File
	raw syscall.RawConn
}

// ownTAP takes a TAP over; the given file is closed in any case. The descriptor is duplicated because the poller only
// takes one that was non-blocking when it was wrapped, and nothing is known of how the given one was made.
func ownTAP(given *os.File) (_ *tapDevice, err error) {
	defer func() {
		if closeErr := given.Close(); closeErr != nil && err == nil {
			err = fmt.Errorf("release TAP: %w", closeErr)
		}
	}()
	control, err := given.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("use TAP: %w", err)
	}
	fd, dupErr := -1, error(nil)
	if err := control.Control(func(old uintptr) {
		fd, dupErr = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0)
	}); err != nil {
		return nil, fmt.Errorf("use TAP: %w", err)
	}
	if dupErr != nil {
		return nil, fmt.Errorf("duplicate TAP: %w", dupErr)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("make TAP non-blocking: %w", errors.Join(err, unix.Close(fd)))
	}
	f := os.NewFile(uintptr(fd), given.Name())
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("use TAP: %w", errors.Join(err, f.Close()))
	}
	return &tapDevice{File: f, raw: raw}, nil
}

// WriteFrame writes one frame. When the other side's queue is full the frame is lost, as on a wire: waiting here would
// stop every connection of the sandbox, and TCP sends it again.
func (t *tapDevice) WriteFrame(parts [][]byte) error {
	var few [8]unix.Iovec // on the stack: a frame rarely has more parts
	iovecs := few[:0]
	for _, p := range parts {
		iovecs = rawfile.AppendIovecFromBytes(iovecs, p, rawfile.MaxIovs)
	}
	var errno unix.Errno
	err := t.raw.Write(func(fd uintptr) bool {
		errno = rawfile.NonBlockingWriteIovec(int(fd), iovecs)
		return true
	})
	if err != nil {
		return err
	}
	if errno != 0 {
		return errno
	}
	return nil
}
