package catalog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"
)

// record is a summary with what tells whether it still holds.
type record struct {
	Summary
	stamp  stamp
	read   int64  // when the file was read, Unix nanoseconds
	active int64  // of the last message, Unix milliseconds, 0 when unknown
	mark   uint32 // of the file's beginning and end
}

// holds says that the record is of the file with this stamp, and that the file can't have changed unseen since.
func (r *record) holds(s stamp) bool { return r.stamp == s && r.settled() }

// news says that an index with the older record, or none, is behind this one. A record that wasn't settled, and now is, is news
// though nothing else changed: from now on it needn't be read again.
func (r *record) news(old *record) bool {
	return old == nil || r.Summary != old.Summary || r.stamp != old.stamp || r.settled() != old.settled()
}

func (r *record) settled() bool { return r.stamp.settled(r.read) }

// indexLimit is the largest index that is read: some hundred thousand sessions.
const indexLimit = 512 << 20

// loadIndex reads the records of an index file by their paths. Whatever is wrong with the file, it is in doubt, so it counts as
// empty; the error then says why. A file that isn't there is no error.
func loadIndex(path string, now time.Time) (map[string]*record, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read session index: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read session index: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > indexLimit {
		return nil, fmt.Errorf("read session index: %s isn't an index of patio's", path)
	}
	b := make([]byte, info.Size())
	if _, err := io.ReadFull(f, b); err != nil {
		return nil, fmt.Errorf("read session index: %w", err)
	}
	records, err := decodeIndex(b, now)
	if err != nil {
		return nil, fmt.Errorf("read session index %s: %w", path, err)
	}
	return records, nil
}

// saveIndex replaces an index file. Whoever reads it meanwhile sees the old one or the new one, whole; of two that write, the
// last wins.
func saveIndex(path string, records []*record, now time.Time) error {
	slices.SortFunc(records, func(a, b *record) int { return strings.Compare(a.Path, b.Path) })
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write session index: %w", err)
	}
	if err := renameio.WriteFile(path, encodeIndex(records, now), 0o600); err != nil {
		return fmt.Errorf("write session index: %w", err)
	}
	return nil
}
