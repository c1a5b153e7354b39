// Package limits bounds what one sandbox may take from the machine and measures what it takes: it owns the session's
// cgroup and the sampling of its process tree, and must not start processes or decide when a session ends.
package limits
