// Package benchtree makes trees of session files to measure the catalog on, beside Pi's own listing of them.
package benchtree

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Spec is the size of a tree.
type Spec struct {
	Files int
	Bytes int64 // in all, met to a few percent
	Seed  uint64
}

// Standard is the tree that the figures are about: 1,000 files of 145 MB.
var Standard = Spec{Files: 1000, Bytes: 145e6, Seed: 1}

// projects is how many working directories the sessions are of.
const projects = 25

// Write makes a tree in the agent directory, as Pi would: sessions/--DIRECTORY--/TIME_ID.jsonl. The same spec makes the same
// files. Their sizes differ as those of real sessions do: many are short, few are of some megabytes. Their times lie in the
// past, as those of nearly all real ones do.
func Write(agentDir string, spec Spec) (sessionsDir string, err error) {
	sessionsDir = filepath.Join(agentDir, "sessions")
	rng := rand.New(rand.NewPCG(spec.Seed, 0)) //nolint:gosec // G404: the same tree each time is the point
	weights, sum := make([]float64, spec.Files), 0.0
	for i := range weights {
		weights[i] = math.Exp(rng.NormFloat64() * 1.2)
		sum += weights[i]
	}
	start := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	for i, weight := range weights {
		s := session{
			rng: rng, at: start.Add(time.Duration(i) * 37 * time.Minute), cwd: fmt.Sprintf("/home/dev/src/project-%02d", i%projects),
			id:   fmt.Sprintf("019b%04x-%04x-7%03x-8%03x-%012x", i>>16, i&0xffff, rng.IntN(1<<12), rng.IntN(1<<12), rng.Uint64()>>16),
			size: int64(weight / sum * float64(spec.Bytes)), number: i,
		}
		if err := s.write(sessionsDir); err != nil {
			return "", fmt.Errorf("make session tree: %w", err)
		}
	}
	return sessionsDir, nil
}

// session writes one file.
type session struct {
	rng     *rand.Rand
	w       *bufio.Writer
	at      time.Time
	cwd, id string
	size    int64
	number  int
	written int64
	parent  any
}

func (s *session) write(sessionsDir string) (err error) {
	dir := filepath.Join(sessionsDir, "--"+strings.ReplaceAll(strings.TrimPrefix(s.cwd, "/"), "/", "-")+"--")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	stamp := s.at.Format("2006-01-02T15:04:05.000Z")
	path := filepath.Join(dir, strings.NewReplacer(":", "-", ".", "-").Replace(stamp)+"_"+s.id+".jsonl")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Chtimes(path, s.at, s.at)) }()
	s.w = bufio.NewWriterSize(f, 64<<10)
	lines := []any{
		fields{{"type", "session"}, {"version", 3}, {"id", s.id}, {"timestamp", stamp}, {"cwd", s.cwd}},
		s.entry("model_change", field{"provider", "anthropic"}, field{"modelId", "claude-sonnet-4-5"}),
		s.entry("thinking_level_change", field{"thinkingLevel", "medium"}),
	}
	for _, line := range lines {
		if err := s.line(line); err != nil {
			return err
		}
	}
	for turn := 0; turn == 0 || s.written < s.size; turn++ {
		if err := s.turn(turn); err != nil {
			return err
		}
	}
	if s.number%5 == 0 {
		if err := s.line(s.entry("session_info", field{"name", "Work on " + s.text(3)})); err != nil {
			return err
		}
	}
	return s.w.Flush()
}

// turn is a prompt, now and then with an image, a tool call with its result, and an answer.
func (s *session) turn(n int) error {
	prompt := []any{fields{{"type", "text"}, {"text", s.text(10 + s.rng.IntN(60))}}}
	if n > 0 && s.rng.IntN(40) == 0 {
		image := make([]byte, 40<<10+s.rng.IntN(80<<10))
		for i := range image {
			image[i] = byte(s.rng.Uint32())
		}
		prompt = append(prompt, fields{{"type", "image"}, {"data", base64.StdEncoding.EncodeToString(image)}, {"mimeType", "image/png"}})
	}
	call := fmt.Sprintf("call_%08x", s.rng.Uint32())
	for _, message := range []fields{
		{{"role", "user"}, {"content", prompt}},
		s.assistant("toolUse",
			fields{{"type", "thinking"}, {"thinking", s.text(60)}, {"thinkingSignature", base64.StdEncoding.EncodeToString([]byte(s.text(30)))}},
			fields{{"type", "toolCall"}, {"id", call}, {"name", "bash"}, {"arguments", fields{{"command", "grep -rn \"" + s.text(2) + "\" ./src"}}}}),
		{{"role", "toolResult"}, {"toolCallId", call}, {"toolName", "bash"}, {"content", []any{fields{{"type", "text"}, {"text", s.output()}}}}, {"isError", false}},
		s.assistant("stop", fields{{"type", "text"}, {"text", s.text(40 + s.rng.IntN(200))}}),
	} {
		s.at = s.at.Add(time.Duration(1+s.rng.IntN(20_000)) * time.Millisecond)
		message = append(message, field{"timestamp", s.at.UnixMilli()})
		if err := s.line(s.entry("message", field{"message", message})); err != nil {
			return err
		}
		if s.written > s.size {
			return nil
		}
	}
	return nil
}

func (s *session) assistant(stop string, content ...any) fields {
	return fields{
		{"role", "assistant"}, {"content", content}, {"api", "anthropic-messages"}, {"provider", "anthropic"},
		{"model", "claude-sonnet-4-5"},
		{"usage", fields{
			{"input", 1200}, {"output", 310}, {"cacheRead", 20_000}, {"cacheWrite", 800}, {"totalTokens", 22_310},
			{"cost", fields{{"input", 0.0036}, {"output", 0.00465}, {"cacheRead", 0.006}, {"cacheWrite", 0.003}, {"total", 0.01725}}},
		}},
		{"stopReason", stop},
	}
}

func (s *session) entry(kind string, rest ...field) fields {
	id := fmt.Sprintf("%08x", s.rng.Uint32())
	e := fields{{"type", kind}, {"id", id}, {"parentId", s.parent}, {"timestamp", s.at.Format("2006-01-02T15:04:05.000Z")}}
	s.parent = id
	return append(e, rest...)
}

func (s *session) line(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	s.written += int64(len(b)) + 1
	_, err = s.w.Write(append(b, '\n'))
	return err
}

var words = strings.Fields(`the of a to in is for that with on error return func test file line value when from this path
	session context config request handler buffer index parse write read close open state größe naïve 終了 übersetzen retry
	timeout cache worker queue signal mount policy review deploy rename refactor branch commit merge issue module import`)

func (s *session) text(n int) string {
	var b strings.Builder
	for i := range n {
		switch {
		case i > 0 && s.rng.IntN(12) == 0:
			b.WriteString(".\n")
		case i > 0:
			b.WriteByte(' ')
		}
		b.WriteString(words[s.rng.IntN(len(words))])
	}
	return b.String()
}

// output is what a tool printed: code, a listing, colors.
func (s *session) output() string {
	var b strings.Builder
	for range 5 + s.rng.IntN(80) {
		switch s.rng.IntN(8) {
		case 0:
			b.WriteString("\x1b[32m" + s.text(2) + "\x1b[0m\n")
		case 1:
			b.WriteString("\n")
		default:
			fmt.Fprintf(&b, "src/%s.go:%d:\t%s := %s(\"%s\")\n", s.text(1), s.rng.IntN(900), s.text(1), s.text(1), s.text(4))
		}
	}
	return b.String()
}

// fields is a JSON object whose members keep their order, as in Pi's files.
type fields []field

type field struct {
	name  string
	value any
}

// MarshalJSON writes the members in their order.
func (f fields) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, m := range f {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}
