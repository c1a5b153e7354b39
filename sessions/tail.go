package sessions

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/renameio/v2"
	"github.com/tidwall/gjson"
)

// Repair is what RepairTail did.
type Repair struct {
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
// touched.
func RepairTail(path string) (Repair, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return Repair{}, err
	}
	defer func() { _ = f.Close() }()
	fi, err := f.Stat()
	if err != nil {
		return Repair{}, err
	}
	if !fi.Mode().IsRegular() {
		return Repair{}, fmt.Errorf("%s isn't a regular file", path)
	}
	start, err := lastLineStart(f, fi.Size())
	if err != nil {
		return Repair{}, fmt.Errorf("find the last line of %s: %w", path, err)
	}
	if start == fi.Size() {
		return Repair{}, nil
	}
	tail := make([]byte, fi.Size()-start)
	if _, err := f.ReadAt(tail, start); err != nil {
		return Repair{}, fmt.Errorf("read the last line of %s: %w", path, err)
	}
	if text := bytes.TrimSpace(tail); len(text) > 0 && text[0] == '{' && gjson.ValidBytes(text) {
		if _, err := f.WriteAt([]byte{'\n'}, fi.Size()); err != nil {
			return Repair{}, fmt.Errorf("complete %s: %w", path, err)
		}
		return Repair{Completed: true}, f.Sync()
	}
	r := Repair{Cut: int64(len(tail)), Kept: path + ".torn-" + time.Now().UTC().Format("20060102T150405.000")}
	if err := renameio.WriteFile(r.Kept, tail, 0o600); err != nil {
		return Repair{}, fmt.Errorf("keep the torn last line of %s: %w", path, err)
	}
	if err := f.Truncate(start); err != nil {
		return Repair{}, fmt.Errorf("cut the torn last line of %s: %w", path, err)
	}
	return r, f.Sync()
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
