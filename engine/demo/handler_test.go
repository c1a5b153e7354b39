package demo

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// chat builds requests as Pi sends them.
type chat struct {
	model    string
	messages []map[string]any
	tools    []string
	stream   bool
	usage    bool
}

func ask(model, prompt string) *chat {
	c := &chat{model: model, tools: []string{toolRead, toolBash, toolEdit, toolWrite}, stream: true, usage: true}
	c.add("system", "You are an expert coding assistant.")
	c.messages = append(c.messages, map[string]any{"role": "user", "content": []any{map[string]any{"type": "text", "text": prompt}}})
	return c
}

func (c *chat) add(role, text string) *chat {
	c.messages = append(c.messages, map[string]any{"role": role, "content": text})
	return c
}

// called adds a tool call and its result.
func (c *chat) called(id, tool, args, result string) *chat {
	c.messages = append(c.messages, map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{
		map[string]any{"id": id, "type": "function", "function": map[string]any{"name": tool, "arguments": args}},
	}}, map[string]any{"role": "tool", "content": result, "tool_call_id": id})
	return c
}

func (c *chat) body(t *testing.T) []byte {
	t.Helper()
	var tools []any
	for _, name := range c.tools {
		tools = append(tools, map[string]any{"type": "function", "function": map[string]any{"name": name, "parameters": map[string]any{}}})
	}
	b, err := json.Marshal(map[string]any{
		"model": c.model, "messages": c.messages, "tools": tools, "stream": c.stream,
		"stream_options": map[string]any{"include_usage": c.usage}, "store": false, "max_completion_tokens": 4096,
	})
	require.NoError(t, err)
	return b
}

func (c *chat) post(t *testing.T) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	Handler(Options{}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", bytes.NewReader(c.body(t))))
	return w
}

// answered is an answer put together from its chunks.
type answered struct {
	id, text, thought  string
	tool, args, callID string
	finish             string
	usage              *usage
	deltas, argDeltas  int
}

// get asks, and checks the form of the stream on the way.
func (c *chat) get(t *testing.T) answered {
	t.Helper()
	w := c.post(t)
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	require.Equal(t, "text/event-stream", w.Header().Get("Content-Type"))
	require.True(t, w.Flushed)
	var a answered
	done := false
	events := bufio.NewScanner(w.Body)
	events.Buffer(nil, 1<<20)
	events.Split(func(data []byte, _ bool) (int, []byte, error) {
		if i := bytes.Index(data, []byte("\n\n")); i >= 0 {
			return i + 2, data[:i], nil
		}
		return 0, nil, nil
	})
	for events.Scan() {
		require.False(t, done, "nothing may follow [DONE]")
		data, ok := strings.CutPrefix(events.Text(), "data: ")
		require.True(t, ok, events.Text())
		if data == "[DONE]" {
			done = true
			continue
		}
		var chunk completion
		require.NoError(t, json.Unmarshal([]byte(data), &chunk))
		require.Equal(t, "chat.completion.chunk", chunk.Object)
		require.Equal(t, c.model, chunk.Model)
		if a.id == "" {
			a.id = chunk.ID
			require.Equal(t, "assistant", chunk.Choices[0].Delta.Role)
		}
		require.Equal(t, a.id, chunk.ID)
		if chunk.Usage != nil {
			require.Empty(t, chunk.Choices)
			require.NotEmpty(t, a.finish, "usage comes after the finish reason")
			a.usage = chunk.Usage
			continue
		}
		require.Empty(t, a.finish, "nothing but usage may follow the finish reason")
		d := chunk.Choices[0].Delta
		if d.Content != nil {
			a.text += *d.Content
		}
		a.thought += d.Reasoning
		a.deltas++
		for _, call := range d.ToolCalls {
			if call.ID != "" {
				require.Empty(t, a.callID)
				require.Equal(t, "function", call.Type)
				a.callID, a.tool = call.ID, call.Function.Name
			} else {
				a.argDeltas++
			}
			a.args += call.Function.Arguments
		}
		if f := chunk.Choices[0].FinishReason; f != nil {
			a.finish = *f
		}
	}
	require.NoError(t, events.Err())
	require.True(t, done)
	want := "stop"
	if a.tool != "" {
		want = "tool_calls"
		require.True(t, json.Valid([]byte(a.args)), a.args)
	}
	require.Equal(t, want, a.finish)
	return a
}

type errorBody struct {
	Error struct {
		Message, Type string
		Param, Code   *string
	}
}

func TestErrors(t *testing.T) {
	const path = "/v1/chat/completions"
	valid := string(ask(modelEcho, "hi").body(t))
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		message, kind      string
	}{
		"not JSON":            {"POST", path, "{", 400, "not a chat completion", "invalid_request_error"},
		"a list":              {"POST", path, "[]", 400, "not a chat completion", "invalid_request_error"},
		"no model":            {"POST", path, `{"messages":[{"role":"user","content":"x"}]}`, 400, "model is missing", "invalid_request_error"},
		"no messages":         {"POST", path, `{"model":"echo"}`, 400, "messages is missing", "invalid_request_error"},
		"no prompt":           {"POST", path, `{"model":"echo","messages":[{"role":"system","content":"x"}]}`, 400, "no user message", "invalid_request_error"},
		"bad role":            {"POST", path, `{"model":"echo","messages":[{"role":"cat","content":"x"}]}`, 400, `role "cat"`, "invalid_request_error"},
		"tool without id":     {"POST", path, `{"model":"echo","messages":[{"role":"tool","content":"x"}]}`, 400, "tool_call_id", "invalid_request_error"},
		"bad content":         {"POST", path, `{"model":"echo","messages":[{"role":"user","content":7}]}`, 400, "not a chat completion", "invalid_request_error"},
		"content of a number": {"POST", path, `{"model":"echo","messages":[{"role":"user","content":[7]}]}`, 400, "not a chat completion", "invalid_request_error"},
		"audio":               {"POST", path, `{"model":"echo","messages":[{"role":"user","content":[{"type":"input_audio"}]}]}`, 400, "input_audio", "invalid_request_error"},
		"unknown model":       {"POST", path, strings.Replace(valid, `"echo"`, `"gpt-9"`, 1), 404, `"gpt-9" does not exist`, "invalid_request_error"},
		"too large":           {"POST", path, valid + strings.Repeat(" ", 4096), 413, "larger than 4096 bytes", "invalid_request_error"},
		"wrong method":        {"GET", path, "", 405, "wants POST", "invalid_request_error"},
		"wrong path":          {"POST", "/v1/responses", valid, 404, "has no /v1/responses", "invalid_request_error"},
		"no such model":       {"GET", "/v1/models/none", "", 404, `"none" does not exist`, "invalid_request_error"},
		"scripted 503":        {"POST", path, strings.Replace(valid, "hi", "FAIL: 503", 1), 503, "scripted failure: Service Unavailable", "server_error"},
		"scripted 429":        {"POST", path, strings.Replace(valid, "hi", "FAIL: 429  slow down ", 1), 429, "slow down", "rate_limit_error"},
		"scripted 401":        {"POST", path, strings.Replace(valid, "hi", "FAIL: 401 who?", 1), 401, "who?", "authentication_error"},
		"too much unstreamed": {"POST", path, strings.NewReplacer("hi", "TEXT: 100000000", `"stream":true`, `"stream":false`).Replace(valid), 400, "only streamed", "invalid_request_error"},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			Handler(Options{MaxBody: 4096}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), c.method, c.path, strings.NewReader(c.body)))
			require.Equal(t, c.status, w.Code, w.Body.String())
			require.Equal(t, "application/json", w.Header().Get("Content-Type"))
			var e errorBody
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &e))
			require.Contains(t, e.Error.Message, c.message)
			require.Equal(t, c.kind, e.Error.Type)
		})
	}
}

func TestDefaultBodyLimit(t *testing.T) {
	body := string(ask(modelEcho, "hi").body(t))
	w := httptest.NewRecorder()
	Handler(Options{}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/v1/chat/completions",
		strings.NewReader(body+strings.Repeat(" ", 64<<20-len(body)))))
	require.Equal(t, 200, w.Code)
	w = httptest.NewRecorder()
	Handler(Options{}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/v1/chat/completions",
		strings.NewReader(body+strings.Repeat(" ", 64<<20-len(body)+1))))
	require.Equal(t, 413, w.Code)
}

func TestModelList(t *testing.T) {
	w := httptest.NewRecorder()
	Handler(Options{}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/v1/models", nil))
	require.Equal(t, 200, w.Code)
	var list struct {
		Object string
		Data   []listedModel
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &list))
	require.Equal(t, "list", list.Object)
	require.Len(t, list.Data, len(Models()))
	for i, m := range Models() {
		require.Equal(t, m.ID, list.Data[i].ID)
		require.Contains(t, list.Data[i].OwnedBy, "no AI")
		w := httptest.NewRecorder()
		Handler(Options{}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/v1/models/"+m.ID, nil))
		require.Equal(t, 200, w.Code)
	}
}

func TestModelsJSON(t *testing.T) {
	var file struct {
		Providers map[string]struct {
			Name, BaseURL, APIKey, API string
			Compat                     map[string]bool
			Models                     []map[string]any
		}
	}
	require.NoError(t, json.Unmarshal(ModelsJSON("http://model.patio.internal/v1"), &file))
	require.Len(t, file.Providers, 1)
	p := file.Providers["demo"]
	require.Equal(t, "patio demo (scripted, no AI)", p.Name)
	require.Equal(t, "http://model.patio.internal/v1", p.BaseURL)
	require.Equal(t, "demo-no-key-needed", p.APIKey)
	require.Equal(t, "openai-completions", p.API)
	require.Equal(t, map[string]bool{"supportsDeveloperRole": false, "supportsReasoningEffort": false}, p.Compat)
	var reasoning, vision bool
	for _, m := range p.Models {
		for _, key := range []string{"id", "name", "reasoning", "input", "contextWindow", "maxTokens", "cost"} {
			require.Contains(t, m, key)
		}
		require.Contains(t, m["name"], "no AI")
		require.Equal(t, map[string]any{"input": 0.0, "output": 0.0, "cacheRead": 0.0, "cacheWrite": 0.0}, m["cost"])
		reasoning = reasoning || m["reasoning"] == true
		vision = vision || fmt.Sprint(m["input"]) == "[text image]"
	}
	require.True(t, reasoning)
	require.True(t, vision)
}

func TestWholeAnswerSaysTheSameAsTheStream(t *testing.T) {
	for _, prompt := range []string{"hello", "THINK: aloud\nTEXT: 500", "RUN: ls -l <dir>"} {
		c := ask(modelEcho, prompt)
		streamed := c.get(t)
		c.stream = false
		w := c.post(t)
		require.Equal(t, 200, w.Code)
		var whole completion
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &whole))
		require.Equal(t, "chat.completion", whole.Object)
		require.NotEqual(t, streamed.id, whole.ID)
		m := whole.Choices[0].Message
		require.Equal(t, streamed.text, *m.Content)
		require.Equal(t, streamed.thought, m.Reasoning)
		require.Equal(t, streamed.finish, *whole.Choices[0].FinishReason)
		require.Equal(t, streamed.usage, whole.Usage)
		if streamed.tool != "" {
			require.Len(t, m.ToolCalls, 1)
			require.Equal(t, functionDelta{streamed.tool, streamed.args}, m.ToolCalls[0].Function)
			require.NotEqual(t, streamed.callID, m.ToolCalls[0].ID)
		}
	}
}

func TestUsage(t *testing.T) {
	c := &chat{model: modelEcho, stream: true, usage: true}
	c.add("user", strings.Repeat("x", 401))
	u := c.get(t).usage
	require.Equal(t, &usage{PromptTokens: 101, CompletionTokens: 101, TotalTokens: 202}, u)

	c = &chat{model: modelEcho, stream: true, usage: true}
	u = c.add("user", "THINK: 40\nTEXT: 80").get(t).usage
	require.EqualValues(t, 30, u.CompletionTokens)
	require.EqualValues(t, 10, u.Details.ReasoningTokens)

	c.usage = false
	require.Nil(t, c.get(t).usage)
}
