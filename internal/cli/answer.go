package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/tidwall/gjson"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/sandbox/network/policy"
)

// answer shows a turn to a person: the text on one stream as it comes, what Pi does in
// short lines on the other.
type answer struct {
	text io.Writer
	// side gets whole lines. It may be the same terminal as text.
	side io.Writer
	same bool
	// quiet leaves the side lines out.
	quiet bool

	open     bool // the text's last byte wasn't a line feed
	streamed bool // the current message has shown text
	refused  map[string]bool
	err      error
}

// newAnswer shows on the app's streams.
func (a *app) newAnswer() *answer {
	_, out := terminal(a.stdout)
	_, side := terminal(a.stderr)
	return &answer{text: a.display(), side: a.stderr, same: out && side, refused: map[string]bool{}}
}

// record shows the next record. The error is that of the text stream, the first one.
func (w *answer) record(_ []byte, r journal.Record) error {
	switch r.Type {
	case api.RecordRPC:
		if e := rpcEvent(r.Data); e.direction == api.FromPi {
			w.event(e.line)
		}
	case api.RecordEgress:
		w.egress(r.Data)
	}
	return w.err
}

// end finishes a line that the answer broke off in.
func (w *answer) end() { w.endLine() }

func (w *answer) event(line gjson.Result) {
	switch line.Get("type").Str {
	case "message_start":
		w.streamed = false
	case "message_update":
		u := line.Get("assistantMessageEvent")
		switch u.Get("type").Str {
		case "text_start":
			if w.streamed {
				w.endLine() // a second block of the same message
			}
		case "text_delta":
			w.write(u.Get("delta").Str)
		}
	case "message_end":
		w.message(line.Get("message"))
	case "tool_execution_start":
		w.line("> %s %s", line.Get("toolName").Str, toolArguments(line.Get("args")))
	case "tool_execution_end":
		if line.Get("isError").Bool() {
			w.line("  %s failed: %s", line.Get("toolName").Str, lastLine(resultText(line.Get("result"))))
		}
	case "auto_retry_start":
		w.line("  retry %d of %d in %s: %s", line.Get("attempt").Int(), line.Get("maxAttempts").Int(),
			fmt.Sprintf("%.1f s", line.Get("delayMs").Float()/1000), line.Get("errorMessage").Str)
	case "compaction_start":
		w.line("  compacting the conversation (%s)", line.Get("reason").Str)
	case "extension_error":
		w.line("  extension %s failed: %s", line.Get("extensionPath").Str, line.Get("error").Str)
	case "extension_ui_request":
		if line.Get("method").Str == "notify" {
			w.line("  note: %s", line.Get("message").Str)
		}
	}
}

// message ends one message: a model that doesn't stream has its text here alone.
func (w *answer) message(m gjson.Result) {
	if m.Get("role").Str != "assistant" {
		return
	}
	if !w.streamed {
		for _, block := range m.Get("content").Array() {
			if block.Get("type").Str == "text" {
				w.write(block.Get("text").Str)
			}
		}
	}
	w.endLine()
	w.streamed = false
}

func (w *answer) egress(data []byte) {
	var e api.EgressRecord
	if !decodeData(data, &e) || e.Verdict != policy.Deny || e.Host == "" {
		return
	}
	target := egressTarget(e)
	if w.refused[target] {
		return // a name is refused at its lookup and again when a program insists
	}
	w.refused[target] = true
	w.line("! refused: %s (%s)", target, firstNonEmpty(e.Message, e.Reason.Message()))
}

func egressTarget(e api.EgressRecord) string {
	if e.Port == 0 {
		return e.Host
	}
	if strings.Contains(e.Host, ":") {
		return fmt.Sprintf("[%s]:%d", e.Host, e.Port)
	}
	return fmt.Sprintf("%s:%d", e.Host, e.Port)
}

func (w *answer) write(text string) {
	if text == "" || w.err != nil {
		return
	}
	w.streamed = true
	_, w.err = io.WriteString(w.text, text)
	w.open = !strings.HasSuffix(text, "\n")
}

func (w *answer) endLine() {
	if w.open && w.err == nil {
		_, w.err = io.WriteString(w.text, "\n")
		w.open = false
	}
}

func (w *answer) line(format string, args ...any) {
	if w.quiet {
		return
	}
	if w.same {
		w.endLine()
	}
	// What stderr doesn't take can't be told anywhere else.
	_, _ = fmt.Fprintln(w.side, shorten(cleanLine(fmt.Sprintf(format, args...)), sideWidth))
}

// sideWidth keeps a tool call to about one line of a usual terminal.
const sideWidth = 110

func shorten(s string, width int) string { return cut(s, width, false) }

// toolArguments is the argument of a tool call that says most.
func toolArguments(args gjson.Result) string {
	for _, key := range []string{"command", "path", "file_path", "pattern", "query", "url"} {
		if v := args.Get(key); v.Type == gjson.String {
			return v.Str
		}
	}
	if args.Raw == "{}" {
		return ""
	}
	return args.Raw
}

// resultText is the text of a tool's result.
func resultText(result gjson.Result) string {
	var parts []string
	for _, block := range result.Get("content").Array() {
		if t := block.Get("text"); t.Exists() {
			parts = append(parts, t.Str)
		}
	}
	return strings.Join(parts, "\n")
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	if i := strings.LastIndexByte(s, '\n'); i >= 0 {
		return s[i+1:]
	}
	return s
}
