package supervisor

import (
	"patio/engine/api"
	"patio/sandbox"
	"patio/sandbox/network/policy"
)

// Spec is a planned launch as its supervisor gets it, on stdin and nowhere else: it
// holds the values of secrets.
type Spec struct {
	Session api.Session `json:"session"`
	// Dir is the session's directory, Scratch a private directory for the sandbox's own
	// files that ends with the session.
	Dir        string       `json:"dir"`
	Scratch    string       `json:"scratch"`
	Socket     string       `json:"socket"`
	Executable string       `json:"executable"`
	Runsc      string       `json:"runsc"`
	ImageStore []string     `json:"image_store"`
	Sandbox    sandbox.Plan `json:"sandbox"`
	// Dirs are made, and Files written, before the sandbox starts. Both belong to the
	// plan's owner.
	Dirs  []string      `json:"dirs"`
	Files []File        `json:"files"`
	Rules []policy.Rule `json:"rules"`
	// OnDeny is what is done about refused connections. RulesFile keeps the rules that an
	// answer makes for good.
	OnDeny    api.OnDeny `json:"on_deny,omitempty"`
	RulesFile string     `json:"rules_file,omitempty"`
	// SessionFile is Pi's session file to go on with, "" for a new one. Its lock is in the
	// directory Locks.
	SessionFile string `json:"session_file,omitempty"`
	// CopyFrom is the file that SessionFile is made from first, with the workspace as the
	// directory in its header; "" when SessionFile is the original.
	CopyFrom string `json:"copy_from,omitempty"`
	Locks    string `json:"locks"`
	Debug    bool   `json:"debug,omitempty"`
}

// File is a generated file, mode 0600.
type File struct {
	Path string `json:"path"`
	Data []byte `json:"data"`
}
