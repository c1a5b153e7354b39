package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"patio/engine/api"
	"patio/engine/journal"
)

// stopTimeout bounds what a command does after it was interrupted. A session's own stop
// takes some six seconds at most when a tool hangs; a machine that swaps needs longer.
const stopTimeout = 45 * time.Second

// asking is one prompt to one session.
type asking struct {
	client *api.Client
	// name is the client's own, as it stands in the journal.
	name    string
	prompt  api.PromptRequest
	records *records
	viewer  viewer
}

// viewer shows the records of a turn.
type viewer interface {
	// record gets every record on the way, as its line and decoded.
	record(line []byte, r journal.Record) error
	// end is called when no more come.
	end()
}

// ask sends the prompt and follows the journal until the turn is over or a question
// stands. The journal is opened before the prompt is sent: a slash command is answered
// only when it is done, and may ask something first.
func (q asking) ask(ctx context.Context) (*turn, error) {
	t := &turn{client: q.name, message: q.prompt.Message}
	follow, cancel := context.WithCancelCause(ctx)
	sent := make(chan error, 1)
	go func() {
		_, err := q.client.Prompt(follow, q.prompt)
		if err != nil {
			cancel(err)
		}
		sent <- err
	}()
	err := q.records.follow(follow, func(line []byte) error {
		r, err := journal.Decode(line)
		if err != nil {
			return nil // of another version
		}
		t.observe(r)
		if err := q.viewer.record(line, r); err != nil {
			return err
		}
		if t.probe {
			t.probe = false
			if _, err := q.client.Command(follow, map[string]string{"type": "get_state"}); err != nil {
				return fmt.Errorf("ask Pi whether the command is done: %w", err)
			}
		}
		if t.over() || t.question != nil {
			return errDone
		}
		return nil
	})
	q.viewer.end()
	done := t.over() || t.question != nil
	cancel(errDone)
	promptErr := <-sent
	switch {
	case done:
		return t, nil
	case err == nil && promptErr == nil:
		return t, api.Errorf(api.CodeInternal, "`patio ls -a` reaps it", "the session's supervisor is gone before the answer was complete")
	case err == nil, errors.Is(err, context.Canceled) && ctx.Err() == nil:
		return t, promptErr
	}
	return t, err
}

// abort ends what Pi does now. It takes its own time: it is called when ctx is over.
func abort(ctx context.Context, c *api.Client) error {
	ctx, cancel := cleanup(ctx)
	defer cancel()
	if _, err := c.Command(ctx, map[string]string{"type": "abort"}); err != nil {
		return fmt.Errorf("abort the turn: %w", err)
	}
	return nil
}
