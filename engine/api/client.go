package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"patio/engine/jsonl"
)

// Client talks to one session's supervisor. It is safe for use by several goroutines.
type Client struct {
	socket string
	name   string
	http   *http.Client
}

// NewClient returns a client of the supervisor at socket. Name tells in the journal who
// sent what: cli, tui, run. Nothing is dialed yet.
func NewClient(socket, name string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	return &Client{socket: socket, name: name, http: &http.Client{Transport: &http.Transport{DialContext: dial, DisableCompression: true, ReadBufferSize: 64 << 10}}}
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func (c *Client) do(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://patio"+path, r)
	if err != nil {
		return nil, err
	}
	req.Header.Set(clientHeader, c.name)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, explain(err)
	}
	if resp.StatusCode >= 400 {
		defer func() { _ = resp.Body.Close() }()
		return nil, decodeError(resp)
	}
	return resp, nil
}

// explain turns "nobody listens" into the session's state.
func explain(err error) error {
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, os.ErrNotExist) {
		return Errorf(CodeConflict, "`patio ls -a` shows its state", "the session isn't running: %w", err)
	}
	return err
}

func decodeError(resp *http.Response) error {
	var e struct {
		Error *Error `json:"error"`
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err == nil {
		err = json.Unmarshal(b, &e)
	}
	if err != nil || e.Error == nil {
		return Errorf(CodeInternal, "is the session's supervisor of another version of patio?", "the supervisor answered %s to %s", resp.Status, resp.Request.URL.Path)
	}
	return e.Error
}

func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	resp, err := c.do(ctx, method, path, in)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("decode answer to %s: %w", path, err)
	}
	return nil
}

// Session returns a snapshot.
func (c *Client) Session(ctx context.Context) (Session, error) {
	var s Session
	return s, c.call(ctx, http.MethodGet, "/v1/session", nil, &s)
}

// Processes lists the processes inside the sandbox.
func (c *Client) Processes(ctx context.Context) ([]Process, error) {
	var ps []Process
	return ps, c.call(ctx, http.MethodGet, "/v1/processes", nil, &ps)
}

// Prompt sends a message and returns once Pi has taken it.
func (c *Client) Prompt(ctx context.Context, p PromptRequest) (PromptResponse, error) {
	var r PromptResponse
	return r, c.call(ctx, http.MethodPost, "/v1/prompt", p, &r)
}

// Command sends one RPC command and returns Pi's reply, success or not.
func (c *Client) Command(ctx context.Context, command any) (json.RawMessage, error) {
	var r json.RawMessage
	return r, c.call(ctx, http.MethodPost, "/v1/command", command, &r)
}

// Stop ends the session and returns its last snapshot when nothing of it is left.
func (c *Client) Stop(ctx context.Context, r StopRequest) (Session, error) {
	var s Session
	return s, c.call(ctx, http.MethodPost, "/v1/stop", r, &s)
}

// JournalOptions choose journal records.
type JournalOptions struct {
	Since  uint64   // records after this one
	Types  []string // none means all
	Follow bool     // wait for more until the session ends
}

// Records is a stream of journal records.
type Records struct {
	body  io.ReadCloser
	lines *jsonl.Reader
}

// Journal streams journal records. The caller closes the stream.
func (c *Client) Journal(ctx context.Context, o JournalOptions) (*Records, error) {
	q := url.Values{"since": {strconv.FormatUint(o.Since, 10)}}
	if o.Follow {
		q.Set("follow", "1")
	}
	if len(o.Types) > 0 {
		q.Set("types", strings.Join(o.Types, ","))
	}
	resp, err := c.do(ctx, http.MethodGet, "/v1/journal?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	return &Records{body: resp.Body, lines: jsonl.NewReader(resp.Body)}, nil
}

// Next returns the next record without its line end, valid until the next call, and
// io.EOF at the end of the stream. A stream that breaks off gives another error.
func (r *Records) Next() ([]byte, error) {
	line, err := r.lines.Next()
	if err != nil {
		return nil, err
	}
	return line, nil
}

// Close ends the stream.
func (r *Records) Close() error { return r.body.Close() }

// hijack sends a request and returns the connection once the server has upgraded it,
// with a reader that holds what came with the answer.
func (c *Client) hijack(ctx context.Context, method, path, protocol string, body any) (*net.UnixConn, *bufio.Reader, error) {
	var b []byte
	if body != nil {
		var err error
		if b, err = json.Marshal(body); err != nil {
			return nil, nil, err
		}
	}
	dialed, err := new(net.Dialer).DialContext(ctx, "unix", c.socket)
	if err != nil {
		return nil, nil, explain(err)
	}
	conn, ok := dialed.(*net.UnixConn)
	if !ok {
		return nil, nil, errors.Join(errors.New("dial supervisor: not a unix socket"), dialed.Close())
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://patio"+path, bytes.NewReader(b))
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	req.Header.Set(clientHeader, c.name)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", protocol)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if err := req.Write(conn); err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, req)
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		defer func() { _ = conn.Close() }()
		return nil, nil, decodeError(resp)
	}
	return conn, r, nil
}

// RPCConn is Pi's RPC as one client sees it.
type RPCConn struct {
	conn *net.UnixConn
	r    *bufio.Reader
}

// RPC opens Pi's RPC: JSON lines both ways.
func (c *Client) RPC(ctx context.Context) (*RPCConn, error) {
	conn, r, err := c.hijack(ctx, http.MethodGet, "/v1/rpc", "pi-rpc", nil)
	if err != nil {
		return nil, err
	}
	return &RPCConn{conn: conn, r: r}, nil
}

func (c *RPCConn) Read(b []byte) (int, error)  { return c.r.Read(b) }
func (c *RPCConn) Write(b []byte) (int, error) { return c.conn.Write(b) }

// CloseWrite tells the supervisor that no more commands come; replies still do.
func (c *RPCConn) CloseWrite() error { return c.conn.CloseWrite() }

// Close ends the connection.
func (c *RPCConn) Close() error { return c.conn.Close() }

// Exec is a program that runs in the sandbox for this client.
type Exec struct {
	conn *net.UnixConn
	r    *bufio.Reader
}

// Exec starts a program in the sandbox with these files as its 0, 1 and 2.
func (c *Client) Exec(ctx context.Context, r ExecRequest, stdin, stdout, stderr *os.File) (*Exec, error) {
	conn, reader, err := c.hijack(ctx, http.MethodPost, "/v1/exec", "patio-exec", r)
	if err != nil {
		return nil, err
	}
	e := &Exec{conn: conn, r: reader}
	rights := unix.UnixRights(int(stdin.Fd()), int(stdout.Fd()), int(stderr.Fd()))
	if _, _, err := conn.WriteMsgUnix([]byte{'\n'}, rights, nil); err != nil {
		// A supervisor that refuses doesn't wait for them; it has said why.
		if _, why := e.Wait(ctx); why != nil {
			if refused, ok := errors.AsType[*Error](why); ok {
				return nil, refused
			}
		}
		return nil, errors.Join(fmt.Errorf("hand descriptors over: %w", err), conn.Close())
	}
	return e, nil
}

// Signal sends a signal to the program.
func (e *Exec) Signal(sig syscall.Signal) error {
	return json.NewEncoder(e.conn).Encode(ExecMessage{Signal: int(sig)})
}

// Wait returns the program's exit code, 128+N for one that a signal ended. A cancelled
// context ends the connection, and the supervisor then kills the program.
func (e *Exec) Wait(ctx context.Context) (int, error) {
	stop := context.AfterFunc(ctx, func() { _ = e.conn.Close() })
	defer stop()
	defer func() { _ = e.conn.Close() }()
	for {
		line, err := e.r.ReadBytes('\n')
		if err != nil {
			if ctx.Err() != nil {
				return 0, ctx.Err()
			}
			return 0, fmt.Errorf("the supervisor closed the connection: %w", err)
		}
		var m ExecMessage
		if err := json.Unmarshal(line, &m); err != nil {
			return 0, fmt.Errorf("decode exec message: %w", err)
		}
		if m.Error != nil {
			return m.ExitCode, m.Error
		}
		if m.Exited {
			return m.ExitCode, nil
		}
	}
}
