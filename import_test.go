package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"patio/engine/api"
)

// barePi is the image's Pi on the host, with nothing of patio's around it.
type barePi struct {
	t         *testing.T
	root      string // the image's /
	workspace string
	home      string
	agent     string
	sessions  string
}

// barePi unpacks the image's Pi and Node, which a sandbox hands out: so it is the same
// Pi, and nothing is downloaded.
func (p *patio) barePi() *barePi {
	p.t.Helper()
	base := filepath.Dir(p.workspace)
	b := &barePi{
		t: p.t, root: filepath.Join(base, "image"), workspace: p.workspace, home: filepath.Join(base, "bare"),
		agent: filepath.Join(base, "bare", "agent"), sessions: filepath.Join(base, "bare", "sessions"),
	}
	for _, dir := range []string{b.root, b.agent, b.sessions} {
		require.NoError(p.t, os.MkdirAll(dir, 0o700))
	}
	id := strings.TrimSpace(p.ok("new", "--model", "demo/echo", "-q"))
	ctx, cancel := context.WithTimeout(p.t.Context(), 5*time.Minute)
	defer cancel()
	pack := p.command(ctx, "exec", id, "--", "tar", "cf", "-", "-C", "/", "opt/pi")
	unpack := exec.CommandContext(ctx, "tar", "xf", "-", "--no-same-owner", "-C", b.root)
	unpack.WaitDelay = 10 * time.Second
	var packErrs, errs bytes.Buffer
	pack.Stderr, unpack.Stderr = &packErrs, &errs
	out, err := pack.StdoutPipe()
	require.NoError(p.t, err)
	unpack.Stdin = out
	require.NoError(p.t, pack.Start())
	require.NoError(p.t, unpack.Run(), errs.String())
	require.NoError(p.t, pack.Wait(), packErrs.String())

	// The same settings and models, but for the address of the model.
	from := filepath.Join(p.state, "patio", "sessions", id, "agent")
	for _, name := range []string{"settings.json", "models.json"} {
		text, err := os.ReadFile(filepath.Join(from, name))
		require.NoError(p.t, err)
		text = bytes.ReplaceAll(text, []byte("http://model.patio.internal"), []byte(scriptedModel(p.t)))
		require.NoError(p.t, os.WriteFile(filepath.Join(b.agent, name), text, 0o600))
	}
	p.ok("stop", id)
	p.ok("rm", id)
	return b
}

// scriptedModel answers a prompt with a call of Pi's bash tool, and its result with text.
// It returns its base address.
func scriptedModel(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Messages []struct {
				Role string `json:"role"`
			} `json:"messages"`
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil || len(q.Messages) == 0 {
			http.Error(w, "no messages", http.StatusBadRequest)
			return
		}
		delta, reason := `{"role":"assistant","content":"na\u00efve \u6f22\u5b57 \u2028 \"done\" <b>"}`, "stop"
		if q.Messages[len(q.Messages)-1].Role == "user" {
			delta = fmt.Sprintf(`{"role":"assistant","content":"look:","tool_calls":[{"index":0,"id":"call_%d","type":"function",`+
				`"function":{"name":"bash","arguments":"{\"command\":\"printf 'out\\\\n%%s' \\\"$PWD\\\"\"}"}}]}`, len(q.Messages))
			reason = "tool_calls"
		}
		w.Header().Set("Content-Type", "text/event-stream")
		const head = `data: {"id":"r","object":"chat.completion.chunk","created":1,"model":"echo","choices":`
		_, _ = fmt.Fprintf(w, head+"[{\"index\":0,\"delta\":%s,\"finish_reason\":null}]}\n\n", delta)
		_, _ = fmt.Fprintf(w, head+"[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\n", reason)
		_, _ = fmt.Fprint(w, head+`[],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// talk starts Pi on a session file, "" for a new one, prompts it, and returns what it has
// of the conversation then.
func (b *barePi) talk(file string, prompts ...string) any {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 2*time.Minute)
	defer cancel()
	modules := filepath.Join(b.root, "opt", "pi", "node_modules")
	nodes, err := filepath.Glob(filepath.Join(modules, "node-linux-*", "bin", "node"))
	require.NoError(b.t, err)
	require.Len(b.t, nodes, 1)
	args := []string{filepath.Join(modules, "@earendil-works", "pi-coding-agent", "dist", "cli.js"), "--mode", "rpc"}
	if file == "" {
		args = append(args, "--model", "demo/echo", "--thinking", "off")
	} else {
		args = append(args, "--session", file)
	}
	cmd := exec.CommandContext(ctx, nodes[0], args...)
	cmd.Dir, cmd.WaitDelay = b.workspace, 10*time.Second
	cmd.Env = []string{
		"HOME=" + b.home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + b.home, "SHELL=/bin/bash", "LANG=C.UTF-8", "PI_OFFLINE=1",
		"PI_CODING_AGENT_DIR=" + b.agent, "PI_CODING_AGENT_SESSION_DIR=" + b.sessions,
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a tool's processes end with Pi
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var errs bytes.Buffer
	cmd.Stderr = &errs
	stdin, err := cmd.StdinPipe()
	require.NoError(b.t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(b.t, err)
	require.NoError(b.t, cmd.Start())
	lines := bufio.NewReader(stdout)
	until := func(done func(kind, id string) bool) string {
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				cancel()
				require.NoError(b.t, errors.Join(err, cmd.Wait()), errs.String())
			}
			var m struct{ Type, ID string }
			if json.Unmarshal([]byte(line), &m) == nil && done(m.Type, m.ID) {
				return line
			}
		}
	}
	for _, text := range prompts {
		command, err := json.Marshal(map[string]string{"type": "prompt", "message": text})
		require.NoError(b.t, err)
		_, err = stdin.Write(append(command, '\n'))
		require.NoError(b.t, err)
		until(func(kind, _ string) bool { return kind == "agent_settled" })
	}
	_, err = io.WriteString(stdin, `{"type":"get_messages","id":"m"}`+"\n")
	require.NoError(b.t, err)
	reply := until(func(kind, id string) bool { return kind == "response" && id == "m" })
	require.NoError(b.t, stdin.Close())
	_, err = io.Copy(io.Discard, lines)
	require.NoError(b.t, err)
	require.NoError(b.t, cmd.Wait(), errs.String())
	return conversation(b.t, reply)
}

// conversation is what a reply to get_messages says.
func conversation(t *testing.T, reply string) any {
	t.Helper()
	var r struct {
		Success bool
		Data    struct{ Messages []any }
	}
	require.NoError(t, json.Unmarshal([]byte(reply), &r))
	require.True(t, r.Success, reply)
	require.NotEmpty(t, r.Data.Messages)
	return r.Data.Messages
}

// converse makes a session file as a user without patio has it.
func (b *barePi) converse(prompts ...string) (file string, messages any) {
	b.t.Helper()
	var before []string
	find := func() []string {
		files, err := filepath.Glob(filepath.Join(b.sessions, "*.jsonl"))
		require.NoError(b.t, err)
		return files
	}
	before = find()
	messages = b.talk("", prompts...)
	for _, path := range find() {
		if !strings.Contains(strings.Join(before, "\n"), path) {
			file = path
		}
	}
	require.NotEmpty(b.t, file, "Pi has written a session file")
	return file, messages
}

// TestImport takes a conversation from bare Pi into a sandbox and back.
func TestImport(t *testing.T) {
	p := newPatio(t)
	bare := p.barePi()
	for _, copied := range []bool{false, true} {
		name := "in place"
		if copied {
			name = "copied"
		}
		t.Run(name, func(t *testing.T) {
			p, bare := *p, *bare
			p.t, bare.t = t, t
			file, live := bare.converse("look around: "+name, "once more, \u2028 with \"quotes\" and ünïcödé")
			require.Equal(t, live, bare.talk(file), "Pi itself reads what it has written")
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			args := []string{"sessions", "import", file}
			if copied {
				args = append(args, "--copy")
			}
			require.Contains(t, p.ok(args...), ": imported ")
			var imported api.Session
			for _, s := range p.sessions() {
				if s.ImportedFrom == file {
					imported = s
				}
			}
			require.Equal(t, api.PhaseEnded, imported.Phase)
			require.Equal(t, p.workspace, imported.Workspace)
			require.Equal(t, "demo/echo", imported.Model.String())
			require.Equal(t, 2, imported.Turns)
			require.Positive(t, imported.Tokens.Output)
			require.Equal(t, copied, imported.SessionFile != file)
			require.Contains(t, p.ok("ls", "-a"), imported.ID)
			now, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(source), string(now), "an import leaves the file as it is")

			require.Equal(t, imported.ID, strings.TrimSpace(p.ok("resume", imported.ID, "-q")))
			require.Equal(t, live, conversation(t, p.messages(imported.ID)), "in the sandbox Pi has the same conversation")
			p.ok("send", "--wait", imported.ID, "TEXT: 50")
			after := conversation(t, p.messages(imported.ID))
			p.ok("stop", imported.ID)
			require.Equal(t, live, after.([]any)[:len(live.([]any))])
			require.Len(t, after, len(live.([]any))+2, "a prompt and its answer")
			require.Equal(t, after, bare.talk(imported.SessionFile), "and outside again, with what was added inside")
			now, err = os.ReadFile(file)
			require.NoError(t, err)
			if copied {
				require.Equal(t, string(source), string(now), "the copy's source stays as it is")
				require.Equal(t, live, bare.talk(file))
			} else {
				require.True(t, strings.HasPrefix(string(now), string(source)), "what was there stays")
			}
			require.Contains(t, p.ok("sessions", "import", file), ": known "+imported.ID)
		})
	}
}

// TestImportResumedTwice resumes an imported session twice at once, by its id and by its
// file: two writers would lose a branch.
func TestImportResumedTwice(t *testing.T) {
	p := newPatio(t)
	id := strings.TrimSpace(p.ok("new", "--model", "demo/echo", "-q"))
	p.ok("send", "--wait", id, "TEXT: 30")
	p.ok("stop", id)
	file := filepath.Join(filepath.Dir(p.workspace), "foreign.jsonl")
	require.NoError(t, os.Rename(p.sessions()[0].SessionFile, file))
	p.ok("rm", id)
	p.ok("sessions", "import", file)
	id = p.sessions()[0].ID

	refs := []string{id, file}
	type result struct {
		errs string
		code int
	}
	results := make([]result, len(refs))
	var wg sync.WaitGroup
	for n, ref := range refs {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := p.command(ctx, "resume", ref, "-q")
			var errs bytes.Buffer
			cmd.Stderr = &errs
			_ = cmd.Run() // its code says it
			results[n] = result{errs.String(), cmd.ProcessState.ExitCode()}
		})
	}
	wg.Wait()
	won, lost := results[0], results[1]
	if won.code != 0 {
		won, lost = lost, won
	}
	require.Zero(t, won.code, won.errs)
	require.Equal(t, 9, lost.code, lost.errs)
	require.Contains(t, lost.errs, id, "who has it")
	s := p.sessions()
	require.Len(t, s, 1)
	require.Equal(t, api.PhaseReady, s[0].Phase)
	p.ok("send", "--wait", id, "TEXT: 40")
	p.ok("stop", id)
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(b), "TEXT: 40"))
}
