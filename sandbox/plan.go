// Package sandbox owns one gVisor sandbox: a pure plan, the OCI spec that follows from
// it, and the running thing. It knows nothing of Pi and nothing of sessions.
package sandbox

import (
	"patio/sandbox/limits"
	"patio/sandbox/mounts"
)

// Plan is everything that decides what a sandbox is. Two equal plans make equal
// sandboxes; making one touches nothing.
type Plan struct {
	ID    string `json:"id"`
	Image Image  `json:"image"`
	// Argv is the program inside, Env its whole environment as NAME=value.
	Argv []string `json:"argv"`
	Env  []string `json:"env"`
	Cwd  string   `json:"cwd"`
	// Owner is the host id that becomes user 1000 inside; files made inside belong to it.
	Owner  Owner          `json:"owner"`
	Mounts []mounts.Mount `json:"mounts"`
	Limits limits.Limits  `json:"limits"`
	// Platform is how gVisor catches system calls: systrap or kvm.
	Platform string `json:"platform"`
}

// Image is the root file system: one EROFS file.
type Image struct {
	Digest string `json:"digest"`
	Path   string `json:"path"`
}

// Owner is a user and group id on the host.
type Owner struct {
	UID uint32 `json:"uid"`
	GID uint32 `json:"gid"`
}
