package pi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// ErrCommand means that a line is no RPC command. Pi must not get it: `null` on its stdin
// ends it.
var ErrCommand = errors.New("not an RPC command")

// Command is a line for Pi's stdin that has been checked.
type Command struct {
	Type string
	Line []byte // without LF
	// ID is the raw JSON of the caller's id, nil when it gave none.
	ID json.RawMessage
}

// ParseCommand checks a line: one JSON object with a string type and no line end in it.
func ParseCommand(line []byte) (Command, error) {
	line = bytes.TrimSpace(line)
	if bytes.IndexByte(line, '\n') >= 0 {
		// Legal between JSON's tokens, but it would end the line for Pi.
		var compact bytes.Buffer
		if err := json.Compact(&compact, line); err != nil {
			return Command{}, fmt.Errorf("%w: %w", ErrCommand, err)
		}
		line = compact.Bytes()
	}
	if !json.Valid(line) || !utf8.Valid(line) {
		return Command{}, fmt.Errorf("%w: not valid JSON", ErrCommand)
	}
	if len(line) == 0 || line[0] != '{' {
		return Command{}, fmt.Errorf("%w: not a JSON object", ErrCommand)
	}
	// What stands in a key twice is one thing here and another for Pi, which takes the last.
	var t, id gjson.Result
	twice := ""
	gjson.ParseBytes(line).ForEach(func(key, value gjson.Result) bool {
		switch {
		case key.Str == "type" && !t.Exists():
			t = value
		case key.Str == "id" && !id.Exists():
			id = value
		case key.Str == "type", key.Str == "id":
			twice = key.Str
		}
		return true
	})
	if twice != "" {
		return Command{}, fmt.Errorf("%w: it has %q twice", ErrCommand, twice)
	}
	if t.Type != gjson.String || t.Str == "" {
		return Command{}, fmt.Errorf(`%w: it needs a "type" that is a string`, ErrCommand)
	}
	c := Command{Type: t.Str, Line: line}
	if id.Exists() {
		c.ID = json.RawMessage(id.Raw)
	}
	return c, nil
}

// WithID returns the command's line with another id.
func (c Command) WithID(id string) ([]byte, error) {
	return sjson.SetBytes(c.Line, "id", id)
}

// Message is what can be seen of a line from Pi's stdout without decoding it whole.
type Message struct {
	// Type is "" for a line that isn't a JSON object with a type.
	Type    string
	ID      string
	Command string // of a response: the command's type
	Success bool   // of a response
	Line    []byte
}

// ParseMessage looks at a line from Pi. It never fails: what isn't JSON has no Type.
func ParseMessage(line []byte) Message {
	m := Message{Line: line}
	if len(line) == 0 || line[0] != '{' {
		return m
	}
	t := gjson.GetBytes(line, "type")
	if t.Type != gjson.String {
		return m
	}
	m.Type = t.Str
	if m.Type == "response" || m.Type == "extension_ui_request" || m.Type == "bash_execution_update" {
		m.ID = gjson.GetBytes(line, "id").Str
	}
	if m.Type == "response" {
		m.Command = gjson.GetBytes(line, "command").Str
		m.Success = gjson.GetBytes(line, "success").Bool()
	}
	return m
}

// Get returns the value at a dotted path of the message.
func (m Message) Get(path string) gjson.Result { return gjson.GetBytes(m.Line, path) }

// Restore returns the line of a response with the id its client gave, or with none.
func Restore(line []byte, id json.RawMessage) ([]byte, error) {
	if id == nil {
		return sjson.DeleteBytes(line, "id")
	}
	return sjson.SetRawBytes(line, "id", id)
}

// Model is a model as Pi reports it.
type Model struct {
	ID            string `json:"id"`
	Name          string `json:"name"`
	API           string `json:"api"`
	Provider      string `json:"provider"`
	BaseURL       string `json:"baseUrl"`
	ContextWindow int    `json:"contextWindow"`
}

// Known reports whether Pi has a model: without one, or without its key, it reports
// "unknown".
func (m Model) Known() bool { return m.Provider != "" && m.Provider != "unknown" }

// State is the answer to get_state.
type State struct {
	Model         Model  `json:"model"`
	ThinkingLevel string `json:"thinkingLevel"`
	IsStreaming   bool   `json:"isStreaming"`
	SessionFile   string `json:"sessionFile"`
	SessionID     string `json:"sessionId"`
	SessionName   string `json:"sessionName"`
}

// DecodeState decodes the reply to get_state.
func DecodeState(reply []byte) (State, error) {
	var r struct {
		Success bool   `json:"success"`
		Error   string `json:"error"`
		Data    State  `json:"data"`
	}
	if err := json.Unmarshal(reply, &r); err != nil {
		return State{}, fmt.Errorf("decode Pi's state: %w", err)
	}
	if !r.Success {
		return State{}, fmt.Errorf("get Pi's state: %s", r.Error)
	}
	return r.Data, nil
}

// Dialog reports whether an extension_ui_request waits for an answer. The other methods
// only tell.
func Dialog(method string) bool {
	switch method {
	case "select", "confirm", "input", "editor":
		return true
	}
	return false
}
