package tui

import (
	"context"
	"encoding/json"
	"os/exec"
	"time"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/sessions"
	"patio/sessions/catalog"
	"patio/tui/doctor"
	"patio/tui/importer"
	"patio/tui/launcher"
)

// Backend is what the UI works on. Everything in it may block, and is called from
// commands only, never from Update or View.
type Backend struct {
	Sessions Sessions
	Journals Journals
	Launches Launches
	// Client returns a client of the supervisor of a session.
	Client func(session string) Client
	// Import makes a session file of Pi's a session.
	Import importer.ImportFunc
	// Files says where session files of Pi's are.
	Files catalog.Options
	// Check looks at this machine.
	Check func(context.Context) ([]doctor.Finding, error)
	// Editor is the command that opens a file in the user's editor.
	Editor func(ctx context.Context, file string) (*exec.Cmd, error)
	// Shell is the command that opens a shell in a session's sandbox.
	Shell func(session string) *exec.Cmd
}

// Sessions are the registered sessions.
type Sessions interface {
	List(ctx context.Context) ([]api.Session, error)
	// Stop ends a session and returns when nothing of it is left.
	Stop(ctx context.Context, session string) error
	// Remove deletes a session that has ended.
	Remove(ctx context.Context, session string) error
	// Resume starts a sandbox for a session that has ended.
	Resume(ctx context.Context, session string) error
	// Kill sends a signal to a process inside.
	Kill(ctx context.Context, session string, pid int, signal string) error
}

// Journals are what sessions left behind, and leave just now.
type Journals interface {
	// Records calls f with the records after since, in order; with follow until the session
	// has ended. The record's data is f's to keep. An error of f ends it and is returned.
	Records(ctx context.Context, session string, since uint64, follow bool, f func(journal.Record) error) error
	// History is what Pi's session file holds from before a time. Its results are read.
	History(ctx context.Context, session string, before time.Time) ([]sessions.Turn, error)
}

// Launches are sessions that are to be.
type Launches interface {
	Plan(ctx context.Context, r launcher.Request) (api.Session, error)
	Start(ctx context.Context, r launcher.Request) (api.Session, error)
	Models(ctx context.Context) ([]string, error)
}

// Client talks to a session that runs, as *api.Client does.
type Client interface {
	Prompt(ctx context.Context, r api.PromptRequest) (api.PromptResponse, error)
	Command(ctx context.Context, command any) (json.RawMessage, error)
	Processes(ctx context.Context) ([]api.Process, error)
	Close()
}
