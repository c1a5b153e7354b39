package pi

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"patio/engine/jsonl"
)

func TestParseCommand(t *testing.T) {
	for name, tc := range map[string]struct {
		line, typ, id string
		noID          bool
	}{
		"plain":              {line: `{"type":"get_state"}`, typ: "get_state", noID: true},
		"string id":          {line: `{"id":"req_1","type":"abort"}`, typ: "abort", id: `"req_1"`},
		"number id":          {line: `{"type":"abort","id":7}`, typ: "abort", id: `7`},
		"huge number id":     {line: `{"type":"abort","id":12345678901234567890123}`, typ: "abort", id: `12345678901234567890123`},
		"null id":            {line: `{"type":"abort","id":null}`, typ: "abort", id: `null`},
		"object id":          {line: `{"type":"abort","id":{"a":[1, 2]}}`, typ: "abort", id: `{"a":[1, 2]}`},
		"bool id":            {line: `{"type":"abort","id":false}`, typ: "abort", id: `false`},
		"empty id":           {line: `{"type":"abort","id":""}`, typ: "abort", id: `""`},
		"white space around": {line: " \t{\"type\":\"abort\"}\r\n", typ: "abort", noID: true},
		"escaped keys":       {line: `{"\u0074ype":"abort","\u0069d":"x"}`, typ: "abort", id: `"x"`},
		"nested type":        {line: `{"data":{"type":"no","id":"no"},"type":"yes"}`, typ: "yes", noID: true},
		"raw U+2028":         {line: "{\"type\":\"prompt\",\"message\":\"a\u2028b\u2029c\"}", typ: "prompt", noID: true},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := ParseCommand([]byte(tc.line))
			require.NoError(t, err)
			require.Equal(t, tc.typ, c.Type)
			require.Equal(t, strings.TrimSpace(tc.line), string(c.Line), "the line goes on as it came")
			if tc.noID {
				require.Nil(t, c.ID)
			} else {
				require.Equal(t, tc.id, string(c.ID))
			}
		})
	}
}

func TestParseCommandRefuses(t *testing.T) {
	for name, line := range map[string]string{
		"null":               "null",
		"number":             "42",
		"string":             `"prompt"`,
		"bool":               "true",
		"array":              `[{"type":"abort"}]`,
		"empty":              "",
		"white space":        " \t ",
		"no type":            `{"id":"1"}`,
		"null type":          `{"type":null}`,
		"number type":        `{"type":1}`,
		"object type":        `{"type":{"type":"abort"}}`,
		"empty type":         `{"type":""}`,
		"open object":        `{"type":"abort"`,
		"two objects":        `{"type":"abort"}{"type":"abort"}`,
		"two lines":          "{\"type\":\"abort\"}\n{\"type\":\"abort\"}",
		"object, then null":  "{\"type\":\"abort\"}\nnull",
		"LF in a string":     "{\"type\":\"prompt\",\"message\":\"a\nb\"}",
		"type twice":         `{"type":"abort","type":null}`,
		"id twice":           `{"type":"abort","id":"mine","id":"theirs"}`,
		"id twice, escaped":  `{"type":"abort","id":"mine","\u0069d":"theirs"}`,
		"not UTF-8":          "{\"type\":\"prompt\",\"message\":\"\xff\"}",
		"byte order mark":    "\ufeff{\"type\":\"abort\"}",
		"NUL":                "{\"type\":\"abort\"}\x00",
		"single quotes":      `{'type':'abort'}`,
		"comment":            `{"type":"abort"} // now`,
		"wrong key spelling": `{"Type":"abort"}`,
	} {
		t.Run(name, func(t *testing.T) {
			c, err := ParseCommand([]byte(line))
			require.ErrorIs(t, err, ErrCommand)
			require.Empty(t, c.Line)
		})
	}
}

// A command may stand on several lines where its sender has other framing than ours.
func TestParseCommandJoinsLines(t *testing.T) {
	c, err := ParseCommand([]byte("{\n  \"type\": \"prompt\",\r\n  \"message\": \"a\u2028b <&>\"\n}\n"))
	require.NoError(t, err)
	require.Equal(t, "{\"type\":\"prompt\",\"message\":\"a\u2028b <&>\"}", string(c.Line))
}

func TestParseCommandHuge(t *testing.T) {
	line := []byte(`{"type":"prompt","images":["` + strings.Repeat("A", 60<<20) + `"],"id":9}`)
	c, err := ParseCommand(line)
	require.NoError(t, err)
	require.Equal(t, "prompt", c.Type)
	require.Equal(t, "9", string(c.ID))
	wire, err := c.WithID("cli-1/1")
	require.NoError(t, err)
	require.True(t, bytes.Equal(bytes.Replace(line, []byte(`"id":9`), []byte(`"id":"cli-1/1"`), 1), wire))
}

func TestWithIDAndRestore(t *testing.T) {
	for name, tc := range map[string]struct{ line, wire string }{
		"no id":           {`{"type":"abort"}`, `{"type":"abort","id":"c-1/1"}`},
		"string":          {`{"id":"req_1","type":"abort"}`, `{"id":"c-1/1","type":"abort"}`},
		"number":          {`{"id":1e3,"type":"abort"}`, `{"id":"c-1/1","type":"abort"}`},
		"null":            {`{"id":null,"type":"abort"}`, `{"id":"c-1/1","type":"abort"}`},
		"object":          {`{"id":{"id":"in"},"type":"abort"}`, `{"id":"c-1/1","type":"abort"}`},
		"escapes kept":    {`{"type":"prompt","message":"\u00e9é\ud83d\ude00 <&>","id":"a\"b"}`, `{"type":"prompt","message":"\u00e9é\ud83d\ude00 <&>","id":"c-1/1"}`},
		"separators kept": {"{\"type\":\"prompt\",\"message\":\"a\u2028b\",\"id\":1}", "{\"type\":\"prompt\",\"message\":\"a\u2028b\",\"id\":\"c-1/1\"}"},
		"spaces kept":     {`{ "type" : "abort" , "id" : 1 , "x" : 1.50 }`, `{ "type" : "abort" , "id" : "c-1/1" , "x" : 1.50 }`},
		"inner ids kept":  {`{"data":{"id":"in"},"type":"x","id":2}`, `{"data":{"id":"in"},"type":"x","id":"c-1/1"}`},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := ParseCommand([]byte(tc.line))
			require.NoError(t, err)
			wire, err := c.WithID("c-1/1")
			require.NoError(t, err)
			require.Equal(t, tc.wire, string(wire))
			require.Equal(t, tc.line, string(c.Line), "the caller's line is left alone")
			back, err := Restore(wire, c.ID)
			require.NoError(t, err)
			require.Equal(t, tc.line, string(back))
		})
	}
}

func recorded(t testing.TB, name string) [][]byte {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "testdata", "recorded", name))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	var lines [][]byte
	r := jsonl.NewReader(f)
	for {
		line, err := r.Next()
		if err != nil {
			require.ErrorContains(t, err, "EOF")
			return lines
		}
		lines = append(lines, bytes.Clone(line))
	}
}

func TestParseMessageRecorded(t *testing.T) {
	for _, tc := range []struct {
		file          string
		types         map[string]int
		withID, fails int
	}{
		{"01-basic.stdout.jsonl", map[string]int{"response": 24, "agent_start": 4, "agent_settled": 3, "turn_start": 5, "message_end": 10, "tool_execution_start": 1, "bash_execution_update": 1}, 24, 4},
		{"02-resume.stdout.jsonl", map[string]int{"response": 3, "message_update": 5}, 3, 0},
		{"05-extension-ui.stdout.jsonl", map[string]int{"response": 3, "extension_ui_request": 13, "extension_error": 1}, 16, 0},
		{"07-mcp.stdout.jsonl", map[string]int{"response": 10, "tool_execution_end": 4, "extension_ui_request": 5}, 15, 0},
	} {
		t.Run(tc.file, func(t *testing.T) {
			types := map[string]int{}
			withID, fails := 0, 0
			for _, line := range recorded(t, tc.file) {
				m := ParseMessage(line)
				var want struct {
					ID, Type, Command string
					Success           bool
				}
				require.NoError(t, json.Unmarshal(line, &want))
				require.Equal(t, want.Type, m.Type)
				require.Equal(t, line, m.Line)
				types[m.Type]++
				if m.ID != "" {
					withID++
					require.Equal(t, want.ID, m.ID)
				}
				if m.Type == "response" {
					require.Equal(t, want.Command, m.Command)
					require.Equal(t, want.Success, m.Success)
					if !m.Success {
						fails++
						require.NotEmpty(t, m.Get("error").Str)
					}
				}
			}
			for typ, n := range tc.types {
				require.Equal(t, n, types[typ], typ)
			}
			require.Equal(t, tc.withID, withID)
			require.Equal(t, tc.fails, fails)
		})
	}
}

func TestParseMessageNotJSON(t *testing.T) {
	for _, line := range []string{"", "null", "Warning: something", "[1]", `{"type":1}`, `{"type":`, `{}`, "\xff\xfe", `{"a":{"type":"x"}}`} {
		m := ParseMessage([]byte(line))
		require.Empty(t, m.Type, line)
		require.Empty(t, m.ID, line)
		require.Equal(t, line, string(m.Line))
	}
}

func TestDecodeState(t *testing.T) {
	state, err := DecodeState(recorded(t, "01-basic.stdout.jsonl")[0])
	require.NoError(t, err)
	require.Equal(t, Model{ID: "fake-1", Name: "Fake One", API: "openai-completions", Provider: "fake", BaseURL: "http://127.0.0.1:44473/v1", ContextWindow: 100000}, state.Model)
	require.True(t, state.Model.Known())
	require.Equal(t, "medium", state.ThinkingLevel)
	require.NotEmpty(t, state.SessionFile)

	_, err = DecodeState([]byte(`{"type":"response","command":"get_state","success":false,"error":"no luck"}`))
	require.ErrorContains(t, err, "no luck")
	_, err = DecodeState([]byte("oops"))
	require.ErrorContains(t, err, "decode Pi's state")
	require.False(t, Model{Provider: "unknown"}.Known())
	require.False(t, Model{}.Known())
}

func TestDialog(t *testing.T) {
	waits := map[string]bool{
		"select": true, "confirm": true, "input": true, "editor": true,
		"notify": false, "setStatus": false, "setWidget": false, "setTitle": false, "set_editor_text": false, "": false,
	}
	for method, want := range waits {
		require.Equal(t, want, Dialog(method), method)
	}
}

func FuzzParseCommand(f *testing.F) {
	for _, name := range []string{"01-basic.stdin.jsonl", "05-extension-ui.stdin.jsonl"} {
		for _, line := range recorded(f, name) {
			f.Add(line)
		}
	}
	for _, s := range []string{"null", "[]", "{}", `{"type":"a","id":1,"id":2}`, "{\n\"type\":\"x\"}", `{"\u0069d":[],"type":"\u0000"}`, "\u00a0{\"type\":\"x\"}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		given := bytes.Clone(line)
		c, err := ParseCommand(line)
		require.Equal(t, given, line, "the caller's bytes are left alone")
		if err != nil {
			require.ErrorIs(t, err, ErrCommand)
			return
		}
		require.NotContains(t, string(c.Line), "\n")
		var object map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(c.Line, &object))
		var typ string
		require.NoError(t, json.Unmarshal(object["type"], &typ))
		require.NotEmpty(t, typ)

		wire, err := c.WithID("c-1/1")
		require.NoError(t, err)
		require.NotContains(t, string(wire), "\n")
		var sent map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(wire, &sent))
		require.JSONEq(t, `"c-1/1"`, string(sent["id"]))
		delete(sent, "id")
		given2 := map[string]json.RawMessage{}
		require.NoError(t, json.Unmarshal(c.Line, &given2))
		delete(given2, "id")
		require.Equal(t, given2, sent, "nothing but the id changes")

		back, err := Restore(wire, c.ID)
		require.NoError(t, err)
		var restored map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(back, &restored))
		if c.ID == nil {
			require.NotContains(t, restored, "id")
		} else {
			require.Equal(t, string(c.ID), string(restored["id"]))
		}
	})
}

func FuzzParseMessage(f *testing.F) {
	for _, name := range []string{"01-basic.stdout.jsonl", "05-extension-ui.stdout.jsonl"} {
		for _, line := range recorded(f, name) {
			f.Add(line)
		}
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		given := bytes.Clone(line)
		m := ParseMessage(line)
		require.Equal(t, given, m.Line)
		if m.Type == "" {
			require.Empty(t, m.ID)
			return
		}
		require.Equal(t, byte('{'), line[0], "only an object has a type")
		_ = m.Get("message.content.0.text")
	})
}
