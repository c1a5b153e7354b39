package image

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
)

func (b *build) created() (time.Time, error) {
	value := os.Getenv("SOURCE_DATE_EPOCH")
	if value == "" {
		return b.now().UTC().Truncate(time.Second), nil
	}
	seconds, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("read SOURCE_DATE_EPOCH: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// commit moves the image into the store and then writes its manifest, which makes it visible.
func (b *build) commit(m Manifest, file string) (Image, error) {
	path := filepath.Join(b.storeDir(), m.Digest+imageSuffix)
	// A rebuild that gave the same bytes leaves the file alone: sessions may hold their share of it.
	if got, err := os.Stat(path); err != nil || got.Size() != m.Size || b.Force {
		if err := b.replace(file, path); err != nil {
			return Image{}, err
		}
	}
	doc, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return Image{}, fmt.Errorf("store manifest: %w", err)
	}
	manifest := filepath.Join(b.storeDir(), m.Digest+manifestSuffix)
	if err := renameio.WriteFile(manifest, append(doc, '\n'), 0o644, renameio.WithTempDir(b.dir), renameio.WithStaticPermissions(0o644)); err != nil {
		return Image{}, fmt.Errorf("store manifest: %w", err)
	}
	if err := syncDir(b.storeDir()); err != nil {
		return Image{}, fmt.Errorf("store image: %w", err)
	}
	return Image{Manifest: m, Path: path}, nil
}

// replace renames the image to its place unless a session uses a file that is already there, whose bytes the digest
// says are the same.
func (b *build) replace(file, path string) error {
	if _, err := os.Lstat(path); err == nil {
		f, err := lockImage(Image{Path: path}, unix.LOCK_EX)
		if errors.Is(err, ErrInUse) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("store image: %w", err)
		}
		defer func() { _ = f.Close() }()
	}
	if err := os.Rename(file, path); err != nil {
		return fmt.Errorf("store image: %w", err)
	}
	return nil
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
