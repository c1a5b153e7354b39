// Package supervisor is the process of one session. It owns the sandbox's stdio, its
// gateway and its journal, serves the session's API, and leaves nothing behind.
//
// It is crash-only: what it knows is on disk before anybody is told, and everything
// inside the sandbox ends with it (see sandbox/namespace).
package supervisor
