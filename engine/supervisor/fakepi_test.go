package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/engine/jsonl"
	"patio/sandbox/network/policy"
)

// fakePi is the other end of a session's pipes. It answers each command as its test says.
type fakePi struct {
	in, out *os.File
	answer  func(command gjson.Result) []string
	done    chan struct{}

	mu    sync.Mutex
	lines []string // what came on stdin
}

// say writes a line to stdout.
func (p *fakePi) say(line string) {
	// A session that is gone is the test's own doing.
	_, _ = p.out.WriteString(line + "\n")
}

func (p *fakePi) got() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.lines...)
}

func (p *fakePi) live() {
	defer close(p.done)
	lines := jsonl.NewReader(p.in)
	for {
		line, err := lines.Next()
		if err != nil {
			_ = p.out.Close()
			return
		}
		p.mu.Lock()
		p.lines = append(p.lines, string(line))
		p.mu.Unlock()
		for _, reply := range p.answer(gjson.ParseBytes(line)) {
			p.say(reply)
		}
	}
}

// echo answers every command with success and its own text as data.
func echo(command gjson.Result) []string {
	if command.Get("type").Str == "extension_ui_response" {
		return nil
	}
	return []string{`{"type":"response","id":` + command.Get("id").Raw + `,"command":` + command.Get("type").Raw + `,"success":true,"data":{"echo":` + text(command.Get("message").Str) + `}}`}
}

func text(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string can always be encoded
	}
	return string(b)
}

// newSession returns a ready session whose Pi is a fake. Everything is joined when the
// test ends.
func newSession(t testing.TB, answer func(gjson.Result) []string) (*Supervisor, *fakePi) {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, leaks) })
	dir := t.TempDir()
	j, err := journal.Open(filepath.Join(dir, JournalFile), "test")
	require.NoError(t, err)
	live, err := policy.NewLive()
	require.NoError(t, err)
	stdinR, stdinW, err := os.Pipe()
	require.NoError(t, err)
	stdoutR, stdoutW, err := os.Pipe()
	require.NoError(t, err)
	spec := Spec{Dir: dir, Session: api.Session{ID: "test", Phase: api.PhaseReady, Activity: api.ActivityIdle}}
	s := newSupervisor(spec, slog.New(slog.DiscardHandler), j, live, func(api.Session) {})
	s.conn = newConn(stdinW, j)
	s.conn.observe, s.conn.sent, s.conn.fail = s.observe, s.commandSent, s.fail
	pi := &fakePi{in: stdinR, out: stdoutW, answer: answer, done: make(chan struct{})}
	go pi.live()
	s.background.Add(1)
	go func() {
		defer s.background.Done()
		s.conn.read(stdoutR)
		_ = stdoutR.Close()
	}()
	t.Cleanup(func() {
		require.NoError(t, s.conn.closeStdin())
		<-s.conn.gone
		require.NoError(t, j.Close())
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		s.dismiss(ctx)
		s.background.Wait()
		_ = stdinR.Close()
		<-pi.done
	})
	return s, pi
}

// newQuiet returns a ready session without a Pi: what one says is put in by hand.
func newQuiet(t testing.TB) (s *Supervisor, end func()) {
	t.Helper()
	dir := t.TempDir()
	j, err := journal.Open(filepath.Join(dir, JournalFile), "test")
	require.NoError(t, err)
	s = &Supervisor{
		spec: Spec{Dir: dir}, log: slog.New(slog.DiscardHandler), journal: j, notify: func(api.Session) {},
		tracker: &tracker{s: api.Session{ID: "test", Phase: api.PhaseReady, Activity: api.ActivityIdle}},
		broken:  make(chan error, 1), conn: newConn(nil, j),
	}
	return s, func() {
		close(s.conn.gone)
		s.background.Wait()
		require.NoError(t, j.Close())
	}
}

// client is one end of a connection whose other end is attached to the session.
type client struct {
	*net.UnixConn
	lines *jsonl.Reader
	ended chan error
}

func attach(t testing.TB, s *Supervisor, name string) *client {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	var ends [2]*net.UnixConn
	for i, fd := range pair {
		f := os.NewFile(uintptr(fd), "pair")
		c, err := net.FileConn(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		ends[i] = c.(*net.UnixConn)
	}
	c := &client{UnixConn: ends[0], lines: jsonl.NewReader(ends[0]), ended: make(chan error, 1)}
	go func() { c.ended <- s.Attach(context.Background(), name, ends[1]) }()
	// Attached from when on it gets what Pi says.
	require.Eventually(t, func() bool {
		s.attachMu.Lock()
		defer s.attachMu.Unlock()
		for _, other := range s.attachments {
			if other == io.Closer(ends[1]) {
				return true
			}
		}
		return false
	}, 10*time.Second, 100*time.Microsecond)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func (c *client) send(t testing.TB, line string) {
	t.Helper()
	_, err := io.WriteString(c.UnixConn, line+"\n")
	require.NoError(t, err)
}

func (c *client) next(t testing.TB) string {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(30*time.Second)))
	line, err := c.lines.Next()
	require.NoError(t, err)
	return string(line)
}

// records reads the session's journal as it is now.
func records(t testing.TB, s *Supervisor) []journal.Record {
	t.Helper()
	r, err := s.journal.NewReader(0)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	var out []journal.Record
	for {
		line, ok, err := r.TryNext()
		if !ok || err != nil {
			if err != nil {
				require.ErrorIs(t, err, io.EOF)
			}
			return out
		}
		rec, err := journal.Decode(bytes.Clone(line))
		require.NoError(t, err)
		out = append(out, rec)
	}
}

// rpc are the RPC records of the journal.
func rpc(t testing.TB, s *Supervisor) []api.RPCRecord {
	t.Helper()
	var out []api.RPCRecord
	for _, r := range records(t, s) {
		if r.Type == api.RecordRPC {
			var rec api.RPCRecord
			require.NoError(t, json.Unmarshal(r.Data, &rec))
			out = append(out, rec)
		}
	}
	return out
}

// states are the state records of the journal.
func states(t testing.TB, s *Supervisor) []api.StateRecord {
	t.Helper()
	var out []api.StateRecord
	for _, r := range records(t, s) {
		if r.Type == api.RecordState {
			var rec api.StateRecord
			require.NoError(t, json.Unmarshal(r.Data, &rec))
			out = append(out, rec)
		}
	}
	return out
}

// recorded are the lines of a transcript of real Pi.
func recorded(t testing.TB, name string) [][]byte {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "testdata", "recorded", name))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	var out [][]byte
	r := jsonl.NewReader(f)
	for {
		line, err := r.Next()
		if err != nil {
			require.True(t, errors.Is(err, io.EOF), err)
			return out
		}
		out = append(out, bytes.Clone(line))
	}
}
