package catalog

import "time"

// Summary is what a list shows of one session file.
//
// Strings that Pi, a model or a user wrote (Title, FirstPrompt, LastText, Model, Thinking) are one line without control
// characters; Cwd and ParentSession are as the file has them.
type Summary struct {
	Path          string `json:"path"`
	ID            string `json:"id"`
	Version       int    `json:"version"` // of the format; 1 when the header doesn't say
	Cwd           string `json:"cwd"`
	ParentSession string `json:"parentSession,omitempty"`

	Title       string `json:"title"`              // the given name, else the first prompt
	Named       bool   `json:"named"`              // the title is a given name
	FirstPrompt string `json:"firstPrompt"`        // the beginning of the first prompt
	LastText    string `json:"lastText,omitempty"` // the beginning of the last message of user or model
	Model       string `json:"model"`              // provider/id, the last one used
	Thinking    string `json:"thinking,omitempty"` // the last level set

	Created      time.Time `json:"created"`      // zero when the header doesn't say
	LastActivity time.Time `json:"lastActivity"` // of the last message; else the header's time, else ModTime
	Size         int64     `json:"size"`
	ModTime      time.Time `json:"modTime"`

	// Messages counts entries of type message. It is an estimate unless Exact.
	Messages int `json:"messages"`
	// Exact says that the whole file was looked at. Otherwise only its beginning and its end were: Messages is
	// extrapolated, and a name or model that was set between the two windows isn't known.
	Exact bool `json:"exact"`
	// Torn says that the file doesn't end in a line feed: a write is under way, or one was cut off.
	Torn bool `json:"torn,omitempty"`
	// Broken says why Pi wouldn't open the file; empty for a session.
	Broken string `json:"broken,omitempty"`
}

// Problem is something that couldn't be looked at, and why. It doesn't end a scan.
type Problem struct {
	Path string
	Err  error
}

// Error is the path with the reason.
func (p Problem) Error() string { return p.Path + ": " + p.Err.Error() }

// Unwrap returns the reason.
func (p Problem) Unwrap() error { return p.Err }
