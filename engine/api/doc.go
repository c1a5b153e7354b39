// Package api is the wire between a session's supervisor and everybody who looks at it
// or talks to it: the types, the client and the server of an HTTP API on a Unix socket.
//
// The socket is the access control: its directory is the owner's alone (0700).
// The package decides nothing; a Backend does.
package api
