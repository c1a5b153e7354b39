// Package mounts decides which host paths a sandbox may see. It makes no mounts.
package mounts

// Mode is how a mount can be used from inside.
type Mode string

// The modes of a mount.
const (
	ReadOnly  Mode = "ro"
	ReadWrite Mode = "rw"
)

// Mount is one host path inside a sandbox. Host paths keep their absolute path: what a
// session writes down stays true on the host.
type Mount struct {
	Source      string `json:"source"`
	Destination string `json:"destination"`
	Mode        Mode   `json:"mode"`
	// Reason says for a person why the path is there.
	Reason string `json:"reason"`
}

// At returns a mount of path at the same path inside.
func At(path string, mode Mode, reason string) Mount {
	return Mount{Source: path, Destination: path, Mode: mode, Reason: reason}
}

// LeftOut is a host path that a session might miss, and why it isn't there.
type LeftOut struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}
