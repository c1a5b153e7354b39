package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"patio/sandbox/namespace"
)

// Event is what gVisor counts inside a sandbox, as `runsc events` prints it.
type Event struct {
	Type string `json:"type"`
	Data struct {
		CPU struct {
			Usage struct {
				Total uint64 `json:"total"` // nanoseconds
			} `json:"usage"`
		} `json:"cpu"`
		Memory struct {
			Usage struct {
				Usage uint64 `json:"usage"` // bytes
			} `json:"usage"`
		} `json:"memory"`
		Pids struct {
			Current uint64 `json:"current"`
		} `json:"pids"`
	} `json:"data"`
}

// Events calls f with gVisor's figures every interval seconds until the sandbox ends or
// ctx is done.
func (s *Sandbox) Events(ctx context.Context, interval int, f func(Event)) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = null.Close() }()
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	p, err := s.ns.Start(ctx, namespace.Command{Argv: s.runsc.Events(s.plan.ID, interval), Env: runscEnv, Files: []*os.File{null, w, null}})
	_ = w.Close()
	if err != nil {
		return fmt.Errorf("read sandbox events: %w", err)
	}
	end := func() { _ = p.Signal(syscall.SIGKILL) }
	stop := context.AfterFunc(ctx, end)
	defer stop()
	// `runsc events` goes on asking a sandbox that has ended.
	watched := make(chan struct{})
	defer close(watched)
	go func() {
		select {
		case <-s.process.Done():
			end()
		case <-watched:
		}
	}()
	d := json.NewDecoder(r)
	for {
		var e Event
		if err := d.Decode(&e); err != nil {
			end()
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("read sandbox events: %w", err)
		}
		f(e)
	}
}
