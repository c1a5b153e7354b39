package launcher

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sahilm/fuzzy"

	"patio/engine/api"
	"patio/tui/safe"
)

const (
	// maxCandidates bounds what is offered for a field, of which a few are shown at once.
	maxCandidates   = 200
	shownCandidates = 6
	// maxEntries bounds how much of a directory is looked through.
	maxEntries      = 10_000
	completeTimeout = 2 * time.Second
)

// thinkingLevels are those that Pi knows.
var thinkingLevels = []string{"off", "minimal", "low", "medium", "high", "xhigh", "max"}

// candidates are values that fit what is typed into a field.
type candidates struct {
	all    []string
	cursor int // -1: none was chosen
	top    int
}

func (c *candidates) open() bool   { return len(c.all) > 0 }
func (c *candidates) chosen() bool { return c.open() && c.cursor >= 0 }
func (c *candidates) close()       { c.all, c.cursor, c.top = nil, -1, 0 }

// offer shows values, unless all there is to offer is what is typed.
func (c *candidates) offer(typed string, all []string) {
	c.close()
	for _, value := range all {
		// What can't be shown as it is can't be chosen by what is shown.
		if len(value) > maxText || safe.Line(value) != value {
			continue
		}
		if c.all = append(c.all, value); len(c.all) == maxCandidates {
			break
		}
	}
	if len(c.all) == 1 && c.all[0] == typed {
		c.close()
	}
}

// move chooses another one; above the first is none.
func (c *candidates) move(n int) {
	c.cursor = max(-1, min(c.cursor+n, len(c.all)-1))
	c.top = max(min(c.top, max(c.cursor, 0)), c.cursor-shownCandidates+1)
}

// take is the one that was chosen, or the first.
func (c *candidates) take() string {
	value := c.all[max(c.cursor, 0)]
	c.close()
	return value
}

// matching are the values that a text fits, the best first.
func matching(typed string, all []string) []string {
	typed = strings.TrimSpace(typed)
	if typed == "" {
		return all
	}
	if slices.Contains(all, typed) {
		return nil
	}
	var found []string
	for _, m := range fuzzy.Find(typed, all) {
		found = append(found, m.Str)
	}
	return found
}

// limitKeys completes the name of the limit that is typed last.
func limitKeys(typed string) []string {
	names, _ := api.LimitKeys()
	at := strings.LastIndexAny(typed, " ,") + 1
	last := typed[at:]
	if strings.Contains(last, "=") {
		return nil
	}
	var found []string
	for _, name := range names {
		if strings.HasPrefix(name, last) {
			found = append(found, typed[:at]+name+"=")
		}
	}
	return found
}

// directories are those that a path can go on with. What can't be read has none.
func directories(ctx context.Context, typed string) []string {
	home := homeDir()
	dir, prefix := filepath.Split(typed)
	if typed == "~" {
		return []string{"~/"}
	}
	in := expand(strings.TrimSuffix(dir, "/"), home)
	switch {
	case dir == "":
		in = "."
	case strings.Trim(dir, "/") == "":
		in = "/"
	}
	f, err := os.Open(in)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	var found []string
	for seen := 0; seen < maxEntries && ctx.Err() == nil; {
		entries, err := f.ReadDir(500)
		seen += len(entries)
		for _, e := range entries {
			name := e.Name()
			if !strings.HasPrefix(name, prefix) || name[0] == '.' && !strings.HasPrefix(prefix, ".") {
				continue
			}
			if e.IsDir() || e.Type()&os.ModeSymlink != 0 && isDir(filepath.Join(in, name)) {
				found = append(found, dir+name+"/")
			}
		}
		if err != nil || errors.Is(err, io.EOF) {
			break
		}
	}
	slices.Sort(found)
	return found[:min(len(found), maxCandidates)]
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
