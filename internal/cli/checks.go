package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"patio/engine/api"
	"patio/sandbox/image"
	"patio/sandbox/namespace"
)

// status is how a check went, in a word.
type status string

const (
	statusOK   status = "ok"
	statusWarn status = "warn"
	statusFail status = "fail"
)

// finding is what one check found: the fact, what it means, and the commands that mend it.
type finding struct {
	Name    string `json:"name"`
	Status  status `json:"status"`
	Detail  string `json:"detail"`
	Meaning string `json:"meaning,omitempty"`
	Fix     string `json:"fix,omitempty"`

	// code is the kind of a failure.
	code api.Code
}

func fine(format string, args ...any) finding {
	return finding{Status: statusOK, Detail: fmt.Sprintf(format, args...)}
}

// missing is something that can be installed or built.
func missing(fix, meaning, format string, args ...any) finding {
	return finding{Status: statusFail, Detail: fmt.Sprintf(format, args...), Meaning: meaning, Fix: fix, code: api.CodeMissing}
}

// cannot is something about the machine itself.
func cannot(fix, meaning, format string, args ...any) finding {
	return finding{Status: statusFail, Detail: fmt.Sprintf(format, args...), Meaning: meaning, Fix: fix, code: api.CodeUnsupported}
}

func warning(fix, meaning, format string, args ...any) finding {
	return finding{Status: statusWarn, Detail: fmt.Sprintf(format, args...), Meaning: meaning, Fix: fix}
}

// checks are all of them, in the order in which they are shown.
var checks = []struct {
	name string
	run  func(context.Context, *machine) finding
}{
	{"machine", checkMachine},
	{"runsc", checkRunsc},
	{"image", checkImage},
	{"image tools", checkBuildTools},
	{"id mapping", checkSubordinate},
	{"user namespaces", checkNamespaces},
	{"network device", checkTUN},
	{"limits", checkCgroups},
	{"disk space", checkDisk},
	{"directories", checkDirs},
}

func checkMachine(_ context.Context, m *machine) finding {
	if m.os != "linux" || m.arch != "amd64" && m.arch != "arm64" {
		return cannot("", "gVisor runs on Linux on amd64 and arm64", "%s/%s", m.os, m.arch)
	}
	return fine("%s/%s, kernel %s", m.os, m.arch, firstNonEmpty(m.sysctl("kernel/osrelease"), "unknown"))
}

func checkRunsc(ctx context.Context, m *machine) finding {
	path, err := m.findRunsc()
	if err != nil {
		return missing("make setup", "it is the sandbox itself", "%v", err)
	}
	v, err := m.runscVersion(ctx, path)
	if err != nil {
		return missing("make setup", "the sandbox itself doesn't start", "%s: %v", path, err)
	}
	return fine("%s at %s", v, path)
}

func checkImage(_ context.Context, m *machine) finding {
	img, err := m.image()
	if err != nil {
		return missing("patio image build", "it holds Pi and what Pi works with", "%v", err)
	}
	return fine("%s, Pi %s, Node %s", img.Short(), img.Manifest.Versions["pi"], img.Manifest.Versions["node"])
}

// buildTools are the programs that an image build runs, with their Debian packages.
var buildTools = [][2]string{
	{"mmdebstrap", "mmdebstrap"}, {"mkfs.erofs", "erofs-utils"}, {"npm", "npm"}, {"unshare", "util-linux"}, {"mount", "mount"},
}

func checkBuildTools(_ context.Context, m *machine) finding {
	var absent, packages []string
	for _, tool := range buildTools {
		if _, err := m.lookPath(tool[0]); err != nil {
			absent, packages = append(absent, tool[0]), append(packages, tool[1])
		}
	}
	if len(absent) == 0 {
		return fine("all there")
	}
	slices.Sort(packages)
	fix := m.sudo("apt-get install " + strings.Join(packages, " "))
	if _, err := m.image(); err == nil {
		return warning(fix, "only needed to build another image", "missing: %s", strings.Join(absent, ", "))
	}
	return missing(fix, "the image can't be built without", "missing: %s", strings.Join(absent, ", "))
}

func checkSubordinate(_ context.Context, m *machine) finding {
	uids, gids, err := m.subordinate(m.uid)
	var entry *namespace.SubordinateError
	switch {
	case err == nil && m.uid == 0:
		return fine("root: ids %d to %d stand for those inside", uids.Start, uint64(uids.Start)+uint64(uids.Size)-1)
	case err == nil:
		return fine("%d user ids from %d, %d group ids from %d", uids.Size, uids.Start, gids.Size, gids.Start)
	case errors.Is(err, namespace.ErrNoIDMapper):
		return missing(m.sudo("apt-get install uidmap"), "they give the sandbox ids of its own without root", "newuidmap or newgidmap is missing")
	case errors.As(err, &entry):
		return missing(fmt.Sprintf("echo %s | sudo tee -a %s", shellQuote(entry.Line), entry.File),
			"the sandbox gets ids of its own from this range", "no range for you in %s", entry.File)
	}
	return cannot("", "", "%v", err)
}

func checkNamespaces(ctx context.Context, m *machine) finding {
	const meaning = "each sandbox lives in namespaces of its own"
	if m.sysctl("user/max_user_namespaces") == "0" {
		return cannot("sudo sysctl -w user.max_user_namespaces=15000", meaning, "user.max_user_namespaces is 0")
	}
	if m.uid != 0 && m.sysctl("kernel/unprivileged_userns_clone") == "0" {
		return cannot("sudo sysctl -w kernel.unprivileged_userns_clone=1", meaning, "kernel.unprivileged_userns_clone is 0")
	}
	if err := m.tryNamespaces(ctx); err != nil {
		return cannot("", meaning+"; in a container its seccomp profile may forbid them", "the kernel refuses them: %v", err)
	}
	if m.uid != 0 && m.sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1" {
		return warning("sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
			"AppArmor takes the capabilities inside from programs without a profile; a start then fails",
			"allowed, but kernel.apparmor_restrict_unprivileged_userns is 1")
	}
	return fine("allowed, tried")
}

// udevRule makes the mode last over a reboot.
const udevRule = `KERNEL=="tun", MODE="0666"`

func checkTUN(_ context.Context, m *machine) finding {
	const meaning = "it carries the sandbox's network to patio's gateway"
	err := m.openTUN()
	switch {
	case err == nil:
		return fine("%s can be opened", tunDevice)
	case isMissing(err):
		return cannot(m.sudo("modprobe tun"), meaning, "%s isn't there", tunDevice)
	}
	return cannot("sudo chmod 0666 "+tunDevice+"\necho "+shellQuote(udevRule)+" | sudo tee /etc/udev/rules.d/90-patio-tun.rules",
		meaning+"; opening it gives no rights in the host's own network", "%v", err)
}

func checkCgroups(_ context.Context, m *machine) finding {
	const meaning = "without them gVisor itself still bounds processes, open files and /tmp"
	mode, writable := m.cgroups()
	switch {
	case mode == "":
		return warning("", "memory and CPU of a session are not bounded here; "+meaning, "no cgroups are mounted")
	case !writable:
		return warning("", "memory and CPU of a session may not be bounded here; "+meaning, "%s, not writable for you", mode)
	}
	return fine("%s", mode)
}

// Space below which a session soon fails, and below which an image build does.
const (
	leastSessionSpace = 512 << 20
	leastBuildSpace   = 4 << 30
)

func checkDisk(_ context.Context, m *machine) finding {
	free, err := m.freeSpace(m.dirs.Data)
	if err != nil {
		return warning("", "", "unknown: %v", err)
	}
	state, err := m.freeSpace(m.dirs.State)
	if err != nil {
		return warning("", "", "unknown: %v", err)
	}
	text := fmt.Sprintf("%s free for images, %s for sessions", formatBytes(int64(free)), formatBytes(int64(state)))
	_, imageErr := m.image()
	switch {
	case state < leastSessionSpace:
		return warning("", "journals and Pi's session files need space", "%s", text)
	case errors.Is(imageErr, image.ErrNoImage) && free < leastBuildSpace:
		return warning("", "building the image takes up to "+formatBytes(leastBuildSpace), "%s", text)
	}
	return fine("%s", text)
}

// maxSocketPath is the longest path of a Unix socket.
const maxSocketPath = 107

func checkDirs(_ context.Context, m *machine) finding {
	// A socket is named by a session's id.
	if n := len(m.dirs.Runtime) + len("/12345678.sock"); n > maxSocketPath {
		return cannot("export XDG_RUNTIME_DIR=/run/user/"+strconv.Itoa(m.uid), "a socket's path can have "+strconv.Itoa(maxSocketPath)+" bytes",
			"%s is too long", m.dirs.Runtime)
	}
	for _, dir := range []string{m.dirs.State, m.dirs.Data, m.dirs.Runtime} {
		if err := m.writable(dir); err != nil {
			return cannot("", "patio keeps sessions, images and sockets there", "%s: %v", dir, err)
		}
	}
	return fine("state %s, images %s, sockets %s", m.dirs.State, m.dirs.Data, m.dirs.Runtime)
}
