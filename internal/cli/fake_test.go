package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"patio/engine/api"
	"patio/engine/journal"
)

// fakeSession is a session without a sandbox: a real journal behind the real server, and
// a Pi that a test plays.
type fakeSession struct {
	t       *testing.T
	journal *journal.Journal

	mu      sync.Mutex
	session api.Session
	// commands are those that were sent, by type.
	commands []string

	// prompt plays Pi's side of a prompt.
	prompt func(f *fakeSession, id string, p api.PromptRequest) error
	// attach plays the RPC.
	attach func(f *fakeSession, rw io.ReadWriter) error
	// exec plays a program; its streams are the client's.
	exec func(r api.ExecRequest, stdin io.Reader, stdout, stderr io.Writer, signals <-chan int) int
}

// serveFake serves a fake on a socket of its own and returns a client named name.
func serveFake(t *testing.T, f *fakeSession, name string) *api.Client {
	t.Helper()
	dir := t.TempDir()
	j, err := journal.Open(filepath.Join(dir, "journal"), "s1")
	require.NoError(t, err)
	f.t, f.journal = t, j
	f.session.ID = "s1"
	if f.session.Phase == "" {
		f.session.Phase, f.session.Activity = api.PhaseReady, api.ActivityIdle
	}
	f.state(api.StateRecord{Phase: f.session.Phase, Activity: f.session.Activity})
	socket := filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	server := api.NewServer(api.Backend{Observer: f, Talker: f, Controller: f}, slog.New(slog.DiscardHandler))
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	client := api.NewClient(socket, name)
	t.Cleanup(func() {
		client.Close()
		_ = j.Close()
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
	return client
}

func (f *fakeSession) state(r api.StateRecord) {
	f.mu.Lock()
	f.session.Phase, f.session.Activity = r.Phase, r.Activity
	if r.Question != nil {
		f.session.Questions = []api.Question{*r.Question}
	}
	f.mu.Unlock()
	_, err := f.journal.Append(api.RecordState, r)
	require.NoError(f.t, err)
}

func (f *fakeSession) says(line string) {
	_, err := f.journal.Append(api.RecordRPC, api.RPCRecord{Direction: api.FromPi, Line: json.RawMessage(line)})
	require.NoError(f.t, err)
}

func (f *fakeSession) Session() api.Session {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.session
	s.Seq, _ = f.journal.Last()
	return s
}

type tailReader struct{ *journal.Reader }

func (r tailReader) Next(context.Context) ([]byte, error) {
	line, ok, err := r.TryNext()
	if err == nil && !ok {
		err = io.EOF
	}
	return line, err
}

func (f *fakeSession) Journal(since uint64, follow bool) (api.LineReader, error) {
	r, err := f.journal.NewReader(since)
	if err != nil {
		return nil, err
	}
	if follow {
		return r, nil
	}
	return tailReader{r}, nil
}

func (f *fakeSession) Processes(context.Context) ([]api.Process, error) {
	return []api.Process{{PID: 1, UID: 1000, Command: "pi"}}, nil
}

func (f *fakeSession) sent(client, line string) {
	_, err := f.journal.Append(api.RecordRPC, api.RPCRecord{Direction: api.ToPi, Client: client, Line: json.RawMessage(line)})
	require.NoError(f.t, err)
}

func (f *fakeSession) Prompt(_ context.Context, client string, p api.PromptRequest) (api.PromptResponse, error) {
	seq, _ := f.journal.Last()
	line, err := json.Marshal(map[string]string{"type": "prompt", "message": p.Message, "id": client + "-1/1"})
	require.NoError(f.t, err)
	f.sent(client+"-1", string(line))
	return api.PromptResponse{Seq: seq}, f.prompt(f, client+"-1/1", p)
}

func (f *fakeSession) Command(_ context.Context, _ string, command json.RawMessage) (json.RawMessage, error) {
	var c struct {
		Type string `json:"type"`
	}
	require.NoError(f.t, json.Unmarshal(command, &c))
	f.mu.Lock()
	f.commands = append(f.commands, c.Type)
	f.mu.Unlock()
	reply := `{"type":"response","command":"` + c.Type + `","success":true,"data":{"isStreaming":false}}`
	f.says(reply)
	return json.RawMessage(reply), nil
}

func (f *fakeSession) sentCommands() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.commands...)
}

func (f *fakeSession) Attach(_ context.Context, _ string, rw io.ReadWriteCloser) error {
	return f.attach(f, rw)
}

func (f *fakeSession) Stop(context.Context, api.StopRequest) error {
	f.state(api.StateRecord{Phase: api.PhaseEnded})
	return f.journal.Close()
}

func (f *fakeSession) Exec(_ context.Context, r api.ExecRequest, conn *net.UnixConn) error {
	oob := make([]byte, unix.CmsgSpace(12))
	var b [1]byte
	_, n, _, _, err := conn.ReadMsgUnix(b[:], oob)
	if err != nil {
		return err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil {
		return err
	}
	if len(messages) != 1 {
		return errors.New("no descriptors came")
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return err
	}
	stdin, stdout, stderr := fdFile(fds[0]), fdFile(fds[1]), fdFile(fds[2])
	signals := make(chan int, 4)
	go func() {
		defer close(signals)
		lines := bufio.NewScanner(conn)
		for lines.Scan() {
			var m api.ExecMessage
			if json.Unmarshal(lines.Bytes(), &m) == nil && m.Signal > 0 {
				signals <- m.Signal
			}
		}
	}()
	code := f.exec(r, stdin, stdout, stderr, signals)
	for _, c := range []io.Closer{stdin, stdout, stderr} {
		_ = c.Close()
	}
	return json.NewEncoder(conn).Encode(api.ExecMessage{Exited: true, ExitCode: code})
}
