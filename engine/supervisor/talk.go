package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"patio/engine/api"
	"patio/engine/pi"
)

// observe follows what Pi says, before any client has it.
func (s *Supervisor) observe(m pi.Message) {
	if r, changed := s.tracker.observe(m, time.Now().UTC()); changed {
		s.state(r)
		if r.Question != nil {
			s.expire(r.Question.ID, m.Get("timeout").Float())
		}
	}
	switch {
	case m.Type == "response" && m.Success:
		s.commandDone(m)
	case m.Type == "entry_appended" && m.Get("entry.type").Str == "model_change":
		// An extension can change the model without a command of ours.
		s.refresh()
	}
}

// maxTimeout is the longest time that Node waits, in milliseconds; more than that is none.
const maxTimeout = 1<<31 - 1

// expire withdraws a question that Pi itself gives up after some milliseconds, without a
// word. 0 means that it waits for good.
func (s *Supervisor) expire(id string, milliseconds float64) {
	if milliseconds <= 0 {
		return
	}
	if milliseconds > maxTimeout {
		milliseconds = 1
	}
	s.background.Add(1)
	go func() {
		defer s.background.Done()
		timer := time.NewTimer(time.Duration(milliseconds * float64(time.Millisecond)))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-s.conn.gone:
			return
		}
		if r, ok := s.tracker.answered(id); ok {
			r.Reason = "the question timed out"
			s.state(r)
		}
	}()
}

// commandDone takes over what a successful command changed. A model's endpoint must be
// open before the client that changed it hears of it.
func (s *Supervisor) commandDone(m pi.Message) {
	switch m.Command {
	case "set_model", "cycle_model":
		data := m.Get("data")
		if model := data.Get("model"); model.IsObject() {
			data = model
		}
		var model pi.Model
		if !data.IsObject() || json.Unmarshal([]byte(data.Raw), &model) != nil || !model.Known() {
			return
		}
		if err := s.setModel(model, m.Get("data.thinkingLevel").Str); err != nil {
			s.log.Error("follow the model", "err", err)
			return
		}
		now := s.Session()
		s.state(api.StateRecord{Phase: now.Phase, Activity: now.Activity, Model: &now.Model})
	case "set_thinking_level", "cycle_thinking_level", "new_session", "switch_session", "fork", "clone", "set_session_name":
		s.refresh()
	}
}

// refreshTimeout bounds the question after a change; Pi answers it between two events.
const refreshTimeout = 30 * time.Second

// refresh asks Pi for its state. It doesn't wait: it is called while Pi's own lines are
// being read.
func (s *Supervisor) refresh() {
	s.background.Add(1)
	go func() {
		defer s.background.Done()
		ctx, cancel := context.WithTimeout(context.Background(), refreshTimeout)
		defer cancel()
		state, err := s.getState(ctx)
		if err != nil {
			if !errors.Is(err, errGone) {
				s.log.Warn("ask Pi for its state", "err", err)
			}
			return
		}
		s.tracker.update(func(t *api.Session) {
			t.SessionFile, t.Name = state.SessionFile, nameOr(state.SessionName, t.Name)
		})
		if state.Model.Known() {
			if err := s.setModel(state.Model, state.ThinkingLevel); err != nil {
				s.log.Error("follow the model", "err", err)
			}
		}
		now := s.Session()
		s.state(api.StateRecord{Phase: now.Phase, Activity: now.Activity, Model: &now.Model})
	}()
}

func nameOr(name, otherwise string) string {
	if name == "" {
		return otherwise
	}
	return name
}

// commandSent notes an answer to a question of Pi's.
func (s *Supervisor) commandSent(cmd pi.Command) {
	if cmd.Type != "extension_ui_response" {
		return
	}
	var id string
	if json.Unmarshal(cmd.ID, &id) != nil {
		return
	}
	if r, ok := s.tracker.answered(id); ok {
		s.state(r)
	}
}

// ready refuses commands to a session that doesn't take any.
func (s *Supervisor) ready() error {
	if p := s.Session().Phase; p != api.PhaseReady {
		return api.Errorf(api.CodeConflict, "", "the session is %s, not ready", p)
	}
	return nil
}

// Command implements api.Talker.
func (s *Supervisor) Command(ctx context.Context, client string, command json.RawMessage) (json.RawMessage, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	cmd, err := pi.ParseCommand(command)
	if err != nil {
		return nil, api.Errorf(api.CodeUsage, "", "%w", err)
	}
	client = s.clientName(client)
	if cmd.Type == "extension_ui_response" {
		// The only command that Pi doesn't answer.
		if own, err := s.answerOwn(cmd); own {
			return json.RawMessage(`{"type":"response","command":"extension_ui_response","success":true}`), err
		}
		if err := s.conn.write(client, cmd, cmd.Line); err != nil {
			return nil, err
		}
		return json.RawMessage(`{"type":"response","command":"extension_ui_response","success":true}`), nil
	}
	return s.conn.command(ctx, client, cmd)
}

// Prompt implements api.Talker.
func (s *Supervisor) Prompt(ctx context.Context, client string, p api.PromptRequest) (api.PromptResponse, error) {
	if err := s.ready(); err != nil {
		return api.PromptResponse{}, err
	}
	if strings.TrimSpace(p.Message) == "" && len(p.Images) == 0 {
		return api.PromptResponse{}, api.Errorf(api.CodeUsage, "", "the message is empty")
	}
	command := map[string]any{"type": "prompt", "message": p.Message}
	switch p.Behavior {
	case "":
	case "steer", "followUp":
		command["streamingBehavior"] = p.Behavior
	default:
		return api.PromptResponse{}, api.Errorf(api.CodeUsage, "", "unknown behavior %q: steer or followUp", p.Behavior)
	}
	if len(p.Images) > 0 {
		command["images"] = p.Images
	}
	line, err := json.Marshal(command)
	if err != nil {
		return api.PromptResponse{}, fmt.Errorf("encode prompt: %w", err)
	}
	cmd, err := pi.ParseCommand(line)
	if err != nil {
		return api.PromptResponse{}, err
	}
	seq, _ := s.journal.Last()
	reply, err := s.conn.command(ctx, s.clientName(client), cmd)
	if err != nil {
		return api.PromptResponse{}, err
	}
	if m := pi.ParseMessage(reply); !m.Success {
		text := m.Get("error").Str
		if strings.Contains(text, "already processing") {
			return api.PromptResponse{}, api.Errorf(api.CodeConflict, "send it with --steer to change its course, with --follow-up to be next, or `patio abort` it", "the session is working")
		}
		return api.PromptResponse{}, api.Errorf(api.CodeInternal, "", "Pi refused the prompt: %s", text)
	}
	return api.PromptResponse{Seq: seq}, nil
}

// Stop implements api.Controller.
func (s *Supervisor) Stop(ctx context.Context, r api.StopRequest) error {
	select {
	case s.stopRequest <- r:
	default: // one is on its way
	}
	select {
	case <-s.stopped:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
