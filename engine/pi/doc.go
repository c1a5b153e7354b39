// Package pi knows the coding agent Pi: how one is launched, what its RPC says, and
// which host its model lives on. It starts nothing and reads no file but the caller's
// own models.json.
//
// Facts are those of Pi 0.84.2.
package pi
