package benchtree

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Pi is a Pi on the host to compare with.
type Pi struct {
	Node string // the node binary
	Dist string // the directory dist of @earendil-works/pi-coding-agent
}

// PiSession is what Pi's list says of a session.
type PiSession struct {
	Path, ID, Cwd, Name, FirstMessage string
	Modified                          time.Time
	MessageCount                      int
}

// script lists all sessions as Pi's own session picker does. What is measured is the call alone: neither the start of Node nor
// the loading of Pi counts.
const script = `
const { SessionManager } = await import(process.argv[1]);
const began = performance.now();
const list = await SessionManager.listAll();
const ms = performance.now() - began;
process.stdout.write(JSON.stringify({ ms, sessions: list.map((s) => ({
	path: s.path, id: s.id, cwd: s.cwd, name: s.name ?? "", firstMessage: s.firstMessage, modified: s.modified, messageCount: s.messageCount,
})) }));
`

// ListAll runs Pi's SessionManager.listAll on an agent directory in a new process and returns its time with the list.
func (p Pi) ListAll(ctx context.Context, agentDir string) (time.Duration, []PiSession, error) {
	module := filepath.Join(p.Dist, "core", "session-manager.js")
	cmd := exec.CommandContext(ctx, p.Node, "--input-type=module", "--eval", script, module)
	cmd.WaitDelay = time.Second
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "PI_") && !strings.HasPrefix(kv, "NODE_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, "PI_CODING_AGENT_DIR="+agentDir, "PI_OFFLINE=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, nil, fmt.Errorf("list sessions with Pi: %w: %s", err, stderr.Bytes())
	}
	var result struct {
		MS       float64
		Sessions []PiSession
	}
	if err := json.Unmarshal(out, &result); err != nil {
		return 0, nil, fmt.Errorf("list sessions with Pi: %w", err)
	}
	return time.Duration(result.MS * float64(time.Millisecond)), result.Sessions, nil
}
