package image

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	mobyuser "github.com/moby/sys/user"
)

var (
	// ErrMissingTool marks a build that needs programs which are not installed.
	ErrMissingTool = errors.New("missing programs to build the image")
	// ErrSubordinateIDs marks an unprivileged build by a user without subordinate ids.
	ErrSubordinateIDs = errors.New("no subordinate ids")
)

// hostTool is a program that a build runs and the Debian package that has it.
type hostTool struct{ name, debian string }

var hostTools = []hostTool{
	{"mmdebstrap", "mmdebstrap"},
	{"mkfs.erofs", "erofs-utils"},
	{"npm", "npm"},
	{"unshare", "util-linux"},
	{"mount", "mount"},
	{"chroot", "coreutils"},
	{"sh", "dash"},
}

// rootlessTools are needed in addition when an ordinary user builds.
var rootlessTools = []hostTool{
	{"newuidmap", "uidmap"},
	{"newgidmap", "uidmap"},
}

// toolset is the path of each host tool.
type toolset map[string]string

// findTools finds all host tools or names everything that is missing at once.
func findTools(find func(string) (string, error), root bool) (toolset, error) {
	want := hostTools
	if !root {
		want = slices.Concat(hostTools, rootlessTools)
	}
	tools := toolset{}
	var missing, packages []string
	for _, tool := range want {
		path, err := find(tool.name)
		if err != nil {
			missing = append(missing, tool.name)
			packages = append(packages, tool.debian)
			continue
		}
		tools[tool.name] = path
	}
	if len(missing) == 0 {
		return tools, nil
	}
	slices.Sort(packages)
	sudo := "sudo "
	if root {
		sudo = ""
	}
	return nil, fmt.Errorf("%w: %s; on Debian: %sapt-get install %s",
		ErrMissingTool, strings.Join(missing, ", "), sudo, strings.Join(slices.Compact(packages), " "))
}

const (
	subuidFile = "/etc/subuid"
	subgidFile = "/etc/subgid"
	// subordinateIDs is how many ids an unprivileged bootstrap maps: the ordinary 16-bit range of a Debian system.
	subordinateIDs = 65536
	// firstSubordinateID is where useradd begins.
	firstSubordinateID = 100000
)

// checkSubordinateIDs fails when the user has no range in one of the two files, and says which line to add.
func checkSubordinateIDs(u *user.User, uidFile, gidFile string) error {
	var lines []string
	for _, file := range []string{uidFile, gidFile} {
		ranges, err := mobyuser.ParseSubIDFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("read %s: %w", file, err)
		}
		next, has := int64(firstSubordinateID), false
		for _, r := range ranges {
			if (r.Name == u.Username || r.Name == u.Uid) && r.Count >= subordinateIDs {
				has = true
			}
			next = max(next, r.SubID+r.Count)
		}
		if !has {
			line := u.Username + ":" + strconv.FormatInt(next, 10) + ":" + strconv.Itoa(subordinateIDs)
			lines = append(lines, fmt.Sprintf("add the line %q to %s", line, file))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return fmt.Errorf("%w for user %s: as root, %s", ErrSubordinateIDs, u.Username, strings.Join(lines, " and "))
}
