package panetest

import "patio/engine/api"

// Mount is a mount of a path at the same path inside.
func Mount(path string, mode api.MountMode, reason string) api.Mount {
	return api.Mount{Source: path, Destination: path, Mode: mode, Reason: reason}
}
