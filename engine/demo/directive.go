package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

type keyword string

const (
	keyRun   keyword = "RUN"
	keyWrite keyword = "WRITE"
	keyTool  keyword = "TOOL"
	keyText  keyword = "TEXT"
	keyThink keyword = "THINK"
	keyImage keyword = "IMAGE"
	keyFail  keyword = "FAIL"
	keySlow  keyword = "SLOW"
)

var keywords = []keyword{keyRun, keyWrite, keyTool, keyText, keyThink, keyImage, keyFail, keySlow}

// Bounds on what a directive may ask for.
const (
	maxBytes = 4 << 30
	maxSlow  = 10 * time.Minute
)

// Directives is a Markdown table of the directives, for documentation.
func Directives() string {
	return `| directive | what the model does |
|---|---|
| ` + "`RUN: command`" + ` | calls bash with exactly this text (following lines included, up to the next directive), then answers with its output, verbatim |
| ` + "`WRITE: path`" + ` | calls write with the following lines as the content |
| ` + "`TOOL: name {json}`" + ` | calls any tool with these arguments, then answers with its result, verbatim |
| ` + "`TEXT: n [bytes]`" + ` | answers with exactly n bytes of text |
| ` + "`THINK: text`" + ` or ` + "`THINK: n [bytes]`" + ` | thinks aloud before it goes on |
| ` + "`IMAGE:`" + ` | answers with type, size and digest of each image received |
| ` + "`FAIL: status [message]`" + ` | answers with that HTTP status (400 to 599) and an error body |
| ` + "`SLOW: ms`" + ` | waits that long between the pieces of each streamed answer |

A directive starts a line. Several are carried out in order; other lines are free text.
`
}

// directive is one parsed directive. Which fields are set depends on the keyword.
type directive struct {
	key    keyword
	tool   string        // RUN, WRITE, TOOL
	args   string        // RUN, WRITE, TOOL: a JSON object
	text   string        // THINK, FAIL
	size   int64         // TEXT, THINK
	status int           // FAIL
	pause  time.Duration // SLOW
}

// answers says whether a directive decides what the model answers, rather than how.
func (d directive) answers() bool { return d.key != keyThink && d.key != keySlow }

// script is what a prompt asks for: directives in order, and the lines that are none.
type script struct {
	directives []directive
	free       string
}

// answers says whether the directives leave nothing for the model to do by itself.
func (s script) answers() bool {
	for _, d := range s.directives {
		if d.answers() {
			return true
		}
	}
	return false
}

func (s script) pause() time.Duration {
	var pause time.Duration
	for _, d := range s.directives {
		if d.key == keySlow {
			pause = d.pause
		}
	}
	return pause
}

// parseScript reads the directives of a prompt. A malformed one is an error that says what is wanted, for the model to
// answer with.
func parseScript(prompt string) (script, error) {
	var s script
	var free []string
	// The line break at the very end ends the last line; it isn't part of what the line says.
	lines := strings.Split(strings.TrimSuffix(prompt, "\n"), "\n")
	for i := 0; i < len(lines); {
		key, arg, ok := startsDirective(lines[i])
		if !ok {
			free = append(free, lines[i])
			i++
			continue
		}
		number := i + 1
		var body []string
		for i++; key.hasBody() && i < len(lines); i++ {
			if _, _, ok := startsDirective(lines[i]); ok {
				break
			}
			body = append(body, lines[i])
		}
		d, err := parseDirective(key, arg, body)
		if err != nil {
			return script{}, fmt.Errorf("line %d: %s: %w", number, key, err)
		}
		s.directives = append(s.directives, d)
	}
	s.free = strings.Join(free, "\n")
	return s, nil
}

// hasBody says whether the lines after a directive belong to it.
func (k keyword) hasBody() bool { return k == keyRun || k == keyWrite || k == keyTool }

// startsDirective splits off the keyword, the colon and one blank.
func startsDirective(line string) (keyword, string, bool) {
	for _, key := range keywords {
		if arg, ok := strings.CutPrefix(line, string(key)+":"); ok {
			if strings.HasPrefix(arg, " ") || strings.HasPrefix(arg, "\t") {
				arg = arg[1:]
			}
			return key, arg, true
		}
	}
	return "", "", false
}

func parseDirective(key keyword, arg string, body []string) (directive, error) {
	d := directive{key: key}
	trimmed := strings.TrimSpace(arg)
	switch key {
	case keyRun:
		command := strings.Join(append([]string{arg}, body...), "\n")
		if trimmed == "" {
			command = strings.Join(body, "\n")
		}
		if strings.TrimSpace(command) == "" {
			return d, fmt.Errorf("want a command")
		}
		d.tool, d.args = toolBash, object("command", command)
	case keyWrite:
		if trimmed == "" {
			return d, fmt.Errorf("want a path, and the content in the following lines")
		}
		content := "Written by patio's scripted demo model.\n"
		if len(body) > 0 {
			content = strings.Join(body, "\n") + "\n"
		}
		d.tool, d.args = toolWrite, object("path", trimmed, "content", content)
	case keyTool:
		return parseTool(d, strings.Join(append([]string{arg}, body...), "\n"))
	case keyText:
		size, ok := parseBytes(trimmed)
		if !ok {
			return d, fmt.Errorf("want a number of bytes from 0 to %d, not %q", int64(maxBytes), trimmed)
		}
		d.size = size
	case keyThink:
		if trimmed == "" {
			return d, fmt.Errorf("want a text, or a number of bytes")
		}
		if size, ok := parseBytes(trimmed); ok {
			d.size = size
		} else {
			d.text = arg
		}
	case keyImage:
		if trimmed != "" {
			return d, fmt.Errorf("want nothing after the colon, not %q", trimmed)
		}
	case keyFail:
		code, message, _ := strings.Cut(trimmed, " ")
		status, err := strconv.Atoi(code)
		if err != nil || status < 400 || status > 599 {
			return d, fmt.Errorf("want an HTTP status from 400 to 599, not %q", code)
		}
		d.status, d.text = status, strings.TrimSpace(message)
		if d.text == "" {
			d.text = strings.TrimSpace("scripted failure: " + http.StatusText(status))
		}
	case keySlow:
		ms, err := strconv.ParseInt(trimmed, 10, 64)
		if err != nil || ms < 0 || ms > maxSlow.Milliseconds() {
			return d, fmt.Errorf("want a number of milliseconds from 0 to %d, not %q", maxSlow.Milliseconds(), trimmed)
		}
		d.pause = time.Duration(ms) * time.Millisecond
	}
	return d, nil
}

func parseTool(d directive, text string) (directive, error) {
	name, args := strings.TrimSpace(text), "{}"
	if i := strings.IndexAny(name, " \t\n{"); i >= 0 {
		name, args = name[:i], strings.TrimSpace(name[i:])
	}
	if name == "" {
		return d, fmt.Errorf("want the name of a tool, and a JSON object")
	}
	var compact bytes.Buffer
	if !strings.HasPrefix(args, "{") || json.Compact(&compact, []byte(args)) != nil {
		return d, fmt.Errorf("want a JSON object after %q", name)
	}
	d.tool, d.args = name, args
	return d, nil
}

var sizePattern = regexp.MustCompile(`^([0-9]{1,10})( bytes)?$`)

func parseBytes(s string) (int64, bool) {
	m := sizePattern.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	return n, err == nil && n <= maxBytes
}

// object is a JSON object of strings in the given order: key, value, key, value.
func object(pairs ...string) string {
	var b strings.Builder
	for i, s := range pairs {
		b.WriteString([]string{",", ":"}[i%2])
		b.WriteString(quote(s))
	}
	return "{" + b.String()[1:] + "}"
}

// quote is a JSON string without the escapes that only HTML needs.
func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	// A string always encodes.
	_ = enc.Encode(s)
	return strings.TrimSuffix(b.String(), "\n")
}
