package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

// ErrDigestMismatch marks an image file whose bytes are not those that its name says.
var ErrDigestMismatch = errors.New("image digest mismatch")

// VerifyDigest reads the whole image and compares its sha256 with the manifest. progress, which may be nil, is called
// with the bytes read so far and their total.
func (s *Store) VerifyDigest(ctx context.Context, img Image, progress func(done, total int64)) error {
	got, size, err := fileDigest(ctx, img.Path, progress)
	if err != nil {
		return fmt.Errorf("verify image %s: %w", img.Short(), err)
	}
	if got != img.Manifest.Digest || size != img.Manifest.Size {
		return fmt.Errorf("verify image %s: %w: the file's sha256 is %s, its name says %s: remove it with `patio image rm %s` and run `patio image build`",
			img.Short(), ErrDigestMismatch, got, img.Manifest.Digest, img.Short())
	}
	return nil
}

// fileDigest is the sha256 in hex and the size of a file.
func fileDigest(ctx context.Context, path string, progress func(done, total int64)) (string, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return "", 0, err
	}
	hash := sha256.New()
	// Big enough that progress is not called too often, small enough that a cancel is soon seen.
	buf := make([]byte, 4<<20)
	var done int64
	for {
		if ctx.Err() != nil {
			return "", 0, context.Cause(ctx)
		}
		n, err := f.Read(buf)
		hash.Write(buf[:n])
		done += int64(n)
		if progress != nil && n > 0 {
			progress(done, info.Size())
		}
		if errors.Is(err, io.EOF) {
			return hex.EncodeToString(hash.Sum(nil)), done, nil
		}
		if err != nil {
			return "", 0, err
		}
	}
}
