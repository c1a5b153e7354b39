// Package journal owns the append-only log of one session, on disk before anyone is told of it; it must not know what
// its records mean.
package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

var (
	// ErrClosed is returned by what is called after Close.
	ErrClosed = errors.New("journal is closed")
	// ErrLocked is returned by Open while another Journal, of this or any process, has the file.
	ErrLocked = errors.New("journal is in use by another process")
	// ErrLineFeed is returned for raw data that holds a line feed, which would make two lines of one record.
	ErrLineFeed = errors.New("data holds a line feed")
)

// oneWrite is the record length up to which a record is assembled and written in a single call. Longer ones go out part
// by part, for copying 60 MB costs more than two more calls.
const oneWrite = 64 << 10

// storage is the part of *os.File that the writer uses.
type storage interface {
	io.WriterAt
	Truncate(size int64) error
	Sync() error
}

// Journal is an open log. It has one writer process, and any number of readers in it. All methods are safe for
// concurrent use.
type Journal struct {
	session string
	file    *sharedFile
	store   storage
	now     func() time.Time
	cut     int64

	// end is the offset after the last whole record. It is stored after the record's bytes are in the file, and so is
	// all that a reader needs in order never to see half a record.
	end    atomic.Int64
	closed atomic.Bool
	bell   *bell

	mu      sync.Mutex
	seq     uint64
	marks   marks
	scratch []byte
	dirty   bool // bytes of a failed write may stand after end
}

// Open creates the journal of a session at path (mode 0600), or continues it: what stands after the last whole record
// is cut off, see Cut. A file that is no journal, or another session's, is refused and left unchanged. While it is
// open, it is locked against other writers.
func Open(path, session string) (*Journal, error) {
	if err := checkSession(session); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j, err := open(f, session)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open journal %s: %w", path, err), f.Close())
	}
	return j, nil
}

func open(f *os.File, session string) (*Journal, error) {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrLocked
		}
		return nil, fmt.Errorf("lock: %w", err)
	}
	size, err := regularSize(f)
	if err != nil {
		return nil, err
	}
	t, err := findTail(f, size)
	if err != nil {
		return nil, err
	}
	if t.seq > 0 && t.session != session {
		return nil, fmt.Errorf("it belongs to session %q, not %q", t.session, session)
	}
	if t.end < size {
		if err := f.Truncate(t.end); err != nil {
			return nil, fmt.Errorf("cut torn tail: %w", err)
		}
	}
	j := &Journal{
		session: session,
		file:    &sharedFile{File: f},
		store:   f,
		now:     time.Now,
		cut:     size - t.end,
		bell:    newBell(),
		seq:     t.seq,
		marks:   marks{{seq: t.seq + 1, off: t.end}},
	}
	j.file.refs.Store(1)
	j.end.Store(t.end)
	return j, nil
}

func regularSize(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, errors.New("not a regular file")
	}
	return info.Size(), nil
}

// Cut says how many bytes of an unfinished record Open removed from the end of the file.
func (j *Journal) Cut() int64 { return j.cut }

// Last gives the sequence number of the last record (0 if there is none) and the offset after it, which is the length of
// the journal in bytes.
func (j *Journal) Last() (seq uint64, offset int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.seq, j.end.Load()
}

// Append encodes data as JSON and appends it as a record of the given type. It returns the record's sequence number;
// numbers start at 1 and have no gaps. See AppendRaw for what an error means.
func (j *Journal) Append(typ string, data any) (uint64, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(data); err != nil {
		return 0, fmt.Errorf("append %s record: %w", typ, err)
	}
	return j.AppendRaw(typ, bytes.TrimSuffix(b.Bytes(), []byte{'\n'}))
}

// AppendRaw appends a record whose data is the parts, one after the other. Together they must be one JSON value without
// a line feed; it goes into the file as it is, neither copied (if it is long) nor re-encoded nor checked beyond the line
// feed. The parts aren't kept after the call.
//
// After an error the journal holds exactly the records it held before, the number isn't used up, and the journal stays
// usable. The error wraps the cause: syscall.ENOSPC or EDQUOT when the disk is full.
func (j *Journal) AppendRaw(typ string, parts ...[]byte) (uint64, error) {
	if err := checkType(typ); err != nil {
		return 0, fmt.Errorf("append record: %w", err)
	}
	size := 0
	for _, p := range parts {
		if bytes.IndexByte(p, '\n') >= 0 {
			return 0, fmt.Errorf("append %s record: %w", typ, ErrLineFeed)
		}
		size += len(p)
	}
	if size == 0 {
		return 0, fmt.Errorf("append %s record: no data", typ)
	}
	if size > MaxRecord-maxPrefix {
		return 0, fmt.Errorf("append %s record: %d bytes of data are more than the %d that fit", typ, size, MaxRecord-maxPrefix)
	}

	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed.Load() {
		return 0, fmt.Errorf("append %s record: %w", typ, ErrClosed)
	}
	seq, start := j.seq+1, j.end.Load()
	end, err := j.write(start, seq, typ, size, parts)
	if err != nil {
		return 0, j.undo(start, typ, err)
	}
	j.seq = seq
	j.marks = j.marks.add(seq, start)
	j.end.Store(end)
	j.bell.ring()
	return seq, nil
}

// write puts a record at off and gives the offset after it.
func (j *Journal) write(off int64, seq uint64, typ string, size int, parts [][]byte) (int64, error) {
	if j.dirty {
		if err := j.store.Truncate(off); err != nil {
			return 0, fmt.Errorf("remove what is left of a failed write: %w", err)
		}
		j.dirty = false
	}
	j.scratch = appendPrefix(j.scratch[:0], seq, j.now(), j.session, typ)
	if size > oneWrite {
		for i := range len(parts) + 2 {
			p := j.scratch
			switch {
			case i == len(parts)+1:
				p = []byte(recordEnd)
			case i > 0:
				p = parts[i-1]
			}
			n, err := j.store.WriteAt(p, off)
			if err != nil {
				return 0, err
			}
			off += int64(n)
		}
		return off, nil
	}
	for _, p := range parts {
		j.scratch = append(j.scratch, p...)
	}
	j.scratch = append(j.scratch, recordEnd...)
	n, err := j.store.WriteAt(j.scratch, off)
	return off + int64(n), err
}

// undo takes a half written record out of the file again.
func (j *Journal) undo(start int64, typ string, cause error) error {
	hint := ""
	if errors.Is(cause, syscall.ENOSPC) || errors.Is(cause, syscall.EDQUOT) {
		hint = "; free some disk space"
	}
	err := fmt.Errorf("append %s record: %w (the record was not kept%s)", typ, cause, hint)
	if terr := j.store.Truncate(start); terr != nil {
		// Readers stop at end, the next write starts there, and Open cuts what it finds behind.
		j.dirty = true
		return errors.Join(err, fmt.Errorf("remove the half written record: %w", terr))
	}
	return err
}

// Sync returns when everything appended before is on the disk.
func (j *Journal) Sync() error {
	if j.closed.Load() {
		return fmt.Errorf("sync journal: %w", ErrClosed)
	}
	if err := j.store.Sync(); err != nil {
		return fmt.Errorf("sync journal: %w", err)
	}
	return nil
}

// Close syncs, unlocks and closes the journal. Readers go on to the last record and then get io.EOF. Closing again does
// nothing.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.closed.Swap(true) {
		j.mu.Unlock()
		return nil
	}
	var errs []error
	if j.dirty {
		errs = append(errs, j.store.Truncate(j.end.Load()))
	}
	errs = append(errs, j.store.Sync())
	j.mu.Unlock()

	j.bell.stop()
	// Readers may keep the file open for long; the lock must not last as long as they do.
	errs = append(errs, unix.Flock(int(j.file.Fd()), unix.LOCK_UN), j.file.release())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close journal: %w", err)
	}
	return nil
}

// sharedFile is a file that closes when its last user lets go of it.
type sharedFile struct {
	*os.File
	refs atomic.Int64
}

func (s *sharedFile) acquire() { s.refs.Add(1) }

func (s *sharedFile) release() error {
	if s.refs.Add(-1) > 0 {
		return nil
	}
	return s.Close()
}
