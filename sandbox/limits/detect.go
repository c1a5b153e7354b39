package limits

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// Mode is how cgroups are laid out on a machine.
type Mode string

// The modes that Open reports.
const (
	ModeV2 Mode = "cgroup v2"
	// ModeV2Delegated is a part of the tree that someone, usually systemd, has handed to this user.
	ModeV2Delegated Mode = "cgroup v2 (delegated)"
	// ModeV2Scope is a scope that systemd made for this session.
	ModeV2Scope Mode = "cgroup v2 (systemd scope)"
	ModeV1      Mode = "cgroup v1"
	// ModeHybrid has its limits in version 1, with a version 2 mount beside it.
	ModeHybrid Mode = "cgroup v1 (hybrid)"
	ModeNone   Mode = "none"
)

// hierarchy is one mounted cgroup tree as the calling process sees it.
type hierarchy struct {
	version int
	// controllers of version 1, as mounted; "name=systemd" for a named one. Version 2 tells them per directory.
	controllers []string
	mount       string
	// own is the directory of the calling process, or the mount when that is not visible in it.
	own string
}

// detect lists the hierarchies that are mounted at or below root. A machine without any is no error.
func detect(procRoot, root string) ([]hierarchy, error) {
	file, err := os.Open(filepath.Join(procRoot, "self", "mountinfo"))
	if err != nil {
		return nil, fmt.Errorf("detect cgroups: %w", err)
	}
	mounts, err := mountinfo.GetMountsFromReader(file, func(info *mountinfo.Info) (skip, stop bool) {
		inside := info.Mountpoint == root || strings.HasPrefix(info.Mountpoint, root+"/")
		return !inside || info.FSType != "cgroup" && info.FSType != "cgroup2", false
	})
	_ = file.Close() // Only read.
	if err != nil {
		return nil, fmt.Errorf("detect cgroups: %w", err)
	}
	own, err := ownPaths(procRoot)
	if err != nil {
		return nil, fmt.Errorf("detect cgroups: %w", err)
	}

	var found []hierarchy
	seen := make(map[string]bool)
	for _, mount := range mounts {
		h := hierarchy{version: 2, mount: mount.Mountpoint}
		name := ""
		if mount.FSType == "cgroup" {
			h.version = 1
			h.controllers = v1Controllers(mount.VFSOptions)
			if len(h.controllers) == 0 {
				continue
			}
			name = h.controllers[0]
		}
		// A hierarchy may be mounted more than once; the first is where everyone looks.
		if seen[name] {
			continue
		}
		seen[name] = true
		h.own = ownDirectory(mount, own[name])
		found = append(found, h)
	}
	return found, nil
}

// v1Controllers picks the controllers out of a version 1 mount's options.
func v1Controllers(options string) []string {
	var controllers []string
	for option := range strings.SplitSeq(options, ",") {
		switch {
		case option == "", option == "rw", option == "ro", option == "noprefix", option == "xattr", option == "clone_children",
			option == "cpuset_v2_mode", strings.HasPrefix(option, "release_agent="):
		default:
			controllers = append(controllers, option)
		}
	}
	return controllers
}

// ownPaths reads /proc/self/cgroup: the cgroup of the calling process by controller, version 2 under "".
func ownPaths(procRoot string) (map[string]string, error) {
	data, err := os.ReadFile(filepath.Join(procRoot, "self", "cgroup"))
	if err != nil {
		return nil, err
	}
	paths := make(map[string]string)
	for line := range strings.Lines(string(data)) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(fields) != 3 {
			continue
		}
		for controller := range strings.SplitSeq(fields[1], ",") {
			paths[controller] = fields[2]
		}
	}
	return paths, nil
}

// ownDirectory turns a path of /proc/self/cgroup into a directory below the mount. In a container the mount's root may
// be a cgroup of its own, and paths outside of a cgroup namespace begin with "/..": then the mount is all there is.
func ownDirectory(mount *mountinfo.Info, path string) string {
	if path == "" || strings.HasPrefix(path, "/..") {
		return mount.Mountpoint
	}
	relative, err := filepath.Rel(mount.Root, path)
	if err != nil || relative == ".." || strings.HasPrefix(relative, "../") {
		return mount.Mountpoint
	}
	directory := filepath.Join(mount.Mountpoint, relative)
	if !exists(directory) {
		return mount.Mountpoint
	}
	return directory
}

// mode names the layout.
func mode(hierarchies []hierarchy) Mode {
	var v1, v2 bool
	for _, h := range hierarchies {
		switch {
		case h.version == 2:
			v2 = true
		case !strings.HasPrefix(h.controllers[0], "name="):
			v1 = true
		}
	}
	switch {
	case v1 && v2:
		return ModeHybrid
	case v1:
		return ModeV1
	case v2:
		return ModeV2
	default:
		return ModeNone
	}
}
