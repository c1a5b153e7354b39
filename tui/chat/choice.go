package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/dustin/go-humanize"
	"github.com/tidwall/gjson"

	"patio/tui/pane"
	"patio/tui/safe"
)

// open shows a picker and asks Pi for what is in it. Items are made where the reply comes
// in, not where it is drawn: a conversation can be large.
func (c *Chat) open(p *picker, ask map[string]any, items func(r gjson.Result) []item, filter string) tea.Cmd {
	if cmd, no := c.refuse(); no {
		return cmd
	}
	c.picker = p
	p.loading = true
	p.filter.SetValue(safe.Fit(filter, maxLabel))
	p.filter.CursorEnd()
	return c.fill(p, ask, items)
}

func (c *Chat) fill(p *picker, ask map[string]any, items func(r gjson.Result) []item) tea.Cmd {
	return c.host.Command(ask, func(reply json.RawMessage, err error) tea.Msg {
		r, err := replied(reply, err)
		var found []item
		if err == nil {
			found = items(r)
		}
		return didMsg{c, func() tea.Cmd {
			switch {
			case c.picker != p:
			case err != nil:
				return c.failed(p)(err)
			default:
				p.setItems(found)
			}
			return nil
		}}
	})
}

// failed shows an error in a picker, or as a notice when it is gone.
func (c *Chat) failed(p *picker) func(error) tea.Cmd {
	return func(err error) tea.Cmd {
		p.busy, p.loading = "", false
		if c.picker != p {
			return pane.Failed(err)
		}
		p.err = err.Error()
		return nil
	}
}

// closePicker takes a picker away, unless another took its place.
func (c *Chat) closePicker(p *picker) {
	if c.picker == p {
		c.picker = nil
	}
}

func (c *Chat) pickModel(filter string) tea.Cmd {
	p := newPicker("model", c.styles)
	p.empty = "Pi has no model with a key here"
	p.hint = "Enter changes it for this session"
	current := c.s.Model.String()
	type key struct{ provider, id string }
	keys := map[string]key{}
	p.choose = func(it item) tea.Cmd {
		k := keys[it.id]
		p.busy = "changing to " + it.id
		return c.rpc(map[string]any{"type": "set_model", "provider": k.provider, "modelId": k.id}, func(gjson.Result) tea.Cmd {
			c.closePicker(p)
			return c.say("the model is " + it.id)
		}, c.failed(p))
	}
	return c.open(p, map[string]any{"type": "get_available_models"}, func(r gjson.Result) []item {
		var items []item
		r.Get("data.models").ForEach(func(_, m gjson.Result) bool {
			provider, id := m.Get("provider").Str, m.Get("id").Str
			name := provider + "/" + id
			label := safe.Fit(name, maxLabel)
			details := []string{safe.Fit(m.Get("name").Str, 48)}
			if n := m.Get("contextWindow").Int(); n > 0 {
				details = append(details, humanizeCount(n))
			}
			if m.Get("reasoning").Bool() {
				details = append(details, "thinks")
			}
			if strings.Contains(m.Get("input").Raw, `"image"`) {
				details = append(details, "sees")
			}
			keys[label] = key{provider, id}
			items = append(items, item{id: label, label: label, detail: strings.Join(details, " · "), current: name == current})
			return len(items) < 2000
		})
		return items
	}, filter)
}

// humanizeCount is a number of tokens in few columns.
func humanizeCount(n int64) string {
	switch {
	case n >= 1_000_000:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/1e6), ".0") + "M"
	case n >= 1000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprint(n)
}

func (c *Chat) pickThinking(filter string) tea.Cmd {
	p := newPicker("thinking", c.styles)
	p.empty = "the model doesn't think"
	p.hint = "Enter changes it for this session"
	current := c.s.Model.Thinking
	p.choose = func(it item) tea.Cmd {
		p.busy = "changing to " + it.label
		return c.rpc(map[string]any{"type": "set_thinking_level", "level": it.id}, func(gjson.Result) tea.Cmd {
			c.closePicker(p)
			return c.say("thinking is " + it.label)
		}, c.failed(p))
	}
	about := map[string]string{
		"off": "answers at once", "minimal": "a glance", "low": "a little", "medium": "the default", "high": "more, and slower", "xhigh": "much more", "max": "as much as it can",
	}
	return c.open(p, map[string]any{"type": "get_available_thinking_levels"}, func(r gjson.Result) []item {
		var items []item
		for _, l := range r.Get("data.levels").Array() {
			items = append(items, item{id: l.Str, label: safe.Fit(l.Str, 20), detail: about[l.Str], current: l.Str == current})
		}
		return items[:min(len(items), 50)]
	}, filter)
}

func (c *Chat) rename(arg string) tea.Cmd {
	if cmd, no := c.refuse(); no {
		return cmd
	}
	set := func(name string, p *picker) tea.Cmd {
		name = strings.TrimSpace(safe.Line(name))
		if name == "" {
			return c.failed(p)(errors.New("a name isn't empty"))
		}
		p.busy = "naming"
		return c.rpc(map[string]any{"type": "set_session_name", "name": name}, func(gjson.Result) tea.Cmd {
			c.closePicker(p)
			return c.say("it is called " + name)
		}, c.failed(p))
	}
	p := newPicker("name of the conversation", c.styles)
	if arg != "" {
		return set(arg, p)
	}
	p.free, p.hint = true, "Enter names it, Esc leaves it as it is"
	p.filter.SetValue(safe.Fit(c.s.Name, maxLabel))
	p.filter.CursorEnd()
	p.choose = func(it item) tea.Cmd { return set(it.id, p) }
	c.picker = p
	return nil
}

func (c *Chat) pickFork(filter string) tea.Cmd {
	p := newPicker("go on from", c.styles)
	p.empty = "you have said nothing yet"
	p.hint = "Enter goes on from before that message, in a new conversation"
	p.choose = func(it item) tea.Cmd { return c.fork(p, it.id, true) }
	return c.open(p, map[string]any{"type": "get_fork_messages"}, func(r gjson.Result) []item {
		var items []item
		for _, m := range r.Get("data.messages").Array() {
			items = append(items, item{id: m.Get("entryId").Str, label: safe.Fit(firstLine(m.Get("text").Str), maxLabel)})
		}
		slices.Reverse(items) // the newest first
		return items[:min(len(items), maxTree)]
	}, filter)
}

// fork makes a new conversation of what is before one of the user's messages, whose text
// comes back into the editor when again.
func (c *Chat) fork(p *picker, entry string, again bool) tea.Cmd {
	return c.whileIdle("Go on from there", c.later(p, "forking", c.rpc(map[string]any{"type": "fork", "entryId": entry}, func(r gjson.Result) tea.Cmd {
		c.closePicker(p)
		if r.Get("data.cancelled").Bool() {
			return c.say("an extension kept the conversation")
		}
		if text := r.Get("data.text").Str; again && c.ed.empty() {
			c.ed.set(text)
			c.toEditor()
		}
		return tea.Batch(c.replaced(), c.say("forked; the conversation before stays in its file"))
	}, c.failed(p))))
}

// later marks a picker as busy when cmd begins: that may be after a question only.
func (c *Chat) later(p *picker, busy string, cmd tea.Cmd) tea.Cmd {
	return func() tea.Msg {
		return didMsg{c, func() tea.Cmd {
			p.busy = busy
			return cmd
		}}
	}
}

// clone makes a new conversation of the whole one.
func (c *Chat) clone(p *picker) tea.Cmd {
	return c.whileIdle("Copy the conversation", c.later(p, "copying", c.rpc(map[string]any{"type": "clone"}, func(r gjson.Result) tea.Cmd {
		c.closePicker(p)
		if r.Get("data.cancelled").Bool() {
			return c.say("an extension kept the conversation")
		}
		return tea.Batch(c.replaced(), c.say("a copy; the conversation before stays in its file"))
	}, c.failed(p))))
}

// firstLine is the first line with something in it.
func firstLine(s string) string {
	s = strings.TrimSpace(s[:min(len(s), 4*maxLabel)])
	line, _, _ := strings.Cut(s, "\n")
	return line
}

func (c *Chat) pickTree(filter string) tea.Cmd {
	p := newPicker("conversation", c.styles)
	p.empty = "nothing was said yet"
	p.hint = "Enter goes on from before a message of yours, or copies at the end"
	var ways map[string]way
	p.choose = func(it item) tea.Cmd {
		w := ways[it.id]
		if w.clone {
			return c.clone(p)
		}
		return c.fork(p, w.fork, w.again)
	}
	return c.open(p, map[string]any{"type": "get_entries"}, func(r gjson.Result) []item {
		t := readTree(r.Get("data"))
		items, found := t.items(c.o.Now())
		ways = found
		return items
	}, filter)
}

// thousand is a count as people read it.
func thousand(n int) string { return humanize.Comma(int64(n)) }
