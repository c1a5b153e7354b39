package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/engine/jsonl"
	"patio/engine/pi"
)

// errGone means that Pi takes no more commands.
var errGone = api.Errorf(api.CodeConflict, "`patio inspect` says how the session ended", "Pi has ended")

// conn is the one connection to Pi, shared by many clients. Each line is in the journal
// before anybody else has it.
//
// The id of a command on the wire is CLIENT/NUMBER, so that replies find their way; the
// client's own id is kept here and put back.
type conn struct {
	journal *journal.Journal
	// observe sees each line from Pi after it is in the journal and before a reply is
	// handed out.
	observe func(pi.Message)
	// sent sees each command after it was written.
	sent func(pi.Command)
	// fail is called once when the journal or the pipe is broken.
	fail func(error)

	// observing is held from a line's record to the end of its observation. Who reads
	// records, or answers what stands in one, waits here: it must not be ahead of the session.
	observing sync.RWMutex

	writeMu sync.Mutex
	stdin   *os.File
	closed  bool

	mu      sync.Mutex
	next    uint64
	pending map[string]chan []byte
	gone    chan struct{} // Pi's stdout has ended
}

func newConn(stdin *os.File, j *journal.Journal) *conn {
	return &conn{journal: j, stdin: stdin, pending: map[string]chan []byte{}, gone: make(chan struct{})}
}

// write journals a line and gives it to Pi.
func (c *conn) write(client string, cmd pi.Command, line []byte) error {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if c.closed {
		return errGone
	}
	head, err := json.Marshal(api.RPCRecord{Direction: api.ToPi, Client: client})
	if err != nil {
		return err
	}
	if _, err := c.journal.AppendRaw(api.RecordRPC, head[:len(head)-1], []byte(`,"line":`), line, []byte("}")); err != nil {
		c.fail(err)
		return err
	}
	// One write for both: a line without its LF must never stand at Pi's end.
	if _, err := c.stdin.Write(append(line, '\n')); err != nil {
		if errors.Is(err, os.ErrClosed) || errors.Is(err, syscall.EPIPE) {
			return errGone
		}
		return fmt.Errorf("write to Pi: %w", err)
	}
	c.observed()
	if c.sent != nil {
		c.sent(cmd)
	}
	return nil
}

// closeStdin tells Pi that no more commands come. A write that Pi doesn't take is broken off.
func (c *conn) closeStdin() error {
	// Close first: it also ends a write that holds the lock.
	err := c.stdin.Close()
	c.writeMu.Lock()
	c.closed = true
	c.writeMu.Unlock()
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// wireID makes an id that is unique in this session and tells whose it is.
func (c *conn) wireID(client string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	return client + "/" + strconv.FormatUint(c.next, 10)
}

// command sends a command and waits for the reply to it, which has the caller's own id.
func (c *conn) command(ctx context.Context, client string, cmd pi.Command) ([]byte, error) {
	id := c.wireID(client)
	line, err := cmd.WithID(id)
	if err != nil {
		return nil, err
	}
	reply := make(chan []byte, 1)
	c.mu.Lock()
	c.pending[id] = reply
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.pending, id)
		c.mu.Unlock()
	}()
	if err := c.write(client, cmd, line); err != nil {
		return nil, err
	}
	select {
	case r := <-reply:
		return pi.Restore(r, cmd.ID)
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.gone:
		// The reply may have been the last thing that Pi said.
		select {
		case r := <-reply:
			return pi.Restore(r, cmd.ID)
		default:
			return nil, errGone
		}
	}
}

// read follows Pi's stdout to its end.
func (c *conn) read(stdout io.Reader) {
	defer close(c.gone)
	lines := jsonl.NewReader(stdout)
	for {
		line, err := lines.Next()
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return
		}
		if len(line) == 0 {
			continue
		}
		m, err := c.take(line)
		if err != nil {
			c.fail(err)
			// Pi must not block on a full pipe while it is being ended.
			_, _ = io.Copy(io.Discard, stdout)
			return
		}
		if m.Type == "response" && m.ID != "" {
			c.mu.Lock()
			ch := c.pending[m.ID]
			delete(c.pending, m.ID)
			c.mu.Unlock()
			if ch != nil {
				ch <- append([]byte(nil), line...)
			}
		}
	}
}

// take journals a line and lets the session follow it.
func (c *conn) take(line []byte) (pi.Message, error) {
	c.observing.Lock()
	defer c.observing.Unlock()
	if err := c.record(line); err != nil {
		return pi.Message{}, err
	}
	m := pi.ParseMessage(line)
	c.observe(m)
	return m, nil
}

// observed returns once the session knows what the journal holds.
func (c *conn) observed() {
	c.observing.RLock()
	defer c.observing.RUnlock()
}

func (c *conn) record(line []byte) error {
	if gjson.ValidBytes(line) && utf8.Valid(line) {
		_, err := c.journal.AppendRaw(api.RecordRPC, []byte(`{"direction":"from_pi","line":`), line, []byte("}"))
		return err
	}
	_, err := c.journal.Append(api.RecordRPC, api.RPCRecord{Direction: api.FromPi, Text: strings.ToValidUTF8(string(line), "\uFFFD")})
	return err
}
