package demo

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// The shapes of chat.completion and chat.completion.chunk.
type (
	completion struct {
		ID      string   `json:"id"`
		Object  string   `json:"object"`
		Created int64    `json:"created"`
		Model   string   `json:"model"`
		Choices []choice `json:"choices"`
		Usage   *usage   `json:"usage,omitempty"`
	}
	choice struct {
		Index        int     `json:"index"`
		Delta        *delta  `json:"delta,omitempty"`
		Message      *delta  `json:"message,omitempty"`
		FinishReason *string `json:"finish_reason"`
	}
	delta struct {
		Role      string      `json:"role,omitempty"`
		Content   *string     `json:"content,omitempty"`
		Reasoning string      `json:"reasoning_content,omitempty"`
		ToolCalls []callDelta `json:"tool_calls,omitempty"`
	}
	callDelta struct {
		Index    int           `json:"index"`
		ID       string        `json:"id,omitempty"`
		Type     string        `json:"type,omitempty"`
		Function functionDelta `json:"function"`
	}
	functionDelta struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	}
	usage struct {
		PromptTokens     int64        `json:"prompt_tokens"`
		CompletionTokens int64        `json:"completion_tokens"`
		TotalTokens      int64        `json:"total_tokens"`
		Details          usageDetails `json:"completion_tokens_details"`
	}
	usageDetails struct {
		ReasoningTokens int64 `json:"reasoning_tokens"`
	}
)

// newID is unique across processes and restarts, for clients keep ids in their session files.
func newID(prefix string) string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return prefix + hex.EncodeToString(b[:])
}

func (r reply) usage(q request) *usage {
	var spoken, thought int64
	for _, p := range r.pieces {
		if p.reasoning {
			thought += p.size()
		} else {
			spoken += p.size()
		}
	}
	spoken += int64(len(r.tool) + len(r.args))
	u := &usage{
		PromptTokens:     q.promptTokens(),
		CompletionTokens: tokens(spoken) + tokens(thought),
		Details:          usageDetails{ReasoningTokens: tokens(thought)},
	}
	u.TotalTokens = u.PromptTokens + u.CompletionTokens
	return u
}

func (r reply) finishReason() string {
	if r.tool != "" {
		return "tool_calls"
	}
	return "stop"
}

func newCompletion(object string, q request, choices ...choice) completion {
	return completion{ID: newID("chatcmpl-"), Object: object, Created: time.Now().Unix(), Model: q.Model, Choices: choices}
}

// maxWhole bounds the filler of an answer that isn't streamed, for it is built in memory.
const maxWhole = 64 << 20

// sendWhole answers in one piece. SLOW has nothing to wait between here.
func (r reply) sendWhole(w http.ResponseWriter, q request) error {
	var text, thought strings.Builder
	for _, p := range r.pieces {
		b := &text
		if p.reasoning {
			b = &thought
		}
		for s := range p.deltas() {
			b.WriteString(s)
		}
	}
	content := text.String()
	m := delta{Role: "assistant", Content: &content, Reasoning: thought.String()}
	if r.tool != "" {
		m.ToolCalls = []callDelta{{ID: newID("call_"), Type: "function", Function: functionDelta{r.tool, r.args}}}
	}
	finish := r.finishReason()
	c := newCompletion("chat.completion", q, choice{Message: &m, FinishReason: &finish})
	c.Usage = r.usage(q)
	return sendJSON(w, http.StatusOK, c)
}

// stream answers as server-sent events.
func (r reply) stream(ctx context.Context, w http.ResponseWriter, q request) error {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	s := &sender{ctx: ctx, w: w, flush: http.NewResponseController(w), chunk: newCompletion("chat.completion.chunk", q)}

	empty := ""
	if err := s.delta(delta{Role: "assistant", Content: &empty}, nil); err != nil {
		return err
	}
	s.pause = r.pause
	for _, p := range r.pieces {
		for text := range p.deltas() {
			d := delta{Content: &text}
			if p.reasoning {
				d = delta{Reasoning: text}
			}
			if err := s.delta(d, nil); err != nil {
				return err
			}
		}
	}
	if err := s.call(r.tool, r.args); err != nil {
		return err
	}
	finish := r.finishReason()
	s.pause = 0
	if err := s.delta(delta{}, &finish); err != nil {
		return err
	}
	if q.StreamOptions.IncludeUsage {
		s.chunk.Choices, s.chunk.Usage = []choice{}, r.usage(q)
		if err := s.send(); err != nil {
			return err
		}
	}
	_, err := w.Write([]byte("data: [DONE]\n\n"))
	return err
}

// sender writes the chunks of one stream.
type sender struct {
	ctx   context.Context
	w     http.ResponseWriter
	flush *http.ResponseController
	chunk completion
	pause time.Duration
	buf   bytes.Buffer
}

// call streams a tool call as providers do: first the name, then the arguments bit by bit.
func (s *sender) call(tool, args string) error {
	if tool == "" {
		return nil
	}
	first := callDelta{ID: newID("call_"), Type: "function", Function: functionDelta{Name: tool}}
	if err := s.delta(delta{ToolCalls: []callDelta{first}}, nil); err != nil {
		return err
	}
	for text := range said(args).deltas() {
		if err := s.delta(delta{ToolCalls: []callDelta{{Function: functionDelta{Arguments: text}}}}, nil); err != nil {
			return err
		}
	}
	return nil
}

func (s *sender) delta(d delta, finish *string) error {
	if s.pause > 0 {
		t := time.NewTimer(s.pause)
		defer t.Stop()
		select {
		case <-t.C:
		case <-s.ctx.Done():
		}
	}
	if err := s.ctx.Err(); err != nil {
		return err
	}
	s.chunk.Choices = []choice{{Delta: &d, FinishReason: finish}}
	return s.send()
}

func (s *sender) send() error {
	s.buf.Reset()
	s.buf.WriteString("data: ")
	enc := json.NewEncoder(&s.buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s.chunk); err != nil {
		return fmt.Errorf("encode chunk: %w", err)
	}
	s.buf.WriteByte('\n')
	if _, err := s.w.Write(s.buf.Bytes()); err != nil {
		return err
	}
	return s.flush.Flush()
}
