// Package pane is the contract between the terminal UI's root and its views.
package pane

import (
	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/tui/style"
)

// Pane is one view: a screen, or a tab of a session. The root owns the terminal and the
// data; a pane draws what it was told and asks for what it wants done. All methods are
// called from the program's one goroutine, and none may block: no files, no sockets.
type Pane interface {
	// SetSize gives the pane its room, in cells. It is called before the first View.
	SetSize(width, height int)
	SetStyles(s *style.Styles)
	// Update handles a key, the mouse (with coordinates relative to the pane's upper left
	// corner), a paste, or a message of the pane's own. What it wants done is a command,
	// mostly one of Host's.
	Update(msg tea.Msg) tea.Cmd
	// View draws exactly height lines of exactly width columns. It changes nothing, and
	// costs by what is visible, not by what there is.
	View() string
	// Keys are the bindings that do something now, the most important first: the footer
	// and the help show them.
	Keys() []key.Binding
}

// Follower is a pane that shows a session.
type Follower interface {
	// Apply takes records of the session's journal, each once and in order. Their data is
	// shared: it must not be changed, and what is kept of it must be bounded.
	Apply(records []journal.Record)
	// SetSession takes the session's newest snapshot.
	SetSession(s api.Session)
}

// Counter is a pane whose tab shows a count.
type Counter interface{ Count() int }

// Typist is a pane that may be taking text: keys that are letters then are text, and the
// root keeps its own single-letter keys to itself.
type Typist interface{ Typing() bool }

// Cursored is a pane that shows the terminal's cursor, relative to its corner; nil hides it.
type Cursored interface{ Cursor() *tea.Cursor }

// Escaper is a pane in which esc may close something of its own before it leaves the screen.
type Escaper interface{ Escapes() bool }

// TickMsg goes to a visible Ticker after its Tick, so that it can ask for something.
type TickMsg struct{}

// Ticker is a pane that animates.
type Ticker interface {
	// Tick is called about ten times a second while the pane is visible.
	Tick()
}
