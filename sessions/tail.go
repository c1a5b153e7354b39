package sessions

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
)

// ErrNoSession says that a file is none of Pi's sessions. It was left as it is.
var ErrNoSession = errors.New("it is no session of Pi's")

// TailRepair is what RepairTail did.
type TailRepair struct {
	// Completed says that a missing line end was added.
	Completed bool
	// Cut is how many bytes of a torn last line were cut off, and Kept the file that has
	// them now.
	Cut  int64
	Kept string
}

// RepairTail makes the end of a file fit for an append: Pi writes on without a look, and
// would glue its next entry to a last line without a line end. A whole last line gets
// one; a torn one is cut off and kept beside the file. A file that ends well is not
// touched, nor is one that isn't a session.
func RepairTail(path string) (TailRepair, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return TailRepair{}, err
	}
	defer func() { _ = f.Close() }()
	fi, err := f.Stat()
	if err != nil {
		return TailRepair{}, err
	}
	if !fi.Mode().IsRegular() {
		return TailRepair{}, fmt.Errorf("%s isn't a regular file", path)
	}
	size := fi.Size()
	start, err := lastLineStart(f, size)
	if err != nil {
		return TailRepair{}, fmt.Errorf("find the last line of %s: %w", path, err)
	}
	if start == size {
		return TailRepair{}, nil
	}
	whole, err := wholeTail(f, start, size)
	if err != nil {
		return TailRepair{}, fmt.Errorf("read the last line of %s: %w", path, err)
	}
	if err := mayCut(f, start, whole); err != nil {
		return TailRepair{}, fmt.Errorf("repair %s: %w", path, err)
	}
	if whole {
		if _, err := f.WriteAt([]byte{'\n'}, size); err != nil {
			return TailRepair{}, fmt.Errorf("complete %s: %w", path, err)
		}
		return TailRepair{Completed: true}, f.Sync()
	}
	r := TailRepair{Cut: size - start}
	if r.Kept, err = keepTail(path, io.NewSectionReader(f, start, r.Cut), time.Now()); err != nil {
		return TailRepair{}, fmt.Errorf("keep the torn last line of %s: %w", path, err)
	}
	if err := f.Truncate(start); err != nil {
		return TailRepair{}, fmt.Errorf("cut the torn last line of %s: %w", path, err)
	}
	return r, f.Sync()
}

func wholeTail(f *os.File, start, size int64) (bool, error) {
	if size-start > maxLine {
		return false, nil
	}
	text, err := readString(f, start, size-start)
	return kindOf(text) == object, err
}

// headerStart is how Pi begins a file.
const headerStart = `{"type":"session"`

// mayCut sees to it that only sessions are changed. A file of one torn line is one if it
// can become a header: Pi died while it made the file.
func mayCut(f *os.File, start int64, whole bool) error {
	if start == 0 && !whole {
		begin := make([]byte, len(headerStart))
		n, err := f.ReadAt(begin, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if !bytes.HasPrefix([]byte(headerStart), begin[:n]) {
			return ErrNoSession
		}
		return nil
	}
	lines := newLineReader(f)
	for {
		l, err := lines.next()
		if errors.Is(err, io.EOF) {
			return ErrNoSession
		}
		if err != nil {
			return err
		}
		if l.tooLong() {
			return ErrNoSession
		}
		// Pi passes over what it can't read, up to the header.
		switch kindOf(l.text) {
		case object:
			if parseRecord(l.text).isHeader() {
				return nil
			}
			return ErrNoSession
		case truthy:
			return ErrNoSession
		case malformed, falsy:
		}
	}
}

// keepTail writes what is cut off into a new file, and onto the disk.
func keepTail(path string, tail io.Reader, now time.Time) (string, error) {
	base := path + ".torn-" + now.UTC().Format("20060102T150405.000")
	name := base
	for n := 2; ; n++ {
		out, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) && n < 100 {
			name = base + "-" + strconv.Itoa(n)
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = io.Copy(out, tail)
		if err == nil {
			err = out.Sync()
		}
		if err := errors.Join(err, out.Close()); err != nil {
			return "", errors.Join(err, os.Remove(name))
		}
		return name, nil
	}
}

// lastLineStart is the offset behind the last LF, 0 when there is none.
func lastLineStart(r io.ReaderAt, size int64) (int64, error) {
	block := make([]byte, 64<<10)
	for end := size; end > 0; {
		begin := max(0, end-int64(len(block)))
		n, err := r.ReadAt(block[:end-begin], begin)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if i := bytes.LastIndexByte(block[:n], '\n'); i >= 0 {
			return begin + int64(i) + 1, nil
		}
		end = begin
	}
	return 0, nil
}

// withoutMark is a line without the byte order mark that some editors write.
func withoutMark(s string) string { return strings.TrimPrefix(s, byteOrderMark) }
