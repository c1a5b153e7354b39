package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"patio/engine/journal"
)

func TestSession(t *testing.T) {
	ready := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	want := Session{V: 1, ID: "abc", Name: "é <&>", Phase: PhaseReady, Activity: ActivityBlocked, Ready: &ready, Turns: 3, Questions: []Question{{ID: "q", Method: "select", Options: []string{"a", "b"}, Raw: json.RawMessage(`{"x":1}`)}}}
	f := &fakeBackend{session: func() Session { return want }}
	got, err := serve(t, f).Session(within(t))
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestProcesses(t *testing.T) {
	want := []Process{{PID: 1, UID: 1000, Command: "node"}}
	f := &fakeBackend{processes: func() ([]Process, error) { return want, nil }}
	got, err := serve(t, f).Processes(within(t))
	require.NoError(t, err)
	require.Equal(t, want, got)
	f = &fakeBackend{processes: func() ([]Process, error) { return nil, errors.New("list processes: oops") }}
	_, err = serve(t, f).Processes(within(t))
	require.Equal(t, &Error{Code: CodeInternal, Message: "list processes: oops"}, err)
}

func TestErrorsKeepCodeAndHint(t *testing.T) {
	for _, code := range []Code{
		CodeInternal, CodeUsage, CodeConfig, CodeNotFound, CodeMissing, CodeUnsupported, CodeCredentials,
		CodeRefused, CodeConflict, CodeDisk, CodeTimeout, CodeNeedsAnswer, CodeInterrupted,
	} {
		t.Run(string(code), func(t *testing.T) {
			want := &Error{Code: code, Message: "message <&> 'é'", Hint: "hint"}
			fail := Errorf(code, "hint", "message <&> 'é'")
			f := &fakeBackend{
				prompt:  func(string, PromptRequest) (PromptResponse, error) { return PromptResponse{}, fail },
				command: func(string, json.RawMessage) (json.RawMessage, error) { return nil, fail },
				stop:    func(StopRequest) error { return fail },
			}
			c := serve(t, f)
			_, err := c.Prompt(within(t), PromptRequest{Message: "x"})
			require.Equal(t, want, err)
			_, err = c.Command(within(t), map[string]string{"type": "abort"})
			require.Equal(t, want, err)
			_, err = c.Stop(within(t), StopRequest{})
			require.Equal(t, want, err)
		})
	}
}

func TestPromptCommandStop(t *testing.T) {
	f := &fakeBackend{
		session: func() Session { return Session{ID: "abc", Phase: PhaseEnded} },
		prompt: func(client string, p PromptRequest) (PromptResponse, error) {
			require.Equal(t, "test", client)
			require.Equal(t, PromptRequest{Message: "hi\u2028", Behavior: "steer", Images: json.RawMessage(`[{"a":1}]`)}, p)
			return PromptResponse{Seq: 41}, nil
		},
		command: func(client string, c json.RawMessage) (json.RawMessage, error) {
			require.Equal(t, "test", client)
			require.JSONEq(t, `{"type":"bash","id":7}`, string(c))
			return json.RawMessage(`{"success":false}`), nil
		},
		stop: func(r StopRequest) error {
			require.Equal(t, StopRequest{Reason: "enough", Now: true}, r)
			return nil
		},
	}
	c := serve(t, f)
	p, err := c.Prompt(within(t), PromptRequest{Message: "hi\u2028", Behavior: "steer", Images: json.RawMessage(`[{"a":1}]`)})
	require.NoError(t, err)
	require.Equal(t, uint64(41), p.Seq)
	reply, err := c.Command(within(t), json.RawMessage(`{"type":"bash","id":7}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"success":false}`, string(reply), "Pi's own refusal isn't an error of the API")
	s, err := c.Stop(within(t), StopRequest{Reason: "enough", Now: true})
	require.NoError(t, err)
	require.Equal(t, PhaseEnded, s.Phase)
}

func TestNobodyListens(t *testing.T) {
	dir := shortDir(t)
	socket := filepath.Join(dir, "s")
	c := NewClient(socket, "test")
	defer c.Close()
	check := func(t *testing.T) {
		t.Helper()
		for name, call := range map[string]func() error{
			"session": func() error { _, err := c.Session(within(t)); return err },
			"journal": func() error { _, err := c.Journal(within(t), JournalOptions{}); return err },
			"rpc":     func() error { _, err := c.RPC(within(t)); return err },
			"exec":    func() error { _, err := c.Exec(within(t), ExecRequest{}, os.Stdin, os.Stdout, os.Stderr); return err },
		} {
			err := call()
			require.ErrorContains(t, err, "the session isn't running", name)
			e := AsError(err)
			require.Equal(t, CodeConflict, e.Code, name)
			require.Contains(t, e.Hint, "patio ls -a", name)
		}
	}
	t.Run("no socket", check)
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	t.Run("a dead socket", check)
}

func TestAnotherVersion(t *testing.T) {
	dir := shortDir(t)
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	require.NoError(t, err)
	server := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Second}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	defer func() { require.NoError(t, server.Close()); <-done }()
	c := NewClient(filepath.Join(dir, "s"), "test")
	defer c.Close()
	_, err = c.Session(within(t))
	require.ErrorContains(t, err, "404")
	require.Contains(t, AsError(err).Hint, "another version")
	_, err = c.RPC(within(t))
	require.ErrorContains(t, err, "404")
}

func TestBadRequests(t *testing.T) {
	c := serve(t, &fakeBackend{})
	for name, tc := range map[string]struct {
		method, path, body string
		status             int
	}{
		"no JSON":        {http.MethodPost, "/v1/prompt", "{", http.StatusBadRequest},
		"other JSON":     {http.MethodPost, "/v1/prompt", "[]", http.StatusBadRequest},
		"empty command":  {http.MethodPost, "/v1/command", "", http.StatusBadRequest},
		"bad since":      {http.MethodGet, "/v1/journal?since=x", "", http.StatusBadRequest},
		"negative since": {http.MethodGet, "/v1/journal?since=-1", "", http.StatusBadRequest},
		"wrong method":   {http.MethodGet, "/v1/stop", "", http.StatusMethodNotAllowed},
		"wrong path":     {http.MethodGet, "/v2/session", "", http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(within(t), tc.method, "http://patio"+tc.path, strings.NewReader(tc.body))
			require.NoError(t, err)
			resp, err := c.http.Do(req)
			require.NoError(t, err)
			defer func() { require.NoError(t, resp.Body.Close()) }()
			require.Equal(t, tc.status, resp.StatusCode)
		})
	}
}

// next reads a record of the stream.
func next(t *testing.T, r *Records) journal.Record {
	t.Helper()
	line, err := r.Next()
	require.NoError(t, err)
	rec, err := journal.Decode(line)
	require.NoError(t, err)
	return rec
}

func TestJournal(t *testing.T) {
	f := &fakeBackend{}
	c := serve(t, f)
	for i := range 10 {
		typ := RecordRPC
		if i%2 == 1 {
			typ = RecordStats
		}
		_, err := f.journal.Append(typ, i)
		require.NoError(t, err)
	}
	seqs := func(o JournalOptions) (seqs []uint64) {
		r, err := c.Journal(within(t), o)
		require.NoError(t, err)
		defer func() { require.NoError(t, r.Close()) }()
		for {
			line, err := r.Next()
			if err != nil {
				require.ErrorIs(t, err, io.EOF)
				return seqs
			}
			seq, _, _, ok := journal.Header(line)
			require.True(t, ok)
			seqs = append(seqs, seq)
		}
	}
	require.Equal(t, []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, seqs(JournalOptions{}))
	require.Equal(t, []uint64{8, 9, 10}, seqs(JournalOptions{Since: 7}))
	require.Empty(t, seqs(JournalOptions{Since: 10}))
	require.Empty(t, seqs(JournalOptions{Since: 1000}))
	require.Equal(t, []uint64{6, 8, 10}, seqs(JournalOptions{Since: 5, Types: []string{RecordStats}}))
	require.Equal(t, []uint64{9, 10}, seqs(JournalOptions{Since: 8, Types: []string{RecordRPC, RecordStats}}))
	require.Empty(t, seqs(JournalOptions{Types: []string{RecordEgress}}))
}

func TestJournalFollow(t *testing.T) {
	f := &fakeBackend{}
	c := serve(t, f)
	_, err := f.journal.Append(RecordState, 0)
	require.NoError(t, err)
	r, err := c.Journal(within(t), JournalOptions{Follow: true, Types: []string{RecordState}})
	require.NoError(t, err)
	require.Equal(t, uint64(1), next(t, r).Seq)
	for i := uint64(2); i < 20; i += 2 {
		// Each comes without the next one having to push it.
		_, err = f.journal.Append(RecordStats, i)
		require.NoError(t, err)
		_, err = f.journal.Append(RecordState, i)
		require.NoError(t, err)
		require.Equal(t, i+1, next(t, r).Seq)
	}
	require.NoError(t, f.journal.Close())
	_, err = r.Next()
	require.ErrorIs(t, err, io.EOF, "the session's end ends the stream")
	require.NoError(t, r.Close())
}

func TestJournalLongLines(t *testing.T) {
	f := &fakeBackend{}
	c := serve(t, f)
	long := strings.Repeat("x\u2028", 5<<20) // 20 MB
	_, err := f.journal.AppendRaw(RecordRPC, []byte(`{"text":"`+long+`"}`))
	require.NoError(t, err)
	_, err = f.journal.Append(RecordRPC, "short")
	require.NoError(t, err)
	r, err := c.Journal(within(t), JournalOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	rec := next(t, r)
	require.Equal(t, `{"text":"`+long+`"}`, string(rec.Data))
	require.Equal(t, `"short"`, string(next(t, r).Data))
}

// A client that goes away in the middle of a stream costs nothing afterwards.
func TestJournalClientLeaves(t *testing.T) {
	f := &fakeBackend{}
	c := serve(t, f)
	_, err := f.journal.Append(RecordState, 0)
	require.NoError(t, err)
	for range 20 {
		r, err := c.Journal(within(t), JournalOptions{Follow: true})
		require.NoError(t, err)
		next(t, r)
		require.NoError(t, r.Close())
	}
	require.Eventually(t, func() bool { return f.open.Load() == 0 }, 10*time.Second, time.Millisecond)

	ctx, cancel := context.WithCancel(t.Context())
	r, err := c.Journal(ctx, JournalOptions{Follow: true})
	require.NoError(t, err)
	next(t, r)
	cancel()
	_, err = r.Next()
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, r.Close())
	require.Eventually(t, func() bool { return f.open.Load() == 0 }, 10*time.Second, time.Millisecond)
}

func TestRPC(t *testing.T) {
	f := &fakeBackend{attach: func(client string, rw io.ReadWriteCloser) error {
		if client != "test" {
			return fmt.Errorf("client %q", client)
		}
		if _, err := io.WriteString(rw, "hello\n"); err != nil {
			return err
		}
		_, err := io.Copy(rw, rw) // until the client's CloseWrite
		_, werr := io.WriteString(rw, "bye\n")
		return errors.Join(err, werr, rw.Close())
	}}
	c := serve(t, f)
	conn, err := c.RPC(within(t))
	require.NoError(t, err)
	long := strings.Repeat("x", 1<<20)
	go func() {
		_, _ = io.WriteString(conn, "one\n")
		_, _ = io.WriteString(conn, long+"\n")
		_ = conn.CloseWrite()
	}()
	b, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, "hello\none\n"+long+"\nbye\n", string(b))
	require.NoError(t, conn.Close())
}

func TestRPCCancelledBeforeTheAnswer(t *testing.T) {
	dir := shortDir(t)
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }() // accepts, never answers
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = NewClient(filepath.Join(dir, "s"), "test").RPC(ctx)
	require.Error(t, err)
}

// takeFiles receives a program's descriptors as the supervisor does.
func takeFiles(conn *net.UnixConn) ([]*os.File, error) {
	oob := make([]byte, unix.CmsgSpace(12))
	var b [1]byte
	_, n, _, _, err := conn.ReadMsgUnix(b[:], oob)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(err, fmt.Errorf("%d control messages", len(messages)))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	var files []*os.File
	for _, fd := range fds {
		files = append(files, os.NewFile(uintptr(fd), "passed"))
	}
	return files, err
}

func TestExec(t *testing.T) {
	want := ExecRequest{Argv: []string{"cat"}, Env: []string{"A=b c"}, Cwd: "/x", TTY: true}
	f := &fakeBackend{exec: func(r ExecRequest, conn *net.UnixConn) error {
		files, err := takeFiles(conn)
		if err != nil {
			return err
		}
		if len(files) != 3 || r.Argv[0] != want.Argv[0] || r.Env[0] != want.Env[0] || r.Cwd != want.Cwd || !r.TTY {
			return fmt.Errorf("got %d files and %+v", len(files), r)
		}
		in, err := io.ReadAll(files[0])
		_, err1 := fmt.Fprintf(files[1], "out:%s", in)
		_, err2 := fmt.Fprint(files[2], "err")
		for _, f := range files {
			err = errors.Join(err, f.Close())
		}
		if err := errors.Join(err, err1, err2); err != nil {
			return err
		}
		// The client's signal becomes the exit code.
		line, err := bufio.NewReader(conn).ReadBytes('\n')
		if err != nil {
			return err
		}
		var m ExecMessage
		if err := json.Unmarshal(line, &m); err != nil {
			return err
		}
		return json.NewEncoder(conn).Encode(ExecMessage{Exited: true, ExitCode: 128 + m.Signal})
	}}
	c := serve(t, f)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "in"), []byte("input"), 0o600))
	in, err := os.Open(filepath.Join(dir, "in"))
	require.NoError(t, err)
	out, err := os.Create(filepath.Join(dir, "out"))
	require.NoError(t, err)
	errFile, err := os.Create(filepath.Join(dir, "err"))
	require.NoError(t, err)
	e, err := c.Exec(within(t), want, in, out, errFile)
	require.NoError(t, err)
	require.NoError(t, e.Signal(syscall.SIGINT))
	code, err := e.Wait(within(t))
	require.NoError(t, err)
	require.Equal(t, 130, code)
	for name, text := range map[string]string{"out": "out:input", "err": "err"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, text, string(b))
	}
	for _, f := range []*os.File{in, out, errFile} {
		require.NoError(t, f.Close(), "the client's own stay open")
	}
}

func TestExecFails(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, null.Close()) }()
	start := func(t *testing.T, exec func(ExecRequest, *net.UnixConn) error) (*Exec, error) {
		t.Helper()
		return serve(t, &fakeBackend{exec: exec}).Exec(within(t), ExecRequest{Argv: []string{"x"}}, null, null, null)
	}
	refuse := func(ExecRequest, *net.UnixConn) error { return Errorf(CodeConflict, "wait", "not ready") }
	for name, exec := range map[string]func(ExecRequest, *net.UnixConn) error{
		"refused before the descriptors came": refuse,
		"refused after": func(r ExecRequest, conn *net.UnixConn) error {
			files, err := takeFiles(conn)
			for _, f := range files {
				err = errors.Join(err, f.Close())
			}
			if err != nil {
				return err
			}
			return refuse(r, conn)
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := start(t, exec)
			if err == nil {
				var code int
				code, err = e.Wait(within(t))
				require.NotZero(t, code)
			}
			require.Equal(t, &Error{Code: CodeConflict, Message: "not ready", Hint: "wait"}, err)
		})
	}
	t.Run("a supervisor that is gone is no exit code 0", func(t *testing.T) {
		e, err := start(t, func(_ ExecRequest, conn *net.UnixConn) error { return conn.Close() })
		if err == nil {
			_, err = e.Wait(within(t))
		}
		require.Error(t, err)
	})
	// The connection's end is what the supervisor kills by.
	t.Run("a client that gives up", func(t *testing.T) {
		gone := make(chan struct{})
		e, err := start(t, func(_ ExecRequest, conn *net.UnixConn) error {
			defer close(gone)
			_, err := io.Copy(io.Discard, conn)
			return err
		})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = e.Wait(ctx)
		require.ErrorIs(t, err, context.Canceled)
		<-gone
	})
}
