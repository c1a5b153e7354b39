package limits

import (
	"errors"
	"path/filepath"
	"slices"
)

// The version 1 controllers in which a session gets a cgroup: those that keep a limit, and those that count processor
// time and transfers or can hold all processes still.
var v1Used = []string{"memory", "pids", "cpu", "cpuacct", "blkio", "freezer"}

// openV1 makes the session's cgroup in one version 1 hierarchy.
func (b *builder) openV1(h hierarchy) error {
	used := slices.DeleteFunc(slices.Clone(h.controllers), func(c string) bool {
		return !slices.Contains(v1Used, c)
	})
	if len(used) == 0 {
		return nil
	}
	parent := h.own
	if b.Parent != "" {
		parent = filepath.Join(h.mount, b.Parent)
	}
	path, err := b.make(parent, nil)
	if errors.Is(err, errBusy) {
		return err
	}
	if err != nil {
		for _, controller := range used {
			b.refuse(controller, plain(err))
		}
		return nil
	}
	b.adopt(directory{version: 1, controllers: used, path: path, mount: h.mount})
	return nil
}
