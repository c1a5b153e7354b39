// Package tui is the terminal UI: it shows sessions and talks to them through what its
// Backend gives it, and holds no session state that the engine doesn't have.
package tui
