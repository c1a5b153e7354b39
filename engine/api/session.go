package api

import (
	"encoding/json"
	"time"

	"patio/sandbox/limits"
	"patio/sandbox/mounts"
	"patio/sandbox/network/policy"
)

// Phase is where a session is in its life.
type Phase string

// The phases. Ended, failed and crashed are final; a failed session never became ready,
// and a crashed one lost its supervisor.
const (
	PhaseNew       Phase = "new"
	PhasePreparing Phase = "preparing"
	PhaseStarting  Phase = "starting"
	PhaseReady     Phase = "ready"
	PhaseStopping  Phase = "stopping"
	PhaseEnded     Phase = "ended"
	PhaseFailed    Phase = "failed"
	PhaseCrashed   Phase = "crashed"
)

// Final reports whether nothing can follow the phase.
func (p Phase) Final() bool {
	return p == PhaseEnded || p == PhaseFailed || p == PhaseCrashed
}

// Activity is what Pi does in a ready session.
type Activity string

// The activities. Blocked means that Pi waits for an answer to a question.
const (
	ActivityIdle    Activity = "idle"
	ActivityWorking Activity = "working"
	ActivityBlocked Activity = "blocked"
)

// Session is a snapshot of one session. It is also what a session's directory holds as
// session.json, so it never contains a secret.
type Session struct {
	V        int      `json:"v"`
	ID       string   `json:"id"`
	Name     string   `json:"name,omitempty"`
	Phase    Phase    `json:"phase"`
	Activity Activity `json:"activity,omitempty"`

	Created time.Time  `json:"created"`
	Ready   *time.Time `json:"ready,omitempty"`
	Ended   *time.Time `json:"ended,omitempty"`

	Workspace string `json:"workspace"`
	Model     Model  `json:"model"`
	// SessionFile is Pi's own session file, which a resume goes on with.
	SessionFile string `json:"session_file,omitempty"`
	// ImportedFrom is the file that the session was imported from; it may be SessionFile.
	ImportedFrom string `json:"imported_from,omitempty"`
	StartedBy    string `json:"started_by,omitempty"`

	Turns     int        `json:"turns"`
	Tokens    Tokens     `json:"tokens"`
	CostUSD   float64    `json:"cost_usd"`
	Questions []Question `json:"questions,omitempty"`
	Denied    int        `json:"egress_denied"`
	Usage     *Usage     `json:"usage,omitempty"`

	SupervisorPID int    `json:"supervisor_pid,omitempty"`
	Seq           uint64 `json:"seq"` // of the last journal record when the snapshot was made

	Plan  Plan   `json:"plan"`
	End   *End   `json:"end,omitempty"`
	Error *Error `json:"error,omitempty"`
	// Cgroups are the paths that a reaper has to remove when the supervisor can't.
	Cgroups []string `json:"cgroups,omitempty"`
}

// Model is the model that Pi itself reports, or the one asked for until it did.
type Model struct {
	Provider      string `json:"provider,omitempty"`
	ID            string `json:"id,omitempty"`
	Name          string `json:"name,omitempty"`
	API           string `json:"api,omitempty"`
	BaseURL       string `json:"base_url,omitempty"`
	Thinking      string `json:"thinking,omitempty"`
	ContextWindow int    `json:"context_window,omitempty"`
}

// String is the model as `--model` takes it.
func (m Model) String() string {
	if m.Provider == "" {
		return m.ID
	}
	return m.Provider + "/" + m.ID
}

// Tokens are sums over a session's assistant messages.
type Tokens struct {
	Input      int `json:"input"`
	Output     int `json:"output"`
	CacheRead  int `json:"cache_read"`
	CacheWrite int `json:"cache_write"`
	// Context is how much of the context window the last message used.
	Context int `json:"context"`
}

// Question is a dialog that Pi waits on.
type Question struct {
	ID      string          `json:"id"`
	Method  string          `json:"method"` // select, confirm, input or editor
	Title   string          `json:"title,omitempty"`
	Message string          `json:"message,omitempty"`
	Options []string        `json:"options,omitempty"`
	Asked   time.Time       `json:"asked"`
	Raw     json.RawMessage `json:"raw,omitempty"`
}

// Usage is what a session uses now, against its limits. Bytes and percent of one CPU.
type Usage struct {
	Time          time.Time `json:"time"`
	CPUPercent    float64   `json:"cpu_percent"`
	CPUSeconds    float64   `json:"cpu_seconds"`
	Memory        int64     `json:"memory_bytes"`
	MemoryLimit   int64     `json:"memory_limit_bytes,omitempty"`
	SandboxMemory int64     `json:"sandbox_memory_bytes,omitempty"` // as gVisor counts it: the programs inside alone
	Pids          int64     `json:"pids"`
	PidsLimit     int64     `json:"pids_limit,omitempty"`
	NetworkIn     uint64    `json:"network_in_bytes"`  // to the sandbox
	NetworkOut    uint64    `json:"network_out_bytes"` // from the sandbox
	Source        string    `json:"source"`            // what the figures come from
}

// End says how a session ended.
type End struct {
	Reason   string `json:"reason"` // for a person
	ExitCode int    `json:"exit_code"`
	Signal   string `json:"signal,omitempty"`
	Stderr   string `json:"stderr,omitempty"` // the last of it, when the end was a failure
}

// Plan is the launch of a session as it can be shown: no values of environment
// variables, no file contents.
type Plan struct {
	Image    ImageRef         `json:"image"`
	Argv     []string         `json:"argv"`
	Env      []EnvVar         `json:"env"`
	Cwd      string           `json:"cwd"`
	Mounts   []mounts.Mount   `json:"mounts"`
	Egress   []policy.Rule    `json:"egress"`
	Limits   limits.Limits    `json:"limits"`
	Enforced []limits.Entry   `json:"limits_enforced,omitempty"`
	LeftOut  []mounts.LeftOut `json:"left_out,omitempty"`
	User     string           `json:"user"`
	Platform string           `json:"platform"`
	Files    []GeneratedFile  `json:"generated_files,omitempty"`
	Notes    []string         `json:"notes,omitempty"`
}

// ImageRef names the image of a session.
type ImageRef struct {
	Digest string `json:"digest"`
	Path   string `json:"path"`
	Pi     string `json:"pi,omitempty"`
	Node   string `json:"node,omitempty"`
}

// EnvVar is an environment variable of a launch. Value is empty for a secret one.
type EnvVar struct {
	Name   string `json:"name"`
	Value  string `json:"value,omitempty"`
	Secret bool   `json:"secret,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// GeneratedFile is a file that the launch makes for this session.
type GeneratedFile struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}
