package image

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	imageSuffix    = ".erofs"
	manifestSuffix = ".json"
	// Names that begin with a dot belong to a running build; List never looks at them.
	buildDirName  = ".build"
	buildLockName = ".build.lock"
)

var (
	// ErrNoImage marks a reference that names no image in the store.
	ErrNoImage = errors.New("no such image")
	// ErrAmbiguous marks a digest prefix of several images.
	ErrAmbiguous = errors.New("ambiguous image reference")
	// ErrInUse marks an image that a session runs from.
	ErrInUse = errors.New("image is in use")
	// ErrReadOnly marks an image of a store that is only read.
	ErrReadOnly = errors.New("image belongs to a read-only store")
)

// Store is a list of folders with images. The first is written to, the others are system stores that are only read.
// Several processes may use one at once.
type Store struct {
	Dirs []string
	// Log gets a warning for each file that looks like an image but isn't usable. Nil means slog.Default.
	Log *slog.Logger
}

// Image is one image in a store.
type Image struct {
	Manifest Manifest
	// Path is the EROFS file.
	Path string
	// ReadOnly is true for an image of a system store.
	ReadOnly bool
}

// Short is the beginning of the digest, for people.
func (i Image) Short() string { return i.Manifest.Digest[:min(12, len(i.Manifest.Digest))] }

// Alias is the name that Resolve also takes: "pi-" and the version of Pi.
func (i Image) Alias() string { return "pi-" + i.Manifest.Versions["pi"] }

func (s *Store) log() *slog.Logger {
	if s.Log != nil {
		return s.Log
	}
	return slog.Default()
}

// List returns every usable image, newest first. An image in two folders is listed once, for the first.
func (s *Store) List() ([]Image, error) {
	var images []Image
	seen := map[string]bool{}
	for i, dir := range s.Dirs {
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list images: %w", err)
		}
		for _, entry := range entries {
			digest, ok := strings.CutSuffix(entry.Name(), manifestSuffix)
			if !ok || !isDigest(digest) || seen[digest] {
				continue
			}
			m, err := readManifest(dir, digest)
			if err != nil {
				// A removal by another process between the two reads is no news.
				if !errors.Is(err, fs.ErrNotExist) || errors.Is(err, errManifest) {
					s.log().Warn("image ignored", "err", err)
				}
				continue
			}
			seen[digest] = true
			images = append(images, Image{Manifest: m, Path: filepath.Join(dir, digest+imageSuffix), ReadOnly: i > 0})
		}
	}
	slices.SortFunc(images, func(a, b Image) int {
		if c := b.Manifest.Created.Compare(a.Manifest.Created); c != 0 {
			return c
		}
		return cmp.Compare(a.Manifest.Digest, b.Manifest.Digest)
	})
	return images, nil
}

// Resolve finds one image. An empty ref means the newest that this program's own recipe made; otherwise ref is a unique
// prefix of a digest (with or without "sha256:") or "pi-" and a version, of which the newest counts.
func (s *Store) Resolve(ref string) (Image, error) {
	images, err := s.List()
	if err != nil {
		return Image{}, err
	}
	if ref == "" {
		inputs, err := Inputs("")
		if err != nil {
			return Image{}, err
		}
		return s.byInputs(images, inputs)
	}
	if strings.HasPrefix(ref, "pi-") {
		for _, img := range images {
			if img.Alias() == ref {
				return img, nil
			}
		}
		return Image{}, fmt.Errorf("%w: %q; `patio image ls` lists them, `patio image build --pi %s` makes it",
			ErrNoImage, ref, strings.TrimPrefix(ref, "pi-"))
	}
	prefix := strings.TrimPrefix(ref, "sha256:")
	var found []Image
	if isHex(prefix) {
		for _, img := range images {
			if strings.HasPrefix(img.Manifest.Digest, prefix) {
				found = append(found, img)
			}
		}
	}
	switch len(found) {
	case 0:
		return Image{}, fmt.Errorf("%w: %q; `patio image ls` lists them", ErrNoImage, ref)
	case 1:
		return found[0], nil
	}
	names := make([]string, len(found))
	for i, img := range found {
		names[i] = img.Short()
	}
	return Image{}, fmt.Errorf("%w: %q matches %s; give more digits", ErrAmbiguous, ref, strings.Join(names, ", "))
}

func (s *Store) byInputs(images []Image, inputs string) (Image, error) {
	for _, img := range images {
		if img.Manifest.Inputs == inputs {
			return img, nil
		}
	}
	old := ""
	if n := len(images); n > 0 {
		old = fmt.Sprintf(" (%d made by another version of patio)", n)
	}
	return Image{}, fmt.Errorf("%w in %s%s: run `patio image build` or `make setup`", ErrNoImage, strings.Join(s.Dirs, ", "), old)
}

// Use takes a share of the image file, so that nobody removes it, until release is called. release is idempotent; the
// share also ends with the process.
func (s *Store) Use(img Image) (release func(), err error) {
	f, err := lockImage(img, unix.LOCK_SH)
	if err != nil {
		return nil, fmt.Errorf("use image %s: %w", img.Short(), err)
	}
	return func() { _ = f.Close() }, nil
}

// lockImage opens the image and locks it without waiting. It fails with ErrInUse when somebody holds a lock that
// excludes this one, and with ErrNoImage when the image is gone or went while the lock was taken.
func lockImage(img Image, how int) (*os.File, error) {
	f, err := os.Open(img.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s was removed", ErrNoImage, img.Path)
	}
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		err = ErrInUse
	case err != nil:
		err = fmt.Errorf("lock %s: %w", img.Path, err)
	default:
		err = samePath(f, img.Path)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// samePath fails when the open file is no longer the one at path.
func samePath(f *os.File, path string) error {
	open, err := f.Stat()
	if err != nil {
		return err
	}
	named, err := os.Stat(path)
	if err != nil || !os.SameFile(open, named) {
		return fmt.Errorf("%w: %s was removed", ErrNoImage, path)
	}
	return nil
}

// Remove deletes an image that no session uses.
func (s *Store) Remove(img Image) error {
	if img.ReadOnly || len(s.Dirs) == 0 || filepath.Dir(img.Path) != filepath.Clean(s.Dirs[0]) {
		return fmt.Errorf("remove image %s: %w: %s; its owner removes it", img.Short(), ErrReadOnly, filepath.Dir(img.Path))
	}
	f, err := lockImage(img, unix.LOCK_EX)
	if errors.Is(err, ErrInUse) {
		return fmt.Errorf("remove image %s: %w: stop the sessions that use it first (`patio ls`)", img.Short(), err)
	}
	if err != nil {
		return fmt.Errorf("remove image %s: %w", img.Short(), err)
	}
	defer func() { _ = f.Close() }()
	// The manifest first: without it the image is invisible.
	manifest := strings.TrimSuffix(img.Path, imageSuffix) + manifestSuffix
	if err := os.Remove(manifest); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove image %s: %w", img.Short(), err)
	}
	if err := os.Remove(img.Path); err != nil {
		return fmt.Errorf("remove image %s: %w", img.Short(), err)
	}
	return nil
}

// Prune removes every image of the writable folder that keep refuses and no session uses, and returns the removed.
// The image that Resolve("") finds always stays.
func (s *Store) Prune(keep func(Image) bool) ([]Image, error) {
	images, err := s.List()
	if err != nil {
		return nil, err
	}
	current, err := s.Resolve("")
	if err != nil && !errors.Is(err, ErrNoImage) {
		return nil, err
	}
	var removed []Image
	var errs []error
	for _, img := range images {
		if img.ReadOnly || img.Path == current.Path || keep(img) {
			continue
		}
		switch err := s.Remove(img); {
		case err == nil:
			removed = append(removed, img)
		case !errors.Is(err, ErrInUse):
			errs = append(errs, err)
		}
	}
	return removed, errors.Join(errs...)
}
