package demo

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestParseScript(t *testing.T) {
	run := func(command string) directive {
		return directive{key: keyRun, tool: toolBash, args: object("command", command)}
	}
	const long = `uname -r; id -u; grep ^Cap /proc/self/status; pwd; touch made-inside; curl -sS -m 5 https://example.com; echo rc=\$?`
	for name, c := range map[string]struct {
		prompt string
		want   []directive
		free   string
	}{
		"none":               {"hello\nRUN it", nil, "hello\nRUN it"},
		"empty":              {"", nil, ""},
		"in mid line":        {"please RUN: ls", nil, "please RUN: ls"},
		"indented":           {" RUN: ls", nil, " RUN: ls"},
		"lower case":         {"run: ls", nil, "run: ls"},
		"longer word":        {"RERUN: ls", nil, "RERUN: ls"},
		"run":                {"RUN: ls", []directive{run("ls")}, ""},
		"run without blank":  {"RUN:ls", []directive{run("ls")}, ""},
		"run keeps bytes":    {"RUN: " + long, []directive{run(long)}, ""},
		"run, quotes":        {`RUN: echo "a  b" '<&>' \\ $'\t' ` + "`x` é \u2028", []directive{run(`echo "a  b" '<&>' \\ $'\t' ` + "`x` é \u2028")}, ""},
		"run keeps blanks":   {"RUN:  ls \t", []directive{run(" ls \t")}, ""},
		"run, final LF":      {"RUN: ls\n", []directive{run("ls")}, ""},
		"run, many lines":    {"RUN: cat <<X\n  a\n\nX\n", []directive{run("cat <<X\n  a\n\nX")}, ""},
		"run, from next":     {"RUN:\nls\npwd", []directive{run("ls\npwd")}, ""},
		"run, CR":            {"RUN: ls\r\npwd", []directive{run("ls\r\npwd")}, ""},
		"two runs":           {"hi\nRUN: a\nRUN: b\nb2", []directive{run("a"), run("b\nb2")}, "hi"},
		"write":              {"WRITE: a b.txt \nx\n\n y", []directive{{key: keyWrite, tool: toolWrite, args: `{"path":"a b.txt","content":"x\n\n y\n"}`}}, ""},
		"write, no content":  {"WRITE: a", []directive{{key: keyWrite, tool: toolWrite, args: object("path", "a", "content", "Written by patio's scripted demo model.\n")}}, ""},
		"tool":               {`TOOL: mcp {"a": [1, "<"]}`, []directive{{key: keyTool, tool: "mcp", args: `{"a": [1, "<"]}`}}, ""},
		"tool, no blank":     {`TOOL: mcp{"a":1}`, []directive{{key: keyTool, tool: "mcp", args: `{"a":1}`}}, ""},
		"tool, no arguments": {`TOOL: mcp`, []directive{{key: keyTool, tool: "mcp", args: `{}`}}, ""},
		"tool, many lines":   {"TOOL: mcp\n{\n\"a\": 1}\nSLOW: 5", []directive{{key: keyTool, tool: "mcp", args: "{\n\"a\": 1}"}, {key: keySlow, pause: 5 * time.Millisecond}}, ""},
		"text":               {"TEXT: 12", []directive{{key: keyText, size: 12}}, ""},
		"text, bytes":        {"TEXT: 12 bytes\nfree", []directive{{key: keyText, size: 12}}, "free"},
		"text, none":         {"TEXT: 0", []directive{{key: keyText}}, ""},
		"think, text":        {"THINK: why 5 bytes", []directive{{key: keyThink, text: "why 5 bytes"}}, ""},
		"think, bytes":       {"THINK: 5 bytes", []directive{{key: keyThink, size: 5}}, ""},
		"fail":               {"FAIL: 418", []directive{{key: keyFail, status: 418, text: "scripted failure: I'm a teapot"}}, ""},
		"fail, message":      {"FAIL: 500 no luck", []directive{{key: keyFail, status: 500, text: "no luck"}}, ""},
		"fail, no name":      {"FAIL: 499", []directive{{key: keyFail, status: 499, text: "scripted failure:"}}, ""},
		"image":              {"IMAGE:\nwhat is it?", []directive{{key: keyImage}}, "what is it?"},
		"slow and free":      {"SLOW: 10\nshow me\naround", []directive{{key: keySlow, pause: 10 * time.Millisecond}}, "show me\naround"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := parseScript(c.prompt)
			require.NoError(t, err)
			require.Equal(t, c.want, s.directives)
			require.Equal(t, c.free, s.free)
		})
	}
}

func TestParseScriptRefuses(t *testing.T) {
	for prompt, want := range map[string]string{
		"RUN:":                           "line 1: RUN: want a command",
		"hi\nRUN: \n \nTEXT: 5":          "line 2: RUN: want a command",
		"WRITE:\ncontent":                "WRITE: want a path",
		"TOOL: ":                         "TOOL: want the name",
		"TOOL: a [1]":                    "TOOL: want a JSON object",
		"TOOL: a {\"x\":}":               "TOOL: want a JSON object",
		"TOOL: a {} x":                   "TOOL: want a JSON object",
		"TEXT: ten":                      "TEXT: want a number",
		"TEXT: -1":                       "TEXT: want a number",
		"TEXT: 9999999999":               "TEXT: want a number",
		"TEXT: 99999999999999999999":     "TEXT: want a number",
		"TEXT:":                          "TEXT: want a number",
		"THINK:":                         "THINK: want a text",
		"IMAGE: what":                    "IMAGE: want nothing",
		"FAIL: 200":                      "FAIL: want an HTTP status",
		"FAIL: 600":                      "FAIL: want an HTTP status",
		"FAIL: soon":                     "FAIL: want an HTTP status",
		"SLOW: -1":                       "SLOW: want a number",
		"SLOW: 600001":                   "SLOW: want a number",
		"SLOW: 1s":                       "SLOW: want a number",
		"a\nb\nTEXT: 1\nSLOW: x\nRUN: y": "line 4: SLOW: want a number",
	} {
		t.Run(prompt, func(t *testing.T) {
			_, err := parseScript(prompt)
			require.ErrorContains(t, err, want)
			a := ask(modelTour, prompt).get(t)
			require.Contains(t, a.text, want)
			require.Contains(t, a.text, Directives())
			require.Empty(t, a.tool)
		})
	}
}

func TestDirectivesNamesEach(t *testing.T) {
	for _, k := range keywords {
		require.Contains(t, Directives(), "`"+string(k)+":")
	}
}

func FuzzParseScript(f *testing.F) {
	f.Add("hi\nRUN: ls\npwd\nTEXT: 5 bytes\n")
	f.Add("TOOL: a {\"b\":1}\nWRITE: p\nx\nSLOW: 5\nTHINK: y\nIMAGE:\nFAIL: 500 x")
	f.Fuzz(func(t *testing.T, prompt string) {
		s, err := parseScript(prompt)
		// A prompt comes out of JSON, so it is valid UTF-8 always.
		if err != nil || !utf8.ValidString(prompt) {
			return
		}
		if len(s.directives) == 0 {
			require.Equal(t, strings.TrimSuffix(prompt, "\n"), s.free)
		}
		for _, d := range s.directives {
			if d.tool != "" {
				require.True(t, json.Valid([]byte(d.args)))
			}
			if d.key == keyRun {
				var args struct{ Command string }
				require.NoError(t, json.Unmarshal([]byte(d.args), &args))
				require.Contains(t, prompt, args.Command)
			}
		}
	})
}
