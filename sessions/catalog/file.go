package catalog

import (
	"bytes"
	"context"
	"errors"

	"golang.org/x/sys/unix"
)

// file is an open session file, as large as it was when it was opened.
type file struct {
	fd    int
	stamp stamp
}

// open opens a regular file without following a symlink, waiting for a FIFO's writer, or touching a device.
func open(path string) (*file, error) {
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		return err
	})
	if errors.Is(err, unix.ELOOP) {
		return nil, errors.New("it is a symbolic link")
	}
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstat(fd, &st) }); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, errors.Join(errors.New("it isn't a regular file"), unix.Close(fd))
	}
	return &file{fd: fd, stamp: stampOf(&st)}, nil
}

// close ends the use of the file. Nothing was written, so there is nothing that could fail.
func (f *file) close() { _ = unix.Close(f.fd) }

// errShrunk says that a file lost bytes while it was read: it was rewritten.
var errShrunk = errors.New("the file was cut while it was read")

// at fills buf from the offset.
func (f *file) at(buf []byte, offset int64) error {
	for len(buf) > 0 {
		var n int
		err := retry(func() (err error) {
			n, err = unix.Pread(f.fd, buf, offset)
			return err
		})
		switch {
		case err != nil:
			return err
		case n == 0:
			return errShrunk
		}
		buf, offset = buf[n:], offset+int64(n)
	}
	return nil
}

const (
	// chunk is the unit of a pass over a file.
	chunk = 256 << 10
	// largeLine is the length from which on only one line of this process is in memory at a time.
	largeLine = 4 << 20
	// lineLimit is the longest line that is held in memory at all.
	lineLimit = 256 << 20
)

// largeLines is held by whoever has a line of more than largeLine in memory. Its holder waits for nobody.
var largeLines = make(chan struct{}, 1)

// lines calls fn with every line from the offset on, where a line must begin; the last one with or without its line feed. A
// line is valid during the call. fn must not wait for another reader. Lines longer than lineLimit are passed over: all says
// that there were none. The error is ctx's, or of reading.
func (f *file) lines(ctx context.Context, buf *[]byte, offset int64, fn func(line []byte)) (all bool, err error) {
	b := room(buf, chunk)
	all = true
	for held, skipping := 0, false; ; {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		n := int(min(int64(len(b)-held), f.stamp.size-offset))
		if n == 0 {
			if held > 0 && !skipping {
				fn(b[:held])
			}
			return all, nil
		}
		if err := f.at(b[held:held+n], offset); err != nil {
			return false, err
		}
		offset += int64(n)
		data, from := b[:held+n], held // what was held has no line feed
		for {
			n := bytes.IndexByte(data[from:], '\n')
			if n < 0 {
				break
			}
			if !skipping {
				fn(data[:from+n])
			}
			data, from, skipping = data[from+n+1:], 0, false
		}
		held = copy(b, data)
		switch {
		case skipping:
			held = 0
		case held < len(b):
		case held >= lineLimit:
			held, skipping, all = 0, true, false
		default:
			if len(b) < largeLine && 2*len(b) >= largeLine {
				largeLines <- struct{}{}
				defer func() { <-largeLines }()
			}
			grown := make([]byte, min(2*len(b), lineLimit))
			copy(grown, b)
			b = grown
		}
	}
}

// room makes the buffer hold n bytes.
func room(buf *[]byte, n int) []byte {
	if cap(*buf) < n {
		*buf = make([]byte, n)
	}
	return (*buf)[:n]
}
