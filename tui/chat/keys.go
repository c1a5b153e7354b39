package chat

import (
	"charm.land/bubbles/v2/key"

	"patio/engine/api"
)

func bind(help, what string, keys ...string) key.Binding {
	return key.NewBinding(key.WithKeys(keys...), key.WithHelp(help, what))
}

// The keys. Those of the text area itself (words, line ends) are the terminal's usual ones.
var (
	keySend     = bind("enter", "send", "enter")
	keySteer    = bind("enter", "steer", "enter")
	keyFollowUp = bind("ctrl+f", "say it next", "ctrl+f")
	keyAbort    = bind("ctrl+x", "abort", "ctrl+x")
	keyNewline  = bind("ctrl+j", "new line", "ctrl+j", "shift+enter", "alt+enter")
	keySlash    = bind("/", "commands", "/")
	keyRecall   = bind("↑/↓", "typed before", "up", "down")
	keyRead     = bind("esc", "read the chat", "esc")
	keyWrite    = bind("i", "write", "i")
	keyModel    = bind("ctrl+l", "model", "ctrl+l")
	keyThinking = bind("ctrl+t", "thinking", "ctrl+t")
	keyTree     = bind("ctrl+r", "conversation tree", "ctrl+r")
	keyEdit     = bind("ctrl+o", "your editor", "ctrl+o")
	keyOpen     = bind("alt+o", "open the paste", "alt+o")
	keyGo       = bind("ctrl+g", "answer Pi's question", "ctrl+g")
	keyResume   = bind("R", "resume", "R")
	keyUnsent   = bind("u", "copy unsent text", "u")

	keyAnswer     = bind("enter", "answer", "enter")
	keyCancel     = bind("esc", "cancel the question", "esc")
	keyYes        = bind("y/n", "yes or no", "y", "n")
	keyDigits     = bind("1–9", "answer with that", "1", "2", "3", "4", "5", "6", "7", "8", "9")
	keyNextAsk    = bind("ctrl+n", "next question", "ctrl+n")
	keyLeaveAsk   = bind("ctrl+g", "to the editor", "ctrl+g")
	keyChoose     = bind("enter", "choose", "enter")
	keyChooseMove = bind("↑/↓", "move", "up", "down")
	keyFilter     = bind("a–z", "filter")
	keyClose      = bind("esc", "close", "esc")
	keyComplete   = bind("tab", "complete", "tab", "right", "ctrl+space")
	keyRun        = bind("enter", "run", "enter")
)

// Keys implements pane.Pane.
func (c *Chat) Keys() []key.Binding {
	switch {
	case c.picker != nil && c.picker.free:
		return []key.Binding{keyChoose, keyClose}
	case c.picker != nil:
		return []key.Binding{keyChoose, keyClose, keyChooseMove, keyFilter}
	case c.focus == focusQuestion && c.asked() != nil:
		return c.questionKeys()
	case c.focus == focusEditor && c.completion.open():
		return []key.Binding{keyRun, keyComplete, keyChooseMove, keyClose}
	case c.focus == focusEditor:
		return c.editorKeys()
	}
	return c.transcriptKeys()
}

func (c *Chat) editorKeys() []key.Binding {
	keys := []key.Binding{keySend}
	if c.s.Phase != api.PhaseReady {
		keys = nil // what is typed waits
	}
	if c.working() {
		keys = []key.Binding{keySteer, keyFollowUp, keyAbort}
	}
	if c.asked() != nil {
		keys = append(keys, keyGo)
	}
	if c.ed.hasPastes() {
		keys = append(keys, keyOpen)
	}
	keys = append(keys, keyNewline)
	if c.ed.empty() {
		keys = append(keys, keySlash)
	}
	return append(keys, keyRead, keyRecall, keyModel, keyThinking, keyTree, keyEdit)
}

func (c *Chat) questionKeys() []key.Binding {
	a := c.asked()
	keys := []key.Binding{keyAnswer, keyCancel}
	switch {
	case a.ed != nil && !a.ed.single:
		keys = append(keys, keyNewline, keyEdit)
	case a.ed != nil:
	case a.q.Method == "confirm":
		keys = append(keys, keyYes)
	case len(a.options) >= filterOptions:
		keys = append(keys, keyChooseMove, keyFilter)
	default:
		keys = append(keys, keyDigits, keyChooseMove)
	}
	if len(c.s.Questions) > 1 {
		keys = append(keys, keyNextAsk)
	}
	return append(keys, keyLeaveAsk)
}

func (c *Chat) transcriptKeys() []key.Binding {
	var keys []key.Binding
	switch {
	case c.o.ReadOnly:
	case c.s.Phase.Final():
		keys = append(keys, keyResume)
		if !c.ed.empty() {
			keys = append(keys, keyUnsent)
		}
	default:
		keys = append(keys, keyWrite)
		if c.working() {
			keys = append(keys, keyAbort)
		}
		if c.asked() != nil {
			keys = append(keys, keyGo)
		}
	}
	keys = append(keys, c.t.Keys()...)
	if c.takesCommands() {
		keys = append(keys, keyModel, keyThinking, keyTree)
	}
	return keys
}
