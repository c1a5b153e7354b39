package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/adrg/xdg"

	"patio/engine/api"
)

// Dirs are where patio keeps things. All are private to the user.
type Dirs struct {
	State   string // sessions, their journals, Pi's session files
	Data    string // images
	Cache   string // what can be made again
	Runtime string // sockets; may vanish at log-out
	Config  string // config.toml
}

// SystemImages is the store of images that root has built: everybody may use them.
const SystemImages = "/var/lib/patio/images"

// UserDirs returns the directories of the calling user, from the environment as the XDG
// base directory specification says. Root has the system's.
func UserDirs() (Dirs, error) {
	if os.Geteuid() == 0 && os.Getenv("XDG_STATE_HOME") == "" {
		return Dirs{
			State:   "/var/lib/patio",
			Data:    "/var/lib/patio",
			Cache:   "/var/cache/patio",
			Runtime: "/run/patio",
			Config:  "/etc/patio",
		}, nil
	}
	xdg.Reload()
	if xdg.Home == "" {
		return Dirs{}, api.Errorf(api.CodeConfig, "set HOME", "the home directory is unknown")
	}
	d := Dirs{
		State:  filepath.Join(xdg.StateHome, "patio"),
		Data:   filepath.Join(xdg.DataHome, "patio"),
		Cache:  filepath.Join(xdg.CacheHome, "patio"),
		Config: filepath.Join(xdg.ConfigHome, "patio"),
	}
	// /run/user/UID exists where logind runs, but not in a bare ssh or su session.
	switch base := os.Getenv("XDG_RUNTIME_DIR"); {
	case filepath.IsAbs(base): // a relative one is to be ignored, says the specification
		d.Runtime = filepath.Join(base, "patio")
	case isDir("/run/user/" + strconv.Itoa(os.Getuid())):
		d.Runtime = filepath.Join("/run/user", strconv.Itoa(os.Getuid()), "patio")
	default:
		d.Runtime = filepath.Join(d.State, "run")
	}
	return d, nil
}

func isDir(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}

// prepare makes the directories that a launch needs, private to the user.
func (d Dirs) prepare() error {
	for _, dir := range []string{d.sessions(), d.piSessions(), d.locks(), d.Runtime} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("make patio's directories: %w", err)
		}
	}
	fi, err := os.Stat(d.Runtime)
	if err != nil {
		return err
	}
	// Sockets are protected by their directory alone.
	if fi.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(d.Runtime, 0o700); err != nil {
			return errors.Join(fmt.Errorf("%s is open to others", d.Runtime), err)
		}
	}
	return nil
}

func (d Dirs) sessions() string { return filepath.Join(d.State, "sessions") }

// piSessions is where Pi writes its session files: one directory for all of a user's
// sessions, at the same path in every launch, so that a file keeps its name for good.
func (d Dirs) piSessions() string { return filepath.Join(d.State, "pi-sessions") }

// locks is where session files that a live session writes are locked.
func (d Dirs) locks() string { return filepath.Join(d.State, "locks") }

func (d Dirs) session(id string) string { return filepath.Join(d.sessions(), id) }

// socket is short on purpose: a Unix socket's path can't exceed 107 bytes.
func (d Dirs) socket(id string) string { return filepath.Join(d.Runtime, id+".sock") }

// Images are the image stores: the user's own first, then root's.
func (d Dirs) Images() []string {
	own := filepath.Join(d.Data, "images")
	if own == SystemImages {
		return []string{own}
	}
	return []string{own, SystemImages}
}

// scratch is where a sandbox keeps runsc's bundle and state while it runs.
func (d Dirs) scratch(id string) string { return filepath.Join(d.Runtime, id) }
