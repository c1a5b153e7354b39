package chat

import (
	"errors"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/tidwall/gjson"

	"patio/engine/api"
	"patio/tui/pane"
)

// Behaviours of a prompt for a session that is working.
const (
	steer    = "steer"
	followUp = "followUp"
)

// working says that a prompt now needs a behaviour.
func (c *Chat) working() bool {
	return c.s.Phase == api.PhaseReady && (c.s.Activity == api.ActivityWorking || c.s.Activity == api.ActivityBlocked)
}

// takesCommands says that Pi can be talked to.
func (c *Chat) takesCommands() bool { return c.s.Phase == api.PhaseReady && !c.o.ReadOnly }

// refuse says why Pi can't be talked to, if it can't.
func (c *Chat) refuse() (tea.Cmd, bool) {
	switch {
	case c.takesCommands():
		return nil, false
	case c.o.ReadOnly:
		return pane.Notice(pane.Warning, "this window is read-only"), true
	case c.s.Phase.Final():
		return pane.Notice(pane.Warning, "the session has ended"), true
	}
	return pane.Notice(pane.Warning, "the session isn't ready yet"), true
}

// say shows a short text above the status for a while.
func (c *Chat) say(text string) tea.Cmd {
	c.tell(text)
	return nil
}

func (c *Chat) tell(text string) {
	c.note, c.noteUntil = text, c.o.Now().Add(noteTime)
	c.arrange()
}

// removed tells of characters that were taken out of what was typed.
func (c *Chat) removed(n int) tea.Cmd {
	c.edited()
	switch {
	case n == 1:
		c.tell("1 character was removed that no message can have: NUL, ESC or a broken one")
	case n > 1:
		c.tell(thousand(n) + " characters were removed that no message can have: NUL, ESC or broken ones")
	}
	return nil
}

// send sends what is in the editor. Behavior is for a session that works; empty steers it.
func (c *Chat) send(behavior string) tea.Cmd {
	text, pictures := c.ed.text(), c.ed.pictures()
	if strings.TrimSpace(text) == "" && len(pictures) == 0 {
		return nil
	}
	if cmd, arg, ok := parseOwn(text); ok {
		if cmd.needs && arg == "" {
			return pane.Notice(pane.Warning, cmd.about)
		}
		c.ed.reset()
		c.edited()
		c.recall.add(text)
		return tea.Batch(c.keep(text), cmd.run(c, arg))
	}
	if cmd, no := c.refuse(); no {
		return cmd
	}
	request := api.PromptRequest{Message: text}
	if c.working() {
		request.Behavior = behavior
		if behavior == "" {
			request.Behavior = steer
		}
	}
	saved := c.ed.save()
	c.ed.reset()
	c.edited()
	c.recall.add(text)
	c.t.ScrollToEnd()
	return tea.Batch(c.keep(text), func() tea.Msg {
		// Images can be large: they are put together outside of Update.
		images, err := blocks(pictures)
		if err != nil {
			return pane.ErrorMsg{Err: fmt.Errorf("encode images: %w", err)}
		}
		request.Images = images
		return run(c.host.Prompt(request, func(_ api.PromptResponse, err error) tea.Msg {
			return didMsg{c, func() tea.Cmd { return c.prompted(saved, err) }}
		}))
	})
}

func run(cmd tea.Cmd) tea.Msg {
	if cmd == nil {
		return nil
	}
	return cmd()
}

// keep adds a text to the workspace's inputs.
func (c *Chat) keep(text string) tea.Cmd {
	if c.o.Inputs == nil {
		return nil
	}
	return c.o.Inputs.Append(c.o.Workspace, text)
}

// prompted gives a text back that Pi didn't take.
func (c *Chat) prompted(saved draft, err error) tea.Cmd {
	if err == nil {
		return nil
	}
	if c.ed.empty() {
		c.ed.restore(saved)
		c.edited()
	}
	var e *api.Error
	if errors.As(err, &e) && e.Code == api.CodeConflict && c.s.Phase == api.PhaseReady {
		return c.say("Pi has begun to work meanwhile: Enter steers it, ctrl+f is next")
	}
	return pane.Failed(err)
}

// abort ends what Pi does now.
func (c *Chat) abort() tea.Cmd {
	if cmd, no := c.refuse(); no {
		return cmd
	}
	if !c.working() {
		return c.say("Pi does nothing that could be aborted")
	}
	c.aborting = true
	text := "asked Pi to abort"
	if steering, _ := c.t.Queue(); len(steering) > 0 {
		text = "asked Pi to abort; it takes what is queued first"
	}
	return tea.Batch(c.say(text), c.rpc(map[string]any{"type": "abort"}, func(gjson.Result) tea.Cmd {
		c.aborting = false
		return c.say("aborted")
	}, func(err error) tea.Cmd {
		c.aborting = false
		return pane.Failed(err)
	}))
}

// edit opens text in the user's own editor. current says whether it is still wanted when
// that ends.
func (c *Chat) edit(e *editor, current func() bool) tea.Cmd {
	text, pictures := e.text(), e.pictures()
	return func() tea.Msg {
		return pane.EditMsg{Text: text, Done: func(text string, err error) tea.Msg {
			return didMsg{c, func() tea.Cmd {
				switch {
				case err != nil:
					return pane.Failed(err)
				case !current():
					return pane.Notice(pane.Warning, "what you wrote came too late for Pi's question")
				}
				cmd := c.removed(e.set(strings.TrimRight(text, "\n")))
				for _, p := range pictures {
					e.addChip(&chip{label: p.label(), image: p})
				}
				c.arrange()
				return cmd
			}}
		}}
	}
}
