package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// waitInterval is how often a build that waits for another looks whether that has ended.
const waitInterval = 250 * time.Millisecond

// lockStore takes the store's build lock, waiting for another build to end.
func (b *build) lockStore(ctx context.Context) (unlock func() error, err error) {
	f, err := os.OpenFile(filepath.Join(b.storeDir(), buildLockName), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock store: %w", err)
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f.Close, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock store: %w", err), f.Close())
		}
		b.step = "wait"
		b.report(-1, "another build into "+b.storeDir()+" is running")
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("wait for another build: %w", context.Cause(ctx)), f.Close())
		case <-time.After(waitInterval):
		}
	}
}

// sweep removes what a crashed build left. The caller holds the store's lock, so nobody uses it.
func (b *build) sweep() error {
	if err := b.sweepNotes(); err != nil {
		return err
	}
	if err := removeTree(b.dir); err != nil {
		return fmt.Errorf("remove leftovers of a crashed build: %w", err)
	}
	return b.sweepOrphans()
}

// sweepOrphans removes image files without a manifest: a build that ended between the two renames.
func (b *build) sweepOrphans() error {
	paths, err := filepath.Glob(filepath.Join(b.storeDir(), "*"+imageSuffix))
	if err != nil {
		return fmt.Errorf("look for leftovers: %w", err)
	}
	for _, path := range paths {
		digest := filepath.Base(path[:len(path)-len(imageSuffix)])
		if !isDigest(digest) {
			continue
		}
		_, err := os.Lstat(filepath.Join(b.storeDir(), digest+manifestSuffix))
		if !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		f, err := lockImage(Image{Path: path}, unix.LOCK_EX)
		if err != nil {
			continue
		}
		err = errors.Join(os.Remove(path), f.Close())
		if err != nil {
			return fmt.Errorf("remove leftovers of a crashed build: %w", err)
		}
	}
	return nil
}
