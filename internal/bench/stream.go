package main

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
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"patio/engine/api"
	"patio/engine/demo"
	"patio/engine/journal"
	"patio/engine/jsonl"
	"patio/engine/pi"
)

// benchStream measures how fast lines get from Pi's stdout to somebody who follows a session: the parts of the path
// alone, with a writer that is never slow, and then real Pi with a real answer.
func benchStream(ctx context.Context, s settings, show func(figure)) error {
	for _, c := range []struct {
		size, lines int
		name        string
	}{{300, 300_000, "300 B"}, {10 << 10, 40_000, "10 KiB"}} {
		direct, err := timePipe(c.size, c.lines)
		if err != nil {
			return err
		}
		path, err := timePath(ctx, c.size, c.lines)
		if err != nil {
			return err
		}
		show(figure{
			name:  fmt.Sprintf("stream, pipe to journal to API client, lines of %s", c.name),
			value: float64(c.lines) / path.Seconds(), unit: "lines/s",
			to: "a pipe that is only read", ref: float64(c.lines) / direct.Seconds(),
		})
	}
	return streamAnswer(ctx, s, show)
}

// line is a line as Pi writes them, of this size with its LF.
func line(size int) []byte {
	const head, end = `{"type":"message_update","delta":"`, "\"}\n"
	return []byte(head + strings.Repeat("x", max(size-len(head)-len(end), 0)) + end)
}

// writeLines writes one line a call, as Pi does, and closes the pipe.
func writeLines(w *os.File, size, n int) error {
	l := line(size)
	for range n {
		if _, err := w.Write(l); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	return w.Close()
}

// timePipe is the reference: the same lines through a pipe to a reader that does nothing with them.
func timePipe(size, n int) (time.Duration, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer func() { _ = r.Close() }()
	begin := time.Now()
	written := make(chan error, 1)
	go func() { written <- writeLines(w, size, n) }()
	lines := bufio.NewReaderSize(r, 64<<10)
	for range n {
		if _, err := lines.ReadSlice('\n'); err != nil {
			return 0, errors.Join(err, r.Close(), <-written)
		}
	}
	return time.Since(begin), <-written
}

// timePath sends the lines through the parts that a supervisor is made of: its reader takes them from a pipe, checks
// each and appends it to a journal; the API's server reads the journal and streams it over a Unix socket; a client
// reads it. Only the process around them is missing.
func timePath(ctx context.Context, size, n int) (_ time.Duration, err error) {
	dir, err := os.MkdirTemp("", "patio-bench-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	j, err := journal.Open(filepath.Join(dir, "journal"), "bench")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	socket := filepath.Join(dir, "sock")
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", socket)
	if err != nil {
		return 0, err
	}
	server := api.NewServer(api.Backend{Observer: observer{j}}, slog.New(slog.DiscardHandler))
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() {
		closeErr := server.Close()
		if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
			closeErr = errors.Join(closeErr, serveErr)
		}
		err = errors.Join(err, closeErr)
	}()
	client := api.NewClient(socket, "bench")
	defer client.Close()
	records, err := client.Journal(ctx, api.JournalOptions{Follow: true})
	if err != nil {
		return 0, err
	}
	defer func() { _ = records.Close() }()
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	written, stored := make(chan error, 1), make(chan error, 1)
	go func() { written <- writeLines(w, size, n) }()
	go func() { stored <- errors.Join(store(r, j), r.Close()) }()
	for range n {
		if _, err = records.Next(); err != nil {
			// Both ends of the pipe are closed when the writer has done.
			break
		}
	}
	took := time.Since(begin)
	return took, errors.Join(err, <-written, <-stored)
}

// store does with each line what a supervisor does.
func store(r io.Reader, j *journal.Journal) error {
	lines := jsonl.NewReader(r)
	for {
		l, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !json.Valid(l) || !utf8.Valid(l) {
			return fmt.Errorf("not a line of JSON: %q", l)
		}
		if _, err := j.AppendRaw(api.RecordRPC, []byte(`{"direction":"from_pi","line":`), l, []byte("}")); err != nil {
			// The writer must not block on a full pipe.
			_, _ = io.Copy(io.Discard, r)
			return err
		}
		if m := pi.ParseMessage(l); m.Type == "" {
			return fmt.Errorf("a line without a type: %q", l)
		}
	}
}

// observer is a session of which there is only a journal.
type observer struct{ j *journal.Journal }

func (o observer) Session() api.Session { return api.Session{} }

func (o observer) Journal(since uint64, _ bool) (api.LineReader, error) { return o.j.NewReader(since) }

func (o observer) Processes(context.Context) ([]api.Process, error) { return nil, nil }

// answerBytes is the size of the streamed answer, for which Pi writes some 400 lines.
const answerBytes = 20_000

// settled is Pi's last word on a prompt.
func settled(m pi.Message) bool { return m.Type == "agent_settled" }

// streamAnswer compares a whole answer from real Pi: in a session, read from the journal over the API, and on the
// host, read from Pi's stdout, with the same scripted model served over loopback.
func streamAnswer(ctx context.Context, s settings, show func(figure)) error {
	bare, err := installPi(ctx, s)
	if err != nil {
		return err
	}
	var speeds, direct []float64
	for range min(s.runs, 5) {
		v, err := patioAnswer(ctx, s)
		if err != nil {
			return fmt.Errorf("answer in a session: %w", err)
		}
		speeds = append(speeds, v)
		if v, err = bareAnswer(ctx, bare); err != nil {
			return fmt.Errorf("answer of bare Pi: %w", err)
		}
		direct = append(direct, v)
	}
	show(figure{
		name:  fmt.Sprintf("stream, a real answer of %d bytes from Pi, best of %d", answerBytes, len(speeds)),
		value: best(speeds), unit: "lines/s", to: "bare Pi", ref: best(direct),
	})
	return nil
}

func best(speeds []float64) float64 {
	top := 0.0
	for _, v := range speeds {
		top = max(top, v)
	}
	return top
}

func patioAnswer(ctx context.Context, s settings) (_ float64, err error) {
	p, err := newPatio(s)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	session, err := p.start(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.stop(ctx, session)) }()
	client := p.engine.Client(session.ID, "bench")
	defer client.Close()
	begin := time.Now()
	sent, err := client.Prompt(ctx, api.PromptRequest{Message: prompt()})
	if err != nil {
		return 0, err
	}
	records, err := client.Journal(ctx, api.JournalOptions{Since: sent.Seq, Types: []string{api.RecordRPC}, Follow: true})
	if err != nil {
		return 0, err
	}
	defer func() { _ = records.Close() }()
	for n := 0; ; {
		record, err := records.Next()
		if err != nil {
			return 0, err
		}
		r, err := journal.Decode(record)
		if err != nil {
			return 0, err
		}
		var rpc api.RPCRecord
		if err := json.Unmarshal(r.Data, &rpc); err != nil {
			return 0, err
		}
		if rpc.Direction != api.FromPi {
			continue
		}
		if n++; settled(pi.ParseMessage(rpc.Line)) {
			return float64(n) / time.Since(begin).Seconds(), nil
		}
	}
}

func prompt() string { return fmt.Sprintf("TEXT: %d", answerBytes) }

func bareAnswer(ctx context.Context, p barePi) (_ float64, err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	server := &http.Server{Handler: demo.Handler(demo.Options{}), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() {
		err = errors.Join(err, server.Close())
		<-served
	}()
	s, err := p.start(ctx, "http://"+listener.Addr().String()+"/v1")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.send(`{"type":"get_state","id":"1"}`); err != nil {
		return 0, err
	}
	if _, err := s.until(func(m pi.Message) bool { return m.Type == "response" }); err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := s.send(fmt.Sprintf(`{"type":"prompt","id":"2","message":%q}`, prompt())); err != nil {
		return 0, err
	}
	n, err := s.until(settled)
	if err != nil {
		return 0, err
	}
	return float64(n) / time.Since(begin).Seconds(), nil
}
