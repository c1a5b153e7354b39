package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"patio/engine/api"
	"patio/engine/jsonl"
)

func rpcCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "rpc ID",
		Short: "Pi's RPC of a running session on stdin and stdout",
		Long: `rpc passes JSON lines both ways: stdin's lines go to Pi as commands, Pi's events and the
replies to these commands come back on stdout. At the end of stdin it waits for the
replies that are still due.`,
		Example:           `  echo '{"type":"get_state","id":"1"}' | patio rpc ID`,
		Args:              arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeSessions(false, live),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, s, err := a.running(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			client := e.Client(s.ID, clientCLI)
			defer client.Close()
			conn, err := client.RPC(cmd.Context())
			if err != nil {
				return err
			}
			return a.rpc(cmd.Context(), conn)
		},
	}
}

// rpcConn is Pi's RPC as *api.RPCConn has it.
type rpcConn interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// rpc passes lines both ways until stdin and the replies to it, or the session, end.
func (a *app) rpc(ctx context.Context, conn rpcConn) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	// Each line sent counts up, each reply down; -1 on due is the end of stdin.
	due := make(chan int)
	ended := make(chan struct{})
	sending := make(chan error, 1)
	go func() { sending <- a.sendLines(conn, due, ended) }()

	replies := make(chan received, 1)
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		a.receiveLines(conn, replies, ended)
	}()
	allSent, err := settle(due, replies)
	if allSent {
		err = errors.Join(err, <-sending)
	}
	// Otherwise stdin is still being read, which can't be broken off; it ends with the
	// process.
	close(ended)
	err = errors.Join(err, closeQuietly(conn))
	<-reading
	return causeOf(ctx, contextError(ctx, err))
}

// received is what came from Pi: a reply, or the end.
type received struct {
	end bool
	err error
}

// settle waits until stdin has ended and no reply is due, or Pi's end has come. It
// reports whether stdin has ended.
func settle(due <-chan int, replies <-chan received) (allSent bool, err error) {
	outstanding := 0
	for !allSent || outstanding > 0 {
		select {
		case n := <-due:
			if n < 0 {
				allSent, due = true, nil
				continue
			}
			outstanding++
		case r := <-replies:
			switch {
			case !r.end:
				outstanding--
			case r.err != nil:
				return allSent, r.err
			case outstanding > 0:
				return allSent, api.Errorf(api.CodeConflict, "`patio inspect ID` says how it ended", "the session ended with %d replies due", outstanding)
			default:
				return allSent, nil
			}
		}
	}
	return allSent, nil
}

func (a *app) sendLines(conn rpcConn, due chan<- int, ended <-chan struct{}) error {
	tell := func(n int) bool {
		select {
		case due <- n:
			return true
		case <-ended:
			return false
		}
	}
	defer tell(-1)
	lines := jsonl.NewReader(a.stdin)
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return conn.CloseWrite()
		}
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("read stdin: %w", err)
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		// Counted first: the reply may be faster than this goroutine. An answer to a
		// question is the one command that has no reply.
		if gjson.GetBytes(line, "type").Str != "extension_ui_response" && !tell(1) {
			return nil
		}
		if _, err := conn.Write(append(line[:len(line):len(line)], '\n')); err != nil {
			return fmt.Errorf("send to the session: %w", err)
		}
	}
}

func (a *app) receiveLines(conn rpcConn, out chan<- received, ended <-chan struct{}) {
	tell := func(r received) {
		select {
		case out <- r:
		case <-ended:
		}
	}
	lines := jsonl.NewReader(conn)
	w := a.data()
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			tell(received{end: true})
			return
		}
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			tell(received{end: true, err: fmt.Errorf("read from the session: %w", err)})
			return
		}
		if _, err := w.Write(append(line[:len(line):len(line)], '\n')); err != nil {
			tell(received{end: true, err: err})
			return
		}
		if gjson.GetBytes(line, "type").Str == "response" {
			tell(received{})
		}
	}
}

// contextError drops what the closed connection of a cancelled command says.
func contextError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func closeQuietly(c io.Closer) error {
	if err := c.Close(); err != nil && !isClosed(err) {
		return err
	}
	return nil
}
