package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"patio/engine/api"
	"patio/sandbox/sandboxtest"
)

// patio is the real binary with directories of its own, real Pi and real gVisor.
type patio struct {
	t         *testing.T
	exe       string
	env       []string
	workspace string
	state     string
}

func newPatio(t *testing.T) *patio {
	t.Helper()
	tools := sandboxtest.Require(t)
	var marks []string
	sandboxtest.CheckLeaks(t, func() []string { return marks })
	// Short: a Unix socket's path can't exceed 107 bytes, and test names are long.
	base, err := os.MkdirTemp("", "patio")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(base)) })
	p := &patio{t: t, exe: tools.Executable, workspace: filepath.Join(base, "work"), state: filepath.Join(base, "state")}
	require.NoError(t, os.Mkdir(p.workspace, 0o755))
	data := filepath.Join(base, "data")
	if os.Getuid() != 0 {
		// The user's own images, where the test found them.
		require.NoError(t, os.MkdirAll(filepath.Join(data, "patio"), 0o755))
		require.NoError(t, os.Symlink(filepath.Dir(tools.Image.Path), filepath.Join(data, "patio", "images")))
	}
	p.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + base, "LANG=C.UTF-8", "PATIO_IMAGE=" + tools.Image.Manifest.Digest,
		"XDG_STATE_HOME=" + p.state, "XDG_DATA_HOME=" + data, "XDG_CACHE_HOME=" + filepath.Join(base, "cache"),
		"XDG_CONFIG_HOME=" + filepath.Join(base, "config"), "XDG_RUNTIME_DIR=" + filepath.Join(base, "run"),
	}
	require.NoError(t, os.Mkdir(filepath.Join(base, "run"), 0o700))
	// Clean-up runs backwards: stop what the test left running, then look for more.
	t.Cleanup(func() {
		marks = append(marks, base)
		sessions, _ := os.ReadDir(filepath.Join(p.state, "patio", "sessions"))
		for _, s := range sessions {
			marks = append(marks, s.Name())
		}
		_ = p.command(context.Background(), "stop", "--all", "--now").Run()
	})
	return p
}

func (p *patio) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.exe, args...)
	cmd.Env, cmd.Dir = p.env, p.workspace
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// run returns stdout, stderr and the exit code.
func (p *patio) run(args ...string) (stdout, stderr string, code int) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := p.command(ctx, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil {
		require.ErrorAs(p.t, err, new(*exec.ExitError), errs.String())
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// ok returns the stdout of a command that must succeed.
func (p *patio) ok(args ...string) string {
	p.t.Helper()
	out, errs, code := p.run(args...)
	require.Zero(p.t, code, "patio %s: %s", strings.Join(args, " "), errs)
	return out
}

func (p *patio) sessions() []api.Session {
	p.t.Helper()
	var s []api.Session
	require.NoError(p.t, json.Unmarshal([]byte(p.ok("ls", "-a", "--json")), &s))
	return s
}

type record struct {
	V       int             `json:"v"`
	Seq     uint64          `json:"seq"`
	Time    time.Time       `json:"time"`
	Session string          `json:"session"`
	Type    string          `json:"type"`
	Data    json.RawMessage `json:"data"`
}

func records(t *testing.T, ndjson string) []record {
	t.Helper()
	var rs []record
	lines := bufio.NewScanner(strings.NewReader(ndjson))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var r record
		require.NoError(t, json.Unmarshal(lines.Bytes(), &r))
		rs = append(rs, r)
	}
	require.NoError(t, lines.Err())
	return rs
}

const probe = `RUN: uname -r; id -u; grep ^Cap /proc/self/status; pwd; touch made-inside; curl -sS -m 5 https://example.com; echo rc=\$?`

func TestRunJSON(t *testing.T) {
	p := newPatio(t)
	out := p.ok("run", "--json", "--model", "demo/tour", probe)
	rs := records(t, out)
	var result string
	var denied []api.EgressRecord
	for i, r := range rs {
		require.Equal(t, 1, r.V)
		require.Equal(t, uint64(i+1), r.Seq, "every record, in order")
		require.NotEmpty(t, r.Session)
		switch r.Type {
		case api.RecordRPC:
			var line struct {
				Line struct {
					Type   string
					Result struct {
						Content []struct{ Text string }
					}
				}
			}
			require.NoError(t, json.Unmarshal(r.Data, &line))
			if line.Line.Type == "tool_execution_end" {
				result = line.Line.Result.Content[0].Text
			}
		case api.RecordEgress:
			var e api.EgressRecord
			require.NoError(t, json.Unmarshal(r.Data, &e))
			if e.Verdict.String() == "deny" {
				denied = append(denied, e)
			}
		}
	}
	require.Contains(t, result, "gvisor\n1000\n")
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		require.Contains(t, result, set+":\t0000000000000000\n")
	}
	require.Contains(t, result, "\n"+p.workspace+"\n")
	require.Contains(t, result, "curl: (6)")
	require.NotEmpty(t, denied)
	require.Equal(t, "example.com", denied[0].Host)
	require.NotZero(t, denied[0].Port)
	require.NotEmpty(t, denied[0].Reason)
	require.NotEmpty(t, denied[0].ToolCalls, "the tool call that ran then")
	fi, err := os.Stat(filepath.Join(p.workspace, "made-inside"))
	require.NoError(t, err)
	require.EqualValues(t, os.Getuid(), fi.Sys().(*syscall.Stat_t).Uid)
	last := rs[len(rs)-1]
	require.Equal(t, api.RecordState, last.Type)
	require.Contains(t, string(last.Data), `"phase":"ended"`)
}

func TestTour(t *testing.T) {
	p := newPatio(t)
	out := p.ok("run", "--model", "demo/tour", "Have a look around")
	require.Contains(t, out, "4.19.0-gvisor")
	require.Contains(t, out, "uid=1000(sandbox)")
	require.Contains(t, out, "Could not resolve host: example.com")
	b, err := os.ReadFile(filepath.Join(p.workspace, "patio-tour.md"))
	require.NoError(t, err)
	require.Contains(t, string(b), "then edited")
}

func TestLiveSession(t *testing.T) {
	p := newPatio(t)
	id := strings.TrimSpace(p.ok("new", "--model", "demo/tour", "-q", "--name", "one"))
	text := p.ok("send", "--wait", id, "TEXT: 200000")
	require.GreaterOrEqual(t, len(text), 200000)
	ls := p.sessions()
	require.Len(t, ls, 1)
	require.Equal(t, api.PhaseReady, ls[0].Phase)
	require.Equal(t, api.ActivityIdle, ls[0].Activity)
	require.Equal(t, 1, ls[0].Turns)
	require.Positive(t, ls[0].Tokens.Output)
	require.Contains(t, p.ok("logs", id, "--type", "egress"), "model.patio.internal")
	require.Contains(t, p.ok("exec", "one", "--", "ps", "aux"), "ps aux")
	_, _, code := p.run("exec", id, "--", "sh", "-c", "exit 42")
	require.Equal(t, 42, code, "the program's own exit code")
	require.Contains(t, p.ok("top", "--no-stream", id[:4]), "pi")
	require.Contains(t, p.ok("stats", "--no-stream", id), id)
	require.Contains(t, p.ok("inspect", id), p.workspace)
	_, _, code = p.run("rm", id)
	require.Equal(t, 9, code, "a session that runs isn't removed")
	p.ok("stop", id)
	p.ok("stop", id)
	ls = p.sessions()
	require.Equal(t, api.PhaseEnded, ls[0].Phase)
	require.Zero(t, ls[0].End.ExitCode)
	require.Contains(t, p.ok("logs", id), "TEXT: 200000", "an ended session's journal is there")
	// Pi keeps a session file once a model has answered.
	_, err := os.Stat(ls[0].SessionFile)
	require.NoError(t, err)
	p.ok("rm", id)
	require.Empty(t, p.sessions())
	_, err = os.Stat(ls[0].SessionFile)
	require.NoError(t, err, "the user's conversation outlives the session's journal")
}

func TestRPC(t *testing.T) {
	p := newPatio(t)
	id := strings.TrimSpace(p.ok("new", "--model", "demo/echo", "-q"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := p.command(ctx, "rpc", id)
	cmd.Stdin = strings.NewReader("{\"type\":\"get_state\",\"id\":7}\nnull\n[1]\n{\"type\":\"nonsense\",\"id\":\"x\"}\n")
	out, err := cmd.Output()
	require.NoError(t, err)
	require.Contains(t, string(out), `"id":7`)
	require.Contains(t, string(out), "Unknown command: nonsense")
	require.Equal(t, 2, strings.Count(string(out), `"command":"parse"`), "null and an array never reach Pi")
	require.Equal(t, api.ActivityIdle, p.sessions()[0].Activity, "Pi lives")
}

func TestSupervisorDies(t *testing.T) {
	p := newPatio(t)
	id := strings.TrimSpace(p.ok("new", "--model", "demo/tour", "-q"))
	pid := p.sessions()[0].SupervisorPID
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	var s api.Session
	require.Eventually(t, func() bool { s = p.sessions()[0]; return s.Phase == api.PhaseCrashed }, 20*time.Second, 50*time.Millisecond)
	require.Equal(t, id, s.ID)
	require.Contains(t, p.ok("logs", id), "crashed")
}

func TestInterruptedStart(t *testing.T) {
	p := newPatio(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := p.command(ctx, "new", "--model", "demo/tour", "-q")
	require.NoError(t, cmd.Start())
	// Interrupted once the sandbox is being started.
	require.Eventually(t, func() bool {
		dirs, _ := filepath.Glob(filepath.Join(p.state, "patio", "sessions", "*", "session.json"))
		if len(dirs) == 0 {
			return false
		}
		b, _ := os.ReadFile(dirs[0])
		return bytes.Contains(b, []byte(`"phase": "starting"`))
	}, 30*time.Second, 5*time.Millisecond)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	err := cmd.Wait()
	require.Error(t, err)
	require.Equal(t, 130, cmd.ProcessState.ExitCode())
	s := p.sessions()
	require.Len(t, s, 1)
	require.True(t, s[0].Phase.Final())
}

func TestModelThatNeedsAKey(t *testing.T) {
	p := newPatio(t)
	_, errs, code := p.run("run", "--model", "anthropic/claude-sonnet-4-5", "hello")
	require.Equal(t, 7, code)
	require.Contains(t, errs, "ANTHROPIC_API_KEY")

	// The placeholder is refused by nobody: the session is never prompted.
	p.env = append(p.env, "ANTHROPIC_API_KEY=canary-key", "OTHER_SECRET=canary-other")
	id := strings.TrimSpace(p.ok("new", "--model", "anthropic/claude-sonnet-4-5", "-q"))
	s := p.sessions()[0]
	require.Equal(t, "anthropic", s.Model.Provider)
	require.Len(t, s.Plan.Egress, 1)
	require.Equal(t, "api.anthropic.com:443", s.Plan.Egress[0].String())
	inside := p.ok("exec", id, "--", "env")
	require.Contains(t, inside, "ANTHROPIC_API_KEY=canary-key")
	require.NotContains(t, inside, "canary-other")
	p.ok("stop", id)
	require.NoError(t, filepath.WalkDir(p.state, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		require.NotContains(t, string(b), "canary", path)
		return err
	}))
}

// TestTwenty starts and stops again and again: what one session leaves would add up.
func TestTwenty(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	p := newPatio(t)
	for i := range 20 {
		id := strings.TrimSpace(p.ok("new", "--model", "demo/tour", "-q"))
		p.ok("stop", id)
		require.Len(t, p.sessions(), i+1)
	}
	for _, s := range p.sessions() {
		require.Equal(t, api.PhaseEnded, s.Phase)
		require.Zero(t, s.End.ExitCode)
	}
	left, err := os.ReadDir(filepath.Join(filepath.Dir(p.state), "run", "patio"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestDiskFull(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	p := newPatio(t)
	require.NoError(t, os.Mkdir(p.state, 0o700))
	require.NoError(t, syscall.Mount("tmpfs", p.state, "tmpfs", 0, "size=300k"))
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(p.state, syscall.MNT_DETACH)) })
	_, errs, code := p.run("run", "--model", "demo/echo", "TEXT: 400000")
	require.Equal(t, 10, code, errs)
	require.Contains(t, errs, "no space left on device")
	require.Contains(t, errs, "free some disk space")
	s := p.sessions()
	require.Len(t, s, 1)
	require.Equal(t, api.PhaseEnded, s[0].Phase, "the session's end was still written")
	require.Equal(t, api.CodeDisk, s[0].Error.Code)

	fill, err := os.Create(filepath.Join(p.state, "fill"))
	require.NoError(t, err)
	_, err = fill.Write(make([]byte, 300<<10))
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NoError(t, fill.Close())
	_, errs, code = p.run("new", "--model", "demo/echo")
	require.Equal(t, 10, code, errs)
	require.Len(t, p.sessions(), 1, "a start that fails leaves no session without a file")
}

func TestImageOfAnotherDigest(t *testing.T) {
	if testing.Short() {
		t.Skip("copies the image")
	}
	p := newPatio(t)
	tools := sandboxtest.Require(t)
	// The same size and name, one byte changed.
	images := filepath.Join(t.TempDir(), "patio", "images")
	require.NoError(t, os.MkdirAll(images, 0o755))
	for _, name := range []string{tools.Image.Path, strings.TrimSuffix(tools.Image.Path, ".erofs") + ".json"} {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		if strings.HasSuffix(name, ".erofs") {
			b[len(b)/2] ^= 1
		}
		require.NoError(t, os.WriteFile(filepath.Join(images, filepath.Base(name)), b, 0o644))
	}
	for i, kv := range p.env {
		if strings.HasPrefix(kv, "XDG_DATA_HOME=") {
			p.env[i] = "XDG_DATA_HOME=" + filepath.Dir(filepath.Dir(images))
		}
	}
	_, errs, code := p.run("new", "--model", "demo/echo")
	require.Equal(t, 8, code, errs)
	require.Contains(t, errs, "digest mismatch")
	require.Contains(t, errs, "patio image build")
	require.Empty(t, p.sessions())
}

// TestModelChange follows the model that Pi itself reports, from endpoint to endpoint. Nothing
// is prompted, so nothing is dialed.
func TestModelChange(t *testing.T) {
	p := newPatio(t)
	agent := filepath.Join(filepath.Dir(p.workspace), ".pi", "agent")
	require.NoError(t, os.MkdirAll(agent, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(agent, "models.json"), []byte(`{ // comments are allowed
		"providers": {"local": {"baseUrl": "http://127.0.0.1:9/v1", "apiKey": "$LOCAL_KEY", "api": "openai-completions", "models": [
			{"id": "one", "contextWindow": 10000, "maxTokens": 1000},
			{"id": "two", "baseUrl": "https://two.example.com:8443/v1", "contextWindow": 10000, "maxTokens": 1000},
		]}}}`), 0o600))
	p.env = append(p.env, "LOCAL_KEY=canary")
	id := strings.TrimSpace(p.ok("new", "--model", "local/one", "-q", "--allow", "example.com"))
	rules := func() []string {
		var rules []string
		for _, r := range p.sessions()[0].Plan.Egress {
			rules = append(rules, r.Source+" "+r.String())
		}
		return rules
	}
	require.ElementsMatch(t, []string{"flag example.com:443", "model 127.0.0.1:9"}, rules())
	cmd := p.command(t.Context(), "rpc", id)
	cmd.Stdin = strings.NewReader(`{"type":"set_model","provider":"local","modelId":"two","id":"m"}` + "\n")
	out, err := cmd.Output()
	require.NoError(t, err)
	require.Contains(t, string(out), `"success":true`)
	require.Equal(t, "local/two", p.sessions()[0].Model.String())
	require.ElementsMatch(t, []string{"flag example.com:443", "model two.example.com:8443"}, rules())
	p.ok("stop", id)
}
