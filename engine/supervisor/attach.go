package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/engine/jsonl"
	"patio/engine/pi"
)

// attachment is a client on Pi's RPC. It reads Pi's lines out of the journal at its own
// pace: a client that doesn't read costs nothing.
type attachment struct {
	s      *Supervisor
	client string

	mu  sync.Mutex
	ids map[string]json.RawMessage // wire id → the client's own
}

// Attach implements api.Talker.
func (s *Supervisor) Attach(ctx context.Context, client string, rw io.ReadWriteCloser) error {
	a := &attachment{s: s, client: s.clientName(client), ids: map[string]json.RawMessage{}}
	reader, leave, err := s.join(a, rw)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var out sync.Mutex
	written, read := make(chan error, 1), make(chan error, 1)
	go func() { written <- a.deliver(ctx, reader, rw, &out) }()
	go func() { read <- a.commands(rw, &out) }()
	select {
	case err = <-read:
		if err == nil {
			// No more commands; the client still reads until it closes or Pi ends.
			return errors.Join(<-written, closeOnce(rw))
		}
		cancel()
		return errors.Join(err, closeOnce(rw), <-written)
	case err = <-written:
		err = errors.Join(err, closeOnce(rw))
		<-read
		return err
	}
}

// join adds an attachment, which reads from the journal's end on. The session's end
// waits for it until leave is called.
func (s *Supervisor) join(a *attachment, c io.Closer) (reader *journal.Reader, leave func(), err error) {
	s.attachMu.Lock()
	defer s.attachMu.Unlock()
	if s.dismissed {
		return nil, nil, errGone
	}
	since, _ := s.journal.Last()
	if reader, err = s.journal.NewReader(since); err != nil {
		return nil, nil, err
	}
	s.attached.Add(1)
	s.attachments[a] = c
	return reader, func() {
		_ = reader.Close()
		s.attachMu.Lock()
		delete(s.attachments, a)
		s.attachMu.Unlock()
		s.attached.Done()
	}, nil
}

// dismiss waits until every client has read the journal to its end, or ctx ends. The
// journal is closed.
func (s *Supervisor) dismiss(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() {
		s.attachMu.Lock()
		defer s.attachMu.Unlock()
		for _, c := range s.attachments {
			_ = c.Close()
		}
	})
	defer stop()
	s.attachMu.Lock()
	s.dismissed = true
	s.attachMu.Unlock()
	s.attached.Wait()
}

// closeOnce closes a connection that its other side may have closed already.
func closeOnce(c io.Closer) error {
	if err := c.Close(); err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// commands gives the client's lines to Pi, to their end.
func (a *attachment) commands(rw io.ReadWriter, out *sync.Mutex) error {
	lines := jsonl.NewReader(rw)
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := a.send(line); err != nil {
			if errors.Is(err, errGone) {
				return nil
			}
			// As Pi itself answers a line that it can't parse: a response without an id.
			if err := refuse(rw, out, err); err != nil {
				return err
			}
		}
	}
}

func (a *attachment) send(line []byte) error {
	cmd, err := pi.ParseCommand(bytes.Clone(line))
	if err != nil {
		return err
	}
	if cmd.Type == "extension_ui_response" {
		// Its id is the question's and comes from Pi, or from patio itself.
		if own, err := a.s.answerOwn(cmd); own {
			return err
		}
		return a.s.conn.write(a.client, cmd, cmd.Line)
	}
	id := a.s.conn.wireID(a.client)
	wire, err := cmd.WithID(id)
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.ids[id] = cmd.ID
	a.mu.Unlock()
	return a.s.conn.write(a.client, cmd, wire)
}

func refuse(w io.Writer, mu *sync.Mutex, cause error) error {
	b, err := json.Marshal(map[string]any{"type": "response", "command": "parse", "success": false, "error": cause.Error()})
	if err != nil {
		return err
	}
	mu.Lock()
	defer mu.Unlock()
	_, err = w.Write(append(b, '\n'))
	return err
}

// deliver writes Pi's lines to the client, but for replies to others.
func (a *attachment) deliver(ctx context.Context, reader *journal.Reader, w io.Writer, mu *sync.Mutex) error {
	for {
		record, err := reader.Next(ctx)
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if _, _, typ, ok := journal.Header(record); !ok || typ != api.RecordRPC {
			continue
		}
		line, ok := fromPi(record)
		if !ok {
			continue
		}
		a.s.conn.observed()
		if line, ok = a.own(line); !ok {
			continue
		}
		mu.Lock()
		_, err = w.Write(append(line, '\n'))
		mu.Unlock()
		if err != nil {
			return fmt.Errorf("write to client: %w", err)
		}
	}
}

// fromPi returns the bytes of Pi's line in a record.
func fromPi(record []byte) ([]byte, bool) {
	data := gjson.GetBytes(record, "data")
	if data.Get("direction").Str != string(api.FromPi) {
		return nil, false
	}
	if line := data.Get("line"); line.Exists() {
		return []byte(line.Raw), true
	}
	return []byte(data.Get("text").Str), true
}

// own returns the line as this client sees it: its own replies with its own ids, no
// replies to others, and everything else as it is.
func (a *attachment) own(line []byte) ([]byte, bool) {
	m := pi.ParseMessage(line)
	if m.Type != "response" && m.Type != "bash_execution_update" || !strings.Contains(m.ID, "/") {
		return line, true
	}
	a.mu.Lock()
	id, mine := a.ids[m.ID]
	if mine && m.Type == "response" {
		delete(a.ids, m.ID)
	}
	a.mu.Unlock()
	if !mine {
		return nil, false
	}
	restored, err := pi.Restore(line, id)
	if err != nil {
		return line, true
	}
	return restored, true
}
