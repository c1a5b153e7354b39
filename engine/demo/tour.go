package demo

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// What the tour runs and writes. ls names the files of earlier tours again at its end, for Pi keeps only the end of a
// very long output.
const (
	lookCommand  = "ls -A; ls -d patio-tour*.md 2>/dev/null || true"
	gitCommand   = "git status --short --branch"
	whoCommand   = "uname -a; id"
	reachCommand = "curl -sS -m 5 https://example.com"

	stateWritten = "- state: written"
	stateEdited  = "- state: written, then edited"
)

// stop is a step of the tour: what the model says before it calls the tool, and with which arguments.
type stop struct {
	name, say, tool string
	args            func(*visit) string
	// skip says why the step can't be made, or nothing.
	skip func(*visit) string
}

// visit is a tour under way: the calls made, by the name of the step.
type visit struct {
	turn
	done    map[string]call
	skipped map[string]string
}

const (
	stopLook  = "look"
	stopGit   = "git"
	stopWho   = "who"
	stopWrite = "write"
	stopEdit  = "edit"
	stopRead  = "read"
	stopReach = "reach"
)

func stops() []stop {
	bash := func(command string) func(*visit) string {
		return func(*visit) string { return object("command", command) }
	}
	return []stop{
		{name: stopLook, say: "I'll look around first.", tool: toolBash, args: bash(lookCommand)},
		{name: stopGit, say: "Is this a git repository?", tool: toolBash, args: bash(gitCommand)},
		{name: stopWho, say: "Which kernel is this, and who am I?", tool: toolBash, args: bash(whoCommand)},
		{name: stopWrite, say: "I'll write that down in a file.", tool: toolWrite, args: (*visit).writeArgs},
		{name: stopEdit, say: "Now a small edit.", tool: toolEdit, args: (*visit).editArgs, skip: (*visit).withoutFile},
		{name: stopRead, say: "Reading it back.", tool: toolRead, args: (*visit).readArgs, skip: (*visit).withoutFile},
		{name: stopReach, say: "Last, I'll try a host that nobody allowed.", tool: toolBash, args: bash(reachCommand)},
	}
}

// tour makes the next step, or reports when there is none left.
func tour(t turn) reply {
	v := &visit{turn: t, done: map[string]call{}, skipped: map[string]string{}}
	made := 0
	for _, s := range stops() {
		if !t.offered[s.tool] {
			v.skipped[s.name] = t.notOffered(s.tool)
			continue
		}
		if s.skip != nil {
			if why := s.skip(v); why != "" {
				v.skipped[s.name] = why
				continue
			}
		}
		if made < len(t.calls) {
			v.done[s.name] = t.calls[made]
			made++
			continue
		}
		pieces := []piece{said(s.say)}
		if made == 0 {
			pieces = slices.Insert(pieces, 0, piece{reasoning: true, text: tourThought})
		}
		return reply{pieces: pieces, tool: s.tool, args: s.args(v)}
	}
	return reply{pieces: []piece{said(v.report())}}
}

const tourThought = "I am a script, not an AI. My script says: look around, see who I am, write a file, edit it, read it back, " +
	"try a host that is not allowed, then report what really came back."

func (v *visit) writeArgs() string {
	var b strings.Builder
	b.WriteString("# patio tour\n\nWritten by patio's scripted demo model (no AI) with Pi's write tool.\n\n")
	if kernel := v.kernel(); kernel != "" {
		fmt.Fprintf(&b, "- kernel: %s\n", kernel)
	}
	if user := v.user(); user != "" {
		fmt.Fprintf(&b, "- user: %s\n", user)
	}
	b.WriteString(stateWritten + "\n")
	return object("path", v.newName(), "content", b.String())
}

// newName is a name that the directory doesn't hold yet.
func (v *visit) newName() string {
	look, ok := v.done[stopLook]
	if !ok || failed(look.result) {
		// Nobody knows what is there: a name that nobody has taken.
		var b [4]byte
		_, _ = rand.Read(b[:]) // never fails
		return "patio-tour-" + hex.EncodeToString(b[:]) + ".md"
	}
	taken := strings.Split(look.result, "\n")
	name := "patio-tour.md"
	for n := 2; slices.Contains(taken, name); n++ {
		name = fmt.Sprintf("patio-tour-%d.md", n)
	}
	return name
}

// file is the name that the write call was given.
func (v *visit) file() string {
	var args struct {
		Path string `json:"path"`
	}
	if json.Unmarshal([]byte(v.done[stopWrite].args), &args) != nil {
		return ""
	}
	return args.Path
}

func (v *visit) withoutFile() string {
	c, ok := v.done[stopWrite]
	if !ok || v.file() == "" {
		return "there is no file, for it could not be written"
	}
	// Pi's write tool starts so when it has written.
	if !strings.HasPrefix(c.result, "Successfully wrote") {
		return "there is no file, for writing it failed"
	}
	return ""
}

func (v *visit) editArgs() string {
	return fmt.Sprintf(`{"path":%s,"edits":[%s]}`, quote(v.file()), object("oldText", stateWritten, "newText", stateEdited))
}

func (v *visit) readArgs() string { return object("path", v.file()) }

// kernel is the line of uname -a.
func (v *visit) kernel() string { return firstWith(v.done[stopWho].result, "Linux ") }

// user is the line of id.
func (v *visit) user() string { return firstWith(v.done[stopWho].result, "uid=") }

func firstWith(text, start string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, start) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// exitLine starts the line that Pi's bash tool adds to the output of a command that failed.
const exitLine = "Command exited with code "

// failed says whether a bash result is that of a command that ended with an error.
func failed(result string) bool {
	return strings.Contains(result, exitLine) || strings.Contains(result, "Command timed out") || strings.Contains(result, "Command aborted")
}
