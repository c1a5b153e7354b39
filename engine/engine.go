package engine

import (
	"context"
	"log/slog"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/sandbox/image"
)

// Options configure an Engine.
type Options struct {
	Dirs Dirs
	// Executable is the patio binary that becomes a session's supervisor.
	Executable string
	// Environ is the caller's environment, where provider keys are looked up.
	Environ []string
	// SessionDirs are directories with more of Pi's session files, absolute.
	SessionDirs []string
	Log         *slog.Logger
}

// Engine starts, finds and removes sessions. It holds no state of its own: two engines
// on the same directories see the same sessions.
type Engine struct {
	o Options
}

// New returns an engine. It touches nothing.
func New(o Options) *Engine {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Engine{o: o}
}

// Store is the store of images.
func (e *Engine) Store() image.Store { return image.Store{Dirs: e.o.Dirs.Images()} }

// Client talks to the supervisor of a session that runs.
func (e *Engine) Client(id, name string) *api.Client {
	return api.NewClient(e.o.Dirs.socket(id), name)
}

// OpenJournal reads the journal of a session from its file, records after since. For one
// that runs use the client: it can follow.
func (e *Engine) OpenJournal(_ context.Context, id string, since uint64) (*journal.Reader, error) {
	return journal.OpenReader(e.journalPath(id), since)
}
