package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"patio/engine/api"
)

// messages is what Pi itself has of a live session's conversation.
func (p *patio) messages(id string) string {
	p.t.Helper()
	cmd := p.command(p.t.Context(), "rpc", id)
	cmd.Stdin = strings.NewReader(`{"type":"get_messages","id":"m"}` + "\n")
	out, err := cmd.Output()
	require.NoError(p.t, err)
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, `"id":"m"`) {
			return line
		}
	}
	p.t.Fatal("no reply to get_messages")
	return ""
}

func TestResume(t *testing.T) {
	p := newPatio(t)
	id := strings.TrimSpace(p.ok("new", "--model", "demo/echo", "--thinking", "off", "-q", "--name", "talk"))
	p.ok("send", "--wait", id, "TEXT: 30")
	before := p.messages(id)
	_, errs, code := p.run("resume", id)
	require.Equal(t, 9, code, errs)
	p.ok("stop", id)
	file := p.sessions()[0].SessionFile

	require.Equal(t, id, strings.TrimSpace(p.ok("resume", "talk", "-q")), "a session keeps its id")
	require.Equal(t, before, p.messages(id), "what Pi has after a resume is what it had live")
	s := p.sessions()[0]
	require.Equal(t, "demo/echo", s.Model.String())
	require.Equal(t, file, s.SessionFile, "and the file its path")
	require.Equal(t, 1, s.Turns)

	// One live session for a file, by whatever name it is asked for.
	_, errs, code = p.run("resume", file)
	require.Equal(t, 9, code, errs)

	// A crash, and a line that was only half written.
	require.NoError(t, syscall.Kill(s.SupervisorPID, syscall.SIGKILL))
	require.Eventually(t, func() bool { return p.sessions()[0].Phase == api.PhaseCrashed }, 20*time.Second, 50*time.Millisecond)
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"type":"message","id":"x","par`)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Equal(t, id, strings.TrimSpace(p.ok("resume", file, "-q")))
	p.ok("send", "--wait", id, "TEXT: 40")
	torn, err := filepath.Glob(file + ".torn-*")
	require.NoError(t, err)
	require.Len(t, torn, 1, "the torn line is kept")
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotContains(t, string(b), `"par{`, "nothing is glued to it")
	require.Contains(t, string(b), "TEXT: 40")
	p.ok("stop", id)
}

func TestResumeForeignFile(t *testing.T) {
	p := newPatio(t)
	dir := filepath.Join(filepath.Dir(p.workspace), "elsewhere")
	require.NoError(t, os.Mkdir(dir, 0o755))
	file := filepath.Join(dir, "old.jsonl")
	v1 := `{"type":"session","id":"0197aaaa-0000-7000-8000-000000000000","timestamp":"2025-01-01T00:00:00.000Z","cwd":"` + p.workspace + `"}` + "\n" +
		`{"type":"message","timestamp":"2025-01-01T00:00:01.000Z","message":{"role":"user","content":"remember the word apricot","timestamp":1}}` + "\n" +
		`{"type":"message","timestamp":"2025-01-01T00:00:02.000Z","message":{"role":"assistant","content":[{"type":"text","text":"apricot it is"}],"api":"openai-completions","provider":"demo","model":"echo","usage":{"input":1,"output":1,"cacheRead":0,"cacheWrite":0,"totalTokens":2,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"stop","timestamp":2}}` + "\n"
	require.NoError(t, os.WriteFile(file, []byte(v1), 0o600))
	require.Contains(t, p.ok("sessions", "import", file), "imported")
	imported := p.sessions()[0]
	require.Equal(t, file, imported.SessionFile)
	id := strings.TrimSpace(p.ok("resume", imported.ID, "-q"))
	require.Equal(t, imported.ID, id, "an imported session keeps its id")
	require.Contains(t, p.messages(id), "apricot it is")
	s := p.sessions()[0]
	require.Equal(t, "demo/echo", s.Model.String(), "the conversation's model")
	require.Equal(t, p.workspace, s.Workspace)
	require.Equal(t, file, s.SessionFile)
	p.ok("send", "--wait", id, "TEXT: 20")
	p.ok("stop", id)
	kept, err := os.ReadFile(file + ".v1")
	require.NoError(t, err)
	require.Equal(t, v1, string(kept), "Pi rewrites a version 1 file; the original is kept")
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(b), "TEXT: 20", "it goes on in place")

	// The project has moved.
	moved := p.workspace + "-moved"
	require.NoError(t, os.Rename(p.workspace, moved))
	p.workspace = moved
	_, errs, code := p.run("resume", file)
	require.Equal(t, 4, code, errs)
	require.Contains(t, errs, "--cwd")
	out := p.ok("resume", file, "--cwd", moved, "-q")
	s = p.sessions()[0]
	require.Equal(t, strings.TrimSpace(out), s.ID)
	require.Equal(t, moved, s.Workspace)
	require.NotEqual(t, file, s.SessionFile, "it goes on in a copy")
	require.Contains(t, p.messages(s.ID), "apricot it is")
	require.Contains(t, p.ok("exec", s.ID, "--", "pwd"), moved)
	p.ok("stop", s.ID)
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, b, after, "and the original stays as it is")

	for name, text := range map[string]string{
		"duplicate.jsonl": `{"type":"session","version":3,"id":"a","cwd":"` + moved + `"}` + "\n" + strings.Repeat(`{"type":"label","id":"1","parentId":null}`+"\n", 2),
		"junk.jsonl":      "hello\n",
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, errs, code := p.run("resume", path, "--model", "demo/echo")
		require.Equal(t, 3, code, errs)
		require.Contains(t, errs, "can't be resumed")
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, string(b))
	}
}

func TestUnansweredPrompt(t *testing.T) {
	p := newPatio(t)
	id := strings.TrimSpace(p.ok("new", "--model", "demo/echo", "-q", "--prompt", "SLOW: 60000\nTEXT: 200"))
	require.NoError(t, syscall.Kill(p.sessions()[0].SupervisorPID, syscall.SIGKILL))
	require.Eventually(t, func() bool { return p.sessions()[0].Phase == api.PhaseCrashed }, 20*time.Second, 50*time.Millisecond)
	_, errs, code := p.run("resume", id)
	require.Zero(t, code, errs)
	require.Contains(t, errs, "TEXT: 200", "the message that was lost is offered")
	p.ok("stop", id)
}
