package pi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Paths inside the image.
const (
	node = "/usr/local/bin/node"
	cli  = "/opt/pi/node_modules/@earendil-works/pi-coding-agent/dist/cli.js"
)

// ThinkingLevels are the values of --thinking.
var ThinkingLevels = []string{"off", "minimal", "low", "medium", "high", "xhigh", "max"}

// CheckThinking refuses a level that Pi would warn about and ignore.
func CheckThinking(level string) error {
	if level == "" || slices.Contains(ThinkingLevels, level) {
		return nil
	}
	return fmt.Errorf("unknown thinking level %q: one of %s", level, strings.Join(ThinkingLevels, ", "))
}

// Launch is how one Pi is started.
type Launch struct {
	Model    string // PROVIDER/MODEL
	Thinking string
	// Session is the absolute path of the session file to go on with; "" starts a new one.
	Session string
	// AgentDir and SessionDir have the same path inside and outside.
	AgentDir   string
	SessionDir string
	Home       string
}

// Argv is Pi's command line inside.
func (l Launch) Argv() []string {
	// Node runs the program itself: the wrapper in PATH would cost an exec of env.
	argv := []string{node, cli, "--mode", "rpc"}
	if l.Model != "" {
		argv = append(argv, "--model", l.Model)
	}
	if l.Thinking != "" {
		argv = append(argv, "--thinking", l.Thinking)
	}
	if l.Session != "" {
		argv = append(argv, "--session", l.Session)
	}
	return argv
}

// Variable is one variable of Pi's environment.
type Variable struct{ Name, Value, Reason string }

// Env is Pi's environment but for the provider's own variables. Nothing of the caller's
// environment is in it.
func (l Launch) Env() []Variable {
	return []Variable{
		{"HOME", l.Home, "a private home in memory"},
		{"USER", "sandbox", "the user inside"},
		{"LOGNAME", "sandbox", "the user inside"},
		{"SHELL", "/bin/bash", "the shell of Pi's bash tool"},
		{"PATH", "/usr/local/bin:/usr/bin:/bin", "the image's programs"},
		{"TMPDIR", "/tmp", "private, in memory"},
		{"LANG", "C.UTF-8", "text is UTF-8"},
		{"PI_OFFLINE", "1", "no update check, no catalogue refresh, no downloads"},
		{"PI_CODING_AGENT_DIR", l.AgentDir, "Pi's own state, this session's alone"},
		// Always set: it beats a sessionDir in the workspace's own settings.
		{"PI_CODING_AGENT_SESSION_DIR", l.SessionDir, "where Pi keeps session files"},
		// The workspace belongs to the user inside, parts of it (a shared .git) may not.
		{"GIT_CONFIG_COUNT", "2", "settings for git, without a file"},
		{"GIT_CONFIG_KEY_0", "safe.directory", "git trusts what is mounted"},
		{"GIT_CONFIG_VALUE_0", "*", "git trusts what is mounted"},
		{"GIT_CONFIG_KEY_1", "gc.auto", "no background repacking"},
		{"GIT_CONFIG_VALUE_1", "0", "no background repacking"},
	}
}

// Settings is the settings.json of a session's agent directory. A project's own .pi
// resources aren't loaded: they are code, and RPC has nobody to ask.
func Settings() []byte {
	b, err := json.MarshalIndent(map[string]any{"defaultProjectTrust": "never"}, "", "  ")
	if err != nil {
		panic(err) // a constant map
	}
	return append(b, '\n')
}
