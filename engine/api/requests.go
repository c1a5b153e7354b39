package api

import "encoding/json"

// PromptRequest is a message for Pi.
type PromptRequest struct {
	Message string `json:"message"`
	// Behavior is for a session that is working: steer or followUp. Empty is refused then.
	Behavior string `json:"behavior,omitempty"`
	// Images are Pi's image blocks, passed through as they are.
	Images json.RawMessage `json:"images,omitempty"`
}

// PromptResponse tells where the answer starts in the journal.
type PromptResponse struct {
	// Seq is the record before the prompt's own: follow the journal from here.
	Seq uint64 `json:"seq"`
}

// StopRequest ends a session.
type StopRequest struct {
	Reason string `json:"reason,omitempty"`
	// Now skips the graces: the sandbox is killed.
	Now bool `json:"now,omitempty"`
}

// ExecRequest runs a program in the sandbox. The connection is upgraded, and the
// client's descriptors 0, 1 and 2 follow on it (SCM_RIGHTS).
type ExecRequest struct {
	Argv []string `json:"argv"`
	Env  []string `json:"env,omitempty"`
	Cwd  string   `json:"cwd,omitempty"`
	TTY  bool     `json:"tty,omitempty"`
}

// ExecMessage goes both ways on an exec connection, one JSON a line.
type ExecMessage struct {
	Signal   int    `json:"signal,omitempty"`    // to the supervisor
	Exited   bool   `json:"exited,omitempty"`    // to the client, the last message
	ExitCode int    `json:"exit_code,omitempty"` // 128+N for a signal
	Error    *Error `json:"error,omitempty"`     // why there is no exit code
}

// Process is one process inside a sandbox.
type Process struct {
	PID        int     `json:"pid"`
	PPID       int     `json:"ppid"`
	UID        int     `json:"uid"`
	CPUPercent float64 `json:"cpu_percent"`
	RSS        int64   `json:"rss_bytes"`
	Elapsed    int64   `json:"elapsed_seconds"`
	Command    string  `json:"command"`
}
