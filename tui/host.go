package tui

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/sessions"
	"patio/tui/pane"
)

// host does what the panes of one session ask for.
type host struct {
	ctx     context.Context // of the UI
	session string
	backend *Backend
}

// callTimeout bounds what a pane waits for. Pi answers a compaction when it is done, so
// commands have none.
const callTimeout = 30 * time.Second

// call runs f as a command. Without done its error is shown, and nothing else.
func call[T any](ctx context.Context, timeout time.Duration, f func(context.Context) (T, error), done func(T, error) tea.Msg) tea.Cmd {
	return func() tea.Msg {
		c, cancel := ctx, context.CancelFunc(func() {})
		if timeout > 0 {
			c, cancel = context.WithTimeout(ctx, timeout)
		}
		defer cancel()
		v, err := f(c)
		if ctx.Err() != nil {
			return nil // the UI is gone
		}
		if done != nil {
			return done(v, err)
		}
		if err != nil {
			return pane.ErrorMsg{Err: err}
		}
		return nil
	}
}

// Prompt implements pane.Host.
func (h *host) Prompt(r api.PromptRequest, done func(api.PromptResponse, error) tea.Msg) tea.Cmd {
	return call(h.ctx, 0, func(ctx context.Context) (api.PromptResponse, error) {
		c := h.backend.Client(h.session)
		defer c.Close()
		return c.Prompt(ctx, r)
	}, done)
}

// Command implements pane.Host.
func (h *host) Command(command any, done func(json.RawMessage, error) tea.Msg) tea.Cmd {
	return call(h.ctx, 0, func(ctx context.Context) (json.RawMessage, error) {
		c := h.backend.Client(h.session)
		defer c.Close()
		return c.Command(ctx, command)
	}, done)
}

// errEnough ends a walk over records.
var errEnough = errors.New("enough records")

// Records implements pane.Host.
func (h *host) Records(since uint64, limit int, types []string, done func([]journal.Record, error) tea.Msg) tea.Cmd {
	return call(h.ctx, 0, func(ctx context.Context) ([]journal.Record, error) {
		var records []journal.Record
		wanted := map[string]bool{}
		for _, t := range types {
			wanted[t] = true
		}
		err := h.backend.Journals.Records(ctx, h.session, since, false, func(r journal.Record) error {
			if len(types) > 0 && !wanted[r.Type] {
				return nil
			}
			records = append(records, r)
			if len(records) >= limit {
				return errEnough
			}
			return nil
		})
		if errors.Is(err, errEnough) {
			err = nil
		}
		return records, err
	}, done)
}

// History implements pane.Host.
func (h *host) History(before time.Time, done func([]sessions.Turn, error) tea.Msg) tea.Cmd {
	return call(h.ctx, 0, func(ctx context.Context) ([]sessions.Turn, error) {
		return h.backend.Journals.History(ctx, h.session, before)
	}, done)
}

// Processes implements pane.Host.
func (h *host) Processes(done func([]api.Process, error) tea.Msg) tea.Cmd {
	return call(h.ctx, callTimeout, func(ctx context.Context) ([]api.Process, error) {
		c := h.backend.Client(h.session)
		defer c.Close()
		return c.Processes(ctx)
	}, done)
}

// Kill implements pane.Host.
func (h *host) Kill(pid int, sig string, done func(error) tea.Msg) tea.Cmd {
	return call(h.ctx, callTimeout, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, h.backend.Sessions.Kill(ctx, h.session, pid, sig)
	}, func(_ struct{}, err error) tea.Msg {
		if done != nil {
			return done(err)
		}
		if err != nil {
			return pane.ErrorMsg{Err: err}
		}
		return nil
	})
}
