package importer

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"patio/sessions"
	"patio/sessions/catalog"
)

// Source is where session files come from, and what is done with them. Each method
// returns at once with a command that does the work outside of Update.
type Source interface {
	// Watch waits for the next list. The pane asks again after each.
	Watch(done func(catalog.Update, error) tea.Msg) tea.Cmd
	// Search looks for a text in the conversations of sessions, in their order. It ends a
	// search that is under way, whose command then gives no message; an empty query does
	// no more than that, and gives no command.
	Search(query string, in []catalog.Summary, done func(Hits, error) tea.Msg) tea.Cmd
	// Preview reads a part of a conversation: around an entry, or its end when the entry
	// is "". Several may be read at once, for whoever asks.
	Preview(path, entry string, done func(Preview, error) tea.Msg) tea.Cmd
	// Check reads a whole file and tells what is wrong with it.
	Check(path string, done func(sessions.Report, error) tea.Msg) tea.Cmd
	// Import makes a file a session, which goes on in the file itself, or in a mended copy.
	Import(path string, copyInto bool, done func(Result, error) tea.Msg) tea.Cmd
}

// ImportFunc makes a session file a session that has ended, to be resumed. An error is
// of importing as such; a file that was refused says so in its Result.
type ImportFunc func(ctx context.Context, path string, copyInto bool) (Result, error)

// Result is what became of a file.
type Result struct {
	Status  string // imported, known or refused
	Session string // its id, unless it was refused
	Notes   string
	Error   string // why it was refused
}

// The statuses of a Result.
const (
	Imported = "imported"
	Known    = "known"
	Refused  = "refused"
)

// Hits is what a search found.
type Hits struct {
	Matches []catalog.Match
	Files   int  // that were searched
	More    bool // there may be more than these
	// Unread counts the files that couldn't be searched; Problem is the first of them.
	Unread  int
	Problem string
}

// Preview is a part of a conversation.
type Preview struct {
	Turns  []Turn
	Before int // turns before the first of these
	After  int // turns after the last of these
	At     int // the one that was asked for, -1 for none
	Usage  sessions.Usage
	// Branches is how many ways the conversation has.
	Branches int
}

// Turn is what somebody said, in a few lines. The texts are foreign.
type Turn struct {
	Role   string
	Time   time.Time
	Blocks []Block
}

// Block is one part of a turn.
type Block struct {
	Kind   sessions.BlockKind
	Title  string
	Text   string
	Cut    bool // the text is longer
	Failed bool
}
