package demo

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// maxQuoted bounds what the report repeats of a single result.
const maxQuoted = 600

// report says in Markdown what came back, from the tool results alone.
func (v *visit) report() string {
	var b strings.Builder
	b.WriteString("## What happened\n\nI am patio's scripted demo model: no AI. Everything below is taken from the tool results of this session.\n\n")
	for _, s := range stops() {
		title := map[string]string{
			stopLook: "Directory", stopGit: "Git", stopWho: "Kernel and user", stopWrite: "File written",
			stopEdit: "File edited", stopRead: "File read", stopReach: "Network",
		}[s.name]
		item(&b, title, v.finding(s.name))
	}
	if v.skipped[stopWrite] == "" && v.withoutFile() == "" {
		fmt.Fprintf(&b, "\nThe file is %s, in the directory you started me in.\n", code(v.file()))
	}
	return b.String()
}

// item writes a list item; a quoted block starts on a line of its own.
func item(b *strings.Builder, title, text string) {
	blank := " "
	if strings.HasPrefix(text, "\n") {
		blank = ""
	}
	fmt.Fprintf(b, "- **%s**:%s%s\n", title, blank, text)
}

func (v *visit) finding(name string) string {
	if why, ok := v.skipped[name]; ok {
		return "skipped: " + why
	}
	result := v.done[name].result
	switch name {
	case stopLook:
		return v.directory()
	case stopWho:
		return v.identity()
	case stopRead:
		return readBack(result)
	case stopReach:
		return code(reachCommand) + ": " + reached(result)
	default:
		return quoted(result)
	}
}

func (v *visit) directory() string {
	result := v.done[stopLook].result
	if failed(result) {
		return quoted(result)
	}
	var names []string
	seen := map[string]bool{}
	for line := range strings.Lines(result) {
		// What ls names twice was there twice in the command; "(no output)" is what Pi puts for nothing.
		name := strings.TrimSuffix(line, "\n")
		if name != "" && name != "(no output)" && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "empty"
	}
	const shown = 8
	var list []string
	for _, n := range names[:min(shown, len(names))] {
		list = append(list, code(n))
	}
	more := ""
	if len(names) > shown {
		more = fmt.Sprintf(" and %d more", len(names)-shown)
	}
	entries := "entries"
	if len(names) == 1 {
		entries = "entry"
	}
	return fmt.Sprintf("%d %s: %s%s", len(names), entries, strings.Join(list, ", "), more)
}

func (v *visit) identity() string {
	kernel, user := v.kernel(), v.user()
	if kernel == "" || user == "" {
		return quoted(v.done[stopWho].result)
	}
	text := code(kernel) + ", " + code(user)
	if strings.Contains(strings.ToLower(kernel), "gvisor") {
		text += " (the kernel names itself gVisor's)"
	}
	return text
}

func readBack(result string) string {
	lines := strings.Count(strings.TrimSuffix(result, "\n"), "\n") + 1
	if firstWith(result, stateEdited) != "" {
		return fmt.Sprintf("%d lines, with the edit in it: %s", lines, code(firstWith(result, stateEdited)))
	}
	return "the edit is not in it: " + quoted(result)
}

// reached tells a refusal from an answer.
func reached(result string) string {
	_, after, ok := strings.Cut(result, exitLine)
	if !ok {
		if failed(result) {
			return "no answer:" + quotedBlock(result)
		}
		return fmt.Sprintf("**it was reached**, %d bytes came back. In a closed sandbox that must not happen.", len(result))
	}
	status, _, _ := strings.Cut(after, "\n")
	if n, err := strconv.Atoi(strings.TrimSpace(status)); err == nil && n == 127 {
		return "curl is not there:" + quotedBlock(result)
	}
	return "not reached:" + quotedBlock(result)
}

// quoted is a result as Markdown that can't be mistaken for the model's own words.
func quoted(result string) string {
	text := shortened(result)
	switch {
	case text == "":
		return "(nothing)"
	case strings.Contains(text, "\n"):
		return quotedBlock(result)
	default:
		return code(text)
	}
}

// quotedBlock is quoted, always as a block inside a list item.
func quotedBlock(result string) string {
	text := shortened(result)
	fence := strings.Repeat("`", max(3, longestTicks(text)+1))
	return "\n\n  " + fence + "text\n  " + strings.ReplaceAll(text, "\n", "\n  ") + "\n  " + fence + "\n"
}

var blankLines = regexp.MustCompile(`\n\s*\n`)

func shortened(result string) string {
	return firstRunes(blankLines.ReplaceAllString(strings.TrimSpace(result), "\n"), maxQuoted)
}

// code is an inline code span around any text.
func code(text string) string {
	ticks := strings.Repeat("`", longestTicks(text)+1)
	if len(ticks) > 1 {
		return ticks + " " + text + " " + ticks
	}
	return ticks + text + ticks
}

func longestTicks(text string) int {
	longest, run := 0, 0
	for _, r := range text {
		if r != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}
