// Package engine owns the life of sessions: the plan of a launch, the registry of
// sessions on disk, starting a session's supervisor, and reaping after a crash.
//
// It runs in whatever process needs it (a command, the terminal UI): there is no
// central daemon, the registry is a directory. What happens inside one session is its
// supervisor's (package engine/supervisor).
package engine
