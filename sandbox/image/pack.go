package image

import (
	"context"
	"fmt"
	"os"
	"strings"
)

// pack makes the EROFS file from the tree, which has the given number of entries.
func (b *build) pack(ctx context.Context, path string, entries int) error {
	packed := 0
	cmd := command{
		path: b.tools["mkfs.erofs"],
		args: append(append([]string{}, b.recipe.Mkfs...), path, b.root()),
		dir:  "/",
		onLine: func(line string) {
			if strings.HasPrefix(line, "Processing ") {
				packed++
				b.report(min(1, float64(packed)/float64(entries)), "")
			}
		},
	}
	if err := cmd.run(ctx); err != nil {
		return fmt.Errorf("pack image: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("pack image: %w", err)
	}
	defer func() { _ = f.Close() }()
	// Nobody writes to it again: its name is its digest.
	if err := f.Chmod(0o444); err != nil {
		return fmt.Errorf("pack image: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("pack image: %w", err)
	}
	return nil
}
