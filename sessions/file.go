package sessions

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// maxEntries bounds the memory of an index. Pi holds all entries of a file with their
// bodies, and is out of memory long before.
const maxEntries = 1 << 20

// File is a session file that has been read once. Bodies of entries stay on disk: memory
// is bounded by the number of entries, not by their size. Its methods may be called from
// many goroutines.
type File struct {
	f       *os.File
	size    int64
	header  Header
	hasHead bool
	entries []Entry
	byID    map[string]int // the last one with an id, as Pi has it
	tree    tree
	labels  map[string]string // by the id of their target
	callsOf map[int][]string  // the ids of an entry's tool calls
	totals  totals
	notes   noteList
	late    noteList          // what Validate alone tells: Pi goes on all the same
	words   map[string]string // types and roles, each once

	lastLine int
	lost     string // why Pi would lose the conversation behind the last line
}

// Open reads a file's lines and keeps it open for Body. Lines that aren't entries are
// noted and passed over, as Pi does.
func Open(path string) (*File, error) {
	r, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	f := &File{
		f: r, byID: map[string]int{}, labels: map[string]string{}, callsOf: map[int][]string{},
		totals: newTotals(), words: map[string]string{},
	}
	if err := f.read(); err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", path, err), r.Close())
	}
	f.tree = newTree(f)
	return f, nil
}

// Close closes the file.
func (f *File) Close() error { return f.f.Close() }

// Size is how many bytes were read.
func (f *File) Size() int64 { return f.size }

// Header is the file's header, the zero value if it has none.
func (f *File) Header() Header { return f.header }

// Entries are the file's entries in the order of its lines. They are the File's own.
func (f *File) Entries() []Entry { return f.entries }

// Entry is the i-th entry with its line.
func (f *File) Entry(i int) (Entry, []byte, error) {
	if i < 0 || i >= len(f.entries) {
		return Entry{}, nil, fmt.Errorf("no entry %d among %d", i, len(f.entries))
	}
	body, err := f.Body(f.entries[i])
	return f.entries[i], body, err
}

// ByID finds an entry; of several with one id it is the last, as for Pi.
func (f *File) ByID(id string) (Entry, bool) {
	i, ok := f.byID[key(id)]
	if !ok {
		return Entry{}, false
	}
	return f.entries[i], true
}

// Body reads an entry's line.
func (f *File) Body(e Entry) ([]byte, error) {
	b := make([]byte, e.Length)
	if _, err := f.f.ReadAt(b, e.Offset); err != nil {
		return nil, fmt.Errorf("read line %d: %w", e.Line, err)
	}
	return b, nil
}

// text is Body without a copy between bytes and string.
func (f *File) text(e Entry) (string, error) {
	s, err := readString(f.f, e.Offset, int64(e.Length))
	if err != nil {
		return "", fmt.Errorf("read line %d: %w", e.Line, err)
	}
	return s, nil
}

func (f *File) read() error {
	fi, err := f.f.Stat()
	if err != nil {
		return err
	}
	if !fi.Mode().IsRegular() {
		return errors.New("it isn't a regular file")
	}
	lines := newLineReader(f.f)
	for {
		l, err := lines.next()
		if errors.Is(err, io.EOF) {
			f.size = lines.offset
			return nil
		}
		if err != nil {
			return err
		}
		f.line(l)
		if len(f.entries) > maxEntries {
			return fmt.Errorf("it has more than %d entries: neither Pi nor patio can hold them", maxEntries)
		}
	}
}
