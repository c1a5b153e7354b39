package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"patio/engine/journal"
)

// LineReader reads journal records, as *journal.Reader does.
type LineReader interface {
	// Next returns the next record without its line end, valid until the next call. It
	// returns io.EOF after the last one of a session that has ended.
	Next(ctx context.Context) ([]byte, error)
	Close() error
}

// Observer is what can be looked at.
type Observer interface {
	Session() Session
	// Journal reads the records after seq since. With follow it waits for more.
	Journal(since uint64, follow bool) (LineReader, error)
	Processes(ctx context.Context) ([]Process, error)
}

// Talker is what can be said to Pi.
type Talker interface {
	Prompt(ctx context.Context, client string, p PromptRequest) (PromptResponse, error)
	// Command sends one RPC command and returns Pi's reply to it.
	Command(ctx context.Context, client string, command json.RawMessage) (json.RawMessage, error)
	// Attach gives a client Pi's RPC: what it writes to rw are commands, what it reads are
	// Pi's events and the replies to its own commands. It returns when either end closes,
	// and closes rw.
	Attach(ctx context.Context, client string, rw io.ReadWriteCloser) error
}

// Controller is what can be done to a session.
type Controller interface {
	// Stop ends the session and returns when nothing of it is left.
	Stop(ctx context.Context, r StopRequest) error
	// Exec runs a program inside; conn carries descriptors and ExecMessages.
	Exec(ctx context.Context, r ExecRequest, conn *net.UnixConn) error
}

// Backend is a session as the server serves it.
type Backend struct {
	Observer
	Talker
	Controller
	PolicyController
}

// route is one line of the API.
type route struct {
	method, path string
	handle       func(*server, http.ResponseWriter, *http.Request) error
}

// routes is the whole API. The version is in the path: a client of another version gets
// 404 for what isn't there, and says so.
var routes = []route{
	{http.MethodGet, "/v1/session", (*server).session},
	{http.MethodGet, "/v1/journal", (*server).journal},
	{http.MethodGet, "/v1/processes", (*server).processes},
	{http.MethodPost, "/v1/prompt", (*server).prompt},
	{http.MethodPost, "/v1/command", (*server).command},
	{http.MethodPost, "/v1/stop", (*server).stop},
	{http.MethodGet, "/v1/rpc", (*server).rpc},
	{http.MethodPost, "/v1/exec", (*server).exec},
	{http.MethodGet, "/v1/policy", (*server).policy},
	{http.MethodPost, "/v1/policy", (*server).changePolicy},
}

// maxBody bounds a request: a prompt with images. Pi itself takes any size.
const maxBody = 256 << 20

// clientHeader names a client in the journal; the server makes the name unique.
const clientHeader = "Patio-Client"

type server struct {
	b   Backend
	log *slog.Logger
}

// NewServer returns an HTTP server for a session. Serve it on a Unix socket.
func NewServer(b Backend, log *slog.Logger) *http.Server {
	s := &server{b: b, log: log}
	mux := http.NewServeMux()
	for _, r := range routes {
		mux.HandleFunc(r.method+" "+r.path, func(w http.ResponseWriter, req *http.Request) {
			if err := r.handle(s, w, req); err != nil {
				writeError(w, err)
			}
		})
	}
	return &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
}

func writeError(w http.ResponseWriter, err error) {
	e := AsError(err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status(e.Code))
	_ = json.NewEncoder(w).Encode(struct {
		Error *Error `json:"error"`
	}{e})
}

func status(c Code) int {
	switch c {
	case CodeUsage:
		return http.StatusBadRequest
	case CodeNotFound:
		return http.StatusNotFound
	case CodeRefused:
		return http.StatusForbidden
	case CodeConflict, CodeNeedsAnswer:
		return http.StatusConflict
	case CodeTimeout:
		return http.StatusGatewayTimeout
	default:
		return http.StatusInternalServerError
	}
}

func writeJSON(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(v)
}

func readJSON(r *http.Request, v any) error {
	b, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if err != nil {
		return Errorf(CodeUsage, "", "read request: %w", err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return Errorf(CodeUsage, "", "decode request: %w", err)
	}
	return nil
}

func (s *server) session(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, s.b.Session())
}

func (s *server) processes(w http.ResponseWriter, r *http.Request) error {
	ps, err := s.b.Processes(r.Context())
	if err != nil {
		return err
	}
	return writeJSON(w, ps)
}

// journal streams records as they are, one a line.
func (s *server) journal(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	var since uint64
	if v := q.Get("since"); v != "" {
		var err error
		if since, err = strconv.ParseUint(v, 10, 64); err != nil {
			return Errorf(CodeUsage, "", "since: %w", err)
		}
	}
	var types []string
	if v := q.Get("types"); v != "" {
		types = strings.Split(v, ",")
	}
	reader, err := s.b.Journal(since, q.Get("follow") == "1")
	if err != nil {
		return err
	}
	defer func() { _ = reader.Close() }()
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	out := recordWriter{bufio.NewWriterSize(w, 64<<10), http.NewResponseController(w)}
	out.flush()
	for {
		line, err := nextRecord(r.Context(), reader, out.flush)
		if err != nil {
			out.flush()
			// The status is sent: the end of the stream is all that can be told.
			if !errors.Is(err, io.EOF) && r.Context().Err() == nil {
				s.log.Warn("journal stream ended", "err", err)
			}
			return nil
		}
		if len(types) > 0 {
			if _, _, typ, ok := journal.Header(line); !ok || !slices.Contains(types, typ) {
				continue
			}
		}
		if _, err := out.buf.Write(line); err != nil {
			return nil
		}
		if err := out.buf.WriteByte('\n'); err != nil {
			return nil
		}
	}
}

// recordWriter sends records together while there are more, and at once when there are not.
type recordWriter struct {
	buf     *bufio.Writer
	control *http.ResponseController
}

// flush ignores errors: the next write has them again.
func (w recordWriter) flush() {
	_ = w.buf.Flush()
	_ = w.control.Flush()
}

// nextRecord returns the next record, and calls idle before it has to wait for one.
func nextRecord(ctx context.Context, r LineReader, idle func()) ([]byte, error) {
	if eager, ok := r.(interface{ TryNext() ([]byte, bool, error) }); ok {
		if line, ok, err := eager.TryNext(); ok || err != nil {
			return line, err
		}
	}
	idle()
	return r.Next(ctx)
}

func (s *server) prompt(w http.ResponseWriter, r *http.Request) error {
	var p PromptRequest
	if err := readJSON(r, &p); err != nil {
		return err
	}
	resp, err := s.b.Prompt(r.Context(), r.Header.Get(clientHeader), p)
	if err != nil {
		return err
	}
	return writeJSON(w, resp)
}

func (s *server) command(w http.ResponseWriter, r *http.Request) error {
	var c json.RawMessage
	if err := readJSON(r, &c); err != nil {
		return err
	}
	reply, err := s.b.Command(r.Context(), r.Header.Get(clientHeader), c)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(reply)
	return err
}

func (s *server) stop(w http.ResponseWriter, r *http.Request) error {
	var req StopRequest
	if err := readJSON(r, &req); err != nil {
		return err
	}
	if err := s.b.Stop(r.Context(), req); err != nil {
		return err
	}
	return writeJSON(w, s.b.Session())
}

// upgrade takes the connection over for a protocol of its own.
func upgrade(w http.ResponseWriter, protocol string) (net.Conn, io.Reader, error) {
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("take connection over: %w", err)
	}
	_, err = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", protocol)
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return conn, buf.Reader, nil
}

// rpc is Pi's own protocol, JSON lines both ways.
func (s *server) rpc(w http.ResponseWriter, r *http.Request) error {
	client := r.Header.Get(clientHeader)
	conn, buffered, err := upgrade(w, "pi-rpc")
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	// The request's context isn't cancelled any more once the connection is taken over.
	err = s.b.Attach(context.WithoutCancel(r.Context()), client, struct {
		io.Reader
		io.WriteCloser
	}{buffered, conn})
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		s.log.Debug("rpc client ended", "err", err)
	}
	return nil
}

func (s *server) exec(w http.ResponseWriter, r *http.Request) error {
	var req ExecRequest
	if err := readJSON(r, &req); err != nil {
		return err
	}
	conn, _, err := upgrade(w, "patio-exec")
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return nil
	}
	if err := s.b.Exec(context.WithoutCancel(r.Context()), req, unixConn); err != nil {
		_ = json.NewEncoder(conn).Encode(ExecMessage{Exited: true, ExitCode: 1, Error: AsError(err)})
	}
	return nil
}
