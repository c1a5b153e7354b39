package api

import (
	"encoding/json"

	"patio/sandbox/network"
	"patio/sandbox/network/policy"
)

// The types of journal records, and what their data is.
const (
	RecordRPC    = "rpc"    // RPCRecord
	RecordEgress = "egress" // EgressRecord
	RecordStats  = "stats"  // Usage
	RecordState  = "state"  // StateRecord
	RecordStderr = "stderr" // StderrRecord
	RecordExec   = "exec"   // ExecRecord
)

// Direction is which way an RPC line went.
type Direction string

// The directions.
const (
	ToPi   Direction = "to_pi"
	FromPi Direction = "from_pi"
)

// RPCRecord is one line of Pi's RPC, exactly as it went over the wire.
type RPCRecord struct {
	Direction Direction `json:"direction"`
	// Client sent the line; only ToPi.
	Client string          `json:"client,omitempty"`
	Line   json.RawMessage `json:"line,omitempty"`
	// Text is a line that isn't valid JSON, instead of Line.
	Text string `json:"text,omitempty"`
}

// StateRecord is a change of a session's phase or activity, its model or its questions.
// The first record of a journal is one, and so is the last of a session that ended in
// good order.
type StateRecord struct {
	Phase    Phase     `json:"phase"`
	Activity Activity  `json:"activity,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Model    *Model    `json:"model,omitempty"`
	Question *Question `json:"question,omitempty"` // a new one
	Answered string    `json:"answered,omitempty"` // the id of a question that was answered
	// Policy is a change of the egress rules.
	Policy *PolicyChange `json:"policy,omitempty"`
	// Notice is something that the session's users should know, told once.
	Notice string `json:"notice,omitempty"`
	End    *End   `json:"end,omitempty"`
	Error  *Error `json:"error,omitempty"`
}

// PolicyChange is one change of a live session's egress rules.
type PolicyChange struct {
	RuleChange
	Client string `json:"client,omitempty"` // who asked for it
}

// EgressRecord is a decision of the gateway, with the tool calls that ran then.
type EgressRecord struct {
	network.Event
	ToolCalls []string `json:"tool_calls,omitempty"`
}

// MarshalJSON keeps the embedded event's own encoding from swallowing ToolCalls.
func (r EgressRecord) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(r.Event)
	if err != nil || len(r.ToolCalls) == 0 {
		return b, err
	}
	calls, err := json.Marshal(r.ToolCalls)
	if err != nil {
		return nil, err
	}
	return append(append(append(b[:len(b)-1], `,"tool_calls":`...), calls...), '}'), nil
}

// UnmarshalJSON is MarshalJSON's inverse.
func (r *EgressRecord) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, &r.Event); err != nil {
		return err
	}
	var calls struct {
		ToolCalls []string `json:"tool_calls"`
	}
	if err := json.Unmarshal(b, &calls); err != nil {
		return err
	}
	r.ToolCalls = calls.ToolCalls
	return nil
}

// StderrRecord is what Pi wrote to its stderr.
type StderrRecord struct {
	Text string `json:"text"`
}

// ExecRecord is a program that a client ran in the sandbox.
type ExecRecord struct {
	Argv     []string `json:"argv"`
	Exited   bool     `json:"exited,omitempty"`
	ExitCode int      `json:"exit_code,omitempty"`
}

// The kinds of an EgressRecord that begin and end something, and the verdict that lets it
// through: by names of the wire, as in Plan.
const (
	EgressConnection = network.KindConnection
	EgressEnd        = network.KindEnd
	EgressDropped    = network.KindDropped

	VerdictAllow = policy.Allow
)
