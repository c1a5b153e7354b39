package engine

import (
	"patio/engine/api"
	"patio/sandbox/image"
)

// Request is what a user asks for. Every field but Workspace may be empty.
type Request struct {
	// Workspace is the directory to work in, absolute or relative to the caller's own.
	Workspace string
	Name      string
	// Model is PROVIDER/MODEL.
	Model    string
	Thinking string
	// Allow lists egress rules, HOST[:PORT].
	Allow []string
	// Limits are settings such as memory=4G.
	Limits []string
	// Image is a digest's prefix; empty means the one this patio would build.
	Image string
	// Platform is how gVisor catches system calls: systrap (default) or kvm.
	Platform string
	// StartedBy says for a person what started the session: patio new, patio run.
	StartedBy string
}

// Launch is a planned session: everything that Start needs, secrets included. Making
// one touches nothing.
type Launch struct {
	// Session is the snapshot of the session as planned, phase new, without secrets.
	Session api.Session
	image   image.Image
	// resume says that the session's directory is there already.
	resume bool
	spec   Spec
}
