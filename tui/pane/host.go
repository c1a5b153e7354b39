package pane

import (
	"encoding/json"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/sessions"
)

// Host does things to the session that a pane shows. Each method returns at once with a
// command that does the work outside of Update. What went wrong, when done is nil, the
// root shows as a notice.
type Host interface {
	// Prompt sends a message to Pi.
	Prompt(r api.PromptRequest, done func(api.PromptResponse, error) tea.Msg) tea.Cmd
	// Command sends one of Pi's RPC commands, any value that marshals to one, and gives
	// Pi's response line, whose success may be false.
	Command(command any, done func(json.RawMessage, error) tea.Msg) tea.Cmd
	// Records reads records of the session's journal again, at most limit of those after
	// since, of the types named, or of all.
	Records(since uint64, limit int, types []string, done func([]journal.Record, error) tea.Msg) tea.Cmd
	// History reads the conversation that Pi's session file holds from before a time: what
	// an imported or resumed session's journal doesn't have.
	History(before time.Time, done func([]sessions.Turn, error) tea.Msg) tea.Cmd
	// Processes lists what runs inside.
	Processes(done func([]api.Process, error) tea.Msg) tea.Cmd
	// Kill sends a signal to a process inside.
	Kill(pid int, signal string, done func(error) tea.Msg) tea.Cmd
}

// NoticeLevel is how grave a notice is.
type NoticeLevel int

// The levels.
const (
	Info NoticeLevel = iota
	Good
	Warning
	Bad
)

// NoticeMsg asks the root to show a short text for a while. The text is sanitized there.
type NoticeMsg struct {
	Level NoticeLevel
	Text  string
}

// Notice is the command for a NoticeMsg.
func Notice(level NoticeLevel, text string) tea.Cmd {
	return func() tea.Msg { return NoticeMsg{level, text} }
}

// Failed is the command that tells of an error; nil for none.
func Failed(err error) tea.Cmd {
	if err == nil {
		return nil
	}
	return func() tea.Msg { return ErrorMsg{err} }
}

// ErrorMsg asks the root to show an error with its hint.
type ErrorMsg struct{ Err error }

// CopyMsg asks the root to put text into the clipboard. What names it in the notice.
type CopyMsg struct{ Text, What string }

// Copy is the command for a CopyMsg.
func Copy(text, what string) tea.Cmd { return func() tea.Msg { return CopyMsg{text, what} } }

// ConfirmMsg asks the user before something is lost; Then runs after a yes.
type ConfirmMsg struct {
	Question string // ends in a question mark
	Lost     string // what will be lost, or that nothing will
	Yes      string // the verb: stop, delete
	Then     tea.Cmd
}

// Confirm is the command for a ConfirmMsg.
func Confirm(m ConfirmMsg) tea.Cmd { return func() tea.Msg { return m } }

// ExportMsg asks the root to write a file in the directory that patio was started in,
// without replacing one, and to say where it is.
type ExportMsg struct {
	Name  string // base name
	Write func(io.Writer) error
}

// Export is the command for an ExportMsg.
func Export(name string, write func(io.Writer) error) tea.Cmd {
	return func() tea.Msg { return ExportMsg{name, write} }
}

// OpenMsg asks the root to open a session by its id.
type OpenMsg struct{ Session string }

// EditMsg asks the root to run $VISUAL or $EDITOR on text; Done gets what it became.
type EditMsg struct {
	Text string
	Done func(text string, err error) tea.Msg
}

// FocusMsg tells the tabs of a session that something was selected in one of them: a tool
// call, a connection, a time. The root gives it to all; each moves to what fits, if it
// has any.
type FocusMsg struct {
	From     string // the tab's name
	Tab      string // the tab to change to, empty to stay
	ToolCall string
	Seq      uint64 // of a journal record
	Host     string
}

// Focus is the command for a FocusMsg.
func Focus(m FocusMsg) tea.Cmd { return func() tea.Msg { return m } }

// BackMsg asks the root to leave the screen that is shown.
type BackMsg struct{}

// Back is the command for a BackMsg.
func Back() tea.Msg { return BackMsg{} }
