package api

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"patio/engine/journal"
)

// fakeBackend is a session whose answers a test sets. Its journal is a real one.
type fakeBackend struct {
	journal *journal.Journal
	open    atomic.Int64 // journal readers that aren't closed

	session   func() Session
	processes func() ([]Process, error)
	prompt    func(client string, p PromptRequest) (PromptResponse, error)
	command   func(client string, c json.RawMessage) (json.RawMessage, error)
	attach    func(client string, rw io.ReadWriteCloser) error
	stop      func(r StopRequest) error
	exec      func(r ExecRequest, conn *net.UnixConn) error
	policy    func() PolicyState
	change    func(client string, c RuleChange) (PolicyState, error)
}

func (f *fakeBackend) Session() Session { return f.session() }

type countedReader struct {
	LineReader
	open *atomic.Int64
	once sync.Once
}

func (r *countedReader) Close() error {
	r.once.Do(func() { r.open.Add(-1) })
	return r.LineReader.Close()
}

// nowReader doesn't wait for more.
type nowReader struct{ *journal.Reader }

func (r nowReader) Next(context.Context) ([]byte, error) {
	line, ok, err := r.TryNext()
	if err == nil && !ok {
		err = io.EOF
	}
	return line, err
}

func (f *fakeBackend) Journal(since uint64, follow bool) (LineReader, error) {
	r, err := f.journal.NewReader(since)
	if err != nil {
		return nil, Errorf(CodeConflict, "", "no journal: %w", err)
	}
	f.open.Add(1)
	if follow {
		return &countedReader{LineReader: r, open: &f.open}, nil
	}
	return &countedReader{LineReader: nowReader{r}, open: &f.open}, nil
}

func (f *fakeBackend) Processes(context.Context) ([]Process, error) { return f.processes() }

func (f *fakeBackend) Prompt(_ context.Context, client string, p PromptRequest) (PromptResponse, error) {
	return f.prompt(client, p)
}

func (f *fakeBackend) Command(_ context.Context, client string, c json.RawMessage) (json.RawMessage, error) {
	return f.command(client, c)
}

func (f *fakeBackend) Attach(_ context.Context, client string, rw io.ReadWriteCloser) error {
	return f.attach(client, rw)
}

func (f *fakeBackend) Stop(_ context.Context, r StopRequest) error { return f.stop(r) }

func (f *fakeBackend) Exec(_ context.Context, r ExecRequest, conn *net.UnixConn) error {
	return f.exec(r, conn)
}

func (f *fakeBackend) Policy() PolicyState { return f.policy() }

func (f *fakeBackend) ChangePolicy(_ context.Context, client string, c RuleChange) (PolicyState, error) {
	return f.change(client, c)
}

// shortDir is a temporary directory whose path leaves room for a socket's name.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "api")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// serve serves f on a socket of its own and returns a client. Everything is joined when
// the test ends.
func serve(t *testing.T, f *fakeBackend) *Client {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, leaks) })
	dir := shortDir(t)
	var err error
	f.journal, err = journal.Open(filepath.Join(dir, "journal"), "test")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.journal.Close()) })
	socket := filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	server := NewServer(Backend{f, f, f, f}, slog.New(slog.DiscardHandler))
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	c := NewClient(socket, "test")
	t.Cleanup(func() {
		c.Close()
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-done, http.ErrServerClosed)
	})
	return c
}

// within bounds a wait that only a defect makes long.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}
