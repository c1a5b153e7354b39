package chat

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/tidwall/gjson"

	"patio/engine/api"
	"patio/tui/pane"
	"patio/tui/safe"
)

// command is a slash command: ours, with run, or one of Pi's.
type command struct {
	name, about, source string
	needs               bool // needs an argument
	run                 func(c *Chat, arg string) tea.Cmd
}

// ours are the commands that are not sent to Pi as a prompt.
var ours []command

func init() {
	ours = []command{
		{name: "model", about: "change the model", run: (*Chat).pickModel},
		{name: "thinking", about: "change how much the model thinks", run: (*Chat).pickThinking},
		{name: "tree", about: "the whole conversation with its branches: go on from any message", run: (*Chat).pickTree},
		{name: "fork", about: "go on from a message of yours, in a new conversation", run: (*Chat).pickFork},
		{name: "new", about: "begin a new conversation in this sandbox", run: (*Chat).newConversation},
		{name: "name", about: "name the conversation", run: (*Chat).rename},
		{name: "compact", about: "summarize the conversation to make room; what follows is for the summary", run: (*Chat).compact},
		{name: "image", about: "attach an image file: /image PATH", needs: true, run: (*Chat).image},
		{name: "copy", about: "copy Pi's last answer", run: (*Chat).copyAnswer},
		{name: "export", about: "write the conversation to a Markdown file", run: (*Chat).export},
		{name: "abort", about: "end what Pi does now", run: func(c *Chat, _ string) tea.Cmd { return c.abort() }},
	}
}

func ownCommand(name string) (command, bool) {
	for _, c := range ours {
		if c.name == name {
			return c, true
		}
	}
	return command{}, false
}

// parseOwn finds the command of ours that a text is, and its argument.
func parseOwn(text string) (cmd command, arg string, ok bool) {
	rest, slash := strings.CutPrefix(text, "/")
	if !slash {
		return command{}, "", false
	}
	name, arg, _ := strings.Cut(rest, " ")
	cmd, ok = ownCommand(strings.TrimSpace(name))
	return cmd, strings.TrimSpace(arg), ok
}

// refusedBy is Pi's refusal of a command.
func refusedBy(r gjson.Result) error {
	text := safe.Fit(r.Get("error").Str, 500)
	if text == "" {
		text = "no reason given"
	}
	return api.Errorf(api.CodeInternal, "", "Pi refused %s: %s", safe.Fit(r.Get("command").Str, 40), text)
}

// rpc sends a command of Pi's; then gets its reply when that is a success. Without failed
// the error is a notice.
func (c *Chat) rpc(command map[string]any, then func(r gjson.Result) tea.Cmd, failed func(error) tea.Cmd) tea.Cmd {
	return c.host.Command(command, func(reply json.RawMessage, err error) tea.Msg {
		r, err := replied(reply, err)
		return didMsg{c, func() tea.Cmd {
			switch {
			case err != nil && failed != nil:
				return failed(err)
			case err != nil:
				return pane.Failed(err)
			case then != nil:
				return then(r)
			}
			return nil
		}}
	})
}

// whileIdle runs a command that would end what Pi does now: after a question, if it works.
func (c *Chat) whileIdle(what string, cmd tea.Cmd) tea.Cmd {
	if !c.working() {
		return cmd
	}
	return pane.Confirm(pane.ConfirmMsg{
		Question: what + "?", Lost: "Pi is working; what it does now is aborted. What is in the conversation stays in its file.", Yes: "abort and go on", Then: cmd,
	})
}

func (c *Chat) newConversation(string) tea.Cmd {
	if cmd, no := c.refuse(); no {
		return cmd
	}
	return c.whileIdle("Begin a new conversation", c.rpc(map[string]any{"type": "new_session"}, func(r gjson.Result) tea.Cmd {
		if r.Get("data.cancelled").Bool() {
			return c.say("an extension kept the conversation")
		}
		return tea.Batch(c.replaced(), c.say("a new conversation; the one before stays in its file"))
	}, nil))
}

// replaced asks for the messages of a conversation that took another's place. The answer
// goes into the journal, so that every window that shows the session has them.
func (c *Chat) replaced() tea.Cmd {
	return c.host.Command(map[string]string{"type": "get_messages"}, func(_ json.RawMessage, err error) tea.Msg {
		if err != nil {
			return pane.ErrorMsg{Err: fmt.Errorf("read the conversation: %w", err)}
		}
		return nil
	})
}

func (c *Chat) compact(arg string) tea.Cmd {
	if cmd, no := c.refuse(); no {
		return cmd
	}
	command := map[string]any{"type": "compact"}
	if arg != "" {
		command["customInstructions"] = arg
	}
	return c.whileIdle("Compact the conversation", tea.Batch(c.say("asked Pi to compact the conversation"), c.rpc(command, func(gjson.Result) tea.Cmd {
		return c.say("the conversation is compacted")
	}, nil)))
}

func (c *Chat) image(arg string) tea.Cmd {
	if arg == "" {
		return pane.Notice(pane.Warning, "which image? /image PATH")
	}
	if path, ok := pastedPath(arg); ok {
		arg = path
	}
	return c.attach(arg, "")
}

func (c *Chat) copyAnswer(string) tea.Cmd {
	if cmd, no := c.refuse(); no {
		return cmd
	}
	return c.rpc(map[string]any{"type": "get_last_assistant_text"}, func(r gjson.Result) tea.Cmd {
		text := r.Get("data.text").Str
		if text == "" {
			return pane.Notice(pane.Info, "there is no answer yet")
		}
		return pane.Copy(text, "the last answer")
	}, nil)
}

func (c *Chat) export(string) tea.Cmd {
	if cmd, no := c.refuse(); no {
		return cmd
	}
	id := c.s.ID
	return c.rpc(map[string]any{"type": "get_messages"}, func(r gjson.Result) tea.Cmd {
		return pane.Export("patio-"+id+".md", func(w io.Writer) error { return writeMarkdown(w, r.Get("data.messages")) })
	}, nil)
}

// writeMarkdown writes messages as Pi's get_messages has them.
func writeMarkdown(w io.Writer, messages gjson.Result) error {
	put := func(format string, args ...any) error {
		_, err := fmt.Fprintf(w, format, args...)
		return err
	}
	var err error
	messages.ForEach(func(_, m gjson.Result) bool {
		switch m.Get("role").Str {
		case "user":
			err = put("## You\n\n")
		case "assistant":
			err = put("## Pi\n\n")
		case "toolResult":
			err = put("### Result of %s\n\n", safe.Line(m.Get("toolName").Str))
		default:
			err = put("## %s\n\n", safe.Line(m.Get("role").Str))
		}
		result := m.Get("role").Str == "toolResult"
		content := m.Get("content")
		if content.Type == gjson.String {
			err = put("%s\n\n", safe.Text(content.Str))
			return err == nil
		}
		content.ForEach(func(_, b gjson.Result) bool {
			switch b.Get("type").Str {
			case "text":
				text := safe.Text(b.Get("text").Str)
				if result {
					text = fenced(text)
				}
				err = put("%s\n\n", text)
			case "thinking":
				err = put("> %s\n\n", strings.ReplaceAll(safe.Text(b.Get("thinking").Str), "\n", "\n> "))
			case "toolCall":
				err = put("**%s**\n\n%s\n\n", safe.Line(b.Get("name").Str), fenced(safe.Text(b.Get("arguments").Raw)))
			case "image":
				err = put("*an image (%s)*\n\n", safe.Line(b.Get("mimeType").Str))
			}
			return err == nil
		})
		return err == nil
	})
	return err
}

// fenced puts text between fences that are longer than any in it.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + strings.TrimSuffix(text, "\n") + "\n" + fence
}
