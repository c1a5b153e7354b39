package namespace

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"os/user"
	"strconv"

	mobyuser "github.com/moby/sys/user"
)

// rootRange is what root uses for the ids around SandboxID: no account and no other
// tool allocates them (systemd's user database lists 0x70000000 and up as unused, and
// useradd hands subordinate ids out from 100000 to 600100000).
var rootRange = Range{Start: 0x70000000, Size: idsInside}

// SubordinateError says that the caller has no subordinate ids. Line is what to add.
type SubordinateError struct {
	File, Line string
	Err        error
}

func (e *SubordinateError) Error() string {
	msg := fmt.Sprintf("%s has no range for you: as root, append the line %q to it", e.File, e.Line)
	if e.Err != nil {
		msg += fmt.Sprintf(" (%v)", e.Err)
	}
	return msg
}

func (e *SubordinateError) Unwrap() error { return e.Err }

// ErrNoIDMapper means that newuidmap or newgidmap is not installed.
var ErrNoIDMapper = errors.New("newuidmap and newgidmap are missing: install the Debian package uidmap (apt-get install uidmap)")

// Subordinate returns the user and group ids that uid may map into a namespace. Root
// needs no entry; anybody else needs one in /etc/subuid and /etc/subgid, and the two
// setuid programs of the package uidmap to use it.
func Subordinate(uid int) (uids, gids Range, err error) {
	if uid == 0 {
		return rootRange, rootRange, nil
	}
	for _, tool := range []string{"newuidmap", "newgidmap"} {
		if _, err := exec.LookPath(tool); err != nil {
			return Range{}, Range{}, ErrNoIDMapper
		}
	}
	name := strconv.Itoa(uid)
	if u, err := user.LookupId(name); err == nil {
		name = u.Username
	}
	uids, err = subordinateRange("/etc/subuid", name, uid)
	if err != nil {
		return Range{}, Range{}, err
	}
	gids, err = subordinateRange("/etc/subgid", name, uid)
	return uids, gids, err
}

// subordinateRange finds the caller's largest range: several lines are legal.
func subordinateRange(file, name string, uid int) (Range, error) {
	suggestion := fmt.Sprintf("%s:%d:65536", name, 100000+uint32(uid%10000)*65536)
	entries, err := mobyuser.ParseSubIDFile(file)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return Range{}, &SubordinateError{File: file, Line: suggestion, Err: err}
	}
	var best Range
	for _, e := range entries {
		if e.Name != name && e.Name != strconv.Itoa(uid) {
			continue
		}
		if e.SubID < 0 || e.Count <= 0 || e.SubID+e.Count > 1<<32 {
			continue
		}
		if uint32(e.Count) > best.Size {
			best = Range{Start: uint32(e.SubID), Size: uint32(e.Count)}
		}
	}
	if best.Size < SandboxID {
		return Range{}, &SubordinateError{File: file, Line: suggestion}
	}
	return best, nil
}
