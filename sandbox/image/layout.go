package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// prune removes what the recipe doesn't want in the image. It runs before layout, so that folders which the recipe
// demands are there afterwards.
func (r recipe) prune(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("prune tree: %w", err)
	}
	defer func() { _ = root.Close() }()
	for _, pattern := range r.Prune {
		matches, err := expand(root, ".", strings.Split(pattern, "/"))
		if err != nil {
			return fmt.Errorf("prune tree: %w", err)
		}
		for _, match := range matches {
			if err := root.RemoveAll(match); err != nil {
				return fmt.Errorf("prune tree: %w", err)
			}
		}
	}
	for _, docs := range r.PruneDocs {
		if err := keepCopyrights(root, docs); err != nil {
			return fmt.Errorf("prune tree: %w", err)
		}
	}
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() || !slices.Contains(r.PruneNames, entry.Name()) {
			return err
		}
		if err := root.RemoveAll(name); err != nil {
			return err
		}
		return fs.SkipDir
	})
	if err != nil {
		return fmt.Errorf("prune tree: %w", err)
	}
	return nil
}

// expand is filepath.Glob inside the root, without following links.
func expand(root *os.Root, dir string, parts []string) ([]string, error) {
	entries, err := fs.ReadDir(root.FS(), dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var matches []string
	for _, entry := range entries {
		ok, err := path.Match(parts[0], entry.Name())
		if err != nil {
			return nil, err
		}
		name := path.Join(dir, entry.Name())
		switch {
		case !ok:
		case len(parts) == 1:
			matches = append(matches, name)
		case entry.IsDir():
			below, err := expand(root, name, parts[1:])
			if err != nil {
				return nil, err
			}
			matches = append(matches, below...)
		}
	}
	return matches, nil
}

// keepCopyrights removes all but the copyright files, and the folders that are empty then. A package whose folder is a
// link to another's keeps the link.
func keepCopyrights(root *os.Root, docs string) error {
	var dirs []string
	err := fs.WalkDir(root.FS(), docs, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case entry.IsDir():
			dirs = append(dirs, name)
			return nil
		case path.Base(name) == "copyright", entry.Type()&fs.ModeSymlink != 0 && path.Dir(name) == docs:
			return nil
		}
		return root.Remove(name)
	})
	if err != nil {
		return err
	}
	// The deepest first; one that still holds a copyright stays.
	for _, dir := range slices.Backward(dirs) {
		if err := root.Remove(dir); err != nil && !errors.Is(err, unix.ENOTEMPTY) {
			return err
		}
	}
	return nil
}

// layout makes the recipe's folders, files and links.
func (r recipe) layout(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("lay out tree: %w", err)
	}
	defer func() { _ = root.Close() }()
	for name, mode := range r.Dirs {
		if err := root.MkdirAll(name, 0o755); err != nil {
			return fmt.Errorf("lay out tree: %w", err)
		}
		if err := root.Chmod(name, mode); err != nil {
			return fmt.Errorf("lay out tree: %w", err)
		}
	}
	for name, file := range r.Files {
		content := file.Content
		if file.Append {
			old, err := root.ReadFile(name)
			if err != nil {
				return fmt.Errorf("lay out tree: %w", err)
			}
			content = string(old) + content
		}
		// Replaced, not written through: Debian ships some of these as links.
		if err := root.RemoveAll(name); err != nil {
			return fmt.Errorf("lay out tree: %w", err)
		}
		if err := root.WriteFile(name, []byte(content), 0o600); err != nil {
			return fmt.Errorf("lay out tree: %w", err)
		}
		if err := root.Chmod(name, file.Mode); err != nil {
			return fmt.Errorf("lay out tree: %w", err)
		}
	}
	for name, target := range r.Symlinks {
		if err := root.RemoveAll(name); err != nil {
			return fmt.Errorf("lay out tree: %w", err)
		}
		if err := root.Symlink(target, name); err != nil {
			return fmt.Errorf("lay out tree: %w", err)
		}
	}
	return nil
}

// errPrivileged marks a tree with something that could raise privileges inside the sandbox.
var errPrivileged = errors.New("the tree has privileged files")

// audit fails when anything below dir has a setuid or setgid bit, a file capability, or is a device, and counts the
// entries.
func audit(ctx context.Context, dir string) (entries int, err error) {
	var bad []string
	err = filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		entries++
		info, err := entry.Info()
		if err != nil {
			return err
		}
		reason := ""
		switch size, xattrErr := unix.Lgetxattr(name, "security.capability", nil); {
		case info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0:
			reason = "is setuid or setgid"
		case info.Mode()&fs.ModeDevice != 0:
			reason = "is a device"
		case xattrErr == nil && size > 0:
			reason = "has file capabilities"
		case xattrErr != nil && !errors.Is(xattrErr, unix.ENODATA) && !errors.Is(xattrErr, unix.ENOTSUP):
			return fmt.Errorf("read capabilities of %s: %w", name, xattrErr)
		}
		if reason != "" {
			bad = append(bad, "/"+strings.TrimPrefix(strings.TrimPrefix(name, dir), "/")+" "+reason)
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("audit tree: %w", err)
	}
	if len(bad) > 0 {
		return 0, fmt.Errorf("audit tree: %w: %s", errPrivileged, strings.Join(bad, "; "))
	}
	return entries, nil
}
