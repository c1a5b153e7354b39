package demo

import (
	"fmt"
	"slices"
	"strings"
)

// Names of Pi's tools.
const (
	toolBash  = "bash"
	toolRead  = "read"
	toolWrite = "write"
	toolEdit  = "edit"
)

// toolImages starts the user message in which Pi sends the images of a tool result. It is no prompt.
const toolImages = "Attached image(s) from tool result:"

// conversationTag starts the prompt with which Pi asks for a summary when it compacts a session.
const conversationTag = "<conversation>\n"

// turn is what one prompt has led to so far.
type turn struct {
	model   string
	prompt  content
	images  []string
	calls   []call // made since the prompt, in order
	offered map[string]bool
}

// call is a tool call that was made, and what came back.
type call struct {
	id, tool, args, result string
}

// currentTurn finds the last prompt and what followed it.
func currentTurn(r request) turn {
	t := turn{model: r.Model, offered: map[string]bool{}}
	if string(r.ToolChoice) != `"none"` {
		for _, tool := range r.Tools {
			t.offered[tool.Function.Name] = true
		}
	}
	last := 0
	for i, m := range r.Messages {
		if m.Role == "user" && (i == 0 || !isToolImages(m)) {
			last = i
		}
	}
	t.prompt = r.Messages[last].Content
	t.images = t.prompt.images()
	at := map[string]int{}
	for _, m := range r.Messages[last+1:] {
		switch m.Role {
		case "assistant":
			for _, c := range m.ToolCalls {
				at[c.ID] = len(t.calls)
				t.calls = append(t.calls, call{id: c.ID, tool: c.Function.Name, args: c.Function.Arguments})
			}
		case "tool":
			if i, ok := at[m.ToolCallID]; ok {
				t.calls[i].result = m.Content.text()
			}
		case "user":
			t.images = append(t.images, m.Content.images()...)
		}
	}
	return t
}

func isToolImages(m message) bool {
	return len(m.Content) > 1 && m.Content[0].Text == toolImages
}

// answer decides what the model says next.
func (t turn) answer() reply {
	if len(t.offered) == 0 && strings.HasPrefix(t.prompt.text(), conversationTag) {
		return reply{pieces: []piece{said(summary(t.prompt.text()))}}
	}
	var s script
	for _, p := range t.prompt {
		// Each part by itself: what Pi puts in the place of an image it leaves out is no part of a command.
		if p.Type != partText {
			continue
		}
		more, err := parseScript(p.Text)
		if err != nil {
			return reply{pieces: []piece{said(fmt.Sprintf("patio demo: %v.\n\n%s", err, Directives()))}}
		}
		s.directives = append(s.directives, more.directives...)
		s.free = strings.TrimPrefix(s.free+"\n"+more.free, "\n")
	}
	var r reply
	if s.answers() {
		r = t.perform(s)
	} else {
		r = t.improvise(s.free)
		if len(t.calls) == 0 {
			r.pieces = append(s.thoughts(), r.pieces...)
		}
	}
	r.pause = s.pause()
	return r
}

func (s script) thoughts() []piece {
	var pieces []piece
	for _, d := range s.directives {
		if d.key == keyThink {
			pieces = append(pieces, d.thought())
		}
	}
	return pieces
}

func (d directive) thought() piece {
	return piece{reasoning: true, text: d.text, filler: d.size}
}

// perform goes through the directives up to the first tool call that hasn't been made yet.
func (t turn) perform(s script) reply {
	var pieces []piece
	var results []string
	made := 0
	for _, d := range s.directives {
		switch d.key {
		case keyThink:
			pieces = append(pieces, d.thought())
		case keyText:
			pieces = append(pieces, piece{filler: d.size})
		case keyImage:
			pieces = append(pieces, said(describeImages(t.images)))
		case keyFail:
			return reply{status: d.status, message: d.text}
		case keyRun, keyWrite, keyTool:
			if !t.offered[d.tool] {
				results = append(results, t.notOffered(d.tool))
				continue
			}
			if made == len(t.calls) {
				return reply{pieces: pieces, tool: d.tool, args: d.args}
			}
			results = append(results, t.calls[made].result)
			made++
			pieces = nil
		case keySlow:
		}
	}
	if len(results) > 0 {
		// Thoughts come before the answer, the answer starts with the results.
		i := slices.IndexFunc(pieces, func(p piece) bool { return !p.reasoning })
		if i < 0 {
			i = len(pieces)
		}
		if i < len(pieces) {
			// What follows starts a line of its own.
			results = append(results, "")
		}
		pieces = slices.Insert(pieces, i, said(joinLines(results)))
	}
	return reply{pieces: pieces}
}

func (t turn) notOffered(tool string) string {
	if len(t.offered) == 0 {
		return fmt.Sprintf("patio demo: no tool is offered in this request, so %s was not called.", tool)
	}
	var names []string
	for name := range t.offered {
		names = append(names, name)
	}
	slices.Sort(names)
	return fmt.Sprintf("patio demo: the tool %s is not offered in this request (%s are), so it was not called.", tool, strings.Join(names, ", "))
}

// improvise is what a model does by itself.
func (t turn) improvise(free string) reply {
	switch t.model {
	case modelTour:
		return tour(t)
	case modelThink:
		thought := fmt.Sprintf("The prompt has %d bytes. I am a script, so there is nothing to think about: I answer with the prompt.", len(free))
		return reply{pieces: []piece{{reasoning: true, text: thought}, said(echo(free))}}
	case modelVision:
		return reply{pieces: []piece{said(describeImages(t.images))}}
	default:
		return reply{pieces: []piece{said(echo(free))}}
	}
}

func echo(free string) string {
	if strings.TrimSpace(free) == "" {
		return "patio demo: the prompt is empty."
	}
	return free
}

// joinLines puts texts one after the other, each on a line of its own, and leaves a single one as it is.
func joinLines(texts []string) string {
	var b strings.Builder
	for i, s := range texts {
		b.WriteString(s)
		if i < len(texts)-1 && !strings.HasSuffix(s, "\n") {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// maxGoals bounds a summary, which must be shorter than what it sums up.
const maxGoals = 10

// summary answers Pi's request to compact a conversation. The prompts it lists are indented, so that a directive among
// them isn't carried out again.
func summary(prompt string) string {
	conversation, _, _ := strings.Cut(strings.TrimPrefix(prompt, conversationTag), "\n</conversation>")
	var goals []string
	for line := range strings.Lines(conversation) {
		if text, ok := strings.CutPrefix(line, "[User]: "); ok {
			goals = append(goals, "- "+firstRunes(strings.TrimSpace(text), 120))
		}
	}
	goals = goals[max(0, len(goals)-maxGoals):]
	if len(goals) == 0 {
		goals = []string{"- (no prompt)"}
	}
	return fmt.Sprintf("## Goal\n%s\n\n## Progress\n- Summed up %d bytes of conversation. This is patio's scripted demo model: no AI read it.\n",
		strings.Join(goals, "\n"), len(conversation))
}

func firstRunes(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n]) + "…"
}
