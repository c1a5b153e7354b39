package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// unpack extracts the tarball into dir, which must exist. Ownership, extended attributes and device nodes are dropped,
// as are the setuid and setgid bits; everything becomes readable by the builder, who has to pack it. Nothing is
// written outside dir, whatever the names and links in the tarball. progress gets the bytes read so far.
func unpack(ctx context.Context, tarball, dir string, progress func(done, total int64)) error {
	f, err := os.Open(tarball)
	if err != nil {
		return fmt.Errorf("unpack Debian tree: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("unpack Debian tree: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("unpack Debian tree: %w", err)
	}
	defer func() { _ = root.Close() }()
	in := &countingReader{r: f}
	t := tar.NewReader(in)
	for {
		if ctx.Err() != nil {
			return fmt.Errorf("unpack Debian tree: %w", context.Cause(ctx))
		}
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = unpackEntry(root, h, t)
		}
		if err != nil {
			return fmt.Errorf("unpack Debian tree: %w", err)
		}
		progress(in.n, info.Size())
	}
}

func unpackEntry(root *os.Root, h *tar.Header, content io.Reader) error {
	name := path.Clean(strings.TrimLeft(h.Name, "/"))
	mode := safeMode(h.FileInfo().Mode())
	if name == "." {
		return nil
	}
	switch h.Typeflag {
	case tar.TypeDir:
		if err := root.MkdirAll(name, 0o755); err != nil {
			return err
		}
		return root.Chmod(name, mode)
	case tar.TypeReg:
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
		out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, content)
		// The umask doesn't apply to this.
		return errors.Join(err, out.Chmod(mode), out.Close())
	case tar.TypeSymlink:
		return root.Symlink(h.Linkname, name)
	case tar.TypeLink:
		return root.Link(path.Clean(strings.TrimLeft(h.Linkname, "/")), name)
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		return nil
	default:
		return fmt.Errorf("%s: entry of unknown type %q", name, h.Typeflag)
	}
}

// safeMode takes away setuid and setgid, and keeps what is there readable (and a folder writable) by its owner.
func safeMode(mode fs.FileMode) fs.FileMode {
	keep := mode & (fs.ModePerm | fs.ModeSticky)
	if mode.IsDir() {
		return keep | 0o700
	}
	return keep&^fs.ModeSticky | 0o400
}

type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// removeTree removes a folder with all below it, also when the folders in it forbid that to their owner.
func removeTree(dir string) error {
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	walkErr := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if entry == nil || !entry.IsDir() {
			return nil
		}
		// WalkDir reads a folder after this call, so it can then; one that it could not read it reports here again.
		if chmodErr := os.Chmod(path, 0o700); chmodErr != nil { //nolint:gosec // G122: the tree is this build's own, nobody else can write there
			return chmodErr
		}
		return nil
	})
	if err := os.RemoveAll(dir); err != nil {
		return errors.Join(fmt.Errorf("remove %s: %w", dir, err), walkErr)
	}
	return nil
}
