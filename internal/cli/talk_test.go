package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/engine/jsonl"
)

func fdFile(fd int) *os.File { return os.NewFile(uintptr(fd), "client") }

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// accept answers a prompt and says a text.
func accept(text string) func(*fakeSession, string, api.PromptRequest) error {
	return func(f *fakeSession, id string, _ api.PromptRequest) error {
		f.says(`{"id":"` + id + `","type":"response","command":"prompt","success":true}`)
		f.says(`{"type":"agent_start"}`)
		f.says(`{"type":"message_start","message":{"role":"assistant"}}`)
		f.says(`{"type":"message_update","assistantMessageEvent":{"type":"text_delta","delta":"` + text + `"}}`)
		f.says(`{"type":"message_end","message":{"role":"assistant","content":[],"stopReason":"stop"}}`)
		f.says(`{"type":"agent_settled"}`)
		f.says(`{"type":"late"}`)
		return nil
	}
}

func TestConverse(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	question := api.Question{ID: "q", Method: "confirm", Title: "Delete it?", Message: "really", Raw: []byte(`{}`)}
	for name, c := range map[string]struct {
		message  string
		prompt   func(*fakeSession, string, api.PromptRequest) error
		stdout   string
		code     api.Code
		err      string
		commands []string
	}{
		"an answer": {message: "hi", prompt: accept("Hello"), stdout: "Hello\n"},
		"refused": {
			message: "hi",
			prompt: func(*fakeSession, string, api.PromptRequest) error {
				return api.Errorf(api.CodeConflict, "use --steer", "the session is working")
			},
			code: api.CodeConflict, err: "the session is working",
		},
		"a question": {
			message: "hi",
			prompt: func(f *fakeSession, id string, _ api.PromptRequest) error {
				f.says(`{"id":"` + id + `","type":"response","command":"prompt","success":true}`)
				f.state(api.StateRecord{Phase: api.PhaseReady, Activity: api.ActivityBlocked, Question: &question})
				return nil
			},
			code: api.CodeNeedsAnswer, err: "Pi asks (confirm): Delete it?: really",
		},
		"a slash command without an agent": {
			message: "/status",
			prompt: func(f *fakeSession, id string, _ api.PromptRequest) error {
				f.says(`{"id":"` + id + `","type":"response","command":"prompt","success":true}`)
				return nil
			},
			commands: []string{"get_state"},
		},
		"the session ends": {
			message: "hi",
			prompt: func(f *fakeSession, id string, _ api.PromptRequest) error {
				f.says(`{"id":"` + id + `","type":"response","command":"prompt","success":true}`)
				f.state(api.StateRecord{Phase: api.PhaseEnded, Reason: "out of memory"})
				return nil
			},
			code: api.CodeInternal, err: "the session ended before the answer was complete: out of memory",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeSession{prompt: c.prompt}
			client := serveFake(t, f, clientCLI)
			var out, errOut bytes.Buffer
			a := &app{stdout: &out, stderr: &errOut, lookupEnv: noEnv}
			err := a.converse(testContext(t), nil, client, api.Session{ID: "s1"}, api.PromptRequest{Message: c.message}, clientCLI, a.viewer(false, false))
			require.Equal(t, c.stdout, out.String())
			require.Equal(t, c.commands, f.sentCommands())
			if c.code == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, c.err)
			require.Equal(t, c.code, classify(err).Code)
		})
	}
}

func noEnv(string) (string, bool) { return "", false }

// A question that comes before the prompt is answered: the prompt of a slash command
// hangs until it is.
func TestQuestionWhileThePromptHangs(t *testing.T) {
	release := make(chan struct{})
	f := &fakeSession{prompt: func(f *fakeSession, _ string, _ api.PromptRequest) error {
		f.state(api.StateRecord{Phase: api.PhaseReady, Activity: api.ActivityBlocked, Question: &api.Question{ID: "q", Method: "input", Title: "Name?", Raw: []byte(`{}`)}})
		<-release
		return nil
	}}
	client := serveFake(t, f, clientCLI)
	a := &app{stdout: io.Discard, stderr: io.Discard, lookupEnv: noEnv}
	err := a.converse(testContext(t), nil, client, api.Session{ID: "s1"}, api.PromptRequest{Message: "/ask"}, clientCLI, a.viewer(false, false))
	close(release)
	require.Equal(t, api.CodeNeedsAnswer, classify(err).Code)
}

func TestConverseAbortsWhenInterrupted(t *testing.T) {
	for name, c := range map[string]struct {
		cause error
		code  int
	}{
		"ctrl-c":  {&signalError{syscall.SIGINT}, 130},
		"timeout": {api.Errorf(api.CodeTimeout, "", "not done within 1s"), 11},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(testContext(t))
			f := &fakeSession{prompt: func(f *fakeSession, id string, _ api.PromptRequest) error {
				f.says(`{"id":"` + id + `","type":"response","command":"prompt","success":true}`)
				f.says(`{"type":"agent_start"}`)
				cancel(c.cause)
				return nil
			}}
			client := serveFake(t, f, clientCLI)
			a := &app{stdout: io.Discard, stderr: io.Discard, lookupEnv: noEnv}
			err := a.converse(ctx, nil, client, api.Session{ID: "s1"}, api.PromptRequest{Message: "hi"}, clientCLI, a.viewer(false, false))
			require.ErrorIs(t, err, c.cause)
			require.Equal(t, []string{"abort"}, f.sentCommands())
		})
	}
}

func TestConverseJSONGivesTheJournalsLines(t *testing.T) {
	f := &fakeSession{prompt: accept("Hello")}
	client := serveFake(t, f, clientCLI)
	var out bytes.Buffer
	a := &app{stdout: &out, stderr: io.Discard, lookupEnv: noEnv}
	ctx := testContext(t)
	err := a.converse(ctx, nil, client, api.Session{ID: "s1"}, api.PromptRequest{Message: "hi"}, clientCLI, a.viewer(true, false))
	require.NoError(t, err)

	stream, err := client.Journal(ctx, api.JournalOptions{Since: 1})
	require.NoError(t, err)
	defer func() { _ = stream.Close() }()
	var want strings.Builder
	for {
		line, err := stream.Next()
		require.NoError(t, err)
		r, err := journal.Decode(line)
		require.NoError(t, err)
		if rpcEvent(r.Data).line.Get("type").Str == "late" {
			break // after the turn's end
		}
		want.Write(append(line, '\n'))
	}
	require.Equal(t, want.String(), out.String())
}

func TestBrokenStdoutEndsTheTurn(t *testing.T) {
	f := &fakeSession{prompt: accept("Hello")}
	client := serveFake(t, f, clientCLI)
	a := &app{stdout: failing{syscall.EPIPE}, stderr: io.Discard, lookupEnv: noEnv}
	err := a.converse(testContext(t), nil, client, api.Session{ID: "s1"}, api.PromptRequest{Message: "hi"}, clientCLI, a.viewer(false, false))
	require.ErrorIs(t, err, syscall.EPIPE)
}

func TestWait(t *testing.T) {
	for name, c := range map[string]struct {
		first  api.StateRecord
		then   []api.StateRecord
		until  string
		code   api.Code
		ending bool
	}{
		"idle already":    {first: api.StateRecord{Phase: api.PhaseReady, Activity: api.ActivityIdle}, until: waitIdle},
		"idle later":      {first: api.StateRecord{Phase: api.PhaseReady, Activity: api.ActivityWorking}, then: []api.StateRecord{{Phase: api.PhaseReady, Activity: api.ActivityIdle}}, until: waitIdle},
		"start then idle": {first: api.StateRecord{Phase: api.PhaseStarting}, then: []api.StateRecord{{Phase: api.PhaseReady, Activity: api.ActivityIdle}}, until: waitIdle},
		"blocked": {
			first: api.StateRecord{Phase: api.PhaseReady, Activity: api.ActivityWorking},
			then:  []api.StateRecord{{Phase: api.PhaseReady, Activity: api.ActivityBlocked, Question: &api.Question{Method: "confirm", Title: "Sure?"}}},
			until: waitIdle, code: api.CodeNeedsAnswer,
		},
		"exit":          {first: api.StateRecord{Phase: api.PhaseReady, Activity: api.ActivityIdle}, then: []api.StateRecord{{Phase: api.PhaseStopping}, {Phase: api.PhaseEnded}}, until: waitExit},
		"ended instead": {first: api.StateRecord{Phase: api.PhaseReady, Activity: api.ActivityWorking}, then: []api.StateRecord{{Phase: api.PhaseEnded}}, until: waitIdle, code: api.CodeConflict},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeSession{session: api.Session{Phase: c.first.Phase, Activity: c.first.Activity}}
			client := serveFake(t, f, clientCLI)
			var changes sync.WaitGroup
			changes.Go(func() {
				for _, r := range c.then {
					f.state(r)
				}
			})
			// Before the fake's journal closes: the wait can end within a change.
			t.Cleanup(changes.Wait)
			err := watchFor(testContext(t), client, nil, "s1", c.until)
			if c.code == "" {
				require.NoError(t, err)
				return
			}
			require.Equal(t, c.code, classify(err).Code, err)
		})
	}
}

func TestWaitTimesOut(t *testing.T) {
	f := &fakeSession{session: api.Session{Phase: api.PhaseReady, Activity: api.ActivityWorking}}
	client := serveFake(t, f, clientCLI)
	timeout := api.Errorf(api.CodeTimeout, "", "too long")
	ctx, cancel := context.WithCancelCause(testContext(t))
	cancel(timeout)
	err := watchFor(ctx, client, nil, "s1", waitIdle)
	require.ErrorIs(t, err, timeout)
}

// echoRPC answers each command with a reply and an event before it.
func echoRPC(f *fakeSession, rw io.ReadWriter) error {
	lines := jsonl.NewReader(rw)
	for {
		line, err := lines.Next()
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			// As the real one: it goes on until the client closes.
			_, _ = fmt.Fprintln(rw, `{"type":"after_eof"}`)
			_, _ = io.Copy(io.Discard, rw)
			return nil
		}
		if bytes.Contains(line, []byte("extension_ui_response")) {
			continue
		}
		if bytes.Contains(line, []byte("die")) {
			return nil
		}
		if _, err := fmt.Fprintf(rw, `{"type":"agent_start"}`+"\n"+`{"type":"response","success":true,"of":%q}`+"\n", line); err != nil {
			return err
		}
	}
}

func TestRPC(t *testing.T) {
	for name, c := range map[string]struct {
		stdin string
		want  []string
		code  api.Code
	}{
		"nothing":     {"", nil, ""},
		"blank lines": {"\n  \n", nil, ""},
		"two commands, the last without a line end": {
			"{\"type\":\"a\"}\n{\"type\":\"b\"}",
			[]string{`{"type":"agent_start"}`, `{"type":"response","success":true,"of":"{\"type\":\"a\"}"}`, `{"type":"agent_start"}`, `{"type":"response","success":true,"of":"{\"type\":\"b\"}"}`}, "",
		},
		"an answer has no reply": {"{\"type\":\"extension_ui_response\",\"id\":\"x\"}\n", nil, ""},
		"the session ends":       {"{\"type\":\"die\"}\n", nil, api.CodeConflict},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeSession{attach: echoRPC}
			client := serveFake(t, f, clientCLI)
			ctx := testContext(t)
			conn, err := client.RPC(ctx)
			require.NoError(t, err)
			var out bytes.Buffer
			a := &app{stdin: strings.NewReader(c.stdin), stdout: &out, stderr: io.Discard, lookupEnv: noEnv}
			err = a.rpc(ctx, conn)
			if c.code != "" {
				require.Equal(t, c.code, classify(err).Code, err)
				return
			}
			require.NoError(t, err)
			got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			// An event may still come in between the last reply and the end.
			got = got[:min(len(got), len(c.want))]
			if len(c.want) > 0 {
				require.Equal(t, c.want, got)
			}
		})
	}
}

func TestRPCIsInterruptible(t *testing.T) {
	f := &fakeSession{attach: echoRPC}
	client := serveFake(t, f, clientCLI)
	cause := &signalError{syscall.SIGTERM}
	ctx, cancel := context.WithCancelCause(testContext(t))
	conn, err := client.RPC(ctx)
	require.NoError(t, err)
	stdin, w, err := os.Pipe()
	require.NoError(t, err)
	defer func() { require.NoError(t, errors.Join(stdin.Close(), w.Close())) }()
	a := &app{stdin: stdin, stdout: io.Discard, stderr: io.Discard, lookupEnv: noEnv}
	cancel(cause)
	require.ErrorIs(t, a.rpc(ctx, conn), cause)
}

func TestExec(t *testing.T) {
	f := &fakeSession{exec: func(r api.ExecRequest, stdin io.Reader, stdout, stderr io.Writer, _ <-chan int) int {
		in, _ := io.ReadAll(stdin)
		_, _ = fmt.Fprintf(stdout, "%s: %s", strings.Join(r.Argv, " "), in)
		_, _ = fmt.Fprint(stderr, "trouble")
		return 42
	}}
	client := serveFake(t, f, clientCLI)
	var out, errOut bytes.Buffer
	a := &app{stdin: strings.NewReader("input"), stdout: &out, stderr: &errOut, lookupEnv: noEnv}
	code, err := a.execIn(testContext(t), client, api.ExecRequest{Argv: []string{"prog", "-x"}})
	require.NoError(t, err)
	require.Equal(t, 42, code)
	require.Equal(t, "prog -x: input", out.String())
	require.Equal(t, "trouble", errOut.String())
}

// A regular file is read from where it stands, and written to there: others may have
// used it before.
func TestExecKeepsAFilesPosition(t *testing.T) {
	f := &fakeSession{exec: func(_ api.ExecRequest, stdin io.Reader, stdout, _ io.Writer, _ <-chan int) int {
		// As gVisor does with a regular file.
		if s, ok := stdout.(io.Seeker); ok {
			_, _ = s.Seek(0, io.SeekStart)
		}
		_, _ = io.Copy(stdout, stdin)
		return 0
	}}
	client := serveFake(t, f, clientCLI)
	dir := t.TempDir()
	in, err := os.Create(dir + "/in")
	require.NoError(t, err)
	defer func() { require.NoError(t, in.Close()) }()
	_, err = in.WriteString("skipped\nread\n")
	require.NoError(t, err)
	_, err = in.Seek(8, io.SeekStart)
	require.NoError(t, err)
	out, err := os.Create(dir + "/out")
	require.NoError(t, err)
	defer func() { require.NoError(t, out.Close()) }()
	_, err = out.WriteString("before\n")
	require.NoError(t, err)
	a := &app{stdin: in, stdout: out, stderr: out, lookupEnv: noEnv}
	_, err = a.execIn(testContext(t), client, api.ExecRequest{Argv: []string{"cat"}})
	require.NoError(t, err)
	got, err := os.ReadFile(dir + "/out")
	require.NoError(t, err)
	require.Equal(t, "before\nread\n", string(got))
}

func TestExecForwardsSignals(t *testing.T) {
	f := &fakeSession{exec: func(_ api.ExecRequest, _ io.Reader, _, _ io.Writer, signals <-chan int) int {
		// The signal is for this process: only now is it known to be taken over.
		if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
			return 1
		}
		return 128 + <-signals
	}}
	client := serveFake(t, f, clientCLI)
	a := &app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard, lookupEnv: noEnv}
	code, err := a.execIn(testContext(t), client, api.ExecRequest{Argv: []string{"sleep"}})
	require.NoError(t, err)
	require.Equal(t, 128+int(syscall.SIGUSR1), code)
}
