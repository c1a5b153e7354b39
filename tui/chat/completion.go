package chat

import (
	"encoding/json"
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/sahilm/fuzzy"
	"github.com/tidwall/gjson"

	"patio/tui/safe"
	"patio/tui/style"
)

// completion is the list of commands while a slash word is typed.
type completion struct {
	shown   []command
	matched [][]int
	cursor  int
	top     int
	hidden  string // the word for which Esc closed it
	word    string
}

// commandsState is what is known of Pi's commands.
type commandsState int

const (
	commandsUnknown commandsState = iota
	commandsAsked
	commandsKnown
	commandsFailed
)

// maxCommands bounds how many of Pi's commands are kept.
const maxCommands = 500

// askCommands asks Pi for its commands, once for each of its runtimes: a fork loads its
// extensions anew.
func (c *Chat) askCommands() tea.Cmd {
	if c.known == commandsAsked || c.known == commandsKnown || !c.takesCommands() {
		return nil
	}
	c.known = commandsAsked
	round := c.round
	return c.host.Command(map[string]string{"type": "get_commands"}, func(reply json.RawMessage, err error) tea.Msg {
		var found []command
		r, err := replied(reply, err)
		for _, v := range r.Get("data.commands").Array() {
			name := v.Get("name").Str
			// A name that has to be changed to be shown couldn't be sent as it is shown.
			if name == "" || safe.Line(name) != name || strings.ContainsFunc(name, unicode.IsSpace) || len(found) == maxCommands {
				continue
			}
			found = append(found, command{name: name, about: safe.Fit(v.Get("description").Str, maxLabel), source: safe.Fit(v.Get("source").Str, 20)})
		}
		return didMsg{c, func() tea.Cmd {
			if round != c.round {
				return nil
			}
			if err != nil {
				c.known = commandsFailed
				return nil
			}
			c.known, c.theirs = commandsKnown, found
			c.complete()
			return nil
		}}
	})
}

// slashWord is the command's name that is being typed.
func (c *Chat) slashWord() (string, bool) {
	if c.focus != focusEditor || c.picker != nil {
		return "", false
	}
	value := c.ed.area.Value()
	if !strings.HasPrefix(value, "/") || strings.ContainsFunc(value, unicode.IsSpace) {
		return "", false
	}
	return value[1:], true
}

// complete makes the list fit what is typed.
func (c *Chat) complete() {
	word, ok := c.slashWord()
	p := &c.completion
	if !ok {
		*p = completion{}
		return
	}
	before := p.cursor
	if word != p.word {
		before = 0
	}
	*p = completion{hidden: p.hidden, word: word}
	if p.hidden == "/"+word {
		return
	}
	p.hidden = ""
	all := c.commands()
	if word == "" {
		for _, cmd := range all {
			p.shown = append(p.shown, cmd)
			p.matched = append(p.matched, nil)
		}
	} else {
		names := make([]string, len(all))
		for i := range all {
			names[i] = all[i].name
		}
		for _, m := range fuzzy.Find(word, names) {
			p.shown = append(p.shown, all[m.Index])
			p.matched = append(p.matched, m.MatchedIndexes)
		}
	}
	p.cursor = max(min(before, len(p.shown)-1), 0)
}

// commands are ours, then Pi's.
func (c *Chat) commands() []command {
	all := make([]command, 0, len(ours)+len(c.theirs))
	all = append(all, ours...)
	for _, cmd := range c.theirs {
		if _, mine := ownCommand(cmd.name); !mine {
			all = append(all, cmd)
		}
	}
	return all
}

func (p *completion) open() bool { return len(p.shown) > 0 }

func (p *completion) selected() command { return p.shown[p.cursor] }

// completionKey handles a key while the list is shown.
func (c *Chat) completionKey(msg tea.KeyPressMsg) (cmd tea.Cmd, handled bool) {
	p := &c.completion
	switch msg.String() {
	case "up":
		p.cursor = (p.cursor + len(p.shown) - 1) % len(p.shown)
	case "down", "ctrl+n":
		p.cursor = (p.cursor + 1) % len(p.shown)
	case "tab", "right", "ctrl+space", "ctrl+@":
		c.acceptCompletion()
	case "enter":
		sel := p.selected()
		if p.word == sel.name || sel.run != nil && !sel.needs {
			c.ed.set("/" + sel.name)
			return c.send(""), true
		}
		c.acceptCompletion()
	case "esc":
		p.hidden = c.ed.area.Value()
		c.complete()
	default:
		return nil, false
	}
	return nil, true
}

func (c *Chat) acceptCompletion() {
	c.ed.set("/" + c.completion.selected().name + " ")
	c.edited()
}

// view draws the list as a box.
func (p *completion) view(s *style.Styles, width, height int, known commandsState) string {
	inner := width - 4
	rows := max(height-2, 0)
	p.top = min(p.top, p.cursor)
	p.top = max(p.top, p.cursor-rows+1)
	p.top = max(min(p.top, len(p.shown)-rows), 0)
	end := min(p.top+rows, len(p.shown))
	widest := 8
	for _, cmd := range p.shown[p.top:end] {
		widest = max(widest, safe.Width(cmd.name)+1)
	}
	label := min(widest, max(inner/2-4, 1))
	var lines []string
	for i := p.top; i < end; i++ {
		cmd := p.shown[i]
		about := cmd.about
		if cmd.source != "" {
			about += " (" + cmd.source + ")"
		}
		it := item{prefix: "/", label: cmd.name, detail: about}
		lines = append(lines, " "+row(s, it, p.matched[i], i == p.cursor, label, inner)+" ")
	}
	title := "commands"
	switch known {
	case commandsAsked:
		title = "commands · asking Pi for its own…"
	case commandsFailed:
		title = "commands · Pi doesn't tell its own now"
	case commandsUnknown, commandsKnown:
	}
	return safe.Block(s.Box(safe.Cut(title, width-6), strings.Join(lines, "\n"), width, height), width, height)
}

// replied is a reply of Pi's, or why there is none.
func replied(reply json.RawMessage, err error) (gjson.Result, error) {
	if err != nil {
		return gjson.Result{}, err
	}
	r := gjson.ParseBytes(reply)
	if !r.Get("success").Bool() {
		return r, refusedBy(r)
	}
	return r, nil
}
